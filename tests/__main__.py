"""``python3 -m tests``: prepares what the tests need, then runs them all.

Arguments go to pytest, and then it is one run of what they select. Without any, the benchmarks
run first and alone, so that nothing disturbs what they measure, and then everything else on a few
workers. Both print what they measured. What fails runs a second time by itself: on a machine that
others use as well, a wait may run out beside other tests. Both results stay in sight.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support import node

ROOT: Final = Path(__file__).resolve().parent.parent

BENCHMARKS: Final = "tests/benchmarks"

WORKERS: Final = ("-n", "3", "--dist", "worksteal")
"""Three workers keep two cores busy, as many a test waits for a process.

Tests share nothing, so any may run on each.
"""


def main(arguments: list[str]) -> int:
    """Run the tests; give pytest's exit code, that of the first run that failed."""
    os.chdir(ROOT)
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    print("Preparing the reference servers…", flush=True)
    try:
        node.install()
    except node.NodeSetupError as error:
        print(error, file=sys.stderr)
        return int(pytest.ExitCode.USAGE_ERROR)
    if arguments:
        return run(arguments)
    measured = run([BENCHMARKS])
    tested = run([*WORKERS, f"--ignore={BENCHMARKS}"])
    return measured or tested


def run(arguments: list[str]) -> int:
    """Run pytest, and again what failed; give the exit code of the last run.

    Each has a process of its own, as pytest was never meant to run twice in one.
    """
    command = [sys.executable, "-m", "pytest", *arguments]
    code = subprocess.call(command)
    if code == pytest.ExitCode.TESTS_FAILED:
        print("\nRunning again, alone, what failed…", flush=True)
        code = subprocess.call(
            [*command, "-n", "0", "--last-failed", "--last-failed-no-failures=none"]
        )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
