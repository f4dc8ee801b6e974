"""Text from outside, in every place that shows any, sends the terminal nothing but text."""

import json
import re
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio.to_thread

from tests.conftest import World
from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Action, Call, Fail, Say, Think
from tests.pty.driving import leave, say, send, wait_for_end_of_turn
from tests.pty.hostile_server import HOSTILE
from tests.security.decks import Turncoat, tool
from tests.support import warm
from tests.support.terminal import Terminal, escape_kinds
from tui.ui.questions.arming import ARMING_SECONDS, KEY_REPEAT_SECONDS

HOSTILE_SERVER: Final = Path(__file__).with_name("hostile_server.py")

INVISIBLE: Final = "\u202e\u2066\u200b\U000e0041"
"""What must never reach the terminal as it is."""

HINT: Final = "↵ confirm"
"""Stands in the last line of a question that takes answers."""


HELD: Final = "any other letter cancels it"
"""Stands there while an answer waits for what follows it."""


OWN_KINDS: Final = {
    *("CSI <u", "CSI >25u", "CSI =4;2u", "CSI ?2026$p", "CSI ?2048$p", "CSI H", "CSI m", "OSC 22"),
    *("CSI t", "OSC 2", "OSC 8", "OSC 11", "CSI ?2031h", "CSI ?2031l"),
    *("CSI ?7h", "CSI ?7l", "CSI ?25h", "CSI ?25l", "CSI ?1000h", "CSI ?1000l", "CSI ?1003h"),
    *("CSI ?1003l", "CSI ?1004h", "CSI ?1004l", "CSI ?1006h", "CSI ?1006l", "CSI ?1015h"),
    *("CSI ?9001l", "CSI ?1015l", "CSI ?1049h", "CSI ?1049l", "CSI ?2004h", "CSI ?2004l"),
}
"""All that gemdeck and Textual write themselves from the start to the end."""

HARMLESS_TARGET: Final = re.compile(rb"|https?://[!-:<-~]+")
"""Where a link may lead that the terminal is told of: nowhere, which ends it, or into the web."""


def assert_harmless(raw: bytes) -> None:
    assert escape_kinds(raw) <= OWN_KINDS
    assert b"\x1b]52" not in raw
    targets = re.findall(rb"\x1b\]8;[^;]*;(.*?)(?:\x1b|\x07)", raw)
    assert [url for url in targets if not HARMLESS_TARGET.fullmatch(url)] == []
    for character in INVISIBLE:
        assert character.encode() not in raw


def write(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def insist(terminal: Terminal, key: str, title: str) -> None:
    """Answer a question; a key that follows another one too fast does not count."""
    for _ in range(5):
        terminal.press(key)
        with suppress(AssertionError):
            terminal.wait_gone(title, timeout=10)
            return
    raise AssertionError(terminal.screen)


def insist_twice(terminal: Terminal, key: str, again: str, title: str) -> None:
    """Press the key of a wide answer twice, as nobody does who holds it down."""
    for _ in range(5):
        terminal.wait_for(HINT)
        terminal.press(key)
        terminal.wait_for(again)
        time.sleep(2 * KEY_REPEAT_SECONDS)  # what is asked for is the time between the two
        terminal.press(key)
        screen = terminal.wait_gone(again)
        if HELD in screen or title not in screen:  # it is held, or was given already
            return
    raise AssertionError(terminal.screen)


def visit_what_a_server_offers(terminal: Terminal) -> None:
    """Bring every text of the server to the screen."""
    terminal.wait_for("2 ready")
    say(terminal, "report")
    terminal.wait_for(lambda screen: "wants to run" in screen and HINT in screen)
    terminal.press("o")
    terminal.wait_gone("wants to run")
    wait_for_end_of_turn(terminal)
    terminal.press("f3")
    terminal.wait_for("x off/on  v schema")
    terminal.press("home", "down")  # the first row is the name of the server
    terminal.wait_for("Report")
    terminal.press("f4")
    terminal.wait_for("filter prompts")
    terminal.press("f5")
    terminal.wait_for("filter resources")
    for key in ("home", "down"):  # the cursor may be on the name of the server
        with suppress(AssertionError):
            terminal.wait_for("note://one", timeout=2)
            break
        terminal.press(key)
    terminal.wait_for("note://one")
    terminal.press("f7")
    terminal.wait_for("starting")
    terminal.press("f2", "enter")
    terminal.wait_for("Keys and their commands")
    terminal.press("pagedown")
    terminal.wait_for("Instructions (sent")
    terminal.press("end")
    terminal.wait_for("Latest log lines")
    terminal.press("escape")
    leave(terminal)


def test_D01_D02_D03_D17_what_a_server_offers_sends_the_terminal_only_text(
    tmp_path: Path, world: World
) -> None:
    entry = {"command": sys.executable, "args": [str(HOSTILE_SERVER)]}
    servers = {"mcpServers": {"evil[/x]\x1b]0;owned\x07\u202e": entry}}
    write(world.home / ".gemini" / "settings.json", servers)
    folder = tmp_path / f"shop\x1b]2;owned\x07{INVISIBLE}"
    folder.mkdir()
    with Terminal(warm.deck("--demo"), cwd=folder) as terminal:
        visit_what_a_server_offers(terminal)
        assert_harmless(terminal.raw)
        assert b"]2;shop" in terminal.raw
        assert b"owned\x07" not in terminal.raw


@dataclass
class Scene:
    """A folder that brings servers, a server that changes its tools, and a model that talks."""

    home: Path
    folder: Path

    @property
    def server(self) -> Turncoat:
        return Turncoat("own", self.home)

    def offer(self, words: str) -> None:
        said = f"{words} {HOSTILE}"
        schema = {"type": "object", "properties": {"text": {"type": "string", "description": said}}}
        names = ("report", "turn")
        self.server.offer(*(tool(name, said, title=said, inputSchema=schema) for name in names))

    def prepare(self) -> None:
        self.offer("first")
        own = {"mcpServers": {"own": self.server.entry}, "gemdeck": {f"unknown {HOSTILE}": 1}}
        write(self.home / ".gemini" / "settings.json", own)
        entry: dict[str, object] = {"command": f"no such program {HOSTILE}", "description": HOSTILE}
        entry |= {"args": [HOSTILE, "two"], "env": {"LD_PRELOAD": HOSTILE}, "cwd": f"sub {HOSTILE}"}
        write(self.folder / ".gemini" / "settings.json", {"mcpServers": {"p" + HOSTILE: entry}})

    @property
    def steps(self) -> Sequence[Sequence[Action]]:
        text = f"# {HOSTILE}\n\n[a {HOSTILE}](https://x.test/{HOSTILE})\n\n{HOSTILE}"
        return (
            [Think(HOSTILE), Say(text), Call([("report", {"text": HOSTILE})])],
            [Call([("turn", {"text": HOSTILE}), (f"no{HOSTILE}", {})])],
            [Say(text)],
            [Fail(400, f"The request is wrong: {HOSTILE}")],
        )

    def play(self, url: str) -> bytes:
        environment = {"HOME": str(self.home), "GEMDECK_HOME": str(self.home / "state")}
        environment |= {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url}
        command = [sys.executable, "-m", "tui"]
        with Terminal(command, cwd=self.folder, env=environment) as terminal:
            self._refuse_the_folder(terminal)
            self._answer_calls(terminal)
            self._look_at_rules(terminal)
            send(terminal, "again")
            terminal.wait_for("The service refused the request")  # which puts the message back
            terminal.press("shift+tab")
            terminal.wait_for("↵ open")
            terminal.press("enter")
            terminal.wait_for("The request is wrong")
            terminal.press("escape")
            leave(terminal)
            return terminal.raw

    def _refuse_the_folder(self, terminal: Terminal) -> None:
        terminal.wait_for("Do you trust this folder?")
        terminal.press("end")
        terminal.wait_for(HINT)
        insist(terminal, "n", "Do you trust this folder?")
        terminal.wait_for("1 ready")

    def _answer_calls(self, terminal: Terminal) -> None:
        say(terminal, "go")
        terminal.wait_for(lambda screen: "wants to run" in screen and HINT in screen)
        terminal.press("i")
        terminal.wait_for("from your settings")
        time.sleep(2 * ARMING_SECONDS)  # a key that follows another one too fast does not count
        terminal.press("e")
        terminal.wait_for("^S done")
        terminal.press("escape")
        terminal.wait_gone("Edit the arguments")
        terminal.wait_for(HINT)
        insist_twice(terminal, "t", "again: always", "own wants to run report")
        terminal.wait_for(lambda screen: "own wants to run turn" in screen and HINT in screen)
        self.offer("second")
        terminal.press("o")
        terminal.wait_for(lambda screen: "second" in screen and "more line" in screen)
        terminal.press("end")
        terminal.wait_for(HINT)
        insist(terminal, "n", "A server changed")

    def _look_at_rules(self, terminal: Terminal) -> None:
        terminal.press("f2", "g")
        terminal.wait_for("Grants ─")
        terminal.press("escape")
        terminal.wait_gone("Grants ─")
        terminal.press("f3")
        terminal.wait_for("x off/on  v")
        terminal.press("enter")
        terminal.wait_for(
            lambda screen: "The tool changed since" in screen and "Esc back" in screen
        )
        terminal.press("escape")
        terminal.wait_gone("Esc back")
        terminal.press("f6")


async def test_D01_D02_D03_D17_questions_and_answers_send_the_terminal_only_text(
    tmp_path: Path,
) -> None:
    home, folder = tmp_path / "home", tmp_path / "folder"
    home.mkdir()
    folder.mkdir()
    scene = Scene(home, folder)
    scene.prepare()
    async with FakeGemini(scene.steps) as fake:
        raw = await anyio.to_thread.run_sync(scene.play, fake.url)
    assert_harmless(raw)
