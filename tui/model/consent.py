"""Consent to tool calls: answers, grants and rules."""

from enum import StrEnum
from typing import Final, NewType

from tui.model.frozen import Frozen
from tui.model.servers import ServerId

RequestId = NewType("RequestId", str)

GrantId = NewType("GrantId", str)
"""Identifies a grant."""

UNASKED_GRANT: Final = GrantId("--yolo")
"""The rule of a run in which every tool that no rule denies runs without asking."""


class Choice(StrEnum):
    """The answers to "may this tool run?"."""

    ONCE = "once"
    ALWAYS_TOOL = "always this tool"
    ALWAYS_SERVER = "always this server"
    DENY = "deny"
    DENY_REST_OF_TURN = "deny this and all further calls of this turn"

    @property
    def allows(self) -> bool:
        return self not in {Choice.DENY, Choice.DENY_REST_OF_TURN}


class GrantScope(StrEnum):
    """The scope of an "always" answer. The value is its name on the screen."""

    SESSION = "this session"
    FOLDER = "saved for this folder"
    EVERYWHERE = "saved everywhere"


class Decision(Frozen):
    """The user's answer.

    Attributes:
        choice: What was decided.
        note: The reason for a denial, for the model.
        scope: The scope of an "always" answer.
        arguments: The edited arguments as JSON; None if unchanged.
    """

    choice: Choice
    note: str = ""
    scope: GrantScope = GrantScope.SESSION
    arguments: str | None = None

    @property
    def allows(self) -> bool:
        return self.choice.allows


class Effect(StrEnum):
    """The effect of a rule. Deny wins over ask, ask over allow."""

    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


class GrantView(Frozen):
    """One rule on tools, as listed in the permissions pane.

    Attributes:
        id: Its id, for revoking it.
        effect: Its effect.
        server: The server's name when it was granted; a pattern for a rule from settings.
        tool: The tool, or ``*`` for all tools of the server.
        scope: Its scope, such as ``this session`` or a folder.
        origin: Its origin, such as ``you, when asked`` or a settings file.
        granted_at: When it was granted, in seconds since the epoch; None if unknown.
        used_at: When it last allowed a call, in seconds since the epoch; None if never.
        revocable: Whether it can be revoked; rules from settings files cannot.
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

    @property
    def is_unasked(self) -> bool:
        """Whether it lets all tools run without asking, as ``--yolo`` does."""
        return self.id == UNASKED_GRANT


class ToolStanding(Frozen):
    """Why a tool is asked about, allowed, denied, or not offered to the model.

    Attributes:
        server: The tool's server.
        tool: Its name as shown.
        effect: The effect of a call.
        words: The reason, in one or two sentences.
    """

    server: ServerId
    tool: str
    effect: Effect
    words: str


class ToolRuleChanged(Frozen):
    """The user revoked a rule, or accepted or refused a changed tool.

    `server` and `tool` are names as shown, ``*`` all tools of the server; `definition` is the hash
    of the tool's definition, if any. `decision` is ``revoke``, ``accept change`` or
    ``refuse change``.
    """

    server: str
    fingerprint: str
    tool: str
    definition: str
    decision: str
