"""The dialog that picks one of several texts, such as an earlier message."""

from collections.abc import Sequence
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.getters import query_one
from textual.screen import ModalScreen

from tui.ui import keymap
from tui.ui.screens.dialog import DIALOG_STYLES
from tui.ui.widgets.key_bar import key_hints
from tui.ui.widgets.lists.filter_list import DialogFilterList, FilterList, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.plain import one_line

MAX_SHOWN: Final = 300
"""Characters of a text that its row shows."""

MAX_SEARCHED: Final = 2_000
"""Characters of a text that are searched."""


class _PickList(DialogFilterList[int]):
    """The texts that match."""


class PickScreen(ModalScreen[int | None]):
    """Let the user pick a text, narrowed by what is typed; returns its index.

    Args:
        title: What is picked.
        noun: The word for one text.
        texts: The texts, the likeliest first.
        notes: A word on each, at the end of its row; may be empty.
        query: What narrows them at first.
    """

    CSS_PATH = DIALOG_STYLES
    BINDINGS = keymap.bindings(only=("dialog.close",))

    found = query_one(_PickList)

    def __init__(
        self,
        title: str,
        noun: str,
        texts: Sequence[str],
        notes: Sequence[str] = (),
        query: str = "",
    ) -> None:
        super().__init__()
        self._title = title
        self._noun = noun
        self._query = query
        self._entries = [
            _entry(index, text, notes[index] if notes else "") for index, text in enumerate(texts)
        ]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog pick") as frame:
            frame.border_title = Content(one_line(self._title))
            frame.border_subtitle = key_hints(("↵", "choose"), ("Esc", "close"))
            yield _PickList(self._noun, f"There is no {self._noun} yet.")

    def on_mount(self) -> None:
        self.found.set_entries(self._entries)
        self.found.set_filter(self._query)
        self.found.line.focus()

    def action_close(self) -> None:
        self.dismiss(None)

    @on(FilterList.Chosen)
    def _on_chosen(self, event: FilterList.Chosen) -> None:
        event.stop()
        self.dismiss(self.found.current)


def _entry(index: int, text: str, note: str) -> ListEntry[int]:
    row = Row("", one_line(text[:MAX_SHOWN]), one_line(note))
    return ListEntry(index, row, text[:MAX_SEARCHED].lower())
