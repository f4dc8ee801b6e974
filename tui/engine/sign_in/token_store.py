"""Keeps sign-ins in the keyring, or in a private file without one; reads those of gemini-cli."""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from tui.engine.background import in_daemon_thread
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.files.atomic import locked, read_regular
from tui.engine.files.paths import GEMINI_FOLDER
from tui.engine.files.unwritten import true_name
from tui.engine.keys.key_store import CredentialError, FilePlace, KeyringPlace, uses_keyring
from tui.engine.sign_in.sign_in_record import AuthError, SignInRecord, canonical_address, digest
from tui.engine.sign_in.token_endpoint import MAX_LIFE, MAX_TOKEN, checked_endpoint, checked_token
from tui.model.bounded_json import JsonError, as_texts, json_or_text, read_value, text_in
from tui.text import sanitize_line

Result = TypeVar("Result")

FILE_NAME: Final = "sign-ins.json"
"""The file for systems without a keyring, in the state folder."""

LOCK_WAIT: Final = 40.0
"""Seconds to wait for another gemdeck that gets a token."""

MAX_KEPT: Final = 16
"""Most sign-ins that are kept for one server, as with other clients or settings."""

GEMINI_TOKENS: Final = Path(GEMINI_FOLDER, "mcp-oauth-tokens.json")
"""Where gemini-cli keeps its tokens, in the user's home."""

MAX_TOKENS_FILE: Final = 1024 * 1024
"""Largest such file, in bytes."""


class TokenStore:
    """The sign-ins of this user. Every method blocks: call it in a thread.

    Where they are kept is chosen at first use and then stays.

    Args:
        folder: The state folder; None keeps everything in memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._chosen: KeyringPlace | FilePlace | None = None

    @property
    def place(self) -> str:
        """Where sign-ins are kept, as shown."""
        return self._place("").name

    def find(self, definition: ServerDefinition) -> SignInRecord | None:
        """Return what is kept for a server with these settings; newest first.

        Raises:
            CredentialError: If it cannot be read.
        """
        kept = map(self.get, self._keys(canonical_address(definition.endpoint.url)))
        return next((one for one in kept if one is not None and one.fits(definition)), None)

    def get(self, key: str) -> SignInRecord | None:
        """Return a sign-in, or None if there is none; what cannot be read counts as none."""
        text = self._place(_entry(key)).get()
        try:
            return SignInRecord.model_validate_json(text) if text else None
        except ValidationError:
            return None

    def save(self, record: SignInRecord) -> None:
        """Keep a sign-in, and find it first from now on.

        Raises:
            CredentialError: If it cannot be written.
        """
        self._place(_entry(record.key)).set(record.model_dump_json())
        with self._locked(_index_lock(record.server)):
            keys = self._keys(record.server)
            if keys[:1] != [record.key]:
                others = [key for key in keys if key != record.key]
                for old in others[MAX_KEPT - 1 :]:
                    self._place(_entry(old)).forget()
                kept = [record.key, *others[: MAX_KEPT - 1]]
                self._place(_server_entry(record.server)).set(json.dumps(kept))

    def forget(self, record: SignInRecord) -> None:
        """Remove a sign-in with its tokens and client.

        Raises:
            CredentialError: If it cannot be removed.
        """
        self._place(_entry(record.key)).forget()
        with self._locked(_index_lock(record.server)):
            keys = [key for key in self._keys(record.server) if key != record.key]
            if keys:
                self._place(_server_entry(record.server)).set(json.dumps(keys))
            else:
                self._place(_server_entry(record.server)).forget()

    def locked(self, key: str) -> AbstractContextManager[None]:
        """Keep every other gemdeck from changing a sign-in.

        Raises:
            CredentialError: If another one does not let go of it.
        """
        return self._locked(f"sign-in-{key[:16]}")

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Keep what a file name stands for to ourselves; one key may be held within another."""
        if self._folder is None:
            yield
            return
        try:
            with locked(self._folder / name, LOCK_WAIT):
                yield
        except OSError as error:
            reason = error.strerror or type(error).__name__
            words = f"{true_name(self._folder)} cannot be locked: {reason}."
            is_held = isinstance(error, TimeoutError)
            advice = "Close the other gemdeck if it hangs." if is_held else "Make it writable."
            raise CredentialError(words, advice=advice) from error

    def _keys(self, server: str) -> list[str]:
        return as_texts(json_or_text(self._place(_server_entry(server)).get() or ""))

    def _place(self, entry: str) -> KeyringPlace | FilePlace:
        if self._chosen is None:
            in_file = self._folder is None or not uses_keyring()
            file = self._folder and self._folder / FILE_NAME
            self._chosen = FilePlace(file) if in_file else KeyringPlace()
        return self._chosen.beside(entry)


@contextmanager
def cannot_be(done: str, *, is_transient: bool = False) -> Iterator[None]:
    """Say of a server what cannot be done with its sign-in, where its credentials are kept."""
    try:
        yield
    except CredentialError as error:
        reason = f"has a sign-in that cannot be {done}: {error}"
        raise AuthError(reason, error.advice, is_transient=is_transient) from error


async def read_kept(work: Callable[[], Result]) -> Result:
    """Ask a store something, in a thread.

    Raises:
        AuthError: If it cannot be read.
    """
    with cannot_be("read", is_transient=True):
        return await in_daemon_thread(work)


def _entry(key: str) -> str:
    return f"sign-in:{key}"


def _server_entry(server: str) -> str:
    return f"server:{digest(server)}"


def _index_lock(server: str) -> str:
    """Name the lock of the list of a server's sign-ins, which all its clients share."""
    return f"sign-ins-{digest(server)[:16]}"


def gemini_sign_in(home: Path, definition: ServerDefinition) -> SignInRecord:
    """Return gemini-cli's sign-in to a server, found by the server's address.

    Raises:
        AuthError: If there is none that could be used.
    """
    server = canonical_address(definition.endpoint.url)
    for kept in _entries(home / GEMINI_TOKENS):
        if _address(kept.get("mcpServerUrl")) == server:
            account = definition.endpoint.sign_in.oauth.account
            return _record(server, kept).model_copy(update={"account": account})
    raise AuthError("has no sign-in from gemini-cli", "Press a to sign in.")


def _entries(path: Path) -> Iterator[Mapping[str, Any]]:
    """Give the entries of the file: a list of them, or an object with one for each name."""
    try:
        found = read_value(read_regular(path, MAX_TOKENS_FILE))
    except FileNotFoundError:
        return
    except (OSError, JsonError, ValueError, RecursionError) as error:
        words = sanitize_line(str(error.strerror if isinstance(error, OSError) else error))
        reason = f"has no sign-in from gemini-cli: its file cannot be read ({words})"
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
    endpoint, refresh = text_in(kept, "tokenUrl"), text_in(token, "refreshToken")
    if endpoint:
        checked_endpoint(endpoint, server, "token endpoint")
    return SignInRecord(
        server=server,
        issuer=endpoint or server,
        resource=server,
        client_id=text_in(kept, "clientId"),
        token_endpoint=endpoint,
        access_token=checked_token(token.get("accessToken")),
        refresh_token=checked_token(refresh) if refresh and endpoint else "",
        scope=text_in(token, "scope"),
        expires_at=_seconds(token.get("expiresAt")),
        is_registered=True,
    )


def _seconds(milliseconds: object) -> float | None:
    """Return a time of JavaScript's in seconds, within reason; None if there is none."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    latest = time.time() + MAX_LIFE
    return min(milliseconds / 1000, latest) if math.isfinite(milliseconds) else latest


def token_in(path: str) -> str:
    """Read the identity token in a file of the user's. Blocks.

    Raises:
        AuthError: If there is none that can be sent.
    """
    named = f"is not signed in: its oauth.identityTokenFile {sanitize_line(path)}"
    try:
        held = read_regular(Path(path).expanduser(), MAX_TOKEN + 2)
        return checked_token(held.decode("ascii").strip())
    except OSError as error:
        raise AuthError(f"{named} cannot be read: {error.strerror}", is_transient=True) from error
    except (ValueError, RuntimeError, AuthError):  # its text may hold a part of the file
        raise AuthError(f"{named} contains no token") from None
