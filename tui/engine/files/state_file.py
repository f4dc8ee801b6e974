"""State files: versioned JSON, locked, replaced atomically and read strictly.

A change rereads the file under its lock and replaces it. A corrupt file is renamed and kept. A
change that cannot be written applies to this run, and is tried again until it can be.
"""

import copy
import errno
import json
import os
import re
import threading
from collections.abc import Callable, Iterable
from functools import reduce
from pathlib import Path
from typing import Any, Final

from tui.engine.files import atomic
from tui.engine.files.unwritten import make_folder, true_name, write_later
from tui.model.bounded_json import MAX_STRUCTURE, JsonError, read_object, structure
from tui.text import AdvisedError, sanitize_line

MAX_STATE_FILE: Final = 16 * 1024 * 1024
"""Largest state file, in bytes."""

MAX_WAITING: Final = 1_000
"""Changes queued for a file that cannot be written; beyond that they are merged into one."""

LOCK_WAIT: Final = 5.0
"""Seconds a change waits for another gemdeck writing the same file."""

UNTIL_WRITTEN: Final = "Until it can be, changes apply to this run only."

STATE_VERSION: Final = 1
"""The version of all files that gemdeck keeps; it grows when the form of one of them changes. No
file of another version is read."""

_VERSION: Final = "version"
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{32,128}")

Content = dict[str, Any]
"""The content of a state file without its version."""

Stamp = tuple[int, ...]
"""Identifies one version of a state file."""

Change = Callable[[Content], Content]
"""Computes the new content from the current one, `{}` if there is none.

It is called under the file's lock, once per attempt, so it must have no side effects.
"""


class StateFileError(AdvisedError):
    """A state file cannot be used or written."""


class StateFile:
    """One state file: ``{"version": 1, …}``, readable by the user alone (0600).

    A file is corrupt if it is not a regular file, exceeds `MAX_STATE_FILE`, is not a JSON object,
    has a duplicate key, NaN or a lone surrogate, or another version than ours. It is renamed to
    ``NAME.corrupt-TIME`` (UTC) and treated as absent. A file of another owner is left in place
    and treated as absent. A file that others can read is made private again.

    With `fails_closed`, a file that others could have written or replaced is refused too: one
    with any permission for group or others, with a second name (hard link), behind a link that
    leaves its folder, or in a folder that others can write to. It is left untouched for the user
    to inspect and treated as absent. OpenSSH has the same rule for its files.

    All methods block on the file and may be called from any thread; none is for the event loop.

    Args:
        path: The file, in an existing folder. None keeps everything in memory.
        fails_closed: Whether the content grants something, as trust does.
        on_problem: Receives a sanitized message for the user when the file was set aside or
            refused, or cannot be read or written. Called in the thread that uses the file;
            the same problem is reported once until a write succeeds. It must not use this
            object.
        lock_wait: Seconds a change waits for another gemdeck.

    Attributes:
        is_kept: Whether what was read or written last is in the file.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        fails_closed: bool = False,
        on_problem: Callable[[str], None],
        lock_wait: float = LOCK_WAIT,
    ) -> None:
        self._path, self._fails_closed, self._on_problem = path, fails_closed, on_problem
        self._lock_wait = lock_wait
        self._memory: Content | None = None
        self._waiting: list[Change] = []
        self._told = ""
        self.is_kept = path is not None
        self._lock = threading.Lock()

    def stamp(self) -> Stamp:
        """Return a value that changes when the file is replaced; empty if there is no file."""
        try:
            found = self._path.stat() if self._path is not None else None
        except OSError:
            return ()
        return (found.st_ino, found.st_mtime_ns, found.st_size) if found is not None else ()

    def load(self) -> Content | None:
        """Return the content, including unwritten changes; None if there is none."""
        with self._lock:
            try:
                content = self._read()
            except StateFileError as error:
                self.is_kept = False
                self._tell(f"{error} {error.advice}")
                content = None
            return self._applied(self._waiting, content) if self._waiting else content

    def update(self, change: Change) -> Content:
        """Change the current content of the file, and return the result.

        If the file cannot be read or written, the change applies to this run and the user is
        told; it is applied again to the file's content when that can be written.
        """
        with self._lock:
            self._waiting.append(change)
            try:
                content = self._commit(self._waiting)
            except StateFileError as error:
                self.is_kept = False
                cause = error.__cause__
                if not isinstance(cause, OSError) or write_later(self._retry, cause):
                    self._tell(f"{error} {UNTIL_WRITTEN} {error.advice}")
                return self._kept_waiting()
            except BaseException:
                self._waiting.pop()
                raise
            self._written()
            return content

    def _retry(self) -> bool:
        """Write the waiting changes; return whether none is left."""
        with self._lock:
            if self._waiting:
                try:
                    self._commit(self._waiting)
                except StateFileError:
                    return False
                self._written()
            return True

    def read(self) -> Content | None:
        """Return the content of the file, or raise why it cannot be used.

        Raises:
            StateFileError: If the file exists, is unusable and was not set aside.
        """
        with self._lock:
            return self._read()

    def save(self, change: Change) -> Content:
        """Change the content in the file or not at all, and return the result.

        Raises:
            StateFileError: If it cannot be written; nothing has changed.
        """
        with self._lock:
            content = self._commit([*self._waiting, change])
            self._written()
            return content

    def _read(self) -> Content | None:
        """Read the file; set it aside if it is corrupt."""
        if self._path is None:
            return copy.deepcopy(self._memory)
        try:
            return self._parse(self._path)
        except JsonError:
            pass  # another gemdeck may just have replaced it
        except OSError as error:
            raise self._failure("cannot be read", error) from error
        try:
            with atomic.locked(self._path, self._lock_wait):
                return self._read_locked(self._path)
        except OSError as error:
            raise self._failure("is corrupt and cannot be renamed", error) from error

    def _read_locked(self, path: Path) -> Content | None:
        """Read the file while its lock is held; set it aside if it is corrupt."""
        try:
            return self._parse(path)
        except JsonError as error:
            if (aside := atomic.set_aside(path)) is not None:
                was, now = _name(path), _name(aside)
                words = f"{was} could not be used ({error}). It was renamed to {now}"
                self._tell(f"{words}, and its content is ignored.")
            return None

    def _parse(self, path: Path) -> Content | None:
        """Read and parse the file.

        Raises:
            JsonError: If it is corrupt.
            StateFileError: If others could have written it.
            OSError: If it cannot be read.
        """
        try:
            content = _read_content(atomic.read_own(path, MAX_STATE_FILE, alone=self._fails_closed))
        except FileNotFoundError:
            return None
        except atomic.ExposedFileError as error:
            advice = f"Check its content. {error.advice}"
            raise StateFileError(f"{_name(path)} is not used: {error.strerror}.", advice) from None
        except atomic.UnfitFileError as error:
            raise JsonError(str(error.strerror)) from error
        version = content.pop(_VERSION, None)
        if isinstance(version, bool) or version != STATE_VERSION:
            raise JsonError("it was written by another version of gemdeck")
        return content

    def _commit(self, changes: Iterable[Change]) -> Content:
        """Apply changes to the file's current content, and replace the file."""
        path = self._path
        if path is None:
            self._memory = self._applied(changes, self._read())
            return copy.deepcopy(self._memory)
        try:
            make_folder(path)
            with atomic.locked(path, self._lock_wait):
                content = self._applied(changes, self._read_locked(path))
                atomic.write_private(path, self._encoded(path, content))
        except OSError as error:
            raise self._failure("cannot be written", error) from error
        return content

    def _encoded(self, path: Path, content: Content) -> bytes:
        whole = {_VERSION: STATE_VERSION, **content}
        data = json.dumps(whole, indent=1, allow_nan=False).encode("ascii")
        if len(data) > MAX_STATE_FILE:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        try:
            _read_content(data)  # what the next start cannot read would be set aside, and lost
        except JsonError as error:
            what = f"{_name(path)} cannot be written: its new content is invalid ({error})."
            raise StateFileError(what, "Please report this error.") from error
        return data

    def _applied(self, changes: Iterable[Change], content: Content | None) -> Content:
        return reduce(lambda made, change: change(made), changes, content or {})

    def _kept_waiting(self) -> Content:
        """Return the content with all unwritten changes."""
        try:
            content = self._read()
        except StateFileError:
            content = None
        content = self._applied(self._waiting, content)
        if len(self._waiting) > MAX_WAITING:
            whole = copy.deepcopy(content)
            self._waiting[:] = [lambda _: copy.deepcopy(whole)]
        return content

    def _written(self) -> None:
        self.is_kept = self._path is not None
        self._waiting.clear()
        self._told = ""

    def _failure(self, what: str, error: OSError) -> StateFileError:
        name = true_name(self._path) if self._path is not None else ""
        reason = sanitize_line(error.strerror or type(error).__name__)
        return StateFileError(f"{name} {what}: {reason}.", _advice(error))

    def _tell(self, problem: str) -> None:
        """Report a problem, unless it was the last one reported."""
        if problem != self._told:
            self._told = problem
            self._on_problem(problem)


def private_file(folder: Path | None, name: str, on_problem: Callable[[str], None]) -> StateFile:
    """Return a file that fails closed, in a state folder; None keeps it in memory."""
    path = folder / name if folder is not None else None
    return StateFile(path, fails_closed=True, on_problem=on_problem)


class ServerFiles:
    """A file for each server, called by its fingerprint; they fail closed.

    Args:
        folder: The folder of the files; it is made. None keeps nothing.
        on_problem: Takes a sentence for the user, in the thread that uses a file.
    """

    def __init__(self, folder: Path | None, on_problem: Callable[[str], None]) -> None:
        self._folder, self._on_problem = folder, on_problem
        self._files: dict[str, StateFile] = {}

    def of(self, fingerprint: str) -> StateFile | None:
        """Return the file of a server; None if it has no fingerprint, or nothing is kept."""
        if self._folder is None or not _FINGERPRINT.fullmatch(fingerprint):
            return None
        if fingerprint not in self._files:
            name = f"{fingerprint}.json"
            self._files[fingerprint] = private_file(self._folder, name, self._on_problem)
        return self._files[fingerprint]


def _read_content(data: bytes) -> Content:
    """Read a state file strictly, unless it has so many values that it would hold up the start."""
    if structure(data) > MAX_STRUCTURE:
        raise JsonError("it has too many values")
    return read_object(data)


def _advice(error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "Free some disk space."
        case errno.ETIMEDOUT:
            return "Close the other gemdeck if it hangs."
        case errno.EFBIG:
            return "Remove entries that are no longer needed."
    return "Make sure that you own the file and its folder and can write to them."


def _name(path: Path) -> str:
    """Name a file; one that is called by a fingerprint, which would be masked, by its beginning."""
    if _FINGERPRINT.fullmatch(path.stem):
        return sanitize_line(f"{path.parent.name}/{path.stem[:8]}….json")
    return sanitize_line(path.name)
