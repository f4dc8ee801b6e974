"""What the details of a server, tool, prompt or resource say. Every word of theirs is literal."""

from collections.abc import Iterable, Sequence
from time import localtime, strftime
from typing import Final

from textual.content import Content

from tui.model.catalog import (
    Parameter,
    PromptArgument,
    PromptView,
    ResourceTemplateView,
    ResourceView,
    ToolView,
)
from tui.model.consent import GrantView, ToolStanding
from tui.model.events import ResourceRead
from tui.model.servers import ServerId, ServerInfo, ServerView
from tui.text import counted
from tui.ui.widgets.plain import block, fit, one_line
from tui.ui.widgets.status import GLYPHS, status_word

MAX_PARAMETERS: Final = 100
"""Parameters that the details of one tool list."""

MAX_BLOBS: Final = 50
"""Blobs of a resource that are listed."""

NAME_WIDTH: Final = 18
"""Cells for the name of a parameter or field."""

_MUTED: Final = "$foreground 60%"


def describe_tool(
    server: ServerId, tool: ToolView, *, schema: bool, standing: ToolStanding | None = None
) -> Content:
    """Describe a tool: what its server says, what it takes, and why it may be out of use.

    Args:
        server: Its server.
        tool: The tool.
        schema: Whether to show its whole schema.
        standing: What happens when the model calls it; left out where it is another tool's.
    """
    parts = [_heading(tool.title or tool.name), _muted(f"{server} · {tool.name}")]
    if tool.changed:
        words = one_line(tool.problem) or "the model has it again once you accept the change"
        parts += [Content(), Content.styled(f"◌ withheld: {words}", "$text-warning")]
    elif tool.problem:
        words = f"✕ not offered: {one_line(tool.problem)}"
        parts += [Content(), Content.styled(words, "$text-error")]
    elif standing is not None and (standing.server, standing.tool) == (server, tool.name):
        parts += [Content(), Content.assemble(("when called  ", _MUTED), one_line(standing.words))]
    if tool.description:
        parts += [Content(), Content(block(tool.description))]
    if tool.claims:
        parts += [Content(), _muted("claims " + ", ".join(map(one_line, tool.claims)))]
    parts += _parameters(tool.parameters)
    if tool.has_icons:
        parts += [Content(), _muted("names icons, which are not fetched")]
    if schema:
        parts += [Content(), _section("Schema"), Content(block(tool.schema))]
        if tool.output_schema:
            parts += [Content(), _section("Output schema"), Content(block(tool.output_schema))]
    return _lines(parts)


def describe_prompt(server: ServerId, prompt: PromptView, *, arguments: bool = True) -> Content:
    """Describe a prompt and, unless that is said elsewhere, its arguments."""
    parts = [_heading(prompt.title or prompt.name), _muted(f"{server} · /{prompt.name}")]
    if prompt.description:
        parts += [Content(), Content(block(prompt.description))]
    if arguments or not prompt.arguments:
        parts += _arguments(prompt.arguments)
    return _lines(parts)


def describe_resource(server: ServerId, resource: ResourceView | ResourceTemplateView) -> Content:
    """Describe a resource or a family of resources."""
    parts = [_heading(resource.title or resource.name)]
    if isinstance(resource, ResourceView):
        parts += [_muted(str(server)), Content(), Content(one_line(resource.uri))]
        size = "" if resource.size is None else counted(resource.size, "byte")
        facts = [fact for fact in (one_line(resource.mime_type), size) if fact]
    else:
        parts += [
            _muted(f"{server} · template"),
            Content(),
            Content(one_line(resource.uri_template)),
        ]
        facts = [fact for fact in (one_line(resource.mime_type),) if fact]
    if facts:
        parts.append(_muted(" · ".join(facts)))
    if resource.description:
        parts += [Content(), Content(block(resource.description))]
    return _lines(parts)


def describe_content(uri: str, read: ResourceRead | None) -> Content:
    """Show what a resource holds, or why it could not be read.

    Args:
        uri: What was asked for.
        read: What came of it; None while it is awaited.
    """
    if read is None:
        return _muted(f"reading {one_line(uri)} …")
    if read.failure:
        return _lines([_section("Not read"), Content.styled(block(read.failure), "$text-error")])
    content = read.content
    size = counted(len(content.text), "character") if content.text else ""
    facts = " · ".join(fact for fact in (one_line(content.mime_type), size) if fact)
    parts = [_section("Content"), *([_muted(facts)] if facts else [])]
    parts += [_muted(one_line(blob)) for blob in content.blobs[:MAX_BLOBS]]
    if len(content.blobs) > MAX_BLOBS:
        parts.append(_muted(f"… {len(content.blobs) - MAX_BLOBS} more"))
    if content.text:
        parts += [Content(), Content(block(content.text))]
    elif not content.blobs:
        parts.append(_muted("it is empty"))
    if content.omitted:
        parts.append(_muted(f"… {counted(content.omitted, 'more character')}"))
    return _lines(parts)


def describe_server(view: ServerView, now: float) -> Content:
    """Describe a server: how it stands, where it comes from, what it offers, why it failed.

    Args:
        view: The server.
        now: The time in seconds of `time.monotonic`.
    """
    parts = [
        _field("status", f"{GLYPHS[view.status]} {status_word(view, now)}"),
        _field("defined by", view.origin.value),
        _field("reached by", view.transport.value),
        _field("target", view.target),
    ]
    if view.description:
        parts.append(_field("description", view.description))
    if view.info is not None:
        claimed = f"{view.info.name} {view.info.version}".strip()
        parts += [
            _field("calls itself", claimed),
            _field("protocol", f"{view.info.protocol_version} · {era(view.info)}"),
        ]
    catalog = view.catalog
    parts += [
        _field("tools", f"{len(catalog.tools):,}"),
        _field("prompts", f"{len(catalog.prompts):,}"),
        _field("resources", f"{len(catalog.resources) + len(catalog.templates):,}"),
    ]
    parts += _failure(view)
    if view.info is not None and view.info.instructions:
        parts += [Content(), _section("Instructions"), Content(block(view.info.instructions))]
    return _lines(parts)


def describe_grant(grant: GrantView) -> Content:
    """Describe a rule on tools: what it says, how far it reaches, and where it comes from."""
    parts = [
        _field("rule", grant.effect.value),
        _field("server", grant.server),
        _field("tool", "all of this server" if grant.tool == "*" else grant.tool),
        _field("how far", grant.scope),
        _field("from", grant.origin),
        _field("given", moment(grant.granted_at, "%Y-%m-%d %H:%M", "nobody knows when")),
        _field("last used", moment(grant.used_at, "%Y-%m-%d %H:%M", "never")),
    ]
    if not grant.revocable:
        parts.append(_muted(f"It can be changed in {one_line(grant.origin)} only."))
    return _lines(parts)


def moment(seconds: float | None, form: str, none: str) -> str:
    """Write a time in the user's zone.

    Args:
        seconds: Since the epoch.
        form: As `time.strftime` takes it.
        none: What to write where there is no time, or none that a calendar has.
    """
    if seconds is None:
        return none
    try:
        return strftime(form, localtime(seconds))
    except (OverflowError, ValueError, OSError):
        return none


def era(info: ServerInfo) -> str:
    """Name the era of MCP that a connection speaks, in a word or two.

    Revisions up to 2025-11-25 begin with a handshake; from 2026-07-28 on each request stands
    for itself.
    """
    return "stateless" if info.is_stateless else "handshake"


def _failure(view: ServerView) -> list[Content]:
    failure = view.failure
    if failure is None:
        return []
    parts = [Content(), _section("Problem"), Content.styled(block(failure.reason), "$text-error")]
    if failure.advice:
        parts.append(Content(block(failure.advice)))
    if failure.stderr_tail:
        tail = block("\n".join(failure.stderr_tail))
        parts += [Content(), _section("Last lines of its standard error"), _muted(tail)]
    return parts


def _parameters(parameters: Sequence[Parameter]) -> list[Content]:
    if not parameters:
        return [Content(), _muted("takes no parameters")]
    parts = [Content(), _section("Parameters")]
    width = _name_width(parameter.name for parameter in parameters)
    types = max(len(parameter.type) for parameter in parameters)
    for parameter in parameters[:MAX_PARAMETERS]:
        parts.append(
            Content.assemble(
                fit(one_line(parameter.name), width),
                "  ",
                (fit(one_line(parameter.type), min(types, NAME_WIDTH)), _MUTED),
                ("  required" if parameter.required else "", _MUTED),
            )
        )
        if parameter.description:
            parts.append(_muted("  " + one_line(parameter.description)))
    if len(parameters) > MAX_PARAMETERS:
        parts.append(_muted(f"… {len(parameters) - MAX_PARAMETERS} more"))
    return parts


def _arguments(arguments: Sequence[PromptArgument]) -> list[Content]:
    if not arguments:
        return [Content(), _muted("takes no arguments")]
    parts = [Content(), _section("Arguments")]
    width = _name_width(argument.name for argument in arguments)
    for argument in arguments[:MAX_PARAMETERS]:
        required = "required" if argument.required else "optional"
        name = fit(one_line(argument.name), width)
        parts.append(Content.assemble(name, "  ", (required, _MUTED)))
        if argument.description:
            parts.append(_muted("  " + one_line(argument.description)))
    return parts


def _name_width(names: Iterable[str]) -> int:
    return min(NAME_WIDTH, max(len(name) for name in names))


def _heading(text: str) -> Content:
    return Content.styled(one_line(text), "bold")


def _section(text: str) -> Content:
    return Content.styled(text, "bold $foreground 60%")


def _muted(text: str) -> Content:
    return Content.styled(text, _MUTED)


def _field(name: str, value: str) -> Content:
    return Content.assemble((fit(name, 13), _MUTED), one_line(value))


def _lines(parts: Iterable[Content]) -> Content:
    return Content("\n").join(parts)
