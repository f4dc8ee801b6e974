"""An exchange with a server in full: as a tree, raw, over HTTP, and what the model got of it."""

import json
from itertools import islice
from typing import Final

from textual.app import ComposeResult
from textual.containers import Vertical

from tui.engine.mcp.wire.wire import Wire
from tui.model.wire.exchanges import Exchange
from tui.model.wire.frames import FrameKind, WireFrame
from tui.store.commands import Commands
from tui.ui.dialogs.viewer import ViewerScreen, Views
from tui.ui.widgets.lists.frame_rows import ARROWS, heading
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.json_tree import JsonTree
from tui.ui.widgets.text.plain import PlainText

MAX_FRAMES: Final = 200
"""Frames of an exchange that are shown in full."""

MAX_OPEN: Final = 100
"""Values in params and results up to which these are unfolded at first."""

BESIDE: Final = 100
"""Columns of the terminal from which both texts stand side by side."""


class SentAndGot(Vertical):
    """What the server sent beside what the model got."""

    def __init__(self, sent: str, got: str) -> None:
        super().__init__(classes="sent-and-got")
        self._texts = {"sent by the server": sent, "shown to the model": got}

    def compose(self) -> ComposeResult:
        self.set_class(self.app.size.width >= BESIDE, "-beside")
        for name, text in self._texts.items():
            with Vertical():
                yield PlainText(name, classes="head")
                yield FoldedText(text)


def exchange_screen(exchange: Exchange, commands: Commands) -> ViewerScreen:
    """Show an exchange."""
    wire = commands.running.wire
    head, frames = exchange.head, exchange.frames[:MAX_FRAMES]
    bodies = {one: wire.body(one.number) for one in frames}
    texts = [f"{heading(one)}\n{body.text.rstrip()}" for one, body in bodies.items() if body]
    if (more := len(exchange.frames) - MAX_FRAMES) > 0:
        texts.append(f"… {more:,} more in the export")
    # indented, so that no line of a body looks like the heading of another frame
    raw = "\n\n".join(text.replace("\n", "\n  ") for text in texts)
    values = {
        f"{ARROWS[one.direction]} {one.kind} {one.number}": body.value
        for one, body in bodies.items()
        if body is not None and body.value is not None
    }
    views: Views = [("raw", lambda: FoldedText(raw))]
    if values:
        views.insert(0, ("tree", lambda: JsonTree(values, MAX_OPEN)))
    got = wire.model_got(head.conversation, head.call) if head.call else ""
    if got and exchange.answer is not None:
        sent = _pretty(wire, exchange.answer)
        views.append(("server and model", lambda: SentAndGot(sent, got)))
    if http := _over_http(wire, exchange):
        views.append(("HTTP", lambda: FoldedText(http)))
    title = " · ".join(filter(None, (head.server, head.method or head.kind.value, head.target)))
    return ViewerScreen(commands, title, raw, views=views)


def _pretty(wire: Wire, answer: WireFrame) -> str:
    if (body := wire.body(answer.number)) is None:
        return "No longer in the log."
    value = body.value.get("result", body.value) if isinstance(body.value, dict) else None
    return body.text if value is None else json.dumps(value, indent=2, ensure_ascii=False)


def _over_http(wire: Wire, exchange: Exchange) -> str:
    """Tell of the HTTP responses to what was posted for it."""
    numbers = {one.number for one in exchange.frames}
    found = (
        one
        for one in wire.frames()
        if one.kind is FrameKind.HTTP and (one.pair in numbers or one.number in numbers)
    )
    return "\n\n".join(map(heading, islice(found, MAX_FRAMES)))
