"""The history of sent messages for Up and Down in the composer."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cache
from typing import Final

from tui.model.frozen import dataclass

MAX_HISTORY: Final = 500
"""Messages kept; the oldest are dropped."""


def _load_nothing() -> Sequence[str]:
    return ()


def _append_nothing(_text: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class HistoryStorage:
    """Storage of messages between runs. Neither call may block.

    Attributes:
        load: Returns the messages of earlier runs, oldest first.
        append: Saves one more.
    """

    load: Callable[[], Sequence[str]] = _load_nothing
    append: Callable[[str], None] = _append_nothing


class MessageHistory:
    """Step through earlier messages and back to the draft."""

    def __init__(self, storage: HistoryStorage | None = None) -> None:
        self._storage = storage or HistoryStorage()
        self._load = cache(lambda: list(self._storage.load())[-MAX_HISTORY:])
        self._steps = 0
        self._draft = ""

    @property
    def _messages(self) -> list[str]:
        """The messages, read when one is wanted: the first frame needs none."""
        return self._load()

    def beside(self) -> "MessageHistory":
        """Return another one over the same messages, for another composer."""
        other = copy(self)
        other._steps, other._draft = 0, ""
        return other

    def add(self, text: str, *, lasting: bool = True) -> None:
        """Append a message unless it repeats the last one, and go back to the end.

        Args:
            text: The message.
            lasting: Whether it is kept for later runs.
        """
        if text and self._messages[-1:] != [text]:
            self._messages.append(text)
            del self._messages[:-MAX_HISTORY]
            if lasting:
                self._storage.append(text)
        self._steps = 0
        self._draft = ""

    def matching(self, text: str) -> Iterator[str]:
        """Yield the messages that contain a text in any case, each once, the newest first."""
        wanted = text.casefold()
        for message in dict.fromkeys(reversed(self._messages)):
            if wanted in message.casefold():
                yield message

    def back(self, current: str) -> str | None:
        """Return the previous message, or None at the oldest.

        Args:
            current: The composer's text, kept as the draft on the first step.
        """
        if self._steps >= len(self._messages):
            return None
        if self._steps == 0:
            self._draft = current
        self._steps += 1
        return self._messages[-self._steps]

    def forth(self) -> str | None:
        """Return the next message, or the draft after the newest; None at the end."""
        if self._steps == 0:
            return None
        self._steps -= 1
        return self._messages[-self._steps] if self._steps else self._draft
