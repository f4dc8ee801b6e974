"""Tool calls of a turn: what is checked, who is asked, what the model is told."""

import asyncio
import threading
from collections.abc import Iterable, Sequence
from functools import partial
from types import SimpleNamespace

import pytest

from tests.fakes.gemini_rules import Json
from tests.fakes.gemini_script import Action, Call, Say
from tests.support.rows import row
from tests.support.waiting import PATIENCE, eventually
from tests.unit.engine.chats.support import both, make_tool, talking, text_result
from tui.engine.approval.inquiry import UnusableEditError
from tui.engine.chats import calls as module
from tui.engine.chats.calls import read_edit, told_changes
from tui.engine.mcp.catalog.offered_tool import JsonObject, ToolCallError, ToolResult
from tui.engine.mcp.schema import validate
from tui.model.chat import ToolCallStatus
from tui.model.consent import Choice
from tui.model.events import RequestRaised, ToolCallProgressed, TurnClockSet
from tui.model.requests import ConfirmationRequest

GO, OTHER = make_tool("go"), make_tool("other")


def one_step(*calls: tuple[str, Json]) -> Sequence[Sequence[Action]]:
    return [(Call(calls),), (Say("done"),)]


async def give(result: ToolResult | Exception, _: JsonObject) -> ToolResult:
    """Stand for a tool that does nothing else."""
    if isinstance(result, Exception):
        raise result
    return result


@both
async def test_a_call_that_fails_or_never_runs_is_told_to_the_model_and_the_user() -> None:
    async with talking([], make_tool("notes_add"), GO) as chat:
        await chat.play(*one_step(("note_add", {"a": 1})))
        told = {"error": "Tool note_add not found. Did you mean notes_add?"}
        assert (chat.responses(), chat.answer) == ([told], "done")
        [call] = chat.calls
        assert (call.server, call.tool, call.status) == ("", "note_add", ToolCallStatus.ERROR)
        await chat.play(*one_step(("go", {"text": "x" * 400_000})))
        assert "longer than" in chat.responses()[0]["error"]
        assert chat.tools.called == []
        for error, words in (
            (ToolCallError("It is no longer connected.\x1b[31m"), "It is no longer connected."),
            (KeyError("x"), "KeyError"),
        ):
            chat.tools.runs["go"] = partial(give, error)
            await chat.play(*one_step(("go", {}), ("notes_add", {})))
            assert words in chat.responses()[0]["error"]
            assert chat.responses()[1] == {"output": "notes_add ran"}
            assert "\x1b" not in chat.calls[0].result
        chat.tools.runs["go"] = partial(give, text_result("no such note", is_error=True))
        await chat.play(*one_step(("go", {})))
        [call] = chat.calls
        assert chat.responses() == [{"error": "no such note"}]
        assert (call.status, call.result) == (ToolCallStatus.ERROR, "no such note")
        assert chat.all(ToolCallProgressed)[0].progress.total == 2.0, "it is shown as it runs"


@both
async def test_a_call_that_does_not_fit_is_told_unasked_and_a_denial_in_the_users_words() -> None:
    steps = one_step(("go", {"text": "a"}), ("other", {}))
    words = (
        ("use edit_file instead", "The user says: use edit_file instead"),
        ("", "The user denied this call. Do not try to do the same in another way."),
    )
    script = [*one_step(("go", {"wrong": 1})), *[*steps] * len(words)]
    async with talking(script, GO, OTHER, asks=True) as chat:
        await chat.say("x")
        assert "'wrong' was unexpected" in chat.responses()[0]["error"]
        assert (chat.all(RequestRaised), chat.tools.called) == ([], [])
        for number, (word, told) in enumerate(words):
            chat.send("x")
            await chat.decide(Choice.DENY, word, count=2 * number + 1)
            await chat.decide(Choice.ONCE, count=2 * number + 2)
            await chat.idle()
            denied, ran = chat.responses(-1)
            assert (denied, ran) == ({"error": f"Denied: {told}"}, {"output": "other ran"})
    statuses = [ToolCallStatus.DENIED, ToolCallStatus.OK] * len(words)
    assert [call.status for call in chat.calls] == [ToolCallStatus.ERROR, *statuses]
    assert {name for name, _ in chat.tools.called} == {"other"}


@both
async def test_a_step_asks_about_all_its_calls_at_once_in_any_order_of_answers() -> None:
    ran = asyncio.Event()

    async def run(_: JsonObject) -> ToolResult:
        ran.set()
        return text_result("ok")

    steps = one_step(("go", {"text": "1"}), ("go", {"text": "2"}))
    async with talking(steps, GO, asks=True) as chat:
        chat.tools.runs["go"] = run
        chat.send("x")
        await chat.wait_for(RequestRaised, 2)
        asked = chat.store.state.pending
        of = [one.call for one in asked if isinstance(one, ConfirmationRequest)]
        assert of == [call.id for call in chat.calls]
        await chat.decide(Choice.ONCE, count=2)
        await asyncio.wait_for(ran.wait(), PATIENCE)  # while the first one is still open
        assert chat.store.state.pending == asked[:1]
        await chat.decide(Choice.DENY)
        await chat.idle()
    denied, ok = chat.responses()
    assert denied["error"].startswith("Denied")
    assert ok == {"output": "ok"}


async def test_the_users_time_is_not_the_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=1.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("tui.engine.chats.turn.time", clock)
    async with talking(one_step(("go", {}), ("go", {})), GO, asks=True) as chat:
        chat.send("x")
        for number in (1, 2):
            await chat.wait_for(RequestRaised, 2)
            clock.now += 60
            await chat.decide(Choice.ONCE, count=number)
        await chat.idle()
        assert chat.last_turn.seconds == 0
        assert chat.all(TurnClockSet) == [TurnClockSet(chat.last_turn.turn, 121.0)]


@both
async def test_more_calls_than_may_be_asked_about_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ASKED", 2)
    script = one_step(*[("go", {"text": str(number)}) for number in range(4)])
    async with talking(script, GO, asks=True) as chat:
        chat.send("x")
        await chat.wait_for(RequestRaised, 2)
        assert len(chat.store.state.pending) == 2
        for count in range(1, 5):
            await chat.decide(Choice.ONCE, count=count)
        await chat.idle()
    assert [arguments["text"] for _, arguments in chat.tools.called] == ["0", "1", "2", "3"]


@both
async def test_slow_checks_hold_nothing_up_and_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, may_end, was_let_go = threading.Event(), threading.Event(), list[bool]()

    def check(*given: JsonObject) -> JsonObject:
        entered.set()
        was_let_go.append(may_end.wait(PATIENCE))
        return given[-1]

    steps: Iterable[tuple[object, str, list[ToolCallStatus]]] = (
        (module, "whole_numbers", []),
        (validate, "check_arguments", [ToolCallStatus.CANCELLED]),
    )
    for place, name, rows in steps:
        entered.clear()
        may_end.clear()
        async with talking(one_step(("go", {})), GO) as chat:
            with monkeypatch.context() as slow:
                slow.setattr(place, name, check)
                chat.send("x")
                await asyncio.to_thread(entered.wait, PATIENCE)
                chat.conversation.cancel()
                await chat.idle()
                may_end.set()
                await eventually(lambda: was_let_go)
            assert was_let_go.pop(), f"{name} held up the loop"
            assert [call.status for call in chat.calls] == rows, name
            await chat.say("y")
            assert chat.tools.called == []
        assert chat.answer == "done"


async def test_an_edit_is_what_is_sent_and_shown_and_must_say_one_thing() -> None:
    edit = await read_edit('{"text": "a\\u202eb"}', GO.schema)
    assert (edit.arguments, edit.shown) == ({"text": "a\u202eb"}, '{\n  "text": "a\\u202eb"\n}')
    for text, words in (
        ("", "line 1"),
        ("[]", "must be an object"),
        ('{"text": 1, "text": 2}', "duplicate key"),
        ('{"text": NaN}', "not a JSON number"),
        ('{"text": 1e999}', "out of range"),
        ('{"text": "\\ud800"}', "surrogate"),
        ('{"wrong": 1}', "wrong. was unexpected"),
        ("[" * 100_000, "nested deeper"),
        ('{"text": "' + "x" * module.MAX_EDIT + '"}', "longer than"),
    ):
        with row(words), pytest.raises(UnusableEditError, match=words):
            await read_edit(text, GO.schema)


def test_the_model_is_told_each_change_in_short() -> None:
    told = told_changes({"a": 1, "b": "x", "c": True}, {"b": "y", "c": 1, "d": [2]})
    changes = '"a" was removed; "b" is now "y"; "c" is now 1; "d" is now [2].'
    assert told == f"The user changed the arguments before the call: {changes}"
    assert len(told_changes({}, {"a": "x" * 100_000})) < 1_200
    many = {f"k{number}": number for number in range(100)}
    assert told_changes({}, many).endswith("; and 80 more.")
