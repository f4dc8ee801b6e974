"""Requests for consent to a call, and their answers."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tui.engine.approval.policy import Policy, Verdict, is_plain
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool
from tui.engine.mcp.schema.form_schema import (
    MAX_FIELDS,
    Control,
    UnusableFormError,
    read_form,
)
from tui.model.chat import MAIN, ConversationId, EntryId
from tui.model.events import ToolCallDecided
from tui.model.requests import FormField, FormValue
from tui.model.servers import Origin, ServerId
from tui.text import sanitize_line

MAX_SAME_CALLS: Final = 3
"""Times that the same call is made in a turn before the user is asked whatever the rules say."""


class UnusableEditError(Exception):
    """Arguments as the user edited them cannot be sent; the text says why, in one line."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Arguments that the user edited: the object to send, and its text."""

    arguments: JsonObject
    shown: str


@dataclass(slots=True)
class TurnRecord:
    """Answers and reads that apply to the calls of one turn.

    Attributes:
        denies_rest: Whether the user denied all further calls.
        denied: The calls that the user denied.
        read: The servers whose data this turn has read, in the order of the first one.
        calls: How often each call was made, by server, tool and arguments.
        conversation: The conversation of the turn.
    """

    denies_rest: bool = False
    denied: list["Inquiry"] = field(default_factory=list)
    read: dict[ServerId, None] = field(default_factory=dict)
    calls: Counter[tuple[ServerId, str, str]] = field(default_factory=Counter)
    conversation: ConversationId = MAIN

    def count(self, tool: OfferedTool, shown: str) -> int:
        """Count a call; return how often this very call was made in the turn."""
        key = tool.server, tool.name, shown
        self.calls[key] += 1
        return self.calls[key]

    def has_denied(self, tool: OfferedTool, shown: str) -> bool:
        return any(
            (call.tool.server, call.tool.name, call.shown) == (tool.server, tool.name, shown)
            for call in self.denied
        )


@dataclass(slots=True)
class Inquiry:
    """A call that needs a decision.

    Attributes:
        call: Its transcript entry.
        tool: The tool as it was offered to the model.
        arguments: The very object that would be sent; nobody changes it.
        shown: The same, complete, as canonical JSON.
        offered: All tools as they were offered to the model with this step; what "always this
            server" covers, and what a pattern's meaning is judged by.
        turn: The state shared by the calls of its turn.
        read_edit: Reads arguments as edited, from JSON; raises `UnusableEditError`.
        by_user: Whether the user composed this exact call, which is consent to it.
        number: How often this very call was made in the turn, this one included.
        verdict: What the rules said of it; None before they were asked.
        rules: The state of the rules that said so; see `Policy.state`.
    """

    call: EntryId
    tool: OfferedTool
    arguments: JsonObject
    shown: str
    offered: Sequence[OfferedTool]
    turn: TurnRecord
    read_edit: Callable[[str], Awaitable[Edit]]
    by_user: bool = False
    number: int = 1
    verdict: Verdict | None = None
    rules: int = -1

    @property
    def is_loop(self) -> bool:
        """Whether the model seems to go round in circles."""
        return not self.by_user and self.number % MAX_SAME_CALLS == 0


@dataclass(frozen=True, slots=True)
class Denial:
    """A call may not run: why, such as ``you: deny``, and a message about it to the model."""

    source: str
    note: str = ""


def decided(
    call: EntryId, tool: OfferedTool, arguments: str, decision: str, source: str
) -> ToolCallDecided:
    """Return the event for a decision on a call, with its arguments as canonical JSON."""
    return ToolCallDecided(
        call,
        tool.server,
        tool.fingerprint,
        sanitize_line(tool.name),
        tool.definition_hash,
        arguments,
        decision,
        source,
    )


MAX_NAMED: Final = 5
"""Servers that one note names."""

_NO_ARGUMENTS: Final = "{}"


_PLACES: Final = {
    Origin.SYSTEM_DEFAULTS: "the system's settings",
    Origin.USER: "your settings",
    Origin.PROJECT: "this folder",
    Origin.SYSTEM: "the system's settings",
    Origin.EXTENSION: "one of your extensions",
    Origin.DEMO: "gemdeck's demo",
}
"""Where servers come from, in words."""

_ODD_NAME: Final = "The name contains characters that tool names may not have."
_UNSAVED: Final = "Rules cannot be saved now: what you always allow lasts until you quit."


def call_notes(inquiry: Inquiry, policy: Policy | None = None) -> tuple[str, ...]:
    """Return warnings about a call, most important first; sanitized.

    Args:
        inquiry: The call.
        policy: The rules; without one nothing is said of them.
    """
    return (
        *_repeats(inquiry),
        *_denied_before(inquiry),
        *_has_read(inquiry.tool.server, inquiry.turn.read),
        *([_ODD_NAME] if not is_plain(inquiry.tool.name) else []),
        *_not_trusted(inquiry.tool, policy),
        *([_UNSAVED] if policy is not None and not policy.is_kept else []),
    )


def origin_words(server: ServerId, policy: Policy) -> str:
    """Return where a server comes from; empty if it is no longer defined."""
    origin = policy.origins.get(server)
    return _PLACES[origin] if origin is not None else ""


def _not_trusted(tool: OfferedTool, policy: Policy | None) -> Iterator[str]:
    """Say why the question comes although the user's settings trust the server."""
    if words := policy.untrusted_words(tool) if policy is not None else "":
        yield sanitize_line(f"{words[0].upper()}{words[1:]}.")


def _repeats(inquiry: Inquiry) -> Iterator[str]:
    if inquiry.is_loop:
        yield f"The model made this very call {inquiry.number - 1} times before in this turn."


def _denied_before(inquiry: Inquiry) -> Iterator[str]:
    """Find a denied call with the same arguments: the model may retry under another name."""
    if inquiry.shown == _NO_ARGUMENTS:
        return
    for call in inquiry.turn.denied:
        if call.shown == inquiry.shown:
            yield (
                "Earlier in this turn you denied a call with the same arguments: "
                f"{_name(call.tool)}."
            )
            return


def _has_read(own: ServerId, read: Iterable[ServerId]) -> Iterator[str]:
    """Name the other servers whose data the model may be acting on."""
    others = [server for server in read if server != own]
    if others:
        yield f"This turn has read data from {_listed(others)}."


def _name(tool: OfferedTool) -> str:
    return f"{tool.server} {sanitize_line(tool.view.name)}"


def _listed(names: list[ServerId]) -> str:
    """Join names to a phrase; of many, only the first."""
    *first, last = names[:MAX_NAMED]
    more = len(names) - MAX_NAMED
    if more > 0:
        return f"{', '.join([*first, last])} and {more} more"
    return f"{', '.join(first)} and {last}" if first else str(last)


def argument_fields(schema: JsonObject, arguments: JsonObject) -> tuple[FormField, ...]:
    """Make the fields of a form that gives exactly these arguments when nothing is changed.

    Args:
        schema: The tool's input schema.
        arguments: The arguments of the call.

    Returns:
        The fields, their keys being the names of the arguments. Nothing where a form could not
        show every argument as it is, or could not give it back unchanged.
    """
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or len(properties) > MAX_FIELDS:
        return ()
    if not arguments.keys() <= properties.keys():
        return ()
    try:
        form = read_form({**schema, "properties": _filled_in(properties, arguments)})
    except UnusableFormError:
        return ()
    fields = []
    for control in form.controls:
        name = control.name
        if control.field.key != name or any(shown != v for shown, v in control.values.items()):
            return ()
        if name not in arguments:
            fields.append(replace(control.field, default=None))
        elif _gives(control, arguments[name]):
            fields.append(control.field)
        else:
            return ()
    return tuple(fields)


def _filled_in(properties: JsonObject, arguments: JsonObject) -> dict[str, object]:
    """Put the arguments in the place of the schema's defaults."""
    return {
        name: {**definition, "default": arguments.get(name)}
        if isinstance(definition, Mapping)
        else definition
        for name, definition in properties.items()
    }


def _gives(control: Control, argument: object) -> bool:
    """Return whether a field returns an argument unchanged, including its type."""
    default: FormValue = control.field.default
    given = list(default) if isinstance(default, tuple) else default
    return default is not None and type(given) is type(argument) and given == argument
