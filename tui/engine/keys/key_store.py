"""Store API keys in the keyring, or in a private file if there is no keyring."""

import copy
import logging
import os
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

from pydantic import SecretStr

from tui.engine.background import within
from tui.engine.files.paths import STATE_VARIABLE, state_dir
from tui.engine.files.state_file import Content, StateFile, StateFileError
from tui.model.settings_rules import MAX_KEY
from tui.text import AdvisedError, sanitize_line

SERVICE: Final = "gemdeck"
"""The service name in the keyring."""

USER: Final = "gemini-api-key"
"""The user name in the keyring, and the key in the JSON file."""

NAMED: Final = "secret "
"""What stands there before the name of a secret of the user's."""

FILE_NAME: Final = "credentials.json"

KEYRING_LIMIT: Final = 10.0
"""Keyring timeout in seconds; it may be waiting for a password prompt."""

_log: Final = logging.getLogger(__name__)


class CredentialError(AdvisedError, ValueError):
    """Credentials cannot be used or stored.

    A `ValueError`, like the error for an invalid key, so that callers can handle both alike.
    """


def checked_key(pasted: str) -> str:
    """Return a pasted key without surrounding white space.

    Raises:
        ValueError: If it cannot be a key; the message never quotes it.
    """
    if not (key := pasted.strip()):
        raise ValueError("The key is empty.")
    if len(key) > MAX_KEY:
        raise ValueError(f"This is longer than {MAX_KEY} characters, so it is not an API key.")
    if odd := next((sign for sign in key if not "!" <= sign <= "~"), ""):
        name = unicodedata.name(odd, f"U+{ord(odd):04X}").lower()
        words = "An API key has no spaces, line breaks or special characters"
        raise ValueError(f"{words}; this one has: {name}.")
    return key


class KeyStore:
    """Stores keys, one for each address of the Gemini API or of a service: none gets another's.

    Every method blocks: call it in a thread. The backend is chosen at first use and then stays:
    the keyring, unless it has no usable backend or ``GEMDECK_HOME`` is set; then a file in the
    state folder. An empty address is Google's own; an empty service is the Gemini API.
    """

    def __init__(self, place: "KeyringPlace | FilePlace | None" = None) -> None:
        self._chosen = place

    @property
    def place(self) -> str:
        return self._place().name

    def get(self, address: str = "", service: str = "") -> SecretStr | None:
        """Return the key for an address, or None if there is none.

        Raises:
            CredentialError: If the key cannot be read, for example from a locked keyring, or
                is invalid.
        """
        key = self._place(address, service).get()
        if key is None or not key.strip():
            return None
        try:
            return SecretStr(checked_key(key))
        except ValueError as error:
            message = f"The stored key in {self.place} is not a valid API key."
            raise CredentialError(message, advice="Paste the key again.") from error

    def set(self, key: str, address: str = "", service: str = "") -> None:
        """Store the key for an address, replacing the last one.

        Raises:
            ValueError: If it cannot be a key; the message never quotes it.
            CredentialError: If it cannot be stored.
        """
        self._place(address, service).set(checked_key(key))

    def forget(self, address: str = "", service: str = "") -> None:
        """Remove the key for an address, if there is one.

        Raises:
            CredentialError: If it cannot be removed.
        """
        self._place(address, service).forget()

    def _place(self, address: str = "", service: str = "") -> "KeyringPlace | FilePlace":
        if self._chosen is None:
            self._chosen = secret_place(USER)
        address, user = address.rstrip("/"), f"service {service}" if service else USER
        return self._chosen.beside(f"{user} {address}") if address else self._chosen


def secret_place(user: str) -> "KeyringPlace | FilePlace":
    """Return where a secret is kept: in the keyring, or in a private file.

    Raises:
        CredentialError: If the keyring does not answer.
    """
    return KeyringPlace(user) if uses_keyring() else FilePlace(state_dir() / FILE_NAME, user)


def named_place(name: str) -> "KeyringPlace | FilePlace":
    """Return where a secret of the user's is kept; see `secret_place`."""
    return secret_place(f"{NAMED}{name}")


def uses_keyring() -> bool:
    """Return whether secrets go to the keyring, and not into a private file.

    Raises:
        CredentialError: If the keyring does not answer.
    """
    if os.environ.get(STATE_VARIABLE):
        return False
    try:
        return within(KEYRING_LIMIT, lambda: bool(_keyring().get_keyring().priority > 0))
    except TimeoutError as error:
        raise keyring_timeout() from error
    except Exception:  # noqa: BLE001  (backends are plugins and raise errors of their own)
        return False


class KeyringPlace:
    """Stores one secret in the keyring of the operating system.

    Args:
        user: Its user name there.
    """

    name = "the system keyring"

    def __init__(self, user: str = USER) -> None:
        self._user = user

    def beside(self, user: str) -> "KeyringPlace":
        """Return where another secret is."""
        return KeyringPlace(user)

    def get(self) -> str | None:
        with _asking_keyring("cannot be read") as keyring:
            key: str | None = within(
                KEYRING_LIMIT, lambda: keyring.get_password(SERVICE, self._user)
            )
        return key

    def set(self, key: str) -> None:
        """Store it. Waits without a limit: one given up could overwrite a later one."""
        with _asking_keyring("did not store the secret") as keyring:
            keyring.set_password(SERVICE, self._user, key)

    def forget(self) -> None:
        with _asking_keyring("did not remove the secret") as keyring:
            if keyring.get_password(SERVICE, self._user) is not None:
                keyring.delete_password(SERVICE, self._user)


class FilePlace:
    """Stores one secret in a JSON file that only the user can read.

    Args:
        path: The file; None keeps it in memory.
        user: The secret's key in it.
    """

    def __init__(self, path: Path | None, user: str = USER) -> None:
        self.name = "memory until the end of this run"
        if path is not None:
            self.name = f"the private file {sanitize_line(str(path))}"
        self._user = user
        self._file = StateFile(path, fails_closed=True, on_problem=_log.warning)

    def beside(self, user: str) -> "FilePlace":
        """Return where another secret is, in the same file."""
        other = copy.copy(self)
        other._user = user
        return other

    def get(self) -> str | None:
        """Return the secret, or None if there is none."""
        with _asking_file():
            key = (self._file.read() or {}).get(self._user)
        return key if isinstance(key, str) else None

    def set(self, key: str) -> None:
        self._save(lambda content: {**content, self._user: key})

    def forget(self) -> None:
        self._save(lambda content: {key: content[key] for key in content if key != self._user})

    def _save(self, change: Callable[[Content], Content]) -> None:
        with _asking_file():
            self._file.save(change)


def _keyring() -> ModuleType:
    """Import the library, which takes longer than reading a key from the environment."""
    import keyring  # noqa: PLC0415

    return keyring


@contextmanager
def _asking_keyring(failure: str) -> Iterator[ModuleType]:
    """Give the library, whose backends are plugins and raise errors of their own."""
    try:
        yield _keyring()
    except TimeoutError as error:
        raise keyring_timeout() from error
    except Exception as error:  # see above
        raise CredentialError(f"The keyring {failure}.", advice="Unlock the keyring.") from error


@contextmanager
def _asking_file() -> Iterator[None]:
    try:
        yield
    except StateFileError as error:
        raise CredentialError(str(error), advice=error.advice) from error


def keyring_timeout() -> CredentialError:
    """Return the error for a keyring that may be waiting for a password."""
    words = f"The keyring did not answer within {KEYRING_LIMIT:.0f} s."
    return CredentialError(words, advice="Unlock the keyring and restart gemdeck.")
