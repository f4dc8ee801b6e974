"""gemdeck's own files: private, replaced atomically, locked, and read with limits."""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path
from typing import BinaryIO, Final

from tui.engine.files.paths import shown_path, usable_state_dir

TEMPORARY_PREFIX: Final = ".gemdeck-"
"""Prefix of temporary files, which are created beside the files they replace."""

TEMPORARY_SUFFIX: Final = ".tmp"
"""Suffix of temporary files."""

STALE_AFTER: Final = 3_600.0
"""Age in seconds at which a temporary file counts as left by a killed process."""

LOCK_WAIT: Final = 10.0
"""Seconds that `locked` waits for another process."""

LOCK_POLL: Final = 0.02
"""Seconds between attempts to take a lock."""

_IN_USE: Final = "in-use"
"""What is locked in a temporary folder while its process lives."""


class UnfitFileError(OSError):
    """A path is not a regular file, or the file is too large; `strerror` says which."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EINVAL, why)


class ExposedFileError(OSError):
    """A file belongs to another user, or others could have written it.

    Attributes:
        advice: What makes it usable.
    """

    def __init__(self, why: str, advice: str) -> None:
        super().__init__(errno.EPERM, why)
        self.advice = advice


def read_regular(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes.

    A pipe or device does not block and is not read.

    Raises:
        UnfitFileError: If it is not a regular file or is larger.
        OSError: If it cannot be opened or read.
    """
    with _open_regular(path) as file:
        return _read(file, limit)


@contextlib.contextmanager
def _open_regular(path: Path, further: int = 0) -> Iterator[BinaryIO]:
    """Open a regular file for reading, with further flags."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | further)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnfitFileError("not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def _read(file: BinaryIO, limit: int) -> bytes:
    data = file.read(limit + 1)
    if len(data) > limit:
        raise UnfitFileError(f"larger than {limit // 1024} KiB")
    return data


def read_text(path: Path, limit: int, *, alone: bool = False) -> str | None:
    """Read a regular file of at most `limit` bytes as UTF-8; None where there is none.

    With `alone`, it is refused as in `read_own`.

    Raises:
        OSError: If it cannot be read, or is no such text; `strerror` says why.
    """
    try:
        data = read_own(path, limit, alone=True) if alone else read_regular(path, limit)
        return data.decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise UnfitFileError("not UTF-8 text") from error
    except ValueError as error:
        raise UnfitFileError("not a valid file path") from error


def write_private(path: Path, data: bytes) -> None:
    """Replace a file atomically; only the user can read it (0600).

    A reader sees the old bytes or the new ones, never a mix, even after a crash. If `path` is a
    symbolic link, its target is replaced. The folder must exist.

    Raises:
        OSError: If it cannot be written; the old file stays untouched.
    """
    target = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(
        prefix=TEMPORARY_PREFIX, suffix=TEMPORARY_SUFFIX, dir=target.parent
    )
    temporary = Path(name)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123  (no path)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(target)
    except BaseException:  # leave no temporary file, whatever happens
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def read_own(path: Path, limit: int, *, alone: bool) -> bytes:
    """Read a state file of the user, at most `limit` bytes.

    If others have permissions on it, it is made private again, or refused if `alone` is set.

    Args:
        path: The file; a symbolic link is followed.
        limit: Largest size in bytes.
        alone: Whether to refuse a file that others could have written or replaced: no
            permissions for group or others, one name, no link out of its folder, and a folder
            that only the user can write to.

    Raises:
        UnfitFileError: If it is not a regular file or is larger.
        ExposedFileError: If it belongs to another user, or is refused.
        OSError: If it cannot be opened or read.
    """
    target = Path(os.path.realpath(path))
    if alone:
        _check_place(path, target)
    with _open_regular(target, os.O_NOFOLLOW) as file:
        data = _read(file, limit)
        _check_owner(file.fileno(), alone=alone)
    return data


@contextlib.contextmanager
def open_own(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file of the user for reading; no link is followed.

    Raises:
        UnfitFileError: If it is not a regular file.
        ExposedFileError: If it belongs to another user.
        OSError: If it cannot be opened.
    """
    with _open_regular(path, os.O_NOFOLLOW) as file:
        _check_owner(file.fileno(), alone=False)
        yield file


def _check_place(path: Path, target: Path) -> None:
    """Refuse a file in another folder, or where others can replace it or its folder."""
    folder = Path(os.path.realpath(path.parent))
    if target.parent != folder:
        raise ExposedFileError("it links into another folder", "Replace it with a file.")
    status, above = folder.stat(), folder.parent.stat().st_mode
    # Anybody could put another in its place there; a group is the user's own with umask 002.
    is_above = above & stat.S_IWOTH and not above & stat.S_ISVTX
    if status.st_uid not in {os.geteuid(), 0} or status.st_mode & 0o022 or is_above:
        it = shown_path(folder.parent if is_above else folder, Path.home())
        raise ExposedFileError("others can write to its folder", f"Make {it} yours (chmod go-w).")


def _check_owner(descriptor: int, *, alone: bool) -> None:
    """Refuse another user's file; remove others' permissions, or refuse a file with any."""
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid():
        raise ExposedFileError("it belongs to another user", "Take ownership of it, or remove it.")
    if alone and status.st_nlink != 1:
        raise ExposedFileError("it has a second hard link", "Remove the other link.")
    if status.st_mode & 0o077:
        if alone:
            granted = f"others have access to it ({status.st_mode & 0o777:o})"
            raise ExposedFileError(granted, "Restrict it to yourself (chmod 600), or remove it.")
        with contextlib.suppress(OSError):  # a read-only file system
            os.fchmod(descriptor, 0o600)


def remove_stale(folder: Path, now: float) -> int:
    """Remove temporary files and folders left by killed processes; return how many.

    Args:
        folder: The state folder.
        now: Seconds since the epoch; what is younger than `STALE_AFTER` is kept.
    """
    removed = 0
    with contextlib.suppress(OSError):
        for path in folder.glob(f"{TEMPORARY_PREFIX}*{TEMPORARY_SUFFIX}"):
            with contextlib.suppress(OSError):
                if now - path.lstat().st_mtime > STALE_AFTER:
                    if path.is_dir() and not path.is_symlink():
                        with locked(path / _IN_USE, wait=0):
                            shutil.rmtree(path)
                    else:
                        path.unlink()
                    removed += 1
    return removed


@contextlib.contextmanager
def temporary_folder(place: Path | None = None) -> Iterator[Path]:
    """Make a folder that goes at the end or, if the process is killed, as `remove_stale` says.

    Args:
        place: Where it lies; by default in the state folder.
    """
    place = place or usable_state_dir()
    folder = Path(tempfile.mkdtemp(TEMPORARY_SUFFIX, TEMPORARY_PREFIX, place))
    with locked(folder / _IN_USE):
        yield folder
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def locked(path: Path, wait: float = LOCK_WAIT) -> Iterator[None]:
    """Hold the lock of a file while it is read, changed and written.

    The lock is on ``NAME.lock`` beside the file, since the file itself is replaced. Blocks
    the thread for at most `wait` seconds.

    Raises:
        TimeoutError: If another process holds the lock for longer.
    """
    sidecar = path.with_name(f"{path.name}.lock")
    descriptor = os.open(sidecar, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        deadline = time.monotonic() + wait
        while not _is_taken(descriptor):
            if time.monotonic() >= deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock", str(sidecar))
            time.sleep(LOCK_POLL)
        yield
    finally:
        os.close(descriptor)


def _is_taken(descriptor: int) -> bool:
    """Take the lock; return whether it was free."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def set_aside(path: Path) -> Path | None:
    """Rename a corrupt file to ``NAME.corrupt-TIME`` (UTC), keeping its bytes.

    Returns:
        Its new name; None if another process was faster.

    Raises:
        OSError: If it cannot be renamed.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = free_path(path.parent, f"{path.name}.corrupt-{stamp}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return None
    return aside


def free_path(folder: Path, name: str, ending: str = "") -> Path:
    """Return a path of this name in a folder, or with a number behind it, where nothing is yet."""
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(path for one in names if not os.path.lexists(path := folder / f"{one}{ending}"))


def _sync_folder(folder: Path) -> None:
    """Make a rename durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
