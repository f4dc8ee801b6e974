"""Pictures and exports as new files of the user's."""

import base64
import os
from itertools import count
from pathlib import Path
from typing import Final

ENDINGS: Final = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"RIFF": ".webp"}
"""The endings of the formats, by how their data begins: a server's word for it opens nothing."""


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
    return write_numbered(folder, "picture", ending, raw)


def write_numbered(folder: Path, name: str, ending: str, raw: bytes) -> Path:
    """Write a file with the first number that is free, and return its path.

    Raises:
        OSError: If it cannot be written.
    """
    names = (folder / f"{name}-{number}{ending}" for number in count(1))
    path = next(one for one in names if not os.path.lexists(one))
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(raw)
    return path
