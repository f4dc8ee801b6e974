"""Content blocks: for the model as they came, for the screen sanitized."""

import base64
import binascii
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import mcp_types as types

from tui.engine.mcp.catalog.offered_tool import MediaPart, TextPart
from tui.text import clip_middle, counted, for_model, sanitize, sanitize_line

MIN_BLOCK_TEXT: Final = 500
"""Characters that each text keeps at least when a result is cut."""

MAX_MEDIA_CHARS: Final = 12_000_000
"""Longest base64 data of one block that goes to the model, in characters."""

MAX_URI: Final = 2_000
"""Characters of a URI that are shown, as of any line."""

_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
_ANY_MEDIA: Final = "application/octet-stream"

Part = TextPart | MediaPart


class Piece(NamedTuple):
    """A part for the model, the same for the screen, and the hidden commands spelled out in it."""

    part: Part
    shown: str
    hidden: int = 0


def text_piece(text: str) -> Piece:
    """Return a text as data for the model and as text for the screen."""
    revealed, hidden = for_model(text)
    return Piece(TextPart(revealed), sanitize(text), hidden)


def convert_block(block: types.ContentBlock, provider: str = "Tool") -> Iterator[Piece]:
    """Convert one block.

    Args:
        block: The block.
        provider: Its source, as named in the note before an image or a sound.
    """
    match block:
        case types.TextContent():
            yield text_piece(block.text)
        case types.ImageContent():
            yield from _media(provider, "image", block.mime_type, block.data)
        case types.AudioContent():
            yield from _media(provider, "audio", block.mime_type, block.data)
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            yield resource_label(resource)
            yield text_piece(resource.text)
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            label = resource_label(resource)
            yield label._replace(shown=f"{label.shown} {_size(resource.blob)}")
            yield data_piece(resource.mime_type, resource.blob)
        case types.ResourceLink():
            kind = f" ({block.mime_type})" if block.mime_type else ""
            words = f": {block.description}" if block.description else ""
            yield text_piece(
                f"Resource Link: {block.title or block.name} at {block.uri}{kind}{words}"
            )


def convert_shared_block(block: types.ContentBlock, provider: str = "Tool") -> Iterator[Piece]:
    """Convert one block; one that is meant for the model only is named on the screen, not shown."""
    pieces = convert_block(block, provider)
    annotations = block.annotations
    if annotations is None or annotations.audience != ["assistant"]:
        yield from pieces
        return
    kind = sanitize_line(block.type, 20).replace("_", " ")
    what = f"{kind}, {counted(len(block.text), 'character')}" if block.type == "text" else kind
    note = f"[{what}: for the model only, by the server's wish not shown]"
    for index, piece in enumerate(pieces):
        yield piece._replace(shown="" if index else note)


def resource_label(resource: types.TextResourceContents | types.BlobResourceContents) -> Piece:
    """Return the line before an embedded resource."""
    is_text = isinstance(resource, types.TextResourceContents)
    kind = f": {media_type(resource.mime_type)}" if resource.mime_type or not is_text else ""
    piece = text_piece(f"[Resource {resource.uri}{kind}]")
    return piece._replace(shown=sanitize_line(piece.shown, MAX_URI))


def _media(provider: str, kind: str, mime_type: str, data: str) -> Iterator[Piece]:
    essence = media_type(mime_type)
    note = f"[{provider} provided {kind} with mime-type: {essence}]"
    size = image_size(data) if kind == "image" else None
    pixels = f" {size[0]}x{size[1]}" if size else ""
    yield Piece(TextPart(note), f"[{kind}{pixels}: {essence}] {_size(data)}")
    yield data_piece(mime_type, data)


def data_piece(mime_type: str | None, data: str) -> Piece:
    """Return the data as a part, or a note if the model's service would refuse it."""
    if problem := data_problem(data):
        return text_piece(f"[{problem}.]")
    return Piece(MediaPart(media_type(mime_type), "".join(data.split())), "")


def data_problem(data: str) -> str:
    """Say why the model's service would refuse data, or nothing."""
    if len(data) > MAX_MEDIA_CHARS:
        return f"The data is left out: {_size(data)} is too much"
    try:  # some encoders wrap their lines
        decoded = base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return "The data is left out: it is not valid base64"
    return "" if decoded else "There is no data"


def media_type(mime_type: str | None) -> str:
    """Return the media type without parameters; a generic one if it is malformed."""
    essence = (mime_type or "").partition(";")[0].strip().lower()
    return essence if _MEDIA_TYPE.fullmatch(essence) else _ANY_MEDIA


def _size(data: str) -> str:
    size = len(data) * 3 // 4
    return f"{size / 1000:.0f} kB" if size >= 1000 else f"{size} bytes"


def hidden_note(pieces: Iterable[Piece]) -> list[Piece]:
    """Return a note on the hidden commands that were spelled out, if there are any."""
    hidden = sum(piece.hidden for piece in pieces)
    if not hidden:
        return []
    characters = counted(hidden, "invisible control character")
    return [text_piece(f"[{characters} in this text: spelled out as ⟨U+…⟩.]")]


def cut_note(parts: Iterable[Part], limit: int) -> str:
    """Say on the screen how much of a text the model gets, if it does not get all."""
    total = text_length(parts)
    return f"[The model gets about {limit:,} of {total:,} characters.]" if total > limit else ""


def text_length(parts: Iterable[Part]) -> int:
    """Count the characters of all texts."""
    return sum(len(part.text) for part in parts if isinstance(part, TextPart))


def within_limit(parts: Sequence[Part], share: float) -> tuple[Part, ...]:
    """Cut each text to a share of its length, which leaves a short one whole."""
    return tuple(parts) if share >= 1 else tuple(_shortened(part, share) for part in parts)


def _shortened(part: Part, share: float) -> Part:
    if isinstance(part, MediaPart):
        return part
    half = max(MIN_BLOCK_TEXT, int(len(part.text) * share)) // 2
    return TextPart(clip_middle(part.text, half, half))


HEAD: Final = 65_536
"""Characters of base64 that are read; only a JPEG can hold its size further on."""

_JPEG_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of the segments that begin with a JPEG's size."""


def image_size(data: str) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF, JPEG or WebP in base64, or None if unknown."""
    try:
        return _pixels(base64.b64decode(data[:HEAD]))
    except (binascii.Error, ValueError, struct.error, IndexError):
        return None


def _pixels(head: bytes) -> tuple[int, int] | None:
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
