"""Begin a settings file, and change values in it; comments, order and other keys stay.

The text is changed where it must be and nowhere else. Every edit is read again before it is
written: what it does not say the same of is not written.
"""

import json
import re
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import tui
from tui.engine.files.atomic import locked, read_text, write_private
from tui.engine.files.paths import GEMINI_FOLDER
from tui.engine.settings.sources.document import (
    MAX_FILE,
    BadDocumentError,
    SettingsDocument,
    bare_json,
    parse_document,
    read_document,
)
from tui.engine.settings.sources.source import FILE_NAME

SERVERS: Final = "mcpServers"
EXCLUDED: Final = "excludeTools"
_INDENT: Final = "  "
_SKIPPED: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
"""White space and comments, in a text that was parsed."""


class EditError(Exception):
    """A settings file cannot be edited; the text says why."""


class NoSuchServerError(EditError):
    """There is no entry of a name; `known` are the names there are."""

    def __init__(self, known: Collection[str]) -> None:
        super().__init__("it has no such server.")
        self.known = known


def add_server(path: Path, name: str, entry: Mapping[str, Any], replaces: object = None) -> None:
    """Write an entry to a settings file, which is made if there is none. Blocks.

    Args:
        path: The file.
        name: The name of the server.
        entry: Its entry.
        replaces: The entry of that name which this one takes the place of.

    Raises:
        EditError: If the file has another entry of that name, or cannot be edited.
    """

    def add(text: str, document: SettingsDocument) -> tuple[str, dict[str, Any]]:
        servers = _servers(document)
        if name in servers and servers[name] != replaces:
            raise EditError(f"{name} already exists.")
        return _with_value(text, document, dict(entry), SERVERS, name)

    _edit(path, add)


def remove_server(path: Path, name: str) -> None:
    """Remove an entry from a settings file. Blocks.

    Raises:
        NoSuchServerError: If the file has no such entry.
        EditError: If it cannot be edited.
    """
    if not path.exists():
        raise NoSuchServerError(())

    def remove(text: str, document: SettingsDocument) -> tuple[str, dict[str, Any]]:
        if name not in (servers := _servers(document)):
            raise NoSuchServerError(servers)
        return _with_value(text, document, None, SERVERS, name)

    _edit(path, remove)


def set_excluded(path: Path, name: str, tools: Sequence[str]) -> None:
    """Let a server's entry leave out just these tools. Blocks.

    Raises:
        EditError: If the file has no such entry, or cannot be edited.
    """

    def change(text: str, document: SettingsDocument) -> tuple[str, dict[str, Any]]:
        entry, keys = _servers(document)[name], (SERVERS, name, EXCLUDED)
        if EXCLUDED not in entry:
            return _with_value(text, document, [*tools], *keys)
        listed = entry[EXCLUDED]
        for at in reversed([at for at, one in enumerate(listed) if one not in tools]):
            text = _without_member(text, document, *keys, at)
        for one in (one for one in tools if one not in listed):
            start = _value_start(text, document, *keys)
            text = _with_member(text, start, "", one, _INDENT * 3)
        return text, _put(document.content, [*tools], *keys)

    _edit(path, change)


def set_value(path: Path, value: object, *keys: str) -> None:
    """Write the value of a key, within the objects of the keys before it; None removes it. Blocks.

    Raises:
        EditError: If the file cannot be edited, or has no such key to remove.
    """
    _edit(path, lambda text, document: _with_value(text, document, value, *keys))


def _edit(
    path: Path, change: Callable[[str, SettingsDocument], tuple[str, dict[str, Any]]]
) -> None:
    """Change a file under its lock, so that two edits at once both count."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path):
            text, mode = _read(path)
            document = parse_document(text)
            if document.duplicates:
                raise EditError("it contains a duplicate key; fix that first.")
            edited, content = change(text, document)
            if parse_document(edited).content != content:
                raise EditError("its format is unusual; edit it by hand.")
            write_private(path, edited.encode("utf-8"))
            if mode is not None:
                path.chmod(mode)
    except BadDocumentError as error:
        raise EditError(f"line {error.line}: {error}" if error.line else str(error)) from error
    except (OSError, ValueError) as error:
        raise EditError(getattr(error, "strerror", None) or str(error)) from error


def _read(path: Path) -> tuple[str, int | None]:
    """Return the text of a file and its permissions; nothing where there is none."""
    text = read_text(path, MAX_FILE)
    return ("", None) if text is None else (text, stat.S_IMODE(path.stat().st_mode))


def servers_in(path: Path) -> Mapping[str, Any]:
    """Return the entries of a settings file; none if it is absent. Blocks.

    Raises:
        EditError: If it cannot be read.
    """
    try:
        document = read_document(path)
    except BadDocumentError as error:
        raise EditError(f"line {error.line}: {error}" if error.line else str(error)) from error
    return _servers(document) if document is not None else {}


def _servers(document: SettingsDocument) -> Mapping[str, Any]:
    servers = document.content.get(SERVERS, {})
    if not isinstance(servers, dict):
        raise EditError(f"{SERVERS} must be an object: {{ … }}.")
    return servers


def _with_value(
    text: str, document: SettingsDocument, value: object, *keys: str
) -> tuple[str, dict[str, Any]]:
    """Return a text with the value of a key, or for None without the key, and what it then says."""
    content = _put(document.content, value, *keys)
    if value is None:
        return _without_member(text, document, *keys), content
    if keys in document.offsets:
        start = _value_start(text, document, *keys)
        _, end = json.JSONDecoder().raw_decode(bare_json(text), start)
        return f"{text[:start]}{_indented(value, text, _INDENT * len(keys))}{text[end:]}", content
    depth = next(n for n in reversed(range(len(keys))) if not n or keys[:n] in document.offsets)
    start = _value_start(text, document, *keys[:depth]) if depth else bare_json(text).find("{")
    if start < 0:  # at most comments
        return text + json.dumps(content, indent=2, ensure_ascii=False) + "\n", content
    for name in reversed(keys[depth + 1 :]):
        value = {name: value}
    return _with_member(text, start, keys[depth], value, _INDENT * depth), content


def _put(content: Mapping[str, Any], value: object, name: str, *rest: str) -> dict[str, Any]:
    """Return an object with another value at its end of some keys; None removes it."""
    if rest:
        inner = content.get(name, {})
        if not isinstance(inner, dict):
            raise EditError(f"{name} must be an object: {{ … }}.")
        value = _put(inner, value, *rest)
    elif value is None and name not in content:
        raise EditError(f"it has no {name}.")
    changed = {**content, name: value}
    if value is None:
        del changed[name]
    return changed


def _value_start(text: str, document: SettingsDocument, *keys: str | int) -> int:
    """Return where the value of a key starts."""
    _, key_end = json.JSONDecoder().raw_decode(text, document.offsets[keys])
    return _skip(text, _skip(text, key_end) + 1)  # behind the colon


def _skip(text: str, at: int) -> int:
    found = _SKIPPED.match(text, at)
    return found.end() if found is not None else at


def _with_member(text: str, start: int, name: str, value: object, outer: str) -> str:
    """Add a member at the end of the object that starts at an offset; a list's has no name."""
    bare = bare_json(text)
    _, end = json.JSONDecoder().raw_decode(bare, start)
    last = len(bare[: end - 1].rstrip())
    rest = len(text[: end - 1].rstrip())
    is_first = last == start + 1
    has_comma = text[_skip(text, last) : end - 1].startswith(",")
    comma = "" if is_first or has_comma else ","
    indent = outer + _INDENT
    newline = _newline(text)
    member = f"{json.dumps(name)}: " * bool(name) + _indented(value, text, indent)
    closing = text[rest:] if "\n" in text[rest:end] else f"{newline}{outer}{text[end - 1 :]}"
    return f"{text[:last]}{comma}{text[last:rest]}{newline}{indent}{member}{closing}"


def _indented(value: object, text: str, indent: str) -> str:
    """Write a value as it stands in a text, its further lines indented."""
    lines = json.dumps(value, indent=2, ensure_ascii=False)
    return lines.replace("\n", f"{_newline(text)}{indent}")


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _without_member(text: str, document: SettingsDocument, *keys: str | int) -> str:
    """Remove a member of an object or an item of a list, its line and one comma."""
    start = value = document.offsets[keys]
    bare = bare_json(text)
    if isinstance(keys[-1], str):
        value = _value_start(text, document, *keys)
    _, end = json.JSONDecoder().raw_decode(bare, value)
    before, behind = text[:start], text[end:]
    after = _skip(text, end) - end
    if behind[after : after + 1] == ",":
        behind = behind[:after] + behind[after + 1 :]
    elif bare[:start].rstrip().endswith(","):
        comma = len(bare[:start].rstrip()) - 1
        before = text[:comma] + text[comma + 1 : start]
    line = before.rstrip(" \t")
    is_last_of_line = behind.lstrip(" \t")[:1] in {"\r", "\n", "}"}
    return (line.removesuffix("\n").removesuffix("\r") if is_last_of_line else before) + behind


SAMPLE: Final = "settings.sample.json"

STARTER: Final = """\
{
  // Your MCP servers by name. gemdeck reloads this file when you save it.
  "mcpServers": {
    // "files": {
    //   "command": "npx",
    //   "args": ["-y", "@modelcontextprotocol/server-filesystem", "${HOME}/notes"],
    // },
  },
}
"""


def begin_settings(home: Path) -> Path:
    """Write the user's settings file if there is none, and return its path.

    Raises:
        OSError: If it cannot be written.
    """
    path = home / GEMINI_FOLDER / FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(STARTER)
    except FileExistsError:
        pass
    except OSError:  # on a full disk, half a file would stay in the way
        path.unlink(missing_ok=True)
        raise
    return path


def sample_settings() -> str:
    """Return the sample of all keys, which is beside the package or in it."""
    package = Path(tui.__file__).parent
    inside = package / SAMPLE
    return (inside if inside.exists() else package.parent / SAMPLE).read_text("utf-8")
