"""kill -9 at ten points of a turn: what comes back makes a request that the service takes."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.fakes.gemini import FakeGemini, Step
from tests.fakes.gemini_script import Say
from tests.security.decks import Turncoat, deck, shop, write_settings
from tests.support.waiting import PATIENCE, eventually
from tests.unit.engine.sessions import kills
from tests.unit.engine.sessions.kills import POINTS
from tests.unit.engine.sessions.test_two_instances import instance
from tui.engine.chats.sessions.library import SessionLibrary
from tui.engine.chats.sessions.replay import SavedSession
from tui.engine.files.paths import state_dir
from tui.model.chat import ModelText, UserMessage
from tui.model.events import MessageReturned
from tui.store.selectors import entries

__all__ = ["shop"]

ROOT = Path(__file__).resolve().parents[4]

IN_AN_ENGINE = ("before anything came", "in the first words", "after two calls beside each other")
"""Points at which a whole engine is killed: nothing, text, and open calls are left."""

ROUNDS = 2
"""Kills at each point; ``python3 -m tests.unit.engine.sessions.kills 30`` makes more."""


def test_whenever_a_chat_is_killed_no_message_of_its_session_is_lost() -> None:
    command = [sys.executable, "-m", kills.__name__, str(ROUNDS)]
    killing = subprocess.run(command, cwd=ROOT, check=True, stdout=PIPE, timeout=5 * PATIENCE)
    assert json.loads(killing.stdout) == {"kills": ROUNDS * len(POINTS), "wrong": {}}


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
            it.engine.sessions.resume()
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
