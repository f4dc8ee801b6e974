"""The checks after each test can fail, our profiles count, and a failure stays one."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.__main__ import run
from tests.support.network import is_local

ROOT = Path(__file__).resolve().parents[2]

CONFTEST = """
from tests.conftest import *
from tests.support import leaks

leaks.PROCESS_GRACE = leaks.TASK_GRACE = 0.2
"""

PLANTED = """
import asyncio, os, pathlib, socket, subprocess, sys, time
import pytest

kept = []

def test_process():
    kept.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))

def test_orphan():
    subprocess.run(
        [sys.executable, "-c", "import subprocess; subprocess.Popen(['sleep', '60'])"], check=True
    )

async def test_task():
    kept.append(asyncio.create_task(asyncio.sleep(30)))

def test_descriptors():
    kept.extend(os.pipe() for _ in range(8))

def test_connection():
    with socket.socket() as sock, pytest.raises(OSError):
        sock.connect(("192.0.2.1", 80))

def test_name():
    with pytest.raises(OSError):
        socket.getaddrinfo("example.com", 443)

def test_secret():
    (pathlib.Path.home() / "notes.log").write_text("token=s3cr3t-fixture-1")

@pytest.mark.writes_secrets("*.token")
def test_secret_in_its_place():
    (pathlib.Path.home() / "x.token").write_text("s3cr3t-fixture-1")

def test_secret_where_tmp_path_is(tmp_path):
    (tmp_path / "x.json").write_text("s3cr3t-fixture-1")

async def test_stall(loop_watch):
    end = time.thread_time() + 0.12
    await asyncio.sleep(0)
    while time.thread_time() < end:
        pass
    await asyncio.sleep(0)
    loop_watch.assert_smooth()

async def test_clean(loop_watch):
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await process.wait()
    await asyncio.create_task(asyncio.sleep(0))
    assert "GEMINI_API_KEY" not in os.environ

def test_measure(measure):
    measure("planted ratio 1.23")

def test_signals():
    code = "import signal; print([signal.getsignal(s) for s in (signal.SIGINT, signal.SIGHUP)])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "SIG_IGN" not in done.stdout
"""


@pytest.mark.timeout(180)  # it runs pytest itself
@pytest.mark.writes_secrets("test_planted.py", "*.pyc")
def test_every_planted_leak_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "from-outside")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_planted.py").write_text(PLANTED)
    project = str(ROOT / "pyproject.toml")
    options = ["-c", project, f"--rootdir={tmp_path}", "-p", "no:cacheprovider"]
    ignoring = ["/bin/sh", "-c", 'trap "" INT HUP; exec "$@"', "sh"]  # as nohup does
    command = [*ignoring, sys.executable, "-m", "pytest", "-rA", *options, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    outcomes = re.findall(r"^(FAILED|ERROR|PASSED) \S+::test_(\w+)", done.stdout, re.MULTILINE)
    failed = {name for outcome, name in outcomes if outcome != "PASSED"}
    passed = {name for outcome, name in outcomes if outcome == "PASSED"}
    kinds = "process orphan task descriptors connection name secret secret_where_tmp_path_is stall"
    assert failed == set(kinds.split()), done.stdout
    assert passed - failed == {"clean", "measure", "secret_in_its_place", "signals"}
    assert "planted ratio 1.23" in done.stdout.split("= measured =")[1]
    assert "test_planted.py::test_stall" in done.stdout.split("= event loop held up =")[1]


def test_only_this_machine_is_local() -> None:
    assert all(map(is_local, ["127.0.0.1", "127.0.0.2", "::1", "localhost", "x.localhost", ""]))
    assert not any(map(is_local, ["8.8.8.8", "example.com", "2001:db8::1", "localhost.evil.test"]))


def test_our_profiles_are_known_and_one_of_them_counts() -> None:
    assert settings.get_profile("many").max_examples == 5_000
    assert settings.get_current_profile_name() in {"ci", "here", "many"}
    assert settings().deadline is None


BODIES = {
    "never": ("assert True", pytest.ExitCode.OK),
    "once": ("seen = path.exists(); path.touch(); assert seen", pytest.ExitCode.TESTS_FAILED),
    "always": ("assert False", pytest.ExitCode.TESTS_FAILED),
}
"""What a test does that fails so often, and how a run with it ends."""


@pytest.mark.parametrize("fails", BODIES)
def test_the_status_is_that_of_the_first_run(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    body, expected = BODIES[fails]
    text = f"import pathlib\npath = pathlib.Path('seen')\n\ndef test_it():\n    {body}\n"
    (tmp_path / "test_it.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p xdist")
    assert run(["test_it.py"]) == expected
    output = capfd.readouterr().out
    assert ("Running again" in output, "A flake" in output) == (fails != "never", fails == "once")
