"""The size of an image, read from its first bytes."""

import base64
import struct

import pytest

from tui.engine.mcp.catalog.results import image_size

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480)
JPEG = (
    b"\xff\xd8\xff\xe0"
    + struct.pack(">H14x", 16)
    + b"\xff\xc0"
    + struct.pack(">HBHH", 17, 8, 480, 640)
)
WEBP = b"RIFF\0\0\0\0WEBP"
BITS = (640 - 1) | (480 - 1) << 14


@pytest.mark.parametrize(
    "data",
    [
        PNG,
        b"GIF89a" + struct.pack("<HH", 640, 480),
        JPEG,
        WEBP + b"VP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"),
        WEBP + b"VP8L" + bytes(4) + b"\x2f" + BITS.to_bytes(4, "little"),
        WEBP + b"VP8 " + bytes(10) + struct.pack("<HH", 640, 480),
    ],
    ids=["png", "gif", "jpeg", "webp", "lossless-webp", "lossy-webp"],
)
def test_the_size_stands_in_the_first_bytes(data: bytes) -> None:
    assert image_size(base64.b64encode(data + bytes(100)).decode()) == (640, 480)


@pytest.mark.parametrize(
    "data",
    [b"", b"text", PNG[:20], PNG[:16] + bytes(8), JPEG[:8], b"\xff\xd8" + bytes(60_000)],
    ids=["nothing", "text", "short", "no-size", "no-frame", "zeros"],
)
def test_an_image_that_cannot_be_read_has_no_size(data: bytes) -> None:
    assert image_size(base64.b64encode(data).decode()) is None


def test_data_that_is_no_base64_has_no_size() -> None:
    assert image_size("iVBOR") is None
    assert image_size("é") is None
