"""What servers would run or contact: as a question shows it, as a hash, and as lines to compare.

What the folder itself chooses, by its ``.env`` or by defaults, is filled in where it is shown, and
the text of the file stands beside it. What the user's variables hold appears nowhere, but for paths
in warnings: references to them stay. Of the rest only secret values of variables are masked: a mask
would hide what runs.

The hash covers what would run and nothing else: the entries as written, the programs they mean,
the values of those ``.env`` variables that they use, which variables they read of the user's, the
rules, and what the model is told. The lines are for the eye and are kept; secrets are masked in
them, with a piece of their salted hash so that a change shows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

from tui.engine.definitions.definition import Preview, ServerDefinition
from tui.engine.definitions.definition_diff import compared_lines
from tui.engine.definitions.expansion import references_in
from tui.engine.definitions.fingerprint import digest, effective_entry
from tui.engine.logs.redaction import (
    MASK,
    MAX_SHOWN,
    is_secret_name,
    known_secrets,
    masked_text,
    masked_words,
    without_tokens,
)
from tui.engine.settings.project import ProjectOffer, ProjectRules, written_rule
from tui.engine.trust.warnings import (
    address_cautions,
    command_cautions,
    program_cautions,
    sign_in_cautions,
    variable_cautions,
)
from tui.model.bounded_json import as_object
from tui.model.events import ContextFile
from tui.model.frozen import Frozen
from tui.model.input.arguments import spelled
from tui.model.servers import Origin, SandboxView, Transport
from tui.model.trust import NO_SANDBOX, Boxes, DifferenceLine, Disclosure
from tui.text import sanitize_line

_SHOWN_KEYS: Final = ("command", "args", "env", "cwd", "url", "httpUrl", "headers", "oauth")

MAX_KEPT: Final = 64 * 1024
"""Characters of lines that are kept of one folder; beyond that only the hashes are."""

MAX_LINE: Final = 2_000
"""Characters of a line that are kept."""

_CONTENT: Final = ", content "
_MARK: Final = 8
"""Characters of a hash that stand for a value in a line."""


def disclose(
    definition: ServerDefinition,
    folder: Path | None = None,
    change: str = "",
    *,
    can_box: bool = True,
) -> Disclosure:
    """Return everything that a server would run or contact. Blocks on the file system.

    Args:
        definition: The server.
        folder: The opened folder, where it brings the server or could hold its program.
        change: ``new``, ``changed`` or ``gone``, as `Disclosure.change`.
        can_box: Whether there can be a sandbox.
    """
    entry = definition.entry
    preview = entry.preview or Preview(entry.written, entry.written, {}, {})
    shown, own = preview.shown, preview.own
    command, args, address = _target(shown)
    env, headers = _names(shown.get("env")), _names(shown.get("headers"))
    written = definition.entry.written
    named = references_in({key: written[key] for key in _SHOWN_KEYS if key in written})
    references = [name for name in named if name in own]
    return Disclosure(
        server=definition.id,
        source=definition.entry.source,
        transport=definition.transport.value,
        command=spelled(command) if command else "",
        program=spelled(definition.launch.program) if definition.launch.program else "",
        args=tuple(map(spelled, args)) if command else (),
        cwd=spelled(_text(shown.get("cwd"))) if shown.get("cwd") else "",
        env=tuple(map(spelled, env)),
        references=tuple(map(spelled, references)),
        url=spelled(address) if address else "",
        headers=tuple(map(spelled, headers)),
        warnings=tuple(_cautions(definition, preview, references, folder)),
        change=change,
        inherited=tuple(map(spelled, inherited_names(definition))),
        written=tuple(_as_written(written, shown)),
        env_values=tuple(_values(shown.get("env"))),
        sandbox=_sandbox(definition, shown, can_box=can_box),
    )


def _sandbox(definition: ServerDefinition, shown: Mapping[str, object], *, can_box: bool) -> str:
    """Say what a program gets in its sandbox."""
    if definition.transport is not Transport.STDIO:
        return ""
    if definition.entry.origin is Origin.PROJECT:
        definition = definition.boxed(Boxes.IF_POSSIBLE, can_box=can_box)
    given = as_object(shown.get("sandbox"))
    read, write = (tuple(map(spelled, _texts(given.get(key)))) for key in ("read", "write"))
    box = definition.launch.sandbox
    return SandboxView(read, write, box.network).words if box is not None else NO_SANDBOX


def inherited_names(definition: ServerDefinition) -> list[str]:
    """Name the variables that the user's list adds to what a project's server inherits."""
    adds = definition.entry.origin is Origin.PROJECT and definition.transport is Transport.STDIO
    return definition.launch.inheritance.added() if adds else []


def _values(variables: object) -> Iterator[str]:
    """Return variables with their values, those masked that are secret by name or format."""
    for name, value in variables.items() if isinstance(variables, Mapping) else ():
        text = _text(value)
        [kept] = [MASK] if is_secret_name(str(name)) else masked_words((text,))
        more = "…" if len(text) > MAX_SHOWN else ""
        yield f"{spelled(str(name))} = {spelled(kept)}{more}"


def _cautions(
    definition: ServerDefinition, preview: Preview, references: Iterable[str], folder: Path | None
) -> Iterator[str]:
    """Return warnings about what would run, with the user's variables filled in.

    Their values are masked: a warning may quote an argument that contains one. Paths are not,
    such as ``$HOME`` in a mount: they say what can be reached.
    """
    masked = [v for k, v in preview.own.items() if is_secret_name(k) or not v.startswith("/")]
    own = known_secrets([*masked, *map(spelled, masked)])
    of_entry = entry_cautions(preview.whole, references)
    yield from (masked_text(caution, own) for caution in of_entry)
    yield from program_cautions(definition.launch.program, folder)


def entry_cautions(entry: Mapping[str, object], references: Iterable[str]) -> Iterator[str]:
    """Return warnings about an entry alone, and about the user's variables that it reads."""
    command, args, address = _target(entry)
    yield from command_cautions(command, args) if command else ()
    yield from sign_in_cautions(entry.get("oauth"))
    yield from variable_cautions(_names(entry.get("env")), references)
    yield from address_cautions(address) if address else ()


def _as_written(written: Mapping[str, object], shown: Mapping[str, object]) -> Iterator[str]:
    """Return the parts of an entry that have something filled in, as written in the file."""
    for key in ("command", "cwd", "httpUrl", "url"):
        if written.get(key) != shown.get(key):
            yield f"{key} {spelled(_text(written.get(key)))}"
    both = zip(_texts(written.get("args")), _texts(shown.get("args")), strict=False)
    for number, (before, after) in enumerate(both, 1):
        if before != after:
            yield f"argument {number} {spelled(before)}"


def _target(entry: Mapping[str, object]) -> tuple[str, tuple[str, ...], str]:
    """Return the program of an entry, with its arguments, and its address.

    Beside an address that is the program that prints headers for it.
    """
    if address := _text(entry.get("httpUrl")) or _text(entry.get("url")):
        words = _texts(entry.get("headersCommand"))
        return words[0] if words else "", words[1:], address
    return _text(entry.get("command")), _texts(entry.get("args")), address


def _text(value: object) -> str:
    """Read a value as the settings do: a number or boolean is its text."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
    return ""


def _texts(value: object) -> tuple[str, ...]:
    """Read a list; one string is a list of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(map(_text, value)) if isinstance(value, Iterable) else ()


def _names(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, Mapping) else ()


class ServerContent(Frozen):
    """One server of a folder: its name, where it stands, its hash, and its lines."""

    name: str
    source: str
    transport: str
    hash: str
    lines: tuple[str, ...] = ()


class ContextContent(Frozen):
    """A file that goes to the model: where it lies, its hash, and its lines."""

    place: str
    hash: str
    lines: tuple[str, ...] = ()

    def short(self) -> "ContextContent":
        return replace(self, lines=self.lines[:1])


class FolderContent(Frozen):
    """What a folder brings.

    Attributes:
        hash: Of all of it.
        servers: Its servers.
        rules: The hash of what it forbids.
        rule_lines: What it forbids, in words.
        forbidden: Its restrictions.
        context: What it tells the model.
    """

    hash: str
    servers: tuple[ServerContent, ...]
    rules: str
    rule_lines: tuple[str, ...] = ()
    forbidden: ProjectRules = field(default_factory=ProjectRules)
    context: tuple[ContextContent, ...] = ()

    def parts(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """Return the lines of each server, those of the rules, and those of each file."""
        servers = {("server", server.name): server.lines for server in self.servers}
        context = {("file", one.place): one.lines for one in self.context}
        return {**servers, ("rules", ""): self.rule_lines, **context}

    def without(self, server: str) -> object:
        """Return what tells this content from others, one server left out."""
        others = {one.name: one.hash for one in self.servers if one.name != server}
        return others, self.rules, {one.place: one.hash for one in self.context}

    def kept(self) -> "FolderContent":
        """Return what is stored: without lines if they exceed `MAX_KEPT`, files' first."""
        for now in (self, replace(self, context=tuple(one.short() for one in self.context))):
            if sum(len(line) for lines in now.parts().values() for line in lines) <= MAX_KEPT:
                return now
        return replace(
            now, servers=tuple(replace(one, lines=()) for one in self.servers), rule_lines=()
        )


def describe(offer: ProjectOffer, salt: bytes, folder: Path) -> FolderContent:
    """Return the content of a folder's settings. Blocks on the file system."""
    servers = tuple(_server(server, offer.variables, salt, folder) for server in offer.servers)
    forbidden = offer.rules
    rules = digest(
        {
            "allowed": None if forbidden.allowed is None else sorted(forbidden.allowed),
            "excluded": sorted(forbidden.excluded),
            "denied": list(map(written_rule, forbidden.always_deny)),
            "calls": forbidden.max_tool_calls,
            "result": forbidden.max_result_size,
            "idle": forbidden.idle_timeout,
        },
        salt,
    )
    said = [[one.place, one.text] for one in offer.context]
    whole = [sorted([s.name, s.hash] for s in servers), rules, *([said] if said else [])]
    context = tuple(_context(one, salt) for one in offer.context)
    return FolderContent(digest(whole, salt), servers, rules, forbidden.words(), forbidden, context)


def _context(file: ContextFile, salt: bytes) -> ContextContent:
    whole = digest([file.place, file.text], salt)
    lines = map(_short, file.text.split("\n"))
    head = f"tells the model {file.place}{_CONTENT}#{whole[:_MARK]}"
    return ContextContent(file.place, whole, (head, *lines))


def difference(before: FolderContent, now: FolderContent) -> tuple[DifferenceLine, ...]:
    """Show what changed, line by line, with a little of what stayed around it."""
    if before.servers and not any(before.parts().values()):
        return (DifferenceLine(" ", "The trusted content was too long to keep for comparison."),)
    was, is_now = before.parts(), now.parts()
    lines: list[DifferenceLine] = []
    for name in {**was, **is_now}:
        old, new = was.get(name, ()), is_now.get(name, ())
        if old != new:
            same = int(old[:1] == new[:1])  # its first line says which server it is
            lines += (DifferenceLine(" ", line) for line in old[:same])
            compared = compared_lines([*old[same:]], [*new[same:]])
            lines += (
                replace(line, text=_told(line.text, old)) if line.sign == "+" else line
                for line in compared
            )
    return tuple(lines)


def _server(
    server: ServerDefinition, variables: Mapping[str, str], salt: bytes, folder: Path
) -> ServerContent:
    entry = effective_entry(server.entry.written)
    used = {name: variables[name] for name in references_in(dict(entry)) if name in variables}
    content = {
        "name": server.id,
        "source": server.entry.source,
        "entry": dict(entry),
        "program": server.launch.program,
        "variables": used,
        "own": sorted(preview.own) if (preview := server.entry.preview) is not None else [],
        "files": [],  # as it was while these were hashed, so that a yes goes on counting
    }
    if added := inherited_names(server):
        content["inherits"] = added
    lines = tuple(_lines(server, entry, used, salt, folder))
    content_hash = digest(content, salt)
    source, transport = server.entry.source, server.transport.value
    return ServerContent(server.id, source, transport, content_hash, lines)


def _lines(
    server: ServerDefinition,
    entry: Mapping[str, Any],
    used: Mapping[str, str],
    salt: bytes,
    folder: Path,
) -> Iterator[str]:
    shown = disclose(server, folder)
    yield f"server {server.id} in {shown.source} ({shown.transport})"
    yield from _kept("command", [shown.command], salt)
    yield from _kept("program", [shown.program], salt)
    yield from _kept("argument", shown.args, salt)
    yield from _kept("folder", [shown.cwd], salt)
    yield from _kept("address", [shown.url], salt)
    for kind in ("env", "headers"):
        values = entry.get(kind)
        for name, value in values.items() if isinstance(values, Mapping) else ():
            word = "variable" if kind == "env" else "header"
            yield f"{word} {_short(name)} = {_mark(value, salt)}"
    yield from (f".env variable {_short(n)} = {_brought(v, salt)}" for n, v in used.items())
    for name, value in server.entry.preview.defaults if server.entry.preview is not None else ():
        yield f"default of {_short(name)} = {_brought(value, salt)}"
    yield from (f"reads your variable {_short(name)}" for name in shown.references)
    yield from (f"inherits your variable {_short(name)}" for name in shown.inherited)
    if "sandbox" in entry:
        yield f"sandbox {_short(shown.sandbox)}"
    yield from (f"{key} = {_mark(entry[key], salt)}" for key in entry if key not in _SPELLED_OUT)


_SPELLED_OUT: Final = frozenset({*_SHOWN_KEYS, "sandbox"} - {"oauth"})


def _kept(what: str, words: Sequence[str], salt: bytes) -> Iterator[str]:
    """Write words as they are kept: masked and bounded, with a mark where something is missing."""
    given = [word for word in words if word]
    for before, word in zip(("", *given), given, strict=False):
        short = _short(masked_words((before[:99], word))[-1])
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
