"""Read one settings file: JSON with comments and trailing commas, otherwise strict.

One pass over the tokens blanks comments and trailing commas (line numbers stay) and notes where
each key stands and which stand twice; `read_object` then parses the result and refuses what makes a
file dangerous. The pass is linear, so that a hostile file costs no more than its size.
"""

import bisect
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tui.engine.definitions.expansion import KeyPath
from tui.engine.files.atomic import read_text
from tui.model.bounded_json import MAX_DEPTH, JsonError, read_object
from tui.model.frozen import Frozen
from tui.text import sanitize_line

MAX_FILE: Final = 1024 * 1024
"""Largest settings file, in bytes."""

LOCATED_DEPTH: Final = 6
"""Depth down to which the lines of keys are known; the schema is five deep."""

LOCATED_ITEMS: Final = 256
"""Items of one list whose lines are known; for the others it is the line of the list."""

MAX_DOTS: Final = 2_000_000
"""Most dots of TOML, times those of the line that has most."""

MAX_DUPLICATES: Final = 20
"""Duplicate keys that are noted."""

_TOKEN: Final = re.compile(
    r"""
      (?P<string>"(?>(?:[^"\\\n]++|\\.)*)")
    | (?P<comment>//[^\n]*+|/\*(?s:.*?)\*/)
    | (?P<open>[{\[])
    | (?P<close>[}\]])
    | (?P<comma>,)
    | (?P<colon>:)
    | (?P<scalar>[A-Za-z0-9+\-._]++)
    | (?P<space>[ \t\r\n]++)
    """,
    re.VERBOSE,
)
_NOT_SPACE: Final = re.compile(r"[^ \t\r\n]")


class BadDocumentError(Exception):
    """A settings file cannot be used.

    Attributes:
        line: Where, from 1; 0 for the file as a whole.
    """

    def __init__(self, message: str, *, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class SettingsDocument(Frozen):
    """A parsed settings file.

    Attributes:
        content: Its top-level object.
        offsets: Where each key and list item down to `LOCATED_DEPTH` starts, in characters.
        newlines: Offsets of the line ends, ascending.
        duplicates: Keys that stand again in one object, each with its line; the last counts.
        is_empty: Whether it holds no object either.
    """

    content: Mapping[str, Any] = field(repr=False)
    offsets: Mapping[KeyPath, int] = field(repr=False)
    newlines: tuple[int, ...] = field(repr=False)
    duplicates: tuple[tuple[KeyPath, int], ...] = ()
    is_empty: bool = False

    def line_of(self, path: KeyPath) -> int:
        """Return the line (from 1) of a key or its nearest parent; 0 if there is none."""
        while path:
            if path in self.offsets:
                return bisect.bisect_left(self.newlines, self.offsets[path]) + 1
            path = path[:-1]
        return 0


def dotted(path: KeyPath) -> str:
    """Write a path as shown: ``mcpServers.git.args[0]``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return sanitize_line(text.removeprefix("."), 200)


def read_document(path: Path, *, alone: bool = False) -> SettingsDocument | None:
    """Read a settings file; with `alone` only one that nobody else could have written.

    Returns:
        The document; None where there is no such file.

    Raises:
        BadDocumentError: If it cannot be used; the text says why and never quotes a value.
    """
    try:
        text = read_text(path, MAX_FILE, alone=alone)
    except OSError as error:
        reason = sanitize_line(error.strerror or str(error))
        raise BadDocumentError(f"{reason}; the file is ignored") from error
    return parse_document(text) if text is not None else None


def parse_document(text: str) -> SettingsDocument:
    """Parse the text of a settings file. An empty text counts as an empty object.

    Raises:
        BadDocumentError: If it is not JSON with comments, its top is not an object, it nests too
            deep, or it holds NaN, Infinity, a number out of range or half a surrogate pair.
    """
    scan = _Scan(text)
    blanked = scan.run()
    newlines = scan.newlines
    if not _NOT_SPACE.search(blanked):
        return SettingsDocument({}, {}, newlines, is_empty=True)
    try:
        content = read_object(blanked, last_key_counts=True)
    except JsonError as error:
        place = f" at column {error.column}" if error.line else ""
        raise BadDocumentError(f"not valid JSON: {error.reason}{place}", line=error.line) from error
    return SettingsDocument(content, scan.offsets, newlines, tuple(scan.duplicates))


def bare_json(text: str) -> str:
    """Return the text of a settings file with its comments and trailing commas as spaces.

    Raises:
        BadDocumentError: If it is refused.
    """
    return _Scan(text).run()


@dataclass(slots=True)
class _Frame:
    """An open object or list; `step` is the key or index reached in it."""

    keys: set[str] | None
    step: str | int


class _Scan:
    """One pass over the tokens of a text. Most broken syntax is left for the parser to report."""

    def __init__(self, text: str) -> None:
        self.offsets: dict[KeyPath, int] = {}
        self.duplicates: list[tuple[KeyPath, int]] = []
        self.newlines = tuple(match.start() for match in re.finditer("\n", text))
        self._text = text
        self._pieces: list[str] = []
        self._frames: list[_Frame] = []
        self._previous = ""
        self._comma: int | None = None

    def run(self) -> str:
        """Check the text.

        Returns:
            The text with comments and trailing commas replaced by spaces.

        Raises:
            BadDocumentError: If it is refused.
        """
        at = 0
        while at < len(self._text):
            if (match := _TOKEN.match(self._text, at)) is None:
                raise self._bad(_syntax_words(self._text[at : at + 2]), at)
            kind, token = match.lastgroup or "", match[0]
            self._pieces.append(_blank(token) if kind == "comment" else token)
            if kind not in {"comment", "space"}:
                self._take(kind, token, at)
            at = match.end()
        return "".join(self._pieces)

    def _take(self, kind: str, token: str, at: int) -> None:
        """Follow the structure by one token."""
        match kind:
            case "open":
                self._note_item(at)
                self._frames.append(_Frame(set(), "") if token.startswith("{") else _Frame(None, 0))
            case "close":
                if self._previous == "comma" and self._comma is not None:
                    self._pieces[self._comma] = " "
                if self._frames:
                    self._frames.pop()
            case "comma":
                self._comma = len(self._pieces) - 1 if self._previous == "value" else None
                if self._frames and isinstance(index := self._frames[-1].step, int):
                    self._frames[-1].step = index + 1
            case "string":
                keys = self._frames[-1].keys if self._frames else None
                if keys is not None and self._previous in {"open", "comma"}:
                    self._note_key(token, keys, at)
                else:
                    self._note_item(at)
            case "scalar":
                self._note_item(at)
        self._previous = "value" if kind in {"close", "string", "scalar"} else kind

    def _note_key(self, token: str, keys: set[str], at: int) -> None:
        """Record the position of a key, and a duplicate."""
        self._frames[-1].step = key = _unquote(token)
        if key in keys and len(self.duplicates) < MAX_DUPLICATES:
            path = tuple(frame.step for frame in self._frames)
            self.duplicates.append((path, bisect.bisect_left(self.newlines, at) + 1))
        keys.add(key)
        self._note(at)

    def _note_item(self, at: int) -> None:
        """Remember where an item of a list stands."""
        index = self._frames[-1].step if self._frames else ""
        if isinstance(index, int) and index < LOCATED_ITEMS:
            self._note(at)

    def _note(self, at: int) -> None:
        if len(self._frames) <= LOCATED_DEPTH:
            self.offsets[tuple(frame.step for frame in self._frames)] = at

    def _bad(self, message: str, at: int) -> BadDocumentError:
        return BadDocumentError(message, line=bisect.bisect_left(self.newlines, at) + 1)


def _blank(comment: str) -> str:
    """Replace a comment with spaces, keeping line ends."""
    return "\n".join(" " * len(line) for line in comment.split("\n"))


def _unquote(token: str) -> str:
    """Return the value of a string token; the raw text if it is broken."""
    if "\\" not in token:
        return token[1:-1]
    try:
        return str(json.loads(token))
    except ValueError:
        return token[1:-1]


def _syntax_words(ahead: str) -> str:
    """Return a message for text that is no token; `ahead` is its first two characters."""
    match ahead[:1]:
        case '"':
            return "not valid JSON: a string is not closed on its line"
        case "/" if ahead == "/*":
            return "not valid JSON: a comment is never closed"
        case "'":
            return "not valid JSON: strings need double quotes"
        case character:
            return f"not valid JSON: unexpected {sanitize_line(character) or 'character'}"


def read_toml(text: str) -> dict[str, Any]:
    """Parse TOML. A key costs memory for the square of its parts, those of its table included.

    Raises:
        ValueError: If it is none, or has keys of hundreds of parts.
    """
    dots = [line.count(".") for line in text.split("\n")]
    if max(dots) * sum(dots) > MAX_DOTS:
        raise ValueError("Its keys have too many parts.")
    return tomllib.loads(text)


def read_yaml(text: str) -> object:
    """Parse YAML of plain values.

    A few aliases can stand for millions, so there may be none; nesting costs its square.

    Raises:
        ValueError: If it is anything else.
    """
    import yaml  # noqa: PLC0415 - rarely needed

    depth = 0
    try:
        for event in yaml.parse(text, yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > MAX_DEPTH:
                raise ValueError(f"It has aliases or more than {MAX_DEPTH} levels.")
        return yaml.safe_load(text)
    except (yaml.YAMLError, ArithmeticError, AttributeError, LookupError) as error:  # odd tags
        raise ValueError("This is no YAML of plain values.") from error
