"""Pictures for tests, made here."""

import base64
from io import BytesIO

from PIL import Image

from tui.model.chat import Picture

BAD_CHUNK = b"\0\0\0\1%sx\0\0\0\0"
"""A chunk of a PNG by its name, with a wrong checksum; `HEAD` bytes come before it."""

HEAD = 33


def picture(
    size: tuple[int, int] = (40, 20), kind: str = "PNG", *, bad_chunk: bytes = b""
) -> Picture:
    """Give a picture whose upper half is red and whose lower half is blue."""
    image = Image.new("RGB", size, (255, 0, 0))
    image.paste((0, 0, 255), (0, size[1] // 2, *size))
    file = BytesIO()
    image.save(file, kind)
    made = file.getvalue()
    if bad_chunk:
        made = made[:HEAD] + BAD_CHUNK % bad_chunk + made[HEAD:]
    data = base64.b64encode(made).decode()
    return Picture(f"image/{kind.lower()}", data, *size)
