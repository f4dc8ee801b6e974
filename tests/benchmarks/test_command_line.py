"""How long commands take beside gemini-cli's, with the same server; it runs where that is."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.support.measures import Measure

LEAN: Final = str(Path(__file__).with_name("lean_server.py"))
ROOT: Final = Path(__file__).resolve().parents[2]
RUNS: Final = 5
GEMINI: Final = shutil.which("gemini")
COMMANDS: Final = (("--version",), ("mcp", "list"))

pytestmark = pytest.mark.skipif(GEMINI is None, reason="gemini-cli is not installed")


@pytest.fixture
def seconds(tmp_path: Path) -> Callable[[Sequence[str]], float]:
    """Run a program in a home with one server, and give the seconds it takes."""
    for name in ("home/.gemini", "home/shop", "state"):
        (tmp_path / name).mkdir(parents=True)
    entry = {"command": sys.executable, "args": ["-S", LEAN]}
    settings = {
        "mcpServers": {"one": entry},
        "security": {"folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
    }
    (tmp_path / "home/.gemini/settings.json").write_text(json.dumps(settings))
    env = {
        **os.environ,
        **{"HOME": str(tmp_path / "home"), "GEMDECK_HOME": str(tmp_path / "state")},
        **{"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")},
        "PYTHONPATH": str(ROOT),
    }

    def run(command: Sequence[str]) -> float:
        began = time.perf_counter()
        done = subprocess.run(
            command,
            cwd=tmp_path / "home" / "shop",
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return time.perf_counter() - began

    return run


@pytest.mark.timeout(300)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_takes_less_time_than_that_of_gemini_cli(
    seconds: Callable[[Sequence[str]], float], measure: Measure, words: tuple[str, ...]
) -> None:
    ours, theirs = list[float](), list[float]()
    seconds([sys.executable, "-m", "tui", *words])  # compiles the modules
    for _ in range(RUNS):
        ours.append(seconds([sys.executable, "-m", "tui", *words]))
        theirs.append(seconds([str(GEMINI), *words]))
    ratio = statistics.median(ours) / statistics.median(theirs)
    measure(f"gemdeck {' '.join(words)}: {ratio:.2f} times gemini-cli's time")
    assert ratio < 1
