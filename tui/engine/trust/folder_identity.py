"""Which folder a path leads to, and who could change what is in it."""

import os
import pwd
import stat
import tempfile
from pathlib import Path
from typing import Annotated, Final

from pydantic import PlainSerializer, PlainValidator

from tui.engine.files.entry_format import read_path, write_path
from tui.model.frozen import Frozen

_SHARED: Final = ("/tmp", "/var/tmp", "/dev/shm", "/private/tmp")  # noqa: S108 - never written to


def _read_absolute(text: object) -> Path:
    path = Path(read_path(text))
    if not path.is_absolute():
        raise ValueError("not an absolute path")
    return path


class FolderIdentity(Frozen):
    """A folder as it lies on the disk now.

    Attributes:
        path: Its real path.
        device: The device it lies on.
        inode: Its number there.
        owner: The id of the user it belongs to.
    """

    path: Annotated[Path, PlainValidator(_read_absolute), PlainSerializer(write_path)]
    device: int
    inode: int
    owner: int

    @property
    def key(self) -> tuple[str, int, int, int]:
        return str(self.path), self.device, self.inode, self.owner


def identify(folder: Path) -> FolderIdentity | None:
    """Determine which folder a path leads to; None where it leads to none. Blocks."""
    try:
        path = Path(os.path.realpath(folder))
        found = path.stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None
    return FolderIdentity(path, found.st_dev, found.st_ino, found.st_uid)


def reason_to_refuse(folder: Path) -> str:
    """Return why trust in a folder cannot last: somebody else may change what is in it. Blocks.

    The rule is that of git's ``safe.directory`` and OpenSSH's ``StrictModes``.

    Returns:
        One sentence, or "" where there is no reason.
    """
    try:
        found = folder.stat()
    except OSError:
        return "The folder cannot be read."
    if found.st_uid != os.geteuid():
        return "The folder belongs to another user, who could change what runs."
    if found.st_mode & stat.S_IWOTH:
        return "Anyone can write to the folder and change what runs. To fix it: chmod o-w."
    if found.st_mode & stat.S_IWGRP and found.st_gid != _own_group():
        return "A group can write to the folder and change what runs. To fix it: chmod g-w."
    return ""


def may_cover_children(folder: Path, home: Path) -> bool:
    """Return whether trust in a folder may reach the folders in it. Blocks.

    Never for the home or what holds it, nor for places in which anybody may make folders.
    """
    place, own = Path(os.path.realpath(folder)), Path(os.path.realpath(home))
    shared = {Path(os.path.realpath(path)) for path in (*_SHARED, tempfile.gettempdir())}
    if place == own or place in own.parents or place in shared or len(place.parts) == 1:
        return False
    return not reason_to_refuse(place)


def reaches_down(folder: FolderIdentity, home: Path) -> bool:
    """Return whether a yes to a folder still covers the folders in it. Blocks."""
    now = identify(folder.path)
    return now is not None and now.key == folder.key and may_cover_children(folder.path, home)


def _own_group() -> int:
    """Return the user's primary group; the process may have changed its own (``newgrp``)."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_gid
    except KeyError:
        return os.getegid()
