"""Text between servers and the model: prompts, the model's answers to them, results of tools."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from textual.binding import BindingType
from textual.geometry import Size
from textual.widget import Widget

from tui.model.requests import Reply, ReplyAction, ResultReview, SamplingRequest, SamplingReview
from tui.text import counted
from tui.ui.questions.answers import ACCEPTED, DECLINED, Answer
from tui.ui.questions.question import Names, Question
from tui.ui.widgets.chat.composer import TEXT_KEYS, DeckTextArea
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.labelled_text import LabelledLine, listed, warning_line
from tui.ui.widgets.text.plain import PlainText

MAX_EDITABLE: Final = 20_000
"""Characters of a text that can be edited; a longer one is shown whole, to read."""

CURSOR: Final = 1
"""Cells that a text area keeps free for its cursor."""

ONCE: Final = Answer("once", "o", "Allow once", "allow once", ACCEPTED, short="Once")
REFUSE: Final = Answer("refuse", "d,escape", "Deny", "deny", DECLINED)
PASS: Final = Answer("pass", "p", "Pass on", "pass it on to the model", ACCEPTED)
PASS_FROM_TEXT: Final = replace(
    PASS, name="pass-from-text", keys="ctrl+s", label="", short="", priority=True
)
WITHHOLD: Final = Answer("withhold", "d,escape", "Withhold", "withhold it", DECLINED)
SEND: Final = Answer("send", "s", "Send", "send", ACCEPTED)


class _Editor(DeckTextArea):
    """A text area as high as its text, which leaves Tab to move on."""

    BINDINGS: ClassVar[list[BindingType]] = [*TEXT_KEYS]

    def __init__(self, text: str) -> None:
        super().__init__(text, highlight_cursor_line=False, classes="-fits")
        self._columns = 0

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """Need all rows from the first layout on, so that no end is in sight too early."""
        columns = max(1, width - CURSOR)
        if columns != self._columns:
            self._columns = columns
            self.wrapped_document.wrap(columns, self.indent_width)
        return self.wrapped_document.height


class SamplingQuestion(Question[SamplingRequest]):
    """Shows the whole prompt that a server wants answered."""

    TITLE = "A server wants to use your model"
    PREFIX = "sampling"
    ROWS = ((ONCE, REFUSE),)
    SAFE = REFUSE
    ARMED = "o allow this prompt · you review the answer first"

    def lines(self) -> Sequence[LabelledLine]:
        """Say who would answer, within which bounds, and what: texts whole, of the server's."""
        request = self.request
        lines = [
            LabelledLine("server", request.server, "bold"),
            LabelledLine("model", request.model),
            LabelledLine("at most", counted(request.max_tokens, "token")),
            LabelledLine("method", "sampling, deprecated in revision 2026-07-28"),
            LabelledLine("prefers", ", ".join(request.hints)),
            LabelledLine("tools", ", ".join(request.tools)),
        ]
        lines = [line for line in lines if line.text]
        texts = [
            ("system", "", request.system),
            *(("message", message.role, message.text) for message in request.messages),
            *(("tool", "", declaration) for declaration in request.declarations),
        ]
        for label, of, text in texts:
            lines.append(LabelledLine())
            lines += listed(label, [*filter(None, [of]), *text.split("\n")])
        return lines


class ResultQuestion(Question[ResultReview]):
    """Shows a tool's result before the model gets it; it can be trimmed or withheld."""

    PREFIX = "result"
    ROWS = ((PASS, PASS_FROM_TEXT, WITHHOLD),)
    SAFE = WITHHOLD
    ARMED = "^S pass on while editing · Esc withhold · Tab next"

    def title_words(self) -> str:
        return "A result for another client" if self.request.caller else "A result for the model"

    def lines(self) -> Sequence[LabelledLine]:
        """Name who gets it, the tool, and what goes along with the text."""
        caller = self.request.caller
        return [
            *([LabelledLine("client", caller, "bold")] if caller else ()),
            LabelledLine("server", self.request.server, "bold"),
            LabelledLine("tool", self.request.tool),
            *(warning_line("! marked", mark.words) for mark in self.request.marks),
            *listed("attached", self.request.media),
        ]

    def compose_text(self) -> Iterable[Widget]:
        """Compose what goes along, and the text."""
        text = self.request.text
        self._editor = _Editor(text) if len(text) <= MAX_EDITABLE else None
        self._begun_with = self._editor.text if self._editor is not None else text
        mode = "can be edited" if self._editor is not None else "read only"
        yield Names()
        yield PlainText(f"result · {mode}", classes="heading")
        yield self._editor or FoldedText(text, classes="server-words -fits")

    def choose(self, answer: Answer) -> None:
        """Send the result as it stands; untouched, it is exactly what it was."""
        if not answer.allows:
            super().choose(answer)
            return
        is_edited = self._editor is not None and self._editor.text != self._begun_with
        text = self._editor.text if self._editor is not None and is_edited else self.request.text
        self.send(Reply(ReplyAction.ACCEPT, text=text))


class ReviewQuestion(Question[SamplingReview]):
    """Shows what the model generated for a server."""

    TITLE = "The model's answer for a server"
    PREFIX = "review"
    ROWS = ((SEND, REFUSE),)
    SAFE = REFUSE
    ARMED = "s send · Esc deny"

    def lines(self) -> Sequence[LabelledLine]:
        """Say for whom it is, who wrote it, and what."""
        return [
            LabelledLine("server", self.request.server, "bold"),
            LabelledLine("model", self.request.model),
            LabelledLine(),
            *listed("answer", self.request.text.split("\n")),
        ]
