"""Keeps sign-ins in the keyring, or in a private file if there is no keyring."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, TypeVar

from pydantic import ValidationError

from tui.engine.background import in_daemon_thread
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.files.atomic import locked
from tui.engine.keys.key_store import CredentialError, FilePlace, KeyringPlace, uses_keyring
from tui.engine.sign_in.sign_in_record import (
    AuthError,
    SignInRecord,
    canonical_address,
    digest,
)

Result = TypeVar("Result")

FILE_NAME: Final = "sign-ins.json"
"""The file for systems without a keyring, in the state folder."""

LOCK_WAIT: Final = 40.0
"""Seconds to wait for another gemdeck that gets a token."""

MAX_KEPT: Final = 16
"""Most sign-ins that are kept for one server, as with other clients or settings."""


class TokenStore:
    """The sign-ins of this user. Every method blocks: call it in a thread.

    Where they are kept is chosen at first use and then stays.

    Args:
        folder: The state folder; None keeps everything in memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._in_keyring: bool | None = None
        self._memory: dict[str, str] = {}

    @property
    def place(self) -> str:
        """Where sign-ins are kept, as shown."""
        place = self._place("")
        return place.name if place is not None else "memory until the end of this run"

    def find(self, definition: ServerDefinition) -> SignInRecord | None:
        """Return what is kept for a server with these settings; newest first.

        Raises:
            CredentialError: If it cannot be read.
        """
        for key in self._keys(canonical_address(definition.url)):
            record = self.get(key)
            if record is not None and record.fits(definition):
                return record
        return None

    def get(self, key: str) -> SignInRecord | None:
        """Return a sign-in, or None if there is none; what cannot be read counts as none."""
        text = self._read(_entry(key))
        try:
            return SignInRecord.model_validate_json(text) if text else None
        except ValidationError:
            return None

    def save(self, record: SignInRecord) -> None:
        """Keep a sign-in, and find it first from now on.

        Raises:
            CredentialError: If it cannot be written.
        """
        self._write(_entry(record.key), record.model_dump_json())
        with self._locked(_index_lock(record.server)):
            keys = self._keys(record.server)
            if keys[:1] != [record.key]:
                others = [key for key in keys if key != record.key]
                for old in others[MAX_KEPT - 1 :]:
                    self._forget(_entry(old))
                kept = [record.key, *others[: MAX_KEPT - 1]]
                self._write(_server_entry(record.server), json.dumps(kept))

    def forget(self, record: SignInRecord) -> None:
        """Remove a sign-in with its tokens and client.

        Raises:
            CredentialError: If it cannot be removed.
        """
        self._forget(_entry(record.key))
        with self._locked(_index_lock(record.server)):
            keys = [key for key in self._keys(record.server) if key != record.key]
            if keys:
                self._write(_server_entry(record.server), json.dumps(keys))
            else:
                self._forget(_server_entry(record.server))

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
            words = f"The sign-in cannot be used: {error.strerror or type(error).__name__}."
            raise CredentialError(words, advice="Close the other gemdeck if it hangs.") from error

    def _keys(self, server: str) -> list[str]:
        text = self._read(_server_entry(server))
        try:
            found = json.loads(text or "[]")
        except ValueError:
            return []
        return [key for key in found if isinstance(key, str)] if isinstance(found, list) else []

    def _read(self, entry: str) -> str | None:
        place = self._place(entry)
        return place.get() if place is not None else self._memory.get(entry)

    def _write(self, entry: str, text: str) -> None:
        if (place := self._place(entry)) is not None:
            place.set(text)
        else:
            self._memory[entry] = text

    def _forget(self, entry: str) -> None:
        if (place := self._place(entry)) is not None:
            place.forget()
        else:
            self._memory.pop(entry, None)

    def _place(self, entry: str) -> KeyringPlace | FilePlace | None:
        if self._folder is None:
            return None
        if self._in_keyring is None:
            self._in_keyring = uses_keyring(entry)
        return (
            KeyringPlace(entry) if self._in_keyring else FilePlace(self._folder / FILE_NAME, entry)
        )


async def read_kept(work: Callable[[], Result]) -> Result:
    """Ask a store something, in a thread.

    Raises:
        AuthError: If it cannot be read.
    """
    try:
        return await in_daemon_thread(work)
    except CredentialError as error:
        reason = f"has a sign-in that cannot be read: {error}"
        raise AuthError(reason, error.advice, is_transient=True) from error


def _entry(key: str) -> str:
    return f"sign-in:{key}"


def _server_entry(server: str) -> str:
    return f"server:{digest(server)}"


def _index_lock(server: str) -> str:
    """Name the lock of the list of a server's sign-ins, which all its clients share."""
    return f"sign-ins-{digest(server)[:16]}"
