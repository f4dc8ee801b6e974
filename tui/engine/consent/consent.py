"""What the turn loop asks before a tool runs."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tui.engine.consent.rules.policy import Policy
from tui.engine.tools import JsonObject, OfferedTool
from tui.model.chat import EntryId
from tui.model.consent import Choice
from tui.model.servers import ServerId

OnEnd = Callable[[str, float], None]
"""Takes the word for how a call ended, and how many seconds it took."""


class ConsentWithdrawnError(Exception):
    """A question ended without the user's answer; the text says why, in one line.

    It is no denial: the same call may be asked about again.
    """


class UnusableEditError(Exception):
    """Arguments as the user edited them cannot be sent; the text says why, in one line."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Arguments that the user changed: the very object that is sent, and how it is shown."""

    arguments: JsonObject
    shown: str


@dataclass(frozen=True, slots=True)
class DeniedCall:
    """A call that the user denied."""

    tool: OfferedTool
    shown: str


@dataclass(slots=True)
class TurnRecord:
    """What counts for the calls of one turn, and ends with it.

    Attributes:
        rest: The user's answer to all further calls, or None.
        denied: The calls that the user denied.
        read: The servers whose data this turn has read, in the order of the first one.
    """

    rest: Choice | None = None
    denied: list[DeniedCall] = field(default_factory=list)
    read: dict[ServerId, None] = field(default_factory=dict)

    @classmethod
    def of(cls, server: ServerId | None) -> "TurnRecord":
        """Begin a turn whose message holds data of a server, or of none."""
        return cls(read={server: None} if server is not None else {})

    def has_denied(self, tool: OfferedTool, shown: str) -> bool:
        """Tell whether the user denied this very call."""
        return any(
            (call.tool.server, call.tool.name, call.shown) == (tool.server, tool.name, shown)
            for call in self.denied
        )


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A call that somebody has to decide on.

    Attributes:
        call: Its transcript entry.
        tool: The tool as it was offered to the model.
        arguments: The very object that would be sent; nobody changes it.
        shown: The same, complete, as canonical JSON.
        offered: All tools as they were offered to the model with this step; what "always this
            server" covers, and what a pattern's meaning is judged by.
        turn: What counts for the calls of its turn.
        read_edit: Reads arguments as edited, from JSON; raises `UnusableEditError`.
    """

    call: EntryId
    tool: OfferedTool
    arguments: JsonObject
    shown: str
    offered: Sequence[OfferedTool]
    turn: TurnRecord
    read_edit: Callable[[str], Awaitable[Edit]]


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a call may run.

    Attributes:
        allows: Whether it may.
        source: What that rests on, in words, such as ``you: once``.
        note: With a denial, a word to the model.
        edit: The arguments to send instead, where the user changed them.
        on_end: Has to be told how the call ended, if it is made; None where nobody asks.
    """

    allows: bool
    source: str
    note: str = ""
    edit: Edit | None = None
    on_end: OnEnd | None = None


class Consent(Protocol):
    """Answers whether a call may run: by asking the user, or from rules.

    Attributes:
        policy: The rules it goes by.
    """

    policy: Policy

    async def confirm(self, inquiry: Inquiry) -> Answer:
        """Decide on one call.

        Cancelling the awaiting task withdraws the question.

        Raises:
            ConsentWithdrawnError: If nobody could answer.
        """
