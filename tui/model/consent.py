"""Questions the engine puts to the user, and their answers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from tui.model.chat import EntryId
from tui.model.servers import ServerId

RequestId = NewType("RequestId", str)


class Choice(StrEnum):
    """The answers to "may this tool run?"."""

    ONCE = "once"
    ALWAYS_TOOL = "always this tool"
    ALWAYS_SERVER = "always this server"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class ConfirmationRequest:
    """A tool call that waits for the user.

    Attributes:
        id: What the answer refers to.
        call: The transcript entry of the call.
        server: The server that would run it.
        tool: The tool's name on that server.
        description: The server's words on the tool.
        arguments: The complete arguments, frozen, as canonical indented JSON.
        claims: What the server claims of the tool; shown as claims.
    """

    id: RequestId
    call: EntryId
    server: ServerId
    tool: str
    description: str
    arguments: str
    claims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """The user's answer; `note` is a word to the model with a denial."""

    choice: Choice
    note: str = ""
