"""``python3 -m tests``: prepares what the tests need, then runs them all on a few workers.

Of the benchmarks only the quick ones are among them; ``python3 -m tests.benchmarks`` runs all,
alone. Further arguments go to pytest: with ``--cov`` it tells what the tests run of gemdeck, in the
processes that they start as well. What fails runs a second time by itself: if it passes then, it is
called a flake, and the run has failed all the same.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support import node

ROOT: Final = Path(__file__).resolve().parent.parent

DEFAULT: Final = ("-n", "4", "--dist", "worksteal", "-m", "quick or not benchmark")
"""Four workers keep two cores busy, as many a test waits for a process.

Tests share nothing, so any may run on each.
"""


def main(arguments: list[str], default: tuple[str, ...] = DEFAULT) -> int:
    """Run the tests; give pytest's exit code."""
    os.chdir(ROOT)
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    print("Preparing the reference servers…", flush=True)
    try:
        node.install()
    except node.NodeSetupError as error:
        print(error, file=sys.stderr)
        return int(pytest.ExitCode.USAGE_ERROR)
    return run([*default, *arguments])


def run(arguments: list[str]) -> int:
    """Run pytest, and again what failed; give the exit code of the first run.

    Each has a process of its own, as pytest was never meant to run twice in one.
    """
    command = [sys.executable, "-m", "pytest", *arguments]
    code = subprocess.call(command)
    if code == pytest.ExitCode.TESTS_FAILED:
        print("\nRunning again, alone, what failed…", flush=True)
        alone = ("-n", "0", "--last-failed", "--last-failed-no-failures=none")
        if subprocess.call([*command, *alone]) == pytest.ExitCode.OK:
            print("\nA flake: what failed passed alone. It counts as failed.", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
