"""Errors of servers, and how the user reads them."""

from collections.abc import Callable, Sequence
from typing import Self

from tui.model.servers import Failure
from tui.text import AdvisedError, sanitize_line


class ServerError(Exception):
    """A server could not be started or reached, or its connection was lost.

    Attributes:
        reason: One line that says what happened; it may contain text of the server.
        advice: One line that says what to do, or empty.
        permanent: Whether another attempt would fail the same way; then none is made.
    """

    def __init__(self, reason: str, advice: str = "", *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.advice, self.permanent = reason, advice, permanent

    def masked(self, mask: Callable[[str], str]) -> Self:
        return type(self)(mask(self.reason), mask(self.advice), permanent=self.permanent)

    def as_failure(self, stderr_tail: Sequence[str] = ()) -> Failure:
        return Failure(sanitize_line(self.reason), sanitize_line(self.advice), tuple(stderr_tail))


class ProbeError(ServerError):
    """A server failed when it was asked whether it speaks the newer era: it is to start again."""


class ServerCallError(AdvisedError):
    """A server did not answer a request."""


class ServerGoneError(ServerCallError):
    """The connection ended during the request; the next connection may well answer it."""


class SignInError(ServerError):
    """A server requires a sign-in, or rejected the credentials."""


class SessionLostError(ServerError):
    """A server no longer knows the session; it did not run the request."""


def internal_error(error: Exception) -> ServerError:
    """Return the words for an error that nobody foresaw; they may hold secrets."""
    words = "; ".join(f"{type(leaf).__name__}: {leaf}" for leaf in leaves(error))
    return ServerError(words, "See the log for details.")


def leaves(error: BaseException) -> list[BaseException]:
    """Return the exceptions of nested groups."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for nested in error.exceptions for leaf in leaves(nested)]
    return [error]
