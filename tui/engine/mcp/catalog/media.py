"""Media of servers as their first bytes say, however their base64 and their kind are written."""

import base64
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from tui.text import usual_base64

_HEAD: Final = 64
"""Characters of base64 that are looked at for the kind."""

_DATA_ADDRESS: Final = re.compile(r"data:([\w.+-]{1,64}/[\w.+-]{1,64})?[^,]{0,256},", re.IGNORECASE)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_\s-]*={0,2}\s*")
_KINDS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
)
"""The first bytes of files, and what they are."""

_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_FTYP: Final = {b"avif": "image/avif", b"heic": "image/heic", b"mp42": "video/mp4"}

SVG: Final = "image/svg+xml"
"""A picture in words, which model services do not read as one."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def plain_base64(data: str) -> tuple[str, str]:
    """Return data in the usual base64, and the kind that an address of data names, or "".

    Some servers write the alphabet for URLs, leave out the padding, or write the whole address, or
    an SVG as it is. What else is no base64 stays as it is.
    """
    named = ""
    if data[:5].lower() == "data:" and (found := _DATA_ADDRESS.match(data)):
        named, data = found[1] or "", data[found.end() :]
        if ";base64" not in found[0].lower() and not _BASE64.fullmatch(data):
            return base64.b64encode(unquote_to_bytes(data)).decode(), named
    elif data[:64].lstrip().startswith("<"):
        return base64.b64encode(data.encode("utf-8", "replace")).decode(), named
    if not _BASE64.fullmatch(data):
        return data, named
    return usual_base64(data), named


def kind_of(data: str, claimed: str) -> str:
    """Return the media type that base64 data begins as; what is claimed where it is not known."""
    try:
        head = base64.b64decode(data[:_HEAD])
    except ValueError:
        return claimed
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12], claimed)
    if head[4:8] == b"ftyp":
        return _FTYP.get(head[8:12], claimed)
    return next((kind for start, kind in _KINDS if head.startswith(start)), claimed)


def text_of(data: str, kind: str) -> str:
    """Return the text that base64 data is, whatever it claims to be; "" if it is none."""
    if kind_of(data, ""):
        return ""
    text = base64.b64decode(data).decode("utf-8", "replace")
    is_whole = "\ufffd" not in text or kind == SVG or kind.startswith("text/")
    return text if is_whole and not _CONTROL.search(text) else ""
