"""A draft that was never sent outlives a kill, also one that was pasted and is folded."""

import json
import os
import signal
from pathlib import Path

from tests.support import warm
from tests.support.terminal import Terminal
from tui.ui.widgets.chat.composer import SHOWN

LONG = "a pasted line\n" * 400


def drafts() -> list[str]:
    files = Path(os.environ["GEMDECK_HOME"]).glob("sessions/*/*.draft")
    return [json.loads(file.read_bytes()) for file in files]


def test_a_draft_of_an_empty_conversation_comes_back_after_a_kill(tmp_path: Path) -> None:
    with Terminal(warm.deck("--demo"), cwd=tmp_path) as terminal:
        terminal.wait_for(" ready")
        terminal.type("half a thought ")
        terminal.send(f"\x1b[200~{LONG}\x1b[201~".encode())
        terminal.wait_for(SHOWN)
        terminal.wait_for(lambda _: f"half a thought {LONG}" in drafts())
        terminal.send_signal(signal.SIGKILL)
        terminal.wait_for_exit()
    with Terminal(warm.deck("--demo"), cwd=tmp_path) as terminal:
        terminal.wait_for(SHOWN)
        terminal.press("enter")
        terminal.wait_for("half a thought a pasted line")
        terminal.wait_for(lambda _: not drafts())


def test_a_private_run_keeps_no_draft_and_takes_none(tmp_path: Path) -> None:
    with Terminal(warm.deck("--demo"), cwd=tmp_path) as terminal:
        terminal.wait_for(" ready")
        terminal.type("half a thought")
        terminal.wait_for(lambda _: drafts() == ["half a thought"])
        terminal.press("ctrl+q")
        terminal.wait_for_exit()
    with Terminal(warm.deck("--demo", "--private"), cwd=tmp_path) as terminal:
        terminal.wait_for(" ready")
        terminal.type("a secret thought")
        terminal.press("ctrl+q")
        terminal.wait_for_exit()
        assert "half a thought" not in terminal.screen
    assert drafts() == ["half a thought"]
