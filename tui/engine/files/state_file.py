"""State files: versioned JSON that gemdeck writes and trusts only as far as it may.

There is one way to keep state across runs, and this is it. A file is read strictly, changed
under a lock after it was read again, and replaced in one step. What cannot be understood is set
aside with its bytes; what cannot be written holds for this run, and a later change tries again.
"""

import copy
import errno
import json
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from tui.engine.files import (
    ExposedFileError,
    UnfitFileError,
    locked,
    read_own,
    set_aside,
    write_private,
)
from tui.engine.strict_json import BadJsonError, parse_object
from tui.text import sanitize_line

MAX_STATE_FILE: Final = 16 * 1024 * 1024
"""Largest state file that is read or written, in bytes."""

MAX_WAITING: Final = 1_000
"""Changes that wait one by one for a file that cannot be written; more are folded into one."""

LOCK_WAIT: Final = 5.0
"""Seconds that a change waits for another gemdeck that writes the same file."""

_VERSION: Final = "version"

Content = dict[str, Any]
"""The content of a state file without its version."""

Stamp = tuple[int, ...]
"""Tells a state file from the one that another gemdeck put in its place."""

Change = Callable[[Content], Content]
"""Makes new content from what the file holds, `{}` where it holds nothing.

It is called under the file's lock, again on each attempt, so it does nothing but compute.
"""


class StateFileError(Exception):
    """A state file is there and cannot be used, or cannot be written; the text says why.

    Attributes:
        advice: What the user can do about it.
    """

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


class StateFile:
    """One state file: ``{"version": 1, …}``, readable by the user alone (0600).

    A file is not used when it is no regular file, exceeds `MAX_STATE_FILE`, is no JSON object,
    holds a key twice, NaN or half a surrogate pair, or has another version. Such a file is
    renamed to ``NAME.corrupt-TIME`` (UTC) and counts as absent. A file of another owner is left
    where it is and counts as absent. A file that others may read is made private again.

    Where `fails_closed` is set, a file that others could have written or replaced is refused as
    well: one with any permission for group or others, with a second name (hard link), behind a
    link that leaves its folder, or in a folder that others may write to. It is left untouched
    until the user has looked at it, and counts as absent; this is the rule of OpenSSH for its
    own files.

    All methods block on the file and may be called from any thread; none is for the event loop.

    Args:
        path: The file; its folder exists. None keeps everything in memory.
        version: The version this program reads and writes, from 1.
        fails_closed: Whether what the file says grants something, as trust does.
        on_problem: Takes a sentence for the user, sanitised, when the file was set aside or
            refused, or cannot be read or written. Is called in the thread that uses the file;
            the same problem is told once, until the file could be written again. It must not
            use this object.
        lock_wait: Seconds that a change waits for another gemdeck.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        version: int,
        fails_closed: bool = False,
        on_problem: Callable[[str], None],
        lock_wait: float = LOCK_WAIT,
    ) -> None:
        self._path = path
        self._version = version
        self._fails_closed = fails_closed
        self._on_problem = on_problem
        self._lock_wait = lock_wait
        self._memory: Content | None = None
        self._waiting: list[Change] = []
        self._told = ""
        self._is_kept = path is not None
        self._lock = threading.Lock()

    @property
    def is_kept(self) -> bool:
        """Whether changes reach the disk, as far as is known: the last one did."""
        return self._is_kept

    def stamp(self) -> Stamp:
        """Give what is another value once the file was replaced; nothing where there is none."""
        try:
            found = self._path.stat() if self._path is not None else None
        except OSError:
            return ()
        return (found.st_ino, found.st_mtime_ns, found.st_size) if found is not None else ()

    def load(self) -> Content | None:
        """Give the content, with what waits to be written; None where there is none."""
        with self._lock:
            try:
                content = self._read()
            except StateFileError as error:
                self._is_kept = False
                self._tell(f"{error} {error.advice}")
                content = None
            return self._applied(self._waiting, content) if self._waiting else content

    def update(self, change: Change) -> Content:
        """Change the content as it stands in the file now, and give the result.

        Where the file cannot be read or written, the change holds for this run and the user
        is told; the next update tries to write it again, on top of what the file holds then.
        """
        with self._lock:
            self._waiting.append(change)
            try:
                content = self._commit(self._waiting)
            except StateFileError as error:
                self._is_kept = False
                self._tell(f"{error} Changes hold for this run only. {error.advice}")
                return self._kept_waiting()
            except BaseException:
                self._waiting.pop()
                raise
            self._written()
            return content

    def read(self) -> Content | None:
        """Give the content of the file, for one who must know why there is none.

        Raises:
            StateFileError: If the file is there and was neither usable nor set aside.
        """
        with self._lock:
            return self._read()

    def save(self, change: Change) -> Content:
        """Change the content in the file or not at all, and give the result.

        Raises:
            StateFileError: If it cannot be written; nothing has changed then.
        """
        with self._lock:
            content = self._commit([*self._waiting, change])
            self._written()
            return content

    def _read(self) -> Content | None:
        """Read the file; set it aside if it makes no sense."""
        if self._path is None:
            return copy.deepcopy(self._memory)
        try:
            return self._parse(self._path)
        except BadJsonError:
            return self._read_again(self._path)
        except OSError as error:
            raise self._failure("cannot be read", error) from error

    def _read_again(self, path: Path) -> Content | None:
        """Look again under the lock, lest what another gemdeck just mended is set aside."""
        try:
            with locked(path, self._lock_wait):
                return self._read_locked(path)
        except OSError as error:
            raise self._failure("makes no sense and cannot be set aside", error) from error

    def _read_locked(self, path: Path) -> Content | None:
        """Read the file while its lock is held; set it aside if it makes no sense."""
        try:
            return self._parse(path)
        except BadJsonError as error:
            aside = set_aside(path)
            if aside is not None:
                self._tell(
                    f"{_name(path)} could not be used ({error}). It was set aside as "
                    f"{_name(aside)}, and what it said no longer counts."
                )
            return None

    def _parse(self, path: Path) -> Content | None:
        """Read the file as it stands.

        Raises:
            BadJsonError: If it makes no sense.
            StateFileError: If others could have written it.
            OSError: If it cannot be read.
        """
        try:
            content = parse_object(read_own(path, MAX_STATE_FILE, alone=self._fails_closed))
        except FileNotFoundError:
            return None
        except UnfitFileError as error:
            raise BadJsonError(str(error)) from error
        except ExposedFileError as error:
            advice = f"Look at what it says. {error.advice}"
            raise StateFileError(f"{_name(path)} is not used: {error}.", advice) from error
        version = content.pop(_VERSION, None)
        if isinstance(version, bool) or version != self._version:
            raise BadJsonError("it was written by another version of gemdeck")
        return content

    def _commit(self, changes: Iterable[Change]) -> Content:
        """Apply changes to what the file holds now, and replace it."""
        path = self._path
        if path is None:
            self._memory = self._applied(changes, self._read())
            return copy.deepcopy(self._memory)
        try:
            with locked(path, self._lock_wait):
                content = self._applied(changes, self._read_locked(path))
                write_private(path, self._encoded(content))
        except OSError as error:
            raise self._failure("cannot be written", error) from error
        return content

    def _encoded(self, content: Content) -> bytes:
        whole = {_VERSION: self._version, **content}
        data = json.dumps(whole, indent=1, allow_nan=False).encode("ascii")
        if len(data) > MAX_STATE_FILE:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return data

    def _applied(self, changes: Iterable[Change], content: Content | None) -> Content:
        result = content if content is not None else {}
        for change in changes:
            result = change(result)
        return result

    def _kept_waiting(self) -> Content:
        """Give the content as it would be if the file could be written."""
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
        self._is_kept = self._path is not None
        self._waiting.clear()
        self._told = ""

    def _failure(self, what: str, error: OSError) -> StateFileError:
        name = _name(self._path) if self._path is not None else ""
        reason = sanitize_line(error.strerror or type(error).__name__)
        return StateFileError(f"{name} {what}: {reason}.", _advice(error))

    def _tell(self, problem: str) -> None:
        """Tell of a problem, unless it is the one that was told last."""
        if problem != self._told:
            self._told = problem
            self._on_problem(problem)


def _advice(error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "Make room on the disk."
        case errno.ETIMEDOUT:
            return "Close the other gemdeck if it hangs."
        case errno.EFBIG:
            return "Remove what is no longer needed."
    return "Make it and its folder yours, readable and writable."


def _name(path: Path) -> str:
    return sanitize_line(path.name)
