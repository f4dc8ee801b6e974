"""What a model backend is: a service, or the demo, that streams one model step at a time."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tui.model.chat import BackendKind, Usage

WirePart = Mapping[str, Any]
"""One part of a content in Gemini's REST form, camelCase, bytes as base64: ``{"text": …}``,
``{"text": …, "thought": true}``, ``{"functionCall": {"id", "name", "args"}}``,
``{"functionResponse": …}``, ``{"inlineData": {"mimeType", "data"}}``; perhaps with a
``thoughtSignature``, which must go back as it came."""

WireContent = Mapping[str, Any]
"""``{"role": "user" | "model", "parts": [WirePart, …]}``."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One step asked of the model.

    Attributes:
        contents: The conversation so far; the last content is the user's.
        declarations: Function declarations of the offered tools; may be empty.
        system_instruction: Standing orders, or nothing.
        max_output_tokens: The most tokens the answer may have, thoughts included; None for
            as many as the model can. A bounded answer is thought about as little as possible.
        must_call: Whether the answer has to be a call of one of the declared tools.
    """

    contents: Sequence[WireContent]
    declarations: Sequence[Mapping[str, Any]]
    system_instruction: str = ""
    max_output_tokens: int | None = None
    must_call: bool = False


@dataclass(frozen=True, slots=True)
class ModelChunk:
    """One piece of a streamed step.

    Attributes:
        parts: New parts in wire form.
        finish_reason: Gemini's ``finishReason`` with the last chunk, else nothing.
        finish_message: The service's words on it.
        block_reason: Why the prompt was refused, where it was.
        usage: The count so far, where the chunk carries one.
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
        retry_after: Seconds the service asks to wait, or None.
        retryable: Whether the same request may succeed later without any change.
        refused_tool: The tool whose declaration the service refused, or nothing.
    """

    def __init__(
        self,
        message: str,
        *,
        advice: str = "",
        retry_after: float | None = None,
        retryable: bool = False,
        refused_tool: str = "",
    ) -> None:
        super().__init__(message)
        self.advice = advice
        self.retry_after = retry_after
        self.retryable = retryable
        self.refused_tool = refused_tool


class ModelBackend(Protocol):
    """A model that answers step by step."""

    @property
    def kind(self) -> BackendKind:
        """Which service this is."""

    @property
    def model(self) -> str:
        """The model's name."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Stream one step. Cancelling the consuming task ends the request on the wire at once.

        Raises:
            ModelError: If the service refuses, fails or breaks off.
        """

    async def aclose(self) -> None:
        """Let go of connections."""
