"""The commands of ``gemdeck mcp``: what each gives as text and as JSON."""

import asyncio
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tui.cli.command import CommandError, CommandOutput, no_such
from tui.cli.output import ExitCode, fields, say, table, write_out
from tui.cli.servers.server_session import ServerSession, StartOptions, log_text, serving
from tui.engine.files.paths import usable_state_dir
from tui.engine.mcp.catalog.offered_tool import MediaPart, TextPart, ToolCallError
from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.manager import ENABLEMENT_FILE, Enablement
from tui.model.catalog import PromptView, ToolView
from tui.model.servers import ServerId, ServerStatus, ServerView
from tui.text import clip, counted, sanitize

MAX_SHOWN: Final = 64
"""Characters of a tool's name in a list for people: those that Gemini takes."""


async def list_servers(start: StartOptions) -> CommandOutput:
    """List all servers; the exit code says whether all that are enabled are ready."""
    async with serving(start, None) as session:
        found = [_server(view, session) for view in session.views]
        rows = [
            (one["name"], one["status"], one["transport"], _offers(one), one["reason"])
            for one in found
        ]
        off = (ServerStatus.READY, ServerStatus.DISABLED)
        code = ExitCode.OK if all(v.status in off for v in session.views) else ExitCode.ERROR
        value = {"servers": found, "warnings": session.warnings}
        return CommandOutput(value, table(rows) or "No servers are configured.", code)


async def show(server: str, start: StartOptions) -> CommandOutput:
    """Show how a server is reached and what it offers, ready or not."""
    async with serving(start, [server]) as session:
        view = next(view for view in session.views if view.id == server)
        value = _server(view, session) | _details(view)
        code = ExitCode.OK if view.status is ServerStatus.READY else ExitCode.ERROR
        return CommandOutput(value, fields(value), code)


async def tools(server: str | None, start: StartOptions) -> CommandOutput:
    """List the tools of one server or of all; one server has to be ready."""
    async with serving(start, None if server is None else [server]) as session:
        views = session.views if server is None else (session.ready(server),)
        found = [_tool(view.id, tool) for view in views for tool in view.catalog.tools]
        rows = [
            (
                one["server"],
                clip(one["name"], MAX_SHOWN),
                one["problem"] or _first_line(one["description"]),
            )
            for one in found
        ]
        return CommandOutput({"tools": found, "warnings": session.warnings}, table(rows))


async def call(
    server: str, tool: str, given: Mapping[str, Any], words: Mapping[str, str], start: StartOptions
) -> CommandOutput:
    """Run a tool, by its name as listed.

    Args:
        server: Its server.
        tool: Its name.
        given: Arguments as JSON values.
        words: Further arguments as they were typed.
        start: How to start the server.
    """
    async with serving(start, [server]) as session:
        known = [one.name for one in session.ready(server).catalog.tools]
        if tool not in known:
            raise no_such("tool", tool, known)
        offered = session.engine.servers.offered_tools()
        schema = next((one.schema for one in offered if one.view.name == tool), {})
        arguments = {**given, **{name: typed_value(schema, name, words[name]) for name in words}}
        try:
            result = await session.engine.call_tool(ServerId(server), tool, arguments, by_user=True)
        except ToolCallError as error:
            raise CommandError(str(error)) from error
        value = {
            "server": server,
            "tool": tool,
            "arguments": arguments,
            "is_error": result.is_error,
            "content": _content(result.parts),
            "warnings": session.warnings,
        }
        code = ExitCode.ERROR if result.is_error else ExitCode.OK
        return CommandOutput(value, _plain(result.parts, result.display), code)


async def read(
    server: str, uri: str, start: StartOptions, file: Path | None, *, as_json: bool
) -> CommandOutput:
    """Read a resource, listed or not: its bytes, or what a terminal may show of them.

    Args:
        server: Its server.
        uri: Its URI.
        start: How to start the server.
        file: Takes the bytes in place of standard output.
        as_json: Whether the answer is written as JSON.
    """
    value: dict[str, Any] = {"server": server, "uri": uri}
    async with serving(start, [server]) as session:
        session.ready(server)
        features = session.engine.servers.features(ServerId(server))
        try:
            if file is not None or not (as_json or sys.stdout.isatty()):
                data = await features.read_bytes(uri)
                if file is None:
                    return CommandOutput(value, data)
                _write(file, data)
                return CommandOutput({**value, "file": str(file), "bytes": len(data)}, "")
            found = await features.read_resource(uri)
        except ServerCallError as error:
            raise CommandError(str(error)) from error
    content = found.content
    if content.blobs and not as_json:
        raise CommandError(f"{uri} is binary: use -o FILE or a pipe.", ExitCode.USAGE)
    if content.omitted and not as_json:
        say(f"{content.omitted:,} more characters are not shown; -o FILE writes all.")
    return CommandOutput(
        {**value, "content": _content(found.parts)}, content.text.removesuffix("\n")
    )


def _write(file: Path, data: bytes) -> None:
    """Write a file, private if it is new."""
    try:
        file.touch(0o600)
        file.write_bytes(data)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from None


async def prompt(
    server: str, name: str, arguments: Mapping[str, str], start: StartOptions
) -> CommandOutput:
    """Let a server render a prompt, by its name as listed."""
    async with serving(start, [server]) as session:
        known = {one.name: one for one in session.ready(server).catalog.prompts}
        if name not in known:
            raise no_such("prompt", name, known)
        _check_arguments(known[name], arguments)
        servers = session.engine.servers
        own = servers.registry.own_prompt_name(ServerId(server), name)
        try:
            found = await servers.features(ServerId(server)).get_prompt(own, arguments)
        except ServerCallError as error:
            raise CommandError(str(error)) from error
        turns = [*((turn.role, turn.parts) for turn in found.before), ("user", found.parts)]
        messages = [{"role": role, "content": _content(parts)} for role, parts in turns]
        value = {"server": server, "name": name, "messages": messages}
        return CommandOutput(
            value, _plain([part for _, parts in turns for part in parts], found.shown)
        )


async def logs(server: str, start: StartOptions, *, follow: bool) -> CommandOutput:
    """Print what a server writes while it starts, and on until it is interrupted."""
    async with serving(start, [server], follow=write_out if follow else None) as session:
        if follow:
            await asyncio.Event().wait()
    lines = session.log(server)  # whole, once nothing more can come
    value = [
        {"time": one.time, "source": one.source, "severity": one.severity.value, "text": one.text}
        for one in lines
    ]
    return CommandOutput({"server": server, "lines": value}, "\n".join(map(log_text, lines)))


async def set_enabled(server: str, *, enabled: bool) -> CommandOutput:
    """Enable or disable a server for later runs; nothing is started."""
    session = ServerSession(StartOptions(0.0), [])
    async with session.engine:
        found = {one.id: one for one in await session.definitions()}
    definition = found.get(ServerId(server))
    if definition is None:
        raise no_such("server", server, found)
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


def _server(view: ServerView, session: ServerSession) -> dict[str, Any]:
    reason, advice = session.why_not_ready(view)
    return {
        "name": view.id,
        "status": view.status.value,
        "transport": view.transport.value,
        "target": view.target,
        "origin": view.origin.value,
        "description": view.description,
        "tools": len(view.catalog.tools),
        "prompts": len(view.catalog.prompts),
        "resources": len(view.catalog.resources),
        "reason": reason,
        "advice": advice,
    }


def _details(view: ServerView) -> dict[str, Any]:
    catalog, info, failure = view.catalog, view.info, view.failure
    return {
        "software": f"{info.name} {info.version}" if info is not None else "",
        "protocol": info.protocol_version if info is not None else "",
        "instructions": info.instructions if info is not None else "",
        "tools": [tool.name for tool in catalog.tools],
        "prompts": [prompt.name for prompt in catalog.prompts],
        "resources": [resource.uri for resource in catalog.resources],
        "templates": [template.uri_template for template in catalog.templates],
        "environment": list(view.environment),
        "withheld": list(view.withheld),
        "last_output": list(failure.stderr_tail) if failure is not None else [],
    }


def _offers(server: Mapping[str, Any]) -> str:
    offered = {kind: server[f"{kind}s"] for kind in ("tool", "prompt", "resource")}
    return ", ".join(counted(number, kind) for kind, number in offered.items() if number)


def _tool(server: ServerId, tool: ToolView) -> dict[str, Any]:
    return {
        "server": server,
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "schema": _parsed(tool.schema),
        "problem": tool.problem,
    }


def typed_value(schema: Mapping[str, Any], name: str, word: str) -> object:
    """Read an argument that was typed: as text where the tool takes text, else as JSON."""
    properties = schema.get("properties")
    wanted = properties.get(name) if isinstance(properties, dict) else None
    kinds = set(_kinds(schema, wanted)) if isinstance(wanted, dict) else set()
    return word if not kinds or "string" in kinds else _parsed(word)


def _kinds(schema: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Name the types that a parameter may have, behind one reference or one choice."""
    target = schema
    for step in str(wanted.get("$ref", "")).removeprefix("#/").split("/"):
        target = target.get(step, {}) if isinstance(target, dict) else {}
    choices = [
        *wanted.get("anyOf", ()),
        *wanted.get("oneOf", ()),
        target if "$ref" in wanted else {},
    ]
    for one in (wanted, *choices):
        kind = one.get("type", ()) if isinstance(one, dict) else ()
        yield from [kind] if isinstance(kind, str) else kind


def _parsed(text: str) -> object:
    """Read JSON; what is none stays text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _check_arguments(view: PromptView, arguments: Mapping[str, str]) -> None:
    known = [argument.name for argument in view.arguments]
    for name in arguments:
        if name not in known:
            raise no_such("argument", name, known)
    missing = [a.name for a in view.arguments if a.required and a.name not in arguments]
    if missing:
        raise CommandError(f"Missing: {', '.join(missing)}.", ExitCode.USAGE)


def _content(parts: Iterable[object]) -> list[dict[str, Any]]:
    """Write parts as JSON, unchanged."""
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, TextPart)
        else {"type": "data", "mime_type": part.mime_type, "data": part.data}
        for part in parts
        if isinstance(part, TextPart | MediaPart)
    ]


def _plain(parts: Sequence[object], display: str) -> str:
    """Return what a terminal may show, or the text itself for a file or another program."""
    if sys.stdout.isatty():
        return display
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
