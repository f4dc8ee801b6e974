"""How a turn is bounded: unknown tools, limits of calls, and what it waits for."""

import asyncio

import pytest

from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import (
    Action,
    Call,
    Fail,
    Finish,
    Raw,
    Say,
    Stall,
)
from tests.unit.engine.chats.support import chatting, make_tool
from tui.model.chat import TurnOutcome
from tui.model.events import (
    TextStreamed,
    TurnStarted,
)
from tui.model.servers import ServerId


async def test_an_unexpected_call_is_answered() -> None:
    steps: list[tuple[Action, ...]] = [
        (Call([("default_api.go", {})], signed=False), Finish("UNEXPECTED_TOOL_CALL")),
        (Say("sorry"),),
    ]
    async with FakeGemini(steps) as fake, chatting(fake, make_tool("stay")) as chat:
        await chat.say("x")
    assert fake.violations == []
    response = fake.requests[1].contents[2]["parts"][0]["functionResponse"]["response"]
    assert response == {"error": "Tool default_api.go not found."}
    assert chat.answer == "sorry"


@pytest.mark.parametrize("prefix", ["default_api.", "default_api:"])
async def test_a_call_with_the_prefix_that_models_add_is_run(prefix: str) -> None:
    steps: list[tuple[Action, ...]] = [(Call([(f"{prefix}go", {})]),), (Say("done"),)]
    async with FakeGemini(steps) as fake, chatting(fake, make_tool("go")) as chat:
        await chat.say("x")
    assert fake.violations == []
    response = fake.requests[1].contents[2]["parts"][0]["functionResponse"]
    assert response["name"] == f"{prefix}go"
    assert response["response"] == {"output": "go ran"}
    assert (chat.calls[0].server, chat.calls[0].tool) == ("notes", "go")


async def test_a_refused_tool_is_left_out_from_then_on() -> None:
    refusal = "Unknown name \"x\" at 'tools[0].function_declarations[1].parameters_json_schema'"
    steps: list[tuple[Action, ...]] = [(Fail(400, refusal),), (Say("a"),), (Say("b"),)]
    tools = (make_tool("good"), make_tool("bad"))
    async with FakeGemini(steps) as fake, chatting(fake, *tools) as chat:
        await chat.say("x")
        await chat.say("y")
    names = [
        [d["name"] for d in request.body["tools"][0]["functionDeclarations"]]
        for request in fake.requests
    ]
    assert names == [["good", "bad"], ["good"], ["good"]]
    assert "bad is not offered" in chat.notices[0].text
    assert chat.answer == "ab"


async def test_the_last_refused_tool_leaves_a_request_without_tools() -> None:
    refusal = "FunctionDeclaration 'bad' in the request exceeds the maximum allowed nesting depth."
    steps: list[tuple[Action, ...]] = [(Fail(400, refusal),), (Say("a"),)]
    async with FakeGemini(steps) as fake, chatting(fake, make_tool("bad")) as chat:
        await chat.say("x")
    assert "tools" not in fake.requests[1].body
    assert chat.answer == "a"


async def test_calls_beyond_the_limit_are_not_run_and_the_model_is_told() -> None:
    steps: list[tuple[Action, ...]] = [
        (Call([("go", {}), ("go", {}), ("go", {})]),),
        (Say("That is all."),),
    ]
    async with (
        FakeGemini(steps) as fake,
        chatting(fake, make_tool("go"), max_tool_calls=2) as chat,
    ):
        await chat.say("x")
    assert fake.violations == []
    assert len(chat.tools.called) == 2
    responses = [p["functionResponse"] for p in fake.requests[1].contents[2]["parts"]]
    assert "limited to 2 tool calls" in responses[2]["response"]["error"]
    assert chat.answer == "That is all."
    assert chat.last_turn.outcome is TurnOutcome.LIMITED
    assert "limited to 2" in chat.notices[0].text


async def test_a_model_that_never_stops_calling_is_stopped() -> None:
    steps: list[tuple[Action, ...]] = [(Call([("go", {})]),)] * 20
    async with (
        FakeGemini(steps) as fake,
        chatting(fake, make_tool("go"), max_tool_calls=3) as chat,
    ):
        await chat.say("x")
        fake.steps[:] = [(Say("fine"),)]
        await chat.say("y")
    assert len(chat.tools.called) == 3
    assert len(fake.requests) == 6
    assert fake.violations == []
    assert len(chat.notices) == 1
    assert chat.answer == "fine"


async def test_hostile_text_split_over_deltas_is_dropped_whole() -> None:
    step = (
        Say("a\x1b"),
        Say("]52;c;ZXZp"),
        Say("bA==\x07b"),
        Say("\x1b[3"),
        Say("1mred\x9b2"),
        Say("Jc\u202e"),
        Say("\x1b]0;never ended"),
    )
    async with FakeGemini([step]) as fake, chatting(fake) as chat:
        await chat.say("x")
    assert chat.answer == "abredc⟨U+202E⟩"
    assert all("\x1b" not in event.delta for event in chat.all(TextStreamed))


async def test_lone_surrogates_do_not_end_the_conversation() -> None:
    raw = 'data: {"candidates":[{"content":{"parts":[{"text":"a\\ud800b"}]}}]}\r\n\r\n'
    steps: list[tuple[Action, ...]] = [(Raw(raw),), (Say("fine"),)]
    async with FakeGemini(steps) as fake, chatting(fake) as chat:
        await chat.say("one \ud800")
        await chat.say("two")
    assert chat.answer.endswith("fine")
    assert fake.violations == []


async def test_a_turn_waits_for_what_has_to_be_prepared() -> None:
    ready = asyncio.Event()

    async def prepare() -> list[ServerId]:
        await ready.wait()
        return [] if fake.requests else [ServerId("late")]

    async with FakeGemini([(Say("hello"),)]) as fake, chatting(fake, prepare=prepare) as chat:
        chat.send("x")
        await chat.wait_for(TurnStarted)
        assert fake.requests == []
        ready.set()
        await chat.say("y")
    assert len(fake.requests) == 2
    assert [notice.text for notice in chat.notices] == [
        "Sent without late, which is still starting."
    ]


async def test_a_fault_of_our_own_ends_the_turn_and_nothing_else() -> None:
    async def prepare() -> list[ServerId]:
        raise RuntimeError("a bug")

    async with FakeGemini() as fake, chatting(fake, prepare=prepare) as chat:
        await chat.say("x")
        assert chat.last_turn.unsent == "x"
        await chat.say("y")
    assert len(chat.notices) == 2
    assert "RuntimeError" in chat.notices[0].text


async def test_an_idle_stream_is_given_up() -> None:
    async with FakeGemini([(Say("a"), Stall())]) as fake, chatting(fake, idle_timeout=0.2) as chat:
        await chat.say("x")
    assert "sent nothing" in chat.notices[0].text
