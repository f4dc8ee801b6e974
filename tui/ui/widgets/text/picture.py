"""Pictures drawn with half blocks: each cell has two pixels, one above the other."""

import asyncio
from base64 import b64decode
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from textual.app import App
from textual.color import Color
from textual.content import Content, Span
from textual.style import Style

from tui.model.chat import Picture
from tui.ui.widgets.text.blocks import Block, BlockView, styled

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PICTURES: Final = 4
"""Pictures of one result that are drawn."""

MAX_PIXELS: Final = 16_000_000
"""Pixels of a picture that is decoded."""

MAX_BLOCKING: Final = {"WEBP": 4_000_000}
"""Pixels of a kind whose decoder lets no other thread run until it is done."""

MAX_KEPT: Final = (240, 200)
"""Pixels of what is kept of it to be drawn."""

FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP")
"""What is decoded; Pillow would try dozens."""

PNG: Final = b"\x89PNG\r\n\x1a\n"
"""The first bytes of a PNG."""

GROUND: Final = (128, 128, 128)
"""Behind a transparent picture: black and white lines are seen on it."""


class TooManyPixelsError(ValueError):
    """A picture has more than so many pixels."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"The picture cannot be shown: it has more than {limit:,} pixels.")


def draws_pictures(app: App[Any]) -> bool:
    """Return whether there are colors for pictures."""
    return not (app.no_color or app.current_theme.ansi)


class PictureBlock(Block):
    """A picture in as many rows as it will take, empty until `load` has decoded it."""

    spaced = False

    def __init__(self, picture: Picture, rows: int) -> None:
        self._picture = picture
        self._rows = rows
        self._image: Image | None = None
        self._problem = ""

    async def load(self) -> None:
        """Decode the picture in a thread."""
        try:
            self._image = await asyncio.to_thread(_decoded, self._picture)
        except TooManyPixelsError as error:
            self._problem = str(error)
        except Exception:  # noqa: BLE001 - hostile data, and the errors of four decoders
            self._problem = "The picture cannot be shown: it is damaged or in an unknown format."
        self._width = -1

    def layout(self, width: int) -> list[Content]:
        if self._problem:
            return [styled(self._problem, ".entry-muted").truncate(width, ellipsis=True)]
        wide, high = self._picture.width, self._picture.height
        scale = min(width / wide, 2 * self._rows / high, 1)
        columns, rows = max(1, round(wide * scale)), max(1, round(high * scale / 2))
        if self._image is None:
            return [Content("")] * rows
        pixels = self._image.resize((columns, rows * 2)).tobytes()
        return [_row(pixels, columns, row) for row in range(rows)]


def _row(pixels: bytes, columns: int, row: int) -> Content:
    """Draw two rows of pixels, of three bytes each, in one of cells."""
    start, size = 6 * columns * row, 6 * columns
    colors = [Color(*pixels[at : at + 3]) for at in range(start, start + size, 3)]
    pairs = zip(colors, colors[columns:], strict=False)
    styles = (Style(background=low, foreground=high) for high, low in pairs)
    return Content("▀" * columns, spans=[Span(x, x + 1, one) for x, one in enumerate(styles)])


def _decoded(picture: Picture) -> "Image":
    """Decode the first frame, made small.

    Raises:
        TooManyPixelsError: If it is too large.
    """
    from PIL import Image  # noqa: PLC0415 - for the first picture

    Image.MAX_IMAGE_PIXELS = None  # it would warn on the terminal; the limit is ours
    if picture.width * picture.height > MAX_PIXELS:
        raise TooManyPixelsError(MAX_PIXELS)
    data = _without_bad_extras(b64decode(picture.data))
    with Image.open(BytesIO(data), formats=FORMATS) as image:
        most = MAX_BLOCKING.get(image.format or "", MAX_PIXELS)
        if image.width * image.height > most:
            raise TooManyPixelsError(most)
        image.thumbnail(MAX_KEPT)
        seen = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", seen.size, GROUND), seen).convert("RGB")


def _without_bad_extras(data: bytes) -> bytes:
    """Leave out ancillary chunks of a PNG with a wrong checksum: Pillow would refuse the picture.

    Their names begin with a small letter, and a picture can be drawn without them.
    """
    if not data.startswith(PNG):
        return data
    kept, at = [PNG], len(PNG)
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4])
        chunk = data[at:end]
        if not (chunk[4:5].islower() and crc32(chunk[4:-4]) != int.from_bytes(chunk[-4:])):
            kept.append(chunk)
        at = end
    return b"".join(kept)


async def load_all(view: BlockView, blocks: Sequence[PictureBlock]) -> None:
    """Decode pictures one after the other, and draw each in its view."""
    for block in blocks:
        await block.load()
        view.changed()


class PictureView(BlockView):
    """Pictures as large as there is room, with text between them.

    Args:
        parts: The text and the pictures, of which those beyond `MAX_PICTURES` are left out.
    """

    def __init__(self, parts: Iterable[Block | Picture]) -> None:
        self._pictures: list[PictureBlock] = []
        super().__init__([block for one in parts if (block := self._block(one)) is not None])

    def _block(self, part: Block | Picture) -> Block | None:
        if isinstance(part, Block):
            return part
        if len(self._pictures) == MAX_PICTURES or not draws_pictures(self.app):
            return None
        self._pictures.append(PictureBlock(part, max(4, self.app.size.height * 3 // 4 - 4)))
        return self._pictures[-1]

    def on_mount(self) -> None:
        self.run_worker(load_all(self, self._pictures))
