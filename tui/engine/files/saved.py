"""What the user saves of servers: always in new files."""

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from mimetypes import guess_extension
from pathlib import Path
from typing import Final

from tui.model.bounded_json import writable
from tui.model.runs import ToolRun
from tui.text import usual_base64

ENDINGS: Final = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"RIFF": ".webp"}
"""The endings of the formats, by how their data begins: a server's word for it opens nothing."""

_NAME: Final = re.compile(r"([A-Za-z0-9_-]{1,60})(\.[A-Za-z0-9]{1,8})?/*(?:[?#].*)?$")
"""The end of a URI that can be part of a file's name, and how that ends."""


MAX_NAME: Final = 60
"""Characters of a tool's name that are kept."""


def write_new(folder: Path, name: str, ending: str, data: bytes) -> Path:
    """Write data to a file that does not exist yet, and return its path.

    Args:
        folder: Its folder.
        name: What its name begins with; a number follows.
        ending: How its name ends, with the dot.
        data: What it holds.

    Raises:
        OSError: If it cannot be written.
    """
    names = (folder / f"{name}-{number}{ending}" for number in count(1))
    path = next(name for name in names if not os.path.lexists(name))
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    return path


def write_picture(folder: Path, data: str) -> Path:
    """Write a picture, given in base64, to a new file.

    Raises:
        OSError: If it cannot be written, or is of no format that we know.
    """
    raw = base64.b64decode(data)
    if not (ending := _picture_ending(raw)):
        raise OSError("its format is unknown")
    return write_new(folder, "picture", ending, raw)


def write_resource(folder: Path, uri: str, contents: Sequence[Mapping[str, str]]) -> Path:
    """Write a resource to a new file, whose name says which one it is.

    No name that a server gives means anything to a program: all begin with ``resource-``.

    Raises:
        OSError: If it cannot be written.
        ValueError: If a blob is not valid base64.
    """
    data, found = joined_contents(contents), _NAME.search(uri)
    name, ending = found.groups("") if found is not None else ("", "")
    kind = next(((one.get("mimeType") or "").partition(";")[0] for one in contents), "")
    ending = ending or guess_extension(kind) or ""
    return write_new(folder, f"resource-{name}".strip("-"), _picture_ending(data) or ending, data)


def write_result(folder: Path, run: ToolRun, *, as_json: bool) -> Path:
    """Write a result to a new file: as its server sent it, or the texts in it.

    Raises:
        OSError: If it cannot be written.
    """
    raw = writable(run.raw or {})
    texts = [one["text"] for one in raw.get("content", ()) if one.get("type") == "text"]
    text = "\n".join(texts or [run.call.result])
    if as_json:
        text = json.dumps(raw, indent=2, ensure_ascii=False)
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", run.call.tool)[:MAX_NAME]
    ending = ".json" if as_json else ".txt"
    return write_new(folder, f"result-{name}".strip("-"), ending, text.encode("utf-8", "replace"))


def joined_contents(contents: Iterable[Mapping[str, str]] | None) -> bytes:
    """Join the contents of a resource as its server wrote them: texts as UTF-8, blobs decoded.

    A blob may be a whole ``data:`` address, in the alphabet for URLs or without its padding.

    Raises:
        ValueError: If they have another form, or a blob is not valid base64.
    """
    try:
        return b"".join(
            one["text"].encode("utf-8", "replace")
            if "text" in one
            else base64.b64decode(
                usual_base64(one["blob"].rpartition(";base64,")[2]), validate=True
            )
            for one in contents or ()
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("no contents of a resource") from error


def _picture_ending(data: bytes) -> str:
    return next((name for start, name in ENDINGS.items() if data.startswith(start)), "")
