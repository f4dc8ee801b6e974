"""What is written when the app fails: where it happened, never what the variables held."""

import contextlib
import os
import platform
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tui import __version__
from tui.text import clip_middle, sanitize

MAX_REPORT: Final = 64_000
"""Longest report, in characters; the middle of a longer one is left out."""

MAX_REPORTS: Final = 20
"""Reports kept; the oldest go first."""

MAX_ERRORS: Final = 20
"""Errors in one report: the one that ended the app, what caused it, what it groups."""


def describe(error: BaseException) -> str:
    """Give a report on an error: versions, stack and type.

    Neither local variables nor the message of the error are part of it: both may quote keys and
    conversations.
    """
    stack = "".join(_stacks(error))
    lines = (
        f"gemdeck {__version__}",
        f"Python {platform.python_version()} on {platform.system()}",
        datetime.now(UTC).isoformat(timespec="seconds"),
        "",
        sanitize(stack),
    )
    return clip_middle("\n".join(lines), MAX_REPORT // 4, MAX_REPORT * 3 // 4)


def _stacks(error: BaseException) -> Iterator[str]:
    """Give the frames and the types of an error, of what caused it and of what it groups."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < MAX_ERRORS:
        error = waiting.pop(0)
        if id(error) in seen:
            continue
        seen.add(id(error))
        if len(seen) > 1:
            yield "\nwith\n"
        yield "Traceback (most recent call last):\n"
        yield from traceback.format_tb(error.__traceback__)
        yield f"{type(error).__module__}.{type(error).__qualname__}\n"
        before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if before is not None:
            waiting.append(before)
        if isinstance(error, BaseExceptionGroup):
            waiting += error.exceptions


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
    _remove_old(directory)
    return path


def _remove_old(directory: Path) -> None:
    """Keep the newest reports; their names say when they were written."""
    with contextlib.suppress(OSError):
        for path in sorted(directory.glob("crash-*.txt"))[:-MAX_REPORTS]:
            path.unlink()


def summarize(error: BaseException, report: Path | None) -> str:
    """Give the line for the terminal; it names the kind of error, not its message."""
    kind = type(error).__name__
    where = f"A report is in\n{report}" if report else "No report could be written."
    return sanitize(f"gemdeck stopped because of an internal error ({kind}). {where}")
