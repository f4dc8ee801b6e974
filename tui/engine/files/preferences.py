"""Preferences kept between runs: the theme, the layout and the sent messages.

If a file cannot be read, the run continues without it; what cannot be written waits in memory.
"""

import contextlib
import json
import logging
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tui.engine.files.atomic import UnfitFileError, locked, read_own, write_private
from tui.engine.files.line_file import LineFile
from tui.engine.files.paths import SESSIONS, folder_key
from tui.engine.files.state_file import Content, StateFile
from tui.model.bounded_json import json_or_text

MESSAGES: Final = "messages.jsonl"

MAX_MESSAGES: Final = 500
"""Messages kept when the file is trimmed at startup."""

MAX_MESSAGES_FILE: Final = 8 * 1024 * 1024
"""Size at which the file of messages is begun anew, and longest line in it, in bytes."""

LOCK_WAIT: Final = 0.2
"""Seconds to wait for another gemdeck writing the same file; the screen waits too."""

_log: Final = logging.getLogger(__name__)


def load_look(folder: Path) -> Content:
    """Return what was chosen of the look, unchecked: the ``theme`` and the ``layout``."""
    return _look_file(folder).load() or {}


def save_look(folder: Path, chosen: Content, on_problem: Callable[[str], None]) -> None:
    """Save what was chosen, beside what else was."""
    _look_file(folder, on_problem).update(lambda content: {**content, **chosen})


def _look_file(folder: Path, on_problem: Callable[[str], None] = _log.warning) -> StateFile:
    return StateFile(folder / "ui.json", on_problem=on_problem, lock_wait=LOCK_WAIT)


def messages_place(state: Path, opened: Path) -> Path:
    """Return where the messages sent in an opened folder are kept, in the state folder."""
    place = state / SESSIONS / folder_key(opened)
    with contextlib.suppress(OSError):  # on a full disk it is made with the first message
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.parent.chmod(0o700)
    return place


def load_messages(folder: Path) -> Sequence[str]:
    """Return the messages of earlier runs as written, oldest first, but for unreadable lines.

    The file has one JSON string per line.
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


def append_message(
    folder: Path, text: str, on_problem: Callable[[str], None] = _log.warning
) -> None:
    """Append a message."""
    line = json.dumps(text).encode()
    if len(line) < MAX_MESSAGES_FILE:
        _messages_file(folder).keep(line, on_problem)


@cache
def _messages_file(folder: Path) -> LineFile:
    """Return the one object that holds the messages which cannot be written."""
    return LineFile(folder / MESSAGES, MAX_MESSAGES_FILE, 1, LOCK_WAIT)


def _lines(path: Path) -> list[bytes]:
    return read_own(path, 2 * MAX_MESSAGES_FILE, alone=False).splitlines()


def _cut_back(path: Path) -> None:
    """Trim the file to the newest messages, if the folder is writable."""
    try:
        with locked(path, LOCK_WAIT):
            write_private(path, b"\n".join(_lines(path)[-MAX_MESSAGES:]) + b"\n")
    except OSError as error:
        _log.warning("old messages could not be removed: %s", error)


def _message(line: bytes) -> str:
    value = json_or_text(line)
    # without half surrogate pairs, which no terminal takes; the composer drops what is unsafe
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
