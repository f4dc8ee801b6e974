"""Text between servers and the model: prompts, the model's answers to them, results of tools."""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Final

from textual.binding import BindingType
from textual.geometry import Offset, Size
from textual.widget import Widget
from textual.widgets import TextArea

from tui.model.requests import Reply, ReplyAction, ResultReview, SamplingRequest, SamplingReview
from tui.text import clip, counted
from tui.ui.questions.answers import Answer
from tui.ui.questions.form import MAX_NAME, ServerQuestion, fact
from tui.ui.widgets.chat.composer import TEXT_KEYS
from tui.ui.widgets.forms.form_fields import WholeText, show_row
from tui.ui.widgets.text.plain import PlainText, one_line

MAX_EDITABLE: Final = 20_000
"""Characters of a text that can be edited; a longer one is shown whole, to read."""

DEPRECATED: Final = "sampling, deprecated in revision 2026-07-28"

CURSOR: Final = 1
"""Cells that a text area keeps free for its cursor."""

ONCE: Final = Answer("once", "o", "Allow once", "allow once", ReplyAction.ACCEPT, short="Once")
REFUSE: Final = Answer("refuse", "d,escape", "Refuse", "refuse", ReplyAction.DECLINE)
PASS: Final = Answer("pass", "p", "Pass on", "pass it on to the model", ReplyAction.ACCEPT)
PASS_FROM_TEXT: Final = replace(
    PASS, name="pass-from-text", keys="ctrl+s", label="", short="", priority=True
)
WITHHOLD: Final = Answer("withhold", "d,escape", "Withhold", "withhold it", ReplyAction.DECLINE)
SEND: Final = Answer("send", "s", "Send", "send", ReplyAction.ACCEPT)


class _Editor(TextArea, inherit_bindings=False):
    """A text area as high as its text, which leaves Tab to move on."""

    BINDINGS: ClassVar[list[BindingType]] = TEXT_KEYS

    def __init__(self, text: str) -> None:
        super().__init__(text, soft_wrap=True, show_line_numbers=False, highlight_cursor_line=False)
        self.tab_behavior = "focus"
        self.cursor_blink = False  # a blink is a repaint twice a second, for ever
        self._columns = 0

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """Need all rows from the first layout on, so that no end is in sight too early."""
        columns = max(1, width - CURSOR)
        if columns != self._columns:
            self._columns = columns
            self.wrapped_document.wrap(columns, self.indent_width)
        return self.wrapped_document.height

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Keep the cursor in sight, once what was typed has been laid out."""
        self.call_after_refresh(show_row, self, self.cursor_screen_offset.y - self.region.y)
        return super().scroll_cursor_visible(center, animate)


def text_under(title: str, text: str) -> Iterable[Widget]:
    """Show a text whole, under gemdeck's own word on what it is."""
    yield PlainText(clip(title, MAX_NAME), classes="heading")
    yield WholeText(text, classes="server-words")


class SamplingQuestion(ServerQuestion[SamplingRequest]):
    """Shows the whole prompt that a server wants answered."""

    TITLE = "A server wants to use your model"
    PREFIX = "sampling"
    ROWS = ((ONCE, REFUSE),)
    SAFE = REFUSE
    ARMED = ("o allows this prompt · you see the answer first",) * 2

    def facts(self) -> Iterable[tuple[str, str]]:
        """Give who would answer, and within which bounds."""
        yield "model", self.request.model
        yield "at most", counted(self.request.max_tokens, "token")
        yield "method", DEPRECATED

    def compose_body(self) -> Iterable[Widget]:
        """Compose what the server would like, the system prompt, the messages and the tools."""
        request = self.request
        for label, wishes in (("prefers", request.hints), ("tools", request.tools)):
            if wishes:
                yield PlainText(fact(label, one_line(", ".join(wishes))))
        yield from text_under("system prompt", request.system)
        for number, message in enumerate(request.messages, 1):
            yield from text_under(f"message {number}, {one_line(message.role)}", message.text)
        for number, declaration in enumerate(request.declarations, 1):
            yield from text_under(f"tool {number}", declaration)


class ResultQuestion(ServerQuestion[ResultReview]):
    """Shows a tool's result before the model gets it; it can be trimmed or withheld."""

    TITLE = "A result for the model"
    PREFIX = "result"
    ROWS = ((PASS, PASS_FROM_TEXT, WITHHOLD),)
    SAFE = WITHHOLD
    ARMED = ("^S passes it on from the text · Esc withholds it · Tab moves",) * 2

    def facts(self) -> Iterable[tuple[str, str]]:
        """Give the tool."""
        yield "tool", self.request.tool

    def compose_body(self) -> Iterable[Widget]:
        """Compose what goes along, and the text."""
        for line in self.request.media:
            yield PlainText(fact("with it", one_line(line)))
        text = self.request.text
        self._editor = _Editor(text) if len(text) <= MAX_EDITABLE else None
        self._begun_with = self._editor.text if self._editor is not None else text
        mode = "can be edited" if self._editor is not None else "read only"
        yield PlainText(f"result · {mode}", classes="heading")
        yield self._editor or WholeText(text, classes="server-words")

    def reply(self, action: ReplyAction) -> Reply:
        """Give the result as it stands; untouched, it is exactly what it was."""
        if not action.allows:
            return Reply(action)
        if self._editor is None or self._editor.text == self._begun_with:
            return Reply(action, text=self.request.text)
        return Reply(action, text=self._editor.text)


class ReviewQuestion(ServerQuestion[SamplingReview]):
    """Shows what the model generated for a server."""

    TITLE = "The model's answer for a server"
    PREFIX = "review"
    ROWS = ((SEND, REFUSE),)
    SAFE = REFUSE
    ARMED = ("s sends it · Esc refuses",) * 2

    def facts(self) -> Iterable[tuple[str, str]]:
        """Give the model that wrote it."""
        yield "model", self.request.model

    def compose_body(self) -> Iterable[Widget]:
        """Compose the text."""
        yield from text_under("answer", self.request.text)
