"""The frame of every dialog, with its keys, and those that tell or list things."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, ClassVar, Final, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.message import Message
from textual.types import CSSPathType
from textual.widget import Widget

from tui.store.state import AppState
from tui.text import clip
from tui.ui import keymap
from tui.ui.bridge import Delay, StoreBridge
from tui.ui.questions.arming import REPEAT_SECONDS, SecondPress
from tui.ui.themes import STYLES
from tui.ui.widgets.key_bar import keys_of
from tui.ui.widgets.lists.filter_list import DialogFilterList, FilterList, ListEntry
from tui.ui.widgets.overlay import Overlay
from tui.ui.widgets.text.plain import PlainText, one_line

DIALOG_STYLES: Final[list[str | PurePath]] = [STYLES / "dialogs.tcss", STYLES / "forms.tcss"]
"""Loaded with the first dialog, so that the first frame does not wait for it."""

T = TypeVar("T")


class Dialog(Overlay[Any]):
    """A frame that Esc closes, with its title above and its keys below.

    Attributes:
        KIND: The classes of the frame.
        FRAME: The container that the frame is.
        enter: What Enter does where no key of the dialog says so.

    Args:
        title: The title of the frame.
        note: A muted addition to it.
    """

    KIND: ClassVar[str] = ""
    FRAME: ClassVar[type[Widget]] = Vertical
    enter: str = ""
    CSS_PATH: ClassVar[CSSPathType | None] = DIALOG_STYLES
    BINDINGS = keymap.bindings(
        *keymap.HELP, "dialog.close", "dialog.up", "dialog.down", "dialog.first", "dialog.last"
    )

    frame = query_one(".dialog", Widget)

    def __init__(self, title: str, note: str = "") -> None:
        super().__init__()
        note = f"  {note}" if note else ""
        self._heading = clip(one_line(title), limit=100), (note, "not bold $text-muted")
        self._said = ""
        self._silence = Delay(self)
        self._second: SecondPress[tuple[str, object]] = SecondPress()

    def compose(self) -> ComposeResult:
        with self.FRAME(classes=f"dialog {self.KIND}") as frame:
            frame.border_title = Content.assemble(*self._heading)
            yield from self.compose_body()

    @abstractmethod
    def compose_body(self) -> ComposeResult:
        """Compose what the frame holds."""

    def on_mount(self) -> None:
        self.bindings_updated_signal.subscribe(self, lambda _: self.show_keys())

    def on_resize(self) -> None:
        self.call_after_refresh(self.say, "")  # what is in sight has changed

    def show_keys(self) -> None:
        """Name the keys that do something now, or say what there is to say."""
        if not self.query(".dialog"):
            return  # the size of the terminal changed while it opens or closes
        keys = keys_of(self, self.frame, self.enter)
        said = Content.styled(self._said, "$text-warning")
        self.frame.border_subtitle = said if self._said else keys

    def say(self, text: str) -> None:
        """Show a message in place of the keys, for as long as a second press counts."""
        self._said = one_line(text)
        self.show_keys()
        self._silence.stop()
        if text:
            self._silence.begin(REPEAT_SECONDS, partial(self.say, ""))

    def is_again(self, binding_id: str, what: object, words: str) -> bool:
        """Tell whether a key was pressed twice for the same; if not, say what the second does."""
        if self._second.is_again((binding_id, what)):
            self.say("")
            return True
        key = keymap.key_of(self.app, self.active_bindings, binding_id)
        self.say(f"Press {key} again to {words}")
        return False

    def leave_for(self, message: Message) -> None:
        """Close, and ask the main screen for something."""
        deck = self.app.screen_stack[0]
        self.dismiss()
        deck.post_message(message)

    def dismiss(self, result: Any = None) -> AwaitComplete:  # noqa: ANN401 - any dialog's
        """Close once, and not from below another dialog: Textual would close the one on top."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def action_close(self) -> None:
        self.dismiss()

    async def action_scroll(self, way: str) -> None:
        """Scroll what has the focus."""
        await self.app.run_action(f"scroll_{way}", self.focused)


class DetailsScreen(Dialog):
    """Show a part of the state as text and keep it up to date.

    Args:
        title: The title of the frame.
        bridge: Provides the state.
        describe: Writes it.
    """

    FRAME = VerticalScroll

    def __init__(
        self, title: str, bridge: StoreBridge, describe: Callable[[AppState], Content]
    ) -> None:
        super().__init__(title)
        self._bridge = bridge
        self._describe = describe

    def compose_body(self) -> ComposeResult:
        yield PlainText()

    def on_mount(self) -> None:
        self._bridge.watch(self, self._describe, self.query_one(PlainText).update)


class ListDialog(Dialog, Generic[T]):
    """Entries in a frame; Enter or clicks choose the one under the cursor.

    One of the kind ``choice`` has no filter.

    Args:
        title: The title of the frame.
        listed: The entries.
        use: What is done with the chosen one after the dialog has closed.
        head: The line above the list.
    """

    KIND = "pick"
    enter = "choose"
    BINDINGS = keymap.bindings("dialog.choose")

    about = query_one(".about > PlainText", PlainText)

    def __init__(
        self, title: str, listed: FilterList[T], use: Callable[[T], object] = lambda _: None
    ) -> None:
        super().__init__(title)
        self.listed = listed
        self._use = use
        self.head = PlainText(classes="head")
        self.head.display = False

    def compose_body(self) -> ComposeResult:
        yield self.head
        yield self.listed
        with VerticalScroll(classes="about"):
            yield PlainText()

    @on(FilterList.Chosen)
    async def action_choose(self) -> None:
        if (item := self.listed.current) is not None:
            await self.choose(item)

    async def choose(self, item: T) -> None:
        """Use the entry under the cursor, once."""
        if self.is_active:
            self.dismiss()
            self.app.call_later(self._use, item)

    def moved(self, item: T | None) -> None:
        """Follow the cursor to an entry, or to none."""

    def tell(self, content: Content | None) -> None:
        """Show more of an entry below the list; None takes its place away."""
        self.about.update(content or Content())
        self.set_class(content is not None, "-about")

    @on(FilterList.Moved)
    def _on_moved(self) -> None:
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
