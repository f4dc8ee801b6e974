"""Ctrl+Q ends gemdeck also while Python code holds the event loop."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.cli.running import write_settings
from tests.conftest import World
from tests.pty.driving import EXIT_SECONDS, assert_gone, assert_restored, say, wait_for_end_of_turn
from tests.pty.test_leaving import DECK, STUBBORN
from tests.support.terminal import Terminal, processes_of
from tui.compose import HELD_PATIENCE, HELD_WORDS
from tui.ui.driver import QUIT_PATIENCE

MOST: Final = 3.0
"""Seconds in which the key ends gemdeck."""

HOLDING: Final = """
import asyncio, os, threading, time
from pathlib import Path
from tui.engine.engine import Engine
from tui.ui.app import GemdeckApp

def busy():
    Path("held").touch()
    while True:
        pass

def closed():
    os.close(2)
    busy()

def blocked():
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.set_blocking(2, False)
    try:
        while os.write(2, bytes(4096)):
            pass
    except BlockingIOError:
        os.set_blocking(2, True)
    busy()

def asleep():
    Path("held").touch()
    time.sleep(600)

def dribble():
    Path("held").touch()
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        pass
    asyncio.get_running_loop().call_soon(dribble)

def wait(loop, hold):
    while not Path("hold").exists():
        time.sleep(0.02)
    loop.call_soon_threadsafe(globals()[hold])

def hold_once_told(hold):
    mount = GemdeckApp.on_mount
    def on_mount(self):
        loop = asyncio.get_running_loop()
        threading.Thread(target=wait, args=(loop, hold), daemon=True).start()
        mount(self)
    GemdeckApp.on_mount = on_mount

def hold_at_the_end(hold):
    leave = Engine.__aexit__
    async def end(self, *rest):
        await hold()
        await leave(self, *rest)
    Engine.__aexit__ = end

async def hold():
    busy()

async def linger():
    for _ in range(20):  # longer than the loop may be held
        await asyncio.sleep(0.2)

"""


@contextmanager
def held(place: Path, line: str) -> Iterator[Terminal]:
    """Run the demo, whose event loop is held in some way."""
    folder, code = place / "opened", place / "code"
    folder.mkdir()
    code.mkdir()
    (code / "sitecustomize.py").write_text(HOLDING + line)
    entry = {"command": sys.executable, "args": [str(STUBBORN), "ignore_term", "ignore_eof"]}
    # Where the loop is not held for good, it may end meanwhile, and give the title back once more.
    write_settings({"mcpServers": {"stubborn": entry}, "gemdeck": {"title": "dribble" not in line}})
    with Terminal(DECK, cwd=folder, env={"PYTHONPATH": str(code)}) as terminal:
        terminal.wait_for("2 ready")
        yield terminal


def assert_ended(terminal: Terminal, code: int = 1) -> None:
    assert terminal.wait_for_exit(EXIT_SECONDS) == code
    assert_restored(terminal)
    assert (HELD_WORDS.decode().strip() in " ".join(terminal.screen.split())) is (code == 1)


def assert_saved(world: World) -> None:
    [session] = world.state.glob("sessions/*/2*.jsonl")
    records = [json.loads(line) for line in session.read_text().splitlines()]
    assert [one["t"] for one in records[-2:]] == ["end", "summary"]


@pytest.mark.parametrize(
    ("hold", "key", "takes_words"),
    [
        ("busy", b"\x1b[113;5u", True),
        ("asleep", b"\x1b[27;5;113~", True),
        ("dribble", b"\x11", True),
        ("closed", b"\x11", False),
        ("blocked", b"\x11", False),
    ],
)
def test_E46_the_key_that_quits_ends_it_and_saves_the_conversation_while_the_loop_is_held(
    world: World, tmp_path: Path, hold: str, key: bytes, takes_words: bool
) -> None:
    with held(tmp_path, f"hold_once_told('{hold}')") as terminal:
        say(terminal, "hello")
        wait_for_end_of_turn(terminal)
        servers = terminal.descendants()
        assert len(servers) == processes_of(2)
        (tmp_path / "opened/hold").touch()
        terminal.wait_for(lambda _: (tmp_path / "opened/held").exists())
        terminal.send(b"text\x1b[200~\x11\x1b[201~" + key + key)
        if takes_words:
            assert_ended(terminal)
            assert "gemdeck --resume" in terminal.screen
        assert terminal.wait_for_exit(EXIT_SECONDS) == 1
        assert_gone(servers)
    assert_saved(world)
    assert QUIT_PATIENCE + HELD_PATIENCE < MOST


@pytest.mark.parametrize(
    ("at_the_end", "code"), [("hold", 1), ("linger", 0)], ids=["is held", "takes long"]
)
def test_E46_a_loop_that_is_held_at_the_end_is_left_and_one_that_takes_long_waited_for(
    tmp_path: Path, at_the_end: str, code: int
) -> None:
    with held(tmp_path, f"hold_at_the_end({at_the_end})") as terminal:
        servers = terminal.descendants()
        terminal.press("ctrl+q")
        assert_ended(terminal, code)
        assert_gone(servers)
