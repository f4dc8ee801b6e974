"""What the transcript keeps of results."""

import time

import pytest

from tui.model import events as e
from tui.model.chat import EntryId, ToolCall, ToolCallStatus, TurnId, TurnOutcome, UserMessage
from tui.model.servers import ServerId
from tui.store import reducer
from tui.store.reducer import reduce
from tui.store.state import AppState, TranscriptState


def after(state: AppState, *events: e.Event) -> AppState:
    for event in events:
        state = reduce(state, event)
    return state


def called(number: int, result: str) -> tuple[e.Event, ...]:
    """Give the events of one call."""
    entry = EntryId(f"e{number}")
    return (
        e.ToolCallRequested(ToolCall(entry, ServerId("s"), "look", "{}")),
        e.ToolCallChanged(entry, ToolCallStatus.OK, 0.1, result),
    )


def turn(number: int) -> e.TurnStarted:
    return e.TurnStarted(TurnId(f"t{number}"), UserMessage(EntryId(f"u{number}"), "go"), 0.0)


def results(state: AppState) -> list[str]:
    entries = (*state.conversation.transcript.settled, *state.conversation.transcript.live)
    return [entry.result for entry in entries if isinstance(entry, ToolCall)]


def test_the_newest_results_stay_whole_and_older_ones_are_cut_across_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reducer, "MAX_RESULTS", 20_000)
    state = after(AppState(), turn(1), *called(1, "a" * 9_000), *called(2, "b" * 9_000))
    assert results(state) == ["a" * 9_000, "b" * 9_000]
    finished = e.TurnFinished(TurnId("t1"), TurnOutcome.COMPLETED, "")
    state = after(state, finished, turn(2), *called(3, "c" * 9_000))
    cut = "a" * 2_000 + "\n… [clipped; 7,000 characters were dropped]"
    assert results(state) == [cut, "b" * 9_000, "c" * 9_000]
    assert [
        len(state.conversation.transcript.settled),
        len(state.conversation.transcript.live),
    ] == [4, 2]
    state = after(state, *called(4, "d"))
    assert results(state) == [cut, "b" * 9_000, "c" * 9_000, "d"]


def test_what_is_cut_once_is_not_cut_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reducer, "MAX_RESULTS", 5_000)
    state = after(AppState(), turn(1), *called(1, "a" * 9_000))
    for number in range(2, 5):
        state = after(state, *called(number, str(number) * 5_000))
    assert results(state)[0] == "a" * 2_000 + "\n… [clipped; 7,000 characters were dropped]"
    assert results(state)[-1] == "4" * 5_000


def test_within_the_limit_nothing_is_touched() -> None:
    call = ToolCall(EntryId("e"), ServerId("s"), "look", "{}", result="x")
    transcript = TranscriptState(settled=(call,) * 10)
    assert reducer.clip_old_results(transcript) is transcript


def test_a_long_conversation_of_large_results_is_bounded_and_cheap() -> None:
    calls = (
        ToolCall(EntryId(f"e{n}"), ServerId("s"), "look", "{}", result="x" * 9_000)
        for n in range(5_000)
    )
    transcript = TranscriptState(settled=tuple(calls))
    began = time.process_time()
    kept = reducer.clip_old_results(transcript)
    assert time.process_time() - began < 1
    held = sum(len(entry.result) for entry in kept.settled if isinstance(entry, ToolCall))
    assert held < reducer.MAX_RESULTS + 5_000 * 2_100
    assert [entry.id for entry in kept.settled] == [entry.id for entry in transcript.settled]


def test_calls_outside_a_turn_settle_as_they_end() -> None:
    state = AppState()
    for number in range(3):
        state = after(state, *called(number, "a"))
        transcript = state.conversation.transcript
        assert (len(transcript.settled), transcript.live) == (number + 1, ())


def test_a_call_outside_a_turn_shows_its_end_although_turns_came_and_went() -> None:
    asked, ended = called(1, "a")
    state = after(AppState(), asked, turn(1), *called(2, "b"))
    state = after(state, e.TurnFinished(TurnId("t1"), TurnOutcome.COMPLETED, ""), turn(2))
    assert results(state) == ["", "b"]
    state = after(state, ended, e.TurnFinished(TurnId("t2"), TurnOutcome.COMPLETED, ""))
    assert results(state) == ["a", "b"]
    assert state.conversation.transcript.live == ()
    ids = [entry.id for entry in state.conversation.transcript.settled]
    assert ids == ["e1", "u1", "e2", "t1-end", "u2", "t2-end"]
