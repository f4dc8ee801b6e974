"""An engine in an opened folder, with somebody before it who answers what is asked."""

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import servers
from tests.fakes.gemini import KEY
from tests.unit.engine.mcp.support import eventually
from tui.engine.bus import EventBus
from tui.engine.engine import Engine, EngineOptions
from tui.engine.logs.redaction import Redactor
from tui.model.requests import TrustRequest
from tui.model.servers import ServerId, ServerStatus, ServerView
from tui.model.trust import FolderTrust, TrustAnswer
from tui.store.state import AppState
from tui.store.store import Store

CANARY = Path(servers.__file__).with_name("canary.py")


@dataclass
class Place:
    """A home, and a folder in it as somebody else made it; with a canary that may sing."""

    home: Path
    folder: Path
    songs_file: Path

    def canary(self, *words: str, **more: object) -> dict[str, Any]:
        """Define a server that tells that it was started, and with which words."""
        return {"command": sys.executable, "args": [str(CANARY), str(self.songs_file), *words]} | (
            dict(more)
        )

    def songs(self) -> list[dict[str, Any]]:
        """Give what the canaries told, oldest first."""
        if not self.songs_file.exists():
            return []
        return [json.loads(line) for line in self.songs_file.read_text("utf-8").splitlines()]

    def words(self) -> list[str]:
        """Give the words of all canaries that were started, oldest first."""
        return [" ".join(song["words"]) for song in self.songs()]

    def project(
        self, content: str | Mapping[str, Any], name: str = ".gemini/settings.json"
    ) -> Path:
        """Write a file of the folder."""
        return self._write(self.folder / name, content)

    def user(self, content: str | Mapping[str, Any]) -> Path:
        """Write the user's own settings."""
        return self._write(self.home / ".gemini" / "settings.json", content)

    def script(self, path: str, word: str = "evil") -> None:
        """Write a script of Python that sings."""
        words = f"import runpy, sys; sys.argv = ['', {str(self.songs_file)!r}, {word!r}]\n"
        run = f"runpy.run_path({str(CANARY)!r}, run_name='__main__')\n"
        self._write(self.folder / path, words + run)

    def _write(self, path: Path, content: str | Mapping[str, Any]) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.with_name(f"{path.name}.new")  # nobody reads half a file
        whole.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return whole.replace(path)


@dataclass
class Opened:
    """A running engine and what it shows."""

    engine: Engine
    store: Store
    place: Place
    redactor: Redactor

    @property
    def state(self) -> AppState:
        return self.store.state

    def trust(self) -> FolderTrust:
        """Give what the user says of the folder."""
        return self.store.state.folder_trust

    def questions(self) -> list[TrustRequest]:
        """Give the questions that stand."""
        return [request for request in self.state.pending if isinstance(request, TrustRequest)]

    async def question(self) -> TrustRequest:
        """Wait for a question; give the one that stands last."""
        await eventually(self.questions)
        return self.questions()[-1]

    async def answer(self, answer: TrustAnswer) -> TrustRequest:
        """Answer the question that stands, or the next one."""
        question = await self.question()
        self.engine.desk.answer(question.id, answer)
        await eventually(lambda: question not in self.questions())
        return question

    async def trust_until(self, name: str, status: ServerStatus) -> None:
        """Trust the folder until a server has a status: a reading may put a question anew."""

        def has_status() -> bool:
            for question in self.questions():
                self.engine.desk.answer(question.id, TrustAnswer.TRUST)
            return self.statuses().get(name) is status

        await eventually(has_status)

    def server(self, name: str) -> ServerView:
        """Give a server as shown."""
        return next(view for view in self.state.servers if view.id == ServerId(name))

    def statuses(self) -> dict[str, ServerStatus]:
        """Give the status of every server."""
        return {view.id: view.status for view in self.state.servers}

    async def reach(self, name: str, status: ServerStatus) -> None:
        """Wait until a server has a status."""
        await eventually(lambda: self.statuses().get(name) is status)


@asynccontextmanager
async def opened(place: Place, *trusted: Path, follow: bool = True) -> AsyncIterator[Opened]:
    """Open the folder as the deck does."""
    bus, store = EventBus(), Store(AppState())
    bus.subscribe(store.dispatch)
    options = EngineOptions(
        place.folder,
        server_patience=0,
        follow_settings=follow,
        trusted_folders=trusted,
        attended=True,
    )
    redactor = Redactor()
    async with Engine(options, bus.publish, redactor=redactor) as engine:
        await engine.start()
        yield Opened(engine, store, place, redactor)


@pytest.fixture
def place(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Make a home with a folder in it, and a key for a model that nobody asks."""
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    folder = home / "clone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Place(home, folder, tmp_path / "songs")
