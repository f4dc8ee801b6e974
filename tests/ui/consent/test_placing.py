"""The question about calls lies over the chat, and the words that led to it are in sight above."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic

import pytest
from textual.screen import Screen
from textual.widgets import Button

from tests.ui.consent.samples import asked, changed_tools, trust
from tests.ui.hands import Asking
from tests.ui.harness import NARROW, WIDE, ChatApp, Clock, Running, running, screen_lines
from tests.ui.requests.samples import address, form, review, sampling
from tui.model import events as e
from tui.model.chat import EntryId, ToolCall, ToolCallStatus, TurnId, UserMessage
from tui.model.requests import ConfirmationRequest
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.questions.confirmation import ConfirmationQuestion
from tui.ui.questions.question import Question
from tui.ui.widgets.chat.transcript import Transcript
from tui.ui.widgets.frame import WORDY

WORDS = "These are the last words before the calls."
LONG = asked({"text": "line\n" * 100})


def call(number: int) -> ConfirmationRequest:
    return replace(LONG, id=type(LONG.id)(f"r{number}"), call=EntryId(f"call{number}"))


def events(calls: int) -> list[e.Event]:
    """What happens until some calls are asked about, the model's words among it."""
    words = "\n\n".join([*(f"Paragraph {number}." for number in range(30)), WORDS])
    asked_about = [call(number) for number in range(calls)]
    return [
        e.TurnStarted(TurnId("t"), UserMessage(EntryId("user"), "hello"), monotonic()),
        e.TextStreamed(EntryId("text"), words),
        e.EntryCompleted(EntryId("text")),
        *(
            e.ToolCallRequested(
                ToolCall(one.call, one.server, one.tool, "{}", status=ToolCallStatus.ASKING)
            )
            for one in asked_about
        ),
        *map(e.RequestRaised, asked_about),
    ]


async def raised(deck: Running) -> ConfirmationQuestion:
    return await deck.come(ConfirmationQuestion)


@pytest.mark.parametrize("calls", [1, 3])
async def test_the_words_that_led_to_calls_are_in_sight_above(calls: int) -> None:
    store = Store(AppState())
    async with running(store, NARROW) as deck:
        happened = events(calls)
        for event in happened[:-calls]:
            store.dispatch(event)
        for width, height in (NARROW, (110, 36), (200, 50)):
            await deck.resize(width, height)
            for event in happened[-calls:]:
                store.dispatch(event)
            question = await raised(deck)
            await deck.until(lambda: question.armed)  # noqa: B023
            frame, chat = question.frame.region, deck.app.deck.query_one("ChatPane").region
            assert any(WORDS in line for line in deck.lines[: frame.y]), width
            beside = (chat.x, chat.width) if width >= 110 else (0, width)
            assert (frame.x, frame.width) == beside
            assert frame.bottom == chat.bottom <= height
            for number in range(calls):
                store.dispatch(e.RequestSettled(call(number).id))
            await deck.until(lambda: not deck.on_top(ConfirmationQuestion))
            transcript = deck.one(Transcript)
            await deck.until(lambda: transcript.scroll_y == transcript.max_scroll_y > 0)  # noqa: B023
            assert transcript.styles.margin.bottom == 0


async def test_beside_a_pane_every_button_has_all_its_words() -> None:
    store = Store(AppState())
    async with running(store, WIDE) as deck:
        await deck.press("f3")
        for event in events(2):
            store.dispatch(event)
        question = await raised(deck)
        await deck.until(lambda: question.armed)
        await deck.press("full_stop")
        for width in (120, 116, 110, 80, WORDY):
            await deck.resize(width, WIDE[1])
            await deck.until(lambda: question.frame.region.right <= deck.app.size.width)
            for button in question.rows.query(Button):
                inside = question.rows.region.contains_region(button.region)
                assert inside or not button.display, (width, button)


class FramesApp(ChatApp):
    """Keeps each frame that shows a question, as text, but for its last line."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.frames: list[list[str]] = []

    def _display(self, screen: Screen[object], renderable: object) -> None:
        super()._display(screen, renderable)  # type: ignore[arg-type]
        if isinstance(self.screen, Question) and self.screen.query(".rows"):
            rows = screen_lines(self)
            hint = self.screen.frame.region.bottom - 1
            # A question that has no place yet is out of sight; an armed one may have the focus.
            if 0 < hint < len(rows) and not self.screen.armed:
                del rows[hint]
                self.frames.append(rows)

    def assert_nothing_jumped(self) -> None:
        assert self.frames
        for frame in self.frames:
            assert frame == self.frames[-1]
        self.frames.clear()


@asynccontextmanager
async def framed(size: tuple[int, int]) -> AsyncIterator[tuple[FramesApp, Asking]]:
    clock = Clock()
    app = FramesApp(clock)
    async with app.run_test(size=size) as pilot:
        yield app, Asking(app, pilot, clock)


@pytest.mark.parametrize("size", [(120, 36), (40, 10)])
async def test_the_first_frame_is_the_last(size: tuple[int, int]) -> None:
    async with framed(size) as (app, hands):
        for request in (
            asked(notes=("This turn has read data from search.",)),
            asked({"list": list(range(200))}),
            trust(),
            changed_tools(),
            form(),
            address(),
            sampling(),
            review(),
        ):
            await hands.ask(request)
            await hands.arm()
            app.assert_nothing_jumped()
            await hands.settle(request.id)
            app.frames.clear()


@pytest.mark.parametrize(("size", "calls"), [((120, 36), 3), ((80, 24), 1)])
async def test_the_chat_makes_room_before_the_question_is_drawn(
    size: tuple[int, int], calls: int
) -> None:
    async with framed(size) as (app, hands):
        happened = events(calls)
        for event in happened[:-calls]:
            app.store.dispatch(event)
        await hands.until(lambda: app.chat.transcript.scroll_y > 0)
        for event in happened[-calls:]:
            app.store.dispatch(event)
        await hands.until(lambda: isinstance(app.screen, Question))
        await hands.arm()
        assert any(WORDS in row for row in app.frames[0])
        app.assert_nothing_jumped()
