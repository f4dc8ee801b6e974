"""A message to the model: what is shown and what is sent."""

from dataclasses import dataclass

from tui.engine.mcp.catalog.offered_tool import MediaPart, TextPart
from tui.model.servers import ServerId


@dataclass(frozen=True, slots=True)
class Message:
    """The message that starts a turn. All text is sanitized.

    Attributes:
        shown: What the transcript shows.
        parts: What the model gets; at least one part.
        unsent: What returns to the composer if the model never answers.
        server: The server whose data the parts contain, or None.
    """

    shown: str
    parts: tuple[TextPart | MediaPart, ...]
    unsent: str
    server: ServerId | None = None

    @classmethod
    def of_text(cls, text: str) -> "Message":
        return cls(text, (TextPart(text),), text)
