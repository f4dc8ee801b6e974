"""The types shared by the turn loop and the servers: offered tools, calls and results."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import chain, count
from typing import Any, Final, TypeVar

from tui.engine.mcp.schema.plain import plain_schema
from tui.model.catalog import ResourceContent, ToolId, ToolView
from tui.model.chat import Picture
from tui.model.frozen import Frozen
from tui.model.input.own_commands import ALIASES, OWN_COMMANDS
from tui.model.runs import RenderedMessage
from tui.model.servers import ServerId
from tui.text import AdvisedError

OWN_NAMES: Final = (
    *("search_tools", "list_mcp_resources", "read_mcp_resource", "read_result", "load_skill"),
    "check_task",
)
"""The names of gemdeck's own tools, which no server's tool gets."""

MAX_NAME: Final = 63
"""Longest name; Gemini documents 64."""

_HEAD: Final = 28
_TAIL: Final = 32
_GAP: Final = "___"
_DIGEST: Final = 8
_NOT_ALLOWED: Final = re.compile(r"[^a-zA-Z0-9_.-]")
_MODEL_PREFIX: Final = re.compile(r"default_api[.:]")
"""What Gemini models sometimes put before names; no tool may have such a name itself."""

_RESERVED: Final = frozenset({"default_api"})

_REMEMBERED: Final = 65_536
"""Size of the cache: every name is assigned again whenever a list changes."""

Server = TypeVar("Server", bound=str)

JsonObject = Mapping[str, Any]

STRUCTURED: Final = "[Structured content]"
"""Stands between a result's text and what the text does not carry."""

MAX_STRUCTURED: Final = 5_000
"""Characters that structured content gets beside a result's text, however long that is."""


@lru_cache(maxsize=_REMEMBERED)
def sanitize_name(name: str) -> str:
    """Make a name valid for Gemini.

    Characters outside ``[a-zA-Z0-9_.-]`` become ``_``; a name that does not start with a letter
    or ``_`` gets a ``_``; a name over 63 characters keeps its first 28 and last 32.
    """
    clean = _NOT_ALLOWED.sub("_", name)
    if not clean or not (clean[0].isalpha() or clean[0] == "_"):
        clean = "_" + clean
    if len(clean) > MAX_NAME:
        clean = clean[:_HEAD] + _GAP + clean[-_TAIL:]
    return clean


def assign_names(
    offers: Sequence[tuple[Server, Collection[str]]],
    reserved: Iterable[str] = (),
    given: Mapping[tuple[Server, str], ToolId] = {},
) -> dict[tuple[Server, str], ToolId]:
    """Name the tools of all servers.

    Names that differ only in case count as equal, as models confuse them. The order of tools
    within a server does not matter.

    Args:
        offers: Server ids in settings order, each with the names of its tools.
        reserved: Names that are already taken.
        given: Names that stay with their tools, whether these are in `offers` or not.

    Returns:
        The name of each server's tool, in their order; no two are equal, ignoring case.
    """
    names: dict[tuple[Server, str], ToolId] = {}
    taken = {*_RESERVED, *(name.lower() for name in chain(reserved, given.values()))}
    for server, tools in offers:
        names |= {(server, tool): given.get((server, tool), ToolId("")) for tool in tools}
        spelled = {tool: sanitize_name(tool) for tool in tools if not names[server, tool]}
        for _, tool, bare in sorted((bare != tool, tool, bare) for tool, bare in spelled.items()):
            name = bare if _is_free(bare, taken) else _free_name(server, tool, taken)
            taken.add(name.lower())
            names[server, tool] = ToolId(name)
    return names


def assign_prompt_names(offers: Sequence[tuple[str, Sequence[str]]]) -> list[list[str]]:
    """Name the prompts of all servers for the user.

    The first server keeps a prompt's own name, unless it is a command of the screen; others get
    ``server_prompt``, with a number appended if that is taken too.

    Args:
        offers: Server ids in settings order, each with the names of its prompts.

    Returns:
        For each server the names of its prompts, in order; all are different.
    """
    taken = {*OWN_COMMANDS, *ALIASES}
    named = []
    for server, prompts in offers:
        names = []
        for prompt in prompts:
            own = f"{server}_{prompt}"
            forms = chain((prompt, own), (f"{own}_{number}" for number in count(2)))
            names.append(next(name for name in forms if name not in taken))
            taken.add(names[-1])
        named.append(names)
    return named


def without_model_prefix(name: str) -> str:
    """Remove the prefix that a model may have put before a tool's name."""
    return name[found.end() :] if (found := _MODEL_PREFIX.match(name)) else name


def _free_name(server: str, tool: str, taken: set[str]) -> str:
    """Return a name with the server in it."""
    qualified = sanitize_name(f"{server}__{tool}")
    if _is_free(qualified, taken):
        return qualified
    texts = (f"{server}\0{tool}\0{number}" for number in count())
    digests = (hashlib.sha256(text.encode()).hexdigest()[:_DIGEST] for text in texts)
    names = (f"{qualified[: MAX_NAME - _DIGEST - 1]}_{digest}" for digest in digests)
    return next(name for name in names if name.lower() not in taken)


def _is_free(name: str, taken: set[str]) -> bool:
    return name.lower() not in taken and not _MODEL_PREFIX.match(name)


class OfferedTool(Frozen):
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
        basis: Why a call runs unless a rule denies it or says to ask, such as the user's trust in
            what it loads; empty if there is no such reason.
        caution: Why each call is asked about whatever else allows it, or empty.
        caller: The key of the other client that calls it (see `Caller`); None if none does.
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
    basis: str = ""
    caution: str = ""
    caller: str | None = None

    @property
    def bound_to(self) -> str:
        """What lasting permissions are bound to: its server, and whoever else calls it."""
        if self.caller is None:
            return self.fingerprint
        both = f"{self.fingerprint}\0{self.caller}" if self.fingerprint and self.caller else ""
        return both and hashlib.sha256(both.encode()).hexdigest()

    @property
    def plain(self) -> JsonObject:
        """Its declaration for a service that takes JSON Schema as it is."""
        flat = self.declaration["parametersJsonSchema"] or {}
        return {**self.declaration, "parametersJsonSchema": plain_schema(self.schema, flat)}


class OwnTool(OfferedTool):
    """A tool of gemdeck's own, which no server lists.

    Attributes:
        run: Runs it; raises `ToolCallError`.
        bind: Returns what a call with these arguments is shown and allowed as, such as a tool of
            the server that it asks; raises `ToolCallError`. None if that is this tool.
        is_free: Whether it asks no server and changes nothing, so that it needs no consent.
        source: The tool whose result it reads; what denies that one denies a call.
    """

    run: Callable[[JsonObject], Awaitable["ToolResult"]] = field(kw_only=True, compare=False)
    bind: Callable[[JsonObject], "OwnTool"] | None = field(default=None, compare=False)
    is_free: bool = False
    source: OfferedTool | None = None


def declaration(name: str, description: str, schema: JsonObject | None) -> JsonObject:
    """Return a function declaration of Gemini's."""
    return {"name": name, "description": description, "parametersJsonSchema": schema}


class FunctionCall(Frozen):
    """A call as the model wrote it; `id` is empty if the service gives none."""

    name: str
    arguments: dict[str, Any]
    id: str = ""


class TextPart(Frozen):
    """Text of a result for the model."""

    text: str


class MediaPart(Frozen):
    """Binary content of a result for the model: an IANA media type and base64 data."""

    mime_type: str
    data: str


class ToolResult(Frozen):
    """The result of a call, for the model and for the screen.

    `is_error` says that the tool reported an error; both forms contain its message. The last
    `beside` parts are texts that stand beside the tool's own, such as structured content. `raw` is
    the result as the server wrote it; None if none came back. `pictures` are for the screen, and
    `faults` say how it breaks the tool's output schema. `runs_on` says that there is none yet: the
    call runs on as a task. `reply` is the server's own error reply in place of a result, or empty.
    """

    parts: tuple[TextPart | MediaPart, ...]
    display: str
    is_error: bool = False
    beside: int = 0
    raw: JsonObject | None = field(default=None, repr=False, compare=False)
    pictures: tuple[Picture, ...] = ()
    faults: tuple[str, ...] = ()
    runs_on: bool = False
    reply: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


class ToolCallError(AdvisedError):
    """A call returned no result: the server is gone, timed out or broke the protocol.

    The text says what happened, for the model as well.
    """


class CallStoppedError(ToolCallError):
    """The user cancelled this very call, and not its turn."""


class CallNotTakenError(ToolCallError):
    """The server had lost the session and did not run the call: it is safe to repeat it."""


class PromptMessage(Frozen):
    """One message of a prompt: its role, ``user`` or ``model``, and its parts.

    Calls and their results are in Gemini's REST form.
    """

    role: str
    parts: "tuple[TextPart | MediaPart | JsonObject, ...]"


class RenderedPrompt(Frozen):
    """A prompt as a server rendered it, for the screen and for the model.

    The model gets the turns of `before`, and then `parts` as the user's message; `shown` says it
    in the chat, and `messages` before it is sent. `raw` is the result as the server wrote it.
    """

    shown: str
    parts: tuple[TextPart | MediaPart | JsonObject, ...]
    before: tuple[PromptMessage, ...] = ()
    messages: tuple[RenderedMessage, ...] = ()
    raw: JsonObject = field(default_factory=dict, repr=False, compare=False)


class ResourceReading(Frozen):
    """The content of a resource, for the screen and for the model.

    `remark` says how the two differ, and `problem` what the model cannot be given; or both are
    empty. `raw` is the result as the server wrote it; `pictures` are for the screen.
    """

    content: ResourceContent
    parts: tuple[TextPart | MediaPart, ...]
    remark: str = ""
    problem: str = ""
    raw: JsonObject = field(default_factory=dict, repr=False, compare=False)
    pictures: tuple[Picture, ...] = ()

    def as_result(self) -> ToolResult:
        """Return it as the result of a tool that reads resources."""
        content = self.content
        display = "\n".join(filter(None, (content.text, *content.blobs, self.remark)))
        return ToolResult(self.parts, display)


class CompletionValues(Frozen):
    """Values that a server suggests; `has_more` if it knows further ones, `total` how many."""

    values: tuple[str, ...] = ()
    has_more: bool = False
    total: int | None = None
