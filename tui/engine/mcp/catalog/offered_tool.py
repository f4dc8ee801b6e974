"""What the turn loop and the server side agree on: offered tools, calls and their results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tui.model.catalog import ToolId, ToolView
from tui.model.chat import Progress
from tui.model.servers import ServerId

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that the model may call now.

    Attributes:
        id: Its name towards the model.
        server: The server that runs it.
        name: Its name as that server spells it; may be hostile, never shown.
        view: What the user sees of it.
        declaration: Its Gemini function declaration: ``name``, ``description``,
            ``parametersJsonSchema``.
        schema: Its input schema as the server gave it; calls are validated against it.
        definition_hash: SHA-256 (hex) of name, title, description, schemas and annotations.
            Consent binds to it.
        trusted: Whether the user's or system's settings say `trust: true` for its server.
        fingerprint: Identifies its server by what it is, never by its name; empty where the
            server has none, and then nothing lasting can be granted to it.
    """

    id: ToolId
    server: ServerId
    name: str
    view: ToolView
    declaration: JsonObject
    schema: JsonObject
    definition_hash: str
    trusted: bool = False
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text of a result for the model."""

    text: str


@dataclass(frozen=True, slots=True)
class MediaPart:
    """Binary content of a result for the model: an IANA media type and base64 data."""

    mime_type: str
    data: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave, in the form for the model and the form for the screen.

    `is_error` says that the tool reported an error; its message then is in both forms.
    """

    parts: tuple[TextPart | MediaPart, ...]
    display: str
    is_error: bool = False


class ToolCallError(Exception):
    """A call did not come back: the server is gone, timed out or broke the protocol.

    The text says what happened, for the user and the model alike.
    """


class ToolHost(Protocol):
    """The server side, as the turn loop sees it."""

    def offered_tools(self) -> Sequence[OfferedTool]:
        """List what the model may call now, in settings order of the servers."""

    async def call_tool(
        self,
        tool: OfferedTool,
        arguments: JsonObject,
        on_progress: Callable[[Progress], None],
    ) -> ToolResult:
        """Run a tool, if its server still defines it as it was offered.

        Cancelling the awaiting task cancels the call on the server.

        Raises:
            ToolCallError: If no result came back.
        """
