"""Which files git leaves out: patterns of ignore files, matched in linear time.

A pattern becomes an expression whose gaps never try again: what stands between two of them is taken
where it first fits, since no later place leaves more to the rest. What ignore files say is hostile.
"""

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path
from typing import Final

from tui.engine.files.atomic import read_regular
from tui.engine.files.git_branch import repository_of

MAX_BYTES: Final = 64 * 1024
"""Largest ignore file that is read; a larger one leaves out all that is in its folder."""

MAX_PATTERNS: Final = 2_000
"""Most patterns of a folder; more leave out all that is in it."""

MAX_PATTERN: Final = 256
"""Longest pattern, in bytes; of a longer one, what follows its plain beginning matches all."""

MAX_TOGETHER: Final = 16
"""Patterns that are tried at one stretch, during which no other thread runs."""

MAX_DEPTH: Final = 64
"""Folders in one another, from the repository on; what lies deeper is left out."""

MAX_FILES: Final = 1_000
"""Most ignore files that are read; what further folders hold is left out."""

REPOSITORY: Final = ".git"

HIDDEN: Final = frozenset(
    {"CVS", "_darcs", ".bzr", REPOSITORY, ".hg", ".jj", ".sl", ".svn"}
    | {"bower_components", "node_modules", "site-packages", "venv", ".eggs", ".gradle"}
    | {".nox", ".pnpm-store", ".tox", ".venv", ".yarn", "build", "dist", "target"}
    | {"__pycache__", ".cache", ".mypy_cache", ".next", ".nuxt", ".parcel-cache"}
    | {".pytest_cache", ".ruff_cache", ".svelte-kit", ".terraform", ".turbo"}
)
"""Folders of version control, dependencies and builds: no list shows them, whatever files say."""

_EXCLUDE: Final = f"{REPOSITORY}/info/exclude"
"""The user's own patterns: what they hide stays hidden, whatever files that came along say."""

_FILES: Final = (".gitignore", ".geminiignore")  # the last wins

_NAME: Final = rb"[^/\0]*?"
_FOLDERS: Final = rb"(?:[^/\0]*/)*?"
_ANYTHING: Final = rb"[^\0]*"
_FOLDER: Final = b"\0"
"""Ends the path of a folder when it is matched; no path has it."""

_ONE: Final = rb"(?:\\.|[^\\\]])"
_ITEM: Final = rb"%b-%b|\[:[^\]]*:\]|%b" % (_ONE, _ONE, _ONE)
_TOKEN: Final = re.compile(
    rb"(?P<deep>(?:\A|(?<=/))\*\*+(?:/|\Z|(?=\\/)))|(?P<star>\*+)|(?P<slash>\\?/)|(?P<any>\?)"
    rb"|\[(?P<not>[!^]?+)(?P<set>(?>\](?:-%b)?|%b)(?>(?:%b)*))\]|\\(?P<escaped>.)|(?P<plain>[^\\\[*?/]+)"
    rb"|(?P<unreadable>.)" % (_ONE, _ITEM, _ITEM),
    re.DOTALL,
)
_IN_SET: Final = re.compile(
    rb"(?P<low>\\.|[^\\])-(?P<high>%b)|\[:(?P<kind>[^\]]*):\]|\\?(?P<one>.)" % _ONE, re.DOTALL
)
_LITERAL: Final = re.compile(rb"[^\\\[*?]*")
_KEPT: Final = re.compile(rb"(?>(?:[^\\ ]++|\\.| ++(?!\Z))*)\\?", re.DOTALL)
"""A pattern without the blanks behind it."""

_KINDS: Final = dict(
    kind.split(b"=")
    for kind in rb"""
    alnum=0-9A-Za-z alpha=A-Za-z blank=\x20\t cntrl=\x01-\x1f\x7f digit=0-9 graph=!-~ lower=a-z
    print=\x20-~ punct=!-/:-@\[-`{-~ space=\x20\t\n\r upper=A-Z xdigit=0-9A-Fa-f
    """.split()
)
"""Characters of the classes that a set may name."""

_Rules = tuple[tuple[re.Pattern[bytes], bool], ...]
"""What patterns match and whether it is left out, the last first."""

_ALL: Final = ((re.compile(b""), True),)
_EVERYTHING: Final = (0, _ALL)


class IgnoreRules:
    """Which files below a root are left out. Reads each folder's patterns once. Blocks.

    Args:
        root: A real folder; patterns of the folders above it count up to the repository's.
        names: The ignore files that count.
    """

    def __init__(self, root: Path, names: Sequence[str] = _FILES) -> None:
        self._names = names
        self._top = repository_of(root) or root
        self._start = _length(self._top)
        self._chains: dict[Path, tuple[tuple[int, _Rules], ...]] = {}
        self._read = 0
        self._excluded = _rules(_read(self._top / _EXCLUDE))

    def leaves_out(self, path: Path, *, is_folder: bool) -> bool:
        """Return whether a file or folder is ignored, itself or because of a folder it is in."""
        if path == self._top:
            return False
        steps = [step for step in reversed(path.parents) if step.is_relative_to(self._top)][1:]
        is_inside = any(self.names(step, is_folder=True) for step in steps)
        return is_inside or self.names(path, is_folder=is_folder)

    def names(self, path: Path, *, is_folder: bool) -> bool:
        """Return whether a pattern names this very path; the deepest folder's word counts."""
        written = os.fsencode(path) + _FOLDER * is_folder
        if path.name == REPOSITORY or written.count(b"/", self._start) >= MAX_DEPTH:
            return True
        if _verdict(self._excluded, written[self._start :]):
            return True
        for start, rules in self._rules_of(path.parent):
            if (verdict := _verdict(rules, written[start:])) is not None:
                return verdict
        return False

    def _rules_of(self, folder: Path) -> tuple[tuple[int, _Rules], ...]:
        """Return the patterns for what is in a folder, the deepest folder's first."""
        if self._read > MAX_FILES:
            return (_EVERYTHING,)
        if folder not in self._chains:
            texts = [_read(folder / name) for name in self._names]
            self._read += sum(map(bool, texts))
            own = _rules(b"\n".join(texts))
            above = () if folder in {self._top, folder.parent} else self._rules_of(folder.parent)
            self._chains[folder] = ((_length(folder), own), *above) if own else above
        return self._chains[folder]


def _length(folder: Path) -> int:
    """Return where the path of what is in a folder goes on."""
    return len(os.fsencode(folder).rstrip(b"/")) + 1


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, MAX_BYTES).removeprefix(b"\xef\xbb\xbf")
    except (OSError, ValueError):
        return b"*" if os.path.isfile(path) else b""  # noqa: PTH113 - it raises nothing


def _verdict(rules: _Rules, path: bytes) -> bool | None:
    """Return what the last pattern says that matches a path; None where none does."""
    return next((hides for pattern, hides in rules if pattern.match(path)), None)


@lru_cache(maxsize=256)
def _rules(text: bytes) -> _Rules:
    """Read ignore files."""
    found = (rule for line in text.split(b"\n") if (rule := _rule(line)))
    rules = list(islice(found, MAX_PATTERNS + 1))
    if len(rules) > MAX_PATTERNS:
        return _ALL
    runs = groupby(enumerate(rules), lambda one: (one[0] // MAX_TOGETHER, one[1][0]))
    return tuple((_either([rule for _, rule in run]), hides) for (_, hides), run in runs)[::-1]


def _rule(line: bytes) -> tuple[bool, bool, bytes] | None:
    """Read a line: whether it hides, whether it names something in any folder, its expression."""
    kept = _KEPT.match(line.removesuffix(b"\r").partition(b"\0")[0])
    if kept is None or line.startswith(b"#"):
        return None
    written = kept[0].removeprefix(b"!")
    pattern = written.removesuffix(b"/")
    end = rb"\0?\Z" if pattern == written else rb"\0\Z"
    if len(pattern) > MAX_PATTERN:
        return _long_rule(pattern, end) if written == kept[0] else None
    try:
        expression = _expression(pattern.removeprefix(b"/"))
    except (KeyError, ValueError):  # git skips a pattern that it cannot read
        return None
    return written == kept[0], b"/" not in pattern, expression + end


def _long_rule(pattern: bytes, end: bytes) -> tuple[bool, bool, bytes]:
    """Match what begins like a pattern that is too long to be read."""
    inside = pattern.removeprefix(b"/")
    plain = _LITERAL.match(inside)
    begun = plain[0] if plain else b""
    end = end if begun == inside else _ANYTHING + end
    return True, b"/" not in pattern, re.escape(begun) + end


def _either(rules: Sequence[tuple[bool, bool, bytes]]) -> re.Pattern[bytes]:
    """Return what matches a path where one of some patterns does."""
    names = b"|".join(one for _, is_name, one in rules if is_name)
    paths = [one for _, is_name, one in rules if not is_name]
    if names:
        paths.append(rb"(?>(?:[^/\0]*/)*)(?:%b)" % names)
    return re.compile(b"|".join(paths), re.DOTALL)


def _expression(pattern: bytes) -> bytes:
    """Write a pattern as a regular expression.

    Raises:
        KeyError, ValueError: If it has an unknown class or is broken off.
    """
    literal = _LITERAL.match(pattern)
    start = literal.end() if literal else 0
    groups, chunks = [b""], [re.escape(pattern[:start])]
    for token in _TOKEN.finditer(pattern[start:]):
        match token.lastgroup:
            case "deep":
                groups[-1] += _spread(chunks, _NAME)
                is_last = token[0].endswith(b"*") and token.end() == len(pattern) - start
                groups.append(_ANYTHING if is_last else b"")
                chunks = [b""] if is_last or token[0].endswith(b"/") else [b"", b""]
            case "slash":
                groups[-1] += _spread(chunks, _NAME) + b"/"
                chunks = [b""]
            case "star":
                chunks.append(b"")
            case "any":
                chunks[-1] += rb"[^/\0]"
            case "set":
                chunks[-1] += _set(token["set"], is_negated=bool(token["not"]))
            case "escaped" | "plain" as kind:
                chunks[-1] += re.escape(token[kind])
            case _:
                raise ValueError
    groups[-1] += _spread(chunks, _NAME)
    return _spread(groups, _FOLDERS)


def _spread(parts: Sequence[bytes], gap: bytes) -> bytes:
    """Put gaps between parts, each but the last of which counts where it first fits."""
    first, *rest = parts
    inner = b"".join(b"(?>%b%b)" % (gap, part) for part in rest[:-1])
    return first + inner + b"".join(gap + part for part in rest[-1:])


def _set(written: bytes, *, is_negated: bool) -> bytes:
    """Write a set of characters as a regular expression's."""
    ranges = b""
    for item in _IN_SET.finditer(written):
        low, high, kind, one = item.groups()
        if kind is not None:
            ranges += _KINDS[kind]
        elif one is not None:
            ranges += re.escape(one)
        else:  # also where it goes down, its first character belongs to the set
            ranges += b"%b-%b" % (re.escape(low[-1:]), re.escape(max(low[-1:], high[-1:])))
    return rb"[^/\x00%b]" % ranges if is_negated else rb"(?![/\0])[%b]" % ranges
