"""What a server in a sandbox reports that it may not use, and the entry that would allow it.

What a server writes is its claim: it may name any path. So what is offered is little, it is shown
whole, and only the user adds it.
"""

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from tui.engine.definitions.definition import Sandbox, ServerDefinition
from tui.engine.definitions.programs import guarded_folders
from tui.engine.files.paths import shown_path
from tui.engine.mcp.context import ClientContext
from tui.model.frozen import Frozen
from tui.model.servers import RefusedAccess
from tui.text import is_shown_whole

MAX_READ: Final = 20_000
"""Characters of a text, its last ones, in which a claim is looked for."""

MAX_PATH: Final = 400
"""Longest path that is offered, in characters."""

NEAR: Final = 500
"""Characters before and behind the words of an error in which its path is looked for."""

MAX_SIGNS: Final = 20
"""Errors in a text whose paths are looked for."""

MIN_PARTS: Final = 3
"""Parts of a path that is offered: nothing that stands right below ``/``."""

_UNSAFE: Final = frozenset("$\\'\"`")
"""What an entry or a shell reads otherwise."""

_SIGNS: Final = re.compile(
    r"(?P<readonly>\bEROFS\b|read-only file ?system|os error 30\b)"
    r"|(?P<denied>\b(?:EACCES|EPERM)\b|(?:permission|access is) denied|operation not permitted)"
    r"|(?P<missing>\bENOENT\b|no such file or directory)"
    r"|(?P<network>\b(?:ENETUNREACH|EAI_AGAIN|ENOTFOUND|EHOSTUNREACH)\b|network is unreachable"
    r"|(?:temporary failure in|failure in) name resolution|name or service not known"
    r"|no such host\b|could not resolve host|failed to lookup address|dns error)",
    re.IGNORECASE,
)
"""The words of an error, as node, Python, Go, Rust and shells write them."""

_QUOTED: Final = re.compile(
    "[\"'`\u2018\u201c](/[^\"'`\u2018\u2019\u201c\u201d\\\\\n]{0,4096})[\"'`\u2019\u201d\\\\]"
)
_BARE: Final = re.compile(r"(?:^|(?<=\s))/[^\n]*")
_WORD: Final = re.compile(r"(?<=\s)/[^\s,;]+")
_WRITES: Final = re.compile(
    r"\b(?:mkdir|rmdir|unlink|rename|touch|chmod|copyfile|symlink|truncate|utime"
    r"|creat|writ|remov|delet|sav)",
    re.IGNORECASE,
)
"""What only one does who wants to write, at the beginning of a word."""

_SYSTEM: Final = (
    *map(Path, ("/bin", "/boot", "/dev", "/etc", "/gnu", "/lib", "/lib64", "/nix", "/opt")),
    *map(Path, ("/proc", "/run", "/sbin", "/snap", "/sys", "/usr")),
)
_PRIVATE: Final = (
    *(".aws", ".azure", ".docker", ".kube", ".netrc", ".pgpass", ".pki", ".git-credentials"),
    *(".config/gcloud", ".config/gh", ".config/op", ".mozilla", ".config/google-chrome"),
    *(".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".config/fish"),
    *(".config/autostart", ".config/systemd", ".local/bin"),
)
"""Keys below the home folder, and what the user's programs run: never offered, as is all that no
sandbox may get.
"""


class Claim(Frozen):
    """What a server reports.

    Attributes:
        kind: The group of `_SIGNS`.
        path: The path; empty for the network.
        writes: Whether it wanted to write there, as far as its words say.
    """

    kind: str
    path: str = ""
    writes: bool = False


def claims_in(text: str) -> Iterator[Claim]:
    """Find what a text reports as refused, in linear time."""
    text = text[-MAX_READ:]
    for sign in islice(_SIGNS.finditer(text), MAX_SIGNS):
        kind = sign.lastgroup or ""
        if kind == "network":
            yield Claim(kind)
            continue
        start = max(0, sign.start() - NEAR)
        before, _, line = text[start : sign.start()].rpartition("\n")
        behind = text[sign.end() : sign.end() + NEAR].partition("\n")[0]
        if path := next(_paths(before, line, behind), ""):
            writes = kind == "readonly" or _WRITES.search(line + behind) is not None
            yield Claim(kind, path, writes)


def _paths(before: str, line: str, behind: str) -> Iterator[str]:
    """Give the paths around the words of an error, the most likely first."""
    yield from _QUOTED.findall(behind)
    yield from reversed(_QUOTED.findall(line))
    yield from _BARE.findall(line.rstrip(" :([").rpartition(": ")[2])  # Go, shells, Java
    yield from _WORD.findall(behind)  # Ruby
    yield from reversed(_QUOTED.findall(before))  # Rust: the cause stands in a line of its own


def refusal(
    claims: Iterable[Claim],
    definition: ServerDefinition,
    others: Iterable[ServerDefinition],
    context: ClientContext,
) -> RefusedAccess | None:
    """Return the first of a server's claims that its sandbox does not allow, or None. Blocks.

    Args:
        claims: What the server reports.
        definition: The server; it has a sandbox.
        others: All servers; what they write is not offered.
        context: Knows the opened folders, which trust opens and nothing else.
    """
    found = (_refusal(one, definition, others, context) for one in claims)
    return next(filter(None, found), None)


def _refusal(
    claim: Claim,
    definition: ServerDefinition,
    others: Iterable[ServerDefinition],
    context: ClientContext,
) -> RefusedAccess | None:
    box, path, home = definition.launch.sandbox or Sandbox(), Path(claim.path), Path.home()
    if not claim.path:
        return None if box.network else RefusedAccess("network")
    is_missing, is_there = claim.kind == "missing", os.path.lexists(path)
    path = path if is_there else path.parent  # there it would be made
    if ".." in path.parts or not os.path.lexists(path):
        return None
    writes, opened = claim.writes or not is_there, guarded_folders(context.workspaces, home)
    given = [*box.write, *(() if definition.is_outside or claim.kind == "readonly" else opened)]
    given += () if writes and not is_missing else (*box.read, *_SYSTEM)
    if any(map(path.is_relative_to, given)):
        return None
    launches = [one.launch for one in others if one.id != definition.id]
    theirs = [path for one in launches if one.sandbox is not None for path in one.sandbox.write]
    never = (*_SYSTEM, *opened, *(home / name for name in _PRIVATE), *theirs)
    never += tuple(one.cwd for one in launches if one.cwd is not None)
    real = Path(os.path.realpath(path))
    is_kept = any(_is_kept(one, never) or context.sandboxes.refusal(one) for one in (path, real))
    if is_kept and is_missing and not is_there:
        return None  # it is missing outside as well
    is_safe = is_shown_whole(str(path), MAX_PATH) and _UNSAFE.isdisjoint(str(path))
    return RefusedAccess(
        "write" if writes else "read",
        shown_path(path, home),
        shown_path(real, home) if real != path else "",
        is_offered=is_safe and not is_kept,
    )


def _is_kept(path: Path, never: Iterable[Path]) -> bool:
    """Return whether a path is too wide, is in a place that is never offered, or has one in it."""
    is_wide = len(path.parts) < MIN_PARTS
    return is_wide or any(path.is_relative_to(one) or one.is_relative_to(path) for one in never)
