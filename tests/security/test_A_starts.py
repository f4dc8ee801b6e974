"""The user's own servers start in the opened folder: what would run its code waits for a yes."""

import json
import shutil
import sys

import pytest

from tests.cli.running import run
from tests.conftest import World
from tests.security.opened import CANARY, Place, opened, place
from tests.unit.engine.mcp.support import eventually
from tui.model.servers import ServerStatus
from tui.model.trust import TrustAnswer, TrustSubject

__all__ = ["place"]

S = ServerStatus
PACKAGE = [sys.executable, "-m", "pkg"]


def clone(place: Place) -> None:
    """Fill the folder as somebody else could: with programs that bear usual names."""
    package = place.folder / "pkg"
    package.mkdir()
    shutil.copy(CANARY, package / "__main__.py")
    shutil.copy(CANARY, place.folder / "server.py")
    canary = f"{sys.executable} {CANARY} {place.songs_file} make"
    (place.folder / "Makefile").write_text(f"serve:\n\t@{canary}\n")


def entry(place: Place, *command: str, **more: object) -> dict[str, object]:
    return {"command": command[0], "args": [*command[1:], str(place.songs_file), "sung"], **more}


def users(place: Place, **servers: object) -> None:
    place.user({"mcpServers": servers})


@pytest.mark.parametrize(
    ("name", "value", "is_held"),
    [
        ("PYTHONPATH", ".", True),
        ("NODE_OPTIONS", "--require ./hook.js", True),
        ("PYTHONPATH", "/usr/lib", False),
    ],
)
async def test_A14_a_variable_that_a_server_inherits_may_make_it_run_code_of_a_clone(
    place: Place, name: str, value: str, is_held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    users(place, mine=place.canary("mine"))
    async with opened(place) as deck:
        await deck.reach("mine", S.UNTRUSTED if is_held else S.READY)
    assert place.words() == ([] if is_held else ["mine"])


async def test_A14_what_runs_code_of_a_clone_waits_for_a_yes_that_is_kept(place: Place) -> None:
    clone(place)
    users(
        place,
        module=entry(place, *PACKAGE),
        script=entry(place, sys.executable, "server.py"),
        wrapped=entry(place, "env", *PACKAGE),
        dotted=entry(place, *PACKAGE, cwd="."),
        make={"command": "make", "args": ["-s", "serve"]},
        mine=place.canary("mine"),
    )
    held = {"module", "script", "wrapped", "dotted", "make"}
    async with opened(place) as deck:
        question = await deck.question()
        assert question.subject is TrustSubject.STARTED_HERE
        assert question.place == "~/clone"
        assert {str(one.server) for one in question.started} == held
        module = next(one for one in question.started if one.server == "module")
        assert module.args[:2] == ("-m", "pkg")
        await deck.reach("mine", S.READY)
        assert {name for name, status in deck.statuses().items() if status is S.UNTRUSTED} == held
        failure = deck.server("module").failure
        assert failure is not None
        assert "code from ~/clone" in failure.reason
        assert "Review this folder" in failure.advice
        deck.engine.servers.start(deck.server("module").id)
        deck.engine.servers.restart_all()
        assert place.words() == ["mine"]
        await deck.answer(TrustAnswer.TRUST)
        for name in held:
            await deck.reach(name, S.READY)
    users(place, module=entry(place, *PACKAGE))
    async with opened(place) as deck:
        await deck.reach("module", S.READY)
        assert deck.questions() == []
    place.folder.rename(place.home / "gone")
    place.folder.mkdir()  # another folder at the same place
    clone(place)
    sung = len(place.songs())
    async with opened(place) as deck:
        assert (await deck.question()).subject is TrustSubject.STARTED_HERE
        await deck.reach("module", S.UNTRUSTED)
    assert len(place.songs()) == sung


async def test_A14_a_yes_to_the_opened_folder_is_none_to_the_place_elsewhere(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PWD", str(place.folder))
    clone(place)
    (place.folder / "pkg").rename(place.home / "pkg")
    users(place, module=entry(place, *PACKAGE, "${PWD}/server.py", cwd=str(place.home)))
    async with opened(place) as deck:
        assert (await deck.answer(TrustAnswer.TRUST)).place == "~/clone"
        await eventually(lambda: any(one.place == "~" for one in deck.questions()))
        assert deck.statuses() == {"module": S.UNTRUSTED}
    assert place.songs() == []


async def test_A05_a_line_end_in_a_folders_name_is_shown(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place.home / "cl\none"
    folder.mkdir()
    monkeypatch.chdir(folder)
    users(place, module=entry(place, *PACKAGE))
    async with opened(Place(place.home, folder, place.songs_file)) as deck:
        assert (await deck.question()).place == r"~/cl\none"


async def test_A05_a_link_leads_to_no_other_folder_than_its_own(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone(place)
    other = place.home / "other"
    other.mkdir()
    (other / "within").symlink_to(place.folder)
    monkeypatch.chdir(other)
    users(place, module=entry(place, *PACKAGE, cwd="within"), up=entry(place, *PACKAGE, cwd=".."))
    async with opened(Place(place.home, other, place.songs_file)) as deck:
        await eventually(lambda: len(deck.questions()) == 2)
        assert {one.place for one in deck.questions()} == {"~/clone", "~"}
        assert set(deck.statuses().values()) == {S.UNTRUSTED}


async def test_A14_a_server_starts_in_the_opened_folder_wherever_gemdeck_was_started(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    users(place, mine=place.canary("mine"))
    monkeypatch.chdir(place.home)
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
    assert [song["cwd"] for song in place.songs()] == [str(place.folder)]


async def test_A08_without_a_screen_the_folder_must_be_named(place: Place) -> None:
    clone(place)
    users(place, module=entry(place, *PACKAGE))
    result = await run("-p", "hello", "--demo", cwd=place.folder)
    assert "Not started: module. Would run code from ~/clone" in result.stderr
    assert f"--trust-folder {place.folder}" in result.stderr
    assert place.songs() == []
    await run("-p", "hello", "--demo", "--trust-folder", str(place.folder), cwd=place.folder)
    assert place.words() == ["sung"]


async def test_A07_a_changed_record_allows_nothing(place: Place, world: World) -> None:
    clone(place)
    users(place, module=entry(place, *PACKAGE))
    async with opened(place) as deck:
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("module", S.READY)
    file = world.state / "start-folders.json"
    content = json.loads(file.read_text())
    content["folders"] = [{**one, "ino": 1} for one in content["folders"]] + ["odd", {"path": 1}]
    file.write_text(json.dumps(content))
    async with opened(place) as deck:
        await deck.question()
        assert deck.statuses() == {"module": S.UNTRUSTED}


@pytest.mark.parametrize("way", ["own", "argument", "link", "dots"])
async def test_A14_an_extension_may_run_its_own_code_and_no_clones(place: Place, way: str) -> None:
    clone(place)
    home = place.home / ".gemini" / "extensions" / "sky"
    home.mkdir(parents=True)
    shutil.copy(CANARY, home / "server.py")
    (home / "link").symlink_to(place.folder)
    cwd = {
        "own": "${extensionPath}",
        "argument": "${extensionPath}",
        "link": "${extensionPath}/link",
        "dots": f"${{extensionPath}}/../../../{place.folder.name}",
    }[way]
    words = ["env", f"PYTHONPATH={place.folder}"] if way == "argument" else []
    command, *args = [*words, sys.executable, "server.py", str(place.songs_file), "sung"]
    server = {"command": command, "args": args, "cwd": cwd}
    manifest = {"name": "sky", "mcpServers": {"sky": server}}
    (home / "gemini-extension.json").write_text(json.dumps(manifest))
    async with opened(place) as deck:
        await deck.reach("sky", S.READY if way == "own" else S.UNTRUSTED)
    assert place.words() == (["sung"] if way == "own" else [])
