"""The size of an image in pixels, read from the first bytes of its data."""

import base64
import binascii
import struct
from typing import Final

HEAD: Final = 65_536
"""Characters of base64 that are read; only a JPEG can hold its size further on."""

_JPEG_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of the segments that begin with a JPEG's size."""


def image_size(data: str) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF, JPEG or WebP in base64, or None if unknown."""
    try:
        return _size(base64.b64decode(data[:HEAD]))
    except (binascii.Error, ValueError, struct.error, IndexError):
        return None


def _size(head: bytes) -> tuple[int, int] | None:
    size: tuple[int, int] | None = None
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        size = struct.unpack(">II", head[16:24])
    elif head.startswith((b"GIF87a", b"GIF89a")):
        size = struct.unpack("<HH", head[6:10])
    elif head.startswith(b"\xff\xd8"):
        size = _jpeg_size(head)
    elif head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X":
        width, height = (int.from_bytes(head[at : at + 3], "little") + 1 for at in (24, 27))
        size = width, height
    elif head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8L":
        bits = int.from_bytes(head[21:25], "little")
        size = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8 ":
        width, height = struct.unpack("<HH", head[26:30])
        size = width & 0x3FFF, height & 0x3FFF
    return size if size and all(size) else None


def _jpeg_size(head: bytes) -> tuple[int, int]:
    """Walk the segments up to the frame."""
    at = 2
    while head[at + 1] not in _JPEG_FRAMES:
        at += 2 + max(2, *struct.unpack(">H", head[at + 2 : at + 4]))
    height, width = struct.unpack(">HH", head[at + 5 : at + 9])
    return width, height
