"""A question is drawn once, complete."""

import pytest
from textual.screen import Screen

from tests.ui.consent.samples import asked, changed_tools, trust
from tests.ui.consent.test_placing import WORDS, events
from tests.ui.harness import ChatApp, until
from tests.ui.requests.samples import address, form, review, sampling
from tui.model import events as e
from tui.model.requests import PendingRequest
from tui.ui.questions.question import Question


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
