"""Questions to the user: tool calls, forms, addresses and sampling requests."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, ClassVar, Final, Generic, TypeVar

from tui.model.catalog import Mark
from tui.model.chat import MAIN, ConversationId, EntryId
from tui.model.consent import Decision, RequestId
from tui.model.frozen import Frozen
from tui.model.servers import ServerId
from tui.model.trust import DifferenceLine, Disclosure, ToolChange, TrustAnswer, TrustSubject

FormValue = str | int | float | bool | tuple[str, ...] | None
"""The value of a form field; a tuple for several choices, None if empty."""


PRIVATE_WARNING: Final = (
    "This looks like a secret. Servers must not ask for one: leave it empty unless you are sure."
)
"""Stands beside a field of a server's form that asks for a secret."""


class FieldKind(StrEnum):
    """The kind of a form field."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "yes or no"
    CHOICE = "one of"
    CHOICES = "some of"
    JSON = "JSON"
    ROWS = "rows"


class FieldOption(Frozen):
    """One choice of a field: the value sent and the label shown."""

    value: str
    label: str


class FormField(Frozen):
    """One field of a form.

    Attributes:
        key: Identifies the field in the answer.
        kind: Its kind; the value of `FieldKind.JSON` is a text that is JSON of any type, and that
            of `FieldKind.ROWS` the options that stay, in their new order, each "" being a new row.
        title: Its label.
        description: The server's description.
        required: Whether the form requires it.
        default: Its initial value.
        options: The choices, for the choice kinds.
        format: ``email``, ``uri``, ``date``, ``date-time``, or an empty string.
        minimum: Smallest number, length or count of choices or rows; None for no limit.
        maximum: Largest number, length or count of choices or rows; None for no limit.
        asks_secret: Whether its name suggests a secret, which servers must not ask for.
        around: The labels of the objects that it is in, from the outermost.
        opened: Of rows, the option whose own fields follow; empty if they are all closed.
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
    asks_secret: bool = False
    around: tuple[str, ...] = ()
    opened: str = ""


class ReplyAction(StrEnum):
    """The user's answer to a server's request."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"

    @property
    def allows(self) -> bool:
        return self is ReplyAction.ACCEPT


class Reply(Frozen):
    """An answer to a server's request or a `SignInRequest`.

    Attributes:
        action: The decision.
        content: The form's values, by field key.
        text: The edited text, for a `ResultReview`; what was pasted, for a `SignInRequest`.
    """

    action: ReplyAction
    content: Mapping[str, FormValue] | None = None
    text: str | None = None

    @property
    def allows(self) -> bool:
        return self.action.allows


Answer = Decision | TrustAnswer | Reply
"""Any answer of the user."""

AnswerT = TypeVar("AnswerT", bound=Answer)


class Request(Frozen, Generic[AnswerT]):
    """A question to the user, by the id of which the answer comes back.

    Its `answer_type` is what is accepted as an answer.
    """

    id: RequestId
    answer_type: ClassVar[type[Answer]] = Reply


PendingRequest = Request[Any]
"""Any question to the user."""


class TextEdit(Frozen):
    """An object among the arguments that replaces one text by another.

    Attributes:
        name: Where the object is, such as ``edits[0]``; empty for the arguments themselves.
        texts: The names of its old and its new text.
        place: Where the file has the old text, in a few words; empty if that is unknown.
        first: The line of the file where it begins, from 1; 0 if that is unknown.
        lines: All lines of both texts: ``-`` before one that goes, ``+`` before a new one, else a
            blank.
    """

    name: str
    texts: tuple[str, str]
    place: str
    first: int
    lines: tuple[tuple[str, str], ...]


class FileChange(Frozen):
    """What arguments change in the file of the opened folder that one of them names.

    Attributes:
        path: The argument that names the file; empty if it is unknown.
        content: The argument that is compared with the content of the file, or an empty string.
        summary: The difference in a few words.
        lines: The signs of all lines of both: ``-`` if only the file has it, ``+`` if only the
            argument has it, else a blank. A line of the file alone stands behind its sign; the
            others are the argument's, in order.
        edits: The texts that are replaced, in order.
    """

    path: str
    content: str
    summary: str
    lines: tuple[tuple[str, str], ...]
    edits: tuple[TextEdit, ...] = ()


class ConfirmationRequest(Request[Decision]):
    """Asks whether a tool call may run.

    Attributes:
        call: The transcript entry of the call.
        server: The server that would run it.
        tool: The tool's name on that server.
        title: The tool's display name, or an empty string.
        description: The server's description of the tool.
        arguments: The complete arguments as canonical indented JSON.
        claims: The server's claims about the tool; shown as claims.
        notes: gemdeck's notes on this call, such as that this turn has read data from another
            server, or that the same call was denied before.
        problem: Why the edited arguments cannot be used, or an empty string.
        refusals: How many edits were refused; the same problem twice is another question.
        not_lasting: Why no answer that covers later calls is offered, or an empty string.
        origin: Where the server comes from, such as ``this folder``; empty if unknown.
        change: What the arguments hold for a file that they name, or None.
        paths: The arguments that are texts: the name of each, the text, with its links resolved
            where it is an absolute path, and the folder that a rule may name, or "".
        read_only: How many of its tools the server claims only to read, this one among them; 0 if
            it does not claim that of this one.
        conversation: The conversation whose model asks for the call.
        caller: The other client that asks for it instead, in words; or empty.
    """

    answer_type = Decision
    call: EntryId
    server: ServerId
    tool: str
    description: str
    arguments: str
    claims: tuple[str, ...] = ()
    title: str = ""
    notes: tuple[str, ...] = ()
    problem: str = ""
    refusals: int = 0
    not_lasting: str = ""
    origin: str = ""
    change: FileChange | None = None
    paths: tuple[tuple[str, str, str], ...] = ()
    read_only: int = 0
    conversation: ConversationId = MAIN
    caller: str = ""


class FormRequest(Request[Reply]):
    """A server asks for structured input (elicitation, form mode)."""

    server: ServerId
    message: str
    fields: tuple[FormField, ...]
    problem: str = ""
    """Why the last answer was refused; empty at first."""
    wrong: str = ""
    """The key of the field that this is about."""


class UrlRequest(Request[Reply]):
    """A server asks the user to open an address (elicitation, URL mode).

    Attributes:
        server: The server that asks.
        message: The server's reason.
        url: The complete address, in ASCII.
        host: Its host, in ASCII.
        shown_host: Its host as displayed; differs from `host` if that is punycode.
        warning: What is suspicious about the address, or an empty string.
    """

    server: ServerId
    message: str
    url: str
    host: str
    shown_host: str
    warning: str = ""


class SignInRequest(Request[Reply]):
    """Asks whether to sign in to a server; answered again with what the user pastes.

    Attributes:
        server: The server.
        address: Its address, without anything secret.
        host: The host of the authorization server, in ASCII.
        shown_host: That host as displayed; differs from `host` if that is punycode.
        issuer: The authorization server's identifier.
        resource: What the sign-in is for.
        scopes: What it asks for.
        url: The address to open, in ASCII; empty if nothing has to be opened.
        token_host: The host that gets the code, or empty if that is the page's.
        notes: What is unusual about it.
        kept: Where tokens are kept.
        problem: What came of the last answer, or empty.
    """

    server: ServerId
    address: str
    host: str
    shown_host: str
    issuer: str
    resource: str
    scopes: tuple[str, ...] = ()
    url: str = field(default="", repr=False)
    token_host: str = ""
    notes: tuple[str, ...] = ()
    kept: str = ""
    problem: str = ""


class SamplingMessage(Frozen):
    """One message of a sampling prompt, as shown."""

    role: str
    text: str


class SamplingRequest(Request[Reply]):
    """A server asks the model to generate text (sampling); asked for each prompt.

    Attributes:
        server: The server that asks.
        system: The system prompt, or an empty string.
        messages: The prompt.
        max_tokens: The most tokens of the answer.
        model: The model that will answer.
        hints: The models the server prefers, best first.
        tools: Names of the tools that the server offers to the model.
        declarations: What the model would read of each of them, as indented JSON.
    """

    server: ServerId
    system: str
    messages: tuple[SamplingMessage, ...]
    max_tokens: int
    model: str
    hints: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    declarations: tuple[str, ...] = ()


class SamplingReview(Request[Reply]):
    """Generated text for a server, before it is sent."""

    server: ServerId
    text: str
    model: str


class ResultReview(Request[Reply]):
    """A tool's result before the model gets it; the user can pass, trim or withhold it.

    Attributes:
        call: The transcript entry of the call.
        server: The server that answered.
        tool: The tool's name on that server.
        text: What it says, to edit.
        media: A line for each image or other data that goes along.
        marks: What is marked in the text.
        conversation: The conversation whose model asked for the call.
        caller: The other client that asked for it instead, in words; or empty.
    """

    call: EntryId
    server: ServerId
    tool: str
    text: str
    media: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    conversation: ConversationId = MAIN
    caller: str = ""


class SkillRequest(Request[TrustAnswer]):
    """Asks whether a skill may be loaded: about its entry, and then about its text.

    Attributes:
        server: The server.
        name: Its name on that.
        description: What the server says of it.
        files: A line for each of its files.
        ignored: Fields of its front matter that a host might act on; gemdeck does not.
        difference: The diff since it was trusted; empty the first time.
        text: Its SKILL.md; empty while that is not read.
        marks: What is marked in the text, or in the entry while there is none.
    """

    answer_type = TrustAnswer
    server: ServerId
    name: str
    description: str
    files: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    difference: tuple[DifferenceLine, ...] = ()
    text: str = ""
    marks: tuple[Mark, ...] = ()


class TrustRequest(Request[TrustAnswer]):
    """Asks whether the servers of a folder or an edited settings file may run.

    Attributes:
        subject: Its subject.
        place: The folder or file, as shown.
        servers: Every server that it defines or that changed.
        variables: The names of the variables in its ``.env``.
        rules: Its other effects, such as "denies the tools of git".
        difference: The diff since it was trusted; empty the first time.
        refusal: Why a yes counts in this run alone, or an empty string.
        may_include_children: Whether trust can include its subfolders.
        context: The files whose text would go to the model.
        standing: Its unchanged servers, which run whatever the answer.
        taken: Its servers that do not count, since one of the user's has the name.
        own: The user's servers, which start in the folder after a yes.
        no_sandbox: Why no sandbox can be had here, or "".
    """

    answer_type = TrustAnswer
    subject: TrustSubject
    place: str
    servers: tuple[Disclosure, ...] = ()
    variables: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    difference: tuple[DifferenceLine, ...] = ()
    refusal: str = ""
    may_include_children: bool = False
    standing: tuple[ServerId, ...] = ()
    context: tuple[str, ...] = ()
    taken: tuple[ServerId, ...] = ()
    own: tuple[ServerId, ...] = ()
    no_sandbox: str = ""


ANY_WORDING: Final = Reply(ReplyAction.ACCEPT, text="any wording")
"""Accepts changed tools, and whatever only their descriptions say later."""


class ToolChangeRequest(Request[Reply]):
    """Asks about changed or marked tools, which are withheld from the model until accepted.

    Attributes:
        server: The server.
        changes: The tools.
    """

    server: ServerId
    changes: tuple[ToolChange, ...]
