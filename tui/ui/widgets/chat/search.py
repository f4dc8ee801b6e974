"""The line to search the conversation in, opened below it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.getters import query_one
from textual.message import Message
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from tui.model.chat import ChatNotice, Entry, ModelText, Thought, ToolCall, TurnEnd, UserMessage
from tui.ui import keymap
from tui.ui.widgets.lists.filter_list import FilterLine
from tui.ui.widgets.text.plain import PlainText, one_line

if TYPE_CHECKING:
    from tui.ui.widgets.chat.transcript import Transcript

MAX_SHOWN = 200
"""Characters drawn of one message."""


class QueuedMessages(OptionList):
    """One row for each message that waits; hidden while there is none."""

    ALLOW_SELECT: ClassVar[bool] = False
    BINDING_GROUP_TITLE = "Queued messages"
    HELP = "They are sent one by one, each once the turn before it has ended."
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.QUEUE)

    class Taken(Message):
        """A message is wanted back, or no more."""

        def __init__(self, text: str, *, give_back: bool) -> None:
            super().__init__()
            self.text = text
            self.give_back = give_back

    class Closed(Message):
        """The user goes back to the composer."""

    def __init__(self) -> None:
        super().__init__(markup=False, compact=True)
        self._texts: Sequence[str] = ()
        self.display = False

    def show(self, texts: Sequence[str]) -> None:
        """Show these messages, the next one first."""
        at, self._texts = self.highlighted, texts
        had_focus = self.has_focus
        self.set_options(Option(_row(text)) for text in texts)
        self.highlighted = min(at if at is not None else len(texts), len(texts) - 1)
        self.display = bool(texts)
        if had_focus and not texts:
            self.post_message(self.Closed())

    def on_focus(self) -> None:
        self.highlighted = len(self._texts) - 1

    def action_take_back(self) -> None:
        self._take(give_back=True)

    def action_drop(self) -> None:
        self._take(give_back=False)

    def action_close(self) -> None:
        self.post_message(self.Closed())

    def _take(self, *, give_back: bool) -> None:
        if self.highlighted is not None:
            self.post_message(self.Taken(self._texts[self.highlighted], give_back=give_back))


def _row(text: str) -> Content:
    return Content(f"  · {one_line(text[:MAX_SHOWN])}")


class SearchWords(FilterLine, inherit_bindings=False):
    """What is searched for. Up and Down are left to the line."""

    BINDINGS: ClassVar[list[BindingType]] = [*Input.BINDINGS]


class SearchLine(Horizontal):
    """Search as one types; the newest entry with the words comes first.

    Args:
        transcript: The conversation.
    """

    BINDING_GROUP_TITLE = "Search"
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.SEARCH)

    words = query_one(SearchWords)
    count = query_one(PlainText)

    def __init__(self, transcript: "Transcript") -> None:
        super().__init__()
        self._transcript = transcript

    def compose(self) -> ComposeResult:
        yield SearchWords("search the conversation")
        yield PlainText()

    def on_mount(self) -> None:
        self.take_focus()

    def take_focus(self) -> None:
        self.words.focus()

    def action_close(self) -> None:
        """Close the line; the cursor stays where the search led."""
        self._transcript.mark(None)
        self._transcript.focus()
        self.remove()

    def action_step(self, step: int) -> None:
        self._find(step)

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        event.stop()
        self._find(0)

    @on(Input.Submitted)
    def _go_on(self, event: Input.Submitted) -> None:
        event.stop()
        self._find(-1)

    def _find(self, step: int) -> None:
        words = self.words.value.strip()
        number, total = self._transcript.find(words, step)
        said = f"{number:,} of {total:,}" if total else "not found" if words else ""
        self.count.update(said)


def searched_text(entry: Entry) -> str:
    """Return what is searched of an entry."""
    match entry:
        case UserMessage(text=text):
            return text
        case ModelText(text=text) | Thought(text=text):
            return text.replace("**", "").replace("`", "")  # as it is drawn
        case ToolCall():
            return "\n".join((entry.tool, entry.server, entry.arguments, entry.result))
        case ChatNotice():
            return f"{entry.text}\n{entry.advice}"
        case TurnEnd():
            return ""
