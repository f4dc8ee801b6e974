"""Where a pasted API key is kept: the keyring, or a private file where there is none."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol, TypeVar

import keyring
from keyring.errors import PasswordDeleteError
from pydantic import SecretStr

from tui.engine.paths import state_dir
from tui.engine.state_file import Content, StateFile, StateFileError
from tui.engine.threads import within
from tui.text import sanitize_line

SERVICE: Final = "gemdeck"
"""The service under which the keyring files the key."""

USER: Final = "gemini-api-key"
"""The user name under which the keyring files the key; also its name in the file."""

FILE_NAME: Final = "credentials.json"

MAX_KEY: Final = 256
"""Longest API key, in characters."""

KEYRING_LIMIT: Final = 10.0
"""Seconds a keyring gets to answer; it may wait for a password that nobody enters."""

Result = TypeVar("Result")

_log: Final = logging.getLogger(__name__)


class CredentialError(ValueError):
    """Credentials are there and cannot be used, or cannot be kept.

    A `ValueError`, as a key is that is none: who only shows the text need not tell them apart.

    Attributes:
        advice: What the user can do about it.
    """

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


def checked_key(pasted: str) -> str:
    """Give a pasted key without the white space around it.

    Raises:
        ValueError: If it cannot be a key; the text says why and never quotes it.
    """
    key = pasted.strip()
    if not key:
        raise ValueError("The key is empty.")
    if len(key) > MAX_KEY:
        raise ValueError(f"This is longer than {MAX_KEY} characters, so it is not an API key.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError("An API key has no spaces, line breaks or special characters.")
    return key


class KeyPlace(Protocol):
    """A place that keeps the key. Every method raises `CredentialError` if it fails."""

    @property
    def name(self) -> str:
        """The place in words for the screen."""

    def get(self) -> str | None:
        """Give the key, or None where there is none."""

    def set(self, key: str) -> None:
        """Keep a key in place of the last one."""

    def delete(self) -> None:
        """Forget the key; nothing happens where there is none."""


class KeyStore:
    """Keeps the Gemini API key. Every method blocks: call it in a thread.

    The place is chosen at first use, for the life of the store: the keyring, unless it has no
    backend that keeps anything or ``GEMDECK_HOME`` moves all of gemdeck's own state; then a
    file in the state folder. It is never changed silently after that.
    """

    def __init__(self, place: KeyPlace | None = None) -> None:
        self._chosen = place

    @property
    def place(self) -> str:
        """Where the key is kept, in words for the screen."""
        return self._place().name

    def get(self) -> SecretStr | None:
        """Give the key, or None where there is none.

        Raises:
            CredentialError: If the place cannot be read, such as a keyring that stays locked,
                or holds what cannot be a key.
        """
        key = self._place().get()
        if key is None or not key.strip():
            return None
        try:
            return SecretStr(checked_key(key))
        except ValueError as error:
            message = f"What {self.place} holds is no API key."
            raise CredentialError(message, advice="Paste the key again.") from error

    def set(self, key: str) -> None:
        """Keep a key in place of the last one.

        Raises:
            ValueError: If it cannot be a key; the text says why and never quotes it.
            CredentialError: If it cannot be kept.
        """
        self._place().set(checked_key(key))

    def delete(self) -> None:
        """Forget the key; nothing happens where there is none.

        Raises:
            CredentialError: If the place cannot be changed.
        """
        self._place().delete()

    def _place(self) -> KeyPlace:
        if self._chosen is None:
            moved = bool(os.environ.get("GEMDECK_HOME"))
            in_file = moved or not _keyring_keeps()
            self._chosen = FilePlace(state_dir() / FILE_NAME) if in_file else KeyringPlace()
        return self._chosen


class KeyringPlace:
    """Keeps the key in the keyring of the operating system."""

    @property
    def name(self) -> str:
        """The place in words for the screen."""
        return "the system keyring"

    def get(self) -> str | None:
        """Give the key, or None where there is none."""
        return _asking(lambda: keyring.get_password(SERVICE, USER), "The keyring cannot be read.")

    def set(self, key: str) -> None:
        """Keep a key in place of the last one."""
        _asking(
            lambda: keyring.set_password(SERVICE, USER, key), "The keyring did not keep the key."
        )

    def delete(self) -> None:
        """Forget the key."""

        def forget() -> None:
            try:
                keyring.delete_password(SERVICE, USER)
            except PasswordDeleteError:
                # Backends raise it for "not there" and for "failed" alike.
                if keyring.get_password(SERVICE, USER) is not None:
                    raise

        _asking(forget, "The keyring did not forget the key.")


class FilePlace:
    """Keeps the key in a JSON file that only the user can read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = StateFile(path, version=1, fails_closed=True, on_problem=_log.warning)

    @property
    def name(self) -> str:
        """The place in words for the screen."""
        return f"the private file {sanitize_line(str(self._path))}"

    def get(self) -> str | None:
        """Give the key, or None where there is none."""
        try:
            content = self._file.read()
        except StateFileError as error:
            raise CredentialError(str(error), advice=error.advice) from error
        key = (content or {}).get(USER)
        return key if isinstance(key, str) else None

    def set(self, key: str) -> None:
        """Keep a key in place of the last one."""
        self._change(key)

    def delete(self) -> None:
        """Forget the key."""
        self._change(None)

    def _change(self, key: str | None) -> None:
        def change(content: Content) -> Content:
            kept = {name: value for name, value in content.items() if name != USER}
            return kept if key is None else {**kept, USER: key}

        try:
            self._file.save(change)
        except StateFileError as error:
            raise CredentialError(str(error), advice=error.advice) from error


def _keyring_keeps() -> bool:
    """Tell whether the keyring has a backend that keeps what it is given.

    Raises:
        CredentialError: If the keyring does not answer.
    """
    try:
        return within(KEYRING_LIMIT, lambda: keyring.get_keyring().priority > 0)
    except TimeoutError as error:
        raise _silent() from error
    except Exception:  # noqa: BLE001  (backends are plugins; whatever they raise, there is a file)
        return False


def _asking(ask: Callable[[], Result], message: str) -> Result:
    """Ask the keyring.

    Raises:
        CredentialError: For whatever its backend raises, and if it does not answer.
    """
    try:
        return within(KEYRING_LIMIT, ask)
    except TimeoutError as error:
        raise _silent() from error
    except Exception as error:  # backends are plugins and raise errors of their own
        advice = "Unlock the keyring, or set GEMINI_API_KEY."
        raise CredentialError(message, advice=advice) from error


def _silent() -> CredentialError:
    return CredentialError(
        f"The keyring did not answer within {KEYRING_LIMIT:.0f} s.",
        advice="Unlock the keyring and start again, or set GEMINI_API_KEY.",
    )
