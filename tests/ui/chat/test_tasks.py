"""Calls that run as tasks, in the chat: the app, the engine, a real server and a model."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests import servers
from tests.fakes.gemini import Step
from tests.fakes.gemini_script import Call, Say
from tests.support.waiting import eventually, whole_lines
from tests.ui.engine_deck import EngineDeck, engine_deck
from tests.unit.engine.sessions.test_two_instances import instance
from tui.engine.chats.sessions.library import SessionLibrary
from tui.engine.files.paths import state_dir
from tui.engine.mcp import tasks as limits
from tui.model.chat import MAIN, ToolCall, ToolCallStatus
from tui.model.servers import ServerStatus
from tui.ui.widgets.chat.transcript import Transcript


class Deck(EngineDeck):
    """The app with one server whose tools become tasks, and a model."""

    def said(self) -> list[str]:
        """The methods that the server got."""
        lines = whole_lines(Path.home() / "tasks.said")
        return [str(json.loads(line).get("method")) for line in lines]


@asynccontextmanager
async def running(era: str, monkeypatch: pytest.MonkeyPatch, *steps: Step) -> AsyncIterator[Deck]:
    monkeypatch.setattr(limits, "TICK", 0.05)
    script, place = Path(servers.__file__).with_name("tasking.py"), str(Path.home() / "tasks")
    entry = {"command": sys.executable, "args": [str(script), era, place], "trust": True}
    async with engine_deck(Deck, {"mcpServers": {"ci": entry}}, *steps) as deck:
        await deck.are(ServerStatus.READY)
        yield deck


async def test_the_row_says_how_a_task_stands_and_the_turn_goes_on_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = ""

    def look(_: object) -> tuple[Call]:
        nonlocal key
        [task] = deck.engine.servers.tasks.left_in(deck.store.state.current)
        key = task.kept.key
        return (Call([("check_task", {"id": key})]),)

    steps = (Call([("hold", {})]),), (Say("Going on."),), look, (Say("Still running."),)
    again = (Call([("hold", {})]),), (Say("Left again."),)
    async with running("new", monkeypatch, *steps, *again) as deck:
        await deck.pilot.press(*"deploy", "enter")
        await deck.shows("running hold", "task working · ", "expires in", "look 1")
        await deck.pilot.press("shift+tab")
        transcript = deck.app.screen.query_one(Transcript)
        await deck.until(lambda: transcript.has_focus)
        await deck.shows("b continue", "x cancel")
        await deck.pilot.press("b")
        await deck.idle()
        await deck.shows("◑ in background hold", "Going on.", "task working · ")
        assert "check_task" not in str(deck.fake.requests[0].body)
        assert "The user continued without this call" in str(deck.fake.requests[1].contents[-1])
        assert "(hold)" in str(deck.fake.requests[1].body["tools"])
        monkeypatch.setattr("tui.engine.chats.own_tools.LOOK_PATIENCE", 0.05)
        await deck.pilot.press("f7")
        await deck.shows("hold · ci  look", "working  ", "of hold: working")
        await deck.pilot.press("f6", *"and now", "enter")
        await deck.shows("Still running.")
        looked = str(deck.fake.requests[-1].contents)
        assert "No result yet. Its server reports: working" in looked
        await deck.idle()
        await deck.pilot.press("f7", "x")  # not before the list has the focus
        await deck.pilot.press("t")
        await deck.shows("x cancel")
        assert deck.calls[0].status is ToolCallStatus.RUNS_ON
        await deck.pilot.press("x")
        await deck.until(lambda: deck.calls[0].status is ToolCallStatus.CANCELLED)
        await deck.until(lambda: "tasks/cancel" in deck.said())
        await deck.shows("■ cancelled hold", "p pause")
        assert not deck.store.state.conversation.tasks
        assert (await saved_calls(deck))[0] == (ToolCallStatus.CANCELLED, "")
        assert f"Task {key} of hold (ci) has ended: cancelled." in [
            notice.text for notice in deck.store.state.notices
        ]
        await deck.pilot.press("f6", *"more", "enter")
        await deck.shows("task working · ")
        deck.engine.servers.tasks.leave(MAIN, deck.calls[-1].id)
        await deck.shows("Left again.")
        await deck.until(lambda: bool(deck.store.state.conversation.tasks))
        await deck.idle()
        cancelled = deck.said().count("tasks/cancel")
        deck.engine.clear_conversation()
        await deck.until(lambda: not deck.calls)
        assert not deck.store.state.conversation.tasks
        assert not [*deck.engine.servers.tasks.left_in(MAIN)]
        assert deck.said().count("tasks/cancel") == cancelled


@pytest.mark.slow
async def test_a_task_is_followed_again_after_gemdeck_was_killed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(_: object) -> tuple[Call]:
        return (Call([("check_task", {"id": key})]),)

    steps = (Call([("late", {})]),), look, (Say("All done."),)
    async with running("new", monkeypatch, *steps) as deck:
        fake, folder = deck.fake, deck.folder
        async with instance(folder, fake, is_killed=True) as other:
            other.order("send", "deploy")
            await eventually(lambda: saved_tasks(folder) and "tasks/get" in deck.said())
        [key] = saved_tasks(folder)
        (home / "tasks.go").touch()
        deck.engine.sessions.resume()
        await deck.shows("gemdeck ended while this turn was running", "✓ ran late", "late is done")
        await deck.pilot.press(*"and", "enter")
        await deck.shows("All done.")
        await deck.idle()
        assert key in str(fake.requests[1].body["tools"])
        assert "late is done" in str(fake.requests[2].contents[-1])
        assert deck.said().count("tools/call") == 1
        await eventually(lambda: not saved_tasks(folder))
        assert (await saved_calls(deck))[0] == (ToolCallStatus.OK, "late is done")


async def saved_calls(deck: Deck) -> list[tuple[ToolCallStatus, str]]:
    """Give the calls of the only session of a folder, as it is kept."""
    await deck.engine.conversations.settle()
    library = SessionLibrary(state_dir())
    [view] = library.sessions(deck.engine.sessions.folder)
    calls = (one for one in library.read(view).entries if isinstance(one, ToolCall))
    return [(one.status, one.result) for one in calls]


def saved_tasks(folder: Path) -> list[str]:
    """Give the keys of the tasks that the only session of a folder has kept."""
    library = SessionLibrary(state_dir())
    return [key for view in library.sessions(folder) for key in library.read(view).tasks]


@pytest.mark.parametrize("stop", ["escape", "x"])
async def test_a_key_cancels_a_task_on_its_server(
    stop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = (Call([("hold", {})]),), (Say("As you like."),)
    async with running("old", monkeypatch, *steps) as deck:
        await deck.pilot.press(*"deploy", "enter")
        await deck.shows("task working · ")
        if stop == "x":
            await deck.pilot.press("shift+tab")
            await deck.shows("b continue", "x cancel")
        await deck.pilot.press(stop)
        await deck.idle()
        await deck.until(lambda: "tasks/cancel" in deck.said())
        await deck.shows("■ cancelled hold")
        if stop == "x":
            await deck.shows("As you like.")
            assert "x cancel" not in deck.lines[-1], "though the cursor has not moved"
            assert "v full text" in deck.lines[-1]
            assert "The user stopped this call." in str(deck.fake.requests[1].contents[-1])
