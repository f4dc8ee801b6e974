"""Asks whether to sign in to a server, and takes the address where a browser elsewhere ended."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from textual import events, on
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input

from tui.model.requests import Reply, ReplyAction, SignInRequest
from tui.ui.questions.answers import Answer
from tui.ui.questions.form import ACCEPT, CANCEL, ServerQuestion, fact
from tui.ui.widgets.forms.form_fields import WholeText
from tui.ui.widgets.text.plain import PlainText, one_line

MAX_PASTED: Final = 8_192
"""Characters of what is pasted."""

SIGN_IN: Final = replace(ACCEPT, name="sign-in", label="Sign in", words="sign in")
COPY: Final = Answer(
    "copy",
    "ctrl+y",
    "Copy the address",
    "copy the address",
    short="Copy",
    priority=True,
)


class SignInQuestion(ServerQuestion[SignInRequest]):
    """Says where the sign-in leads and what it gives; nothing is opened until it is agreed to."""

    TITLE = "Sign in to this server?"
    PREFIX = "sign-in"
    ROWS = ((SIGN_IN, COPY, CANCEL),)
    SAFE = CANCEL
    ARMED = (
        "^S opens the browser, or sends what was pasted · Esc cancels",
        "^S signs in, or sends what was pasted · Esc cancels",
    )

    def compose_body(self) -> Iterable[Widget]:
        """Compose where it leads, what it gives, and the address."""
        request = self.request
        facts = [
            fact("address", one_line(request.address)),
            fact("sign-in", one_line(request.host), "bold"),
        ]
        if request.shown_host != request.host:
            facts.append(fact("shown as", one_line(request.shown_host)))
        facts.append(fact("issuer", one_line(request.issuer)))
        if request.token_host:
            facts.append(fact("code to", one_line(request.token_host)))
        facts += [
            fact("access to", one_line(request.resource)),
            fact("scopes", ", ".join(map(one_line, request.scopes)) or "not named"),
            fact("kept in", one_line(request.kept)),
        ]
        for note in request.notes:
            yield PlainText(Content(f"! {one_line(note)}"), classes="field-warning")
        yield PlainText(Content("\n").join(facts))
        if request.url:
            yield PlainText("page that opens", classes="heading")
            yield WholeText(request.url, classes="server-words")

    def compose_text(self) -> Iterable[Widget]:
        """Compose the room to paste below what is to read."""
        yield from super().compose_text()
        pasted = Input(
            placeholder="paste the address where the browser ended, or the code", compact=True
        )
        pasted.max_length = MAX_PASTED
        pasted.cursor_blink = False  # a blink is a repaint twice a second, for ever
        pasted.display = bool(self.request.problem)
        yield pasted

    def on_mount(self) -> None:
        self.complain(self.request.problem)

    def offers(self, answer: Answer) -> bool:
        return answer is not COPY or bool(self.request.url)

    def changed(self) -> None:
        """Say what came of the last answer, and let another one be given."""
        self.complain(self.request.problem)
        self.show_answers()
        pasted = self.query_one(Input)
        pasted.display = bool(self.request.url)
        if pasted.display:
            pasted.focus()
        self.ask_again()

    def choose(self, answer: Answer) -> None:
        """Copy the address, or send what was filled in."""
        if answer is not COPY:
            super().choose(answer)
            return
        self.app.copy_to_clipboard(self.request.url)
        self.say("Copied the address.")

    def reply(self, action: ReplyAction) -> Reply:
        """Give what was pasted along, if anything was; an answer can be given again."""
        pasted = self.query_one(Input)
        if not action.allows:
            return Reply(action)
        self.call_later(self.ask_again)
        text = pasted.value.strip()
        pasted.value = ""
        return Reply(action, text=text or None)

    def lets_through(self, event: events.Key) -> bool:
        """Let Enter send what was just pasted: whoever can paste it has said yes before."""
        pasted = self.focused if isinstance(self.focused, Input) else None
        is_sent = event.key == "enter" and pasted is not None and bool(pasted.value.strip())
        return is_sent or super().lets_through(event)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self._take(SIGN_IN)
