"""Whether tools may run: the answers, and the grants that come of them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NewType

from tui.model.servers import ServerId

RequestId = NewType("RequestId", str)

GrantId = NewType("GrantId", str)
"""Names a grant among all there are; says nothing about what it covers."""

UNASKED_GRANT: Final = GrantId("--yolo")
"""The rule of a run in which all tools run unasked that no rule denies."""


class Choice(StrEnum):
    """The answers to "may this tool run?"."""

    ONCE = "once"
    ALWAYS_TOOL = "always this tool"
    ALWAYS_SERVER = "always this server"
    REST_OF_TURN = "all further calls of this turn"
    DENY = "deny"
    DENY_REST_OF_TURN = "deny all further calls of this turn"

    @property
    def allows(self) -> bool:
        """Whether the tool may run."""
        return self not in {Choice.DENY, Choice.DENY_REST_OF_TURN}


class GrantScope(StrEnum):
    """How long and where a lasting answer holds. The value is the word on the screen."""

    SESSION = "this session"
    FOLDER = "saved for this folder"
    EVERYWHERE = "saved everywhere"


@dataclass(frozen=True, slots=True)
class Decision:
    """The user's answer.

    Attributes:
        choice: What was decided.
        note: A word to the model with a denial.
        scope: How far an "always" reaches.
        arguments: The arguments as the user changed them, as JSON; None where they stay.
    """

    choice: Choice
    note: str = ""
    scope: GrantScope = GrantScope.SESSION
    arguments: str | None = None


class Effect(StrEnum):
    """What a rule says of a tool. Denying wins over asking, asking over allowing."""

    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class GrantView:
    """One rule on tools, as the pane of grants lists it.

    Attributes:
        id: What revoking refers to.
        effect: What it says.
        server: The server it is about, by the name it had then; a pattern for a rule of settings.
        tool: The tool, or ``*`` for all of the server.
        scope: How far it reaches, such as ``this session`` or a folder.
        origin: Where it comes from, such as ``you, when asked`` or a settings file.
        granted_at: When it was given, in seconds since the epoch; None where nobody knows.
        used_at: When a call last rested on it, in seconds since the epoch; None for never.
        revocable: Whether it can be revoked here; rules of settings files cannot.
    """

    id: GrantId
    effect: Effect
    server: str
    tool: str
    scope: str
    origin: str
    granted_at: float | None = None
    used_at: float | None = None
    revocable: bool = True


@dataclass(frozen=True, slots=True)
class ToolStanding:
    """Why calls of a tool are asked about, allowed or refused, or why the model does not see it.

    Attributes:
        server: The tool's server.
        tool: Its name as shown.
        effect: What happens when the model calls it.
        words: Why, in one or two sentences.
    """

    server: ServerId
    tool: str
    effect: Effect
    words: str
