"""What the user sent before, for Up and Down in the composer. Pure; storage is injected."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

MAX_HISTORY: Final = 500
"""Messages remembered; the oldest go first."""


def _nothing() -> Sequence[str]:
    return ()


def _forget(_text: str) -> None:
    """Remember nothing."""


@dataclass(frozen=True, slots=True)
class HistoryStorage:
    """Where messages are kept between runs. Neither call may block.

    Attributes:
        load: Gives the messages of earlier runs, oldest first.
        append: Keeps one more.
    """

    load: Callable[[], Sequence[str]] = _nothing
    append: Callable[[str], None] = _forget


class MessageHistory:
    """Walks through earlier messages and back to the draft it started from."""

    def __init__(self, storage: HistoryStorage | None = None) -> None:
        self._storage = storage or HistoryStorage()
        self._messages = list(self._storage.load())[-MAX_HISTORY:]
        self._position = len(self._messages)
        self._draft = ""

    @property
    def messages(self) -> Sequence[str]:
        """The remembered messages, oldest first."""
        return tuple(self._messages)

    def add(self, text: str) -> None:
        """Remember a message, unless it repeats the last one, and leave the walk."""
        if text and (not self._messages or self._messages[-1] != text):
            self._messages = [*self._messages, text][-MAX_HISTORY:]
            self._storage.append(text)
        self._position = len(self._messages)
        self._draft = ""

    def back(self, current: str) -> str | None:
        """Give the message before; None at the oldest.

        Args:
            current: What stands in the composer; kept as the draft when the walk begins.
        """
        if self._position == 0:
            return None
        if self._position == len(self._messages):
            self._draft = current
        self._position -= 1
        return self._messages[self._position]

    def forth(self) -> str | None:
        """Give the message after, or the draft after the newest; None where the walk is over."""
        if self._position >= len(self._messages):
            return None
        self._position += 1
        if self._position == len(self._messages):
            return self._draft
        return self._messages[self._position]
