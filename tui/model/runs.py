"""Calls that the user makes by hand, without the model: their forms, results and saved ones."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from tui.model.chat import ConversationId, Picture, ToolCall
from tui.model.frozen import Event, Frozen, StateEvent
from tui.model.requests import FormField
from tui.model.servers import ServerId

BY_HAND: Final = ConversationId("by hand")
"""Stands for a conversation in events of calls that belong to none."""

SAVED_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}"
"""How a saved call may be called: a shell takes it unquoted behind its ``@``."""


class SavedCall(Frozen):
    """A call that the user saved under a name, which is unique on its server.

    `tool` is the tool's name as shown, `arguments` are canonical JSON.
    """

    server: ServerId
    name: str
    tool: str
    arguments: str


class ToolForm(Frozen):
    """The form of a tool.

    Attributes:
        fields: Its fields; the key of each is the JSON pointer of its value in the arguments, or,
            with a ``?`` behind it, of the place whose alternative it chooses.
        arguments: The arguments that it shows, as canonical JSON.
        problem: Why JSON alone can be edited, or an empty string.
    """

    fields: tuple[FormField, ...]
    arguments: str
    problem: str = ""


class ToolRun(Frozen):
    """A call that the user made by hand.

    Attributes:
        call: The call, with its result as shown.
        raw: The result as the server wrote it; None until there is one.
        faults: How its structured content breaks the tool's output schema, in words.
        size: About how many characters it holds.
        begun: When it was made, in seconds since the epoch; 0 if that is unknown.
    """

    call: ToolCall
    raw: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    faults: tuple[str, ...] = ()
    size: int = 0
    begun: float = 0


class ToolRunChanged(Event):
    """A call by hand was made, or went on."""

    run: ToolRun


class SavedCallsChanged(StateEvent):
    """These calls are saved, in the order of servers, tools and names."""

    saved_calls: tuple[SavedCall, ...]


class RenderedMessage(Frozen):
    """One message of a rendered prompt, as shown; `role` is ``user`` or ``assistant``."""

    role: str
    parts: tuple[str | Picture, ...]


class PromptRendered(StateEvent):
    """A server rendered a prompt for the user to look at.

    Attributes:
        token: Identifies the request.
        messages: What is sent of it.
        failure: Why there is nothing to show, or an empty string.
    """

    part = "rendered"
    token: str
    messages: tuple[RenderedMessage, ...] = ()
    failure: str = ""
