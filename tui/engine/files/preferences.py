"""What the screen remembers between runs: the theme, and the messages the user sent.

Losing it is no harm: where a file cannot be read or written, the run goes on without it.
"""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tui.engine.files import (
    ExposedFileError,
    UnfitFileError,
    locked,
    read_own,
    write_private,
)
from tui.engine.line_file import LineFile
from tui.engine.state_file import Content, StateFile
from tui.text import sanitize

MESSAGES: Final = "messages.jsonl"

MAX_MESSAGES: Final = 500
"""Messages kept; the file is cut back to them when a run begins."""

MAX_MESSAGES_FILE: Final = 8 * 1024 * 1024
"""Largest file of messages that is read, in bytes; a larger one begins anew."""

LOCK_WAIT: Final = 0.2
"""Seconds to wait for another gemdeck that writes the same file; the screen waits with it."""

_log: Final = logging.getLogger(__name__)


def load_theme(folder: Path) -> str:
    """Give the name of the theme chosen last, or nothing."""
    theme = (_theme_file(folder).load() or {}).get("theme")
    return theme if isinstance(theme, str) else ""


def save_theme(folder: Path, theme: str) -> None:
    """Keep the name of the chosen theme."""

    def change(content: Content) -> Content:
        return {**content, "theme": theme}

    _theme_file(folder).update(change)


def _theme_file(folder: Path) -> StateFile:
    path = folder / "ui.json"
    return StateFile(path, version=1, on_problem=_log.warning, lock_wait=LOCK_WAIT)


def load_messages(folder: Path) -> Sequence[str]:
    """Give the messages of earlier runs, oldest first; lines that cannot be read are passed over.

    The file holds a JSON string a line.
    """
    path = folder / MESSAGES
    try:
        lines = _lines(path)
        if len(lines) > 2 * MAX_MESSAGES:
            _cut_back(path)
    except FileNotFoundError:
        return ()
    except UnfitFileError:
        _set_aside(path)
        return ()
    except (OSError, ExposedFileError) as error:
        _log.warning("earlier messages could not be read: %s", error)
        return ()
    messages = (_message(line) for line in lines[-MAX_MESSAGES:])
    return tuple(message for message in messages if message)


def _set_aside(path: Path) -> None:
    try:
        path.rename(path.with_suffix(".jsonl.old"))
    except OSError as error:
        _log.warning("earlier messages could not be set aside: %s", error)


def append_message(folder: Path, text: str) -> None:
    """Keep one more message."""
    path = folder / MESSAGES
    file = LineFile(path, MAX_MESSAGES_FILE, 1)
    try:
        with locked(path, LOCK_WAIT):
            file.append(json.dumps(text).encode())
    except OSError as error:
        _log.warning("the message could not be kept: %s", error)


def _lines(path: Path) -> list[bytes]:
    return read_own(path, MAX_MESSAGES_FILE, alone=False).splitlines()


def _cut_back(path: Path) -> None:
    """Keep the newest messages, if the folder lets us."""
    try:
        with locked(path, LOCK_WAIT):
            write_private(path, b"\n".join(_lines(path)[-MAX_MESSAGES:]) + b"\n")
    except OSError as error:
        _log.warning("old messages could not be cut off: %s", error)


def _message(line: bytes) -> str:
    try:
        value = json.loads(line)
    except ValueError:
        return ""
    return sanitize(value) if isinstance(value, str) else ""
