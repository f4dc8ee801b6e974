"""A disk that is full from the start: said once, and written as soon as there is room."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.security.test_J_disks import IS_ROOT, fill, mounted
from tests.support import warm
from tests.support.terminal import Terminal
from tests.support.waiting import eventually
from tui.engine.engine import Engine, EngineOptions
from tui.engine.files import unwritten
from tui.model.events import Event, NoticeRaised, RequestRaised
from tui.model.servers import ServerId
from tui.model.trust import TrustAnswer, TrustRequest

pytestmark = pytest.mark.skipif(not IS_ROOT, reason="only root can mount")

Room = Callable[[], None]


NO_BYTES = "size=64k"


@pytest.fixture(params=[NO_BYTES, "size=4m,nr_inodes=12"], ids=["no bytes", "no files"])
def make_room(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Room]:
    """Keep the state on a full disk; give what makes room on it."""
    with mounted(tmp_path / "disk", request.param) as disk:
        monkeypatch.setenv("GEMDECK_HOME", str(disk / "state"))
        yield fill(disk)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that brings a server."""
    made = tmp_path / "shop"
    (made / ".gemini").mkdir(parents=True)
    settings = {"mcpServers": {"shop": {"command": "true"}}}
    (made / ".gemini" / "settings.json").write_text(json.dumps(settings))
    return made


class Run:
    """One run of the engine, in which the user trusts the folder and disables a server."""

    def __init__(self, folder: Path) -> None:
        self.events: list[Event] = []
        options = EngineOptions(
            folder, demo=True, attended=True, follow_settings=False, server_patience=0
        )
        self.engine = Engine(options, self.events.append)

    @property
    def questions(self) -> list[TrustRequest]:
        raised = (event.request for event in self.events if isinstance(event, RequestRaised))
        return [request for request in raised if isinstance(request, TrustRequest)]

    @property
    def notices(self) -> list[str]:
        return [event.notice.text for event in self.events if isinstance(event, NoticeRaised)]

    async def decide(self) -> None:
        await self.engine.start()
        await eventually(lambda: self.questions)
        self.engine.desk.answer(self.questions[0].id, TrustAnswer.TRUST)
        self.engine.servers.set_enabled(ServerId("notes"), enabled=False)


def kept() -> set[str]:
    state = Path(os.environ["GEMDECK_HOME"])
    return {path.name for path in state.glob("*.json*") if path.stat().st_size}


DECIDED = {"salt.json", "trust.json", "disabled-servers.json", "audit.jsonl"}


def told(run: Run) -> list[str]:
    """Give what was told of the full disk, by the true name of a file on it."""
    state = os.path.realpath(os.environ["GEMDECK_HOME"])
    notices = [text for text in run.notices if "No space left on device" in text]
    assert all(text.startswith(state) for text in notices)
    return notices


async def test_J04_what_was_decided_on_a_full_disk_is_written_when_there_is_room(
    make_room: Room, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unwritten, "RETRY", 0.05)
    run = Run(folder)
    async with run.engine:
        await run.decide()
        await eventually(lambda: told(run))
        make_room()
        await eventually(lambda: kept() >= DECIDED)
    assert len(told(run)) == 1


async def test_J04_at_the_latest_on_leaving_so_that_nothing_asks_again(
    make_room: Room, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unwritten, "RETRY", 3_600.0)
    run = Run(folder)
    async with run.engine:
        await run.decide()
        await eventually(lambda: told(run))
        make_room()
    assert kept() >= DECIDED
    again = Run(folder)
    async with again.engine:
        await again.engine.start()
        await again.engine.wait_ready()
    assert again.questions == []
    assert [text for text in again.notices if "cannot be written" in text] == []


@pytest.mark.parametrize("make_room", [NO_BYTES], indirect=True)
def test_J04_a_sent_message_is_kept_until_there_is_room(make_room: Room, folder: Path) -> None:
    with Terminal(warm.deck("--demo"), cwd=folder.parent) as terminal:
        terminal.wait_for("The notes file")  # which the demo cannot write either
        terminal.type("hello disk")
        terminal.wait_for("> hello disk")
        terminal.press("enter")
        terminal.wait_for(lambda screen: screen.count("hello disk") >= 1)
        make_room()
        terminal.press("ctrl+q")
        assert terminal.wait_for_exit() == 0
    [messages] = Path(os.environ["GEMDECK_HOME"]).glob("sessions/*/messages.jsonl")
    assert messages.read_text() == '"hello disk"\n'
