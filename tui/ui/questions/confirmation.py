"""Asks whether tools may run, and shows all that would be sent.

Calls that wait at the same time are one question with a list: one is in sight at a time, and each
is answered by itself, or all that were shown to their end at once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from textual import events, on
from textual.content import Content
from textual.getters import query_one
from textual.widget import Widget

from tui.model.bounded_json import JsonError
from tui.model.consent import Choice, Decision, GrantScope
from tui.model.requests import ConfirmationRequest, PendingRequest
from tui.store.commands import Commands
from tui.text import clip, counted
from tui.ui.questions.answers import Answer
from tui.ui.questions.arming import Keyboard
from tui.ui.questions.calls.argument_lines import ArgumentsText
from tui.ui.questions.calls.call_view import (
    MAX_CLAIMED,
    AskedCall,
    CallList,
    facts,
    notes_content,
    server_words,
)
from tui.ui.questions.calls.placing import RoomAbove, lay_over_chat
from tui.ui.questions.calls.rules import RuleStep
from tui.ui.questions.calls.steps import (
    WITHDRAWN,
    DenyReasonScreen,
    EditArgumentsScreen,
    QuestionStep,
)
from tui.ui.questions.question import NAME, Names, Question, bring, drop_kept, keep
from tui.ui.widgets.forms.json_area import MAX_EDITABLE
from tui.ui.widgets.frame import Frame
from tui.ui.widgets.key_bar import FRAME
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.labelled_text import LabelledLine
from tui.ui.widgets.text.plain import PlainText, one_line

SCOPES: Final = tuple(GrantScope)
"""The scopes in the order in which their key goes through them."""

ONCE: Final = Answer("once", "o", "Once", "allow this call", Choice.ONCE)
DENY: Final = Answer("deny", "d,escape", "Deny", "deny this call", Choice.DENY)
JSON: Final = Answer(
    "json", "j", "Exact JSON", "show the arguments as JSON, or as fields", short="JSON"
)
MORE: Final = Answer("more", "full_stop", "More", "show all answers")
EDIT: Final = Answer("edit", "e", "Edit", "edit the arguments first")
UNDO: Final = Answer(
    "undo-edit", "u", "Model's", "switch between the model's arguments and your edit", short="Undo"
)
WITH_REASON: Final = Answer("deny-with-reason", "w", "Deny…", "deny with a note to the model")


def _always(kind: str, key: str, choice: Choice, words: str = "") -> Answer:
    return Answer(
        f"always-{kind}",
        key,
        kind.capitalize() if words else f"Always {kind}",
        words or f"always allow this {kind}",
        choice,
        short=kind.partition("-")[0].capitalize(),
        twice=True,
        scoped=True,
    )


ALWAYS_TOOL: Final = _always("tool", "t", Choice.ALWAYS_TOOL)
ALWAYS_SERVER: Final = _always("server", "s", Choice.ALWAYS_SERVER)
ALWAYS_THESE: Final = Answer(
    "always-these", "v", "Rule…", "allow by a rule on arguments", Choice.ALWAYS_THESE, scoped=True
)
ALWAYS_READ_ONLY: Final = _always(
    "read-only", "r", Choice.ALWAYS_READ_ONLY, "always allow tools declared read-only"
)
SCOPE: Final = Answer(
    "scope", "m", GrantScope.SESSION, "change the scope: session, folder or everywhere", scoped=True
)
NEXT: Final = Answer("next-call", "c", "Next", "show the next call")
ALLOW_SEEN: Final = Answer(
    "allow-seen",
    "a",
    "Allow seen",
    "allow each call you have seen to its end, once",
    Choice.ONCE,
    short="Seen",
    twice=True,
)
DENY_REST: Final = Answer(
    "deny-rest",
    "n",
    "Deny rest",
    "deny this and all further calls of this turn",
    Choice.DENY_REST_OF_TURN,
    short="Rest",
)
STOP: Final = Answer(
    "stop",
    "x",
    "Stop turn",
    "deny this and all further calls, and stop the turn",
    Choice.DENY,
    short="Stop",
)
ABOUT: Final = Answer("about", "i", "About", "show the server's description of the tool")
ANSWERS: Final = (
    (ONCE, ALWAYS_TOOL, DENY, WITH_REASON, EDIT, MORE),
    (JSON, UNDO, ALWAYS_SERVER, ALWAYS_THESE, SCOPE),
    (NEXT, ALLOW_SEEN, DENY_REST, STOP, ABOUT, ALWAYS_READ_ONLY),
)
"""All of them, in rows: first those that are used most."""


class ConfirmationQuestion(Question[ConfirmationRequest]):
    """Shows calls, complete, and goes through the steps towards an answer to each."""

    PREFIX = "confirmation"
    ROWS = ANSWERS
    SAFE = DENY
    facts = query_one(".facts", PlainText)
    calls = query_one(CallList)
    arguments = query_one(ArgumentsText)

    def __init__(
        self, request: ConfirmationRequest, commands: Commands, *, keyboard: Keyboard | None = None
    ) -> None:
        super().__init__(request, commands, keyboard=keyboard)
        self._call = AskedCall(request, number=1)
        self._calls: Sequence[AskedCall] = (self._call,)
        self._asked = 1
        self._scope = GrantScope.SESSION
        self._shows_json = self._shows_more = self._shows_about = False
        self._step: QuestionStep | None = None
        self._ended: Callable[[str | None], None] | None = None
        self._room: RoomAbove | None = None
        self.add_class("-placing")

    # What is shown.

    def full_title(self) -> Content:
        """Name who asks and for what, with what the server says of it, as far as that has room."""
        names = (self.request.server, self.request.tool)
        state = [f"call {self._call.number} of {self._asked}"] if self._asked > 1 else []
        state += ["your edit"] if self._call.shows_edit else []
        state += [self.conversation] if self.conversation else []
        tail = "".join(f" · {words}" for words in state)
        said = clip(one_line(", ".join(self.request.claims)), MAX_CLAIMED)
        width = self.frame.styles.width
        room = int(width.value) - FRAME if width is not None else 0
        caller = one_line(self.request.caller)
        title = Content(f"{names[0]} wants to run {names[1]}{tail}")
        if caller:
            title = Content(f"{caller} wants to run {names[1]} of {names[0]}{tail}")
        named = all(map(NAME.fullmatch, names)) and title.cell_length <= room
        who = "Another client" if caller else "A tool"
        title = title if named else Content(f"{who} wants to run{' a tool' * bool(caller)}{tail}")
        whole = Content.assemble(title, (f" ── {said} (server's claim)", "not bold $text-muted"))
        claimed = bool(said) and whole.cell_length <= room
        self.query_one(Names).display = not named
        self.facts.display = self._shows_about or (bool(said) and not claimed)
        return whole if claimed else title

    def lines(self) -> Sequence[LabelledLine]:
        """Name the server and the tool."""
        asked = self.request
        names = ("client", asked.caller), ("server", asked.server), ("tool", asked.tool)
        return [LabelledLine(label, one_line(name), "bold") for label, name in names if name]

    def compose_text(self) -> Iterable[Widget]:
        """Lay out the parts, gemdeck's own notes first."""
        yield CallList()
        yield Names()
        yield FoldedText(id="confirmation-notes", classes="-read")
        yield PlainText(classes="facts")
        yield FoldedText(id="confirmation-description")
        yield ArgumentsText(id="confirmation-arguments", classes="-fits")

    def place(self, frame: Frame) -> None:
        """Lie over the lower part of the chat."""
        lay_over_chat(frame)

    def on_mount(self) -> None:
        self.watch(self.frame, "virtual_size", self._show_calls, init=False)
        self._room = RoomAbove(self.frame, lambda: self._calls[0].request.call, self._appear)

    def _appear(self) -> None:
        """Show it, now that the chat has made room and nothing jumps any more."""
        self.remove_class("-placing")
        self.arm_after_drawing()

    def on_resize(self) -> None:
        if self._room is not None:
            self._room.make_later()

    def on_unmount(self) -> None:
        if self._room is not None:
            self._room.give_back()

    def show_text(self) -> None:
        """Show the call and the arguments that an answer would be about."""
        super().show_text()
        said = notes_content(self.request)
        notes = self.query_one("#confirmation-notes", FoldedText)
        notes.show(said)
        notes.display = bool(said)
        self._show_about()
        self._show_arguments()
        self._show_calls()

    def _show_about(self) -> None:
        self.facts.update(facts(self.request, origin=self._shows_about))
        description = self.query_one("#confirmation-description", FoldedText)
        description.show(server_words(self.request))
        description.display = self._shows_about

    def _show_arguments(self) -> None:
        call = self._call
        change = None if call.shows_edit else call.request.change
        self.arguments.show_arguments(call.arguments, change, as_json=self._shows_json)

    def _show_calls(self) -> None:
        self.calls.show(self._calls, self._call)
        self.frame.border_title = self.full_title()

    def show_answers(self) -> None:
        """Show what can be answered now."""
        super().show_answers()
        for answer in (ALWAYS_TOOL, ALWAYS_SERVER, ALWAYS_THESE, ALWAYS_READ_ONLY, SCOPE):
            self.rows.button(answer).display = not self.request.not_lasting
        self.rows.button(ALWAYS_THESE).display &= self._call.edit is None
        self.rows.button(ALWAYS_READ_ONLY).display &= bool(self.request.read_only)
        self.rows.button(UNDO).display = self._call.edit is not None
        self.rows.button(NEXT).display = len(self._calls) > 1
        self.rows.button(WITH_REASON).display = not self.is_short
        self.rows.fold(folded=not self._shows_more)

    def offers(self, answer: Answer) -> bool:
        """Offer to stop the turn only where there is one, not for another client."""
        return not (self.request.caller and answer is STOP)

    def caption(self, answer: Answer) -> str:
        """Give the words on a button, which say what is set."""
        scope = self._scope.name.lower()
        if answer is SCOPE:
            return scope if self.is_short else f"Scope: {scope} ⇄"
        if answer is ALWAYS_TOOL and not self.is_short:
            return f"Always ({scope})"
        if answer is UNDO and not self._call.shows_edit:
            return "Yours"
        if answer is JSON and self._shows_json:
            return "Fields"
        if answer is MORE and self._shows_more:
            return "Less"
        return super().caption(answer)

    def armed_words(self) -> str:
        """Say how many calls were seen, and what their key allows."""
        if len(self._calls) == 1 or not self._seen:
            return f"{self._key_of(ABOUT)} about the tool · {super().armed_words()}"
        number = f"{len(self._seen)} of {len(self._calls)}"
        return f"a allow the {number} you have seen · PgDn next call"

    @property
    def _seen(self) -> list[AskedCall]:
        """The calls that were shown to their end and have no answer yet."""
        return [call for call in self._calls if call.is_seen and not call.is_answered]

    def unread_words(self) -> str:
        return "" if self._call.is_seen else super().unread_words()

    def refusal(self, answer: Answer) -> str:
        if answer.scoped and (reason := self.request.not_lasting):
            return f"Always is not available: {reason}."
        if answer is ALLOW_SEEN and self._seen:
            return ""
        if answer is ALWAYS_READ_ONLY and not self.request.read_only:
            return "The server does not declare this tool read-only."
        if answer is UNDO and self._call.edit is None:
            return "These are the model's arguments; you changed nothing."
        if answer is ALWAYS_THESE and self._call.shows_edit:
            return "Not available for arguments that you changed."
        return super().refusal(answer)

    def again_words(self, answer: Answer, key: str) -> str:
        """Ask for a key once more, and say what it reaches."""
        if answer is ALLOW_SEEN:
            number = f"{len(self._seen)} of {counted(len(self._calls), 'call')}"
            return f"Press {key} again: allow the {number} you have seen"
        words = super().again_words(answer, key)
        if answer is ALWAYS_READ_ONLY:
            tools = counted(self.request.read_only, "tool")
            words = f"Press {key} again: always allow the {tools} declared read-only"
        return f"{words}, {self._scope.value}" if answer.scoped else words

    def _look(self) -> None:
        super()._look()
        call = self._call
        if self._arming.is_begun and not call.is_seen and self.reading.unread is None:
            call.is_seen = True
            self._show_calls()
            self.show_hint()

    # Going from call to call.

    def accepts(self, request: object) -> bool:
        own = self.request.conversation, self.request.caller
        if not isinstance(request, ConfirmationRequest):
            return False
        return (request.conversation, request.caller) == own

    def show(self, pending: Sequence[PendingRequest], waiting: str) -> None:
        """Take note of the calls that wait; where the one in sight is settled, show the next."""
        known = {call.request.id: call for call in self._calls}
        asked = [one for one in pending if isinstance(one, ConfirmationRequest)]
        asked = [one for one in asked if self.accepts(one)]
        calls = [(known.get(one.id) or AskedCall(one)).take(one) for one in asked]
        if not any(call in self._calls for call in calls):
            self._asked = 0
        for call in calls:
            if not call.number:
                self._asked += 1
                call.number = self._asked
        self._calls = calls
        if self._call not in calls:
            self._scope = GrantScope.SESSION
            self._call = next((call for call in calls if not call.is_answered), calls[0])
        super().show([self._call.request], waiting)
        if self.is_mounted:
            self._show_calls()
            self.show_answers()

    def changed(self) -> None:
        """Ask anew about what is shown now."""
        if self._withdraw_step():
            self.say(WITHDRAWN)
        super().changed()

    def ask_again(self) -> None:
        """Take answers to the call in sight, unless it has one."""
        if self._call.is_answered:
            self._is_answered = True
        else:
            super().ask_again()

    def _go_to(self, call: AskedCall) -> None:
        if call is self._call or call.is_answered or self._step is not None:
            return
        self.arguments.styles.min_height = self.arguments.size.height  # the frame stays as it is
        self._call, self._scope = call, GrantScope.SESSION
        self.request = call.request
        self._show_request()

    def _step_to(self, direction: int, *, around: bool = False) -> bool:
        """Show the next call that has no answer; return whether there is one."""
        start = self._calls.index(self._call)
        before, after = self._calls[:start], self._calls[start + 1 :]
        others = [*after, *(before if around else ())] if direction > 0 else before[::-1]
        call = next((one for one in others if not one.is_answered), None)
        if call is not None:
            self._go_to(call)
        return call is not None

    @on(CallList.Chosen)
    def _show_chosen(self) -> None:
        """Show the call that was clicked in the list."""
        self._go_to(self._calls[self.calls.cursor])
        self._show_calls()

    def action_scroll(self, rows: int, pages: int) -> None:
        """Scroll the text; from its end and its beginning a page leads to another call."""
        at_end = pages == 1 and not self.unread_words()
        at_start = pages == -1 and self.reading.position.first == 1
        if at_end and self.reading.position.shows_end and self._step_to(1):
            return
        if not (at_start and self._step_to(-1)):
            super().action_scroll(rows, pages)

    # Answers, and the steps towards one.

    def _answer_of(self, event: events.Key) -> Answer | None:
        """Give the answer of a key; Esc leaves the JSON before it denies."""
        answer = super()._answer_of(event)
        is_back = answer is DENY and event.key == "escape" and self._shows_json
        return JSON if is_back else answer

    def choose(self, answer: Answer) -> None:
        """Take the step that an answer is, else decide the call in sight."""
        steps: Mapping[str, Callable[[], object]] = {
            ALLOW_SEEN.name: self._allow_seen,
            STOP.name: self._stop,
            SCOPE.name: self._next_scope,
            JSON.name: self._switch_json,
            MORE.name: self._switch_more,
            ABOUT.name: self._switch_about,
            NEXT.name: partial(self._step_to, 1, around=True),
            EDIT.name: self._open_editor,
            WITH_REASON.name: self._open_reason,
            ALWAYS_THESE.name: self._open_rule,
            UNDO.name: self._switch_edit,
        }
        if answer.name in steps:
            steps[answer.name]()
            return
        assert isinstance(answer.value, Choice)  # noqa: S101 - all others are steps
        scope = self._scope if answer.scoped else GrantScope.SESSION
        self._decide(self._call, Decision(answer.value, scope=scope))

    def _allow_seen(self) -> None:
        for call in self._seen:
            self._decide(call, Decision(Choice.ONCE))
        self._show_calls()

    def _stop(self) -> None:
        self._decide(self._call, Decision(Choice.DENY))
        self._commands.cancel_turn()

    def _next_scope(self) -> None:
        self._scope = SCOPES[(SCOPES.index(self._scope) + 1) % len(SCOPES)]
        self._shows_more = True
        self.show_answers()

    def _switch_json(self) -> None:
        self._shows_json = not self._shows_json
        self._show_arguments()
        self.show_answers()
        self.call_after_refresh(self._look)

    def _switch_more(self) -> None:
        self._shows_more = not self._shows_more
        self.show_answers()

    def _switch_about(self) -> None:
        self._shows_about = not self._shows_about
        self._show_about()
        self._show_calls()

    def _open_reason(self) -> None:
        call, step = self._call, DenyReasonScreen("Deny with a note", self.request)
        self._open_step(step, lambda why: self._decide(call, Decision(Choice.DENY, why)))

    def _open_rule(self) -> None:
        try:
            step = RuleStep(self.request, self._scope)
        except ValueError as error:
            self.say(f"Not available: {error}.")
            return

        def keep(_: str) -> None:
            kept = Decision(Choice.ALWAYS_THESE, scope=self._scope, conditions=step.conditions)
            self._decide(self._call, kept)

        self._open_step(step, keep)

    def _switch_edit(self) -> None:
        self._call.show_other()
        self.changed()

    def step_aside(self) -> bool:
        """Leave with the step that lies over it, and give the conversation its rows again."""
        if self._step is not None and self._step.is_active:
            keep(self._step)
        is_aside = super().step_aside()
        if is_aside and self._room is not None:
            self._room.give_back()
        return is_aside

    def come(self) -> None:
        super().come()
        if self._room is not None:
            self.add_class("-placing")
            self._room.take()
        if self._step is not None:
            bring(self._step, self._ended)

    def action_scroll_chat(self, rows: int, pages: int) -> None:
        if self._room is not None:
            self._room.let_go()
        super().action_scroll_chat(rows, pages)

    def close(self) -> None:
        """Go away, and say so where the user was writing."""
        if self._withdraw_step():
            self.app.notify(WITHDRAWN, severity="warning", markup=False)
        super().close()

    def begin(self) -> None:
        """Begin the delay, once it can be seen."""
        if not self.has_class("-placing"):
            super().begin()

    def _decide(self, call: AskedCall, decision: Decision) -> None:
        decision = call.completed(decision)
        call.is_answered = True
        if call is self._call:
            self.send(decision)
        else:
            self._commands.engine.desk.answer(call.request.id, decision)

    def _open_editor(self) -> None:
        text = self._call.arguments
        if len(text) > MAX_EDITABLE:
            self.say(f"Too long to edit here: more than {MAX_EDITABLE:,} characters.")
            return
        try:
            editor = EditArgumentsScreen(self._commands, self.request, text)
        except JsonError as error:
            self.say(f"Cannot be edited: {error}")
            return

        def show_edit(text: str) -> None:
            self._call.show_edit(text)
            self.changed()

        self._open_step(editor, show_edit)

    def _open_step(self, step: QuestionStep, take: Callable[[str], None]) -> None:
        """Lay a step over the question; `take` gets what it gives, unless that is nothing."""

        def ended(text: str | None) -> None:
            is_current, self._step = self._step is step, None
            if is_current and text is not None:
                take(text)

        self._arming.end()
        self._step, self._ended = step, ended
        bring(step, ended)

    def _withdraw_step(self) -> bool:
        """Take the step away; tell whether there was one."""
        step, self._step = self._step, None
        if step is not None:
            step.withdraw()
            drop_kept(step)
        return step is not None
