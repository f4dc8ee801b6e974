"""A stop of the process, as by ``kill -STOP``, and what else may keep it from ending."""

import signal
import sys
import termios
from pathlib import Path

import psutil
import pytest

from tests.pty.test_app import EXIT_SECONDS, assert_gone, assert_restored
from tests.support.terminal import Terminal, processes_of

STOPS = 4
ALT_SCREEN = b"\x1b[?1049h"
READ_CALLS = ("0", "63")
"""The system call on x86-64 and on others."""

DECK = [sys.executable, "-P", "-m", "tui", "--demo"]


def stop(terminal: Terminal, number: signal.Signals) -> None:
    """Stop the program alone, and wait until it stands."""
    terminal.send_signal(number)
    terminal.wait_for(lambda _: psutil.Process(terminal.pid).status() == psutil.STATUS_STOPPED)


def wait_for_screen(terminal: Terminal, seen: int) -> None:
    """Wait until all is drawn on a new screen, after so much output."""

    def is_drawn(_: str) -> bool:
        written = terminal.raw[seen:]
        return ALT_SCREEN in written and b"Servers" in written.rpartition(ALT_SCREEN)[2]

    terminal.wait_for(is_drawn)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP])
def test_after_every_stop_the_screen_is_drawn_keys_count_and_quitting_ends_it(
    number: signal.Signals, tmp_path: Path
) -> None:
    with Terminal(DECK, cwd=tmp_path) as terminal:
        terminal.wait_for("1 ready")
        servers = terminal.descendants()
        assert len(servers) == processes_of(1)
        raw_mode = terminal.attributes
        typed = ""
        for key in "abcdefgh"[:STOPS]:
            stop(terminal, number)
            terminal.attributes = terminal.attributes_before  # as a shell does
            seen = len(terminal.raw)
            terminal.send_signal(signal.SIGCONT)
            wait_for_screen(terminal, seen)
            typed += key
            terminal.type(key)
            terminal.wait_for(f"> {typed}")
            assert terminal.attributes == raw_mode
        terminal.press("ctrl+q")
        assert terminal.wait_for_exit(EXIT_SECONDS) == 0
        assert_gone(servers)
        assert_restored(terminal)
        assert "Traceback" not in terminal.screen


def test_a_process_that_was_not_stopped_may_be_told_to_go_on(tmp_path: Path) -> None:
    with Terminal(DECK, cwd=tmp_path) as terminal:
        terminal.wait_for("1 ready")
        for key in "abc":
            seen = len(terminal.raw)
            terminal.send_signal(signal.SIGCONT)
            wait_for_screen(terminal, seen)
            terminal.type(key)
        terminal.wait_for("> abc")
        terminal.press("ctrl+q")
        assert terminal.wait_for_exit(EXIT_SECONDS) == 0
        assert_restored(terminal)


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
    """Return whether a thread is in a read of standard input."""
    return (task / "syscall").read_text().split()[:2] in ([number, "0x0"] for number in READ_CALLS)
