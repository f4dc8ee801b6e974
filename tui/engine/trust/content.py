"""The content of a folder's settings: a hash to trust, and lines to compare.

The hash covers what would run and nothing else: the entries as written, the programs they mean,
those files of the folder that they name, the values of those ``.env`` variables that they use,
which variables they read of the user's, and the rules. The lines are for the eye
and are kept; secrets are masked in them, with a piece of their salted hash so that a change
shows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.definition_diff import compared_lines
from tui.engine.definitions.expansion import references_in
from tui.engine.definitions.fingerprint import digest, effective_entry
from tui.engine.logs.redaction import MASK, is_secret_name, masked_words, without_tokens
from tui.engine.settings.project import ProjectOffer, ProjectRules
from tui.engine.trust.disclosure import disclose, inherited_names, shown_file
from tui.engine.trust.warnings import spelled
from tui.model.events import ContextFile
from tui.model.frozen import dataclass
from tui.model.trust import DifferenceLine
from tui.text import sanitize_line

MAX_KEPT: Final = 64 * 1024
"""Characters of lines that are kept of one folder; beyond that only the hashes are."""

MAX_LINE: Final = 2_000
"""Characters of a line that are kept."""

_CONTENT: Final = ", content "
_MARK: Final = 8
"""Characters of a hash that stand for a value in a line."""


@dataclass(frozen=True, slots=True)
class ServerContent:
    """One server of a folder: its name, where it stands, its hash, and its lines."""

    name: str
    source: str
    transport: str
    hash: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FolderContent:
    """What a folder brings.

    Attributes:
        hash: Of all of it.
        servers: Its servers.
        rules: The hash of what it forbids.
        rule_lines: What it forbids, in words.
        forbidden: Its restrictions.
    """

    hash: str
    servers: tuple[ServerContent, ...]
    rules: str
    rule_lines: tuple[str, ...] = ()
    forbidden: ProjectRules = field(default_factory=ProjectRules)

    def lines(self) -> list[str]:
        return [line for server in self.servers for line in server.lines] + [*self.rule_lines]

    def without(self, server: str) -> object:
        """Return what tells this content from others, one server left out."""
        return {one.name: one.hash for one in self.servers if one.name != server}, self.rules

    def kept(self) -> "FolderContent":
        """Return what is stored: without lines if they exceed `MAX_KEPT`."""
        if sum(map(len, self.lines())) <= MAX_KEPT:
            return self
        bare = tuple(ServerContent(s.name, s.source, s.transport, s.hash) for s in self.servers)
        return FolderContent(self.hash, bare, self.rules, forbidden=self.forbidden)


def describe(offer: ProjectOffer, salt: bytes, folder: Path) -> FolderContent:
    """Return the content of a folder's settings. Blocks on the file system."""
    servers = tuple(_server(server, offer.variables, salt, folder) for server in offer.servers)
    forbidden = offer.rules
    rules = digest(
        {
            "allowed": None if forbidden.allowed is None else sorted(forbidden.allowed),
            "excluded": sorted(forbidden.excluded),
            "denied": [[pattern.server, pattern.tool] for pattern in forbidden.always_deny],
            "calls": forbidden.max_tool_calls,
            "result": forbidden.max_result_size,
            "idle": forbidden.idle_timeout,
        },
        salt,
    )
    said = [[one.place, one.text] for one in offer.context]
    whole = [sorted([s.name, s.hash] for s in servers), rules, *([said] if said else [])]
    lines = (*forbidden.words(), *_context_lines(offer.context, salt))
    return FolderContent(digest(whole, salt), servers, rules, lines, forbidden)


def _context_lines(files: Iterable[ContextFile], salt: bytes) -> Iterator[str]:
    for one in files:
        yield f"tells the model {one.place}{_CONTENT}{digest(one.text, salt)[:_MARK]}"


def difference(before: FolderContent, now: FolderContent) -> tuple[DifferenceLine, ...]:
    """Show what changed, line by line, with a little of what stayed around it."""
    old, new = before.lines(), now.lines()
    if before.servers and not old:
        return (DifferenceLine(" ", "The trusted content was too long to keep for comparison."),)
    lines = compared_lines(old, new)
    return tuple(
        replace(line, text=_told(line.text, old)) if line.sign == "+" else line for line in lines
    )


def _server(
    server: ServerDefinition, variables: Mapping[str, str], salt: bytes, folder: Path
) -> ServerContent:
    entry = effective_entry(server.written)
    used = {name: variables[name] for name in references_in(dict(entry)) if name in variables}
    content = {
        "name": server.id,
        "source": server.source,
        "entry": dict(entry),
        "program": server.program,
        "variables": used,
        "own": sorted(preview.own) if (preview := server.preview) is not None else [],
        "files": [[file.path, file.content] for file in server.files],
    }
    if added := inherited_names(server):
        content["inherits"] = added
    lines = tuple(_lines(server, entry, used, salt, folder))
    return ServerContent(
        server.id, server.source, server.transport.value, digest(content, salt), lines
    )


def _lines(
    server: ServerDefinition,
    entry: Mapping[str, Any],
    used: Mapping[str, str],
    salt: bytes,
    folder: Path,
) -> Iterator[str]:
    shown = disclose(server, folder)
    yield f"server {server.id} in {shown.source} ({shown.transport})"
    yield from _kept("command", [shown.command] if shown.command else [], salt)
    yield from _kept("program", [shown.program] if shown.program else [], salt)
    yield from _kept("argument", shown.args, salt)
    yield from _kept("folder", [shown.cwd] if shown.cwd else [], salt)
    yield from _kept("address", [shown.url] if shown.url else [], salt)
    for kind in ("env", "headers"):
        values = entry.get(kind)
        for name, value in values.items() if isinstance(values, Mapping) else ():
            word = "variable" if kind == "env" else "header"
            yield f"{word} {_short(name)} = {_mark(value, salt)}"
    for name, value in used.items():
        yield f".env variable {_short(name)} = {_brought(value, salt)}"
    for name, value in server.preview.defaults if server.preview is not None else ():
        yield f"default of {_short(name)} = {_brought(value, salt)}"
    for name in shown.references:
        yield f"reads your variable {_short(name)}"
    for name in shown.inherited:
        yield f"inherits your variable {_short(name)}"
    yield from _file_lines(server, salt, folder)
    rest = {key: entry[key] for key in entry if key not in _SPELLED_OUT}
    yield from (f"{key} = {_mark(value, salt)}" for key, value in rest.items())


def _file_lines(server: ServerDefinition, salt: bytes, folder: Path) -> Iterator[str]:
    for file in server.files:
        what = "program" if file.path == server.program else "file"
        name = _short(shown_file(file.path, folder))
        yield f"{what} {name}{_CONTENT}{_mark(file.content, salt)}"


_SPELLED_OUT: Final = frozenset({"command", "args", "env", "cwd", "url", "httpUrl", "headers"})


def _kept(what: str, words: Sequence[str], salt: bytes) -> Iterator[str]:
    """Write words as they are kept: masked and bounded, with a mark where something is missing."""
    flagged = False
    for word in words:
        is_flag = word.startswith("-")
        kept = MASK if flagged and not is_flag else masked_words((word,))[0]
        flagged = is_flag and "=" not in word and is_secret_name(word)
        short = _short(kept)
        yield f"{what} {short}" if short == word else f"{what} {short} {_mark(word, salt)}"


def _brought(value: str, salt: bytes) -> str:
    """Write a value that came with the folder: it is no secret, unless it has a token's shape."""
    kept = _short(without_tokens(value))
    return kept if kept == value else f"{kept} {_mark(value, salt)}"


def _told(line: str, before: Iterable[str]) -> str:
    """Mark a file whose content differs from before as changed."""
    what, sign, mark = line.rpartition(_CONTENT)
    is_known = sign and any(old.startswith(f"{what}{sign}") for old in before)
    return f"{what} has changed: content {mark}" if is_known else line


def _short(text: str) -> str:
    return sanitize_line(spelled(text) if "\n" in text else text, MAX_LINE)


def _mark(value: object, salt: bytes) -> str:
    return f"#{digest(value, salt)[:_MARK]}"
