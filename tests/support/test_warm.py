"""A program that starts warm cannot tell, and neither can who started it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from tests.support import warm
from tests.support.waiting import PATIENCE

TELLING: Final = """
import json, os, sys
seen = [__name__, sys.argv[1:], os.getcwd(), dict(os.environ), sys.stdin.read()]
print(json.dumps(seen))
print("it failed", file=sys.stderr)
sys.exit(7)
"""

WAITING: Final = """
import os, time
print(os.getpid(), flush=True)
time.sleep(60)
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write two programs to the working folder."""
    (tmp_path / "telling.py").write_text(TELLING)
    (tmp_path / "waiting.py").write_text(WAITING)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("words", [["telling.py"], ["-m", "telling"], ["-P", "telling.py"]])
def test_a_program_runs_as_from_the_real_python(words: list[str]) -> None:
    env = {"HOME": os.environ["HOME"], "NAME": "a=b\nc", "LANG": "C.UTF-8"}
    given: dict[str, Any] = {"input": "in\n", "text": True, "env": env}
    cold, started_warm = (
        subprocess.run([python, *words, "a b", "", "-x"], capture_output=True, check=False, **given)
        for python in (sys.executable, warm.python())
    )
    assert json.loads(cold.stdout)[1] == ["a b", "", "-x"]
    assert (started_warm.returncode, started_warm.stdout) == (7, cold.stdout)
    assert started_warm.stderr == "it failed\n"


@pytest.mark.usefixtures("programs")
def test_a_program_and_its_launcher_end_with_each_other() -> None:
    command = [warm.python(), "waiting.py"]
    for number in (signal.SIGTERM, signal.SIGKILL):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as launcher:
            assert launcher.stdout is not None
            program = psutil.Process(int(launcher.stdout.readline()))
            first = launcher if number is signal.SIGTERM else program
            first.send_signal(number)
            assert launcher.wait() == -number
            program.wait(PATIENCE)
