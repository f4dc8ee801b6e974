"""What the screen remembers between runs: the theme, and the messages the user sent.

Losing it is no harm: where a file cannot be read or written, the run goes on without it.
"""

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tui.engine.files import UnfitFileError, locked, read_private_json, read_regular, write_private
from tui.text import sanitize

MAX_MESSAGES: Final = 500
"""Messages kept; the file is cut back to them when a run begins."""

MAX_MESSAGES_FILE: Final = 8 * 1024 * 1024
"""Largest file of messages that is read, in bytes; a larger one begins anew."""

LOCK_WAIT: Final = 0.2
"""Seconds to wait for another gemdeck that writes the same file; the screen waits with it."""

_log: Final = logging.getLogger(__name__)


def load_theme(folder: Path) -> str:
    """Give the name of the theme chosen last, or nothing."""
    try:
        value = read_private_json(folder / "ui.json")
    except OSError:
        return ""
    theme = value.get("theme") if isinstance(value, dict) else None
    return theme if isinstance(theme, str) else ""


def save_theme(folder: Path, theme: str) -> None:
    """Keep the name of the chosen theme."""
    try:
        write_private(folder / "ui.json", json.dumps({"version": 1, "theme": theme}).encode())
    except OSError as error:
        _log.warning("the theme could not be kept: %s", error)


def load_messages(folder: Path) -> Sequence[str]:
    """Give the messages of earlier runs, oldest first; lines that cannot be read are passed over.

    The file holds a JSON string a line.
    """
    path = folder / "messages.jsonl"
    try:
        with locked(path, LOCK_WAIT):
            lines = read_regular(path, MAX_MESSAGES_FILE).splitlines()
            if len(lines) > 2 * MAX_MESSAGES:
                lines = lines[-MAX_MESSAGES:]
                write_private(path, b"\n".join(lines) + b"\n")
    except FileNotFoundError:
        return ()
    except UnfitFileError:
        _set_aside(path)
        return ()
    except OSError as error:
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
    path = folder / "messages.jsonl"
    try:
        with locked(path, LOCK_WAIT), open(path, "ab", opener=_private) as file:
            file.write(json.dumps(text).encode() + b"\n")
    except OSError as error:
        _log.warning("the message could not be kept: %s", error)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _message(line: bytes) -> str:
    try:
        value = json.loads(line)
    except ValueError:
        return ""
    return sanitize(value) if isinstance(value, str) else ""
