"""Where gemdeck keeps its own state. `GEMDECK_HOME` moves all of it."""

import contextlib
import errno
import os
import re
import stat
from pathlib import Path
from typing import Final

import platformdirs

from tui.engine.files.unwritten import UNWRITABLE
from tui.text import sanitize_line

APP_NAME = "gemdeck"

GEMINI_FOLDER: Final = ".gemini"
"""gemini-cli's folder, in a home and in a project."""


def extensions_folder(home: Path) -> Path:
    """Return the folder in which gemini-cli keeps a user's extensions."""
    return home / GEMINI_FOLDER / "extensions"


STATE_VARIABLE: Final = "GEMDECK_HOME"
"""The variable that moves gemdeck's own state."""


def state_dir() -> Path:
    """Return the state folder, created private (0700) if it does not exist.

    All permissions for others are removed from an existing folder. From one named by
    `GEMDECK_HOME` only write permissions are removed: it may have other contents. Where others
    could have written state files already, theirs stay, so that no such file grants anything.

    Raises:
        OSError: If there is no location for it, or it cannot be created.
    """
    home = os.environ.get(STATE_VARIABLE)
    path = Path(home) if home else _usual_place()
    if not path.is_absolute():  # it would be in the folder in which gemdeck was started
        raise OSError(errno.EINVAL, "it is not an absolute path", home)
    _make(path)
    unwanted = 0o022 if home else 0o077
    is_exposed = path.is_dir() and path.stat().st_mode & 0o022 and any(path.rglob("*.json"))
    _close(path, unwanted & ~0o022 if is_exposed else unwanted)
    return path


def usable_state_dir() -> Path | None:
    """Return the state folder, or None if there can be none."""
    with contextlib.suppress(OSError):
        return state_dir()
    return None


def cache_dir() -> Path:
    """Return the folder of what can be fetched again; it may not exist."""
    home = os.environ.get(STATE_VARIABLE)
    return Path(home) / "cache" if home else platformdirs.user_cache_path(APP_NAME, appauthor=False)


SESSIONS: Final = "sessions"
"""The folder of what is kept for each opened folder, in the state folder."""


def folder_key(folder: Path) -> str:
    """Return under which name something is kept for a folder: its own, and its path's hash."""
    import hashlib  # noqa: PLC0415 - it loads OpenSSL, and the first frame does without

    real = Path(os.path.realpath(folder))
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", real.name)[:40].strip("-")
    return f"{name or 'folder'}-{digest}"


def is_same_place(one: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file or folder, whatever each calls it.

    A file system may ignore the case of letters, and a folder may be mounted twice. Blocks.
    """
    try:
        return one == other or one.samefile(other)
    except (OSError, ValueError):
        return False


LOG_NAME: Final = "gemdeck.log"
"""The log file, in `log_dir`."""


def log_dir() -> Path:
    """Return the folder of log files and crash reports, inside the state folder.

    Raises:
        OSError: If it cannot be created.
    """
    path = state_dir() / "logs"
    _make(path)
    _close(path, 0o077)
    return path


def _make(folder: Path) -> None:
    """Make a folder if that can be done now: else it is made with the first file that fits."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise


def _usual_place() -> Path:
    """Return the platform's folder for program state.

    A relative path, from an odd ``XDG_STATE_HOME``, is refused: it would point into the folder
    in which gemdeck was started.
    """
    path: Path | None = None
    with contextlib.suppress(RuntimeError):  # neither HOME nor a passwd entry
        path = platformdirs.user_state_path(APP_NAME, appauthor=False)
    if path is None or not path.is_absolute():
        raise OSError(errno.ENOENT, "there is no home folder", "~/.local/state")
    return path


def _close(folder: Path, unwanted: int) -> None:
    """Remove permissions for others from a folder of the user, if the file system allows it."""
    with contextlib.suppress(OSError):
        status = folder.stat()
        if status.st_uid == os.geteuid() and status.st_mode & unwanted:
            folder.chmod(stat.S_IMODE(status.st_mode) & ~unwanted)


def open_to_others(path: Path) -> Path | None:
    """Return the file, or a folder on the way to it, that neither root nor the user alone change.

    A folder in which everybody changes only what is theirs, such as ``/tmp``, does not count, nor
    does a file that is not there. Blocks.
    """
    named, real = path.absolute(), Path(os.path.realpath(path))
    with contextlib.suppress(OSError, ValueError):
        for place in dict.fromkeys((real, named, *real.parents, *named.parents)):
            status = place.stat()
            is_sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
            is_shared = status.st_mode & 0o022 and not is_sticky
            if is_shared or status.st_uid not in {0, os.geteuid()}:
                return place
    return None


def shown_path(path: Path, home: Path) -> str:
    r"""Write a path as shown, with ``~`` for the home folder and line ends as ``\n``."""
    for place in (home, Path(os.path.realpath(home))):
        if path.is_relative_to(place):
            path = Path("~") / path.relative_to(place)
            break
    return sanitize_line("\\n".join(str(path).splitlines()))
