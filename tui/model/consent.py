"""Consent to tool calls: answers, grants and rules."""

import json
import re
from enum import StrEnum
from typing import Final, NewType

from tui.model.bounded_json import JsonError, read_json
from tui.model.frozen import Event, Frozen
from tui.model.input.arguments import json_line

RequestId = NewType("RequestId", str)

GrantId = NewType("GrantId", str)
"""Identifies a grant."""

UNASKED_GRANT: Final = GrantId("--yolo")
"""The rule of a run in which every tool that no rule denies runs without asking."""


class Caller(Frozen):
    """Another client, on whose behalf gemdeck runs calls.

    Attributes:
        name: What it calls itself, or which client its token was printed for; as shown.
        folder: Its working directory, as shown.
        key: The hash of its token, to which lasting permissions are bound; empty without one,
            and then there are none, and the name is only its claim.
    """

    name: str
    folder: str = ""
    key: str = ""

    @property
    def words(self) -> str:
        """It in words, such as ``claude-code in ~/shop``."""
        claim = "" if self.key else " (unverified)"
        return f"{self.name}{claim} in {self.folder}" if self.folder else f"{self.name}{claim}"


class Choice(StrEnum):
    """The answers to "may this tool run?"."""

    ONCE = "once"
    ALWAYS_TOOL = "always this tool"
    ALWAYS_THESE = "always this tool with these arguments"
    ALWAYS_SERVER = "always this server"
    ALWAYS_READ_ONLY = "always tools declared read-only"
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


MAX_CONDITION: Final = 500
"""Bytes of what a rule says of one argument; it is shown whole."""

MAX_CONDITIONS: Final = 30
"""Arguments that one rule names."""

_PLAIN: Final = re.compile(r"[\w./~-]+", re.ASCII)


class ConditionKind(StrEnum):
    """What a rule wants of an argument. The value is its key in the settings."""

    IS = "is"
    FOLDER = "folder"
    STARTS = "starts"
    ANY = "any"


class Condition(Frozen):
    """What a rule says of one argument.

    Attributes:
        name: The argument.
        kind: What it must be.
        value: The JSON text of the one value, the path of the folder, or the beginning of the
            text; empty for any value.
    """

    name: str
    kind: ConditionKind
    value: str = ""

    @property
    def is_valid(self) -> bool:
        """Whether it says what its kind needs, short enough and in characters that can be kept."""
        try:
            if self.kind is ConditionKind.IS:
                read_json(self.value)
            fits = max(len(text.encode()) for text in (self.name, self.value)) <= MAX_CONDITION
        except (JsonError, UnicodeEncodeError):
            return False
        return fits and bool(self.value) == (self.kind is not ConditionKind.ANY)

    @property
    def words(self) -> str:
        """Say it in words that hide nothing; only what looks like nothing else has no quotes."""
        name = quoted(self.name)
        match self.kind:
            case ConditionKind.IS:
                return f"{name} is {json_line(json.loads(self.value))}"
            case ConditionKind.FOLDER:
                return f"{name} is in {quoted(self.value)}"
            case ConditionKind.STARTS:
                return f"{name} starts with {json_line(self.value)}"
            case ConditionKind.ANY:
                return f"{name} is anything or missing"


def exact_text(value: object) -> str:
    """Write the one value that a rule wants: texts that are equal are values that are."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def conditions_words(conditions: tuple[Condition, ...]) -> str:
    """Say all that a rule wants of a call's arguments; nothing if it wants nothing."""
    return ", and ".join(condition.words for condition in conditions)


def quoted(text: str) -> str:
    """Write a name or a path that may look like anything: in quotes unless it is plain."""
    return text if _PLAIN.fullmatch(text) else json_line(text)


class Decision(Frozen):
    """The user's answer.

    Attributes:
        choice: What was decided.
        note: The reason for a denial, for the model.
        scope: The scope of an "always" answer.
        arguments: The edited arguments as JSON; None if unchanged.
        conditions: What is to be always so of the arguments, for "always with these".
    """

    choice: Choice
    note: str = ""
    scope: GrantScope = GrantScope.SESSION
    arguments: str | None = None
    conditions: tuple[Condition, ...] = ()

    @property
    def allows(self) -> bool:
        return self.choice.allows


class Effect(StrEnum):
    """The effect of a rule. Deny wins over ask, ask over allow.

    `REWORD` says nothing of calls: a tool stays accepted whatever its description says.
    """

    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"
    REWORD = "reword"


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
        where: What it wants of the arguments, in words; empty for calls with any.
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
    where: str = ""

    @property
    def what(self) -> str:
        """The tool, and what the rule wants of its arguments."""
        return f"{self.tool}, where {self.where}" if self.where else self.tool

    @property
    def is_unasked(self) -> bool:
        """Whether it lets all tools run without asking, as ``--yolo`` does."""
        return self.id == UNASKED_GRANT


class ToolStanding(Frozen):
    """Why a tool is asked about, allowed, denied, or not offered to the model.

    Attributes:
        effect: The effect of a call.
        words: The reason, in one or two sentences.
    """

    effect: Effect
    words: str


class ToolRuleChanged(Event):
    """The user revoked a rule, or accepted or refused a changed tool.

    `server` and `tool` are names as shown, ``*`` all tools of the server; `definition` is the hash
    of the tool's definition, if any. `decision` is ``revoke``, ``accept change``, ``accept any
    wording`` or ``refuse change``.
    """

    server: str
    fingerprint: str
    tool: str
    definition: str
    decision: str
