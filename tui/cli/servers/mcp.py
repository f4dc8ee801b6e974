"""``gemdeck mcp``: look at servers and use them, without a screen and without a model."""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import click

from tui.cli.command import (
    CommandError,
    CommandOutput,
    check_known,
    no_such,
    prints,
    prints_json,
    shown,
)
from tui.cli.output import ExitCode, fields, say, table, write_out
from tui.cli.secret import keyring_option, secret_store
from tui.cli.servers.questions import using
from tui.cli.servers.serve import serve
from tui.cli.servers.server_edits import (
    SCOPES,
    ServerLast,
    as_usage,
    confirm_change,
    edits_of,
    own_edits,
    scope_option,
)
from tui.cli.servers.server_session import ServerSession, StartOptions, serving, starts_servers
from tui.cli.servers.server_words import (
    advised,
    log_text,
    say_outside,
    server_details,
    server_row,
    server_value,
    tool_row,
)
from tui.cli.servers.sign_in import auth, logout
from tui.cli.settings import load, server_argument, server_names
from tui.cli.shared_options import own_option, trust_option
from tui.engine.background import in_daemon_thread
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.programs import FETCHERS
from tui.engine.files.paths import usable_state_dir
from tui.engine.files.saved import joined_contents
from tui.engine.keys.secret_store import without_literals
from tui.engine.mcp.catalog.marks import marks_of
from tui.engine.mcp.catalog.offered_tool import TextPart, ToolCallError
from tui.engine.mcp.manager import ENABLEMENT_FILE, Enablement
from tui.engine.mcp.schema.to_gemini import typed_value
from tui.engine.mcp.wire.recording import Recording
from tui.engine.mcp.wire.trace import read_trace
from tui.engine.server_setup.server_trials import PATIENCE
from tui.engine.settings.edits import NoSuchServerError, servers_in
from tui.engine.settings.typed_entries import check_entry, named_values, server_entry
from tui.model.bounded_json import writable
from tui.model.catalog import PromptView
from tui.model.servers import USABLE, ServerId, ServerStatus, Transport
from tui.text import counted, sanitize

_WAITING: Final = (ServerStatus.UNTRUSTED, ServerStatus.DISABLED)
"""The server was written as asked, and is not to be started."""

_LABELS: Final = {"capabilities": "server can", "announced": "gemdeck can", "environment": "passed"}
"""What the page of a server calls these members of its JSON."""


@click.group(epilog="Exit codes: gemdeck help commands")
def mcp() -> None:
    """Inspect the servers in your settings and use what they offer.

    No key is needed. Results go to standard output, messages to stderr.
    """


mcp.add_command(auth)
mcp.add_command(logout)
mcp.add_command(serve)


@mcp.command("list", epilog="Example: gemdeck mcp list --json")
@prints_json
@own_option
@starts_servers
async def list_servers(start: StartOptions) -> CommandOutput:
    """Start the servers, except lazy ones, and list whether each is ready."""
    async with serving(start, None) as session:
        say_outside(session.views)
        shared = session.borrowing.shared
        found = [server_value(one) | {"shared": shared.get(one.id, False)} for one in session.views]
        words = (one["reason"] or "in the open gemdeck" * one["shared"] for one in found)
        rows = [*map(server_row, session.views, words)]
        fine = USABLE | {ServerStatus.DISABLED}
        code = ExitCode.OK if all(v.status in fine for v in session.views) else ExitCode.ERROR
        value = {"servers": found, "warnings": session.warnings}
        lines = zip(table(rows).split("\n"), found, strict=False)
        text = "\n".join("\n    ".join((line, *one["last_output"])) for line, one in lines)
        return CommandOutput(value, text or "No servers are configured.", code)


@mcp.command(epilog="Example: gemdeck mcp show files")
@server_argument
@prints_json
@starts_servers
async def show(server: str, start: StartOptions) -> CommandOutput:
    """Show how a server is configured, how it is doing, and what it offers."""
    return await _shown(server, start)


async def _shown(server: str, start: StartOptions) -> CommandOutput:
    async with serving(start, [server]) as session:
        view = next(view for view in session.views if view.id == server)
        usage = session.engine.servers.usage(view.id)
        context = session.engine.models.context_part(view.id)
        value = server_value(view) | server_details(view, usage, context, session.log(view.id))
        code = ExitCode.OK if view.status is ServerStatus.READY else ExitCode.ERROR
        listed = session.engine.servers.registry.listed(view.id)
        kinds = ("tools", "prompts", "resources", "templates", "skills")
        definitions = {kind: writable(getattr(listed, kind)) for kind in kinds}
        labels = _LABELS | {"target": "command" if view.transport is Transport.STDIO else "address"}
        box = view.sandbox.words if view.sandbox is not None else ""
        marks = [f"{one['of']} {one['words']}" for one in value["marks"]]
        said = value | {"marks": marks, "sandbox": box}
        text = fields({labels.get(name, name): one for name, one in said.items()})
        return CommandOutput(value | {"definitions": definitions}, text, code)


@mcp.command(epilog="Example: gemdeck mcp tools files --json")
@click.argument("server", required=False, shell_complete=server_names)
@prints_json
@own_option
@starts_servers
async def tools(server: str | None, start: StartOptions) -> CommandOutput:
    """List the tools of one server, or of all."""
    async with serving(start, None if server is None else [server]) as session:
        views = session.views if server is None else (session.ready(server),)
        listed = session.engine.servers.registry.listed
        part = session.engine.models.context_part
        found = [
            (view.id, tool, raw if isinstance(raw, dict) else {"name": tool.name})
            for view in views
            for tool, raw in zip_longest(view.catalog.tools, listed(view.id).tools)
        ]
        value = [
            _beside({"server": one, "problem": tool.problem, "tokens": part(one, tool).tokens}, raw)
            | {"marks": list(map(asdict, tool.marks))}
            for one, tool, raw in found
        ]
        rows = [tool_row(one, tool) for one, tool, _ in found]
        return CommandOutput({"tools": value, "warnings": session.warnings}, table(rows))


@mcp.command(epilog="Example: gemdeck mcp call files read_text_file path=notes.txt")
@server_argument
@click.argument("tool", required=False, metavar="TOOL")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]…")
@click.option("--args", "raw", metavar="JSON", help="The arguments as one JSON object.")
@prints_json
@own_option
@starts_servers
async def call(
    server: str,
    tool: str | None,
    arguments: tuple[str, ...],
    raw: str | None,
    start: StartOptions,
) -> CommandOutput:
    """Run a tool with exactly these arguments, or run @NAME, a call that you saved.

    SERVER.TOOL works, too.

    A value is text, or JSON where the tool expects another type. You wrote the call yourself, so it
    needs no approval; a rule that denies the tool still applies. If the server asks for input, you
    are prompted at a terminal; without one, gemdeck declines.
    """
    given = _object(raw)
    if "." in server and server not in (known := {one.id: one for one in load().servers}):
        (one, meant), arguments = _tool_meant(server, known), (*filter(None, [tool]), *arguments)
        server, tool = one.id, meant
    if tool is None:
        raise click.UsageError("Missing argument 'TOOL'.")
    with as_usage():
        words = named_values(arguments, "=", "An argument")
    async with serving(start, [server]) as session:
        say_outside(session.views)
        there = [one.name for one in session.ready(server).catalog.tools]
        if tool.startswith("@") and tool not in there:
            if (saved := session.engine.runs.saved.find(ServerId(server), tool[1:])) is None:
                raise CommandError(f"{server} has no saved call {tool}.", ExitCode.NOT_FOUND)
            tool, given = saved.tool, _object(saved.arguments) | given
        check_known("tool", [tool], there)
        offered = session.engine.servers.offered_tools()
        schema = next((one.schema for one in offered if one.view.name == tool), {})
        given |= {name: typed_value(schema, name, word) for name, word in words.items()}
        calling = session.engine.call_tool(ServerId(server), tool, given, by_user=True)
        result = await using(session, calling)
        if result.raw is None:
            raise ToolCallError(result.display, reply=result.reply)
        own = {"server": server, "tool": tool, "arguments": given, "is_error": result.is_error}
        more = {"outside": session.ready(server).runs_outside, "warnings": session.warnings}
        value = _beside(own | more, result.raw) | _marks(result.raw)
        code = ExitCode.ERROR if result.is_error else ExitCode.OK
        return CommandOutput(value, _plain(result.parts, result.display), code)


@mcp.command(epilog="Example: gemdeck mcp request files resources/templates/list")
@server_argument
@click.argument("method")
@click.option("--params", "raw", metavar="JSON", help="The parameters as one JSON object.")
@prints
@starts_servers
async def request(server: str, method: str, raw: str | None, start: StartOptions) -> CommandOutput:
    """Send one request to a server, and print the response as JSON: the result or the error.

    A rule that denies a tool also applies to tools/call.
    """
    params = _object(raw, "--params")
    async with serving(start, [server]) as session:
        session.ready(server)
        sending = session.engine.runs.request(ServerId(server), method, params, by_user=True)
        answer = writable(await using(session, sending))
    code = ExitCode.ERROR if "error" in answer else ExitCode.OK
    return CommandOutput(answer, json.dumps(answer, indent=2), code)


@mcp.command(epilog="Example: gemdeck mcp add again gemdeck mcp replay trace.jsonl")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--server", metavar="NAME", default="", help="Which server, if there are several.")
@prints
async def replay(file: Path, server: str) -> CommandOutput:
    """Replay a trace as a stdio server, matching requests by method and parameters."""
    try:
        recording = await in_daemon_thread(lambda: Recording(read_trace(file), server))
    except OSError as error:
        raise CommandError(f"{file} cannot be replayed: {error.strerror}.") from error
    if len(recording.servers) != 1:
        names = ", ".join(sorted(recording.servers)) or "none"
        raise CommandError(f"--server must name one of the servers in the trace: {names}")
    # signals are heard meanwhile; who waits in sys.stdin itself makes Python abort when it ends
    source = os.fdopen(sys.stdin.fileno(), "rb", closefd=False)
    while line := await in_daemon_thread(source.readline):
        for message in recording.answer(line):
            write_out(json.dumps(message))
    return CommandOutput({}, "")


@mcp.command(epilog="Example: gemdeck mcp read docs docs://style")
@server_argument
@click.argument("uri")
@click.option(
    "-o",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write to this file instead.",
)
@prints_json
@own_option
@starts_servers
async def read(
    server: str, uri: str, file: Path | None, start: StartOptions, *, as_json: bool
) -> CommandOutput:
    """Print a resource: its bytes and nothing else.

    Several contents are concatenated. At a terminal, text is shown without control characters,
    and binary content needs -o or a pipe.
    """
    value: dict[str, Any] = {"server": server, "uri": uri}
    async with serving(start, [server]) as session:
        session.ready(server)
        features = session.engine.servers.features(ServerId(server))
        found = await using(session, features.read_resource(uri))
    if file is not None or not (as_json or sys.stdout.isatty()):
        try:
            data = joined_contents(found.raw["contents"])
        except ValueError:
            words = "The content is neither text nor valid base64, or contains a secret."
            raise CommandError(words) from None
        if file is None:
            return CommandOutput(value, data)
        _write(file, data)
        return CommandOutput({**value, "file": str(file), "bytes": len(data)}, "")
    content = found.content
    if content.blobs and not as_json:
        raise CommandError(f"{uri} is binary: use -o FILE or a pipe.", ExitCode.USAGE)
    if content.omitted and not as_json:
        say(f"{content.omitted:,} more characters are not shown; -o FILE writes all.")
    return CommandOutput(_beside(value, found.raw), content.text.removesuffix("\n"))


def _write(file: Path, data: bytes) -> None:
    """Write a file, private if it is new."""
    try:
        file.touch(0o600)
        file.write_bytes(data)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from None


@mcp.command(epilog="Example: gemdeck mcp prompt poems poem mood=reverent")
@server_argument
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]…")
@prints_json
@own_option
@starts_servers
async def prompt(
    server: str, name: str, arguments: tuple[str, ...], start: StartOptions
) -> CommandOutput:
    """Print a prompt as its server renders it."""
    with as_usage():
        given = named_values(arguments, "=", "An argument")
    async with serving(start, [server]) as session:
        known = {one.name: one for one in session.ready(server).catalog.prompts}
        check_known("prompt", [name], known)
        _check_arguments(known[name], given)
        asked = session.engine.servers.render_prompt(ServerId(server), name, given)
        found = await using(session, asked)
        parts = [*(part for turn in found.before for part in turn.parts), *found.parts]
        value = _beside({"server": server, "name": name}, found.raw) | _marks(found.raw)
        return CommandOutput(value, _plain(parts, found.shown))


@mcp.command(epilog="Example: gemdeck mcp logs files")
@server_argument
@click.option("-f", "--follow", is_flag=True, help="Print new lines until Ctrl+C.")
@prints_json
@starts_servers
async def logs(server: str, start: StartOptions, *, follow: bool, as_json: bool) -> CommandOutput:
    """Start a server, and print its stderr and log messages."""
    if follow and as_json:
        raise click.UsageError("--follow prints lines as they come; --json cannot be used.")
    follows = (lambda _, line: write_out(log_text(line))) if follow else None
    async with serving(start, [server], follow=follows) as session:
        if follow:
            await asyncio.Event().wait()
    lines = session.log(server)  # whole, once nothing more can come
    value = [
        {"time": one.time, "source": one.source, "severity": one.severity.value, "text": one.text}
        for one in lines
    ]
    return CommandOutput({"server": server, "lines": value}, "\n".join(map(log_text, lines)))


_scope = scope_option(
    "project", "Whose settings: the project's, yours (user), or yours for this folder (folder)."
)


@mcp.command(
    cls=ServerLast,
    epilog="Example: gemdeck mcp add -s user notes npx -y @acme/server-notes ~/notes",
)
@click.argument("name")
@click.argument("target", metavar="COMMAND|URL")
@click.argument("arguments", nargs=-1, metavar="[ARGUMENT]…")
@_scope
@click.option(
    "-t",
    "--transport",
    type=click.Choice(["stdio", "http", "sse"]),
    help="Default: http for a URL, stdio for a command.",
)
@click.option("-e", "--env", multiple=True, metavar="KEY=VALUE", help="Environment variable.")
@click.option("-H", "--header", multiple=True, metavar="'NAME: VALUE'", help="HTTP header.")
@click.option("--timeout", type=int, metavar="MS", help="For connecting and for each request.")
@click.option("--trust", is_flag=True, help="Run its tools without asking; not in a project.")
@click.option(
    "--sandbox", is_flag=True, default=None, help="Run it in a sandbox (Linux, needs bubblewrap)."
)
@click.option("--description", metavar="TEXT", help="Description, shown next to the server.")
@click.option("--include-tools", metavar="TOOL,…", help="Offer only these tools.")
@click.option("--exclude-tools", metavar="TOOL,…", help="Never offer these tools.")
@keyring_option
@click.option("--no-check", is_flag=True, help="Save without trying to connect.")
@trust_option
@click.option("-y", "--yes", is_flag=True, help="Change an existing server without asking.")
@prints_json
async def add(name: str, *, scope: str, no_check: bool, yes: bool, **given: Any) -> CommandOutput:  # noqa: ANN401 - as declared above
    """Add a server to the settings, and try to connect to it.

    Options go before COMMAND: everything after it belongs to the server, with or without --. An
    existing entry is replaced once you have seen the changes. Comments and everything else in
    the file are kept.
    """
    with as_usage():
        keeps, trusted = given.pop("keyring"), given.pop("trusted_folders")
        if keeps and scope == "project":
            words = "A project's settings cannot refer to your secrets. Add -s user."
            raise click.UsageError(words)
        entry = server_entry(**given)
        without, literal = without_literals(name, entry)
        entry = without if keeps else entry
        check_entry(name, scope, entry)
    with edits_of(scope):
        edits = own_edits()
        before = servers_in(edits.file_of(scope)).get(name)
        if before is not None and before != entry:
            await confirm_change(name, before, entry, says_yes=yes)
        if keeps:
            await in_daemon_thread(lambda: secret_store().set_all(literal))
        path, why = edits.add(scope, name, entry, before)
    value = {"server": name, "file": str(path), "entry": entry}
    text = f"Saved {name} to {shown(path)}."
    if literal and not keeps and before != entry and scope != "project":
        say("the entry contains a secret; --keyring stores it in the keyring")
    if no_check:
        return CommandOutput(value, text)
    if why:
        text = f"{text} It does not start: {why}"
        return CommandOutput({**value, "status": "", "reason": why}, text)
    program, patience = Path(entry.get("command", "")).name, 10.0
    if program in FETCHERS:
        patience = PATIENCE
        say(f"{program} may have to download the server: waiting up to {patience:.0f} s")
    answer = await _shown(name, StartOptions(patience, trusted))
    found = answer.value
    value |= {"status": found["status"], "reason": found["reason"]}
    why = advised(found["reason"], found["advice"])
    offers = counted(len(found["tools"]), "tool") if found["status"] == "ready" else why
    code = ExitCode.OK if found["status"] in _WAITING else answer.code
    return CommandOutput(value, f"{text} Now {found['status']}: {offers}", code)


@mcp.command(epilog="Example: gemdeck mcp remove -s user files")
@click.argument("name")
@_scope
@prints_json
async def remove(name: str, scope: str) -> CommandOutput:
    """Remove a server from the settings; the rest of the file is kept, with comments."""
    try:
        with edits_of(scope):
            path = own_edits().remove(scope, name)
    except NoSuchServerError as error:
        known = {one.id: one for one in load().servers}
        if (one := known.get(ServerId(name))) is not None:
            where = f"{name} is defined in {one.entry.source}"
            other = one.entry.origin.value
            hint = f": gemdeck mcp remove -s {other} {shlex.quote(name)}"
            hint = hint if other in SCOPES else "."
            raise CommandError(where + hint, ExitCode.NOT_FOUND) from error
        raise no_such("server", name, error.known) from error
    return CommandOutput({"server": name, "file": str(path)}, f"Removed {name} from {shown(path)}.")


@mcp.command(epilog="Example: gemdeck mcp enable files")
@server_argument
@prints_json
async def enable(server: str) -> CommandOutput:
    """Enable a server, from its next start on, or a tool: SERVER.TOOL.

    A tool is removed from excludeTools in your settings.
    """
    return await _set_enabled(server, enabled=True)


@mcp.command(epilog="Example: gemdeck mcp disable files.write_file")
@server_argument
@prints_json
async def disable(server: str) -> CommandOutput:
    """Disable a server, from its next start on, or a tool: SERVER.TOOL.

    A server's entry is not changed; a tool is added to excludeTools in your settings.
    """
    return await _set_enabled(server, enabled=False)


@mcp.command(epilog="Example: gemdeck mcp accept files.read_text_file")
@server_argument
@click.option(
    "--any-wording", is_flag=True, help="Also accept every later description of the tool."
)
@prints_json
@starts_servers
async def accept(server: str, start: StartOptions, *, any_wording: bool) -> CommandOutput:
    """Accept the changed tools of a server, or one: SERVER.TOOL. Prints what has changed.

    The model then gets them again. For a tool whose description differs at each start,
    --any-wording accepts all descriptions; `gemdeck grants` lists and revokes that.
    """
    known = {one.id: one for one in load().servers}
    one, tool = (known[ServerId(server)], "") if server in known else _tool_meant(server, known)
    if any_wording and not tool:
        raise click.UsageError("--any-wording needs a single tool: SERVER.TOOL.")
    async with serving(start, [one.id]) as session:
        tools = [view.name for view in session.ready(one.id).catalog.tools]
        check_known("tool", filter(None, [tool]), tools)
        review = session.engine.access.review
        changes = await review.accept(one.id, tool, any_wording=any_wording)
    found = [
        {"tool": change.tool, "difference": [f"{x.sign} {x.text}" for x in change.difference]}
        for change in changes
    ]
    lines = [line for each in found for line in (f"{each['tool']}:", *each["difference"], "")]
    text = "\n".join(lines) if found else f"No tool of {one.id} has changed."
    text += f"\nAny description of {tool} is accepted from now on." if any_wording else ""
    return CommandOutput({"server": one.id, "accepted": found}, sanitize(text.rstrip()))


async def _set_enabled(server: str, *, enabled: bool) -> CommandOutput:
    """Enable or disable a server for later runs; nothing is started."""
    session = ServerSession(StartOptions(0.0), [])
    async with session.engine:
        found = {one.id: one for one in await session.definitions()}
    if (definition := found.get(ServerId(server))) is None:
        return _exclude(server, found, off=not enabled)
    state = usable_state_dir()
    problems = list[str]()
    kept = Enablement(state and state / ENABLEMENT_FILE, problems.append)
    kept.load()
    kept.set_enabled(definition, enabled=enabled)
    kept.save()
    if problems:
        raise CommandError(problems[-1])
    word = "enabled" if enabled else "disabled"
    failure = definition.failure if enabled and definition.withheld is not None else None
    more = f", but it does not start: {failure.reason} {failure.advice}" if failure else ""
    text = sanitize(f"{server} is {word}{more or '.'}")
    return CommandOutput({"server": server, "enabled": enabled, "reason": more[2:]}, text)


def _tool_meant(
    word: str, found: Mapping[ServerId, ServerDefinition]
) -> tuple[ServerDefinition, str]:
    """Return the server and the tool that are meant by ``SERVER.TOOL``."""
    dots = (at for at, sign in enumerate(word) if sign == "." and word[at + 1 :])
    meant = [(one, word[at + 1 :]) for at in dots if (one := found.get(ServerId(word[:at])))]
    if not meant:
        raise no_such("server", word, found)
    if len(meant) > 1:
        tools = " or ".join(f"{tool} of {one.id}" for one, tool in meant)
        words = f"{word} is ambiguous: {tools}. Use the tools pane instead (F3, then X)."
        raise CommandError(sanitize(words), ExitCode.USAGE)
    return meant[0]


def _exclude(word: str, found: Mapping[ServerId, ServerDefinition], *, off: bool) -> CommandOutput:
    """Switch the tool that is meant by ``SERVER.TOOL`` off or on, in the user's settings."""
    one, tool = _tool_meant(word, found)
    with edits_of("user"):
        path = own_edits().exclude(one, tool, off=off)
    value = {"server": one.id, "tool": tool, "enabled": not off, "file": str(path)}
    word = "off" if off else "on"
    return CommandOutput(value, sanitize(f"{tool} of {one.id} is {word}: {shown(path)}"))


def _check_arguments(view: PromptView, arguments: Mapping[str, str]) -> None:
    check_known("argument", arguments, [argument.name for argument in view.arguments])
    if missing := [a.name for a in view.arguments if a.required and a.name not in arguments]:
        raise CommandError(f"Missing arguments: {', '.join(missing)}.", ExitCode.USAGE)


def _beside(own: dict[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Write what a server gave, member for member, beside what we say of it."""
    return own | {name: value for name, value in writable(raw).items() if name not in own}


def _marks(raw: object) -> dict[str, Any]:
    """Return what is marked in a result."""
    return {"marks": list(map(asdict, marks_of(raw)))}


def _plain(parts: Sequence[object], display: str) -> str:
    """Return what a terminal may show, or the text itself for a file or another program."""
    texts = (part.text for part in parts if isinstance(part, TextPart))
    return (display if sys.stdout.isatty() else "\n".join(texts)).removesuffix("\n")


def _object(raw: str | None, option: str = "--args") -> dict[str, Any]:
    """Read the arguments that were given as JSON."""
    try:
        value = json.loads(raw) if raw is not None else {}
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint=option) from error
    if not isinstance(value, dict):
        raise click.BadParameter("must be a JSON object", param_hint=option)
    return value
