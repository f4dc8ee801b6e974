"""The types shared by the turn loop and the servers: offered tools, calls and results."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any, Final

from tui.model.catalog import ResourceContent, ToolId, ToolView
from tui.model.frozen import dataclass
from tui.model.servers import ServerId

JsonObject = Mapping[str, Any]

STRUCTURED: Final = "[Structured content]"
"""Stands between a result's text and what the text does not carry."""

MAX_STRUCTURED: Final = 5_000
"""Characters that structured content gets beside a result's text, however long that is."""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that the model may call now.

    Attributes:
        id: Its name for the model.
        server: The server that runs it.
        name: Its name as that server spells it; may be hostile, never shown.
        view: Its view for the user.
        declaration: Its Gemini function declaration: ``name``, ``description``,
            ``parametersJsonSchema``.
        schema: Its input schema as the server wrote it; calls are validated against it.
        definition_hash: SHA-256 (hex) of name, title, description, schemas and annotations.
            Consent is bound to it.
        trusted: Whether the user or system settings set `trust: true` for its server.
        is_reviewed: Whether the user sees its results before the model does.
        fingerprint: Identifies its server independently of its name; empty if the server has
            none, and then no lasting permission can be granted to it.
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
    is_reviewed: bool = False


@dataclass(frozen=True, slots=True)
class OwnTool(OfferedTool):
    """A tool of gemdeck's own, which no server lists.

    Attributes:
        run: Runs it; raises `ToolCallError`.
        bind: Returns what a call with these arguments is shown and allowed as, such as a tool of
            the server that it asks; raises `ToolCallError`. None if that is this tool.
        is_free: Whether it asks no server and changes nothing, so that it needs no consent.
    """

    run: Callable[[JsonObject], Awaitable["ToolResult"]] = field(kw_only=True, compare=False)
    bind: Callable[[JsonObject], "OwnTool"] | None = field(default=None, compare=False)
    is_free: bool = False


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call as the model wrote it; `id` is empty if the service gives none."""

    name: str
    arguments: dict[str, Any]
    id: str = ""


class Permit:
    """Leave to run one call, once: what the gate gives and `ServerManager.call_tool` uses up.

    Attributes:
        tool: The tool as it was offered, and so its server and definition.
        arguments: What is sent; nobody changes it.
        shown: The same, complete, as canonical JSON.
        source: Why it may run, such as ``you: once``.
    """

    __slots__ = ("_is_used", "arguments", "shown", "source", "tool")

    def __init__(self, tool: OfferedTool, arguments: JsonObject, shown: str, source: str) -> None:
        self.tool, self.arguments, self.shown, self.source = tool, arguments, shown, source
        self._is_used = False

    def use(self) -> None:
        """Use it up; raises `ToolCallError` the second time."""
        if self._is_used:
            raise ToolCallError("Nobody has allowed this call again; it was not run.")
        self._is_used = True


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
    """The result of a call, for the model and for the screen.

    `is_error` says that the tool reported an error; both forms contain its message.
    """

    parts: tuple[TextPart | MediaPart, ...]
    display: str
    is_error: bool = False


class ToolCallError(Exception):
    """A call returned no result: the server is gone, timed out or broke the protocol.

    The text says what happened, for both the user and the model.
    """


class CallNotTakenError(ToolCallError):
    """The server had lost the session and did not run the call: it is safe to repeat it."""


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt: its role, ``user`` or ``model``, and its parts.

    Calls and their results are in Gemini's REST form.
    """

    role: str
    parts: "tuple[TextPart | MediaPart | JsonObject, ...]"


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt as a server rendered it, for the screen and for the model.

    The model gets the turns of `before`, and then `parts` as the user's message.
    """

    shown: str
    parts: tuple[TextPart | MediaPart | JsonObject, ...]
    before: tuple[PromptMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceReading:
    """The content of a resource, for the screen and for the model.

    `remark` says how the two differ, and `problem` what the model cannot be given; or both are
    empty.
    """

    content: ResourceContent
    parts: tuple[TextPart | MediaPart, ...]
    remark: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CompletionValues:
    """Values that a server suggests; `has_more` if it knows further ones."""

    values: tuple[str, ...] = ()
    has_more: bool = False
