"""What files and folders of the workspace say to the model."""

import base64
import mimetypes
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tui.engine.files.atomic import UnfitFileError, read_regular
from tui.engine.mcp.catalog.offered_tool import MediaPart, TextPart
from tui.engine.workspace.workspace import Workspace, WorkspacePath
from tui.model.frozen import dataclass
from tui.text import counted, for_model, sanitize_line

MAX_TEXT_BYTES: Final = 1_000_000
"""Bytes of text of all files that one message brings along."""

MAX_MEDIA_BYTES: Final = 7_000_000
"""Bytes of all images and documents that one message brings along, before they are encoded."""

MAX_FILES: Final = 200
"""Files of a folder that one message brings along."""

MAX_SEEN: Final = 5_000
"""Files and folders of a folder that are looked at."""

_BINARY_SAMPLE: Final = 8_192
_MEDIA: Final = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
_DOCUMENT: Final = "application/pdf"

Part = TextPart | MediaPart


class UnreadablePathError(Exception):
    """A file or folder cannot go along; the text says why, after its name."""


@dataclass(frozen=True, slots=True)
class PathReading:
    """What a path says to the model, and a line for the screen."""

    parts: tuple[Part, ...]
    shown: str


class PathReader:
    """Reads what one message names, up to the limits of a message. Blocks.

    Args:
        workspace: The opened folders.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._text_left = MAX_TEXT_BYTES
        self._media_left = MAX_MEDIA_BYTES

    def read(self, found: WorkspacePath) -> PathReading:
        """Read a file, or the files in a folder.

        Raises:
            UnreadablePathError: If it cannot be read, or is more than a message can bring along.
        """
        name = sanitize_line(found.shown)
        try:
            if found.path.is_dir():
                return self._read_folder(found, name)
            parts, what = self._read_file(found.path, name)
        except (OSError, UnfitFileError, ValueError) as error:
            raise UnreadablePathError(getattr(error, "strerror", None) or str(error)) from error
        return PathReading(parts, f"[{name}: {what}]")

    def _read_folder(self, found: WorkspacePath, name: str) -> PathReading:
        files = [path for path, is_folder in self._seen(found) if not is_folder]
        if len(files) > MAX_FILES:
            raise UnreadablePathError(
                f"it has more than {MAX_FILES} files, the most that a message can bring along"
            )
        parts: list[Part] = []
        read = 0
        listed: list[str] = []
        for path in files:
            inside = sanitize_line(path.relative_to(found.root).as_posix())
            try:
                file_parts, _ = self._read_file(path, inside)
            except (OSError, UnfitFileError, UnreadablePathError) as error:
                if isinstance(error, _TooMuchError):
                    raise UnreadablePathError(
                        "it is too large as a whole: " + str(error)
                    ) from error
                listed.append(f"{inside} (not read)")
                continue
            listed.append(inside)
            parts += file_parts
            read += 1
        opening = TextPart("\n".join([f"[Folder {name or '.'}]", *listed]))
        what = f"{read:,} of {counted(len(files), 'file')}"
        return PathReading((opening, *parts), f"[{name or '.'}/: {what}]")

    def _seen(self, found: WorkspacePath) -> Iterator[tuple[Path, bool]]:
        for number, one in enumerate(self._workspace.walk(found.root, found.path)):
            if number == MAX_SEEN:
                raise UnreadablePathError("it holds too many files and folders")
            yield one

    def _read_file(self, path: Path, name: str) -> tuple[tuple[Part, ...], str]:
        kind = mimetypes.guess_type(path.name)[0] or ""
        if kind in _MEDIA or kind == _DOCUMENT:
            data = self._read(path, self._media_left)
            self._media_left -= len(data)
            media = MediaPart(kind, base64.b64encode(data).decode())
            return (TextPart(f"[File {name}: {kind}]"), media), f"{kind}, {len(data):,} bytes"
        data = self._read(path, self._text_left)
        if b"\0" in data[:_BINARY_SAMPLE]:
            raise UnreadablePathError("it is no text, image or PDF")
        self._text_left -= len(data)
        text = for_model(data.decode("utf-8-sig", "replace"))[0]
        parts = (TextPart(f"[File {name}]"), TextPart(text or "[It is empty.]"))
        return (*parts, TextPart(f"[End of {name}]")), f"{len(text):,} characters"

    def _read(self, path: Path, left: int) -> bytes:
        size = path.stat().st_size
        if size > left:
            raise _TooMuchError(f"{size:,} bytes, and a message can bring {left:,} more along")
        return read_regular(path, left)


class _TooMuchError(UnreadablePathError):
    """A file is larger than what a message has left."""
