"""What panes ask of the screen around them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from textual.message import Message

from tui.model.servers import ServerId


class PaneName(StrEnum):
    """The places of the main screen. The value names them in actions."""

    SERVERS = "servers"
    CHAT = "chat"
    TOOLS = "tools"
    PROMPTS = "prompts"
    RESOURCES = "resources"
    ACTIVITY = "activity"


@dataclass
class InsertText(Message):
    """This text should go into the user's message."""

    text: str


@dataclass
class ShowPane(Message):
    """This pane should be shown and get the focus, narrowed to one server where one is given."""

    name: PaneName
    server: ServerId | None = None


@dataclass
class ShowServer(Message):
    """All there is to know about a server should be shown."""

    server: ServerId


@dataclass
class ShowTool(Message):
    """All there is to know about a tool should be shown."""

    server: ServerId
    tool: str


@dataclass
class SendPrompt(Message):
    """A prompt should be rendered by its server and sent to the model."""

    server: ServerId
    prompt: str
    arguments: Mapping[str, str]


@dataclass
class SendResource(Message):
    """A resource should be sent to the model together with the user's draft."""

    server: ServerId
    uri: str
