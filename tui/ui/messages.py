"""What widgets ask of the deck, in messages, and the names of its panes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, dataclass_transform

from textual.message import Message

from tui.model.chat import ConversationId, EntryId
from tui.model.servers import RefusedAccess, ServerId

if TYPE_CHECKING:
    from tui.model.catalog import PromptView
    from tui.model.input.own_commands import TypedCommand
    from tui.model.runs import ToolRun


class PaneName(StrEnum):
    """The panes; the value names one in actions."""

    SERVERS = "servers"
    CHAT = "chat"
    TOOLS = "tools"
    PROMPTS = "prompts"
    RESOURCES = "resources"
    ACTIVITY = "activity"
    PROTOCOL = "protocol"


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class DataMessage(Message):
    """A message that is a data class."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(eq=False, repr=False)(cls)


class Asks(DataMessage):
    """Asks the main screen for something."""


class Opens(DataMessage):
    """Asks for something that opens above the deck."""


class InsertText(Asks):
    """Insert a text into the user's message."""

    text: str


class RunCommand(Opens):
    """Carry out a command of the screen, typed as `text`."""

    command: "TypedCommand"
    text: str


class ShowPane(Asks):
    """Show and focus a pane, narrowed to a server if one is given."""

    name: PaneName
    server: ServerId | None = None


class ShowServer(Opens):
    """Show the details of a server."""

    server: ServerId


class EditServer(Opens):
    """Edit the entry of a server, with what it reports as refused added, or remove it.

    `field` is the key of the form's field that it is about.
    """

    server: ServerId
    removes: bool = False
    allows: RefusedAccess | None = None
    field: str = ""


class RunTool(Opens):
    """Show the form of a tool, filled with arguments (JSON), else as it was left."""

    server: ServerId
    tool: str
    arguments: str | None = None


class ShowRun(Opens):
    """Show a call by hand and its result."""

    run: "ToolRun"


class FollowLink(Opens):
    """Read a resource of the server that names an address, or ask about the address."""

    url: str
    server: ServerId | None


class ShowResource(Opens):
    """Read a resource, and show its content."""

    server: ServerId
    uri: str
    name: str


class FillPrompt(Opens):
    """Ask for the arguments of a prompt, then show it; `typed` returns if the user cancels."""

    server: ServerId
    prompt: "PromptView"
    values: Mapping[str, str] = field(default_factory=dict)
    typed: str = ""


class ShowSent(Asks):
    """Show what was just sent at the end of the conversation."""


class SendResource(Asks):
    """Send a resource to the model together with the user's draft."""

    server: ServerId
    uri: str


class ShowConversation(Asks):
    """Show an open conversation."""

    conversation: ConversationId


class ShowEntry(Asks):
    """Show an entry of a conversation."""

    conversation: ConversationId
    entry: EntryId
