"""What a command leaves: its exit code, and text on standard output, in columns where it is data.

Standard output is looked at before anything runs, and written at the end.
"""

import fcntl
import os
import select
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from typing import Any, Final, TextIO

import click

PATIENCE: Final = 0.5
"""Seconds before a message on standard error says what the command is waiting for."""

GAP: Final = "  "
"""Between columns."""

BAR: Final = "  | "
"""Before each row of a text that is not ours."""


class ExitCode(IntEnum):
    """The result of a run, as of gemini-cli; the manual's table is made of what stands here."""

    OK = 0
    """Success."""
    ERROR = 1
    """The turn or the command failed, or a server did not become ready."""
    USAGE = 2
    """Invalid usage."""
    NOT_FOUND = 3
    """No such server, tool, prompt, resource, grant or session."""
    NO_KEY = 41
    """No key for the model."""
    NO_INPUT = 42
    """No prompt, or no terminal for the screen."""
    SANDBOX = 44
    """The settings or GEMINI_SANDBOX require a sandbox."""
    BAD_SETTINGS = 52
    """Settings that are invalid, or that forbid the request."""
    TURN_LIMIT = 53
    """Too many tool calls or model requests in the turn, or the cost limit is reached."""
    UNTRUSTED = 55
    """GEMINI_RESTRICTED_MODE or GEMINI_CLI_TRUST_WORKSPACE makes every folder untrusted."""
    CANCELLED = 130
    """Cancelled."""


FULL: Final = (1, 7)
"""The device numbers of ``/dev/full``."""


def output_problem() -> str:
    """Return why nothing could be written to standard output, or an empty string."""
    if sys.stdout is None or sys.stdout.closed:
        return "standard output is closed"
    try:
        descriptor = sys.stdout.fileno()
        status = os.fstat(descriptor)
    except (OSError, ValueError):  # a stream without a descriptor, as in tests
        return ""
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        return "standard output is read-only"
    if stat.S_ISREG(status.st_mode):
        disk = os.fstatvfs(descriptor)
        if disk.f_blocks > 0 and disk.f_bavail == 0:
            return "standard output is a file on a full disk"
    device = (os.major(status.st_rdev), os.minor(status.st_rdev))
    if stat.S_ISCHR(status.st_mode) and device == FULL:
        return "standard output cannot be written: no space left on the device"
    if stat.S_ISFIFO(status.st_mode):
        poll = select.poll()
        poll.register(descriptor, 0)
        if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
            return "nothing reads standard output"
    return ""


def prepare_output() -> str:
    """Let characters be escaped that standard output cannot take; return a warning if so."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    with suppress(AttributeError):  # a stream of another kind
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # the suppression
    try:
        "…漢".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return f"standard output uses {encoding}; other characters are escaped"
    return ""


def write_out(text: str | bytes) -> bool:
    """Write a line, or bytes as they are, to standard output; return whether that was possible.

    If it was not, standard error says why, unless the reader has simply gone.
    """
    try:
        if isinstance(text, bytes):
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()
        else:
            print(text, flush=True)  # noqa: T201 - the command's own output
    except OSError as error:
        _drop(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            say(f"the answer could not be written: {error.strerror}")
        return False
    return True


def say(text: str) -> None:
    """Write a message to standard error, if that takes it."""
    _to_stderr(f"gemdeck: {text}")


def quote(text: str) -> None:
    """Write somebody else's text to standard error, behind bars: none of it looks like ours."""
    columns = _terminal_columns()
    for line in text.split("\n"):
        width = columns if line.isascii() else columns // 2  # some characters take two cells
        _to_stderr(click.wrap_text(line, width, BAR, BAR) or BAR)


def _terminal_columns() -> int:
    """Return the width of standard error; standard output may lead elsewhere."""
    with suppress(OSError, ValueError, AttributeError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    return sys.maxsize  # a file wraps nothing


def _to_stderr(text: str) -> None:
    if sys.stderr is None:
        return  # it would go to standard output
    try:
        with suppress(ValueError):  # it is closed
            print(text, file=sys.stderr, flush=True)  # noqa: T201 - a message
    except OSError:
        _drop(sys.stderr)


def _drop(stream: TextIO) -> None:
    """Drop what a stream does not take, which would fail once more when the process ends."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def table(rows: Sequence[Sequence[str]]) -> str:
    """Align columns; the last is as long as it is."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(GAP.join(map(str.ljust, row, widths)).rstrip() for row in rows)


def block(named: Mapping[str, str | Sequence[str]]) -> str:
    """Write what has a value as fields that stand below a heading."""
    given = {name: value for name, value in named.items() if value}
    lists = {name: [one] if isinstance(one, str) else [*one] for name, one in given.items()}
    return "\n".join(f"    {line}" for line in fields(lists).splitlines())


def fields(named: Mapping[str, Any]) -> str:
    """Write each name that has a value, and its further lines below one another."""
    shown = {
        name.replace("_", " "): value if isinstance(value, list) else str(value).splitlines()
        for name, value in named.items()
    }
    width = max(map(len, shown), default=0)
    return "\n".join(
        f"{'' if number else name:<{width}}{GAP}{line}"
        for name, lines in shown.items()
        for number, line in enumerate(lines)
    )
