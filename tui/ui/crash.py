"""What is written when the app fails: where it happened, never what the variables held."""

import os
import platform
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tui import __version__
from tui.text import clip_middle, sanitize

MAX_REPORT: Final = 64_000
"""Longest report, in characters; the middle of a longer one is left out."""


def describe(error: BaseException) -> str:
    """Give a report on an error: versions and stack, without local variables.

    The message of the error is part of it, made safe to print.
    """
    stack = "".join(traceback.format_exception(error))
    lines = (
        f"gemdeck {__version__}",
        f"Python {platform.python_version()} on {platform.system()}",
        datetime.now(UTC).isoformat(timespec="seconds"),
        "",
        sanitize(stack),
    )
    return clip_middle("\n".join(lines), MAX_REPORT // 4, MAX_REPORT * 3 // 4)


def write_report(error: BaseException, directory: Path) -> Path | None:
    """Write a report on an error to a new file that only the user can read.

    Args:
        error: What went wrong.
        directory: Where reports go; created where it is missing.

    Returns:
        The file, or None where it could not be written.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    path = directory / f"crash-{stamp}.txt"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(describe(error))
    except OSError:
        return None
    return path


def summarize(error: BaseException, report: Path | None) -> str:
    """Give the line for the terminal; it names the kind of error, not its message."""
    kind = type(error).__name__
    where = f"A report is in\n{report}" if report else "No report could be written."
    return sanitize(f"gemdeck stopped because of an internal error ({kind}). {where}")
