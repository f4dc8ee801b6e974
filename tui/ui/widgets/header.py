"""The header line: the model, the folder, servers, tokens and service."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from sys import maxsize
from typing import Final

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from tui.model.chat import BackendKind, Usage
from tui.model.consent import UNASKED_GRANT
from tui.model.trust import FolderTrust
from tui.store.selectors import Discovery, discovery, ready_count, waiting_text
from tui.store.state import AppState
from tui.ui.bridge import StoreBridge
from tui.ui.widgets.text.plain import count, fit_end, one_line

NAME: Final = "gemdeck"
"""The app's title; never text from outside."""

UNASKED: Final = "tools run without asking"
"""Shown in the header while gemdeck runs with ``--yolo``."""

GAP: Final = 3
"""Cells between two fields."""

MIN_FOLDER: Final = 10
"""Cells of the folder's path, cut on the left, below which it is dropped."""

_MUTED: Final = "$foreground 60%"

_NOT_SHOWN: Final = frozenset({FolderTrust.UNKNOWN, FolderTrust.NOTHING_TO_TRUST})
"""Trust that the header does not mention."""

_WARNED_OF: Final = frozenset({FolderTrust.UNTRUSTED, FolderTrust.CHANGED})
"""Trust that needs the user's attention."""

Field = tuple[tuple[str, str], ...]
"""One field of the line: pairs of text and style."""

_NAME_FIELD: Final[Field] = ((NAME, "bold"),)


def trust_tone(trust: FolderTrust) -> str:
    """Return the style of the word for a folder's trust."""
    return "$text-warning" if trust in _WARNED_OF else _MUTED


@dataclass(frozen=True, slots=True)
class HeaderView:
    """The part of the state that the header shows."""

    model: str
    workspace: str
    trust: FolderTrust
    backend: BackendKind
    ready: int
    meant: int
    discovery: Discovery
    usage: Usage
    waiting: str = ""
    unasked: bool = False


def header_view(state: AppState) -> HeaderView:
    """Select what the header shows."""
    ready, meant = ready_count(state)
    return HeaderView(
        model=state.model.name,
        workspace=state.workspace,
        trust=state.folder_trust,
        unasked=any(grant.id == UNASKED_GRANT for grant in state.grants),
        backend=state.model.backend,
        ready=ready,
        meant=meant,
        discovery=discovery(state),
        waiting=waiting_text(state),
        usage=state.conversation.usage,
    )


def header_content(view: HeaderView, width: int) -> Content:
    """Lay the header out in one line: model and folder on the left, numbers on the right.

    If it is too narrow, the names of starting servers are dropped first, then the start of the
    path, then its trust, then the path, then the model. A folder that needs attention keeps its
    trust longer than its path.
    """
    right = _right(view, one_line(view.waiting))
    if _width(next(_lefts(view, maxsize))) + _width(right) + GAP > width:
        right = _right(view)
    room = width - _width(right) - GAP
    left = next((fields for fields in _lefts(view, room) if _width(fields) <= room), [_NAME_FIELD])
    space = max(1, width - _width(left) - _width(right))
    return Content.assemble(_joined(left), " " * space, _joined(right))


def _lefts(view: HeaderView, room: int) -> Iterator[list[Field]]:
    """Yield the variants of the left side, longest first, with the path cut to the room."""
    path = one_line(view.workspace)
    word = "" if view.trust in _NOT_SHOWN else view.trust.value
    tone = trust_tone(view.trust)
    warned = view.trust in _WARNED_OF
    named: list[Field] = [_NAME_FIELD, *([((one_line(view.model), ""),)] if view.model else [])]

    def with_path(fields: list[Field], note: str) -> list[Field]:
        left = room - _width(fields) - GAP - cell_len(note)
        return [*fields, ((fit_end(path, max(MIN_FOLDER, left)), _MUTED), (note, tone))]

    note = f" ({word})" if word else ""
    if path:
        yield with_path(named, note)
    if warned:
        yield [*named, ((word, tone),)]
    if path:
        yield with_path([_NAME_FIELD], note) if warned else with_path(named, "")
    if warned:
        yield [_NAME_FIELD, ((word, tone),)]
    yield named


def _right(view: HeaderView, waiting: str = "") -> list[Field]:
    tokens = count(view.usage.context)
    if view.usage.context_limit:
        tokens += f"/{count(view.usage.context_limit)}"
    fields: list[Field] = [
        ((f"servers {view.ready}/{view.meant}", ""),),
        ((f"tokens {tokens}", ""),),
        ((view.backend.value, _MUTED),),
    ]
    if view.discovery is Discovery.IN_PROGRESS:
        fields.insert(0, ((f"◐ {waiting or 'starting'}", "$text-warning"),))
    if view.unasked:
        fields.insert(0, ((UNASKED, "$text-error bold"),))
    return fields


def _width(fields: Sequence[Field]) -> int:
    texts = sum(cell_len(text) for field in fields for text, _ in field)
    return texts + GAP * max(0, len(fields) - 1)


def _joined(fields: Sequence[Field]) -> Content:
    return Content(" " * GAP).join(Content.assemble(*field) for field in fields)


class DeckHeader(Widget):
    """The header line."""

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__()
        self._bridge = bridge
        self._view = header_view(bridge.state)

    def on_mount(self) -> None:
        self._bridge.watch(self, header_view, self._show)

    def _show(self, view: HeaderView) -> None:
        self._view = view
        self.refresh()

    def render(self) -> Content:
        return header_content(self._view, self.size.width)
