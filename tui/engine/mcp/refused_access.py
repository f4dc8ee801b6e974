"""What a server in a sandbox reports that it may not use, and the entry that would allow it.

What a server writes is its claim: it may name any path. So what is offered is little, it is shown
whole, and only the user adds it.
"""

import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from tui.engine.definitions.bubblewrap import places, sandbox_table
from tui.engine.definitions.definition import Sandbox, ServerDefinition
from tui.engine.definitions.programs import guarded_folders
from tui.engine.files.paths import shown_path
from tui.engine.mcp.context import ClientContext
from tui.model.servers import RefusedAccess
from tui.text import is_shown_whole

MAX_READ: Final = 20_000
"""Characters of a text, its last ones, in which claims are looked for."""

MAX_SIGNS: Final = 20
"""Errors in a text whose paths are looked for."""

NEAR: Final = 500
"""Characters before and behind the words of an error in which its path is looked for."""

MAX_PATH: Final = 400
"""Longest path that is offered, in characters."""

MIN_PARTS: Final = 3
"""Parts of a path that is offered: nothing that is right below ``/``."""

_UNSAFE: Final = frozenset("$\\'\"`")
"""What an entry or a shell reads otherwise."""

_QUOTED: Final = re.compile(
    "[\"'`\u2018\u201c](/[^\"'`\u2018\u2019\u201c\u201d\\\\\n]*)[\"'`\u2019\u201d\\\\]"
)
_BARE: Final = re.compile(r"(?:^|(?<=\s))/[^\n]*")
_WORD: Final = re.compile(r"(?<=\s)/[^\s,;]+")
_WRITES: Final = re.compile(
    r"\b(?:mkdir|rmdir|unlink|rename|touch|chmod|copyfile|symlink|truncate|creat|writ|remov|delet)",
    re.IGNORECASE,
)
"""How verbs begin of those who want to write."""


class Claim(NamedTuple):
    """What a server reports: a kind of sign, a path, and whether it wanted to write there."""

    kind: str
    path: str = ""
    writes: bool = False


@cache
def _signs() -> re.Pattern[str]:
    """Return what finds the words of errors, each kind as a group of its name."""
    kinds = sandbox_table()["signs"].items()
    groups = (f"(?P<{kind}>{'|'.join(signs)})" for kind, signs in kinds)
    return re.compile("|".join(groups), re.IGNORECASE)


def claims_in(text: str) -> Iterator[Claim]:
    """Find what a text reports as refused, in linear time."""
    text = text[-MAX_READ:]
    for sign in islice(_signs().finditer(text), MAX_SIGNS):
        kind = sign.lastgroup or ""
        before, _, line = text[max(0, sign.start() - NEAR) : sign.start()].rpartition("\n")
        behind = text[sign.end() : sign.end() + NEAR].partition("\n")[0]
        if kind == "network":
            yield Claim(kind)
        elif path := next(_paths(before, line, behind), ""):
            yield Claim(kind, path, kind == "readonly" or bool(_WRITES.search(line + behind)))


def _paths(before: str, line: str, behind: str) -> Iterator[str]:
    """Give the paths around the words of an error, the most likely first."""
    yield from _QUOTED.findall(behind)
    yield from reversed(_QUOTED.findall(line))
    yield from _BARE.findall(line.rstrip(" :([").rpartition(": ")[2])  # Go, shells, Java
    yield from _WORD.findall(behind)  # Ruby
    yield from reversed(_QUOTED.findall(before))  # Rust: the cause stands in a line of its own


def refused_access(
    claims: Iterable[Claim],
    definition: ServerDefinition,
    others: Iterable[ServerDefinition],
    context: ClientContext,
) -> RefusedAccess | None:
    """Return the first claim of a server that its sandbox does not allow, or None. Blocks.

    Paths are those to which links lead. What is not there would be made in its folder.

    Args:
        claims: What the server reports.
        definition: The server; it has a sandbox.
        others: All servers; their folders are not offered.
        context: Knows the opened folders, which only trust opens, and what no sandbox may get.
    """
    box, home = definition.launch.sandbox or Sandbox(), Path(os.path.realpath(Path.home()))
    launches = [one.launch for one in others if one.id != definition.id]
    theirs = [one.cwd for one in launches if one.cwd is not None]
    theirs += [path for one in launches if one.sandbox is not None for path in one.sandbox.write]
    opened, system = guarded_folders(context.workspaces, home), places("core", home)
    never = (*system, *opened, *places("unoffered", home), *map(_real, theirs))
    for kind, claimed, is_write in claims:
        path, is_missing = _real(claimed), kind == "missing"
        if not claimed and not box.network:
            return RefusedAccess(kind)
        is_there = os.path.lexists(path)
        path, writes = path if is_there else path.parent, is_write or not is_there
        given = [*map(_real, box.write)]
        given += () if definition.is_outside or kind == "readonly" else opened
        given += (*map(_real, box.read), *system) if is_missing or not writes else ()
        if not claimed or not os.path.lexists(path) or any(map(path.is_relative_to, given)):
            continue
        is_near = any(path.is_relative_to(one) or one.is_relative_to(path) for one in never)
        is_kept = is_near or len(path.parts) < MIN_PARTS or context.sandboxes.refusal(path)
        if is_kept and is_missing and not is_there:
            continue  # it is missing outside as well
        is_safe = is_shown_whole(str(path), MAX_PATH) and _UNSAFE.isdisjoint(str(path))
        key, shown = "write" if writes else "read", shown_path(path, home)
        return RefusedAccess(key, shown, is_offered=is_safe and not is_kept)
    return None


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))
