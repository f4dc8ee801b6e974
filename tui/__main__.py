"""``python -m tui`` is the ``gemdeck`` command."""

import atexit
import os
import sys
from typing import Final, NoReturn

from tui.stopping import hold

UNWRITTEN: Final = 120
"""Python's exit code where the rest of the output cannot be written."""


def run() -> NoReturn:
    """Run the command and end the process; the interpreter is not taken apart.

    While it were, a daemon thread that still runs C code, such as an import or a slow disk's, would
    crash.
    """
    hold()
    from tui.cli import main  # noqa: PLC0415 - signals are held before

    try:
        main()
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        code = end.code or 0
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = UNWRITTEN
    os._exit(code)


if __name__ == "__main__":
    run()
