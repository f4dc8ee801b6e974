"""A turn stopped at every stage: at once on the wire, and the next request is valid."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.fakes.gemini import FakeGemini, Step
from tests.fakes.gemini_script import Action, Call, Say, Stall, Think
from tests.security.decks import Deck, deck
from tests.support.measures import Measure
from tests.support.waiting import at_once, eventually
from tests.unit.engine.mcp.support import FOLDER
from tui.model.chat import ChatNotice, ToolCallStatus, TurnOutcome
from tui.model.consent import Choice
from tui.model.events import TextStreamed, ThoughtStreamed, TurnFinished
from tui.model.requests import ConfirmationRequest
from tui.model.servers import ServerStatus
from tui.store.selectors import entries

HANG: Call = Call([("hang", {})])

STAGES: dict[str, tuple[Sequence[Action], list[str]]] = {
    "before the first byte": ([Stall()], []),
    "in a thought": ([Think("hm"), Stall()], []),
    "in text": ([Say("so "), Stall()], ["so ", "[The user stopped this turn.]"]),
    "in a call": ([HANG, Stall()], []),
    "in a question": ([HANG], ["functionResponse"]),
    "in a tool": ([HANG], ["functionResponse"]),
}
"""What the model does, and what of it stays for the next request beside the two messages."""


async def reached(stage: str, running: Deck, record: Path) -> None:
    """Wait until the turn is where it is to be stopped."""

    def seen(kind: type[object]) -> bool:
        return any(isinstance(event, kind) for event in running.events)

    waits: dict[str, Callable[[], object]] = {
        "in a thought": lambda: seen(ThoughtStreamed),
        "in text": lambda: seen(TextStreamed),
    }
    if stage in {"in a question", "in a tool"}:
        await running.pending(ConfirmationRequest)
        if stage == "in a tool":
            await running.decide(Choice.ONCE)
            await eventually(lambda: '"hang"' in record.read_text())
    else:
        await running.fake.wait_for_stall()
        await eventually(waits.get(stage, lambda: True))


@pytest.mark.parametrize("stage", STAGES)
async def test_a_stop_reaches_the_wire_at_once_and_the_next_request_is_valid(
    stage: str, home: Path, monkeypatch: pytest.MonkeyPatch, measure: Measure
) -> None:
    record = home / "record"
    arguments = [str(FOLDER / "raw.py")]
    entry = {"command": sys.executable, "args": arguments, "env": {"RAW_RECORD": str(record)}}
    actions, kept = STAGES[stage]
    steps: list[Step] = [actions, [Say("fine")]]
    settings = {"mcpServers": {"raw": entry}}
    async with FakeGemini(steps) as fake, deck(fake, monkeypatch, settings=settings) as running:
        await eventually(lambda: running.status("raw") is ServerStatus.READY)
        running.engine.send("first")
        await reached(stage, running, record)
        began = time.perf_counter()
        running.engine.cancel_turn()
        if stage == "in a tool":
            await eventually(lambda: "notifications/cancelled" in record.read_text())
        elif stage != "in a question":
            await at_once(lambda: fake.gone)
        measure(f"stop {stage}: {(time.perf_counter() - began) * 1000:.0f} ms to the wire")
        await running.idle()
        [finished] = [event for event in running.events if isinstance(event, TurnFinished)]
        assert finished.outcome is TurnOutcome.CANCELLED
        assert (finished.unsent, running.store.state.pending) == ("" if kept else "first", ())
        ends = {(call.status, call.result) for call in running.calls}
        assert ends <= {(ToolCallStatus.CANCELLED, "")}
        told = [one.text for one in entries(running.store.state) if isinstance(one, ChatNotice)]
        assert told == ["You stopped this turn."]
        await running.ask("second")
        contents = json.dumps(fake.requests[-1].contents)
        assert all(word in contents for word in kept)
        assert ("first" in contents) is bool(kept)
        assert fake.violations == []
        assert fake.requests[-1].contents[-1] == {"role": "user", "parts": [{"text": "second"}]}
