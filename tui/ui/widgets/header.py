"""The header line: the model and its service, the folder, servers and tokens."""

from collections.abc import Iterator, Sequence
from sys import maxsize
from typing import Final

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from tui.model.servers import ServerStatus
from tui.model.trust import FolderTrust
from tui.store.selectors import server_counts
from tui.store.state import AppState
from tui.ui.bridge import StoreBridge
from tui.ui.widgets.status import LOOKS, Tone
from tui.ui.widgets.text.plain import count, fit_end, one_line

NAME: Final = "gemdeck"
"""The app's title; never text from outside."""

UNASKED: Final = "tools run without asking"
"""Shown in the header while gemdeck runs with ``--yolo``."""

GAP: Final = 3
"""Cells between two fields."""

STATUSES: Final = (len(ServerStatus), 4, 3, 2)
"""Statuses of servers that are counted: all, or fewer the shorter space is."""

MIN_FOLDER: Final = 10
"""Cells of the folder's path, cut on the left, below which it is dropped."""

_MUTED: Final = "$text-muted"

_NOT_SHOWN: Final = frozenset({FolderTrust.UNKNOWN, FolderTrust.NOTHING_TO_TRUST})
"""Trust that the header does not mention."""

_WARNED_OF: Final = frozenset({FolderTrust.UNTRUSTED, FolderTrust.CHANGED})
"""Trust that needs the user's attention."""

_TONES: Final = {
    Tone.GOOD: "",
    Tone.BUSY: "$text-warning",
    Tone.OFF: _MUTED,
    Tone.BAD: "$text-error",
}

Field = tuple[tuple[str, str], ...]
"""One field of the line: pairs of text and style."""

_NAME_FIELD: Final[Field] = ((NAME, "bold"),)


def trust_tone(trust: FolderTrust) -> str:
    """Return the style of the word for a folder's trust."""
    return "$text-warning" if trust in _WARNED_OF else _MUTED


def _parts(state: AppState) -> object:
    """Select what the header is made of."""
    place = state.workspace, state.branch, state.folder_trust, state.configured
    numbers = state.conversation.usage, state.cost
    servers = [(view.status, view.runs_outside) for view in state.servers]
    return *place, *numbers, servers, state.grants, state.model, state.options


def header_content(state: AppState, width: int) -> Content:
    """Lay the header out in one line: model and folder on the left, numbers on the right.

    If it is too narrow, the limit of tokens, the cost and the rarer statuses of servers are
    dropped first, then the branch and the start of the path, then its trust, then the path, then
    the model. A folder that needs attention keeps its trust longer than its path.
    """
    whole = _width(next(_lefts(state, maxsize))) + GAP
    rights = [_right(state, most) for most in STATUSES]
    right = next((fields for fields in rights if whole + _width(fields) <= width), rights[-1])
    room = width - _width(right) - GAP
    left = next((fields for fields in _lefts(state, room) if _width(fields) <= room), [_NAME_FIELD])
    space = max(1, width - _width(left) - _width(right))
    return Content.assemble(_joined(left), " " * space, _joined(right))


def _lefts(state: AppState, room: int) -> Iterator[list[Field]]:
    """Yield the variants of the left side, longest first, with the path cut to the room."""
    path, trust = one_line(state.workspace), state.folder_trust
    where = "servers outside " if any(view.runs_outside for view in state.servers) else ""
    word = "" if trust in _NOT_SHOWN else trust.value
    tone, warned = trust_tone(trust), trust in _WARNED_OF
    named: list[Field] = [_NAME_FIELD, *([_model(state)] if state.model.name else [])]

    def with_path(fields: list[Field], note: str, branch: str = "") -> list[Field]:
        left = room - _width(fields) - GAP - sum(map(cell_len, (where, note, branch)))
        shown = path if branch else fit_end(path, max(MIN_FOLDER, left))
        return [*fields, ((where, ""), (shown, _MUTED), (branch, ""), (note, tone))]

    note = f" ({word})" if word else ""
    if path and state.branch:
        yield with_path(named, note, f" {one_line(state.branch)}")
    if path:
        yield with_path(named, note)
    if warned:
        yield [*named, ((word, tone),)]
    if path:
        yield with_path([_NAME_FIELD], note) if warned else with_path(named, "")
    if warned:
        yield [_NAME_FIELD, ((word, tone),)]
    yield named


def _model(state: AppState) -> Field:
    """Return the model, its service if the name does not tell it, and the profile."""
    model, service = one_line(state.model.name), one_line(state.model.backend)
    told = service.casefold() in model.casefold()
    profile = f" · {one_line(state.options.profile)}" if state.options.profile else ""
    return ((model, ""), ("" if told else f" {service}", _MUTED), (profile, ""))


def _right(state: AppState, most: int) -> list[Field]:
    usage = state.conversation.usage
    limit = usage.context_limit
    of_limit = f" of {count(limit)}" if limit and most == STATUSES[0] else ""
    cost = f" · {state.cost}" if state.cost and most == STATUSES[0] else ""
    fields: list[Field] = [
        _servers(state, most),
        ((f"{count(usage.context)}{of_limit} tokens{cost}", _MUTED),),
    ]
    if any(grant.is_unasked for grant in state.grants):
        fields.insert(0, ((UNASKED, "$text-error bold"),))
    return fields


def _servers(state: AppState, most: int) -> Field:
    """Return the numbers of servers by status, at most so many and the number of the others."""
    if not state.configured:
        return (("loading settings", _MUTED),)
    if not (servers := server_counts(state)):
        return (("no servers", _MUTED),)
    parts: list[tuple[str, str]] = []
    for status, number in servers[:most]:
        parts += [(" · ", _MUTED), (f"{number} {status.value}", _TONES[LOOKS[status][1]])]
    others = sum(number for _, number in servers[most:])
    return (*parts[1:], (f" · +{others}" if others else "", _MUTED))


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

    def on_mount(self) -> None:
        self._bridge.watch(self, _parts, lambda _: self.refresh())

    def render(self) -> Content:
        return header_content(self._bridge.state, self.size.width)
