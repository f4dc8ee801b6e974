"""A tool's result in its two forms: parts for the model and text for the screen."""

import base64
import binascii
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

import mcp_types as types

from tui.engine.tools import MediaPart, TextPart, ToolResult
from tui.text import MAX_TEXT, clip_middle, sanitize, sanitize_line

MIN_BLOCK_TEXT: Final = 500
"""Characters that each text block keeps when a result is cut."""

MAX_MODEL_BLOCKS: Final = 100
"""Content blocks of one result that go to the model."""

MAX_MEDIA_CHARS: Final = 12_000_000
"""Longest base64 data of one block that goes to the model, in characters."""

UNREADABLE: Final = "The tool's response could not be read: it has no content."
"""What the model is told of a result without content."""

NO_MESSAGE: Final = "The tool reported an error without a message."
"""What the model is told of an error without content."""

_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
_ANY_MEDIA: Final = "application/octet-stream"

_Part = TextPart | MediaPart


def convert_result(result: types.CallToolResult, limit: int) -> ToolResult:
    """Turn a result of ``tools/call`` into its forms for the model and for the screen.

    Text passes the same filter towards the model as towards the screen: what the user cannot
    see, the model is not told. Structured content counts where there is no text.

    Args:
        result: The result as the SDK reads it. Long ones take time: keep them off the loop.
        limit: Characters of its text that go to the model; of more, the head and tail.
    """
    parts: list[_Part] = []
    shown: list[str] = []
    for block in result.content:
        for part, line in convert_block(block):
            parts.append(part)
            shown.append(line)
    has_text = any(isinstance(block, types.TextContent) for block in result.content)
    if not has_text and result.structured_content is not None:
        text = sanitize(_as_json(result.structured_content))
        parts.append(TextPart(text))
        shown.append(text)
    if not parts:
        text = NO_MESSAGE if result.is_error else UNREADABLE
        parts.append(TextPart(text))
        shown.append(text)
    display = sanitize("\n".join(line for line in shown if line), MAX_TEXT)
    return ToolResult(within_limits(parts, limit), display, bool(result.is_error))


def text_size(result: types.CallToolResult) -> int:
    """Estimate the characters that converting a result has to look at."""
    structured = 0 if result.structured_content is None else len(str(result.structured_content))
    return structured + sum(_block_size(block) for block in result.content)


def _block_size(block: types.ContentBlock) -> int:
    match block:
        case types.TextContent():
            return len(block.text)
        case types.ImageContent() | types.AudioContent():
            return len(block.data)
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return len(resource.text)
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            return len(resource.blob)
        case _:
            return 0


def convert_block(
    block: types.ContentBlock, provider: str = "Tool"
) -> Iterator[tuple[TextPart | MediaPart, str]]:
    """Give the parts of one block for the model, each with what the screen shows of it.

    Args:
        block: The block.
        provider: Whose it is, as the note before an image or a sound says.
    """
    match block:
        case types.TextContent():
            yield _text(block.text)
        case types.ImageContent():
            yield from _media(f"{provider} provided image", block.mime_type, block.data)
        case types.AudioContent():
            yield from _media(f"{provider} provided audio", block.mime_type, block.data)
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            yield _text(resource.text)
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            note = f"[Embedded resource: {media_type(resource.mime_type)}]"
            yield TextPart(note), f"{note} {_size(resource.blob)}"
            yield data_part(resource.mime_type, resource.blob)
        case types.ResourceLink():
            name = sanitize_line(block.title or block.name)
            yield _text(f"Resource Link: {name} at {sanitize_line(block.uri)}")


def _text(text: str) -> tuple[TextPart, str]:
    clean = sanitize(text)
    return TextPart(clean), clean


def _media(words: str, mime_type: str, data: str) -> Iterator[tuple[_Part, str]]:
    essence = media_type(mime_type)
    kind = words.rpartition(" ")[2]
    yield TextPart(f"[{words} with mime-type: {essence}]"), f"[{kind}: {essence}] {_size(data)}"
    yield data_part(mime_type, data)


def data_part(mime_type: str | None, data: str) -> tuple[TextPart | MediaPart, str]:
    """Give the data as a part, or a text where the model's service would refuse it."""
    if len(data) > MAX_MEDIA_CHARS:
        problem = f"[The data is left out: {_size(data)} is too much.]"
        return TextPart(problem), problem
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        problem = "[The data is left out: it is not valid base64.]"
        return TextPart(problem), problem
    return MediaPart(media_type(mime_type), data), ""


def media_type(mime_type: str | None) -> str:
    """Give a well-formed media type without parameters."""
    essence = (mime_type or "").partition(";")[0].strip().lower()
    return essence if _MEDIA_TYPE.fullmatch(essence) else _ANY_MEDIA


def _size(data: str) -> str:
    size = len(data) * 3 // 4
    return f"{size / 1000:.0f} kB" if size >= 1000 else f"{size} bytes"


def within_limits(
    parts: Sequence[TextPart | MediaPart], limit: int
) -> tuple[TextPart | MediaPart, ...]:
    """Cut the texts, each in proportion, so that together they keep to `limit` characters."""
    kept = list(parts[:MAX_MODEL_BLOCKS])
    if len(kept) < len(parts):
        kept.append(TextPart(f"[{len(parts) - len(kept)} more blocks are left out.]"))
    total = sum(len(part.text) for part in kept if isinstance(part, TextPart))
    if total <= limit:
        return tuple(kept)
    share = limit / total
    return tuple(_shortened(part, share) for part in kept)


def _shortened(part: _Part, share: float) -> _Part:
    if isinstance(part, MediaPart):
        return part
    half = max(MIN_BLOCK_TEXT, int(len(part.text) * share)) // 2
    return TextPart(clip_middle(part.text, half, half))


def _as_json(value: object) -> str:
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    """Replace numbers that JSON does not know by their names."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {str(key): _finite(item) for key, item in value.items()}
        case list():
            return [_finite(item) for item in value]
        case _:
            return value
