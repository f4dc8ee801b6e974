"""A Python that starts warm: with the MCP SDK and google-genai imported already.

`python` gives an executable that takes a script or ``-m module`` like `sys.executable`. It hands
its arguments, environment, folder and standard streams to a zygote, which forks a process to run
them; importing the SDK alone would take each of the many servers of the tests a second. All code
of gemdeck and of the tests is still imported by the new process.

What a test sees as the process is the launcher: it ends as the program did, and takes the program
with it when it is killed. A test of signals, processes or start-up needs the real `sys.executable`.
"""

import atexit
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.support import leaks

_HERE = Path(__file__).parent


@cache
def python() -> str:
    """Give the path of the executable; the first call starts this run's zygote."""
    if sys.platform != "linux":
        return sys.executable
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    launcher = folder / "python"
    source = (_HERE / "launcher.py").read_text("utf-8")
    launcher.write_text(f"#!{sys.executable} -IS\n{source}", "utf-8")
    launcher.chmod(0o700)
    zygote = subprocess.Popen(
        [sys.executable, str(_HERE / "zygote.py"), str(launcher)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
        env={"LANG": "C.UTF-8", "HOME": str(folder)},
        start_new_session=True,
    )
    leaks.KEPT.add(zygote.pid)
    assert zygote.stdin is not None
    assert zygote.stdout is not None
    with zygote.stdout as ready:
        assert ready.readline() == b"ready\n"
    atexit.register(zygote.wait)
    atexit.register(zygote.stdin.close)
    return str(launcher)


def deck(*arguments: str) -> list[str]:
    """Give the command that runs gemdeck, whose own server starts without any warmth."""
    return [sys.executable, "-m", "tui", *arguments]
