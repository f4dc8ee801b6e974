"""Asks whether to sign in to a server, and takes the address where a browser elsewhere ended."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from textual import events, on
from textual.getters import query_one
from textual.widget import Widget
from textual.widgets import Input

from tui.model.requests import Reply, ReplyAction, SignInRequest
from tui.ui.questions.answers import CANCEL, Answer
from tui.ui.questions.form import ACCEPT
from tui.ui.questions.question import Question
from tui.ui.widgets.text.labelled_text import LabelledLine, warning_line
from tui.ui.widgets.text.plain import PlainText, one_line

SIGN_IN: Final = replace(ACCEPT, name="sign-in", label="Sign in", words="sign in")
COPY: Final = Answer(
    "copy", "ctrl+y", "Copy the address", "copy the address", short="Copy", priority=True
)


class SignInQuestion(Question[SignInRequest]):
    """Says where the sign-in leads and what it gives; nothing is opened until it is agreed to."""

    TITLE = "Sign in to this server?"
    PREFIX = "sign-in"
    ROWS = ((SIGN_IN, COPY, CANCEL),)
    SAFE = CANCEL
    ARMED = "^S open browser, or send the pasted text · Esc cancel"

    pasted = query_one(Input)
    problem = query_one(".problem", PlainText)

    def lines(self) -> Sequence[LabelledLine]:
        """Say where it leads, what it gives, and which page opens."""
        request = self.request
        shown = request.shown_host if request.shown_host != request.host else ""
        lines = (
            LabelledLine("server", request.server, "bold"),
            *(warning_line("! warning", note) for note in request.notes),
            LabelledLine("address", request.address),
            LabelledLine("sign-in", request.host, "bold"),
            LabelledLine("shown as", shown),
            LabelledLine("issuer", request.issuer),
            LabelledLine("code to", request.token_host),
            LabelledLine("access to", request.resource),
            LabelledLine("scopes", ", ".join(request.scopes) or "not specified"),
            LabelledLine("stored in", request.kept),
            LabelledLine("page", request.url),
        )
        return [line for line in lines if line.text]

    def compose_text(self) -> Iterable[Widget]:
        """Compose the room to paste below what is to read."""
        yield from super().compose_text()
        problem = PlainText(classes="problem")
        problem.say(one_line(self.request.problem))
        yield problem
        words = "paste the final address from the browser, or the code"
        pasted = Input(placeholder=words, max_length=8_192, compact=True)
        pasted.display = bool(self.request.problem)
        yield pasted

    def offers(self, answer: Answer) -> bool:
        return answer is not COPY or bool(self.request.url)

    def changed(self) -> None:
        """Say what came of the last answer, and let another one be given."""
        self.problem.say(one_line(self.request.problem))
        self.show_answers()
        self.pasted.display = bool(self.request.url)
        if self.pasted.display:
            self.pasted.focus()
        self.ask_again()

    def choose(self, answer: Answer) -> None:
        """Send what was pasted along, if anything was; an answer can be given again."""
        if answer is COPY:
            self.app.copy_to_clipboard(self.request.url)
        elif answer is CANCEL:
            super().choose(answer)
        else:
            self.call_later(self.ask_again)
            text, self.pasted.value = self.pasted.value.strip(), ""
            self.send(Reply(ReplyAction.ACCEPT, text=text or None))

    def lets_through(self, event: events.Key) -> bool:
        """Let Enter send what was just pasted: whoever can paste it has said yes before."""
        pasted = self.focused if isinstance(self.focused, Input) else None
        is_sent = event.key == "enter" and pasted is not None and bool(pasted.value.strip())
        return is_sent or super().lets_through(event)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self._take(SIGN_IN)
