"""From another client's entry of a server to ours.

What says how to reach the server is taken over, and what narrows it. What lets tools run
without asking is not: that is said anew here.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tui.engine.definitions.expansion import references_in
from tui.engine.settings.importers.clients import LITERAL
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
_TYPES: Final[Mapping[str, str]] = {
    "local": "stdio",
    "remote": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
}
_REFERENCE: Final = re.compile(r"\$\{(?P<kind>[A-Za-z]+)(?::(?P<name>[^}]*))?\}")
"""``${input:token}``, ``${env:NAME}``, ``${workspaceFolder}``."""


@dataclass
class Translation:
    """One entry on its way.

    Attributes:
        client: Whose it is.
        folder: The folder that ``${workspaceFolder}`` means.
        home: The user's home.
        inputs: What the client asks the user for, by id, each with its description.
        warnings: What the user should know.
    """

    client: str
    folder: Path
    home: Path
    inputs: Mapping[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def entry(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return our entry; empty if it does not say how to reach the server."""
        raw = _renamed(raw)
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
            raw = {**raw, "type": _TYPES.get(kind, kind)}
        if not any(raw.get(key) for key in ("command", "url", "httpUrl")):
            return {}
        self._name_left_out(raw)
        kept = {key: value for key, value in raw.items() if key in _KEPT and value is not None}
        if isinstance(kept.get("command"), str) and kept.get("type") == "stdio":
            del kept["type"]
        filled: dict[str, Any] = self._filled(kept)
        return filled

    def _name_left_out(self, raw: Mapping[str, Any]) -> None:
        permissions = sorted(_PERMISSIONS & raw.keys())
        if any(raw[key] for key in permissions):
            self._warn(f"{', '.join(permissions)} is left out: gemdeck asks about its tools.")
        if raw.get("envFile"):
            self._warn("envFile is left out: write its variables into env.")
        known = _KEPT | _PERMISSIONS | _SILENT | {"envFile"}
        if unknown := sorted(str(key) for key in raw.keys() - known):
            self._warn(f"Left out, since gemdeck has no such key: {', '.join(unknown)}.")

    def _filled(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Write the client's references as ours."""
        match value:
            case str():
                return _REFERENCE.sub(self._reference, value)
            case list():
                return [self._filled(item) for item in value]
            case dict():
                return {key: self._filled(item) for key, item in value.items()}
        return value

    def _reference(self, found: re.Match[str]) -> str:
        kind, name = found["kind"], found["name"]
        if kind == "input" and name:
            return self._asked(name)
        if kind == "env" and name:
            return f"${{{name}}}"
        fixed: Mapping[str, Callable[[], str]] = {
            "workspaceFolder": lambda: str(self.folder),
            "workspaceRoot": lambda: str(self.folder),
            "workspaceFolderBasename": lambda: self.folder.name,
            "userHome": lambda: str(self.home),
            "pathSeparator": lambda: "/",
        }
        if kind in fixed and name is None:
            return fixed[kind]()
        if name is not None and not name.startswith("-"):  # ${NAME:-default} is ours as well
            self._warn(f"gemdeck does not know {found.group()}; it stays as it is.")
        return found.group()

    def _asked(self, name: str) -> str:
        """Take a variable in place of what the client would ask for."""
        variable = re.sub(r"\W", "_", name).upper()
        what = self.inputs.get(name, "")
        self._warn(
            f"Set the variable {variable}, which the client asks for"
            + (f" as “{what}”." if what else ".")
        )
        return f"${{{variable}}}"

    def _warn(self, text: str) -> None:
        if (line := sanitize_line(text, 500)) not in self.warnings:
            self.warnings.append(line)


def _renamed(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Name keys as we do that clients spell otherwise."""
    names = {"serverUrl": "url", "transport": "type", "disabledTools": "excludeTools"}
    return {names.get(key, key): value for key, value in raw.items()}


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
