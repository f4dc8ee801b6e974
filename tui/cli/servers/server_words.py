"""What the command line tells about a server: status and reason, offers, last output."""

import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tui.cli.output import say
from tui.engine.definitions.definition import REVIEW_ADVICE
from tui.engine.mcp.catalog.marks import mark_notes
from tui.engine.mcp.telling_line import MAX_SUMMED, readable
from tui.model.catalog import ToolView
from tui.model.events import OWN_SOURCE, LogLine
from tui.model.models import ContextPart
from tui.model.servers import Origin, ServerId, ServerInfo, ServerStatus, ServerUsage, ServerView
from tui.text import clip, counted, sanitize_line

MAX_SHOWN: Final = 64
"""Characters of a tool's name in a list for people: those that Gemini takes."""

_ALLOW: Final = "To allow it, review it in gemdeck (F2, then t), or add it: gemdeck mcp add -s user"


def way_out(view: ServerView) -> str:
    """Name the command that helps with what a server waits for; on the screen it is a key."""
    if view.status is ServerStatus.NEEDS_SIGN_IN:
        return f"To sign in: gemdeck mcp auth {shlex.quote(view.id)}"
    if view.status is ServerStatus.UNTRUSTED:
        what = "To review what it would run: gemdeck trust show"
        is_new = view.failure is not None and view.failure.advice == REVIEW_ADVICE
        own = _ALLOW if is_new else f"{what}. To allow it, open gemdeck here."
        return what if view.origin is Origin.PROJECT else own
    if view.status is ServerStatus.DISABLED and view.failure is None:
        return f"To enable it: gemdeck mcp enable {shlex.quote(view.id)}"
    return ""


def why_not_ready(view: ServerView, patience: str = "--timeout") -> tuple[str, str]:
    """Return why a server is not ready, and what to do; `patience` is the option that waits."""
    failure = view.failure or view.last_failure
    if view.status is ServerStatus.STARTING and failure is None:
        words = f"no response within {time.monotonic() - view.since:.0f} s of startup"
        words = f"{words}: {view.last_words}" if view.last_words else words
        return words, "" if view.last_words else f"Allow more time with {patience}."
    if failure is None:
        return view.lacks, way_out(view)
    reason = failure.reason.removeprefix("Disabled: ")  # the status says it
    refused = view.refused.words if view.refused is not None else ""
    return reason, " ".join(filter(None, (refused, way_out(view) or failure.advice)))


def last_words(view: ServerView) -> Sequence[str]:
    """Return what a server that failed wrote last to its standard error."""
    failure = view.failure or view.last_failure
    return readable(failure.stderr_tail) if failure is not None else ()


def say_outside(views: Iterable[ServerView]) -> None:
    """Name on standard error the servers that run outside the opened folder."""
    running = (view for view in views if view.status is ServerStatus.READY)
    if named := ", ".join(view.id for view in running if view.runs_outside):
        folder = sanitize_line(shlex.quote(str(Path.cwd())))
        say(f"running outside this folder: {named}. To run them in it: --trust-folder {folder}")


def advised(reason: str, advice: str) -> str:
    """Join a reason and what to do about it, as sentences."""
    stop = "." if advice and reason and reason[-1] not in ".:!?…" else ""
    return f"{reason}{stop} {advice}".strip()


def why_missing(view: ServerView) -> str:
    """Say why a server is not there, in one line."""
    reason, advice = why_not_ready(view, "--wait")
    said = ": ".join(filter(None, (view.status.value, reason)))
    words = (line for line in last_words(view)[-1:] if line not in reason)
    last = "".join(f"stderr: {line}" for line in words)
    return advised(advised(said, last), advice)


def server_value(view: ServerView) -> dict[str, Any]:
    """Return what a list of servers has of one."""
    reason, advice = why_not_ready(view)
    return {
        "name": view.id,
        "status": view.status.value,
        "transport": view.transport.value,
        "target": view.target,
        "origin": view.origin.value,
        "outside": view.runs_outside,
        "sandbox": asdict(view.sandbox) if view.sandbox is not None else None,
        "description": view.description,
        "tools": len(view.catalog.tools),
        "prompts": len(view.catalog.prompts),
        "resources": len(view.catalog.resources),
        "reason": reason,
        "advice": advice,
        "last_output": list(last_words(view)),
    }


def server_details(
    view: ServerView, usage: ServerUsage, context: ContextPart, log: Iterable[LogLine]
) -> dict[str, Any]:
    """Return what is known of one server beside that, from what was measured and what it wrote."""
    catalog, info, failure = view.catalog, view.info or ServerInfo("", "", ""), view.failure
    said = [line.text for line in log if line.source != OWN_SOURCE][-MAX_SUMMED:]
    offers = (catalog.tools, catalog.prompts, catalog.resources, catalog.templates, catalog.skills)
    marked = [("instructions", info.marks), *((o.name, o.marks) for kind in offers for o in kind)]
    measured = {
        "connect_ms": round(usage.connected * 1000, 1),
        "lists_ms": round(usage.listed * 1000, 1),
        "processes": usage.processes,
        "memory_mb": round(usage.memory / 1e6, 1),
    }
    return {
        "title": info.title,
        "software": f"{info.name} {info.version}" if view.info is not None else "",
        "website": info.website,
        "protocol": info.protocol_version,
        "capabilities": list(info.capabilities),
        "announced": list(info.announced),
        **{name: value for name, value in measured.items() if value},
        "instructions": info.instructions,
        "tools": [tool.name for tool in catalog.tools],
        "tools_off": [tool.name for tool in catalog.tools if tool.off],
        "marks": [{"of": what, **asdict(one)} for what, found in marked for one in found],
        "context": context.words,
        "tokens": context.tokens,
        "prompts": [prompt.name for prompt in catalog.prompts],
        "resources": [resource.uri for resource in catalog.resources],
        "templates": [template.uri_template for template in catalog.templates],
        "skills": [f"{view.id}:{skill.name}" for skill in catalog.skills],
        "settings": view.source,
        "account": view.account,
        "variables": list(view.variables),
        "environment": list(view.environment),
        "withheld": list(view.withheld),
        "last_output": list(failure.stderr_tail if failure is not None else said),
    }


def server_row(view: ServerView, reason: str) -> tuple[str, ...]:
    """Return the row of a list: with how it stands what it offers, or why it does not."""
    target = clip(view.target, MAX_SHOWN) if sys.stdout.isatty() else view.target
    catalog = view.catalog
    offered = {"tool": catalog.tools, "prompt": catalog.prompts, "resource": catalog.resources}
    offers = [counted(len(items), kind) for kind, items in offered.items() if items]
    if catalog.off:
        offers[0] += catalog.off_words
    box = f"sandboxed: {view.sandbox.words}" if view.sandbox is not None else ""
    words = "  ".join(filter(None, (", ".join(offers), reason, box)))
    return view.id, view.status.value, view.transport.value, target, words


def tool_row(server: ServerId, tool: ToolView) -> tuple[str, ...]:
    """Return the row of a list of tools: with what it is for, or why it is not offered."""
    about = tool.problem or tool.description.strip().partition("\n")[0]
    return server, clip(tool.name, MAX_SHOWN), "  ".join((about, *mark_notes(tool.marks, "tool")))


def log_text(line: LogLine) -> str:
    """Write a line of a server's log, with its time and its source."""
    moment = time.strftime("%H:%M:%S", time.localtime(line.time))
    return f"{moment}  {line.source:<7}  {line.text}"
