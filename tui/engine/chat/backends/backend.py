"""The interface of a model backend: a service, or the demo, that streams model steps."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tui.model.answering.models import OWN_OPTIONS, ModelOffer, ModelOptions
from tui.model.chat import BackendKind, Usage

WirePart = Mapping[str, Any]
"""One part of a content in Gemini's REST form, camelCase, bytes as base64: ``{"text": …}``,
``{"text": …, "thought": true}``, ``{"functionCall": {"id", "name", "args"}}``,
``{"functionResponse": …}``, ``{"inlineData": {"mimeType", "data"}}``; optionally with a
``thoughtSignature``, which must be sent back unchanged."""

WireContent = Mapping[str, Any]
"""``{"role": "user" | "model", "parts": [WirePart, …]}``."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request for one model step.

    Attributes:
        contents: The conversation so far; the last content is the user's.
        declarations: Function declarations of the offered tools; may be empty.
        system_instruction: The system instruction, or an empty string.
        max_output_tokens: The most tokens of the answer, thoughts included; None for the model's
            own limit. With a limit, thinking is kept to a minimum.
        must_call: Whether the answer must be a call of a declared tool.
        options: How the user wants it to answer.
    """

    contents: Sequence[WireContent]
    declarations: Sequence[Mapping[str, Any]]
    system_instruction: str = ""
    max_output_tokens: int | None = None
    must_call: bool = False
    options: ModelOptions = OWN_OPTIONS


@dataclass
class Asked:
    """How a conversation asks its model.

    Attributes:
        options: How the user wants it to answer.
        last: The last request, or None.
    """

    options: ModelOptions = OWN_OPTIONS
    last: ModelRequest | None = None

    def request(
        self,
        contents: Sequence[WireContent],
        declarations: Sequence[Mapping[str, Any]],
        system_instruction: str,
    ) -> ModelRequest:
        """Make the next request."""
        self.last = ModelRequest(contents, declarations, system_instruction, options=self.options)
        return self.last


@dataclass(frozen=True, slots=True)
class ModelChunk:
    """One piece of a streamed step.

    Attributes:
        parts: New parts in wire format.
        finish_reason: Gemini's ``finishReason`` in the last chunk, else empty.
        finish_message: The service's explanation of it.
        block_reason: Why the prompt was refused, or an empty string.
        usage: The token counts so far, or None.
    """

    parts: tuple[WirePart, ...] = ()
    finish_reason: str = ""
    finish_message: str = ""
    block_reason: str = ""
    usage: Usage | None = None


class ModelError(Exception):
    """The model could not answer.

    Attributes:
        advice: What the user can do about it.
        retry_after: Seconds to wait before a retry, or None.
        retryable: Whether the same request may succeed later.
        refused_tool: The tool whose declaration the service refused, or an empty string.
        refused_content: The service's words if it may have refused a part of the contents.
    """

    def __init__(
        self,
        message: str,
        *,
        advice: str = "",
        retry_after: float | None = None,
        retryable: bool = False,
        refused_tool: str = "",
        refused_content: str = "",
    ) -> None:
        super().__init__(message)
        self.advice = advice
        self.retry_after = retry_after
        self.retryable = retryable
        self.refused_tool = refused_tool
        self.refused_content = refused_content


class ModelBackend(Protocol):
    """A model that streams one step at a time."""

    @property
    def kind(self) -> BackendKind:
        """Which service this is."""

    @property
    def model(self) -> str:
        """The model's name."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Stream one step. Canceling the consuming task ends the request on the wire at once.

        Raises:
            ModelError: If the service refuses, fails or disconnects.
        """

    async def models(self) -> Sequence[ModelOffer]:
        """Ask the service which models it has.

        Raises:
            ModelError: If it cannot say.
        """

    async def check(self) -> None:
        """See whether the service accepts the credentials.

        Raises:
            ModelError: If it does not, or cannot be reached.
        """

    async def aclose(self) -> None:
        """Close connections."""
