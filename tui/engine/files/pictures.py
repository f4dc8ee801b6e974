"""New files for the user: pictures, and what servers gave."""

import base64
import os
import re
from itertools import count
from pathlib import Path
from typing import Final

ENDINGS: Final = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"RIFF": ".webp"}
"""The endings of the formats, by how their data begins: a server's word for it opens nothing."""

MAX_NAME: Final = 60
"""Characters of a name that are kept."""


def write_picture(folder: Path, data: str) -> Path:
    """Write a picture to a new file, and return its path; see `write_new`.

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
    return write_new(folder, f"picture{ending}", raw)


def write_new(folder: Path, name: str, data: bytes) -> Path:
    """Write a file that does not exist yet, private, and return its path.

    Its name gets a number, and has no odd characters: a server that chose it names no file that
    a program looks for.

    Raises:
        OSError: If it cannot be written.
    """
    given = Path(name)
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", given.stem)[:MAX_NAME] or "file"
    ending = re.sub(r"[^A-Za-z0-9.]+", "", given.suffix)[:MAX_NAME]
    paths = (folder / f"{stem}-{number}{ending}" for number in count(1))
    path = next(path for path in paths if not os.path.lexists(path))
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    return path
