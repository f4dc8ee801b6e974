"""A kill at ten points of a turn: what comes back makes a request that the service takes."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.fakes.gemini import FakeGemini, Step
from tests.fakes.gemini_script import Action, Call, Say, Stall, Think
from tests.security.decks import Turncoat, deck, shop, write_settings
from tests.support.waiting import eventually
from tests.unit.engine.chats.support import chatting, make_tool
from tests.unit.engine.sessions.test_recording import Desk
from tests.unit.engine.sessions.test_two_instances import instance
from tui.engine.chats.sessions.library import SessionLibrary
from tui.engine.chats.sessions.replay import SavedSession
from tui.engine.files.atomic import TEMPORARY_PREFIX
from tui.engine.files.paths import state_dir
from tui.model.chat import ModelText, UserMessage
from tui.model.events import MessageReturned
from tui.store.selectors import entries

__all__ = ["shop"]

LOOK: Final = Call([("look", {})])
TWICE: Final = Call([("look", {}), ("look", {"text": "2"})])

POINTS: Final[dict[str, Sequence[Sequence[Action]]]] = {
    "before anything came": [(Stall(),)],
    "in a thought": [(Think("hm"), Stall())],
    "in the first words": [(Say("Once "), Stall())],
    "after some words": [(Say("Once "), Say("upon "), Say("a time"), Stall())],
    "as a call came": [(Say("I look."), LOOK, Stall())],
    "before the second answer": [(LOOK,), (Stall(),)],
    "in the second answer": [(LOOK,), (Say("It is "), Stall())],
    "after two calls beside each other": [(TWICE,), (Say("Both "), Stall())],
    "as a further call came": [(LOOK,), (TWICE, Stall())],
    "after the end": [(LOOK,), (Say("done"),)],
}

IN_AN_ENGINE = ("before anything came", "in the first words", "after two calls beside each other")
"""Points at which a whole engine is killed: nothing, text, and open calls are left."""


@pytest.mark.parametrize("point", POINTS)
async def test_wherever_a_chat_is_cut_off_its_session_goes_on_without_a_loss(
    point: str, tmp_path: Path
) -> None:
    """What is on the disk at a point is all that a kill there leaves: a copy of it goes on."""
    desk, left = Desk(tmp_path), Desk(tmp_path)
    left.library = SessionLibrary(tmp_path / "left")
    steps: list[Step] = [*POINTS[point], [Say("yes")]]
    async with FakeGemini(steps) as fake, chatting(fake, make_tool("look")) as chat:
        async with desk.recording(chat) as recorder:
            chat.context.save = recorder.save
            chat.send("tell me")
            if point == "after the end":
                await chat.conversation.wait_idle()
            else:
                await fake.wait_for_requests(len(steps) - 1)
                await fake.wait_for_stall()
            history = [*chat.context.history.contents]
            half_written = shutil.ignore_patterns(f"{TEMPORARY_PREFIX}*")  # gone in a moment
            shutil.copytree(tmp_path / "state", tmp_path / "left", ignore=half_written)
            chat.conversation.cancel()
            await chat.conversation.wait_idle()
        saved = left.saved
        assert saved.remarks == []
        kept = saved.contents[: len(history)]
        if kept != history:
            assert (kept, saved.unsent) == (history[:-1], "tell me")
        chat.context.history.contents[:] = saved.contents
        async with left.recording(chat) as recorder:
            again, lock = left.library.open(left.library.find("", left.folder), left.redactor)
            assert lock is not None
            recorder.adopt(again, lock)
            await chat.say("go on")
        asked = [one.text for one in left.saved.entries if isinstance(one, UserMessage)]
        assert asked == ["tell me", "go on"]
        assert fake.requests[-1].contents[: len(saved.contents)] == saved.contents
        assert [*fake.violations, *desk.problems, *left.problems] == []


@pytest.mark.parametrize("point", IN_AN_ENGINE)
async def test_what_a_kill_leaves_goes_on_though_its_tools_are_gone(
    point: str, shop: Turncoat, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings({"mcpServers": {"shop": shop.entry}})
    folder = home / "work"
    folder.mkdir()
    steps: list[Step] = [*POINTS[point]]
    async with FakeGemini(steps) as fake:
        await _chat_until(point, fake, folder)
        saved = _only(folder)
        assert saved.remarks == []
        async with deck(fake, monkeypatch, folder=folder) as it:
            await it.engine.sessions.resume()
            await eventually(lambda: entries(it.store.state))
            returned = [e.text for e in it.events if isinstance(e, MessageReturned)]
            assert returned == ([] if saved.contents else ["tell me"])
            await it.ask("go on")
            asked = [e.text for e in entries(it.store.state) if isinstance(e, UserMessage)]
            assert asked == ["tell me", "go on"]
        assert fake.violations == []
        assert fake.requests[-1].contents[: len(saved.contents)] == saved.contents


async def _chat_until(point: str, fake: FakeGemini, folder: Path) -> None:
    """Let an engine in a process of its own chat up to a point, and kill it there."""
    async with instance(folder, fake, is_killed=True) as it:
        it.order("send", "tell me")
        await fake.wait_for_requests(len(POINTS[point]))
        await fake.wait_for_stall()
        said = [a.text for step in POINTS[point] for a in step if isinstance(a, Say)]
        await eventually(lambda: _holds(folder, said[:1]))


def _only(folder: Path) -> SavedSession:
    """Read the only session of a folder."""
    library = SessionLibrary(state_dir())
    [view] = library.sessions(folder)
    return library.read(view)


def _holds(folder: Path, said: Sequence[str]) -> bool:
    """Tell whether the message and the first words of the answer are on the disk."""
    if not SessionLibrary(state_dir()).sessions(folder):
        return False
    shown = _only(folder).entries
    answer = "".join(e.text for e in shown if isinstance(e, ModelText))
    return any(isinstance(e, UserMessage) for e in shown) and all(one in answer for one in said)
