"""The panes of the main screen, and the messages with which they ask it for something."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from textual.message import Message

from tui.model.chat import ConversationId
from tui.model.servers import ServerId

if TYPE_CHECKING:
    from tui.model.catalog import PromptView
    from tui.model.input.own_commands import TypedCommand


class PaneName(StrEnum):
    """The panes; the value names one in actions."""

    SERVERS = "servers"
    CHAT = "chat"
    TOOLS = "tools"
    PROMPTS = "prompts"
    RESOURCES = "resources"
    ACTIVITY = "activity"


@dataclass(eq=False, repr=False)
class InsertText(Message):
    """Insert a text into the user's message."""

    text: str


@dataclass(eq=False, repr=False)
class RunCommand(Message):
    """Carry out a command of the screen, typed as `text`."""

    command: "TypedCommand"
    text: str


@dataclass(eq=False, repr=False)
class ShowPane(Message):
    """Show and focus a pane, narrowed to a server if one is given."""

    name: PaneName
    server: ServerId | None = None


@dataclass(eq=False, repr=False)
class ShowServer(Message):
    """Show the details of a server."""

    server: ServerId


@dataclass(eq=False, repr=False)
class ShowTool(Message):
    """Show the details of a tool."""

    server: ServerId
    tool: str


@dataclass(eq=False, repr=False)
class ShowResource(Message):
    """Read a resource, and show its content."""

    server: ServerId
    uri: str
    name: str


@dataclass(eq=False, repr=False)
class FillPrompt(Message):
    """Ask for the arguments of a prompt, then send it; `typed` returns if the user cancels."""

    server: ServerId
    prompt: "PromptView"
    values: Mapping[str, str] = field(default_factory=dict)
    typed: str = ""


@dataclass(eq=False, repr=False)
class SendResource(Message):
    """Send a resource to the model together with the user's draft."""

    server: ServerId
    uri: str


@dataclass(eq=False, repr=False)
class ShowConversation(Message):
    """Show an open conversation."""

    conversation: ConversationId
