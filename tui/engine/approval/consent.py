"""Requests for consent to a call, and their answers."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tui.engine.approval.policy import Verdict
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool
from tui.model.chat import MAIN, ConversationId, EntryId
from tui.model.events import ToolCallDecided
from tui.model.servers import ServerId
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
