"""What waits for the user: calls to allow, forms to fill in, addresses, text to generate."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tui.model.chat import EntryId
from tui.model.consent import RequestId
from tui.model.servers import ServerId
from tui.model.trust import ToolChangeRequest, TrustRequest

FormValue = str | int | float | bool | tuple[str, ...] | None
"""The value of a form field; a tuple for several choices, None for one left empty."""


class FieldKind(StrEnum):
    """What a form field takes."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "yes or no"
    CHOICE = "one of"
    CHOICES = "some of"


@dataclass(frozen=True, slots=True)
class FieldOption:
    """One choice of a field: what is sent, and what is shown."""

    value: str
    label: str


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form that a server asks to fill in.

    Attributes:
        key: Identifies the field in the answer.
        kind: What it takes.
        title: Its label.
        description: The server's words on it.
        required: Whether accepting the form needs it.
        default: What it is filled with at first.
        options: What can be chosen, for the choice kinds.
        format: ``email``, ``uri``, ``date``, ``date-time``, or nothing.
        minimum: Least number, length or count of choices; None for no bound.
        maximum: Greatest number, length or count of choices; None for no bound.
        pattern: A regular expression the text has to match, or nothing.
        asks_secret: Whether its name looks as if it asked for a secret, which servers must not.
    """

    key: str
    kind: FieldKind
    title: str
    description: str = ""
    required: bool = False
    default: FormValue = None
    options: tuple[FieldOption, ...] = ()
    format: str = ""
    minimum: float | None = None
    maximum: float | None = None
    pattern: str = ""
    asks_secret: bool = False


@dataclass(frozen=True, slots=True)
class ConfirmationRequest:
    """A tool call that waits for the user.

    Attributes:
        id: What the answer refers to.
        call: The transcript entry of the call.
        server: The server that would run it.
        tool: The tool's name on that server.
        title: The tool's human name, or nothing.
        description: The server's words on the tool.
        arguments: The complete arguments, frozen, as canonical indented JSON.
        claims: What the server claims of the tool; shown as claims.
        fields: A form for the arguments, filled in with them; empty where their schema is not
            flat, so that they can be edited as JSON only.
        notes: What gemdeck has to say of this call, such as that this turn has read data from
            another server, or that the same call was denied before.
        problem: Why the arguments as edited last could not be used, or nothing.
        may_last: Whether the answers that hold for later calls are offered.
        origin: Where the server comes from, in gemdeck's words, such as ``this folder``; nothing
            where nobody knows.
    """

    id: RequestId
    call: EntryId
    server: ServerId
    tool: str
    description: str
    arguments: str
    claims: tuple[str, ...] = ()
    title: str = ""
    fields: tuple[FormField, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""
    may_last: bool = True
    origin: str = ""


@dataclass(frozen=True, slots=True)
class FormRequest:
    """A server asks for structured input (elicitation, form mode)."""

    id: RequestId
    server: ServerId
    message: str
    fields: tuple[FormField, ...]
    problem: str = ""
    """Why the last answer was not taken: ``TITLE: what is wrong``; nothing at first."""


@dataclass(frozen=True, slots=True)
class UrlRequest:
    """A server asks that the user open an address (elicitation, URL mode).

    Attributes:
        id: What the answer refers to.
        server: Who asks.
        message: Why, in the server's words.
        url: The whole address, in ASCII.
        host: Its host, in ASCII.
        shown_host: Its host as people read it; differs from `host` where that is punycode.
        warning: What is odd about the address, or nothing.
    """

    id: RequestId
    server: ServerId
    message: str
    url: str
    host: str
    shown_host: str
    warning: str = ""


@dataclass(frozen=True, slots=True)
class SamplingMessage:
    """One message of a prompt that a server wants answered; `editable` where it is plain text."""

    role: str
    text: str
    editable: bool = True


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """A server asks that the model generate text (sampling): the user sees and may edit it.

    Attributes:
        id: What the answer refers to.
        server: Who asks.
        system: The system prompt, or nothing.
        messages: The prompt.
        max_tokens: The most tokens the answer may have.
        model: The model that would answer.
        hints: The models the server would like, best first.
        tools: Names of the tools the server offers the model.
    """

    id: RequestId
    server: ServerId
    system: str
    messages: tuple[SamplingMessage, ...]
    max_tokens: int
    model: str
    hints: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SamplingReview:
    """What the model generated for a server: the user sees and may edit it before it goes out."""

    id: RequestId
    server: ServerId
    text: str
    model: str
    editable: bool = True


PendingRequest = (
    ConfirmationRequest
    | TrustRequest
    | ToolChangeRequest
    | FormRequest
    | UrlRequest
    | SamplingRequest
    | SamplingReview
)
"""Every kind of question that waits for the user."""


class ReplyAction(StrEnum):
    """The user's answer to a server's request."""

    ACCEPT = "accept"
    ACCEPT_ALWAYS = "always this server"
    DECLINE = "decline"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to a `FormRequest`, `UrlRequest`, `SamplingRequest` or `SamplingReview`.

    Attributes:
        action: What was decided. ACCEPT_ALWAYS is for sampling requests: this server's later
            prompts of this session go to the model unasked; what comes back is still shown.
        content: The filled-in form, by field key.
        system: The system prompt as edited, for a `SamplingRequest`.
        messages: The texts of the messages as edited, in order, for a `SamplingRequest`.
        text: The answer as edited, for a `SamplingReview`.
    """

    action: ReplyAction
    content: Mapping[str, FormValue] | None = None
    system: str | None = None
    messages: tuple[str, ...] | None = None
    text: str | None = None
