"""A message on its way to the model: what is shown of it, and what the model gets."""

from dataclasses import dataclass

from tui.engine.tools import MediaPart, TextPart
from tui.model.servers import ServerId


@dataclass(frozen=True, slots=True)
class Message:
    """What begins a turn. All text in it is sanitised.

    Attributes:
        shown: What the transcript shows.
        parts: What the model gets; at least one part.
        unsent: What goes back into the composer if the model never takes it in.
        server: The server whose data is among the parts, or None.
    """

    shown: str
    parts: tuple[TextPart | MediaPart, ...]
    unsent: str
    server: ServerId | None = None

    @classmethod
    def of_text(cls, text: str) -> "Message":
        """Make a message of what the user typed."""
        return cls(text, (TextPart(text),), text)
