"""Rules on arguments: which calls they allow, compared exactly, and which they deny, generously.

A rule that allows names every argument of a call and takes nothing but what it says. One that
denies takes whatever a server might read as that.
"""

import json
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice, product
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from tui.model.bounded_json import mapped
from tui.model.consent import Condition, ConditionKind, exact_text
from tui.model.frozen import Frozen
from tui.text import INVISIBLE, LATIN_ALIKE

MAX_PATH: Final = 2_000
"""Characters of a text that may be a path."""

MAX_EXPANDED: Final = 64_000
"""Characters of one whose variables are filled in."""

MAX_TEXTS: Final = 100
"""Texts in one argument that a denial looks at; one with more is denied, as is one in which those
that may be paths are longer than one may be."""

_ODD: Final = re.compile(r"[\x00-\x1f\x7f\\$\ud800-\udfff]|^[~\s]|\s$|^file:|://")
"""What a server may take for another path than the system does, or for none."""

_OF_PROCESS: Final = re.compile(
    r"/(?:proc/(?:self|thread-self|curproc|\d+)|dev/(?:fd|stdin|stdout|stderr))(?=/|$)"
)
"""Folders whose links lead elsewhere in the process of a server than in this one."""

MAX_LINKS: Final = 40
"""Links that the system follows in one path."""

_CLIMBS: Final = re.compile(r"(?:^|[/\\])\.\.(?=[/\\?#;]|$)")
_DROPPED: Final = dict.fromkeys((*range(0x20), 0x7F))
"""What is left out of an address by many who read one."""

_FILE: Final = re.compile(r"file:(?://[^/]*)?", re.IGNORECASE)
_WHOLE: Final = re.compile(r"(\d)\.0+\b")

_ALIKE_IN_ASCII: Final = str.maketrans("i1|0", "lllo")
"""Characters that many fonts draw alike; capitals are folded before."""

_UNSEEN: Final = dict.fromkeys((*range(0x21), 0x7F, *map(ord, INVISIBLE)))
"""Blanks, controls, and what draws nothing; they are left out."""

_UNSEEN_CATEGORIES: Final = frozenset({"Mn", "Me", "Cf", "Cc", "Zs", "Zl", "Zp"})


def folded(text: str) -> str:
    """Reduce a text to what it looks like: equal for names that a hurried reader mixes up.

    Compatibility forms, case, marks, blanks, invisible characters and letters of other alphabets
    that look like Latin ones are folded (after Unicode TS 39; the table is far smaller).
    """
    if not text.isascii():
        plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
        kept = (c for c in plain if unicodedata.category(c) not in _UNSEEN_CATEGORIES)
        text = "".join(kept).translate(LATIN_ALIKE)
    return text.translate(_UNSEEN).casefold().translate(_ALIKE_IN_ASCII)


class ArgumentRule(Frozen):
    """What a rule wants of the arguments of a call.

    Attributes:
        conditions: What it says of each argument; without any it is about every call.
        start: The folder that the tool's server starts in, from which relative paths lead on;
            empty for a server that is not on this machine, whose paths mean nothing here.
        opened: The opened folder.
    """

    conditions: tuple[Condition, ...]
    start: str = ""
    opened: str = ""

    def allows(self, arguments: Mapping[str, Any] | None) -> bool:
        """Tell whether a call has what the rule says, and no argument that it does not name.

        Without arguments that is asked of all calls.
        """
        if not self.conditions or arguments is None:
            return not self.conditions
        return arguments.keys() <= {condition.name for condition in self.conditions} and all(
            condition.kind is ConditionKind.ANY
            or (condition.name in arguments and self._is_met(condition, arguments[condition.name]))
            for condition in self.conditions
        )

    def denies(self, arguments: Mapping[str, Any] | None) -> bool:
        """Tell whether a call might have all that the rule says, whatever else it has.

        Without arguments that is asked of all calls.
        """
        if arguments is None:
            return not self.conditions
        given = [(folded(name), value) for name, value in arguments.items()]
        wanted = [(folded(condition.name), condition) for condition in self.conditions]
        return all(
            any(name == known and self._may_meet(condition, value) for name, value in given)
            for known, condition in wanted
        )

    def _is_met(self, condition: Condition, value: object) -> bool:
        if condition.kind is ConditionKind.IS:
            texts = [*islice(_texts(value), MAX_TEXTS + 1)]
            is_same = len(texts) <= MAX_TEXTS and canonical_value(value) == condition.value
            return is_same and all(map(self._is_clear, texts))
        if not isinstance(value, str) or leads_through_process(value, self._bases):
            return False
        ways = real_ways(value, self.start)
        if condition.kind is ConditionKind.FOLDER:
            return bool(ways) and all(_is_in(condition.value, way) for way in ways)
        if not value.startswith(condition.value) or _climbs(_decoded(value)):
            return False
        begin = _placed_beginnings(condition.value, lambda path: real_ways(path, self.start))
        is_there = bool(ways) and all(f"{way}/".startswith(begin) for way in ways)
        return is_there or not begin  # what is no path is a text and nothing else

    def _is_clear(self, text: str) -> bool:
        """Tell whether whoever reads a text as a path comes to the same place.

        That is asked if it has ``..`` or leads through the links of a process.
        """
        base = self.start or self.opened or "/"
        is_straight = not _climbs(_decoded(text)) or len(real_ways(text, base)) == 1
        return is_straight and not leads_through_process(text, self._bases)

    @property
    def _bases(self) -> set[str]:
        return {self.start, self.opened} - {""} or {"/"}

    def _may_meet(self, condition: Condition, value: object) -> bool:
        texts = [*islice(_texts(value), MAX_TEXTS + 1)]
        is_folder = condition.kind is ConditionKind.FOLDER
        size = sum(len(text) for text in texts if is_folder or len(text) <= MAX_PATH)
        if condition.kind is ConditionKind.ANY or len(texts) > MAX_TEXTS or size > MAX_PATH:
            return True
        if any(leads_through_process(text, self._bases) for text in texts):
            return True
        wanted, looks = condition.value, self._looks(value)
        if condition.kind is ConditionKind.IS:
            return not looks.isdisjoint(self._looks(json.loads(wanted)))
        if is_folder:
            return any(_is_in(folder, look) for folder in self._looks(wanted) for look in looks)
        begin = tuple(map(folded, (wanted, *_placed_beginnings(wanted, self._forms))))
        return any(look.startswith(begin) for look in looks)

    def _looks(self, value: object) -> set[str]:
        """Return all that a value, or a text in it, looks like, also as a path, links followed."""
        looks = {folded(form) for text in _texts(value) for form in self._forms(text)}
        return looks | {folded(canonical_value(value))} if isinstance(value, dict | list) else looks

    def _forms(self, text: str) -> Iterator[str]:
        return chain([text], path_forms(text, {self.start, self.opened} - {""}))


def path_forms(text: str, bases: Iterable[str]) -> Iterator[str]:
    """Yield all that a text may mean as a path to whoever reads one, links followed and not.

    Args:
        text: The text.
        bases: The folders from which a relative path may lead on.
    """
    for short, followed in _readings(text, bases):
        yield short
        yield from map(real_path, followed)


def real_path(path: str) -> str:
    """Return where a path leads, links followed; the same if it leads through a process."""
    return path if _is_of_process(path) else os.path.realpath(path)


def leads_through_process(text: str, bases: Iterable[str]) -> bool:
    """Tell whether a path may go through links that each process has of its own.

    They lead elsewhere for a server than for gemdeck: ``/proc/self/cwd``, ``/dev/fd/3``, a link
    in a folder that leads there.
    """
    return any(any(map(_is_of_process, followed)) for _, followed in _readings(text, bases))


def _readings(text: str, bases: Iterable[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield what a text may mean as a path: without its ``..``, and those whose links count."""
    plain = unquote(_FILE.sub("", text.strip(), count=1)).replace("\\", "/").partition("\0")[0]
    may_be_path = len(text) <= MAX_PATH
    for one in {text, plain, _decoded(text) if may_be_path else plain}:
        path = one.encode(errors="replace").decode().replace("\0", "")
        filled = os.path.expandvars(path)[:MAX_EXPANDED] if may_be_path else path
        for base, name in product(bases, {path, str(_from_home(filled) or filled)}):
            whole = os.path.join(base, name)  # noqa: PTH118 - it is fast
            short, longest = os.path.normpath(whole), MAX_PATH + len(base)
            yield short, {one for one in {whole, short} if len(one) <= longest}


def _is_of_process(path: str) -> bool:
    here, links, names = "/", 0, path.split("/")[::-1]
    while names:
        if (name := names.pop()) in {"", "."}:
            continue
        here = os.path.dirname(here) if name == ".." else os.path.join(here, name)  # noqa: PTH118, PTH120
        if _OF_PROCESS.match(here) or links > MAX_LINKS:
            return True
        try:
            target = os.readlink(here)  # noqa: PTH115 - it is fast
        except (OSError, ValueError):
            continue
        links += 1
        here = "/" if target.startswith("/") else os.path.dirname(here)  # noqa: PTH120
        names += target.split("/")[::-1]
    return False


def canonical_value(value: object) -> str:
    """Write a value as the JSON text that conditions compare.

    An absolute path, also in a list or an object, is written with all links and ``..`` resolved,
    so that another way to the same file is the same and a link that was bent elsewhere is not.
    """
    return exact_text(mapped(value, str, _resolved))


def _resolved(text: str) -> str:
    is_path = text[:1] == "/" and len(text) <= MAX_PATH and not _ODD.search(text)
    return real_path(text) if is_path else text


def real_ways(path: str, start: str) -> frozenset[str]:
    """Return where a path leads, as the system and as a server may read it; none if that is odd.

    A server may drop ``..`` with what stands before it, or follow a link that stands there first,
    and may decode the path once more.
    """
    if not start or not 0 < len(path) <= MAX_PATH or _ODD.search(path):
        return frozenset()
    if _climbs(decoded := _decoded(path)) != _climbs(path) or _ODD.search(decoded):
        return frozenset()
    whole = {os.path.join(start, one) for one in (path, decoded)}  # noqa: PTH118 - it is fast
    whole |= {*map(os.path.normpath, whole)}
    if any(map(_is_of_process, whole)):
        return frozenset()
    return frozenset(map(os.path.realpath, whole))


def _placed_beginnings(text: str, ways: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
    """Return the beginning of a path, with its folder where it leads to; none if it climbs."""
    folder, slash, rest = text.rpartition("/")
    places = ways(folder + slash) if slash and not _climbs(text) else ()
    return tuple(os.path.join(way, rest) for way in places)  # noqa: PTH118


def _decoded(text: str) -> str:
    """Return what is left of a text that was decoded once too often, and in plain characters."""
    return unicodedata.normalize("NFKC", unquote(unquote(text))).translate(_DROPPED)


def _climbs(text: str) -> int:
    return len(_CLIMBS.findall(text))


def placed(condition: Condition, opened: str) -> Condition:
    """Make the folder of a rule in the settings absolute; links below home are not followed."""
    if condition.kind is not ConditionKind.FOLDER:
        return condition
    path = _from_home(condition.value) or Path(opened or "/", condition.value)
    return replace(condition, value=os.path.normpath(path))


def _from_home(path: str) -> Path | None:
    tilde, _, rest = path.partition("/")
    home = Path.home()  # others' homes are not looked up: that may take a network
    return Path(os.path.realpath(home), rest) if tilde in {"~", f"~{home.name}"} else None


def _is_in(folder: str, path: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _texts(value: object) -> Iterator[str]:
    """Yield a value as a text, or those that it holds."""
    match value:
        case dict():
            yield from chain.from_iterable(map(_texts, chain(value, value.values())))
        case list():
            yield from chain.from_iterable(map(_texts, value))
        case str():
            yield value
        case _:
            yield _WHOLE.sub(r"\1", canonical_value(value))
