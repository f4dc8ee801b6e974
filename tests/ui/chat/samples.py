"""Waiting, and things to show."""

from collections.abc import Callable
from time import monotonic

import anyio
from textual.pilot import Pilot

from tui.model.chat import EntryId, ModelText, ToolCall, ToolCallStatus, UserMessage
from tui.model.consent import RequestId
from tui.model.requests import ConfirmationRequest
from tui.model.servers import ServerId
from tui.store.state import AppState, Transcript
from tui.ui.widgets.folded_text import FoldedText


class Clock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = monotonic()

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Wait for what has to come, for at most five seconds."""
    with anyio.fail_after(5):
        await pilot.pause()
        while not condition():
            await pilot.pause(0.01)


def conversation(count: int) -> AppState:
    """Give a state with a settled conversation of `count` entries."""
    entries = tuple(
        UserMessage(EntryId(f"e{number}"), f"question {number}")
        if number % 2 == 0
        else ModelText(EntryId(f"e{number}"), f"**answer** {number}\n\n- one\n- two", complete=True)
        for number in range(count)
    )
    return AppState(transcript=Transcript(settled=entries))


def call(
    number: int = 0, status: ToolCallStatus = ToolCallStatus.RUNNING, *, arguments: str = "{}"
) -> ToolCall:
    """Give a tool call."""
    return ToolCall(
        EntryId(f"call{number}"), ServerId("git"), "branch_list", arguments, status=status
    )


def request(number: int = 0, arguments: str = '{\n  "message": "hello"\n}') -> ConfirmationRequest:
    """Give a question."""
    return ConfirmationRequest(
        id=RequestId(f"r{number}"),
        call=EntryId("call0"),
        server=ServerId("git"),
        tool=f"commit{number}",
        description="Records changes.",
        arguments=arguments,
        claims=("read-only",),
    )


def rows_of(view: FoldedText) -> list[str]:
    """Give all rows of a text, in sight or not."""
    return [view._row(row).plain for row in range(view.row_count)]
