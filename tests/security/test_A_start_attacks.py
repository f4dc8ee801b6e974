"""A clone that waits for the user's own servers: each trap, with a yes and without one."""

import json
import os
import sys
from collections.abc import Callable, Mapping
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


def pull(place: Place) -> None:
    """Change what sings, as a pull would."""
    for file in place.folder.rglob("*"):
        if file.is_file() and file.suffix != ".pyc":
            file.write_text(file.read_text().replace("evil", "worse"))


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


@dataclass(frozen=True)
class Laid:
    """A clone with traps, and the user's servers that would fall into them."""

    place: Place
    traps: Mapping[str, Trap]

    def users(self, *more: str) -> dict[str, Any]:
        """Write the user's servers, each with further arguments."""
        servers = {
            name: {**trap.entry, "args": [*trap.entry.get("args", []), *more]}
            for name, trap in self.traps.items()
        }
        self.place.user({"mcpServers": servers})
        return servers

    def all_are(self, status: ServerStatus) -> dict[str, ServerStatus]:
        return dict.fromkeys(self.traps, status)

    async def reach(self, deck: Opened, status: ServerStatus) -> None:
        for name in self.traps:
            await deck.reach(name, status)

    async def say(self, answer: TrustAnswer) -> None:
        """Open the folder, and answer its question."""
        async with opened(self.place) as deck:
            await deck.answer(answer)
            if answer.allows:
                await self.reach(deck, S.READY)

    async def are_held(self, deck: Opened) -> bool:
        await deck.question()
        for name in self.traps:
            deck.engine.servers.start(deck.server(name).id)
        deck.engine.servers.restart_all()
        return deck.statuses() == self.all_are(S.UNTRUSTED)


@pytest.fixture
def laid(request: pytest.FixtureRequest, place: Place, monkeypatch: pytest.MonkeyPatch) -> Laid:
    """Lay traps, and set up an ``npx`` as it works: what the folder has comes first."""
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
    laid = Laid(place, {name: TRAPS[name] for name in getattr(request, "param", NODE_MODULES)})
    for trap in laid.traps.values():
        trap.lay(place)
    laid.users()
    return laid


NODE_MODULES: Final = ("node_modules",)
NPMRC, OTHERS = ("npmrc",), tuple(name for name in TRAPS if name != "npmrc")
LEAVING: Final = ("node_modules", "cwd", "PWD")
STAYING: Final = ("package", "script", "program")


async def headless(place: Place, *arguments: str) -> Result:
    return await run("-p", "hello", "--demo", "-o", "json", *arguments, cwd=place.folder)


@pytest.mark.parametrize("laid", [NPMRC, OTHERS], indirect=True, ids=["npmrc", "others"])
async def test_A14_no_trap_runs_without_a_yes_which_lets_exactly_this_run_without_a_screen_too(
    place: Place, laid: Laid
) -> None:
    count = len(laid.traps)
    async with opened(place) as deck:
        assert await laid.are_held(deck)
        failure = deck.server(next(iter(laid.traps))).failure
        assert failure is not None
        assert "code from ~/clone" in failure.reason
        assert "Review this folder" in failure.advice
        question = await deck.answer(A.NOT_NOW)
        assert (question.subject, question.place) == (TrustSubject.STARTED_HERE, "~/clone")
        started = {one.server: one.command for one in question.started}
        assert started == {name: trap.entry["command"] for name, trap in laid.traps.items()}
        await eventually(lambda: not deck.questions())
        assert deck.statuses() == laid.all_are(S.UNTRUSTED)
    result = await headless(place)
    for name in laid.traps:
        warned = [text for text in result.json["warnings"] if name in text]
        assert any("from ~/clone" in text for text in warned)
        assert any(f"--trust-folder {place.folder}" in text for text in warned)
        assert all(text in result.stderr for text in warned)
    assert place.songs() == []

    await laid.say(A.TRUST)
    assert place.words() == ["evil"] * count
    async with opened(place) as deck:
        await laid.reach(deck, S.READY)
        assert deck.questions() == []
    assert (await headless(place)).json["warnings"] == []
    assert place.words() == ["evil"] * 3 * count
    laid.users("more")
    async with opened(place) as deck:
        assert await laid.are_held(deck)
        question = await deck.question()
        added = [line.text for line in question.difference if line.sign == "+"]
        assert added == ["argument more"] * count
        assert [one.change for one in question.started] == ["changed"] * count
    assert "has changed since you allowed it" in (await headless(place)).stderr
    assert place.words() == ["evil"] * 3 * count


@pytest.mark.parametrize("laid", [NPMRC, STAYING], indirect=True, ids=["npmrc", "others"])
async def test_A14_what_was_pulled_since_does_not_run_and_the_rest_does(
    place: Place, laid: Laid
) -> None:
    place.script("other.py", "other")
    place.user({"mcpServers": {**laid.users(), "other": {**PYTHON, "args": ["./other.py"]}}})
    async with opened(place) as deck:
        await deck.answer(A.TRUST)
        await laid.reach(deck, S.READY)
        await deck.reach("other", S.READY)
    pull(place)
    async with opened(place) as deck:
        question = await deck.question()
        changes = {one.server: one.change for one in question.started}
        assert changes == dict.fromkeys(laid.traps, "changed")
        assert any("has changed: content" in line.text for line in question.difference)
        await deck.reach("other", S.READY)
        assert deck.statuses() == laid.all_are(S.UNTRUSTED) | {"other": S.READY}
    result = await headless(place)
    for name in laid.traps:
        words = f"Not started: {name}. What it would run from ~/clone has changed"
        assert any(words in text for text in result.json["warnings"])
    assert "Not started: other" not in result.stderr
    assert sorted(place.words()) == ["evil"] * len(laid.traps) + ["other"] * 3


@pytest.mark.parametrize("laid", [NPMRC, LEAVING], indirect=True, ids=["npmrc", "others"])
async def test_A14_outside_nothing_of_the_clone_runs(
    place: Place, laid: Laid, world: World
) -> None:
    count = len(laid.traps)
    async with opened(place) as deck:
        assert (await deck.answer(A.START_OUTSIDE)).may_start_outside
        await laid.reach(deck, S.READY)
        assert all(deck.server(name).is_outside for name in laid.traps)
    folders = {Path(song["cwd"]) for song in place.songs()}
    assert len(folders) == count
    for folder in folders:
        assert folder.parent.parent == world.state / "outside"
        assert not folder.exists()
    program(place, "node_modules/.bin/server", "worse")
    async with opened(place) as deck:
        await laid.reach(deck, S.READY)
        assert deck.questions() == []
        assert not any(folder.exists() for folder in folders)
    assert (await headless(place)).json["warnings"] == []
    assert place.words() == ["fetched"] * 3 * count
    async with opened(place) as deck:
        await laid.reach(deck, S.READY)
        deck.engine.review_folder()
        await deck.answer(A.TRUST)
        await eventually(lambda: len(place.words()) == 5 * count)
        deck.engine.forget_folder()
        await laid.reach(deck, S.UNTRUSTED)
    said = (await headless(place)).stderr
    assert all(f"Not started: {name}" in said for name in laid.traps)
    assert place.words()[: 4 * count] == ["fetched"] * 4 * count
    assert len(place.songs()) == 5 * count


@pytest.mark.parametrize("laid", [STAYING, ("cwd", "program")], indirect=True, ids=["all", "one"])
async def test_A14_what_cannot_leave_starts_nowhere_outside(place: Place, laid: Laid) -> None:
    async with opened(place) as deck:
        assert not (await deck.answer(A.START_OUTSIDE)).may_start_outside
        assert deck.statuses() == laid.all_are(S.UNTRUSTED)
    assert place.songs() == []


async def test_A05_a_yes_goes_with_the_folder_and_neither_with_its_name_nor_a_link(
    place: Place, laid: Laid, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = place.home / "link"
    link.symlink_to(place.folder)
    linked = Place(place.home, link, place.songs_file)
    async with opened(linked) as deck:
        assert await laid.are_held(deck)
        assert (await deck.answer(A.NOT_NOW)).place == "~/clone"
    await laid.say(A.TRUST)
    assert (await headless(linked)).json["warnings"] == []
    assert place.words() == ["evil"] * 2
    renamed = Place(place.home, place.home / "renamed", place.songs_file)
    place.folder.rename(renamed.folder)
    place.folder.mkdir()
    program(place, "node_modules/.bin/server", "worse")
    for other in (renamed, place, linked):
        monkeypatch.chdir(other.folder)
        async with opened(other) as deck:
            assert await laid.are_held(deck)
        assert "Not started: node_modules" in (await headless(other)).stderr
    link.unlink()
    link.symlink_to(renamed.folder)
    assert "Not started: node_modules" in (await headless(linked)).stderr
    assert place.words() == ["evil"] * 2


@pytest.mark.usefixtures("laid")
async def test_A14_one_question_is_about_what_the_clone_brings_and_what_runs_from_it(
    place: Place,
) -> None:
    place.project({"mcpServers": {"it": place.canary("it")}})
    async with opened(place) as deck:
        question = await deck.answer(A.START_OUTSIDE)
        assert question.subject is TrustSubject.FOLDER
        assert [one.server for one in question.servers] == ["it"]
        assert [one.server for one in question.started] == ["node_modules"]
        await deck.reach("node_modules", S.READY)
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
        await deck.reach("node_modules", S.UNTRUSTED)
    sung = len(place.songs())
    async with opened(place) as deck:
        await deck.reach("node_modules", S.UNTRUSTED)
        assert deck.questions() == []
    for arguments in ((), ("--trust-folder", str(place.folder))):
        assert "Not started: node_modules" in (await headless(place, *arguments)).stderr
    assert len(place.songs()) == sung


async def test_A06_a_yes_to_all_folders_in_it_is_kept_for_each_as_it_was_first(
    place: Place, laid: Laid, monkeypatch: pytest.MonkeyPatch
) -> None:
    await laid.say(A.TRUST_WITH_CHILDREN)
    below = Place(place.home, place.folder / "below", place.songs_file)
    program(below, "node_modules/.bin/server", "below")
    monkeypatch.chdir(below.folder)
    assert "Not started: node_modules" in (await headless(below)).stderr
    async with opened(below) as deck:
        await deck.reach("node_modules", S.READY)
        assert deck.questions() == []
    assert (await headless(below)).json["warnings"] == []
    assert place.words() == ["evil", "below", "below"]
    laid.users("more")
    async with opened(below) as deck:
        assert await laid.are_held(deck)
        deck.engine.forget_folder()
    async with opened(below) as deck:
        assert await laid.are_held(deck)


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
    place.user({"mcpServers": {"mine": place.canary("mine")}})
    async with opened(place) as deck:
        await deck.reach("mine", S.UNTRUSTED if is_held else S.READY)
    assert place.words() == ([] if is_held else ["mine"])


async def test_A14_a_yes_to_the_opened_folder_is_none_to_the_place_elsewhere(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PWD", str(place.folder))
    place.script("server.py")
    place.script(f"{place.home}/pkg/__main__.py")
    module = {**PYTHON, "args": ["-m", "pkg", "${PWD}/server.py"], "cwd": str(place.home)}
    place.user({"mcpServers": {"module": module}})
    async with opened(place) as deck:
        assert (await deck.answer(A.TRUST)).place == "~/clone"
        await eventually(lambda: any(one.place == "~" for one in deck.questions()))
        assert deck.statuses() == {"module": S.UNTRUSTED}
    assert place.songs() == []


async def test_A05_a_line_end_in_a_folders_name_is_shown(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place.home / "cl\none"
    folder.mkdir()
    monkeypatch.chdir(folder)
    place.user({"mcpServers": {"module": PACKAGE}})
    async with opened(Place(place.home, folder, place.songs_file)) as deck:
        assert (await deck.question()).place == r"~/cl\none"


async def test_A05_a_link_leads_to_no_other_folder_than_its_own(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.script("pkg/__main__.py")
    other = place.home / "other"
    other.mkdir()
    (other / "within").symlink_to(place.folder)
    monkeypatch.chdir(other)
    servers = {"module": {**PACKAGE, "cwd": "within"}, "up": {**PACKAGE, "cwd": ".."}}
    place.user({"mcpServers": servers})
    async with opened(Place(place.home, other, place.songs_file)) as deck:
        await eventually(lambda: len(deck.questions()) == 2)
        assert {one.place for one in deck.questions()} == {"~/clone", "~"}
        assert set(deck.statuses().values()) == {S.UNTRUSTED}


async def test_A14_a_server_starts_in_the_opened_folder_wherever_gemdeck_was_started(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.user({"mcpServers": {"mine": place.canary("mine")}})
    monkeypatch.chdir(place.home)
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
    assert [song["cwd"] for song in place.songs()] == [str(place.folder)]


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
