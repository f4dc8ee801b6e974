"""What tests do at the terminal of a running gemdeck."""

import re
from pathlib import Path
from typing import Final

import psutil

from tests.support.terminal import Terminal

MODES: Final = (b"1049", b"1000", b"1003", b"1006", b"1004", b"2004")
"""Private modes that the app switches on and must switch off again."""

EXIT_SECONDS: Final = 20.0
"""Longest time for the app to end, and for a server to be gone after it: a busy machine takes some
of it, and what holds the app in these tests lasts longer."""


def write_editor(folder: Path, script: str) -> str:
    """Write a program that stands for the user's editor."""
    editor = folder / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o700)
    return str(editor)


def send(terminal: Terminal, text: str) -> None:
    terminal.type(text)
    terminal.wait_for(f"> {text}")
    terminal.press("enter")


def say(terminal: Terminal, text: str) -> None:
    """Send a message that does not come back."""
    send(terminal, text)
    terminal.wait_gone(f"> {text}")


def answer(terminal: Terminal, key: str) -> None:
    terminal.press(key)
    terminal.wait_gone("wants to run")


def wait_for_question(terminal: Terminal) -> str:
    """Wait until the modal stands and takes an answer, which its last line then says."""
    return terminal.wait_for(lambda screen: "wants to run" in screen and "about the tool" in screen)


def wait_for_end_of_turn(terminal: Terminal) -> str:
    return terminal.wait_for(lambda screen: re.search(r"── .*tokens ──", screen) is not None)


def progress_in(terminal: Terminal) -> list[str]:
    """Return what the terminal's tab has shown, one after the other."""
    return [one.decode() for one in re.findall(rb"\x1b\]9;4;([0-9;]+)", terminal.raw)]


def assert_restored(terminal: Terminal) -> None:
    raw = terminal.raw
    for mode in MODES:
        assert raw.rindex(b"\x1b[?%bl" % mode) > raw.rindex(b"\x1b[?%bh" % mode), mode
    assert raw.rindex(b"\x1b[?25h") > raw.rindex(b"\x1b[?25l")
    assert raw.count(b"\x1b[?2031h") == raw.count(b"\x1b[?2031l"), "the theme is asked no more"
    assert progress_in(terminal)[-1:] in ([], ["0;0"]), "its tab shows nothing any more"
    assert raw.count(b"\x1b[22;2t") == raw.count(b"\x1b[23;2t"), "the window has its title back"
    assert terminal.attributes == terminal.attributes_before
    assert "Traceback" not in terminal.screen


def assert_gone(servers: list[psutil.Process]) -> None:
    left = psutil.wait_procs(servers, timeout=EXIT_SECONDS)[1]
    assert not left, [process.cmdline() for process in left]


def leave(terminal: Terminal) -> None:
    """Quit, which leaves no server and the terminal as it was."""
    servers = terminal.descendants()
    terminal.press("ctrl+q")
    assert terminal.wait_for_exit(EXIT_SECONDS) == 0
    assert_gone(servers)
    assert_restored(terminal)
