"""What a server says in ``WWW-Authenticate`` when it refuses a request (RFC 6750, RFC 9728)."""

import re
from collections.abc import Iterable
from typing import Final

from tui.model.frozen import dataclass

MAX_CHALLENGE: Final = 8_192
"""Characters of the header that are read."""

_PARAMETER: Final = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"([^"]*)"|([^\s,"]+))')
_FORBIDDEN: Final = 403


@dataclass(frozen=True, slots=True)
class Challenge:
    """A refusal.

    Attributes:
        status: The HTTP status, 401 or 403.
        resource_metadata: Where the server says how to sign in, or empty.
        scope: The scopes it wants, or empty.
        error: Its error code, or empty.
    """

    status: int = 401
    resource_metadata: str = ""
    scope: str = ""
    error: str = ""

    @property
    def is_step_up(self) -> bool:
        """Whether the token is good, but not for this."""
        return self.status == _FORBIDDEN and self.error == "insufficient_scope"


def read_challenge(status: int, headers: Iterable[str]) -> Challenge:
    """Read the challenge in all ``WWW-Authenticate`` headers; the first of each name counts."""
    found: dict[str, str] = {}
    text = ", ".join(headers)[:MAX_CHALLENGE]
    for name, quoted, bare in _PARAMETER.findall(text):
        found.setdefault(name.lower(), quoted or bare)
    return Challenge(
        status,
        found.get("resource_metadata", ""),
        found.get("scope", ""),
        found.get("error", ""),
    )
