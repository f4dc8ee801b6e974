"""What a command writes into the settings is the user's word, also for a gemdeck that runs."""

from pathlib import Path
from typing import Any

import anyio

from tests.cli.running import notes_server
from tests.security.opened import Place, opened, place
from tests.support.waiting import eventually
from tui.cli.servers.server_edits import own_edits
from tui.engine.settings.edits import add_server, remove_server
from tui.model.servers import ServerStatus
from tui.model.trust import TrustAnswer

__all__ = ["place"]

READY = ServerStatus.READY
UNKNOWN = {"command": "gemdeck-unknown-program"}


def entry(name: str) -> dict[str, Any]:
    return {**notes_server(), "env": {"GEMDECK_NOTES_DB": str(Path.home() / f"{name}.db")}}


async def write(name: str, scope: str) -> None:
    await anyio.to_thread.run_sync(own_edits().add, scope, name, entry(name))


async def test_a_users_server_starts_unasked_unless_others_wrote_it(place: Place) -> None:
    path = own_edits().file_of("user")
    async with opened(place) as deck:
        await write("notes", "user")
        await deck.reach("notes", READY)
        assert deck.questions() == []
        await anyio.to_thread.run_sync(add_server, path, "other", UNKNOWN)
        question = await deck.answer(TrustAnswer.NOT_NOW)
        assert [one.server for one in question.servers] == ["other"]
        await anyio.to_thread.run_sync(own_edits().remove, "user", "notes")
        await anyio.to_thread.run_sync(own_edits().remove, "user", "other")
    async with opened(place) as deck:
        await anyio.to_thread.run_sync(add_server, path, "notes", entry("notes"))
        assert [one.server for one in (await deck.question()).servers] == ["notes"]


async def test_a_trusted_folder_stays_trusted_with_the_edit(place: Place) -> None:
    await write("first", "project")
    async with opened(place) as deck:
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("first", READY)
        await write("second", "project")
        await deck.reach("second", READY)
        assert deck.questions() == []


async def test_what_else_changed_meanwhile_is_asked_about(place: Place) -> None:
    await write("first", "project")
    path = own_edits().file_of("project")

    def tamper() -> None:
        add_server(path, "wanted", UNKNOWN)
        remove_server(path, "first")

    async with opened(place) as deck:
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("first", READY)
        await anyio.to_thread.run_sync(own_edits().change, path, "wanted", tamper)
        await eventually(deck.questions)
