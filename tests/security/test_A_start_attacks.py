"""A clone that waits for the user's own servers: each trap, with a yes and without one."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.running import Result, run
from tests.conftest import World
from tests.security.opened import CANARY, Opened, Place, opened, place
from tests.unit.engine.mcp.support import eventually
from tui.model.servers import ServerStatus
from tui.model.trust import FolderTrust, TrustAnswer, TrustSubject

__all__ = ["place"]

S, A = ServerStatus, TrustAnswer

NPX: Final = {"command": "npx", "args": ["-y", "server"]}


@dataclass(frozen=True)
class Trap:
    """What a clone brings, and the user's server that would fall into it.

    Attributes:
        entry: The server.
        lay: Lays the trap.
        leaves: Whether the server could start elsewhere.
    """

    entry: dict[str, Any]
    lay: Callable[[Place], None]
    leaves: bool = True


def program(place: Place, path: str, word: str = "evil") -> Path:
    """Write a program that sings."""
    file = place.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'#!/bin/sh\nexec {sys.executable} {CANARY} "{place.songs_file}" {word}\n')
    file.chmod(0o755)
    return file


def script(place: Place, path: str, word: str = "evil") -> None:
    """Write a script of Python that sings."""
    file = place.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    words = f"import runpy, sys; sys.argv = ['', {str(place.songs_file)!r}, {word!r}]\n"
    file.write_text(f"{words}runpy.run_path({str(CANARY)!r}, run_name='__main__')\n")


def pull(place: Place) -> None:
    """Change what sings, as a pull would."""
    for file in place.folder.rglob("*"):
        if file.is_file() and file.suffix != ".pyc":
            file.write_text(file.read_text().replace("evil", "worse"))


def lay_npmrc(place: Place) -> None:
    program(place, "hook").rename(place.folder / ".npmrc")


TRAPS: Final = {
    "node_modules": Trap(NPX, lambda place: _drop(program(place, "node_modules/.bin/server"))),
    "npmrc": Trap(NPX, lay_npmrc),
    "package": Trap(
        {"command": sys.executable, "args": ["-m", "pkg"]},
        lambda place: script(place, "pkg/__main__.py"),
        leaves=False,
    ),
    "script": Trap(
        {"command": sys.executable, "args": ["./server.py"]},
        lambda place: script(place, "server.py"),
        leaves=False,
    ),
    "program": Trap(
        {"command": "tools/server"},
        lambda place: _drop(program(place, "tools/server")),
        leaves=False,
    ),
    "cwd": Trap(
        {**NPX, "cwd": "sub"},
        lambda place: _drop(program(place, "sub/node_modules/.bin/server")),
    ),
    "PWD": Trap(
        {**NPX, "cwd": "${PWD}"},
        lambda place: _drop(program(place, "node_modules/.bin/server")),
    ),
}
"""Each way to let the user's own servers run code of a clone."""


def _drop(_: object) -> None:
    pass


@pytest.fixture(params=TRAPS)
def trap(request: pytest.FixtureRequest, place: Place, monkeypatch: pytest.MonkeyPatch) -> Trap:
    """Lay a trap, and set up an ``npx`` as it works: what the folder has comes first."""
    tools = place.home / "bin"
    tools.mkdir()
    npx = tools / "npx"
    npx.write_text(
        "#!/bin/sh\n"
        'while [ "${1#-}" != "$1" ]; do shift; done\n'
        "if [ -f .npmrc ]; then . ./.npmrc; fi\n"
        'if [ -x "node_modules/.bin/$1" ]; then exec "node_modules/.bin/$1"; fi\n'
        f'exec {sys.executable} {CANARY} "{place.songs_file}" fetched\n'
    )
    npx.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PWD", str(place.folder))
    found: Trap = TRAPS[request.param]
    found.lay(place)
    place.user({"mcpServers": {"mine": found.entry}})
    return found


def litter(place: Place, folder: Path) -> None:
    """Leave in a server's own folder what it could leave there."""
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / "left").write_text("by the server")
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "link").symlink_to(place.folder)


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def headless(place: Place, *arguments: str) -> Result:
    return await run("-p", "hello", "--demo", "-o", "json", *arguments, cwd=place.folder)


async def say(place: Place, answer: TrustAnswer) -> None:
    """Open the folder, and answer its question."""
    async with opened(place) as deck:
        await deck.answer(answer)
        if answer.allows:
            await deck.reach("mine", S.READY)


async def is_held(deck: Opened) -> bool:
    await deck.question()
    deck.engine.servers.start(deck.server("mine").id)
    deck.engine.servers.restart_all()
    return deck.statuses() == {"mine": S.UNTRUSTED}


async def test_A14_no_trap_runs_without_a_yes(place: Place, trap: Trap) -> None:
    async with opened(place) as deck:
        assert await is_held(deck)
        question = await deck.answer(A.NOT_NOW)
        assert [one.server for one in question.started] == ["mine"]
        assert question.started[0].command == trap.entry["command"]
        assert question.may_start_outside is trap.leaves
        await eventually(lambda: not deck.questions())
        assert deck.statuses() == {"mine": S.UNTRUSTED}
    result = await headless(place)
    warned = [text for text in result.json["warnings"] if "mine" in text]
    assert any("from ~/clone" in text for text in warned)
    assert any(f"--trust-folder {place.folder}" in text for text in warned)
    assert all(text in result.stderr for text in warned)
    assert place.songs() == []


async def test_A14_a_yes_runs_exactly_this_on_the_screen_and_without(
    place: Place, trap: Trap
) -> None:
    await say(place, A.TRUST)
    assert place.words() == ["evil"]
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
        assert deck.questions() == []
    result = await headless(place)
    assert result.json["warnings"] == []
    assert place.words() == ["evil"] * 3
    args = [*trap.entry.get("args", []), "more"]
    place.user({"mcpServers": {"mine": {**trap.entry, "args": args}}})
    async with opened(place) as deck:
        assert await is_held(deck)
        question = await deck.question()
        assert [line.text for line in question.difference if line.sign == "+"] == ["argument more"]
        assert [one.change for one in question.started] == ["changed"]
    result = await headless(place)
    assert "has changed since you allowed it" in result.stderr
    assert place.words() == ["evil"] * 3


@pytest.mark.parametrize("trap", ["npmrc", "package", "script", "program"], indirect=True)
async def test_A14_what_was_pulled_since_does_not_run_and_the_rest_does(
    place: Place, trap: Trap
) -> None:
    servers = {"mine": trap.entry, "other": {"command": sys.executable, "args": ["./other.py"]}}
    script(place, "other.py", "other")
    place.user({"mcpServers": servers})
    async with opened(place) as deck:
        await deck.answer(A.TRUST)
        await deck.reach("mine", S.READY)
        await deck.reach("other", S.READY)
    pull(place)
    async with opened(place) as deck:
        question = await deck.question()
        assert [(one.server, one.change) for one in question.started] == [("mine", "changed")]
        assert any("has changed: content" in line.text for line in question.difference)
        await deck.reach("other", S.READY)
        assert deck.statuses()["mine"] is S.UNTRUSTED
    result = await headless(place)
    [warning] = [text for text in result.json["warnings"] if text.startswith("Not started")]
    assert "Not started: mine. What it would run from ~/clone has changed" in warning
    assert sorted(place.words()) == ["evil", "other", "other", "other"]


async def test_A14_outside_nothing_of_the_clone_runs(
    place: Place, trap: Trap, world: World
) -> None:
    async with opened(place) as deck:
        await deck.answer(A.START_OUTSIDE)
        await deck.reach("mine", S.READY if trap.leaves else S.UNTRUSTED)
        assert deck.server("mine").starts_outside is trap.leaves
    if not trap.leaves:
        assert place.songs() == []
        return
    [song] = place.songs()
    folder = Path(song["cwd"])
    assert folder.parent == world.state / "outside"
    litter(place, folder)
    program(place, "node_modules/.bin/server", "worse")
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
        assert deck.questions() == []
        assert not left_in(folder)
    assert (await headless(place)).json["warnings"] == []
    assert place.words() == ["fetched"] * 3
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
        deck.engine.review_folder()
        await deck.answer(A.TRUST)
        await eventually(lambda: len(place.words()) == 5)
        deck.engine.forget_folder()
        await deck.reach("mine", S.UNTRUSTED)
    assert "mine" in (await headless(place)).stderr
    assert place.words()[:4] == ["fetched"] * 4
    assert len(place.songs()) == 5


@pytest.mark.parametrize("trap", ["node_modules"], indirect=True)
@pytest.mark.usefixtures("trap")
async def test_A05_a_yes_goes_with_the_folder_and_neither_with_its_name_nor_a_link(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = place.home / "link"
    link.symlink_to(place.folder)
    linked = Place(place.home, link, place.songs_file)
    async with opened(linked) as deck:
        assert await is_held(deck)
        assert (await deck.answer(A.NOT_NOW)).place == "~/clone"
    await say(place, A.TRUST)
    assert (await headless(linked)).json["warnings"] == []
    assert place.words() == ["evil"] * 2
    renamed = Place(place.home, place.home / "renamed", place.songs_file)
    place.folder.rename(renamed.folder)
    place.folder.mkdir()
    program(place, "node_modules/.bin/server", "worse")
    for other in (renamed, place, linked):
        monkeypatch.chdir(other.folder)
        async with opened(other) as deck:
            assert await is_held(deck)
        assert "Not started: mine" in (await headless(other)).stderr
    link.unlink()
    link.symlink_to(renamed.folder)
    assert "Not started: mine" in (await headless(linked)).stderr
    assert place.words() == ["evil"] * 2


@pytest.mark.parametrize("trap", ["node_modules"], indirect=True)
@pytest.mark.usefixtures("trap")
async def test_A14_one_question_is_about_what_the_clone_brings_and_what_runs_from_it(
    place: Place,
) -> None:
    place.project({"mcpServers": {"it": place.canary("it")}})
    async with opened(place) as deck:
        question = await deck.answer(A.START_OUTSIDE)
        assert question.subject is TrustSubject.FOLDER
        assert [one.server for one in question.servers] == ["it"]
        assert [one.server for one in question.started] == ["mine"]
        await deck.reach("mine", S.READY)
        assert deck.statuses()["it"] is S.UNTRUSTED
        assert deck.trust() is FolderTrust.UNTRUSTED
        assert place.words() == ["fetched"]
        deck.engine.review_folder()
        await deck.answer(A.TRUST)
        await deck.reach("it", S.READY)
        await eventually(lambda: sorted(place.words()) == ["evil", "fetched", "it"])
        assert deck.questions() == []
    assert (await headless(place)).json["warnings"] == []
    async with opened(place) as deck:
        await deck.reach("it", S.READY)
        deck.engine.review_folder()
        assert (await deck.answer(A.NEVER)).started
        await eventually(lambda: "it" not in deck.statuses())
        await deck.reach("mine", S.UNTRUSTED)
    sung = len(place.songs())
    async with opened(place) as deck:
        await deck.reach("mine", S.UNTRUSTED)
        assert deck.questions() == []
    for arguments in ((), ("--trust-folder", str(place.folder))):
        assert "Not started: mine" in (await headless(place, *arguments)).stderr
    assert len(place.songs()) == sung


@pytest.mark.parametrize("trap", ["node_modules"], indirect=True)
async def test_A06_a_yes_to_all_folders_in_it_is_kept_for_each_as_it_was_first(
    place: Place, trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(place, A.TRUST_WITH_CHILDREN)
    below = Place(place.home, place.folder / "below", place.songs_file)
    program(below, "node_modules/.bin/server", "below")
    monkeypatch.chdir(below.folder)
    assert "Not started: mine" in (await headless(below)).stderr
    async with opened(below) as deck:
        await deck.reach("mine", S.READY)
        assert deck.questions() == []
    assert (await headless(below)).json["warnings"] == []
    assert place.words() == ["evil", "below", "below"]
    place.user({"mcpServers": {"mine": {**trap.entry, "args": ["server"]}}})
    async with opened(below) as deck:
        assert await is_held(deck)
        deck.engine.forget_folder()
    async with opened(below) as deck:
        assert await is_held(deck)


@pytest.mark.parametrize("trap", ["node_modules"], indirect=True)
@pytest.mark.usefixtures("trap")
async def test_A14_a_folder_that_holds_the_state_is_nowhere_outside(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMDECK_HOME", str(place.folder / "state"))
    async with opened(place) as deck:
        assert not (await deck.answer(A.START_OUTSIDE)).may_start_outside
        assert deck.statuses() == {"mine": S.UNTRUSTED}
    assert place.songs() == []
