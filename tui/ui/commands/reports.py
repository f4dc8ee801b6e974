"""What commands show: servers, figures and folders as text, never read as markup."""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

from textual.content import Content

from tui.model.catalog import ToolView
from tui.model.chat import ModelText, ToolCall, ToolCallStatus, UserMessage
from tui.model.events import ContextFile
from tui.model.models import CHARACTERS_PER_TOKEN, ContextPart
from tui.model.servers import DISCOVERY, ServerStatus, ServerView
from tui.store.state import AppState
from tui.text import counted
from tui.ui.widgets.status import LOOKS, status_word
from tui.ui.widgets.text.describe import failure_lines, field, known, muted, server_facts
from tui.ui.widgets.text.plain import block, fit, one_line

MAX_TOOLS: Final = 100
"""Tools, or prompts, of one server that are listed."""

MAX_LARGEST: Final = 5
"""Tools whose size is listed."""

MAX_FOLDERS: Final = 100
"""Folders that are listed."""

BAR: Final = 12
"""Cells of the bar of the largest part, or of the model's window."""

MAX_NAME: Final = 22
"""Cells for the names of parts."""


def describe_servers(
    views: Sequence[ServerView], now: float, *, descriptions: bool = False, schemas: bool = False
) -> Content:
    """Describe how servers are set up and stand, and what tools they have.

    Args:
        views: The servers.
        now: The time in seconds of `time.monotonic`.
        descriptions: Whether to say what their tools do.
        schemas: Whether to add the schemas of these.
    """
    if not views:
        return Content("No servers.")
    parts: list[Content] = []
    for view in views:
        parts += [Content()] if parts else []
        parts += _server(view, now)
        catalog = view.catalog
        parts += _names("prompts", [prompt.name for prompt in catalog.prompts])
        resources = [one.name for one in catalog.resources]
        resources += [one.name for one in catalog.templates]
        parts += _names("resources", resources, limit=10)  # as in gemini-cli
        tools = catalog.tools
        if not descriptions:
            parts += _names("tools", [tool.name for tool in tools])
            continue
        for tool in tools[:MAX_TOOLS]:
            parts += _tool(tool, schemas=schemas)
        if len(tools) > MAX_TOOLS:
            parts.append(muted(f"… {len(tools) - MAX_TOOLS:,} more"))
    return Content("\n").join(parts)


def _names(kind: str, names: Sequence[str], limit: int = MAX_TOOLS) -> Sequence[Content]:
    more = f", … {len(names) - limit:,} more" if len(names) > limit else ""
    return [field(kind, ", ".join(names[:limit]) + more)] if names else ()


def describe_model_context(state: AppState) -> Content:
    """Describe what fills the context: tools by server, instructions, files, messages, results."""
    usage, lines = state.conversation.usage, list[Content]()
    parts = sorted(state.context_parts, key=attrgetter("tokens"), reverse=True)
    used, limit = usage.context or sum(part.tokens for part in parts), usage.context_limit
    total = ContextPart("total", used, is_counted=bool(usage.context))
    rows = [(total, limit or used, f"{used / limit:.1%} of {limit:,}" if limit else "")]
    rows += ((one, parts[0].tokens, counted(one.tools, "tool") * bool(one.tools)) for one in parts)
    for part, whole, note in rows:
        name = f"tools · {one_line(part.server)}" if part.server else part.name
        halves = min(2 * BAR, max(1, round(2 * BAR * part.tokens / max(1, whole))))
        bar = "█" * (halves // 2) + "▌" * (halves % 2)
        size = f"{'~' * (not part.is_counted)}{part.rounded:,}"
        row = f"{fit(name, MAX_NAME)}{size:>10}  ", (f"{bar:{BAR}}", "$accent"), f"  {note:>8}"
        lines.append(Content.assemble(*row))
    lines.append(muted("~ estimated; the service counted the others"))
    lines += _largest_tools(state)
    lines += [Content(), Content.styled("Context files", "bold"), *_context_files(state.context)]
    if state.cost:
        lines += [Content(), field("cost", f"{state.cost} so far")]
    return Content("\n").join(
        [*lines, Content(), muted("/compress replaces the conversation with a summary.")]
    )


def _largest_tools(state: AppState) -> Iterable[Content]:
    """List the tools of ready servers whose definitions use most of the context."""
    views = [view for view in state.servers if view.status is ServerStatus.READY]
    tools = [(tool, view) for view in views for tool in view.catalog.tools if not tool.off]
    if tools:
        yield from (Content(), Content.styled("Largest tools", "bold"))
    for tool, view in sorted(tools, key=lambda one: -one[0].size)[:MAX_LARGEST]:
        size = f"~{ContextPart(tool.name, tool.size // CHARACTERS_PER_TOKEN).rounded:,}"
        yield Content(f"{fit(one_line(f'{view.id} · {tool.name}'), 2 * MAX_NAME)}{size:>10}")


def _context_files(files: Sequence[ContextFile]) -> Iterable[Content]:
    """List the files that say something to the model in every turn."""
    for file in files:
        size = counted(len(file.text.splitlines()), "line")
        problem = f"✕ not used: {one_line(file.problem)}"
        looks = (problem, "$text-error") if file.problem else (size, "$text-muted")
        yield Content.assemble(f"{one_line(file.place)}  ", looks)
    if not files:
        yield muted("none (read from ~/.gemini and from trusted folders)")


def _server(view: ServerView, now: float) -> Iterable[Content]:
    glyph, _ = LOOKS[view.status]
    yield Content.assemble(
        f"{glyph} ", (one_line(view.id), "bold"), "  ", (status_word(view, now), "$text-muted")
    )
    if (failure := view.failure or view.last_failure) is not None:
        yield from failure_lines(failure)
    yield from server_facts(view, now)[1:]  # the first is how it stands
    if view.environment:
        inherited = len(set(view.environment) - set(view.variables))
        yield field("variables", ", ".join((*view.variables, f"{inherited} inherited")))
    yield field("discovery", DISCOVERY[view.status])


def _tool(tool: ToolView, *, schemas: bool) -> Iterable[Content]:
    yield Content.styled(one_line(tool.name), "bold")
    if tool.off:
        yield muted(f"○ {tool.off}")
    elif tool.problem:
        yield Content.styled(f"✕ not available: {one_line(tool.problem)}", "$text-error")
    if tool.description:
        yield Content(block(tool.description))
    if schemas:
        yield muted(block(tool.schema))


def describe_stats(state: AppState) -> Content:
    """Describe what was spent in this tab so far, and what its conversation holds."""
    conversation = state.conversation
    said = [*conversation.transcript.settled, *conversation.transcript.live]
    spent, usage = conversation.spent, conversation.usage
    calls = [entry for entry in said if isinstance(entry, ToolCall)]
    by_server = Counter(call.server or "no server" for call in calls)
    failed = sum(call.status is ToolCallStatus.ERROR for call in calls)
    seconds = sum(call.seconds or 0.0 for call in calls)
    parts = [
        Content.styled("Tokens so far", "bold"),
        field("input", f"{spent.prompt:,} ({spent.cached:,} cached)"),
        field("output", f"{spent.output:,}"),
        field("thinking", f"{spent.thoughts:,}"),
        *known(("cost", state.cost)),
    ]
    if usage.context_limit:
        share = usage.context / usage.context_limit
        words = f"{usage.context:,} of {usage.context_limit:,} ({share:.0%})"
        parts.append(field("context", words))
    parts += [
        Content(),
        Content.styled("This conversation", "bold"),
        field("messages", f"{sum(isinstance(entry, UserMessage) for entry in said):,}"),
        field("answers", f"{sum(isinstance(entry, ModelText) for entry in said):,}"),
        field("tool calls", f"{len(calls):,}, {failed:,} failed, {seconds:.1f} s in total"),
    ]
    parts += [field("", f"{one_line(name)}: {count:,}") for name, count in by_server.most_common()]
    return Content("\n").join(parts)


def describe_folders(state: AppState) -> Content:
    """Describe the folders that servers are told of as roots."""
    shown = [Content(one_line(folder)) for folder in state.folders[:MAX_FOLDERS]]
    advice = muted("/directory add FOLDER adds a folder until gemdeck quits.")
    return Content("\n").join([*shown, Content(), advice])
