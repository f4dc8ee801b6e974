"""The user's messages: what was typed, and what the model gets of it."""

from collections.abc import Awaitable, Callable

from tui.engine.bus import Publish
from tui.engine.mcp.catalog.offered_tool import JsonObject, MediaPart, PromptMessage, TextPart
from tui.model.chat import Severity
from tui.model.events import MessageReturned, Notice, NoticeRaised
from tui.model.frozen import dataclass
from tui.model.servers import ServerId
from tui.text import for_model, sanitize, sanitize_line


class MessageError(Exception):
    """A message cannot be sent; the text says why, for the user."""

    def __init__(self, text: str, advice: str = "") -> None:
        super().__init__(sanitize_line(text))
        self.advice = sanitize_line(advice)


@dataclass(frozen=True, slots=True)
class MessageContent:
    """What a message says.

    Attributes:
        shown: What the transcript shows; sanitized.
        parts: What the model gets; at least one part.
        servers: The servers whose data the parts contain.
        before: What was said before it, as a server's prompt has it.
    """

    shown: str
    parts: tuple[TextPart | MediaPart | JsonObject, ...]
    servers: tuple[ServerId, ...] = ()
    before: tuple[PromptMessage, ...] = ()

    @classmethod
    def of_text(cls, text: str) -> "MessageContent":
        """Return the content of a text of the user, which the model gets as data."""
        return cls(sanitize(text), (TextPart(for_model(text)[0]),))


Fetch = Callable[[Callable[[ServerId], None]], Awaitable[MessageContent]]
"""Gets the content of a message; calls its argument with each server before it is asked.

Raises `MessageError` if the message cannot be sent.
"""


@dataclass(frozen=True, slots=True)
class Message:
    """The message that starts a turn.

    Attributes:
        text: What was typed; it returns to the user if the model never answers.
        fetch: Gets what servers add to it, once its turn has come; None if it is the text alone.
    """

    text: str
    fetch: Fetch | None = None


def give_back(publish: Publish, text: str, error: MessageError) -> None:
    """Return a message that was not sent to the user, and say why."""
    publish(NoticeRaised(Notice(Severity.ERROR, str(error), error.advice)))
    publish(MessageReturned(text))
