"""Pictures for tests, made here."""

import base64
from io import BytesIO

from PIL import Image

from tui.model.chat import Picture


def picture(size: tuple[int, int] = (40, 20), kind: str = "PNG") -> Picture:
    """Give a picture whose upper half is red and whose lower half is blue."""
    image = Image.new("RGB", size, (255, 0, 0))
    image.paste((0, 0, 255), (0, size[1] // 2, *size))
    file = BytesIO()
    image.save(file, kind)
    data = base64.b64encode(file.getvalue()).decode()
    return Picture(f"image/{kind.lower()}", data, *size)
