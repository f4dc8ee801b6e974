"""The dialog that lists things: what it shows of them, and what keys do with one."""

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import ClassVar, Final, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.types import CSSPathType

from tui.ui import keymap
from tui.ui.questions.arming import REPEAT_SECONDS, SecondPress
from tui.ui.themes import STYLES
from tui.ui.widgets.key_bar import HintLine, key_hints
from tui.ui.widgets.lists.filter_list import DialogFilterList, FilterList, ListEntry
from tui.ui.widgets.text.plain import PlainText, one_line

MAX_TITLE: Final = 100
"""Characters of the viewer's title."""

DIALOG_STYLES: Final[list[str | PurePath]] = [STYLES / "dialogs.tcss", STYLES / "forms.tcss"]
"""Loaded with the first dialog, so that the first frame does not wait for it."""

T = TypeVar("T")

Words = Sequence[tuple[str, str]]
"""Keys, or the ids of their bindings, and what they do."""


class Dialog(ModalScreen[None]):
    """A modal screen that Esc closes."""

    CSS_PATH: ClassVar[CSSPathType | None] = DIALOG_STYLES
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(
        only=(
            *keymap.HELP,
            *("dialog.close", "dialog.up", "dialog.down", "dialog.first", "dialog.last"),
        )
    )

    def action_close(self) -> None:
        self.dismiss()

    async def action_scroll(self, way: str) -> None:
        """Scroll what has the focus."""
        await self.app.run_action(f"scroll_{way}", self.focused)


class ListDialog(Dialog, Generic[T]):
    """Entries in a frame; Enter or clicks choose the one under the cursor.

    Attributes:
        KIND: The class of the frame; a ``choice`` has no filter.
        HINTS: What the border says of the keys.
        KEYS: What the line at the bottom says instead.

    Args:
        title: The title of the frame.
        listed: The entries.
        use: What is done with the chosen one after the dialog has closed.
        head: The line above the list.
    """

    KIND: ClassVar[str] = "pick"
    HINTS: ClassVar[Words] = (("dialog.choose", "choose"), ("dialog.close", "close"))
    KEYS: ClassVar[Words] = ()
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(only=("dialog.choose",))

    about = query_one(".about > PlainText", PlainText)
    hint = query_one(HintLine)

    def __init__(
        self,
        title: str,
        listed: FilterList[T],
        use: Callable[[T], object] = lambda _: None,
        *,
        head: str = "",
    ) -> None:
        super().__init__()
        self._subject = title
        self.listed = listed
        self._use = use
        self._head = PlainText(head, classes="head")
        self._head.display = bool(head)
        self._second: SecondPress[tuple[str, object]] = SecondPress()
        self._message_timer: Timer | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes=f"dialog {self.KIND}") as frame:
            frame.border_title = Content(one_line(self._subject))
            yield self._head
            yield self.listed
            with VerticalScroll(classes="about"):
                yield PlainText()
            if self.KEYS:
                yield HintLine(classes="keys")
            else:
                frame.border_subtitle = key_hints(self.app, *self.HINTS)

    def on_mount(self) -> None:
        self.call_after_refresh(self.show_keys)

    async def action_choose(self) -> None:
        if (item := self.listed.current) is not None:
            await self.choose(item)

    async def choose(self, item: T) -> None:
        """Use the entry under the cursor."""
        self.dismiss()
        self.app.call_later(self._use, item)

    def moved(self, item: T | None) -> None:
        """Follow the cursor to an entry, or to none."""

    def show_head(self, content: str | Content) -> None:
        """Show a line above the list, or none."""
        self._head.update(content)
        self._head.display = bool(content)

    def tell(self, content: Content | None) -> None:
        """Show more of an entry below the list; None takes its place away."""
        self.about.update(content or Content())
        self.set_class(content is not None, "-about")

    def is_again(self, binding_id: str, what: object, words: str) -> bool:
        """Tell whether a key was pressed twice for the same; if not, say what the second does."""
        if self._second.take((binding_id, what)):
            self.show_keys()
            return True
        self._second.expect((binding_id, what))
        self.say(f"Press {self._key(binding_id)} again to {words}")
        return False

    def say(self, text: str) -> None:
        """Show a message in place of the keys, for as long as a second press counts."""
        self.hint.update(Content.styled(one_line(text), "$text-warning"))
        if self._message_timer is not None:
            self._message_timer.stop()
        self._message_timer = self.set_timer(REPEAT_SECONDS, self.show_keys)

    def show_keys(self) -> None:
        """Name the keys in the line at the bottom, if there is one."""
        if self.KEYS:
            self.hint.update(key_hints(self.app, *self.KEYS))

    def _key(self, binding_id: str) -> str:
        return keymap.key_of(self.app, self.active_bindings, binding_id)

    @on(FilterList.Chosen)
    async def _on_chosen(self, event: FilterList.Chosen) -> None:
        event.stop()
        await self.action_choose()

    @on(FilterList.Moved)
    def _on_moved(self, event: FilterList.Moved) -> None:
        event.stop()
        self.moved(self.listed.current)


class ChoiceDialog(ListDialog[T]):
    """A few entries without a filter; a click chooses one.

    Args:
        title: The title of the frame.
        entries: The entries.
        use: What is done with the chosen one after the dialog has closed.
        at: The one under the cursor at first.
    """

    KIND = "choice"
    AUTO_FOCUS = "RowList"

    def __init__(
        self, title: str, entries: Sequence[ListEntry[T]], use: Callable[[T], object], at: T
    ) -> None:
        super().__init__(title, DialogFilterList("entry", entries=entries, clicks=1), use)
        self._at = at

    def on_mount(self) -> None:
        self.listed.select(self._at)
