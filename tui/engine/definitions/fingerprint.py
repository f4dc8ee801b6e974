"""Fingerprints of servers: consent binds to them, never to a name.

Everything is hashed as one structured value, so that two different definitions never collide.
The hash is keyed with a salt of this installation, so that a reader of a state file cannot find
a short password by trying.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

from tui.engine.definitions.definition import Launch, ServerDefinition
from tui.engine.definitions.programs import FULL_PATH, find_program, guarded_folders, search_path
from tui.engine.files.state_file import StateFile
from tui.model.bounded_json import text_in
from tui.model.frozen import Frozen
from tui.model.servers import Origin

SALT_FILE: Final = "salt.json"
"""Where the salt of this installation is kept, in the state folder."""

SALT_BYTES: Final = 32
"""Length of a salt, in bytes."""

SIGN_IN_KEYS: Final = ("oauth", "authProviderType", "targetAudience", "targetServiceAccount")
"""Keys of an entry that say how gemdeck signs in to the server."""

_RUN_KEYS: Final = frozenset(
    {"command", "args", "env", "cwd", "url", "httpUrl", "headers", "type", "transportType"}
    | {"headersCommand", "tls", "timeout", "includeTools", "excludeTools", "disabled", "enabled"}
    | {"sandbox"}
    | {*SIGN_IN_KEYS}
)

_PURPOSE: Final = "server-1"
_PATH: Final = "PATH"


def load_salt(file: StateFile) -> bytes:
    """Return the salt of this installation, made at random the first time.

    Where it cannot be kept, it holds for this run. A salt that is lost, or that others could have
    read, voids what rested on it: everything is asked about again. Blocks.
    """

    def keep(content: dict[str, Any]) -> dict[str, Any]:
        return content if _salt_in(content) else {"salt": fresh}

    fresh = secrets.token_hex(SALT_BYTES)
    return _salt_in(file.load() or {}) or _salt_in(file.update(keep)) or bytes.fromhex(fresh)


def canonical(value: object) -> bytes:
    """Write a JSON value so that equal values give equal bytes, and different ones do not.

    Half surrogate pairs, which undecodable bytes of the environment become, are escaped.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode("ascii")


def digest(value: object, salt: bytes) -> str:
    """Return the salted SHA-256 (HMAC, hex) of a JSON value."""
    return hmac.new(salt, canonical(value), hashlib.sha256).hexdigest()


def server_fingerprint(
    definition: ServerDefinition, salt: bytes, folder: tuple[object, ...] | None = None
) -> str:
    """Return the fingerprint of a server.

    It covers the transport, the program as resolved, arguments, working folder, variables,
    address, headers, sign-in and the file the server stands in. What a server is called, where
    it starts, which of its tools are offered and whether they are trusted is no part of what it is.

    Args:
        definition: The server with its program.
        salt: The salt of this installation.
        folder: The identity of the folder that brings the server, for a project's. Its entry
            then counts as written, with its references: what the user's variables hold on a
            given day does not make it another server. What the folder itself chooses does: the
            values that it fills in.
    """
    entry, launch, endpoint = definition.entry, definition.launch, definition.endpoint
    written = entry.written
    content: dict[str, object] = {
        "purpose": _PURPOSE,
        "transport": definition.transport.value,
        "program": launch.program,
        "source": [entry.origin.value, entry.source, entry.extension],
        "sign-in": {key: written[key] for key in SIGN_IN_KEYS if key in written},
    }
    if folder is not None:
        preview = entry.preview
        content |= {
            "folder": list(folder),
            "written": dict(effective_entry(written)),
            "brought": dict(preview.brought) if preview is not None else {},
            "defaults": list(map(list, preview.defaults)) if preview is not None else [],
            "files": [],  # as it was while these were hashed, so that grants go on counting
        }
        if added := launch.inheritance.added():
            content["inherits"] = added
    else:
        content |= {
            "command": launch.command,
            "args": list(launch.args),
            "cwd": str(launch.cwd) if launch.cwd is not None else None,
            "env": dict(launch.env),
            "url": endpoint.url,
            "sse": endpoint.sse_fallback,
            "headers": dict(endpoint.headers),
        }
        content |= {"tls": endpoint.tls.model_dump()} if endpoint.tls is not None else {}
        if (box := launch.sandbox) is not None:
            paths = [list(map(str, one)) for one in (box.read, box.write)]
            content["sandbox"] = [*paths, box.network, list(box.env)]
    return digest(content, salt)


def effective_entry(written: Mapping[str, object]) -> Mapping[str, object]:
    """Return the keys of an entry that determine what runs."""
    return {key: value for key, value in written.items() if key in _RUN_KEYS}


def _salt_in(content: Mapping[str, object]) -> bytes:
    """Return the salt in a file; empty if there is none."""
    try:
        salt = bytes.fromhex(text_in(content, "salt"))
    except ValueError:
        return b""
    return salt if len(salt) == SALT_BYTES else b""


class Installation(Frozen):
    """What reading the settings needs to know of this installation and of the opened folder.

    Attributes:
        salt: The salt of fingerprints.
        folder: What tells the opened folder from another one at its place.
        state: The state folder, which has the user's settings for single folders.
    """

    salt: bytes = field(default=b"", repr=False)
    folder: tuple[object, ...] = ()
    state: Path | None = None


class Identifier:
    """Adds program and fingerprint to a definition. Blocks on the file system.

    Args:
        environ: The environment that servers inherit from.
        folder: The opened folder, in which no program is looked up by its name.
        home: The user's home.
        known: The salt, and the identity of the folder.
    """

    def __init__(
        self, environ: Mapping[str, str], folder: Path, home: Path, known: Installation
    ) -> None:
        self._environ = environ
        self._folder = folder
        self._avoid = guarded_folders((folder,), home)
        self._known = known
        self._paths: dict[str, str] = {}

    def __call__(self, definition: ServerDefinition) -> ServerDefinition:
        """Return the definition with its program and fingerprint."""
        is_project = definition.entry.origin is Origin.PROJECT
        program = self._program(definition.launch, is_project=is_project)
        found = replace(definition, launch=replace(definition.launch, program=program))
        folder = self._known.folder if is_project else None
        return replace(found, fingerprint=server_fingerprint(found, self._known.salt, folder))

    def _program(self, launch: Launch, *, is_project: bool) -> str:
        """Find the program; one whose name holds a variable that is not set is not looked for."""
        path = launch.env.get(_PATH, self._environ.get(_PATH, os.defpath))
        if not launch.command or "$" in launch.command or "$" in path:
            return ""
        if path not in self._paths:
            self._paths[path] = search_path(path, self._avoid)
        folder = launch.cwd if launch.cwd is not None else self._folder
        found = find_program(launch.command, {_PATH: self._paths[path]}, folder)
        if not found and not is_project:  # it may be in the folder alone
            full = launch.env.get(_PATH, self._environ.get(FULL_PATH, path))
            found = find_program(launch.command, {_PATH: full}, folder)
        return found or ""
