"""Files of gemdeck's own: private, replaced in one step, locked, and read with limits."""

import contextlib
import errno
import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

MAX_STATE_FILE: Final = 16 * 1024 * 1024
"""Largest state file that is read, in bytes."""

LOCK_WAIT: Final = 10.0
"""Seconds that `locked` waits for another process."""

LOCK_POLL: Final = 0.02
"""Seconds between two tries at a lock."""

_NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)
_CLOEXEC: Final[int] = getattr(os, "O_CLOEXEC", 0)
_DIRECTORY: Final[int] = getattr(os, "O_DIRECTORY", 0)


class UnfitFileError(Exception):
    """A path holds something that is not read: no regular file, or one that is too large."""


def read_regular(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes.

    A pipe or device neither blocks the call nor is read from.

    Raises:
        UnfitFileError: If it is not a regular file or is larger.
        OSError: If it cannot be opened or read.
    """
    descriptor = os.open(path, os.O_RDONLY | _NONBLOCK | _CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnfitFileError("not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise UnfitFileError(f"larger than {limit // 1024} KiB")
    return data


def write_private(path: Path, data: bytes) -> None:
    """Replace a file in one step; only the user can read it (0600).

    A reader sees the old bytes or the new ones, never a mixture, also after a crash. Where
    `path` is a symbolic link, its target is replaced. The folder must exist.

    Raises:
        OSError: If it cannot be written; the old file then stands untouched.
    """
    target = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    temporary = Path(name)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123  (no path)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def read_private_json(path: Path) -> object:
    """Read a JSON state file.

    A file that is not valid JSON is renamed to ``NAME.corrupt-TIME`` (UTC), so that its bytes
    are kept, and counts as absent. A file that others could read is made private again.

    Returns:
        The value, or None where there is no usable file.

    Raises:
        OSError: If a file is there and cannot be read.
    """
    try:
        data = read_regular(path, MAX_STATE_FILE)
        value = json.loads(data)
    except FileNotFoundError:
        return None
    except (UnfitFileError, ValueError, RecursionError):
        _set_aside(path)
        return None
    if sys.platform != "win32" and path.stat().st_mode & 0o077:
        path.chmod(0o600)
    return value


@contextlib.contextmanager
def locked(path: Path, wait: float = LOCK_WAIT) -> Iterator[None]:
    """Keep other processes out while a file is read, changed and written.

    The lock is on ``NAME.lock`` beside the file, since the file itself is replaced. Where the
    platform has no `fcntl`, there is no lock. Blocks the thread, `wait` seconds at most.

    Raises:
        TimeoutError: If another process holds the lock for longer.
    """
    if sys.platform == "win32":
        yield
        return
    sidecar = path.with_name(f"{path.name}.lock")
    descriptor = os.open(sidecar, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(descriptor, sidecar, wait)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, sidecar: Path, wait: float) -> None:
    """Take the lock, trying until the time is over."""
    if sys.platform == "win32":
        return
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise TimeoutError(
                    errno.ETIMEDOUT, "another process holds the lock", str(sidecar)
                ) from None
            time.sleep(LOCK_POLL)
        else:
            return


def _set_aside(path: Path) -> None:
    """Rename a corrupt file; another process may have done so already."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = path.with_name(f"{path.name}.corrupt-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.corrupt-{stamp}-{number}")
    with contextlib.suppress(FileNotFoundError):
        path.rename(aside)


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut, where the platform can."""
    if not _DIRECTORY:
        return
    descriptor = os.open(folder, os.O_RDONLY | _DIRECTORY | _CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
