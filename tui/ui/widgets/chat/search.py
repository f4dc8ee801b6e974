"""The line to search the conversation in, opened below it."""

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.getters import query_one
from textual.widgets import Input

from tui.model.chat import ChatNotice, Entry, ModelText, Thought, ToolCall, TurnEnd, UserMessage
from tui.ui import keymap
from tui.ui.widgets.lists.filter_list import FilterLine
from tui.ui.widgets.text.plain import PlainText

if TYPE_CHECKING:  # it opens the line
    from tui.ui.widgets.chat.transcript import Transcript


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
