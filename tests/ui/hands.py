"""The hands on a question: what a user does with it, and what comes of it."""

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, TypeVar

import pytest
from textual import events
from textual.containers import VerticalScroll
from textual.content import Content
from textual.pilot import Pilot
from textual.screen import Screen
from textual.selection import SELECT_ALL
from textual.widget import Widget
from textual.widgets import Button, Static

from tests.ui.consent.samples import SCHEMA, asked
from tests.ui.harness import NARROW, ChatApp, Clock, OnScreen, chat_app, holds
from tui.model import events as e
from tui.model.consent import Decision, RequestId
from tui.model.requests import ConfirmationRequest, PendingRequest, Reply
from tui.ui.questions import arming
from tui.ui.questions.arming import ARMING_SECONDS, PAUSE_SECONDS
from tui.ui.questions.calls.steps import EditArgumentsScreen, QuestionStep
from tui.ui.questions.confirmation import ConfirmationQuestion
from tui.ui.questions.question import Question
from tui.ui.widgets.forms.argument_form import FORM, ArgumentEditor
from tui.ui.widgets.forms.json_area import JsonArea
from tui.ui.widgets.text.labelled_text import LabelledText

LOOK_SECONDS: Final = 0.02
"""How soon a question looks at the clock again, which is moved by hand: sooner than for a user."""

Q = TypeVar("Q", bound=Question[Any])
S = TypeVar("S", bound=Screen[Any])
W = TypeVar("W", bound=Widget)
H = TypeVar("H", bound="Hands[Any]")


def hint_of(question: Question[Any]) -> str:
    """What stands in the lower line of the frame, below the answers."""
    return Content.from_markup(question.frame.border_subtitle or "").plain


def is_about(screen: Screen[Any], request: str) -> bool:
    """Tell whether a screen still asks a question, or is a step towards its answer."""
    return isinstance(screen, Question | QuestionStep) and screen.request.id == request


@dataclass
class Hands(OnScreen, Generic[Q]):
    """An app with a question on its screen, and the hands on it."""

    app: ChatApp
    pilot: Pilot[None]
    clock: Clock

    KIND: ClassVar[type[Any]]
    """The screen that asks."""

    @property
    def modal(self) -> Q:
        screen: Q = self._top(self.KIND)
        return screen

    def one(self, kind: type[W], selector: str = "") -> W:
        return self.modal.query_one(selector, kind) if selector else self.modal.query_one(kind)

    async def ask(self, request: PendingRequest) -> None:
        """Raise a request and wait until it has been drawn, from when on keys are taken note of."""
        self.app.store.dispatch(e.RequestRaised(request))
        await self.until(lambda: getattr(self.app.screen, "request", None) == request)
        await self.until(lambda: self.modal._arming.is_begun)
        await self.pilot.pause()

    async def settle(self, request: str = "r0") -> None:
        """Let a request be settled elsewhere, and wait for the next thing on the screen."""
        self.app.store.dispatch(e.RequestSettled(RequestId(request)))
        await self.until(lambda: not is_about(self.app.screen, request))
        await self.pilot.pause()

    async def ask_also(self, request: ConfirmationRequest) -> None:
        """Raise a request while another is on the screen, and wait until it is counted."""
        self.app.store.dispatch(e.RequestRaised(request))
        counted = len(self.app.store.state.pending)
        await self.until(lambda: f"of {counted}" in self.text)

    async def ask_next(self, request: PendingRequest, *, armed: bool = True) -> None:
        """Have done with what is asked, and ask something else in the same app."""
        await self.settle(self.modal.request.id)
        self.calls.clear()
        self.clock.advance(PAUSE_SECONDS)  # what was typed holds nothing back any more
        await self.ask(request)
        if armed:
            await self.arm()

    async def arm(self) -> None:
        """Let the clock go on until the question takes answers."""
        await self.pilot.pause()
        self.clock.advance(PAUSE_SECONDS)

        def is_armed() -> bool:
            self.clock.advance(0.01)
            return self.modal.armed

        await self.until(is_armed)
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        """Press keys, each as slowly as an answer wants it; `pilot.press` presses them at once."""
        for key in keys:
            await self.pilot.press(key)
            await self.pilot.pause()
            self.clock.advance(ARMING_SECONDS + 0.1)
            await self.until(lambda: not holds(self.app))

    async def resize(self, size: tuple[int, int]) -> None:
        """Give the terminal another size, and wait until what is on it stands."""
        await self.pilot.resize_terminal(*size)
        await self.until(lambda: self.app.screen.size == size)
        await self.pilot.pause()

    async def until_shown(self, words: str) -> None:
        await self.until(lambda: words in self.text)

    @property
    def calls(self) -> list[tuple[str, tuple[object, ...]]]:
        return self.app.commands.calls

    @property
    def answers(self) -> list[object]:
        """The answers that were given, in order."""
        return [arguments[1] for name, arguments in self.calls if name == "desk.answer"]

    @property
    def decisions(self) -> list[Decision]:
        return [answer for answer in self.answers if isinstance(answer, Decision)]

    @property
    def replies(self) -> list[Reply]:
        return [answer for answer in self.answers if isinstance(answer, Reply)]

    @property
    def problem(self) -> str:
        return str(self.one(Static, ".problem").render())

    @property
    def focused(self) -> str | None:
        """The id of the button with the focus."""
        focused = self.modal.focused
        return focused.id if isinstance(focused, Button) else None

    def _top(self, kind: type[S]) -> S:
        screen = self.app.screen
        assert isinstance(screen, kind)
        return screen


class Asking(Hands[Question[Any]]):
    """Any question: a server's, or one on a folder or changed tools."""

    KIND = Question

    @property
    def body(self) -> VerticalScroll:
        return self.one(VerticalScroll, ".body")

    @property
    def view(self) -> LabelledText:
        return self.one(LabelledText)

    @property
    def everything(self) -> str:
        """All rows of the text, in sight or not."""
        selected = self.view.get_selection(SELECT_ALL)
        assert selected is not None
        return selected[0]


class Confirming(Hands[ConfirmationQuestion]):
    """The question whether a tool may run."""

    KIND = ConfirmationQuestion

    @property
    def step(self) -> EditArgumentsScreen:
        return self._top(EditArgumentsScreen)

    @property
    def editor(self) -> ArgumentEditor:
        return self.step.editor

    @property
    def hint(self) -> str:
        return hint_of(self.modal)

    async def edit(self) -> None:
        """Arm the question and open the editor."""
        await self.arm()
        await self.pilot.press("e")
        await self.until(lambda: isinstance(self.app.screen, EditArgumentsScreen))
        await self.until(lambda: self.app.focused is not None)

    async def edit_as_json(self, text: str | None = None) -> JsonArea:
        """Open the editor as JSON, and put a text in."""
        await self.edit()
        if self.editor.current == FORM:
            await self.pilot.press("ctrl+t")
            await self.until(lambda: isinstance(self.app.focused, JsonArea))
        area = self.editor.json
        if text is not None:
            area.select_all()
            self.app.post_message(events.Paste(text))
            await self.pilot.pause()
        return area

    async def finish(self) -> None:
        """Go back to the question and arm it."""
        await self.pilot.press("ctrl+s")
        await self.until(lambda: isinstance(self.app.screen, ConfirmationQuestion))
        await self.arm()

    def sent(self) -> object:
        """The one decision's arguments, as an object."""
        (decision,) = self.decisions
        assert decision.arguments is not None
        return json.loads(decision.arguments)


@asynccontextmanager
async def _hands_on(
    kind: type[H], request: PendingRequest, size: tuple[int, int], armed: bool
) -> AsyncIterator[H]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(arming, "LOOK_SECONDS", LOOK_SECONDS)
        async with chat_app(size) as parts:
            hands = kind(*parts)
            hands.app.commands.offer(SCHEMA)
            await hands.ask(request)
            if armed:
                await hands.arm()
            yield hands


def asking(
    request: PendingRequest, size: tuple[int, int] = NARROW, *, armed: bool = False
) -> AbstractAsyncContextManager[Asking]:
    """Run an app in which a question has been raised and drawn, or takes answers already."""
    return _hands_on(Asking, request, size, armed)


def confirming(
    request: PendingRequest | None = None, size: tuple[int, int] = NARROW, *, armed: bool = False
) -> AbstractAsyncContextManager[Confirming]:
    """Run an app in which a tool's question has been raised and drawn, or takes answers."""
    return _hands_on(Confirming, request or asked(), size, armed)
