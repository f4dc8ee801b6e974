"""Runs the client of the suite when it is its turn: ``python -m tests.conformance FOLDER URL``.

The suite starts the clients of all scenarios at once, and on few cores each would be so slow
that it runs out of time. Here they wait for each other, through locks in the folder, before
they load anything.
"""

import fcntl
import random
import runpy
import sys
from pathlib import Path
from typing import Final

SLOTS: Final = 2
"""Clients that run at the same time."""


def main() -> None:
    """Wait for a free slot and run the client."""
    folder = Path(sys.argv.pop(1))
    with (folder / f"slot{random.randrange(SLOTS)}").open("w") as slot:
        fcntl.flock(slot, fcntl.LOCK_EX)
        runpy.run_module("tests.conformance.client", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
