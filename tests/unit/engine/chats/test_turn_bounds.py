"""How a turn is bounded: unknown and refused tools, limits, faults, and asking the model again."""

import time

from tests.fakes.gemini_script import Call, Fail, Finish, Raw, Say
from tests.unit.engine.chats.support import Chat, make_tool, talking
from tui.engine.chats.turn import RetryWait
from tui.model.chat import Severity, TurnOutcome, TurnPhase
from tui.model.events import TurnFinished, TurnPhaseChanged

GO = make_tool("go")


async def test_a_call_of_an_unknown_tool_is_answered_and_one_with_a_models_prefix_is_run() -> None:
    unexpected = (Call([("default_api.stay", {})], signed=False), Finish("UNEXPECTED_TOOL_CALL"))
    async with talking([], GO) as chat:
        await chat.play(unexpected, (Say("sorry"),))
        assert chat.responses() == [{"error": "Tool default_api.stay not found."}]
        assert chat.answer == "sorry"
        for prefix in ("default_api.", "default_api:"):
            await chat.play((Call([(f"{prefix}go", {})]),), (Say("done"),))
            response = chat.fake.requests[1].contents[2]["parts"][0]["functionResponse"]
            assert response["name"] == f"{prefix}go"
            assert response["response"] == {"output": "go ran"}
            assert (chat.calls[0].server, chat.calls[0].tool) == ("notes", "go")


async def test_a_refused_tool_is_left_out_from_then_on_and_the_last_one_leaves_none() -> None:
    refusal = "Unknown name \"x\" at 'tools[0].function_declarations[1].parameters_json_schema'"
    deep = "FunctionDeclaration 'good' in the request exceeds the maximum allowed nesting depth."
    steps = [(Fail(400, refusal),), (Say("a"),), (Say("b"),), (Fail(400, deep),), (Say("c"),)]
    async with talking(steps, make_tool("good"), make_tool("bad")) as chat:
        for text in "xyz":
            await chat.say(text)
    names = [
        [d["name"] for tools in r.body.get("tools", ()) for d in tools["functionDeclarations"]]
        for r in chat.fake.requests
    ]
    assert names == [["good", "bad"], ["good"], ["good"], ["good"], []]
    assert "tools" not in chat.fake.requests[-1].body
    assert "bad is not offered" in chat.notices[0].text
    assert chat.answer == "abc"


async def test_calls_beyond_the_limit_are_not_run_and_a_model_that_never_stops_is_stopped() -> None:
    steps = [(Call([("go", {}), ("go", {}), ("go", {})]),), (Say("That is all."),)]
    async with talking(steps, GO, max_tool_calls=2) as chat:
        await chat.say("x")
        assert len(chat.tools.called) == 2
        assert "limited to 2 tool calls" in chat.responses()[2]["error"]
        assert chat.answer == "That is all."
        assert chat.last_turn.outcome is TurnOutcome.LIMITED
        assert "limited to 2" in chat.notices[0].text
        await chat.play(*[(Call([("go", {})]),)] * 20)
        chat.fake.steps[:] = [(Say("fine"),)]
        await chat.say("y")
        assert len(chat.tools.called) == 2 + 2
        assert len(chat.fake.requests) == 5
        assert len(chat.notices) == 1
        assert chat.answer == "fine"


async def test_lone_surrogates_do_not_end_the_conversation() -> None:
    raw = 'data: {"candidates":[{"content":{"parts":[{"text":"a\\ud800b"}]}}]}\r\n\r\n'
    async with talking([(Raw(raw),), (Say("fine"),)]) as chat:
        await chat.say("one \ud800")
        await chat.say("two")
    assert chat.answer.endswith("fine")


async def test_an_overload_is_tried_again_once_and_said() -> None:
    overload = (Fail(503, "high demand", retry_delay="0.01s"),)
    async with talking([]) as chat:
        await chat.play(overload, (Say("here"),))
        assert chat.answer == "here"
        (notice,) = chat.notices
        assert notice.severity is Severity.WARNING
        assert "Trying again" in notice.advice
        assert len(chat.fake.requests) == 2
        await chat.play(overload, overload)
        assert len(chat.fake.requests) == 2
        assert [notice.severity for notice in chat.notices] == [Severity.WARNING, Severity.ERROR]
        assert chat.last_turn.unsent == "x"


async def retrying(chat: Chat, count: int) -> None:
    """Wait for change number `count` of the turn's phase: to the wait for another try."""
    assert (await chat.wait_for(TurnPhaseChanged, count)).phase is TurnPhase.RETRYING


async def test_a_user_who_sees_it_can_end_the_wait_for_another_try() -> None:
    busy = (Fail(429, "Slow down.", retry_delay="60s"),)
    retry = RetryWait.watched()
    async with talking([busy, busy, (Say("here"),), busy, busy], retry=retry) as chat:
        before = time.monotonic()
        chat.send("x")
        for number in (2, 4):
            await retrying(chat, number)
            turn = chat.store.state.conversation.turn
            assert turn is not None
            assert turn.until is not None
            assert turn.until >= before + 60
            retry.end(again=True)
        await chat.idle()
        assert chat.answer == "here"
        assert len(chat.notices) == 1
        chat.send("y")
        await retrying(chat, 8)
        retry.end(again=False)
        await chat.wait_for(TurnFinished, 2)
        retry.end(again=True)  # nothing waits any more
        assert len(chat.fake.requests) == 4
        assert (chat.last_turn.outcome, chat.last_turn.unsent) == (TurnOutcome.FAILED, "y")
        assert "quota" in chat.notices[-1].text
        chat.send("z")
        await retrying(chat, 10)
        chat.conversation.cancel()
        await chat.wait_for(TurnFinished, 3)
    assert (chat.last_turn.outcome, chat.last_turn.unsent) == (TurnOutcome.CANCELLED, "z")
    assert len(chat.fake.requests) == 5


async def test_a_malformed_call_is_asked_for_again_once_unless_text_came_before_it() -> None:
    malformed = (Finish("MALFORMED_FUNCTION_CALL", "print(default_api.go())"),)
    async with talking([]) as chat:
        await chat.play(malformed, (Say("here"),))
        assert chat.answer == "here"
        first, second = chat.fake.requests
        assert second.contents == first.contents
        await chat.play(malformed, malformed)
        assert len(chat.fake.requests) == 2
        assert "malformed" in chat.notices[-1].text
        assert chat.last_turn.unsent == "x"
        await chat.play((Say("Let me see. "), *malformed), (Say("fine"),))
        assert chat.answer == "Let me see. "
        assert chat.last_turn.outcome is TurnOutcome.FAILED
        assert chat.last_turn.unsent == ""
        assert "malformed" in chat.notices[-1].text
        await chat.say("y")
        assert len(chat.fake.requests) == 2
        assert chat.fake.requests[1].contents[1]["parts"][0] == {"text": "Let me see. "}
