"""Other clients: their tokens, of which only hashes are kept, and what is known of them."""

import hashlib
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tui.engine.files.state_file import private_file
from tui.model.bounded_json import as_object, text_in
from tui.model.consent import Caller
from tui.text import sanitize_line

FILE_NAME: Final = "callers.json"

TOKEN_VARIABLE: Final = "GEMDECK_CALLER_TOKEN"  # noqa: S105 - its name
"""The variable by which a client's entry has its token."""

MAX_CALLERS: Final = 200
"""Most tokens that are kept; the oldest are dropped first."""

MAX_NAME: Final = 40
"""Characters of a client's own name that are shown."""


class CallerBook:
    """The tokens that were given out. Blocks.

    Args:
        state: The folder of gemdeck's own state; None keeps nothing.
        on_problem: Takes sentences for the user.
    """

    def __init__(self, state: Path | None, on_problem: Callable[[str], None]) -> None:
        self._file = private_file(state, FILE_NAME, on_problem)

    def give(self, client: str) -> str:
        """Return a new token for a client of this name."""
        token = secrets.token_urlsafe()

        def keep(content: dict[str, Any]) -> dict[str, Any]:
            known = {**content, _key(token): {"client": client, "made": int(time.time())}}
            return dict([*known.items()][-MAX_CALLERS:])

        self._file.update(keep)
        return token

    def caller(self, token: str, name: str, folder: str) -> Caller:
        """Return the client that a token was printed for, else the one that it claims to be.

        Args:
            token: Its token, or an empty string.
            name: What it calls itself.
            folder: Its working directory, as shown.
        """
        key = _key(token) if token else ""
        known = text_in(as_object((self._file.load() or {}).get(key)), "client") if key else ""
        shown = sanitize_line(known or name, MAX_NAME) or "another client"
        return Caller(shown, sanitize_line(folder), key if known else "")


def _key(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
