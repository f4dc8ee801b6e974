"""The question about calls lies over the chat, and the words that led to it are in sight above."""

from dataclasses import replace
from functools import partial
from time import monotonic

import pytest
from textual.screen import Screen

from tests.ui.consent.samples import asked, changed_tools, trust
from tests.ui.harness import ChatApp, running, until
from tests.ui.requests.samples import address, form, review, sampling
from tui.model import events as e
from tui.model.chat import EntryId, ToolCall, ToolCallStatus, TurnId, UserMessage
from tui.model.requests import ConfirmationRequest, PendingRequest
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.questions.confirmation import ConfirmationQuestion
from tui.ui.questions.question import Question
from tui.ui.widgets.chat.transcript import Transcript
from tui.ui.widgets.frame import Frame

WORDS = "These are the last words before the calls."
LONG = asked({"text": "line\n" * 100}, ())


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


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (110, 36), (140, 40), (200, 50)], ids=str)
@pytest.mark.parametrize("calls", [1, 3])
async def test_the_words_that_led_to_calls_are_in_sight_above(
    size: tuple[int, int], calls: int
) -> None:
    store = Store(AppState())
    async with running(store, size) as deck:
        for event in events(calls):
            store.dispatch(event)
        await deck.until(lambda: deck.on_top(ConfirmationQuestion))
        question = deck.app.screen
        assert isinstance(question, ConfirmationQuestion)
        await deck.until(lambda: question.frame.region and not question.has_class("-placing"))
        await deck.until(lambda: question.frame.region.bottom <= size[1])
        top = question.frame.region.y
        await deck.until(lambda: any(WORDS in line for line in deck.lines[:top]))
        chat = deck.app.deck.query_one("ChatPane").region
        frame = question.frame.region
        beside = size[0] >= 110
        assert (frame.x, frame.width) == ((chat.x, chat.width) if beside else (0, size[0]))
        assert frame.bottom == chat.bottom
        for number in range(calls):
            store.dispatch(e.RequestSettled(call(number).id))
        await deck.until(lambda: not deck.on_top(ConfirmationQuestion))
        transcript = deck.one(Transcript)
        await deck.until(lambda: transcript.scroll_y == transcript.max_scroll_y > 0)
        assert transcript.styles.margin.bottom == 0


def has_width(frame: Frame, width: int) -> bool:
    return frame.region.width == width


async def test_another_size_moves_the_question_with_the_chat() -> None:
    store = Store(AppState())
    async with running(store, (140, 40)) as deck:
        for event in events(1):
            store.dispatch(event)
        await deck.until(lambda: deck.on_top(ConfirmationQuestion))
        question = deck.app.screen
        assert isinstance(question, ConfirmationQuestion)
        await deck.until(lambda: not question.has_class("-placing"))
        for width, height in ((90, 30), (50, 14), (140, 40), (120, 36)):
            await deck.pilot.resize_terminal(width, height)
            chat = deck.app.deck.query_one("ChatPane")
            await deck.until(lambda: deck.app.deck.size.width == deck.app.size.width)
            wanted = chat.region.width if width >= 110 else width
            await deck.until(partial(has_width, question.frame, wanted))
            assert question.region.contains_region(question.rows.region)


class FramesApp(ChatApp):
    """Keeps each frame that shows a question, as text, but for its last line."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[list[str]] = []

    def _display(self, screen: Screen[object], renderable: object) -> None:
        super()._display(screen, renderable)  # type: ignore[arg-type]
        if isinstance(self.screen, Question) and self.screen.query(".hint"):
            rows = [strip.text for strip in self.screen._compositor.render_strips()]
            hint = self.screen.hint.region.y
            # A question that has no place yet is out of sight; an armed one may have the focus.
            if hint < len(rows) and not self.screen.armed:
                del rows[hint]
                self.frames.append(rows)


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 10)])
@pytest.mark.parametrize(
    "request_",
    [
        asked(notes=("This turn has read data from search.",)),
        asked({"list": list(range(200))}),
        trust(),
        changed_tools(),
        form(),
        address(),
        sampling(),
        review(),
    ],
    ids=["call", "long", "trust", "changes", "form", "address", "sampling", "review"],
)
async def test_the_first_frame_is_the_last(request_: PendingRequest, size: tuple[int, int]) -> None:
    app = FramesApp()
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        app.store.dispatch(e.RequestRaised(request_))
        await until(pilot, lambda: isinstance(app.screen, Question) and app.screen.armed)
        await pilot.pause()
        assert app.frames
        for frame in app.frames:
            assert frame == app.frames[-1]


@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
@pytest.mark.parametrize("calls", [1, 3])
async def test_the_chat_makes_room_before_the_question_is_drawn(
    size: tuple[int, int], calls: int
) -> None:
    app = FramesApp()
    async with app.run_test(size=size) as pilot:
        happened = events(calls)
        for event in happened[:-calls]:
            app.store.dispatch(event)
        await until(pilot, lambda: app.chat.transcript.scroll_y > 0)
        for event in happened[-calls:]:
            app.store.dispatch(event)
        await until(pilot, lambda: isinstance(app.screen, Question) and app.screen.armed)
        await pilot.pause()
        assert any(WORDS in row for row in app.frames[0])
        for frame in app.frames:
            assert frame == app.frames[-1]
