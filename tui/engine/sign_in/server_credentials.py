"""What signs the requests to one server, whatever kind of credentials it needs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final, Protocol

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


_NONE: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Signature:
    """What is added to a request.

    Attributes:
        token: The bearer token, or empty.
        headers: Headers to add.
        query: Query parameters to add.
    """

    token: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: _NONE, repr=False)
    query: Mapping[str, str] = field(default_factory=lambda: _NONE, repr=False)


class ServerCredentials(Protocol):
    """Signs requests to one server. Lives on one event loop."""

    async def signature(self) -> Signature:
        """Return what to add to the next request; nothing where there are no credentials.

        Raises:
            AuthError: If there should be some and cannot be now.
        """

    async def refused(self, challenge: Challenge, sent: Signature, attempt: int) -> bool:
        """Take in that the server refused a request; return whether to send it again.

        Args:
            challenge: What the server said.
            sent: What was added to the request.
            attempt: How often this request was refused before.

        Raises:
            AuthError: If other credentials were needed and could not be had.
        """
