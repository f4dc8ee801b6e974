"""What a command writes into the settings is the user's word, also for a gemdeck that runs."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.cli.running import notes_server
from tests.support.waiting import eventually
from tui.cli.servers.server_edits import own_edits
from tui.engine.engine import Engine, EngineOptions
from tui.engine.settings.edits import add_server, remove_server
from tui.model.events import Event, RequestRaised, ServerStatusChanged
from tui.model.requests import PendingRequest
from tui.model.servers import ServerStatus
from tui.model.trust import TrustAnswer


class Deck:
    """A gemdeck that runs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.events = list[Event]()
        options = EngineOptions(folder, attended=True, needs_model=False)
        self.engine = Engine(options, self.events.append)

    @property
    def questions(self) -> list[PendingRequest]:
        return [event.request for event in self.events if isinstance(event, RequestRaised)]

    def is_ready(self, server: str) -> bool:
        return any(
            isinstance(event, ServerStatusChanged)
            and (event.server, event.status) == (server, ServerStatus.READY)
            for event in self.events
        )


@pytest.fixture
def deck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deck:
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Deck(folder)


def entry(name: str) -> dict[str, Any]:
    return {**notes_server(), "env": {"GEMDECK_NOTES_DB": str(Path.home() / f"{name}.db")}}


async def write(name: str, scope: str) -> None:
    await anyio.to_thread.run_sync(own_edits().add, scope, name, entry(name))


async def test_a_server_of_the_user_starts_unasked(deck: Deck) -> None:
    async with deck.engine as engine:
        await engine.start()
        await write("notes", "user")
        await eventually(lambda: deck.is_ready("notes"))
        assert deck.questions == []
        await anyio.to_thread.run_sync(
            add_server, own_edits().file_of("user"), "other", {"command": "gemdeck-unknown-program"}
        )  # anybody else's edit is asked about
        await eventually(lambda: len(deck.questions) == 1)


async def test_a_server_that_was_removed_is_asked_about_when_others_write_it_again(
    deck: Deck,
) -> None:
    async with deck.engine as engine:
        await engine.start()
        await write("notes", "user")
        await eventually(lambda: deck.is_ready("notes"))
        await anyio.to_thread.run_sync(own_edits().remove, "user", "notes")
    again = Deck(Path.cwd())
    async with again.engine as engine:
        await engine.start()
        path = own_edits().file_of("user")
        await anyio.to_thread.run_sync(add_server, path, "notes", entry("notes"))
        await eventually(lambda: len(again.questions) == 1)


async def test_a_trusted_folder_stays_trusted_with_the_edit(deck: Deck) -> None:
    await write("first", "project")
    async with deck.engine as engine:
        await engine.start()
        await eventually(lambda: len(deck.questions) == 1)
        engine.desk.answer(deck.questions[0].id, TrustAnswer.TRUST)
        await eventually(lambda: deck.is_ready("first"))
        await write("second", "project")
        await eventually(lambda: deck.is_ready("second"))
        assert len(deck.questions) == 1


async def test_what_else_changed_meanwhile_is_asked_about(deck: Deck) -> None:
    await write("first", "project")
    path = own_edits().file_of("project")

    def tamper() -> None:
        add_server(path, "wanted", {"command": "gemdeck-unknown-program"})
        remove_server(path, "first")

    async with deck.engine as engine:
        await engine.start()
        await eventually(lambda: len(deck.questions) == 1)
        engine.desk.answer(deck.questions[0].id, TrustAnswer.TRUST)
        await eventually(lambda: deck.is_ready("first"))
        await anyio.to_thread.run_sync(own_edits().change, path, "wanted", tamper)
        await eventually(lambda: len(deck.questions) == 2)
