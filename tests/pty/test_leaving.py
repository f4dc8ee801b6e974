"""Leaving the program while something is in the way."""

import json
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests import servers
from tests.conftest import World
from tests.support import warm
from tests.support.slow_keyring import SLOW_KEYRING
from tests.support.terminal import Terminal, processes_of

STUBBORN: Final = Path(servers.__file__).with_name("raw.py")


def write_settings(world: World, settings: Mapping[str, object]) -> None:
    folder = world.home / ".gemini"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(settings))


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_second_signal_leaves_no_stubborn_server(
    world: World, tmp_path: Path, second: signal.Signals
) -> None:
    entry = {"command": sys.executable, "args": [str(STUBBORN), "ignore_term", "ignore_eof"]}
    write_settings(world, {"mcpServers": {"stubborn": entry}})
    with Terminal(warm.deck("--demo"), cwd=tmp_path) as terminal:
        terminal.wait_for("2 ready")
        found = terminal.descendants()
        assert len(found) == processes_of(2)
        terminal.send_signal(signal.SIGTERM)
        while len([process for process in found if process.is_running()]) == len(found):
            time.sleep(0.01)  # until the servers are being closed, which takes this one seconds
        terminal.send_signal(second)
        assert terminal.wait_for_exit() == 128 + signal.SIGTERM
        left = psutil.wait_procs(found, timeout=1)[1]
        assert not left, [process.cmdline() for process in left]


def test_a_keyring_that_does_not_answer_does_not_keep_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "slow_keyring.py").write_text(SLOW_KEYRING)
    monkeypatch.delenv("GEMDECK_HOME")  # it would put a file in the keyring's place
    env = {"PYTHONPATH": str(tmp_path), "PYTHON_KEYRING_BACKEND": "slow_keyring.Slow"}
    with Terminal([sys.executable, "-m", "tui"], cwd=tmp_path, env=env) as terminal:
        terminal.wait_for(lambda _: (tmp_path / "asked").exists())
        terminal.press("ctrl+q")
        assert terminal.wait_for_exit(timeout=5) == 0


def test_a_state_folder_that_cannot_be_used_is_told_before_the_screen(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    env = {"GEMDECK_HOME": str(tmp_path / "file" / "x")}
    with Terminal([sys.executable, "-m", "tui"], cwd=tmp_path, env=env) as terminal:
        assert terminal.wait_for_exit() == 1
        assert "GEMDECK_HOME" in terminal.screen
        assert "Traceback" not in terminal.screen
        assert b"\x1b[?1049h" not in terminal.raw
