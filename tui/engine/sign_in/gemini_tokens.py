"""Reads the tokens that gemini-cli has kept, in both shapes that it writes; never changes them."""

import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.files.atomic import UnfitFileError, read_regular
from tui.engine.sign_in.endpoints import checked_endpoint
from tui.engine.sign_in.sign_in_record import AuthError, SignInRecord, canonical_address
from tui.engine.sign_in.token_endpoint import MAX_LIFE, checked_token
from tui.model.bounded_json import JsonError, read_value
from tui.text import sanitize_line

GEMINI_TOKENS: Final = Path(".gemini", "mcp-oauth-tokens.json")
"""Where gemini-cli keeps its tokens, in the user's home."""

MAX_TOKENS_FILE: Final = 1024 * 1024
"""Largest such file, in bytes."""


def gemini_sign_in(home: Path, definition: ServerDefinition) -> SignInRecord:
    """Return gemini-cli's sign-in to a server, found by the server's address.

    Raises:
        AuthError: If there is none that could be used.
    """
    server = canonical_address(definition.url)
    for kept in _entries(home / GEMINI_TOKENS):
        if _address(kept.get("mcpServerUrl")) == server:
            return _record(server, kept)
    raise AuthError("has no sign-in of gemini-cli's", "Press a to sign in.")


def _entries(path: Path) -> Iterator[Mapping[str, Any]]:
    """Give the entries of the file: a list of them, or an object with one for each name."""
    try:
        found = read_value(read_regular(path, MAX_TOKENS_FILE))
    except FileNotFoundError:
        return
    except (OSError, UnfitFileError, JsonError, ValueError, RecursionError) as error:
        words = sanitize_line(str(error.strerror if isinstance(error, OSError) else error))
        reason = f"has no sign-in of gemini-cli's: its file cannot be read ({words})"
        raise AuthError(reason) from error
    entries = list(found.values()) if isinstance(found, dict) else found
    if isinstance(entries, list):
        yield from (entry for entry in entries if isinstance(entry, dict))


def _address(url: object) -> str:
    """Return an address as addresses are compared; an empty text for what is none."""
    try:
        return canonical_address(url) if isinstance(url, str) else ""
    except ValueError:
        return ""


def _record(server: str, kept: Mapping[str, Any]) -> SignInRecord:
    """Read one entry; the older shape has what is in `token` beside the rest."""
    inner = kept.get("token")
    token = inner if isinstance(inner, dict) else kept

    def text(content: Mapping[str, Any], key: str) -> str:
        value = content.get(key)
        return value if isinstance(value, str) else ""

    endpoint, refresh = text(kept, "tokenUrl"), text(token, "refreshToken")
    if endpoint:
        checked_endpoint(endpoint, server, "token endpoint")
    return SignInRecord(
        server=server,
        issuer=endpoint or server,
        resource=server,
        client_id=text(kept, "clientId"),
        token_endpoint=endpoint,
        access_token=checked_token(token.get("accessToken")),
        refresh_token=checked_token(refresh) if refresh and endpoint else "",
        scope=text(token, "scope"),
        expires_at=_seconds(token.get("expiresAt")),
        is_registered=True,
    )


def _seconds(milliseconds: object) -> float | None:
    """Return a time of JavaScript's in seconds, within reason; None if there is none."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    latest = time.time() + MAX_LIFE
    return min(milliseconds / 1000, latest) if math.isfinite(milliseconds) else latest
