"""What a command writes into the settings is the user's word, also for a gemdeck that runs."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.cli.running import notes_server, run
from tests.security.opened import Place, opened, place
from tests.support.waiting import eventually
from tui.cli.output import ExitCode
from tui.cli.servers.server_edits import own_edits
from tui.cli.settings import load
from tui.engine.settings.edits import EditError, add_server, remove_server
from tui.model.servers import Origin, ServerStatus
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


# Mine, for this folder


async def test_a_users_server_for_one_folder_starts_there_unasked_and_nowhere_else(
    place: Place, tmp_path: Path
) -> None:
    async with opened(place) as deck:
        await write("notes", "folder")
        await deck.reach("notes", READY)
        assert (deck.questions(), deck.server("notes").origin) == ([], Origin.FOLDER)
    assert not list(place.folder.iterdir())
    shown = await run("mcp", "show", "notes", "--json", cwd=place.folder, code=ExitCode.OK)
    assert (shown.json["origin"], shown.json["status"]) == ("folder", "ready")
    path = own_edits().file_of("folder")
    assert path.stat().st_mode & 0o777 == 0o600
    await run("mcp", "disable", "notes.add_note", cwd=place.folder, code=ExitCode.OK)
    assert "add_note" in path.read_text("utf-8")
    removing = ("mcp", "remove", "-s", "folder", "notes")
    await run(*removing, cwd=tmp_path, code=ExitCode.NOT_FOUND)
    wrong = await run("mcp", "remove", "notes", cwd=place.folder, code=ExitCode.NOT_FOUND)
    assert wrong.stderr.endswith(": gemdeck mcp remove -s folder notes\n")
    await run(*removing, cwd=place.folder, code=ExitCode.OK)
    assert load().servers == ()


def as_it_was(folder: Path, _file: Path) -> Path:
    return folder


def behind_a_link(folder: Path, _file: Path) -> Path:
    (link := folder.with_name("link")).symlink_to(folder)
    return link


def moved(folder: Path, _file: Path) -> Path:
    return folder.rename(folder.with_name("moved"))


def replaced(folder: Path, file: Path) -> Path:
    moved(folder, file)
    folder.mkdir()
    return folder


def of_another_user(folder: Path, file: Path) -> Path:
    file.rename(file.with_name(file.name.replace(f"-{os.geteuid()}.", "-54321.")))
    return folder


def written_by_others(folder: Path, file: Path) -> Path:
    file.chmod(0o622)
    return folder


def linked_into_the_folder(folder: Path, file: Path) -> Path:
    file.rename(folder / "mine.json")
    file.symlink_to(folder / "mine.json")
    return folder


ANOTHER = "not used: a different folder is at this path now. Its servers: wanted. Add them again"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (as_it_was, None),
        (behind_a_link, None),
        (moved, ""),
        (replaced, ANOTHER),
        (of_another_user, ANOTHER),
        (written_by_others, "others have access to it (622); the file is ignored"),
        (linked_into_the_folder, "it links into another folder; the file is ignored"),
    ],
)
def test_what_is_for_one_folder_is_used_in_that_very_folder_alone(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, Path], Path],
    words: str | None,
) -> None:
    own_edits().add("folder", "wanted", UNKNOWN)
    monkeypatch.chdir(change(place.folder, own_edits().file_of("folder")))
    loaded = load()
    assert [one.id for one in loaded.servers] == ["wanted"] * (words is None)
    assert (words or "") in "".join(map(str, loaded.problems))
    assert bool(loaded.problems) == bool(words)


def test_nothing_for_a_folder_is_read_from_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_edits().add("folder", "wanted", UNKNOWN)
    file = own_edits().file_of("folder")
    inside = place.folder / "state"
    inside.mkdir(mode=0o700)
    file.rename(inside / file.name)
    monkeypatch.setenv("GEMDECK_HOME", str(inside))
    assert load().servers == ()
    with pytest.raises(EditError, match="no private folder outside"):
        own_edits().add("folder", "wanted", UNKNOWN)
