"""The one line at the top: which model, which folder, and how things stand."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from tui.model.chat import BackendKind, Usage
from tui.store.selectors import Discovery, discovery, ready_count, waiting_text
from tui.store.state import AppState
from tui.ui.bridge import StoreBridge
from tui.ui.widgets.plain import count, one_line

NAME: Final = "gemdeck"
"""The title of the app; it never holds text from elsewhere."""

GAP: Final = 3
"""Cells between two fields."""


@dataclass(frozen=True, slots=True)
class HeaderView:
    """What the header shows of the state."""

    model: str
    workspace: str
    backend: BackendKind
    ready: int
    meant: int
    discovery: Discovery
    waiting: str
    usage: Usage


def header_view(state: AppState) -> HeaderView:
    """Take from the state what the header shows."""
    ready, meant = ready_count(state)
    return HeaderView(
        model=state.model.name,
        workspace=state.workspace,
        backend=state.model.backend,
        ready=ready,
        meant=meant,
        discovery=discovery(state),
        waiting=waiting_text(state),
        usage=state.usage,
    )


def header_content(view: HeaderView, width: int) -> Content:
    """Lay the header out in one line: who on the left, numbers on the right.

    Where it gets narrow the names of awaited servers go first, then the folder, then the model.
    """
    left: list[tuple[str, str]] = [(NAME, "bold")]
    if view.model:
        left.append((one_line(view.model), ""))
    if view.workspace:
        left.append((one_line(view.workspace), "$foreground 60%"))
    right = _right(view, one_line(view.waiting))
    if _width(left) + _width(right) + GAP > width:
        right = _right(view)
    while len(left) > 1 and _width(left) + _width(right) + GAP > width:
        left.pop()
    space = max(1, width - _width(left) - _width(right))
    return Content.assemble(_joined(left), " " * space, _joined(right))


def _right(view: HeaderView, waiting: str = "") -> list[tuple[str, str]]:
    tokens = count(view.usage.prompt)
    if view.usage.context_limit:
        tokens += f"/{count(view.usage.context_limit)}"
    fields = [
        (f"servers {view.ready}/{view.meant}", ""),
        (f"tokens {tokens}", ""),
        (view.backend.value, "$foreground 60%"),
    ]
    if view.discovery is Discovery.IN_PROGRESS:
        fields.insert(0, (f"◐ {waiting or 'starting'}", "$text-warning"))
    return fields


def _width(fields: Sequence[tuple[str, str]]) -> int:
    return sum(cell_len(text) for text, _ in fields) + GAP * max(0, len(fields) - 1)


def _joined(fields: Sequence[tuple[str, str]]) -> Content:
    return Content(" " * GAP).join(Content.styled(text, style) for text, style in fields)


class DeckHeader(Widget):
    """The header line."""

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__()
        self._bridge = bridge
        self._view = header_view(bridge.state)

    def on_mount(self) -> None:
        """Follow the state."""
        self._bridge.watch(self, header_view, self._show)

    def _show(self, view: HeaderView) -> None:
        self._view = view
        self.refresh()

    def render(self) -> Content:
        """Draw the line at the width there is."""
        return header_content(self._view, self.size.width)
