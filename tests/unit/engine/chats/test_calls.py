"""Tool calls of a turn: what is checked, who is asked, what the model is told."""

import asyncio
import threading
from dataclasses import replace

import anyio
import pytest

from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_rules import Json
from tests.fakes.gemini_script import Action, Call, Say
from tests.support.waiting import PATIENCE
from tests.unit.engine.chats.support import Chat, Run, chatting, make_policy, make_tool, text_result
from tui.engine.approval.gate import Gate
from tui.engine.chats import calls as module
from tui.engine.chats.history import RESPONSE_ALLOWANCE
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.desk import Desk
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool, ToolCallError, ToolResult
from tui.engine.mcp.schema import validate
from tui.model.chat import ToolCallStatus
from tui.model.consent import Choice
from tui.model.events import (
    RequestRaised,
    RequestSettled,
    ServerStatusChanged,
    ToolCallChanged,
    ToolCallProgressed,
)
from tui.model.requests import ConfirmationRequest
from tui.model.servers import Origin, ServerId, ServerStatus, Transport
from tui.model.settings_rules import DEFAULT_RESULT_SIZE

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
    assert "'wrong' was unexpected" in responses(fake)[0]["error"]
    assert chat.all(RequestRaised) == []
    assert chat.tools.called == []


async def test_arguments_too_long_to_be_judged_are_refused() -> None:
    fake, chat = await run_once(one_step(("go", {"text": "x" * 400_000})), make_tool("go"))
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
        (
            ToolCallError("The server is no longer connected.\x1b[31m"),
            "The server is no longer connected.",
        ),
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
    assert "are left out] …" in output
    assert output.endswith("z")
    assert len(output) < DEFAULT_RESULT_SIZE + RESPONSE_ALLOWANCE + 100


async def test_progress_is_shown_while_a_call_runs() -> None:
    _, chat = await run_once(one_step(("go", {})), make_tool("go"))
    assert chat.all(ToolCallProgressed)[0].progress.total == 2.0


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("Use the other folder.", "Use the other folder."),
        ("because no", "because no."),
        ("really? ", "really?"),
        ("", "The user denied this call."),
    ],
)
async def test_a_denied_call_is_told_to_the_model_with_the_users_word(word: str, told: str) -> None:
    script = one_step(("go", {"text": "a"}), ("other", {}))
    tools = (make_tool("go"), make_tool("other"))
    async with FakeGemini(script) as fake, chatting(fake, *tools, asks=True) as chat:
        chat.send("x")
        await chat.decide(Choice.DENY, word)
        await chat.decide(Choice.ONCE, count=2)
        await chat.conversation.wait_idle()
    denied, ran = responses(fake)
    assert f"Denied: {told} Do not try" in denied["error"]
    assert ran == {"output": "other ran"}
    assert [call.status for call in chat.calls] == [ToolCallStatus.DENIED, ToolCallStatus.OK]
    assert [name for name, _ in chat.tools.called] == ["other"]
    assert fake.violations == []


async def test_the_same_call_denied_once_is_not_asked_again_in_the_turn() -> None:
    again: Script = [(Call([("go", {"text": "a"})]),)] * 2 + [(Say("ok"),)]
    async with FakeGemini(again) as fake, chatting(fake, make_tool("go"), asks=True) as chat:
        chat.send("x")
        await chat.decide(Choice.DENY)
        await chat.conversation.wait_idle()
    assert len(chat.all(RequestRaised)) == 1
    assert "already denied this exact call" in responses(fake, 2)[0]["error"]


async def test_a_step_asks_about_all_its_calls_at_once_in_any_order_of_answers() -> None:
    ran = asyncio.Event()

    async def run(_: JsonObject) -> ToolResult:
        ran.set()
        return text_result("ok")

    script = one_step(("go", {"text": "1"}), ("go", {"text": "2"}))
    async with FakeGemini(script) as fake, chatting(fake, make_tool("go"), asks=True) as chat:
        chat.tools.runs["go"] = run
        chat.send("x")
        await chat.wait_for(RequestRaised, 2)
        assert len(chat.store.state.pending) == 2
        asked = [
            event.request
            for event in chat.all(RequestRaised)
            if isinstance(event.request, ConfirmationRequest)
        ]
        assert [request.call for request in asked] == [call.id for call in chat.calls]
        await chat.decide(Choice.ONCE, count=2)
        await asyncio.wait_for(ran.wait(), 5)  # while the first one is still open
        assert [request.id for request in chat.store.state.pending] == [asked[0].id]
        await chat.decide(Choice.DENY)
        await chat.conversation.wait_idle()
    denied, ok = responses(fake)
    assert denied["error"].startswith("Denied")
    assert ok == {"output": "ok"}


async def test_stopping_withdraws_all_questions_of_a_step() -> None:
    script = one_step(("go", {"text": "1"}), ("go", {"text": "2"}), ("go", {"text": "3"}))
    async with FakeGemini(script) as fake, chatting(fake, make_tool("go"), asks=True) as chat:
        chat.send("x")
        await chat.wait_for(RequestRaised, 3)
        chat.conversation.cancel()
        await chat.conversation.wait_idle()
        assert len(chat.all(RequestSettled)) == 3
        assert [call.status for call in chat.calls] == [ToolCallStatus.CANCELLED] * 3
        await chat.say("y")
    assert fake.violations == []
    assert chat.tools.called == []


async def test_more_calls_than_anyone_is_asked_about_at_once_wait_and_are_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_ASKED", 2)
    script = one_step(*[("go", {"text": str(number)}) for number in range(4)])
    async with FakeGemini(script) as fake, chatting(fake, make_tool("go"), asks=True) as chat:
        chat.send("x")
        await chat.wait_for(RequestRaised, 2)
        assert len(chat.store.state.pending) == 2
        for count in range(1, 5):
            await chat.decide(Choice.ONCE, count=count)
        await chat.conversation.wait_idle()
    assert [arguments["text"] for _, arguments in chat.tools.called] == ["0", "1", "2", "3"]


async def test_the_row_the_question_and_the_server_get_the_same_arguments() -> None:
    schema = {"type": "object", "properties": {"text": {"type": "integer"}}}
    tool = replace(make_tool("go"), schema=schema)
    script = one_step(("go", {"text": 3.0}))
    async with FakeGemini(script) as fake, chatting(fake, tool, asks=True) as chat:
        chat.send("x")
        asked = await chat.wait_for(RequestRaised)
        await chat.decide(Choice.ONCE)
        await chat.conversation.wait_idle()
    assert isinstance(asked.request, ConfirmationRequest)
    assert chat.calls[0].arguments == asked.request.arguments == '{\n  "text": 3\n}'
    assert isinstance(chat.tools.called[0][1]["text"], int)


async def test_a_slow_check_does_not_hold_up_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, may_end = threading.Event(), threading.Event()

    def check(_schema: JsonObject, _arguments: JsonObject) -> list[str]:
        entered.set()
        may_end.wait(5)
        return []

    monkeypatch.setattr(validate, "check_arguments", check)
    async with FakeGemini(one_step(("go", {}))) as fake, chatting(fake, make_tool("go")) as chat:
        chat.send("x")
        await asyncio.to_thread(entered.wait, 5)
        assert [call.status for call in chat.calls] == [ToolCallStatus.WAITING]
        may_end.set()
        await chat.conversation.wait_idle()
    assert [call.status for call in chat.calls] == [ToolCallStatus.OK]


async def test_stopping_while_arguments_are_prepared_leaves_no_row_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entered, may_end = threading.Event(), threading.Event()

    def coerce(_schema: JsonObject, arguments: JsonObject) -> JsonObject:
        entered.set()
        may_end.wait(PATIENCE)
        return arguments

    monkeypatch.setattr(validate, "coerce", coerce)
    async with FakeGemini(one_step(("go", {}))) as fake, chatting(fake, make_tool("go")) as chat:
        chat.send("x")
        await asyncio.to_thread(entered.wait, PATIENCE)
        chat.conversation.cancel()
        with anyio.fail_after(PATIENCE):
            await chat.conversation.wait_idle()
        may_end.set()
        assert chat.calls == []
        await chat.say("y")
        assert chat.tools.called == []
    assert fake.violations == []
    assert chat.answer == "done"


async def test_what_is_shown_is_what_is_sent() -> None:
    arguments = {"text": "a\u202eb\x1b[2J" + " " * 50 + "\U000e0041end"}
    script = one_step(("go", arguments))
    async with FakeGemini(script) as fake, chatting(fake, make_tool("go"), asks=True) as chat:
        chat.send("x")
        asked = await chat.wait_for(RequestRaised)
        await chat.decide(Choice.ONCE)
        await chat.conversation.wait_idle()
    assert isinstance(asked.request, ConfirmationRequest)
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
        chat.send("x")
        await chat.wait_for(RequestRaised, 2)
        await chat.decide(Choice.ALWAYS_TOOL)
        await chat.conversation.wait_idle()
        await chat.say("y")
    assert len(chat.all(RequestRaised)) == 2  # both of the first step, answered as one
    assert len(chat.all(RequestSettled)) == 2
    assert len(chat.tools.called) == 3
    asked = [e for e in chat.all(ToolCallChanged) if e.status is ToolCallStatus.ASKING]
    assert len(asked) == 2


async def test_a_changed_definition_asks_again() -> None:
    script: Script = [(Call([("go", {})]),), (Say("a"),), (Call([("go", {})]),), (Say("b"),)]
    async with FakeGemini(script) as fake, chatting(fake, make_tool("go"), asks=True) as chat:
        chat.send("x")
        await chat.decide(Choice.ALWAYS_SERVER)
        await chat.conversation.wait_idle()
        chat.tools.tools = [make_tool("go", definition_hash="another")]
        chat.send("y")
        await chat.decide(Choice.ONCE, count=2)
        await chat.conversation.wait_idle()
    assert len(chat.tools.called) == 2


async def test_a_tool_that_changes_while_the_user_decides_is_not_run() -> None:
    async with (
        FakeGemini(one_step(("go", {}))) as fake,
        chatting(fake, make_tool("go"), asks=True) as chat,
    ):
        chat.send("x")
        await chat.wait_for(RequestRaised)
        chat.tools.tools = [make_tool("go", definition_hash="another")]
        await chat.decide(Choice.ONCE)
        await chat.conversation.wait_idle()
    assert chat.tools.called == []
    assert "has changed this tool" in responses(fake)[0]["error"]


async def test_a_server_that_goes_away_takes_its_questions_along_and_that_is_no_denial() -> None:
    again: Script = [(Call([("go", {})]),)] * 2 + [(Say("done"),)]
    async with (
        FakeGemini(again) as fake,
        chatting(fake, make_tool("go"), asks=True) as chat,
    ):
        chat.send("x")
        asked = await chat.wait_for(RequestRaised)
        assert isinstance(asked.request, ConfirmationRequest)
        chat.bus.publish(ServerStatusChanged(asked.request.server, ServerStatus.STOPPED))
        await chat.wait_for(RequestRaised, 2)
        await chat.decide(Choice.ONCE)  # too late: nothing happens
        assert chat.tools.called == []
        await chat.decide(Choice.ONCE, count=2)
        await chat.conversation.wait_idle()
    assert len(chat.all(RequestSettled)) == 2
    assert "disconnected" in responses(fake)[0]["error"]
    assert responses(fake, 2) == [{"output": "go ran"}]
    withdrawn, ran = chat.calls
    assert withdrawn.status is ToolCallStatus.ERROR
    assert "disconnected" in withdrawn.result
    assert ran.status is ToolCallStatus.OK


async def test_without_a_screen_only_listed_tools_run() -> None:
    script = one_step(("go", {}), ("other", {}))
    tools = (make_tool("go"), make_tool("other"))
    desk = Desk(lambda _: None, attended=False)
    policy = make_policy()
    notes = ServerDefinition(ServerId("notes"), Origin.USER, Transport.STDIO)
    policy.configure((), (), [notes])
    gate = Gate(desk, lambda _: None, policy, ["notes.go"])
    async with FakeGemini(script) as fake, chatting(fake, *tools, gate=gate) as chat:
        await chat.say("x")
    ran, denied = responses(fake)
    assert ran == {"output": "go ran"}
    assert "no user to ask" in denied["error"]
    assert chat.calls[1].status is ToolCallStatus.DENIED
