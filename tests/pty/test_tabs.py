"""Two conversations in tabs, from the first key to the last, in a terminal."""

import re
from pathlib import Path

from tests.pty.test_app import answer, wait_for_question
from tests.support import warm
from tests.support.terminal import Terminal


def strip(screen: str) -> str:
    """Give the upper border of the chat."""
    return screen.splitlines()[1]


def test_two_turns_at_once_ask_in_their_own_tabs(tmp_path: Path) -> None:
    with Terminal(warm.deck("--demo"), columns=80, rows=24, cwd=tmp_path) as terminal:
        terminal.wait_for("1 ready")
        terminal.send(b"add a note: milk\r\x14list my notes\r")
        shown = wait_for_question(terminal)
        assert "tab 2 list my notes" in shown
        assert "list_notes" in shown
        terminal.wait_for(lambda screen: "1 add a note: milk ◆" in strip(screen))
        answer(terminal, "o")
        terminal.wait_for(lambda screen: re.search(r"── .*tokens ──", screen) is not None)
        assert "tab 1 asks (F8)" in terminal.screen
        terminal.press("f8")
        shown = wait_for_question(terminal)
        assert "tab 1 add a note: milk" in shown
        assert "add_note" in shown
        answer(terminal, "o")
        terminal.wait_for(lambda screen: re.search(r"── .*tokens ──", screen) is not None)
        terminal.send(b"half a thought\x1b[1;5S")
        terminal.wait_for("There is a draft here.")
        terminal.send(b"\x1b[1;5S")
        terminal.wait_for(lambda screen: "Chat" in strip(screen))
        assert "list my notes" in terminal.screen
        terminal.press("up")
        terminal.wait_for("> half a thought")
        terminal.press("ctrl+q")
        assert terminal.wait_for_exit() == 0
