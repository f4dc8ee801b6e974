"""The opened folders: which path a word means, a list for completion, what goes into a message."""

import base64
import mimetypes
import os
import shutil
import tempfile
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from tui.engine.files.atomic import free_path, read_regular
from tui.engine.files.ignored import HIDDEN, IgnoreRules
from tui.engine.mcp.catalog.offered_tool import MediaPart, TextPart
from tui.model.frozen import Frozen
from tui.model.input.fuzzy import best
from tui.model.input.mentions import SECRET_NAME
from tui.text import (
    AdvisedError,
    counted,
    decoded,
    for_model,
    is_shown_whole,
    note_hidden,
    note_lost,
    sanitize_line,
)

MAX_LISTED: Final = 20_000
"""Most files and folders that are listed, those nearest to the root first."""

MAX_SHOWN: Final = 200
"""Characters of a path in a message."""

MAX_SECONDS: Final = 2.0
"""Seconds after which a walk ends with what it has."""

LIST_AGE: Final = 5.0
"""Seconds for which a list of paths is used again."""

_ROOT: Final = frozenset({".", "./"})

MAX_SCANNED: Final = 10_000
"""Entries of a folder that are looked at."""

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


class OutsideError(AdvisedError):
    """A path leads out of the opened folders, or git leaves it out; the text says which."""


class WorkspacePath(Frozen):
    """A file or folder in an opened folder.

    Attributes:
        path: Its real path.
        shown: Its path from the root, as it is typed and told to the model.
        root: The real root.
    """

    path: Path
    shown: str
    root: Path


def existing_folder(typed: str, base: Path) -> Path:
    """Return the real path of a folder as the user typed it.

    Args:
        typed: Its path; ``~`` is the home.
        base: The folder that a relative path belongs to.

    Raises:
        ValueError: If there is none.
    """
    try:
        path = (base / Path(typed).expanduser()).resolve()
        is_folder = path.is_dir()
    except (OSError, RuntimeError, ValueError):
        is_folder = False
    if not is_folder:
        raise ValueError(f"There is no folder {sanitize_line(typed, MAX_SHOWN)}.")
    return path


class Workspace:
    """The opened folders. All methods block; call them in a thread.

    Args:
        roots: Returns the folders, the first of which relative paths belong to.
    """

    def __init__(self, roots: Callable[[], Sequence[Path]]) -> None:
        self._roots = roots
        self._listed: tuple[float, tuple[Path, ...], list[str]] | None = None
        self._pictures: tuple[Path, ...] = ()

    def find(self, typed: str) -> WorkspacePath | None:
        """Return what a typed path means; None if there is no such file or folder.

        Raises:
            OutsideError: If it is there but must not be read.
        """
        if "\0" in typed or not (typed in _ROOT or any(map(str.isalnum, typed))):
            return None
        place = Path(typed).expanduser() if typed.startswith("~/") else Path(typed)
        roots = (*self._real_roots(), *self._pictures)
        outside: Path | None = None
        for root in roots:
            path = os.path.realpath(root / place)
            if not os.path.lexists(path):
                continue
            home = next((one for one in roots if Path(path).is_relative_to(one)), None)
            if home is None:
                outside = Path(path)
                continue
            found = WorkspacePath(Path(path), _shown(Path(path), home, roots), home)
            is_folder = found.path.is_dir()
            if IgnoreRules(home).leaves_out(found.path, is_folder=is_folder):
                git = IgnoreRules(home, (".gitignore",)).leaves_out(found.path, is_folder=is_folder)
                raise OutsideError(f"is ignored by {'.gitignore' if git else '.geminiignore'}")
            return found
        if outside is not None:
            folder = outside if outside.is_dir() else outside.parent
            add = f"/directory add {sanitize_line(str(folder), MAX_SHOWN)}"
            raise OutsideError("is outside the opened folders", f"{add} opens it, for servers too.")
        return None

    def keep_picture(self, data: bytes) -> str:
        """Keep a picture of the clipboard's until gemdeck ends; return the path that names it."""
        if not self._pictures:
            folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="gemdeck-")))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self._pictures = (folder,)
        path = free_path(self._pictures[0], "picture", ".png")
        path.write_bytes(data)
        return str(path)

    def complete(self, typed: str, limit: int) -> list[str]:
        """Return the paths that fit best to what is typed of one; folders end with a slash."""
        return best(typed, self._paths(), limit)

    def walk(self, root: Path, top: Path) -> Iterator[tuple[Path, bool]]:
        """Yield what is below a folder, breadth first and sorted, with whether it is a folder.

        Ignored files and links that leave the root are left out; linked folders are not entered.

        Raises:
            UnreadablePathError: At the end or after `MAX_SECONDS`, if there is more.
        """
        rules = IgnoreRules(root)
        folders = deque([top])
        end = time.monotonic() + MAX_SECONDS
        is_cut = False
        while folders and time.monotonic() < end:
            folder = folders.popleft()
            try:
                with os.scandir(folder) as found:
                    entries = sorted(islice(found, MAX_SCANNED), key=lambda entry: entry.name)
                    is_cut |= next(found, None) is not None
            except OSError:
                continue
            for entry in entries:
                if time.monotonic() >= end:
                    is_cut = True
                    break
                path, is_folder = Path(entry.path), entry.is_dir(follow_symlinks=False)
                if (is_folder and entry.name in HIDDEN) or rules.names(path, is_folder=is_folder):
                    continue
                real = Path(os.path.realpath(path)) if entry.is_symlink() else None
                if real is not None and not (real.is_relative_to(root) and real.is_file()):
                    continue
                yield path, is_folder
                if is_folder:
                    folders.append(path)
        if folders or is_cut:
            raise UnreadablePathError("it contains too many files and folders")

    def _paths(self) -> list[str]:
        roots = self._real_roots()
        now = time.monotonic()
        if self._listed is None or self._listed[1] != roots or now - self._listed[0] > LIST_AGE:
            self._listed = (time.monotonic(), roots, self._list(roots))
        return self._listed[2]

    def _list(self, roots: tuple[Path, ...]) -> list[str]:
        paths: list[str] = []
        for root in roots:
            with suppress(UnreadablePathError):  # what was found until then is listed
                for path, is_folder in self.walk(root, root):
                    if len(paths) >= MAX_LISTED:
                        return paths
                    shown = _shown(path, root, roots)
                    is_secret = not is_folder and SECRET_NAME.fullmatch(path.name)
                    if is_shown_whole(shown) and not is_secret:
                        paths.append(f"{shown}/" if is_folder else shown)
        return paths

    def _real_roots(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(Path(os.path.realpath(root)) for root in self._roots()))


def _shown(path: Path, root: Path, roots: Sequence[Path]) -> str:
    """Write a path from its root; in full where that would mean a file of an earlier root."""
    inside = path.as_posix()[len(root.as_posix().rstrip("/")) + 1 :]
    earlier = roots[: roots.index(root)]
    return str(path) if any(os.path.lexists(one / inside) for one in earlier) else inside


def folders_like(typed: str, base: Path, limit: int) -> list[str]:
    """List folders that continue what was typed, as they would be typed. Blocks.

    Args:
        typed: A path from `base` on, absolute or with ``~``, its last name not complete.
        base: The folder that it starts from.
        limit: How many are listed.
    """
    begun = typed.rpartition("/")[2]
    start = typed.removesuffix(begun)
    try:
        with os.scandir(base / Path(start).expanduser()) as entries:
            found = [
                entry.name
                for entry in islice(entries, MAX_SCANNED)
                if entry.name.startswith(begun)
                and (begun or not entry.name.startswith("."))
                and sanitize_line(entry.name) == entry.name
                and entry.is_dir()
            ]
    except (OSError, ValueError, RuntimeError):  # no such folder, or no such home
        return []
    return [f"{start}{name}/" for name in sorted(found)[:limit]]


class UnreadablePathError(Exception):
    """A file or folder cannot go along; the text says why, after its name."""


class PathReading(Frozen):
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
        except (OSError, ValueError) as error:
            raise UnreadablePathError(getattr(error, "strerror", None) or str(error)) from error
        return PathReading(parts, f"[{name}: {what}]")

    def _read_folder(self, found: WorkspacePath, name: str) -> PathReading:
        files = [path for path, is_folder in self._seen(found) if not is_folder]
        if len(files) > MAX_FILES:
            words = f"it has more than {MAX_FILES} files, the limit for one message"
            raise UnreadablePathError(words)
        parts: list[Part] = []
        read = 0
        listed: list[str] = []
        kept: list[str] = []
        for path in files:
            inside = sanitize_line(path.relative_to(found.root).as_posix())
            if SECRET_NAME.fullmatch(path.name):
                kept.append(inside)
                continue
            try:
                file_parts, _ = self._read_file(path, inside)
            except (OSError, UnreadablePathError) as error:
                if isinstance(error, _TooMuchError):
                    raise UnreadablePathError(f"it is too large in total: {error}") from error
                listed.append(f"{inside} (not read)")
                continue
            listed.append(inside)
            parts += file_parts
            read += 1
        listed += [f"{inside} (not read: it may contain secrets)" for inside in kept]
        opening = TextPart("\n".join([f"[Folder {name or '.'}]", *listed]))
        what = f"{read:,} of {counted(len(files), 'file')}"
        if kept:
            what += f"; not {', '.join(kept)[:MAX_SHOWN]}, which may contain secrets"
        return PathReading((opening, *parts), f"[{name or '.'}/: {what}]")

    def _seen(self, found: WorkspacePath) -> Iterator[tuple[Path, bool]]:
        for number, one in enumerate(self._workspace.walk(found.root, found.path)):
            if number == MAX_SEEN:
                raise UnreadablePathError("it contains too many files and folders")
            yield one

    def _read_file(self, path: Path, name: str) -> tuple[tuple[Part, ...], str]:
        kind = mimetypes.guess_type(path.name)[0] or ""
        if kind in _MEDIA or kind == _DOCUMENT:
            data = self._read(path, self._media_left)
            self._media_left -= len(data)
            media = MediaPart(kind, base64.b64encode(data).decode())
            image = (TextPart(f"[File {name}: {kind}]"), media)
            return image, f"{kind}, {counted(len(data), 'byte')}"
        data = self._read(path, self._text_left)
        read = decoded(data)
        if "\0" in read[:_BINARY_SAMPLE]:
            raise UnreadablePathError("it is not text, an image or a PDF")
        self._text_left -= len(data)
        text, hidden = for_model(read)
        note = " ".join(filter(None, (note_lost(data, text), note_hidden(hidden))))
        said = (f"[File {name}]", text or "[It is empty.]", note, f"[End of {name}]")
        parts = tuple(TextPart(words) for words in said if words)
        return parts, f"{counted(len(text), 'character')} {note}".rstrip()

    def _read(self, path: Path, left: int) -> bytes:
        size = path.stat().st_size
        if size > left:
            raise _TooMuchError(f"{size:,} bytes, and only {left:,} more fit into the message")
        return read_regular(path, left)


class _TooMuchError(UnreadablePathError):
    """A file is larger than what a message has left."""
