"""Reads other clients' files, and lists the servers in them."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from tui.engine.files.atomic import UnfitFileError, read_regular
from tui.engine.settings.entry_validation import known_part, salvaged
from tui.engine.settings.importers.clients import SERVER_KEYS, TITLES, Machine
from tui.engine.settings.importers.translation import Translation
from tui.engine.settings.raw_entries import server_id
from tui.engine.settings.sources.document import BadDocumentError, parse_document
from tui.engine.settings.sources.locations import shown_path
from tui.engine.settings.sources.source import MAX_SERVERS, validation_problems
from tui.model.frozen import dataclass

MAX_CLIENT_FILE: Final = 16 * 1024 * 1024
"""Largest file, in bytes: that of Claude Code also holds what it did."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A server that another client has.

    Attributes:
        client: Whose it is.
        file: The file, as shown.
        name: Its name, as ours.
        entry: Its entry for our settings; empty if there can be none.
        warnings: What does not come along, and what it needs.
        problem: Why there can be no entry, or an empty string.
    """

    client: str
    file: str
    name: str
    entry: Mapping[str, Any] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A file that was read.

    Attributes:
        client: Whose it is.
        path: The file.
        file: The same, as shown.
        candidates: Its servers.
        problem: Why it cannot be used, or an empty string.
    """

    client: str
    path: Path
    file: str
    candidates: tuple[Candidate, ...] = ()
    problem: str = ""


def find_files(machine: Machine, client: str | None = None) -> Iterator[ClientFile]:
    """Read the files that there are of one client, or of all. Blocks."""
    for name in TITLES if client is None else (client,):
        for path in dict.fromkeys(machine.places(name)):  # the home may be the opened folder
            if (found := read_client_file(machine, name, path)) is not None:
                yield found


def read_client_file(machine: Machine, client: str, path: Path) -> ClientFile | None:
    """Read a file of a client; None if it is absent. Blocks."""
    shown = shown_path(path, machine.home)
    try:
        content = _content(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (UnfitFileError, OSError, ValueError, RecursionError, BadDocumentError) as error:
        line = getattr(error, "line", 0)
        reason = getattr(error, "strerror", None) or str(error)
        return ClientFile(client, path, shown, (), f"line {line}: {reason}" if line else reason)
    servers = {**_servers(client, content), **_of_folder(machine, content)}
    inputs = _inputs(content)
    found = [
        _candidate(Translation(client, machine.folder, machine.home, inputs), shown, name, raw)
        for name, raw in list(servers.items())[:MAX_SERVERS]
    ]
    return ClientFile(client, path, shown, tuple(found))


def _content(path: Path) -> Mapping[str, Any]:
    text = read_regular(path, MAX_CLIENT_FILE).decode("utf-8-sig")
    return tomllib.loads(text) if path.suffix == ".toml" else parse_document(text).content


def _servers(client: str, content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the servers by their names; VS Code once kept them in its settings."""
    key = SERVER_KEYS.get(client, "mcpServers")
    servers = content.get(key, content.get("mcpServers"))
    return servers if isinstance(servers, dict) else {}


def _of_folder(machine: Machine, content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what Claude Code keeps in the user's file for the opened folder alone."""
    projects = content.get("projects")
    own = projects.get(str(machine.folder)) if isinstance(projects, dict) else None
    servers = own.get("mcpServers") if isinstance(own, dict) else None
    return servers if isinstance(servers, dict) else {}


def _inputs(content: Mapping[str, Any]) -> Mapping[str, str]:
    inputs = content.get("inputs")
    listed = [one for one in inputs if isinstance(one, dict)] if isinstance(inputs, list) else []
    return {str(one.get("id")): str(one.get("description") or "") for one in listed}


def _candidate(translation: Translation, file: str, name: str, raw: object) -> Candidate:
    ours = server_id(name)
    blank = Candidate(translation.client, file, ours or "unnamed")
    if not ours or not isinstance(raw, dict):
        problem = "its name cannot be shown" if not ours else "its entry must be an object"
        return Candidate(blank.client, file, blank.name, problem=problem)
    entry = translation.entry(raw)
    if not entry:
        problem = "it names neither a command nor an address; an extension may bring it"
        return Candidate(blank.client, file, ours, problem=problem)
    for key in ("command", "url", "httpUrl"):
        if not isinstance(entry.get(key, ""), str):  # a number would pass for one
            return Candidate(blank.client, file, ours, problem=f"{key}: it must be a text")
    try:
        _, slips = salvaged(known_part(entry))
    except ValidationError as error:
        keys, words = validation_problems(error)[0]
        where = ".".join(map(str, keys))
        return Candidate(blank.client, file, ours, problem=f"{where}: {words}".removeprefix(": "))
    notes = [f"{'.'.join(map(str, keys))}: {words}" for keys, words in slips]
    return Candidate(blank.client, file, ours, entry, (*translation.warnings, *notes))
