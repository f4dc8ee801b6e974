"""What a server is, in one hash: consent binds to it and never to a name.

Everything is hashed as one structured value, so that no two different definitions look alike
however their words are cut. The hash is keyed with a salt of this installation: whoever reads
a state file cannot find out a short password by trying.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tui.engine.settings.definitions import ServerDefinition
from tui.engine.state_file import StateFile

SALT_FILE: Final = "salt.json"
"""Where the salt of this installation is kept, in the state folder."""

SALT_BYTES: Final = 32
"""Length of a salt, in bytes."""

SIGN_IN_KEYS: Final = ("oauth", "authProviderType", "targetAudience", "targetServiceAccount")
"""Keys of an entry that say how gemdeck signs in to the server."""

_RUN_KEYS: Final = frozenset(
    {
        *("command", "args", "env", "cwd", "url", "httpUrl", "headers", "type", "transportType"),
        *("timeout", "includeTools", "excludeTools", "disabled"),
        *SIGN_IN_KEYS,
    }
)

_VERSION: Final = 1
_PURPOSE: Final = "server-1"


def load_salt(file: StateFile) -> bytes:
    """Give the salt of this installation, made at random the first time.

    Where it cannot be kept, it holds for this run. A salt that is lost, or that others could have
    read, voids what rested on it: everything is asked about again. Blocks.
    """

    def keep(content: dict[str, Any]) -> dict[str, Any]:
        return content if _salt_in(content) else {"salt": fresh}

    fresh = secrets.token_hex(SALT_BYTES)
    return _salt_in(file.load() or {}) or _salt_in(file.update(keep)) or bytes.fromhex(fresh)


def salt_file(folder: Path | None, on_problem: Callable[[str], None]) -> StateFile:
    """Give the file of the salt in a state folder; None keeps it in memory."""
    path = folder / SALT_FILE if folder is not None else None
    return StateFile(path, version=_VERSION, fails_closed=True, on_problem=on_problem)


def canonical(value: object) -> bytes:
    """Write a JSON value so that equal values give equal bytes, and different ones do not.

    Half surrogate pairs, which undecodable bytes of the environment become, are escaped.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode("ascii")


def digest(value: object, salt: bytes) -> str:
    """Give the salted SHA-256 (HMAC, hex) of a JSON value."""
    return hmac.new(salt, canonical(value), hashlib.sha256).hexdigest()


def server_fingerprint(
    definition: ServerDefinition, salt: bytes, folder: tuple[object, ...] | None = None
) -> str:
    """Give the fingerprint of a server.

    It covers the transport, the program as resolved, arguments, working folder, variables,
    address, headers, sign-in and the file the server stands in. What a server is called, which
    of its tools are offered and whether they are trusted is no part of what it is.

    Args:
        definition: The server with its program and files; a project's may be expanded or not.
        salt: The salt of this installation.
        folder: The identity of the folder that brings the server, for a project's. Its entry
            then counts as written, with its references: what the user's variables hold on a
            given day does not make it another server. What the folder itself chooses does: the
            values that it fills in, and what is in those of its files that would run.
    """
    written = definition.written
    content: dict[str, object] = {
        "purpose": _PURPOSE,
        "transport": definition.transport.value,
        "program": definition.program,
        "source": [definition.origin.value, definition.source, definition.extension],
        "sign-in": {key: written[key] for key in SIGN_IN_KEYS if key in written},
    }
    if folder is not None:
        preview = definition.preview
        content |= {
            "folder": list(folder),
            "written": dict(effective_entry(written)),
            "brought": dict(preview.brought) if preview is not None else {},
            "defaults": list(map(list, preview.defaults)) if preview is not None else [],
            "files": [[file.path, file.content] for file in definition.files],
        }
    else:
        content |= {
            "command": definition.command,
            "args": list(definition.args),
            "cwd": str(definition.cwd) if definition.cwd is not None else None,
            "env": dict(definition.env),
            "url": definition.url,
            "sse": definition.sse_fallback,
            "headers": dict(definition.headers),
        }
    return digest(content, salt)


def effective_entry(written: Mapping[str, object]) -> Mapping[str, object]:
    """Give the part of an entry, as written, that says what runs."""
    return {key: value for key, value in written.items() if key in _RUN_KEYS}


def _salt_in(content: Mapping[str, object]) -> bytes:
    """Give the salt that a file holds, or nothing."""
    text = content.get("salt")
    try:
        salt = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        return b""
    return salt if len(salt) == SALT_BYTES else b""
