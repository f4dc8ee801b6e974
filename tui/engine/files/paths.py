"""Where gemdeck keeps its own state. `GEMDECK_HOME` moves all of it."""

import contextlib
import errno
import os
import stat
import sys
from pathlib import Path

import platformdirs

APP_NAME = "gemdeck"


def state_dir() -> Path:
    """Give the folder of gemdeck's own state, made private (0700) if it does not exist.

    An existing one loses all permissions for others. One that the user chose by `GEMDECK_HOME`
    loses only the permission to write: it may hold other things.

    Raises:
        OSError: If there is no such place, or it cannot be made.
    """
    home = os.environ.get("GEMDECK_HOME")
    path = Path(home).absolute() if home else _usual_place()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    _close(path, 0o022 if home else 0o077)
    return path


def log_dir() -> Path:
    """Give the folder of log files and crash reports, inside the state folder.

    Raises:
        OSError: If it cannot be made.
    """
    path = state_dir() / "logs"
    path.mkdir(mode=0o700, exist_ok=True)
    _close(path, 0o077)
    return path


def _usual_place() -> Path:
    """Give the place that the platform has for the state of programs.

    A relative one, as an odd ``XDG_STATE_HOME`` makes it, is refused: it would lead into
    whatever folder gemdeck was started in.
    """
    path: Path | None = None
    with contextlib.suppress(RuntimeError):  # there is neither HOME nor an entry for the user
        path = platformdirs.user_state_path(APP_NAME, appauthor=False)
    if path is None or not path.is_absolute():
        raise OSError(errno.ENOENT, "there is no home folder", "~/.local/state")
    return path


def _close(folder: Path, unwanted: int) -> None:
    """Take permissions for others off a folder of the user's own, as far as the disk lets us."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):
        status = folder.stat()
        if status.st_uid == os.geteuid() and status.st_mode & unwanted:
            folder.chmod(stat.S_IMODE(status.st_mode) & ~unwanted)
