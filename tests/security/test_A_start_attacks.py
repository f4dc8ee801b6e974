"""A clone that waits for the user's own servers: none falls into a trap without a yes to it."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.running import Result, run
from tests.security.opened import CANARY, Opened, Place, opened, place
from tests.unit.engine.mcp.support import eventually
from tui.model.servers import ServerStatus
from tui.model.trust import FolderTrust, TrustAnswer, TrustSubject

__all__ = ["place"]

S, A = ServerStatus, TrustAnswer

NPX: Final = {"command": "npx", "args": ["-y", "server"]}


@dataclass(frozen=True)
class Trap:
    """What lays a trap into a clone, and the user's server that would fall into it."""

    entry: dict[str, Any]
    lay: Callable[[Place], object]


def program(place: Place, path: str, word: str = "evil") -> Path:
    """Write a program that sings."""
    file = place.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'#!/bin/sh\nexec {sys.executable} {CANARY} "{place.songs_file}" {word}\n')
    file.chmod(0o755)
    return file


def lay_npmrc(place: Place) -> None:
    program(place, "hook").rename(place.folder / ".npmrc")


PYTHON: Final = {"command": sys.executable}
PACKAGE: Final = {**PYTHON, "args": ["-m", "pkg"]}
TRAPS: Final = {
    "npmrc": Trap(NPX, lay_npmrc),
    "node_modules": Trap(NPX, lambda place: program(place, "node_modules/.bin/server")),
    "cwd": Trap(
        {**NPX, "cwd": "sub"}, lambda place: program(place, "sub/node_modules/.bin/server")
    ),
    "PWD": Trap({**NPX, "cwd": "${PWD}"}, lambda place: program(place, "node_modules/.bin/server")),
    "package": Trap(PACKAGE, lambda place: place.script("pkg/__main__.py")),
    "script": Trap({**PYTHON, "args": ["./server.py"]}, lambda place: place.script("server.py")),
    "program": Trap({"command": "tools/server"}, lambda place: program(place, "tools/server")),
}
"""Each way to let the user's own servers run code of a clone."""


FETCHED: Final = ("npmrc", "node_modules")
NEEDING: Final = ("cwd", "PWD", "script", "program")
"""What names the folder waits; what does not starts outside, where the trap is not."""


@pytest.fixture
def laid(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Lay all traps, and set up an ``npx`` as it works: what the folder has comes first."""
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
    for trap in TRAPS.values():
        trap.lay(place)
    place.user({"mcpServers": {name: trap.entry for name, trap in TRAPS.items()}})
    return place


async def reach_traps(deck: Opened) -> None:
    """Wait until all have started that may, outside; the module is not found there."""
    for name in FETCHED:
        await deck.reach(name, S.READY)
    await eventually(lambda: deck.statuses()["package"] in {S.RETRYING, S.FAILED})


async def headless(place: Place, *arguments: str) -> Result:
    return await run("-p", "hello", "--demo", "-o", "json", *arguments, cwd=place.folder)


async def test_A14_no_trap_runs_without_a_yes_and_nothing_asks_for_one(laid: Place) -> None:
    async with opened(laid) as deck:
        await reach_traps(deck)
        for name in NEEDING:
            deck.engine.servers.start(deck.server(name).id)
        deck.engine.servers.restart_all()
        for name in NEEDING:
            failure = deck.server(name).failure
            assert deck.statuses()[name] is S.UNTRUSTED
            assert failure is not None
            assert failure.reason.startswith("Needs this folder: ")
            assert failure.advice.startswith("Press t to trust the folder")
        await reach_traps(deck)
        assert (deck.trust(), deck.questions()) == (FolderTrust.NOTHING_TO_TRUST, [])
        assert all(deck.server(name).is_outside for name in FETCHED)
    result = await headless(laid)
    for name in NEEDING:
        [warned] = [text for text in result.json["warnings"] if f"started: {name}." in text]
        assert f"--trust-folder {laid.folder}" in warned
    assert set(laid.words()) == {"fetched"}
    assert all(not Path(song["cwd"]).is_relative_to(laid.folder) for song in laid.songs())
    async with opened(laid) as deck:
        await reach_traps(deck)
        deck.engine.review_folder()
        question = await deck.answer(A.TRUST)
        assert question.subject is TrustSubject.FOLDER
        assert set(question.own) == set(TRAPS)
        for name in TRAPS:
            await deck.reach(name, S.READY)
        assert deck.trust() is FolderTrust.TRUSTED
        sung = len(laid.songs())
        assert laid.words()[-len(TRAPS) :] == ["evil"] * len(TRAPS)
        deck.engine.forget_folder()
        await eventually(lambda: all(deck.statuses()[name] is S.UNTRUSTED for name in NEEDING))
        await reach_traps(deck)
    assert "evil" not in laid.words()[sung:]
    assert "evil" not in (await headless(laid)).stderr


async def test_A08_a_named_folder_and_one_with_a_yes_count_without_a_screen(laid: Place) -> None:
    assert (await headless(laid, "--trust-folder", str(laid.folder))).json["warnings"] == []
    assert laid.words() == ["evil"] * len(TRAPS)
    async with opened(laid) as deck:
        deck.engine.review_folder()
        await deck.answer(A.TRUST_WITH_CHILDREN)
        for name in TRAPS:
            await deck.reach(name, S.READY)
    assert (await headless(laid)).json["warnings"] == []
    below = Place(laid.home, laid.folder / "below", laid.songs_file)
    program(below, "node_modules/.bin/server", "below")
    assert "Not started: program" in (await headless(below)).stderr
    assert "below" not in laid.words(), "from above it counts only where somebody could be asked"


async def test_A05_a_yes_goes_with_the_folder_and_neither_with_its_name_nor_a_link(
    laid: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = laid.home / "link"
    link.symlink_to(laid.folder)
    linked = Place(laid.home, link, laid.songs_file)
    async with opened(linked) as deck:
        deck.engine.review_folder()
        assert (await deck.answer(A.TRUST)).place == "~/clone"
        await deck.reach("node_modules", S.READY)
    renamed = Place(laid.home, laid.home / "renamed", laid.songs_file)
    laid.folder.rename(renamed.folder)
    laid.folder.mkdir()
    program(laid, "node_modules/.bin/server", "worse")
    for other in (renamed, laid, linked):
        monkeypatch.chdir(other.folder)
        async with opened(other) as deck:
            await deck.reach("node_modules", S.READY)
            assert deck.server("node_modules").is_outside
            assert deck.questions() == []
    assert "worse" not in laid.words()


async def test_A14_never_means_outside_too(laid: Place) -> None:
    async with opened(laid) as deck:
        deck.engine.review_folder()
        await deck.answer(A.NEVER)
        await reach_traps(deck)
    for arguments in ((), ("--trust-folder", str(laid.folder))):
        assert "Not started: program" in (await headless(laid, *arguments)).stderr
    assert set(laid.words()) == {"fetched"}


async def test_A14_a_variable_that_a_server_inherits_loads_no_code_of_a_clone(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f".:{place.folder}")
    place.script("sitecustomize.py")
    place.user({"mcpServers": {"mine": place.canary("mine")}})
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
        assert "PYTHONPATH" in deck.server("mine").left_out
    assert place.words() == ["mine"]


async def test_A05_a_line_end_in_a_folders_name_is_shown(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place.home / "cl\none"
    folder.mkdir()
    monkeypatch.chdir(folder)
    async with opened(Place(place.home, folder, place.songs_file)) as deck:
        deck.engine.review_folder()
        assert (await deck.question()).place == r"~/cl\none"


@pytest.mark.parametrize("way", ["own", "argument", "link", "dots"])
async def test_A14_an_extension_may_run_its_own_code_and_no_clones(place: Place, way: str) -> None:
    place.script("server.py")
    home = place.home / ".gemini" / "extensions" / "sky"
    place.script(f"{home}/server.py", "sung")
    (home / "link").symlink_to(place.folder)
    cwd = {
        "own": "${extensionPath}",
        "argument": "${extensionPath}",
        "link": "${extensionPath}/link",
        "dots": f"${{extensionPath}}/../../../{place.folder.name}",
    }[way]
    words = ["env", f"PYTHONPATH={place.folder}"] if way == "argument" else []
    command, *args = [*words, sys.executable, "server.py"]
    server = {"command": command, "args": args, "cwd": cwd}
    manifest = {"name": "sky", "mcpServers": {"sky": server}}
    (home / "gemini-extension.json").write_text(json.dumps(manifest))
    async with opened(place) as deck:
        await deck.reach("sky", S.READY if way == "own" else S.UNTRUSTED)
    assert place.words() == (["sung"] if way == "own" else [])
