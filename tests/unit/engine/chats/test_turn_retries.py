"""Turns that ask the model again: overload, quota, malformed calls."""

import time

import anyio

from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Action, Fail, Finish, Say
from tests.support.waiting import PATIENCE
from tests.unit.engine.chats.support import Chat, chatting
from tui.engine.chats.turn import RetryWait
from tui.model.chat import Severity, TurnOutcome, TurnPhase
from tui.model.events import TurnFinished, TurnPhaseChanged


async def test_an_overload_is_tried_again_once_and_said() -> None:
    overload = (Fail(503, "high demand", retry_delay="0.05s"),)
    async with FakeGemini([overload, (Say("here"),)]) as fake, chatting(fake) as chat:
        await chat.say("x")
    assert chat.answer == "here"
    (notice,) = chat.notices
    assert notice.severity is Severity.WARNING
    assert "Trying again" in notice.advice
    assert len(fake.requests) == 2


async def test_a_second_overload_ends_the_turn() -> None:
    overload = (Fail(429, "Slow down.", retry_delay="0.05s"),)
    async with FakeGemini([overload, overload]) as fake, chatting(fake) as chat:
        await chat.say("x")
    assert len(fake.requests) == 2
    assert [notice.severity for notice in chat.notices] == [Severity.WARNING, Severity.ERROR]
    assert chat.last_turn.unsent == "x"


async def test_a_user_who_sees_it_can_end_the_wait_for_another_try() -> None:
    busy = (Fail(429, "Slow down.", retry_delay="60s"),)
    retry = RetryWait.watched()
    steps: list[tuple[Action, ...]] = [busy, busy, (Say("here"),), busy]
    async with FakeGemini(steps) as fake, chatting(fake, retry=retry) as chat:
        before = time.monotonic()
        chat.send("x")
        for number in (2, 4):
            await retrying(chat, number)
            turn = chat.store.state.conversation.turn
            assert turn is not None
            assert turn.until is not None
            assert turn.until >= before + 60
            retry.end(again=True)
        with anyio.fail_after(PATIENCE):
            await chat.conversation.wait_idle()
        assert chat.answer == "here"
        assert len(chat.notices) == 1
        chat.send("y")
        await retrying(chat, 8)
        retry.end(again=False)
        await chat.wait_for(TurnFinished, 2)
        retry.end(again=True)  # nothing waits any more
    assert len(fake.requests) == 4
    assert (chat.last_turn.outcome, chat.last_turn.unsent) == (TurnOutcome.FAILED, "y")
    assert "quota" in chat.notices[-1].text


async def test_a_wait_for_another_try_ends_with_the_turn() -> None:
    busy = (Fail(503, "high demand", retry_delay="60s"),)
    async with FakeGemini([busy]) as fake, chatting(fake, retry=RetryWait.watched()) as chat:
        chat.send("x")
        await retrying(chat, 2)
        chat.conversation.cancel()
        await chat.wait_for(TurnFinished)
    assert (chat.last_turn.outcome, chat.last_turn.unsent) == (TurnOutcome.CANCELLED, "x")
    assert len(fake.requests) == 1


async def retrying(chat: Chat, count: int) -> None:
    """Wait for change number `count` of the turn's phase: to the wait for another try."""
    assert (await chat.wait_for(TurnPhaseChanged, count)).phase is TurnPhase.RETRYING


async def test_a_malformed_call_is_asked_for_again_once() -> None:
    malformed = (Finish("MALFORMED_FUNCTION_CALL", "print(default_api.go())"),)
    steps: list[tuple[Action, ...]] = [malformed, (Say("here"),)]
    async with FakeGemini(steps) as fake, chatting(fake) as chat:
        await chat.say("x")
    assert chat.answer == "here"
    assert len(fake.requests) == 2
    assert fake.requests[1].contents == fake.requests[0].contents


async def test_a_model_that_only_writes_malformed_calls_is_given_up() -> None:
    malformed = (Finish("MALFORMED_FUNCTION_CALL", "print(default_api.go())"),)
    async with FakeGemini([malformed] * 2) as fake, chatting(fake) as chat:
        await chat.say("x")
    assert len(fake.requests) == 2
    assert "malformed" in chat.notices[-1].text
    assert chat.last_turn.unsent == "x"


async def test_a_malformed_call_after_text_ends_the_turn_and_the_text_stays_once() -> None:
    malformed = (Say("Let me see. "), Finish("MALFORMED_FUNCTION_CALL", "print(x)"))
    async with FakeGemini([malformed, (Say("fine"),)]) as fake, chatting(fake) as chat:
        await chat.say("x")
        assert chat.answer == "Let me see. "
        assert chat.last_turn.outcome is TurnOutcome.FAILED
        assert chat.last_turn.unsent == ""
        assert "malformed" in chat.notices[-1].text
        await chat.say("y")
    assert fake.violations == []
    assert len(fake.requests) == 2
    assert fake.requests[1].contents[1]["parts"][0] == {"text": "Let me see. "}
