"""Text that a server asks the model to generate: the prompt before, and the answer after."""

from collections.abc import Iterable
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import TextArea

from tui.model.requests import Reply, ReplyAction, SamplingRequest, SamplingReview
from tui.text import counted
from tui.ui.screens.server_question import QuestionScreen, section_heading
from tui.ui.widgets.composer import TEXT_KEYS
from tui.ui.widgets.folded_text import FoldedText
from tui.ui.widgets.plain import one_line

MAX_EDITABLE: Final = 20_000
"""Characters of a text that can be edited; a longer one is shown whole, to read."""

MAX_EDITORS: Final = 20
"""Texts of one request that can be edited; further ones are shown whole, to read."""


class _Editor(TextArea, inherit_bindings=False):
    """A text area that leaves Tab to move on."""

    BINDINGS: ClassVar[list[BindingType]] = TEXT_KEYS

    def __init__(self, text: str) -> None:
        super().__init__(text, soft_wrap=True, show_line_numbers=False, highlight_cursor_line=False)
        self.tab_behavior = "focus"
        self.cursor_blink = False  # a blink is a repaint twice a second, for ever


class EditedText(Vertical):
    """A text under a heading, to edit or to read.

    Args:
        title: gemdeck's own word on what it is.
        text: The text.
        editable: Whether it may be changed.
    """

    def __init__(self, title: str, text: str, *, editable: bool) -> None:
        super().__init__(classes="edited")
        self._title = title
        self._text = text
        self._editor = _Editor(text) if editable and len(text) <= MAX_EDITABLE else None
        self._begun_with = self._editor.text if self._editor is not None else text

    def compose(self) -> ComposeResult:
        """Compose the heading and the text."""
        mode = "can be edited" if self._editor is not None else "to read"
        yield section_heading(f"{self._title} · {mode}")
        yield self._editor or FoldedText(self._text, wrap=True)

    @property
    def text(self) -> str:
        """The text as it stands; untouched, it is exactly what it was."""
        if self._editor is None or self._editor.text == self._begun_with:
            return self._text
        return self._editor.text


class SamplingScreen(QuestionScreen[SamplingRequest]):
    """Shows the whole prompt a server wants answered; it can be changed before it goes out."""

    TITLE_LINE = "A server wants to use your model"
    HELP = "A server asks the model to generate text. You may edit the prompt, or refuse."
    ARMED_HINT = "Tab moves · ^S allows once from a text · you see the answer first"
    BUTTONS = (
        (ReplyAction.ACCEPT, "o", "Allow once"),
        (ReplyAction.ACCEPT_ALWAYS, "s", "Always this server"),
        (ReplyAction.DECLINE, "d", "Refuse"),
    )
    SHORT_WORDS = {  # noqa: RUF012 - as the base
        ReplyAction.ACCEPT: "Once",
        ReplyAction.ACCEPT_ALWAYS: "Always",
    }
    KEYS = {  # noqa: RUF012 - as the base
        "sampling.once": ReplyAction.ACCEPT,
        "sampling.once-from-text": ReplyAction.ACCEPT,
        "sampling.always": ReplyAction.ACCEPT_ALWAYS,
        "sampling.refuse": ReplyAction.DECLINE,
    }
    SAFE = ReplyAction.DECLINE
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "none", "allow once", id="sampling.once"),
        Binding("ctrl+s", "none", "allow once", id="sampling.once-from-text", priority=True),
        Binding("s", "none", "always this server", id="sampling.always"),
        Binding("d,escape", "none", "refuse", id="sampling.refuse"),
    ]

    def facts(self) -> Iterable[tuple[str, str]]:
        """Name who asks, who would answer and within which bounds."""
        request = self._request
        yield "server", request.server
        wishes = f"  (it would like {', '.join(request.hints)})" if request.hints else ""
        yield "model", f"{request.model}{wishes}"
        yield "at most", counted(request.max_tokens, "token")
        if request.tools:
            yield "tools", ", ".join(request.tools)

    def compose_body(self) -> Iterable[Widget]:
        """Compose the system prompt and the messages."""
        request = self._request
        yield EditedText("system prompt", request.system, editable=True)
        for number, message in enumerate(request.messages, 1):
            editable = message.editable and number < MAX_EDITORS
            yield EditedText(
                f"message {number}, {one_line(message.role)}", message.text, editable=editable
            )

    def reply(self, action: ReplyAction) -> Reply:
        """Give the texts as they stand."""
        if action is ReplyAction.DECLINE:
            return Reply(action)
        system, *messages = (edited.text for edited in self.query(EditedText))
        return Reply(action, system=system, messages=tuple(messages))


class ReviewScreen(QuestionScreen[SamplingReview]):
    """Shows what the model generated for a server; it can be changed before it goes out."""

    TITLE_LINE = "The model's answer for a server"
    HELP = "The model answered a server's prompt. Nothing goes to the server until you send it."
    ARMED_HINT = "Tab moves · ^S sends from the text · Esc refuses"
    BUTTONS = ((ReplyAction.ACCEPT, "s", "Send"), (ReplyAction.DECLINE, "d", "Refuse"))
    KEYS = {  # noqa: RUF012 - as the base
        "review.send": ReplyAction.ACCEPT,
        "review.send-from-text": ReplyAction.ACCEPT,
        "review.refuse": ReplyAction.DECLINE,
    }
    SAFE = ReplyAction.DECLINE
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "none", "send", id="review.send"),
        Binding("ctrl+s", "none", "send", id="review.send-from-text", priority=True),
        Binding("d,escape", "none", "refuse", id="review.refuse"),
    ]

    def facts(self) -> Iterable[tuple[str, str]]:
        """Name who gets it and who wrote it."""
        yield "server", self._request.server
        yield "model", self._request.model

    def compose_body(self) -> Iterable[Widget]:
        """Compose the answer."""
        yield EditedText("answer", self._request.text, editable=self._request.editable)

    def reply(self, action: ReplyAction) -> Reply:
        """Give the answer as it stands."""
        if action is ReplyAction.DECLINE:
            return Reply(action)
        return Reply(action, text=self.query_one(EditedText).text)
