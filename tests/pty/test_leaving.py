"""Stopping and leaving the program, also while something is in the way or broken."""

import signal
import subprocess
import sys
import termios
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests import servers
from tests.cli.running import write_settings
from tests.conftest import World
from tests.pty.driving import EXIT_SECONDS, assert_gone, assert_restored, leave
from tests.support import warm
from tests.support.slow_keyring import SLOW_KEYRING
from tests.support.terminal import Terminal, processes_of

STUBBORN: Final = Path(servers.__file__).with_name("raw.py")
DECK: Final = [sys.executable, "-P", "-m", "tui", "--demo"]
ALT_SCREEN: Final = b"\x1b[?1049h"
TITLE: Final = b"\x1b]2;"
READ_CALLS: Final = ("0", "63")
"""The system call on x86-64 and on others."""


def wait_for_screen(terminal: Terminal, seen: int) -> None:
    """Wait until all is drawn on a new screen, after so much output."""

    def is_drawn(_: str) -> bool:
        written = terminal.raw[seen:]
        return ALT_SCREEN in written and b"Servers" in written.rpartition(ALT_SCREEN)[2]

    terminal.wait_for(is_drawn)
    assert b"\x1b[?9001l" in terminal.raw[seen:], "keys may be in the form of Windows' consoles"


def test_after_every_stop_the_screen_is_drawn_keys_count_and_quitting_ends_it(
    tmp_path: Path,
) -> None:
    with Terminal(DECK, cwd=tmp_path) as terminal:
        terminal.wait_for("1 ready")
        assert len(terminal.descendants()) == processes_of(1)
        raw_mode = terminal.attributes
        typed = ""
        stops = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGCONT)  # the last one stops nothing
        for number, key in zip(islice(cycle(stops), 6), "abcdef", strict=True):
            seen = len(terminal.raw)
            if number is not signal.SIGCONT:
                terminal.send_signal(number)
                terminal.wait_for(lambda _: is_stopped(terminal.pid))
                terminal.attributes = terminal.attributes_before  # as a shell does
                seen = len(terminal.raw)
            terminal.send_signal(signal.SIGCONT)
            wait_for_screen(terminal, seen)
            typed += key
            terminal.type(key)
            terminal.wait_for(f"> {typed}")
            assert terminal.attributes == raw_mode
            if number is not signal.SIGCONT:
                assert TITLE in terminal.raw[seen:]
        leave(terminal)


def is_stopped(pid: int) -> bool:
    return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)


@pytest.mark.skipif(sys.platform != "linux", reason="nothing tells of the read")
def test_a_read_that_does_not_return_does_not_keep_the_program(tmp_path: Path) -> None:
    with Terminal(DECK, cwd=tmp_path) as terminal:
        terminal.wait_for("1 ready")
        servers = terminal.descendants()
        attributes = terminal.attributes
        # A read waits for 200 bytes, or for 25.5 seconds after the last one.
        attributes[6][termios.VMIN], attributes[6][termios.VTIME] = 200, 255
        terminal.attributes = attributes
        terminal.type("x")
        reading = Path(f"/proc/{terminal.pid}/task")
        terminal.wait_for(lambda _: any(is_reading(task) for task in reading.iterdir()))
        terminal.send_signal(signal.SIGTERM)
        assert terminal.wait_for_exit(EXIT_SECONDS) == 128 + signal.SIGTERM
        assert_gone(servers)
        assert_restored(terminal)


def is_reading(task: Path) -> bool:
    """Return whether a thread is in a read of standard input; one may just have ended."""
    try:
        call = (task / "syscall").read_text().split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return call in ([number, "0x0"] for number in READ_CALLS)


def test_a_second_signal_leaves_no_stubborn_server(tmp_path: Path) -> None:
    entry = {"command": sys.executable, "args": [str(STUBBORN), "ignore_term", "ignore_eof"]}
    write_settings({"mcpServers": {"stubborn": entry}, "gemdeck": {"title": False}})
    with Terminal(warm.deck("--demo"), cwd=tmp_path) as terminal:
        terminal.wait_for("2 ready")
        found = terminal.descendants()
        assert len(found) == processes_of(2)
        terminal.send_signal(signal.SIGTERM)
        while len([process for process in found if process.is_running()]) == len(found):
            time.sleep(0.01)  # until the servers are being closed, which takes this one seconds
        terminal.send_signal(signal.SIGINT)
        assert terminal.wait_for_exit() == 128 + signal.SIGTERM
        assert_gone(found)
        assert TITLE not in terminal.raw


def test_a_keyring_that_does_not_answer_does_not_keep_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "slow_keyring.py").write_text(SLOW_KEYRING)
    monkeypatch.delenv("GEMDECK_HOME")  # it would put a file in the keyring's place
    env = {"PYTHONPATH": str(tmp_path), "PYTHON_KEYRING_BACKEND": "slow_keyring.Slow"}
    with Terminal([sys.executable, "-m", "tui"], cwd=tmp_path, env=env) as terminal:
        terminal.wait_for(lambda _: (tmp_path / "asked").exists())
        terminal.press("ctrl+q")
        assert terminal.wait_for_exit(EXIT_SECONDS) == 0


BROKEN: Final = """
from tui.engine.engine import Engine

async def broken(*_):
    raise ZeroDivisionError("AIza-a-key-in-a-message")

Engine.{method} = broken
"""


@pytest.mark.parametrize("method", ["start", "__aenter__", "__aexit__"])
def test_a_fault_of_the_engine_ends_with_a_report(
    world: World, tmp_path: Path, method: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BROKEN.format(method=method))
    env = {"PYTHONPATH": str(tmp_path)}
    with Terminal([sys.executable, "-m", "tui", "--demo"], cwd=tmp_path, env=env) as terminal:
        if method == "__aexit__":
            terminal.wait_for("1 ready")  # the engine has begun
            terminal.press("ctrl+q")
        assert terminal.wait_for_exit() == 1
        shown = " ".join(terminal.screen.split())
        assert "internal error (ZeroDivisionError)" in shown
        assert "Traceback" not in shown
        assert "ExceptionGroup" not in shown
        assert "in-a-message" not in shown
    [report] = world.state.rglob("crash-*.txt")
    assert ", in broken" in report.read_text()


EARLY: Final = """
import asyncio
from tui.ui.panes.row import PaneRow

fill = PaneRow.fill

async def late(self):
    self.app.exit(None, 7)
    while not self.app._exit:
        await asyncio.sleep(0)
    await fill(self)

PaneRow.fill = late
"""


def test_leaving_before_all_is_on_the_screen_is_no_fault(world: World, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(EARLY)
    with Terminal(DECK, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}) as terminal:
        assert terminal.wait_for_exit() == 7
        assert "error" not in terminal.screen
    assert not [*world.state.rglob("crash-*.txt")]


RUNNING: Final = """
import atexit, sys, threading
from tui import __main__ as command, cli

threading.Thread(target=threading.Event().wait).start()
atexit.register(print, "handled")
cli.main = lambda: sys.exit({code})
command.run()
"""


@pytest.mark.parametrize(("code", "expected"), [("3", 3), ("", 0)])
def test_the_process_ends_after_its_handlers_whatever_a_thread_does(
    code: str, expected: int
) -> None:
    """One in C code would crash while the interpreter is taken apart."""
    command = [sys.executable, "-c", RUNNING.format(code=code)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (expected, "handled\n", "")
