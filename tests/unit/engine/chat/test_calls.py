"""Tool calls of a turn: what is checked, who is asked, what the model is told."""

import asyncio

import pytest

from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_rules import Json
from tests.fakes.gemini_script import Action, Call, Say
from tests.unit.engine.chat.support import Chat, Run, chatting, make_tool, text_result
from tui.engine.consent.headless import HeadlessConsent
from tui.engine.tools import JsonObject, OfferedTool, ToolCallError, ToolResult
from tui.model.chat import ToolCallStatus
from tui.model.consent import Choice
from tui.model.events import (
    RequestRaised,
    RequestSettled,
    ToolCallChanged,
    ToolCallProgressed,
)

Script = list[tuple[Action, ...]]


def one_step(*calls: tuple[str, Json]) -> Script:
    return [(Call(calls),), (Say("done"),)]


def responses(fake: FakeGemini, request: int = 1) -> list[dict[str, str]]:
    parts = fake.requests[request].contents[-1]["parts"]
    return [part["functionResponse"]["response"] for part in parts]


async def run_once(
    script: Script, *tools: OfferedTool, **tool_runs: Run
) -> tuple[FakeGemini, Chat]:
    async with FakeGemini(script) as fake, chatting(fake, *tools) as chat:
        chat.tools.runs.update(tool_runs)
        await chat.say("x")
    assert fake.violations == []
    return fake, chat


async def test_an_unknown_tool_is_told_to_the_model_with_a_suggestion() -> None:
    fake, chat = await run_once(one_step(("note_add", {"a": 1})), make_tool("notes_add"))
    assert responses(fake) == [{"error": "Tool note_add not found. Did you mean notes_add?"}]
    assert (chat.calls[0].server, chat.calls[0].tool) == ("", "note_add")
    assert chat.calls[0].status is ToolCallStatus.ERROR
    assert chat.answer == "done"


async def test_invalid_arguments_are_told_to_the_model_before_anyone_is_asked() -> None:
    script = one_step(("go", {"wrong": 1}))
    async with FakeGemini(script) as fake, chatting(fake, make_tool("go"), asks=True) as chat:
        await chat.say("x")
    assert "wrong is not a parameter" in responses(fake)[0]["error"]
    assert chat.all(RequestRaised) == []
    assert chat.tools.called == []


async def test_arguments_too_long_to_be_judged_are_refused() -> None:
    fake, chat = await run_once(one_step(("go", {"text": "x" * 300_000})), make_tool("go"))
    assert "longer than" in responses(fake)[0]["error"]
    assert chat.tools.called == []


async def test_a_tool_error_is_an_error_to_the_model_and_to_the_user() -> None:
    async def fails(_: JsonObject) -> ToolResult:
        return text_result("no such note", is_error=True)

    fake, chat = await run_once(one_step(("go", {})), make_tool("go"), go=fails)
    assert responses(fake) == [{"error": "no such note"}]
    assert chat.calls[0].status is ToolCallStatus.ERROR
    assert chat.calls[0].result == "no such note"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ToolCallError("The server is gone.\x1b[31m"), "The server is gone."),
        (KeyError("x"), "KeyError"),
    ],
)
async def test_a_call_that_does_not_come_back_is_an_error(error: Exception, words: str) -> None:
    async def fails(_: JsonObject) -> ToolResult:
        raise error

    fake, chat = await run_once(
        one_step(("go", {}), ("fine", {})), make_tool("go"), make_tool("fine"), go=fails
    )
    assert words in responses(fake)[0]["error"]
    assert responses(fake)[1] == {"output": "fine ran"}
    assert "\x1b" not in chat.calls[0].result


async def test_a_long_result_is_cut_in_the_middle_for_the_model() -> None:
    async def talks(_: JsonObject) -> ToolResult:
        return text_result("a" * 100_000 + "z")

    fake, _ = await run_once(one_step(("go", {})), make_tool("go"), go=talks)
    output = responses(fake)[0]["output"]
    assert "characters left out" in output
    assert output.endswith("z")
    assert len(output) < 61_000


async def test_progress_is_shown_while_a_call_runs() -> None:
    _, chat = await run_once(one_step(("go", {})), make_tool("go"))
    assert chat.all(ToolCallProgressed)[0].progress.total == 2.0


async def test_a_denied_call_is_told_to_the_model_with_the_users_word() -> None:
    script = one_step(("go", {"text": "a"}), ("other", {}))
    tools = (make_tool("go"), make_tool("other"))
    async with FakeGemini(script) as fake, chatting(fake, *tools, asks=True) as chat:
        chat.conversation.send("x")
        await chat.decide(Choice.DENY, "Use the other folder.")
        await chat.decide(Choice.ONCE, count=2)
        await chat.conversation.wait_idle()
    denied, ran = responses(fake)
    assert "Use the other folder." in denied["error"]
    assert ran == {"output": "other ran"}
    assert [call.status for call in chat.calls] == [ToolCallStatus.DENIED, ToolCallStatus.OK]
    assert [name for name, _ in chat.tools.called] == ["other"]
    assert fake.violations == []


async def test_the_same_call_denied_once_is_not_asked_again_in_the_turn() -> None:
    again: Script = [(Call([("go", {"text": "a"})]),)] * 2 + [(Say("ok"),)]
    async with FakeGemini(again) as fake, chatting(fake, make_tool("go"), asks=True) as chat:
        chat.conversation.send("x")
        await chat.decide(Choice.DENY)
        await chat.conversation.wait_idle()
    assert len(chat.all(RequestRaised)) == 1
    assert "denied this very call already" in responses(fake, 2)[0]["error"]


async def test_a_confirmed_call_runs_while_the_next_one_is_asked_for() -> None:
    ran = asyncio.Event()

    async def run(_: JsonObject) -> ToolResult:
        ran.set()
        return text_result("ok")

    script = one_step(("go", {"text": "1"}), ("go", {"text": "2"}))
    async with FakeGemini(script) as fake, chatting(fake, make_tool("go"), asks=True) as chat:
        chat.tools.runs["go"] = run
        chat.conversation.send("x")
        await chat.decide(Choice.ONCE)
        await chat.wait_for(RequestRaised, 2)
        await asyncio.wait_for(ran.wait(), 5)
        assert len(chat.store.state.pending) == 1
        await chat.decide(Choice.ONCE, count=2)
        await chat.conversation.wait_idle()
    assert responses(fake) == [{"output": "ok"}, {"output": "ok"}]


async def test_what_is_shown_is_what_is_sent() -> None:
    arguments = {"text": "a\u202eb\x1b[2J" + " " * 50 + "\U000e0041end"}
    script = one_step(("go", arguments))
    async with FakeGemini(script) as fake, chatting(fake, make_tool("go"), asks=True) as chat:
        chat.conversation.send("x")
        asked = await chat.wait_for(RequestRaised)
        await chat.decide(Choice.ONCE)
        await chat.conversation.wait_idle()
    shown = asked.request.arguments
    assert chat.tools.called == [("go", arguments)]
    assert "\\u202e" in shown
    assert "\\u001b[2J" in shown
    assert "\\udb40\\udc41end" in shown
    assert asked.request.claims == ("read-only",)


async def test_always_this_tool_does_not_ask_twice() -> None:
    script: Script = [(Call([("go", {"text": "1"}), ("go", {"text": "2"})]),), (Say("a"),)]
    script += [(Call([("go", {"text": "3"})]),), (Say("b"),)]
    async with FakeGemini(script) as fake, chatting(fake, make_tool("go"), asks=True) as chat:
        chat.conversation.send("x")
        await chat.decide(Choice.ALWAYS_TOOL)
        await chat.conversation.wait_idle()
        await chat.say("y")
    assert len(chat.all(RequestRaised)) == 1
    assert len(chat.tools.called) == 3
    asked = [e for e in chat.all(ToolCallChanged) if e.status is ToolCallStatus.ASKING]
    assert len(asked) == 1


async def test_a_changed_definition_asks_again() -> None:
    script: Script = [(Call([("go", {})]),), (Say("a"),), (Call([("go", {})]),), (Say("b"),)]
    async with FakeGemini(script) as fake, chatting(fake, make_tool("go"), asks=True) as chat:
        chat.conversation.send("x")
        await chat.decide(Choice.ALWAYS_SERVER)
        await chat.conversation.wait_idle()
        chat.tools.tools = [make_tool("go", definition_hash="another")]
        chat.conversation.send("y")
        await chat.decide(Choice.ONCE, count=2)
        await chat.conversation.wait_idle()
    assert len(chat.tools.called) == 2


async def test_a_tool_that_changes_while_the_user_decides_is_not_run() -> None:
    async with (
        FakeGemini(one_step(("go", {}))) as fake,
        chatting(fake, make_tool("go"), asks=True) as chat,
    ):
        chat.conversation.send("x")
        await chat.wait_for(RequestRaised)
        chat.tools.tools = [make_tool("go", definition_hash="another")]
        await chat.decide(Choice.ONCE)
        await chat.conversation.wait_idle()
    assert chat.tools.called == []
    assert "changed or gone" in responses(fake)[0]["error"]


async def test_a_server_that_goes_away_takes_its_questions_along() -> None:
    async with (
        FakeGemini(one_step(("go", {}))) as fake,
        chatting(fake, make_tool("go"), asks=True) as chat,
    ):
        chat.conversation.send("x")
        asked = await chat.wait_for(RequestRaised)
        assert chat.broker is not None
        chat.broker.withdraw_server(asked.request.server)
        await chat.conversation.wait_idle()
        await chat.decide(Choice.ONCE)  # too late: nothing happens
    assert len(chat.all(RequestSettled)) == 1
    assert chat.tools.called == []
    assert "went away" in responses(fake)[0]["error"]


async def test_without_a_screen_only_listed_tools_run() -> None:
    script = one_step(("go", {}), ("other", {}))
    tools = (make_tool("go"), make_tool("other"))
    consent = HeadlessConsent(["notes.go"])
    async with FakeGemini(script) as fake, chatting(fake, *tools, consent=consent) as chat:
        await chat.say("x")
    ran, denied = responses(fake)
    assert ran == {"output": "go ran"}
    assert "no user to ask" in denied["error"]
    assert chat.calls[1].status is ToolCallStatus.DENIED
