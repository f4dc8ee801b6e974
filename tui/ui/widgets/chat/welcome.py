"""The welcome in an empty conversation, and the line that shows the running turn."""

import re
from collections.abc import Sequence
from math import ceil
from time import monotonic
from typing import Final

from textual.content import Content
from textual.reactive import reactive
from textual.style import Style
from textual.timer import Timer
from textual.widgets import Static

from tui.model.chat import ModelView, TurnState
from tui.model.servers import Origin, ServerStatus, ServerView
from tui.ui.widgets.key_bar import HintLine, key_hints
from tui.ui.widgets.text.plain import one_line

QUIET_SECONDS: Final = 2
"""Seconds after which the line shows how long the turn has been running."""

STANDS_IN: Final = "This is the offline demo: no Gemini API key was found. F9 enters one."
"""Shown while the demo stands in for want of a key."""

MAX_EXAMPLES: Final = 3
"""Suggestions shown."""

_HARMLESS: Final = re.compile(
    r"(?:list|count)(?:[_-](?!.*(?:env|secret|key|token|pass|cred|conf)).+)?"
)
"""Tools that a suggestion may name: their results, which a model gets, give nothing away."""

_DEMO_EXAMPLES: Final = ("add a note: buy milk", "list my notes")
_NO_SERVERS: Final = (
    ("F2 d", "starts the demo's server"),
    ("F2 e", "edits ~/.gemini/settings.json"),
)

_KEYS: Final = (
    ("↵", "sends"),
    ("^J", "starts a new line"),
    ("/", "lists commands and prompts"),
    ("@", "adds resources and files"),
    ("↑", "brings back earlier messages"),
    ("Esc", "stops the answer"),
    ("F1", "shows all keys"),
)


class Welcome(Static):
    """What to try, and the most important keys, in an empty conversation."""

    def __init__(self) -> None:
        super().__init__(markup=False)

    def show(self, model: ModelView, servers: Sequence[ServerView], *, configured: bool) -> None:
        """Show what fits the model and the servers, once they are known."""
        lines = [Content.styled("What would you like to do?", "bold"), Content("")]
        if model.needs_setup:
            lines = [Content.styled(STANDS_IN, "$text-warning"), Content(""), *lines]
        if configured and not servers:
            lines += [
                _faint("There are no servers yet."),
                *map(_key_line, _NO_SERVERS),
                Content(""),
            ]
        elif examples := _examples(servers):
            lines.append(_faint("Try"))
            lines += [Content.assemble("  ", (example, "$text-primary")) for example in examples]
            lines.append(Content(""))
        self.update(Content("\n").join([*lines, _faint("Keys"), *map(_key_line, _KEYS)]))


def _examples(servers: Sequence[ServerView]) -> Sequence[str]:
    """Suggest messages that call tools that are there."""
    if any(view.origin is Origin.DEMO for view in servers):
        return _DEMO_EXAMPLES
    ready = [view for view in servers if view.status is ServerStatus.READY and view.catalog.tools]
    words = [f"what can {one_line(view.id)} do?" for view in ready[:1]]
    for view in ready:
        for tool in view.catalog.tools:
            is_usable = not tool.problem and not any(p.required for p in tool.parameters)
            if is_usable and _HARMLESS.fullmatch(tool.name):
                words.append(f"use the {one_line(tool.name)} tool of {one_line(view.id)}")
                break
    return words[:MAX_EXAMPLES]


def _faint(text: str) -> Content:
    return Content.styled(text, "$text-muted")


def _key_line(line: tuple[str, str]) -> Content:
    key, text = line
    return Content.assemble((f"  {key:<8}", "$accent"), (text, "$text-muted"))


def _question(words: str) -> Content:
    """Write that a question waits; a click opens it."""
    style = Style.from_meta({"@click": "app.open_question"})
    return Content.styled(words, "$text-warning").stylize(style)


class WorkingLine(HintLine):
    """What the running turn is doing, or that a question waits; else a hint or an empty row.

    Attributes:
        waiting: That a question waits, shown in place of everything else.
        elsewhere: That other conversations ask, shown first.
        hint: What is shown while nothing runs.
    """

    waiting = reactive("")
    elsewhere = reactive("")
    hint = reactive("")

    def __init__(self) -> None:
        super().__init__()
        self._turn: TurnState | None = None
        self._queued = 0
        self._servers = ""
        self._is_asking = False
        self._timer: Timer | None = None

    def show(self, turn: TurnState | None, queued: int, servers: str, is_asking: bool) -> None:
        """Show the running turn, the number of queued messages, and what is waited for."""
        self._turn = turn
        self._is_asking = is_asking
        self._queued = queued
        self._servers = servers
        if turn is not None and self._timer is None:
            self._timer = self.set_interval(1, self.refresh)
        elif turn is None and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.refresh()

    def line(self) -> Content:
        if self.waiting:
            return _question(self.waiting)
        elsewhere = [_question(self.elsewhere)] if self.elsewhere else []
        return Content("   ").join([*elsewhere, *self._parts()])

    def _parts(self) -> list[Content]:
        if self._turn is None:
            return [Content.styled(self.hint, "$text-muted")] if self.hint else []
        if self._is_asking:
            return [Content.styled("◆ waiting for your answer", "$text-warning")]
        seconds = int(monotonic() - self._turn.started_at)
        doing = self._servers or f"{self._turn.phase} {one_line(self._turn.server or '')}".rstrip()
        if self._turn.until is not None:
            doing += f" in {max(0, ceil(self._turn.until - monotonic()))} s"
        parts = [Content.styled(f"◐ {doing}", "$text-primary")]
        if seconds >= QUIET_SECONDS and self._turn.until is None:
            parts.append(Content.styled(f"{seconds} s", "$text-muted"))
        if self._queued:
            parts.append(Content.styled(f"{self._queued} queued", "$text-warning"))
        if self._servers:
            parts.append(key_hints(("^S", "sends without")))
        elif self._turn.until is not None:
            parts.append(key_hints(("^S", "now"), ("^N", "give up")))
        parts.append(key_hints(("Esc", "stops")))
        if self._queued:
            parts.append(key_hints(("Alt+↑", "takes the last back")))
        return parts
