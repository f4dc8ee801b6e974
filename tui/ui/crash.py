"""Crash reports: where the app failed, never the values of variables."""

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
"""Characters of a report; a longer one is cut in the middle."""

MAX_REPORTS: Final = 20
"""Reports kept; the oldest are deleted."""

MAX_ERRORS: Final = 20
"""Errors in one report: the fatal one, its causes and the members of its groups."""


def describe(error: BaseException) -> str:
    """Return a report on an error: versions, stack and type.

    It contains neither local variables nor the error's message: both may quote keys and
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
    """Yield the frames and types of an error, its causes and the members of its groups."""
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
        error: The error.
        directory: Where reports go; created if missing.

    Returns:
        The file, or None if it could not be written.
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
    with contextlib.suppress(OSError):
        for oldest in sorted(directory.glob("crash-*.txt"))[:-MAX_REPORTS]:
            oldest.unlink()
    return path


def summarize(error: BaseException, report: Path | None) -> str:
    """Return the line for the terminal: the type of the error, not its message."""
    kind = type(error).__name__
    where = f"A report is in\n{report}" if report else "No report could be written."
    return sanitize(f"gemdeck stopped because of an internal error ({kind}). {where}")
