"""What signs the requests to one server, whatever kind of credentials it needs."""

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final, Protocol

from tui.engine.sign_in.challenges import Challenge
from tui.model.frozen import dataclass

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
