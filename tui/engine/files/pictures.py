"""Pictures as files: to open in another program, or to keep."""

import base64
import os
import shutil
import tempfile
from itertools import count
from pathlib import Path
from typing import Final

from tui.engine.files.paths import usable_state_dir

ENDINGS: Final = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"RIFF": ".webp"}
"""The endings of the formats, by how their data begins: a server's word for it opens nothing."""


class PictureFiles:
    """Writes pictures; `close` removes those that were written to be opened. All methods block."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def lend(self, data: str) -> Path:
        """Write a picture where only the user can read it, until the end of the run.

        Raises:
            OSError: If it cannot be written.
        """
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="pictures-", dir=usable_state_dir()))
        return write_new(self._folder, data)

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def write_new(folder: Path, data: str) -> Path:
    """Write a picture to a file that does not exist yet, and return its path.

    Args:
        folder: Its folder.
        data: Its data in base64.

    Raises:
        OSError: If it cannot be written, or is of no format that we know.
    """
    raw = base64.b64decode(data)
    ending = next((name for start, name in ENDINGS.items() if raw.startswith(start)), None)
    if ending is None:
        raise OSError("it is of an unknown format")
    for number in count(1):
        path = folder / f"picture-{number}{ending}"
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(file, "wb") as opened:
            opened.write(raw)
        return path
    raise AssertionError
