"""Text from outside, in every place that shows any, sends the terminal nothing but text."""

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import pytest

from tests.conftest import World
from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Action, Call, Fail, Say, Think
from tests.pty.hostile_server import HOSTILE
from tests.support import warm
from tests.support.terminal import Terminal, escape_kinds
from tui.ui.questions.arming import KEY_REPEAT_SECONDS

HOSTILE_SERVER: Final = Path(__file__).with_name("hostile_server.py")
TURNCOAT: Final = Path(__file__).parent.parent / "servers" / "turncoat.py"

INVISIBLE: Final = "\u202e\u2066\u200b\U000e0041"
"""What must never reach the terminal as it is."""

HINT: Final = "↵ presses"
"""Stands in the last line of a question that takes answers."""


HELD: Final = "any other letter stops it"
"""Stands there while an answer waits for what follows it."""


@dataclass
class Recorded:
    """What a run wrote to its terminal."""

    raw: bytes = b""

    @property
    def kinds(self) -> frozenset[str]:
        return escape_kinds(self.raw)


def assert_harmless(hostile: Recorded, harmless: Recorded) -> None:
    assert hostile.kinds - harmless.kinds == set()
    assert b"\x1b]52" not in hostile.raw
    assert b"\x1b]8" not in hostile.raw
    for character in INVISIBLE:
        assert character.encode() not in hostile.raw


def write(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def say(terminal: Terminal, text: str) -> None:
    terminal.type(text)
    terminal.wait_for(f"> {text}")
    terminal.press("enter")
    terminal.wait_gone(f"> {text}")


def insist(terminal: Terminal, key: str, title: str) -> None:
    """Answer a question; a key that follows another one too fast does not count."""
    for _ in range(5):
        terminal.press(key)
        with suppress(AssertionError):
            terminal.wait_gone(title, timeout=2)
            return
    raise AssertionError(terminal.screen)


def insist_twice(terminal: Terminal, key: str, again: str) -> None:
    """Press the key of a wide answer twice, as nobody does who holds it down."""
    for _ in range(5):
        terminal.wait_for(HINT)
        terminal.press(key)
        terminal.wait_for(again)
        time.sleep(2 * KEY_REPEAT_SECONDS)  # what is asked for is the time between the two
        terminal.press(key)
        terminal.wait_gone(again)
        if HELD in terminal.screen:
            return
    raise AssertionError(terminal.screen)


def quit_app(terminal: Terminal) -> None:
    terminal.press("ctrl+q")
    assert terminal.wait_for_exit() == 0


def visit_what_a_server_offers(terminal: Terminal) -> None:
    """Bring every text of the server to the screen."""
    terminal.wait_for("2 ready")
    say(terminal, "report")
    terminal.wait_for(lambda screen: "A tool wants to run" in screen and HINT in screen)
    terminal.press("o")
    terminal.wait_gone("A tool wants to run")
    terminal.wait_for(lambda screen: re.search(r"── .*tokens ──", screen) is not None)
    terminal.press("f3")
    terminal.wait_for("details  v schema")
    terminal.press("home")
    terminal.wait_for("Report")
    for key, shown in (("f4", "ask"), ("f5", "note://one"), ("f7", "starting")):
        terminal.press(key)
        terminal.wait_for(shown)
    terminal.press("f2", "enter")
    terminal.wait_for("instructions")
    terminal.press("escape")
    quit_app(terminal)


@pytest.mark.slow
def test_D01_D02_D03_D17_what_a_server_offers_sends_the_terminal_only_text(
    tmp_path: Path, world: World
) -> None:
    recorded = {}
    for mode, name in (("harmless", "evil"), ("hostile", "evil[/x]\x1b]0;owned\x07\u202e")):
        entry = {"command": sys.executable, "args": [str(HOSTILE_SERVER), mode]}
        write(world.home / ".gemini" / "settings.json", {"mcpServers": {name: entry}})
        with Terminal(warm.deck("--demo"), cwd=tmp_path) as terminal:
            visit_what_a_server_offers(terminal)
            recorded[mode] = Recorded(terminal.raw)
    assert_harmless(recorded["hostile"], recorded["harmless"])


@dataclass
class Scene:
    """A folder that brings servers, a server that changes its tools, and a model that talks."""

    extra: str
    home: Path
    folder: Path

    @property
    def tools_file(self) -> Path:
        return self.home / "tools.json"

    def offer(self, words: str) -> None:
        described = f"{words} {self.extra}"
        schema = {
            "type": "object",
            "properties": {"text": {"type": "string", "description": described}},
        }
        tools = [
            {"name": name, "title": described, "description": described, "inputSchema": schema}
            for name in ("report", "turn")
        ]
        write(self.tools_file, tools)

    def prepare(self) -> None:
        self.offer("first")
        turncoat = [str(TURNCOAT), str(self.tools_file), str(self.home / "calls.jsonl")]
        own: Mapping[str, Any] = {
            "mcpServers": {"own": {"command": sys.executable, "args": turncoat}},
            "gemdeck": {f"unknown {self.extra}": 1},
        }
        write(self.home / ".gemini" / "settings.json", own)
        entry = {
            "command": f"no such program {self.extra}",
            "args": [self.extra, "two"],
            "env": {"LD_PRELOAD": self.extra},
            "cwd": f"sub {self.extra}",
            "description": self.extra,
        }
        write(self.folder / ".gemini" / "settings.json", {"mcpServers": {"p" + self.extra: entry}})

    @property
    def steps(self) -> Sequence[Sequence[Action]]:
        text = f"# {self.extra}\n\n[a {self.extra}](https://x.test/{self.extra})\n\n{self.extra}"
        return (
            [Think(self.extra), Say(text), Call([("report", {"text": self.extra})])],
            [Call([("turn", {"text": self.extra}), (f"no{self.extra}", {})])],
            [Say(text)],
            [Fail(400, f"The request is wrong: {self.extra}")],
        )

    def play(self, url: str) -> Recorded:
        environment = {
            "GEMINI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": url,
            "HOME": str(self.home),
            "GEMDECK_HOME": str(self.home / "state"),
        }
        command = [sys.executable, "-m", "tui"]
        with Terminal(command, cwd=self.folder, env=environment) as terminal:
            self._refuse_the_folder(terminal)
            self._answer_calls(terminal)
            self._look_at_rules(terminal)
            terminal.type("again")
            terminal.wait_for("> again")
            terminal.press("enter")
            terminal.wait_for("The request is wrong")  # which puts the message back
            quit_app(terminal)
            return Recorded(terminal.raw)

    def _refuse_the_folder(self, terminal: Terminal) -> None:
        terminal.wait_for("Do you trust this folder?")
        terminal.press("end")
        terminal.wait_for(HINT)
        insist(terminal, "n", "Do you trust this folder?")
        terminal.wait_for("1 ready")

    def _answer_calls(self, terminal: Terminal) -> None:
        say(terminal, "go")
        terminal.wait_for(lambda screen: "A tool wants to run" in screen and HINT in screen)
        terminal.press("e")
        terminal.wait_for("Drop the changes")
        terminal.press("escape")
        terminal.wait_gone("Edit the arguments")
        terminal.wait_for(HINT)
        insist_twice(terminal, "t", "again: always")
        terminal.wait_for(lambda screen: "tool     turn" in screen and HINT in screen)
        self.offer("second")
        terminal.press("o")
        terminal.wait_for(lambda screen: "second" in screen and "Read to the end" in screen)
        terminal.press("end")
        terminal.wait_for(HINT)
        insist(terminal, "n", "A server changed")

    def _look_at_rules(self, terminal: Terminal) -> None:
        terminal.press("f2", "g")
        terminal.wait_for("Grants: rules for tools")
        terminal.press("escape")
        terminal.wait_gone("Grants: rules for tools")
        terminal.press("f3")
        terminal.wait_for("details  v")
        terminal.press("enter")
        terminal.wait_for(lambda screen: "withheld" in screen and "Esc close" in screen)
        terminal.press("escape")
        terminal.wait_gone("Esc close")
        terminal.press("f6")


@pytest.mark.slow
async def test_D01_D02_D03_D17_questions_and_answers_send_the_terminal_only_text(
    tmp_path: Path,
) -> None:
    recorded = {}
    for mode, extra in (("harmless", "harmless"), ("hostile", HOSTILE)):
        home, folder = tmp_path / f"{mode}-home", tmp_path / mode
        home.mkdir()
        folder.mkdir()
        scene = Scene(extra, home, folder)
        scene.prepare()
        async with FakeGemini(scene.steps) as fake:
            recorded[mode] = await anyio.to_thread.run_sync(scene.play, fake.url)
    assert_harmless(recorded["hostile"], recorded["harmless"])
