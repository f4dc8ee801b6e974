"""The details of servers, tools, prompts, resources and grants as text.

What servers wrote is never read as markup.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile
from typing import Final

from textual.content import Content

from tui.model.catalog import (
    Catalog,
    Mark,
    PromptView,
    ResourceContent,
    ResourceTemplateView,
    ResourceView,
    ToolView,
)
from tui.model.consent import GrantView, ToolStanding
from tui.model.models import ContextPart
from tui.model.servers import Failure, ServerId, ServerInfo, ServerStatus, ServerView, Transport
from tui.text import counted
from tui.ui.widgets.status import LOOKS, recovery, status_word
from tui.ui.widgets.text.plain import block, fit, moment, one_line

MAX_PARAMETERS: Final = 100
"""Parameters of one tool that are listed."""

MAX_BLOBS: Final = 50
"""Blobs of a resource that are listed."""

NAME_WIDTH: Final = 18
"""Cells for the name of a parameter or field."""

_MUTED: Final = "$text-muted"


def describe_tool(
    server: ServerId,
    tool: ToolView,
    *,
    schema: bool,
    standing: ToolStanding | None = None,
    saved: Sequence[str] = (),
    context: ContextPart | None = None,
) -> Content:
    """Describe a tool: its server's description, its parameters, and why it may not be offered.

    Args:
        server: Its server.
        tool: The tool.
        schema: Whether to append its schemas.
        standing: What happens when the model calls it.
        saved: The names of the calls of it that the user saved.
        context: What it takes of the context, or None.
    """
    parts = _titles(server, tool.name, tool.title, framed=False)
    if tool.changed:
        reason = one_line(tool.problem) or "hidden from the model until you accept the change"
        parts += [Content(), Content.styled(f"◌ withheld: {reason}", "$text-warning")]
    elif tool.off:
        parts += [Content(), muted(f"○ {tool.off}: hidden from the model")]
    elif tool.problem:
        parts += _problem("not available", tool.problem)
    elif standing is not None:
        parts += [Content(), Content.assemble(("approval  ", _MUTED), one_line(standing.words))]
    parts += _mark_lines(tool.marks)
    if tool.description:
        parts += [Content(), Content(block(tool.description))]
    if tool.claims:
        said = ", ".join(map(one_line, tool.claims))
        parts += [Content(), muted(f"server's claim: {said} (unverified)")]
    if tool.parameters or '"properties"' not in tool.schema:
        types = min(NAME_WIDTH, max((len(one.type) for one in tool.parameters), default=0))
        listed = [
            (one.name, fit(one_line(one.type), types), "  required" * one.required, one.description)
            for one in tool.parameters
        ]
        parts += _named("parameters", listed)
    if context is not None and (tool.off or not tool.problem):
        parts += [Content(), Content.assemble(("definition  ", _MUTED), context.words)]
    if saved:
        parts += [Content(), Content.assemble(("saved calls  ", _MUTED), "  ".join(saved))]
    parts += [muted(f"omitted: {one_line(words)}") for words in tool.left_out]
    if tool.has_icons:
        parts += [Content(), muted("has icons (not loaded)")]
    if schema:
        parts += [Content(), section("Schema"), Content(block(tool.schema))]
        if tool.output_schema:
            parts += [Content(), section("Output schema"), Content(block(tool.output_schema))]
    return _lines(parts)


def describe_prompt(server: ServerId, prompt: PromptView, *, arguments: bool = True) -> Content:
    """Describe a prompt, with its name and arguments unless they are shown around it."""
    parts = _titles(server, f"/{prompt.name}", prompt.title, framed=not arguments)
    if prompt.own_name:
        parts.append(muted(f"renamed from {one_line(prompt.own_name)}"))
    parts += _problem("cannot be used", prompt.problem) + _mark_lines(prompt.marks)
    if prompt.description:
        parts += [Content(), Content(block(prompt.description))]
    if arguments or not prompt.arguments:
        needs = {True: "required", False: "optional"}
        listed = [(one.name, needs[one.required], "", one.description) for one in prompt.arguments]
        parts += _named("arguments", listed)
    return _lines(parts)


def describe_resource(server: ServerId, resource: ResourceView | ResourceTemplateView) -> Content:
    """Describe a resource or a resource template."""
    if isinstance(resource, ResourceView):
        place, uri, number = str(server), resource.uri, resource.size
    else:
        place, uri, number = f"{server} · template", resource.uri_template, None
    size = "" if number is None else counted(number, "byte")
    parts = [_heading(resource.title or resource.name), muted(place)]
    parts += [Content(), Content(one_line(uri))]
    if facts := " · ".join(filter(None, (one_line(resource.mime_type), size))):
        parts.append(muted(facts))
    parts += _problem("cannot be read", resource.problem) + _mark_lines(resource.marks)
    if resource.description:
        parts += [Content(), Content(block(resource.description))]
    return _lines(parts)


def _mark_lines(marks: Iterable[Mark]) -> list[Content]:
    """Say what is marked in a text of a server."""
    return [Content.styled(f"! marked: {one_line(mark.words)}", "$text-warning") for mark in marks]


def _problem(what: str, problem: str) -> list[Content]:
    if not problem:
        return []
    return [Content(), Content.styled(f"✕ {what}: {one_line(problem)}", "$text-error")]


def resource_facts(uri: str, content: ResourceContent, at: float) -> Content:
    """Describe the content of a resource: address, media type, size, what is not text, and when."""
    size = counted(len(content.text), "character") if content.text else ""
    blobs = [one_line(blob) for blob in content.blobs[:MAX_BLOBS]]
    more = len(content.blobs) - len(blobs)
    facts = (
        one_line(content.mime_type),
        size or ("" if blobs else "empty"),
        f"{counted(content.omitted, 'more character')} omitted" if content.omitted else "",
        *blobs,
        f"{more} more" if more else "",
        moment(at, "read at %H:%M:%S", ""),
    )
    return _lines([Content(one_line(uri)), muted(" · ".join(filter(None, facts)))])


def server_facts(view: ServerView, now: float) -> list[Content]:
    """Say how a server stands, where it is defined, what it says of itself, and what it offers."""
    runs_here, catalog, info = view.transport is Transport.STDIO, view.catalog, view.info
    is_away = runs_here and view.is_outside and not view.cwd
    folder = (view.cwd or "this folder") if runs_here else ""
    unasked = "run without asking" if view.trusted else "ask, unless a rule allows"
    parts = [
        field("status", f"{LOOKS[view.status][0]} {status_word(view, now)}"),
        field("origin", view.origin.value),
        field("transport", view.transport.value),
        field("command" if runs_here else "address", view.target),
        *known(
            ("directory", "an empty folder of gemdeck's" if is_away else folder),
            ("sandbox", view.sandbox.words if view.sandbox is not None else ""),
            ("timeout", f"{view.timeout:g} s" if view.timeout else ""),
            ("approval", unasked),
            ("account", view.account),
            ("settings", view.source),
            ("extension", view.extension),
            ("description", view.description),
        ),
    ]
    if info is not None:
        claimed = f"{info.name} {info.version}".strip()
        parts.append(field("software", f"{info.title} · {claimed}" if info.title else claimed))
        parts.append(field("protocol", f"{info.protocol_version} · {era(info)}"))
        parts += known(("website", info.website))
        parts.append(field("server can", ", ".join(info.capabilities) or "nothing"))
        parts.append(field("gemdeck can", ", ".join(info.announced) or "nothing"))
    if view.is_known or catalog != Catalog():
        parts += known(
            ("tools", f"{len(catalog.tools):,}{catalog.off_words}"),
            ("prompts", f"{len(catalog.prompts):,}"),
            ("resources", f"{len(catalog.resources) + len(catalog.templates):,}"),
        )
    return parts + known(
        ("restarted", view.restarted.removeprefix("restarted ")),
        ("missing", view.lacks),
        ("last output", view.last_words),
    )


def server_texts(view: ServerView, sent: str) -> list[Content]:
    """Show the instructions of a server, as the model got them if `sent`, and its variables."""
    parts = list[Content]()
    own = view.info.instructions if view.info is not None else ""
    if sent or own:
        title = f"Instructions ({'' if sent else 'not '}sent to the model)"
        parts += [Content(), section(title), Content(block(sent or own))]
        parts += _mark_lines(view.info.marks if view.info is not None else ())
    if view.environment:
        passed, withheld = ", ".join(view.environment), ", ".join(view.withheld) or "nothing"
        parts += [Content(), section("Environment"), muted(f"passed: {passed}")]
        parts += [muted(f"withheld: {withheld}")]
        if view.left_out:
            parts += [muted(f"not passed outside this folder: {', '.join(view.left_out)}")]
        parts += [muted(f"set by its entry: {', '.join(view.variables)}")] if view.variables else []
    return parts


def summarize_server(view: ServerView, now: float) -> Content:
    """Sum a server up for the room below the tree: what is wrong, its words, what to do.

    Args:
        view: The server.
        now: The time in seconds of `time.monotonic`.
    """
    failure = view.failure or view.last_failure  # stays in sight while it is tried again
    if failure is None and view.status is ServerStatus.UNTRUSTED:
        failure = Failure("Not trusted yet.", "Press t to review what it would run.")
    parts = [_heading(view.id)]
    if view.refused is not None:
        how = " · p allow access" * view.refused.is_offered
        parts.append(Content.styled(f"{one_line(view.refused.words)}{how}", "$text-warning"))
    if failure is not None:
        parts += failure_lines(failure)
    elif warning := recovery(view, now) or view.lacks:
        parts.append(Content.styled(one_line(warning), "$text-warning"))
    if view.status is ServerStatus.STARTING and view.last_words:
        parts.append(muted(one_line(view.last_words)))
    if view.sandbox is not None:
        parts.append(muted(one_line(f"sandboxed: {view.sandbox.words}")))
    if view.runs_outside:
        parts.append(muted("runs outside this folder · t trust"))
    if view.description:
        parts.append(Content(one_line(view.description)))
    if view.info is not None and failure is None:
        parts.append(muted(one_line(f"{view.info.name} {view.info.version}".strip())))
    elif failure is None:
        parts.append(muted(one_line(view.target)))
    return _lines(parts)


def failure_lines(failure: Failure) -> Iterator[Content]:
    """Say why a server is not available: the reason, its last words, and what to do."""
    from tui.engine.mcp.telling_line import readable  # noqa: PLC0415 - no first frame needs it

    yield Content.styled(one_line(failure.reason), "$text-error")
    yield from (muted(one_line(line)) for line in readable(failure.stderr_tail))
    if failure.advice:
        yield Content(one_line(failure.advice))


def describe_grant(grant: GrantView) -> Content:
    """Describe a rule for tools: its effect, scope and source."""
    parts = [
        field("rule", grant.effect.value),
        field("server", grant.server),
        field("tool", "all tools of this server" if grant.tool == "*" else grant.tool),
        *known(("where", grant.where)),
        field("scope", grant.scope),
        field("source", grant.origin),
        field("created", moment(grant.granted_at, "%Y-%m-%d %H:%M", "unknown")),
        field("last used", moment(grant.used_at, "%Y-%m-%d %H:%M", "never")),
    ]
    if not grant.revocable:
        parts.append(muted(f"To change it, edit {one_line(grant.origin)}."))
    return _lines(parts)


def era(info: ServerInfo) -> str:
    """Return the era of MCP that a connection uses.

    Revisions up to 2025-11-25 start with a handshake; since 2026-07-28 requests are stateless.
    """
    return "stateless" if info.is_stateless else "handshake"


def server_problem(failure: Failure) -> list[Content]:
    """Say in full why a server is not available, what to do, and what it wrote."""
    parts = [Content.styled(block(failure.reason), "$text-error")]
    if failure.advice:
        parts.append(Content(block(failure.advice)))
    if failure.stderr_tail:
        parts += [Content(), section("stderr"), muted(block("\n".join(failure.stderr_tail)))]
    return [*parts, Content()]


def _named(kind: str, entries: Sequence[tuple[str, str, str, str]]) -> list[Content]:
    """List names, each with what is known of it, and its description below."""
    if not entries:
        return [Content(), muted(f"no {kind}")]
    parts = [Content(), section(kind.capitalize())]
    width = min(NAME_WIDTH, max(len(name) for name, *_ in entries))
    for name, what, need, description in entries[:MAX_PARAMETERS]:
        parts.append(
            Content.assemble(fit(one_line(name), width), "  ", (what, _MUTED), (need, _MUTED))
        )
        if description:
            parts.append(muted("  " + one_line(description)))
    if len(entries) > MAX_PARAMETERS:
        parts.append(muted(f"… {len(entries) - MAX_PARAMETERS} more"))
    return parts


def _titles(server: ServerId, name: str, title: str, *, framed: bool) -> list[Content]:
    """Write the title of a tool or prompt if it has one, its name and its server."""
    if framed:
        return [_heading(title)] if title else []
    if title:
        return [_heading(title), muted(f"{server} · {one_line(name)}")]
    return [_heading(name), muted(str(server))]


def _heading(text: str) -> Content:
    return Content.styled(one_line(text), "bold")


def section(text: str) -> Content:
    """Write the heading of a part."""
    return Content.styled(text, "bold $text-muted")


def muted(text: str) -> Content:
    """Write a line in the muted colour."""
    return Content.styled(text, _MUTED)


def field(name: str, value: str) -> Content:
    """Write a value on one line behind its name."""
    return Content.assemble((fit(name, 13), _MUTED), one_line(value))


def known(*facts: tuple[str, str]) -> list[Content]:
    """Write the values that there are, each behind its name."""
    return [field(name, value) for name, value in facts if value]


def _lines(parts: Iterable[Content]) -> Content:
    return Content("\n").join(dropwhile(lambda part: not part, parts))
