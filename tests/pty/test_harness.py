"""The terminal harness itself, with a small Textual app and with small scripts."""

import sys

import psutil
import pytest

from tests.support import terminal as module
from tests.support.terminal import Terminal, escape_kinds
from tests.support.waiting import PATIENCE


def test_what_does_not_come_fails_with_the_screen_and_at_once_where_the_program_ended() -> None:
    with Terminal([sys.executable, "-c", "print('something else'); input()"]) as terminal:
        terminal.wait_for("something")
        with pytest.raises(AssertionError, match="something else"):
            terminal.wait_for("never", timeout=0.1)
        terminal.press("enter")
        with pytest.raises(AssertionError, match="before the program ended"):
            terminal.wait_for("never", timeout=60)


def test_what_writes_too_much_fails_at_once_and_says_so_unless_it_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_RAW_BYTES", 1_000)
    script = "while line := input(): print('word ' * 150 + line)"
    with Terminal([sys.executable, "-c", script]) as terminal:
        for number in range(3):
            terminal.type(f"{number}\r")
            terminal.wait_for(f"word {number}")
            terminal.forget()
        terminal.type("one\rmore\r")
        with pytest.raises(AssertionError, match="in 1000 bytes of output"):
            terminal.wait_for("never", timeout=60)


def test_a_program_that_does_not_end_is_killed_with_its_children() -> None:
    script = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print('forked', flush=True)\n"
        "time.sleep(60)\n"
    )
    with Terminal([sys.executable, "-c", script]) as terminal:
        terminal.wait_for("forked")
        children = terminal.descendants()
        with pytest.raises(AssertionError, match="still runs"):
            terminal.wait_for_exit(timeout=0.1)
    assert not psutil.wait_procs(children, timeout=PATIENCE)[1]


def test_harmful_sequences_are_told_apart() -> None:
    raw = (
        "\x1b[1;31mred\x1b[0m\x1b[10;20H\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x1b\\\x1b[?1049h"
        "\x1bPq\x1b\\\x9b2J\x07\x1b(B\n\r\t✓ ü"
    ).encode()
    assert escape_kinds(raw) == {
        *("CSI m", "CSI H", "OSC 52", "OSC 0", "CSI ?1049h", "ESC P string", "C1 9b", "C0 07"),
        "ESC (B",
    }
    assert escape_kinds(b"\x1b]0;never ends") == {"unterminated"}
