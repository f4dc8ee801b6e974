"""Reads other clients' files, and lists the servers in them."""

import math
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from tui.engine.definitions.expansion import references_in, secret_names
from tui.engine.definitions.folder_code import FOLDER_NAME
from tui.engine.files.atomic import read_regular
from tui.engine.settings.entries import known_part, salvaged, server_id
from tui.engine.settings.sources.document import (
    BadDocumentError,
    parse_document,
)
from tui.engine.settings.sources.source import (
    FILE_NAME,
    MAX_SERVERS,
    SHARED_FILE_NAME,
    shown_path,
    validation_problems,
)
from tui.model.bounded_json import mapped
from tui.model.frozen import Frozen, dataclass
from tui.text import sanitize_line

_KEPT: Final = frozenset(
    {
        *("command", "args", "env", "cwd", "url", "httpUrl", "headers", "type", "timeout"),
        *("description", "includeTools", "excludeTools", "disabled", "oauth"),
        *("authProviderType", "targetAudience", "targetServiceAccount"),
    }
)
_PERMISSIONS: Final = frozenset({"trust", "alwaysAllow", "autoApprove", "auto_approve"})
_SILENT: Final = frozenset({"source", "enabled", "settings", "gallery", "version", "id", "name"})

TYPES: Final[Mapping[str, str]] = {
    "local": "stdio",
    "remote": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
}
"""Other names of transports, and ours."""

_REFERENCE: Final = re.compile(r"\$\{(?P<kind>[A-Za-z]+)(?::(?P<name>[^}]*))?\}")
"""``${input:token}``, ``${env:NAME}``, ``${workspaceFolder}``."""

MAX_CLIENT_FILE: Final = 16 * 1024 * 1024
"""Largest file, in bytes: that of Claude Code also holds what it did."""


class Machine(Frozen):
    """Where files are looked for.

    Attributes:
        home: The user's home.
        folder: The opened folder.
        environ: Variables that move files.
        platform: As `sys.platform`.
    """

    home: Path
    folder: Path
    environ: Mapping[str, str]
    platform: str = sys.platform

    def configuration(self) -> Path:
        """Return the folder in which programs keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self._named("XDG_CONFIG_HOME", self.home / ".config")

    def _named(self, variable: str, default: Path) -> Path:
        return Path(self.environ.get(variable) or default)

    def places(self, client: str) -> Iterator[Path]:
        """Return the files in which a client may list servers: the user's, then the folder's."""
        home, folder, settings = self.home, self.folder, self.configuration()
        match client:
            case "claude-desktop":
                yield settings / "Claude" / "claude_desktop_config.json"
            case "claude-code":
                yield self._named("CLAUDE_CONFIG_DIR", home) / ".claude.json"
                yield folder / SHARED_FILE_NAME
            case "vscode":
                yield settings / "Code" / "User" / "mcp.json"
                yield folder / ".vscode" / "mcp.json"
            case "cursor":
                yield home / ".cursor" / "mcp.json"
                yield folder / ".cursor" / "mcp.json"
            case "windsurf":
                yield home / ".codeium" / "windsurf" / "mcp_config.json"
            case "zed":
                yield self._named("XDG_CONFIG_HOME", home / ".config") / "zed" / FILE_NAME
                yield folder / ".zed" / FILE_NAME
            case "codex":
                yield self._named("CODEX_HOME", home / ".codex") / "config.toml"
                yield folder / ".codex" / "config.toml"
            case "gemini-cli":
                yield home / FOLDER_NAME / FILE_NAME
                yield folder / FOLDER_NAME / FILE_NAME


TITLES: Final[Mapping[str, str]] = {
    "claude-desktop": "Claude Desktop",
    "claude-code": "Claude Code",
    "vscode": "VS Code",
    "cursor": "Cursor",
    "windsurf": "Windsurf",
    "zed": "Zed",
    "codex": "Codex",
    "gemini-cli": "gemini-cli",
}
"""The clients, and what they are called."""

SERVER_KEYS: Final[Mapping[str, str]] = {
    "vscode": "servers",
    "zed": "context_servers",
    "codex": "mcp_servers",
}
"""The key under which a client lists its servers; the others use ``mcpServers``."""

LITERAL: Final = frozenset({"claude-desktop", "windsurf", "zed", "codex"})
"""Clients that do not fill in ``$NAME``."""


_RENAMED: Final = {"serverUrl": "url", "transport": "type", "disabledTools": "excludeTools"}
"""Keys that clients spell otherwise, and ours."""


@dataclass(slots=True)
class Translation:
    """One entry on its way.

    Attributes:
        client: Whose it is; empty where nobody knows.
        machine: What its references mean.
        warnings: What the user should know.
    """

    client: str
    machine: Machine
    warnings: list[str] = field(default_factory=list)

    def entry(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return our entry; empty if it does not say how to reach the server."""
        raw = {_RENAMED.get(key, key): value for key, value in raw.items()}
        if self.client in LITERAL and (names := references_in(dict(raw))):
            words = f"{self.client} leaves ${', $'.join(names)} as it is; gemdeck fills it in."
            self._warn(words)
        if self.client == "codex":
            raw = _from_codex(raw)
        if self.client == "zed" and isinstance(command := raw.get("command"), dict):
            raw = {**raw, **command, "command": command.get("path")}
        if raw.get("enabled") is False:
            raw = {**raw, "disabled": True}
        if isinstance(kind := raw.get("type"), str):
            raw = {**raw, "type": TYPES.get(kind, kind)}
        if not any(raw.get(key) for key in ("command", "url", "httpUrl")):
            return {}
        self._name_left_out(raw)
        kept = {key: value for key, value in raw.items() if key in _KEPT and value is not None}
        if isinstance(kept.get("command"), str) and kept.get("type") == "stdio":
            del kept["type"]
        filled: dict[str, Any] = mapped(kept, self._filled)
        return filled

    def _name_left_out(self, raw: Mapping[str, Any]) -> None:
        permissions = sorted(_PERMISSIONS & raw.keys())
        if any(raw[key] for key in permissions):
            self._warn(f"{', '.join(permissions)} is left out: gemdeck asks about its tools.")
        if raw.get("envFile"):
            self._warn("envFile is left out: write its variables into env.")
        known = _KEPT | _PERMISSIONS | _SILENT | {"envFile"}
        if left := ", ".join(sorted(map(str, raw.keys() - known))):
            self._warn(f"Left out: {left}.")

    def _filled(self, value: object) -> object:
        """Write the client's references in a text as ours."""
        return _REFERENCE.sub(self._reference, value) if isinstance(value, str) else value

    def _reference(self, found: re.Match[str]) -> str:
        kind, name = found["kind"], found["name"]
        if kind == "input" and name:
            return self._asked(name)
        if kind == "env" and name:
            return f"${{{name}}}"
        folder = self.machine.folder
        fixed = {
            "workspaceFolder": str(folder),
            "workspaceRoot": str(folder),
            "workspaceFolderBasename": folder.name,
            "userHome": str(self.machine.home),
            "pathSeparator": "/",
        }
        if kind in fixed and name is None:
            return fixed[kind]
        # ${NAME:-default} and ${keyring:NAME} are ours as well
        if name is not None and not name.startswith("-") and kind != "keyring":
            self._warn(f"gemdeck does not know {found.group()}; it stays as it is.")
        return found.group()

    def _asked(self, name: str) -> str:
        """Take a variable in place of what the client would ask for."""
        variable = re.sub(r"\W", "_", name).upper()
        self._warn(f"Set the variable {variable}, which the client asks for.")
        return f"${{{variable}}}"

    def _warn(self, text: str) -> None:
        if (line := sanitize_line(text, 500)) not in self.warnings:
            self.warnings.append(line)


def _from_codex(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Name the keys of Codex as we do; seconds become milliseconds."""
    entry = dict(raw)
    headers: dict[str, Any] = dict(_object(entry.pop("http_headers", None)))
    for name, variable in _object(entry.pop("env_http_headers", None)).items():
        headers[name] = f"${{{variable}}}"
    if variable := entry.pop("bearer_token_env_var", None):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    passed = entry.pop("env_vars", None)
    names = [name for name in passed if isinstance(name, str)] if isinstance(passed, list) else []
    env = {**{name: f"${{{name}}}" for name in names}, **_object(entry.get("env"))}
    seconds = entry.pop("tool_timeout_sec", None)
    entry.pop("startup_timeout_sec", None)
    entry |= {
        "headers": headers or None,
        "env": env or None,
        "timeout": _milliseconds(seconds),
        "includeTools": entry.pop("enabled_tools", None),
        "excludeTools": entry.pop("disabled_tools", None),
        "type": "http" if entry.get("url") else None,
    }
    return {key: value for key, value in entry.items() if value is not None}


def _milliseconds(seconds: object) -> int | None:
    """Return a time of TOML, which knows ``inf`` and ``nan``, as ours; None if it is none."""
    if isinstance(seconds, int | float) and 0 < seconds < math.inf:
        return round(seconds * 1000)
    return None


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


class Candidate(Frozen):
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


class ClientFile(Frozen):
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
        text = read_regular(path, MAX_CLIENT_FILE).decode("utf-8-sig")
        is_toml = path.suffix == ".toml"
        content = tomllib.loads(text) if is_toml else parse_document(text).content
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError, BadDocumentError) as error:
        line = getattr(error, "line", 0)
        reason = sanitize_line(getattr(error, "strerror", None) or str(error))
        return ClientFile(client, path, shown, (), f"line {line}: {reason}" if line else reason)
    # VS Code once kept its servers in its settings
    listed = content.get(SERVER_KEYS.get(client, "mcpServers"), content.get("mcpServers"))
    # what Claude Code keeps in the user's file for the opened folder alone
    own = _object(_object(content.get("projects")).get(str(machine.folder))).get("mcpServers")
    servers = {**_object(listed), **_object(own)}
    return ClientFile(client, path, shown, candidates_in(servers, machine, client, shown))


def candidates_in(
    servers: Mapping[str, Any], machine: Machine, client: str, file: str
) -> tuple[Candidate, ...]:
    """Write the entries of a client by their names as ours; `file` is where they stand."""
    some = list(servers.items())[:MAX_SERVERS]
    return tuple(_candidate(Translation(client, machine), file, name, raw) for name, raw in some)


def _candidate(translation: Translation, file: str, name: str, raw: object) -> Candidate:
    ours = server_id(name)
    blank = Candidate(translation.client, file, ours or "unnamed")
    if not ours or not isinstance(raw, dict):
        problem = "its name cannot be shown" if not ours else "its entry must be an object"
        return replace(blank, problem=problem)
    if translation.client and secret_names(raw):
        return replace(blank, problem="it names a secret of yours; write ${keyring:…} yourself")
    entry = translation.entry(raw)
    if not entry:
        problem = "it names neither a command nor an address; an extension may bring it"
        return replace(blank, problem=problem)
    for key in ("command", "url", "httpUrl"):
        if not isinstance(entry.get(key, ""), str):  # a number would pass for one
            return replace(blank, problem=f"{key}: it must be a text")
    try:
        _, slips = salvaged(known_part(entry))
    except ValidationError as error:
        keys, words = validation_problems(error)[0]
        where = ".".join(map(str, keys))
        return replace(blank, problem=f"{where}: {words}".removeprefix(": "))
    notes = [f"{'.'.join(map(str, keys))}: {words}" for keys, words in slips]
    return replace(blank, entry=entry, warnings=(*translation.warnings, *notes))
