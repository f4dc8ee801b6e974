"""The interface of a model backend: a service, or the demo, that streams model steps.

Another provider is one module: a `ModelBackend` that puts a `ModelRequest` into the words of its
service, and what comes back into `ModelChunk`s. It is handed to the engine as a `Provider`.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tui.model.chat import Usage
from tui.model.frozen import Frozen
from tui.model.models import OWN_OPTIONS, ModelOffer, ModelOptions
from tui.text import AdvisedError

WirePart = Mapping[str, Any]
"""One part of a content in Gemini's REST form, camelCase, bytes as base64: ``{"text": …}``,
``{"text": …, "thought": true}``, ``{"functionCall": {"id", "name", "args"}}``,
``{"functionResponse": …}``, ``{"inlineData": {"mimeType", "data"}}``; optionally with a
``thoughtSignature``, which must be sent back unchanged. It is also the form in which conversations
are kept; a backend of another service translates it."""

WireContent = Mapping[str, Any]
"""``{"role": "user" | "model", "parts": [WirePart, …]}``."""


class ModelRequest(Frozen):
    """A request for one model step.

    Attributes:
        contents: The conversation so far; the last content is the user's.
        declarations: The offered tools, with ``name``, ``description`` and a JSON schema as
            ``parametersJsonSchema``; may be empty.
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
    """

    options: ModelOptions = OWN_OPTIONS


class ModelChunk(Frozen):
    """One piece of a streamed step.

    Attributes:
        parts: New parts in wire format.
        finish_reason: In the last chunk ``STOP``, ``MAX_TOKENS``, ``SAFETY`` or another of
            Gemini's ``finishReason``, else empty.
        finish_message: The service's explanation of it.
        block_reason: Why the prompt was refused, or an empty string.
        usage: The token counts so far, or None.
    """

    parts: tuple[WirePart, ...] = ()
    finish_reason: str = ""
    finish_message: str = ""
    block_reason: str = ""
    usage: Usage | None = None


class ModelError(AdvisedError):
    """The model could not answer.

    Attributes:
        brief: Its text without the service's words; empty if there are none.
        retry_after: Seconds to wait before a retry, or None.
        retryable: Whether the same request may succeed later.
        refused_tool: The tool whose declaration the service refused, or an empty string.
        refused_content: The service's words if it may have refused a part of the contents.
        lacks: What the model does not have: ``room`` for the request, ``tools`` or
            ``instructions``; else empty.
    """

    def __init__(
        self,
        message: str,
        *,
        details: str = "",
        advice: str = "",
        retry_after: float | None = None,
        retryable: bool = False,
        refused_tool: str = "",
        refused_content: str = "",
        lacks: str = "",
    ) -> None:
        super().__init__(f"{message}: {details}" if details else message, advice)
        self.brief = f"{message}." if details else ""
        self.retry_after, self.retryable, self.refused_tool = retry_after, retryable, refused_tool
        self.refused_content, self.lacks = refused_content, lacks


class ModelTraits(Frozen):
    """What is known of a model before it is asked.

    Attributes:
        context_limit: The size of its context in tokens; 0 if unknown.
        signs_calls: Whether the first call of each step must carry a thought signature.
        media_in_responses: Whether a function response may contain media.
        thinking_problem: Returns why it cannot think like that, or an empty string.
        tools: Whether tools may be declared.
        plain_schemas: Whether it takes JSON Schema as it is, and not only Gemini's part of it.
        offer: What its service says of it, or has not said.
        address: Where its service is, by which its list price is found; empty if unknown.
    """

    context_limit: int = 0
    signs_calls: bool = False
    media_in_responses: bool = False
    thinking_problem: Callable[[str], str] = lambda _: "This model has no thinking setting."
    tools: bool = True
    plain_schemas: bool = False
    offer: ModelOffer | None = None
    address: str = ""


class ModelBackend(Protocol):
    """A model that streams one step at a time."""

    @property
    def kind(self) -> str:
        """The service's name, as shown; `BackendKind` has those that gemdeck knows itself."""

    @property
    def model(self) -> str:
        """The model's name."""

    @property
    def traits(self) -> ModelTraits:
        """What is known of it."""

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

    async def count(self, request: ModelRequest) -> int:
        """Count the tokens of a request; return 0 if the service cannot."""

    async def check(self) -> None:
        """See whether the service accepts the credentials.

        Raises:
            ModelError: If it does not, or cannot be reached.
        """

    async def aclose(self) -> None:
        """Close connections."""


Provider = Callable[[str], ModelBackend]
"""Opens a model of another service, by its name or, if that is empty, its usual one.

It may block, and raises `ModelError` if it cannot.
"""
