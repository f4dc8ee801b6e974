"""Puts the first question that waits for the user on the screen, and takes it away again."""

from typing import Any, Final

from textual.app import App

from tui.model.chat import ConversationId
from tui.model.consent import RequestId
from tui.model.requests import (
    ConfirmationRequest,
    PendingRequest,
    ResultReview,
    SkillRequest,
)
from tui.store.selectors import conversation_of, pending_here
from tui.ui import keymap
from tui.ui.bridge import Delay, StoreBridge
from tui.ui.messages import ShowConversation
from tui.ui.panes.tabs import shown_tabs
from tui.ui.questions.arming import LOOK_SECONDS, Keyboard
from tui.ui.questions.question import Question
from tui.ui.widgets.chat.welcome import WorkingLine

_AT_ONCE: Final = (ConfirmationRequest, ResultReview, SkillRequest)
"""What the running turn waits for; a sign-in may come of another client's call."""


class PendingController:
    """Keeps one modal in step with `AppState.pending`.

    The state decides: a question is on the screen because it is the first of the conversation
    that is, or of none, and goes when the state no longer holds it, whoever settled it. A tool's
    confirmation belongs to the running turn and opens at once. A question that nobody asked for
    opens once no key has come for a while; until then a line above the composer says that it waits.

    A question is kept as it is while another conversation is on the screen, and where the user put
    it away: it then comes back only when it is asked for, or its conversation comes back.

    Args:
        app: The running app.
        bridge: Where the state comes from, and where answers go.
        keyboard: What was typed lately.
    """

    def __init__(self, app: App[Any], bridge: StoreBridge, keyboard: Keyboard) -> None:
        self._app = app
        self._bridge = bridge
        self._keyboard = keyboard
        self._screen: Question[Any] | None = None
        self._kept: list[Question[Any]] = []
        self._aside: dict[RequestId, ConversationId] = {}
        """What the user put away, and in which conversation."""
        self._wanted: RequestId | None = None
        self._current = bridge.state.current
        self._delay = Delay(app)

    def start(self) -> None:
        """Begin to watch; called once the first screen stands."""
        self._bridge.watch(
            self._app.screen_stack[0],
            lambda state: (state.pending, state.queued, state.current),
            lambda _: self._show(),
        )

    def open_now(self) -> None:
        """Open the waiting question without waiting for a pause, in the conversation that asks."""
        state = self._bridge.state
        if not state.pending:
            return
        request = next(iter(pending_here(state)), state.pending[0])
        self._wanted = request.id
        self._aside.clear()
        conversation = conversation_of(request) or state.current
        if conversation != state.current:
            self._app.screen_stack[0].post_message(ShowConversation(conversation))
        self._show()

    def put_away(self) -> None:
        """Put the question on the screen away unanswered, with those that wait behind it."""
        state, screen = self._bridge.state, self._app.screen
        if self._screen is not None and self._screen.step_aside():
            self._kept.append(self._screen)
            self._screen = None
            self._aside |= dict.fromkeys((one.id for one in pending_here(state)), state.current)
            self._show()
        elif isinstance(screen, Question):
            screen.dismiss()  # nobody asks but the user, who chose a link

    def _show(self) -> None:
        """Show the first question of the conversation on the screen, or of none."""
        state = self._bridge.state
        asked, came = {one.id for one in state.pending}, state.current != self._current
        self._current = state.current
        self._aside = {
            one: at
            for one, at in self._aside.items()
            if one in asked and not (came and at == state.current)
        }
        for gone in [kept for kept in self._kept if not self._is_asked(kept)]:
            self._kept.remove(gone)
            gone.close()
        aside = [kept for kept in self._kept if kept.request.id in self._aside]
        here = pending_here(state)
        pending = tuple(
            one
            for one in here
            if one.id not in self._aside and not any(kept.accepts(one) for kept in aside)
        )
        is_open = self._go_on(pending) or self._open(pending)
        lines = self._app.screen_stack[0].query("ChatPane.-current WorkingLine")
        for line in lines.results(WorkingLine):
            if bool(line.waiting) != (waits := bool(here) and not is_open):
                line.waiting = self._waiting_line() if waits else ""
        self._delay.stop()
        if pending and not is_open:
            self._delay.begin(min(self._keyboard.pause_left, LOOK_SECONDS), self._look_again)

    def _look_again(self) -> None:
        if self._app.screen_stack:  # which is empty once the app is closing
            self._show()

    def _go_on(self, pending: tuple[PendingRequest, ...]) -> bool:
        """Let the question on the screen go on where it is still the first."""
        if self._screen is None or not pending or not self._screen.accepts(pending[0]):
            return False
        self._screen.show(pending, self._count(pending))
        return True

    def _open(self, pending: tuple[PendingRequest, ...]) -> bool:
        """Open the first question, if there is one and it may open now."""
        self._leave()
        request = next(iter(pending), None)
        is_asked_for = request is not None and (
            (isinstance(request, _AT_ONCE) and not getattr(request, "caller", ""))
            or request.id == self._wanted
        )
        if request is None or (not is_asked_for and self._keyboard.pause_left):
            return False
        kept = next((one for one in self._kept if one.accepts(request)), None)
        if kept is not None:
            self._kept.remove(kept)
        self._screen = kept or self._make(request)
        self._screen.show(pending, self._count(pending))
        self._screen.come()
        return True

    def _make(self, request: PendingRequest) -> Question[Any]:
        from tui.ui.questions.kinds import QUESTIONS  # noqa: PLC0415 - with every question

        question = QUESTIONS[type(request)](request, self._bridge.commands, keyboard=self._keyboard)
        tabs = shown_tabs(self._bridge.state)
        asks = (f"tab {tab.name}" for tab in tabs if tab.key == conversation_of(request))
        question.conversation = next(asks, "")
        return question

    def _count(self, pending: tuple[PendingRequest, ...]) -> str:
        """Say how many questions there are; calls are one."""
        state = self._bridge.state
        number = len(pending_here(state)) + state.queued
        if isinstance(pending[0], ConfirmationRequest):
            number -= sum(isinstance(one, ConfirmationRequest) for one in pending[1:])
        return f"1 of {number}" if number > 1 else ""

    def _waiting_line(self) -> str:
        bindings = self._app.screen_stack[0].active_bindings
        key = keymap.key_of(self._app, bindings, "app.question") or "F8"
        return f"A question is waiting: {key}"

    def _is_asked(self, screen: Question[Any]) -> bool:
        return any(map(screen.accepts, self._bridge.state.pending))

    def _leave(self) -> None:
        """Take the question off the screen: it is settled, or another conversation is there."""
        screen, self._screen = self._screen, None
        if screen is not None and self._is_asked(screen) and screen.step_aside():
            self._kept.append(screen)
        elif screen is not None:
            screen.close()
