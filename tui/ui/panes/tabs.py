"""The tabs of the conversations, in the upper border of the chat once there are several."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.cells import cell_len
from textual.content import Content
from textual.style import Style

from tui.model.chat import ConversationId
from tui.model.frozen import Frozen
from tui.store.selectors import asking
from tui.store.state import AppState
from tui.ui.widgets.text.plain import fit, one_line

NEW: Final = "new"
"""The title of a conversation in which nothing was said yet."""

GAP: Final = " │ "
"""What stands between two tabs."""

ENDS: Final = ("◂ ", " ▸")
"""What says that there are more tabs on the left, or on the right."""

LENGTHS: Final = (60, *range(40, 5, -1), 0)
"""Cells of a title at most, the first that lets all tabs fit."""

CURRENT: Final = 16
"""Cells that the title of the current one keeps, but where not even numbers fit."""

_MARKS: Final = {
    "asks": ("◆", "asks", "$text-warning", "a question is waiting"),
    "runs": ("◐", "runs", "$text-primary", "a turn is running"),
    "news": ("●", "done", "$text-success", "a turn has ended"),
}

_SIGNS: Final = dict.fromkeys(map(ord, GAP + "◆◐●"), " ")
"""What no title can show, since it says where tabs end and how they stand."""


class Tab(Frozen):
    """What the tab of a conversation says.

    Attributes:
        key: The conversation.
        number: Its number, from 1 on.
        title: The words that name it.
        state: ``asks``, ``runs``, ``news``, or an empty string.
        is_current: Whether it is on the screen.
        model: The model that answers in it, and its profile.
    """

    key: ConversationId
    number: int
    title: str
    state: str
    is_current: bool
    model: str

    @property
    def name(self) -> str:
        return f"{self.number} {self.title}"

    @property
    def doing(self) -> str:
        return _MARKS[self.state][3] if self.state else ""

    @property
    def whole(self) -> str:
        """All of it in words."""
        return " · ".join(filter(None, (self.name, self.model, self.doing)))

    def words(self, cells: int) -> str:
        """Return the number, and the title cut to so many cells."""
        whole = cell_len(self.title) <= cells
        return f"{self.number} {self.title if whole else fit(self.title, cells)}".rstrip()

    def label(self, cells: int, *, wordy: bool) -> Content:
        """Return it with so many cells of its title, and with the word for its mark or not.

        A click shows its conversation.
        """
        parts = [(self.words(cells), "bold underline" if self.is_current else "$text-muted")]
        if self.state:
            glyph, word, tone, _ = _MARKS[self.state]
            parts += [(" ", ""), (f"{glyph} {word}" if wordy else glyph, tone)]
        click = Style.from_meta({"@click": f"screen.tab({self.number})"})
        return Content.assemble(*parts).stylize(click)


def tabs_of(state: AppState) -> tuple[Tab, ...]:
    """Return the tabs of the open conversations, in their order."""
    asks = asking(state)
    return tuple(
        Tab(
            key,
            number,
            one_line(one.title).translate(_SIGNS) or NEW,
            "asks" if key in asks else "runs" if one.turn is not None else "news" * one.has_news,
            key == state.current,
            one_line(" · ".join(filter(None, (one.model.name, one.options.profile)))),
        )
        for number, (key, one) in enumerate(state.conversations.items(), 1)
    )


def shown_tabs(state: AppState) -> tuple[Tab, ...]:
    """Return the tabs that are shown: none for a single conversation."""
    return tabs_of(state) if len(state.conversations) > 1 else ()


def tab_line(tabs: Sequence[Tab], width: int) -> Content:
    """Lay the tabs out in one line: with words for their marks, else shorter and without.

    Where not even their numbers fit, those around the current one are shown.
    """
    wordy = _joined(dict.fromkeys(tabs, LENGTHS[0]), wordy=True)
    if wordy.cell_length <= width:
        return wordy
    for length in LENGTHS:
        line = _joined({tab: max(length, CURRENT * tab.is_current) for tab in tabs})
        if line.cell_length <= width:
            return line
    return _around_current(tabs, width)


def _around_current(tabs: Sequence[Tab], width: int) -> Content:
    at = next(i for i, tab in enumerate(tabs) if tab.is_current)
    shown = Content()
    for reach in range(len(tabs)):
        first, last = max(0, at - reach), min(len(tabs) - 1, at + reach)
        before, after = ENDS[0] * (first > 0), ENDS[1] * (last < len(tabs) - 1)
        line = _joined(dict.fromkeys(tabs[first : last + 1], 0), before=before, after=after)
        if reach and line.cell_length > width:
            break
        shown = line
    return shown


def _joined(
    cells: Mapping[Tab, int], *, wordy: bool = False, before: str = "", after: str = ""
) -> Content:
    muted = "$text-muted"
    labels = [tab.label(length, wordy=wordy) for tab, length in cells.items()]
    line = Content.styled(GAP, muted).join(labels)
    return Content.assemble((before, muted), line, (after, muted))


def asking_elsewhere(state: AppState) -> str:
    """Say which other conversations ask, or nothing."""
    asks = [one.number for one in shown_tabs(state) if one.state == "asks" and not one.is_current]
    if len(asks) == 1:
        return f"tab {asks[0]} is waiting for you"
    return f"tabs {', '.join(map(str, asks))} are waiting for you" if asks else ""
