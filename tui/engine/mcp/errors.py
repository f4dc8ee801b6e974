"""Why a server cannot be used, as an exception and as what the user reads."""

from collections.abc import Callable, Sequence
from typing import Self

from tui.model.servers import Failure
from tui.text import sanitize_line


class ServerError(Exception):
    """A server could not be started, reached or kept.

    Attributes:
        reason: One line that says what happened; it may hold the server's own words.
        advice: One line that says what to do, or nothing.
        permanent: Whether another attempt would end the same way, so that none is made.
    """

    def __init__(self, reason: str, advice: str = "", *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice
        self.permanent = permanent

    def masked(self, mask: Callable[[str], str]) -> Self:
        """Give the same error in words that hold no secret."""
        return type(self)(mask(self.reason), mask(self.advice), permanent=self.permanent)

    def as_failure(self, stderr_tail: Sequence[str] = ()) -> Failure:
        """Give the failure as the user sees it, with the last lines of standard error."""
        return Failure(sanitize_line(self.reason), sanitize_line(self.advice), tuple(stderr_tail))


class SignInError(ServerError):
    """A server wants its user to sign in, or turned the credentials it was given down."""


class SessionLostError(ServerError):
    """A server no longer knows the session; what it was asked in it was not executed."""
