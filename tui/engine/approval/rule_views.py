"""The texts of rules on tools, and their rows in the list of rules."""

import calendar
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from tui.engine.approval.grants import MAX_GRANTS, Grant, GrantNote
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.settings.prohibitions import DenyRule
from tui.model.consent import UNASKED_GRANT, Effect, GrantId, GrantScope, GrantView
from tui.model.settings import ToolPattern
from tui.text import sanitize_line

MAX_NAME: Final = 256
"""Characters of a name or folder that are shown."""

EFFECTS: Final = {
    Effect.ALLOW: "Allowed",
    Effect.ASK: "You are asked before each call",
    Effect.DENY: "Denied",
}
_SCOPES: Final = {
    GrantScope.SESSION: "for this session",
    GrantScope.FOLDER: "for this folder",
    GrantScope.EVERYWHERE: "everywhere",
}


def grant_words(grant: Grant, note: GrantNote) -> str:
    """Say where a grant comes from and how far it reaches."""
    chosen = f"you chose {note.words}" if note.words else "a saved rule says so"
    when = f" on {day(note.granted_at)}" if note.granted_at is not None else ""
    conditions = ", for certain arguments" if grant.conditions else ""
    return sanitize_line(f"{chosen}{when}, {_SCOPES[grant.scope]}{conditions}")


def day(moment: float) -> str:
    """Return the day of a moment in seconds since the epoch, such as ``21 Nov``."""
    try:
        then, now = time.localtime(moment), time.localtime()
    except (OverflowError, ValueError, OSError):
        return "an unknown day"
    year = f" {then.tm_year}" if then.tm_year != now.tm_year else ""
    return f"{then.tm_mday} {calendar.month_abbr[then.tm_mon]}{year}"


@lru_cache(maxsize=MAX_GRANTS)
def record_view(grant: Grant, note: GrantNote) -> GrantView:
    """Show a grant in the list of rules."""
    scope = grant.scope.value
    if grant.scope is GrantScope.FOLDER:
        scope = f"saved for {sanitize_line(grant.folder, MAX_NAME)}"
    origin = f"you: {note.words}" if note.words else "saved rule"
    if grant.conditions:
        origin += ", for certain arguments"
    return GrantView(
        id=grant.id,
        effect=grant.effect,
        server=sanitize_line(note.server, MAX_NAME) or "(unknown)",
        tool="*" if grant.tool is None else sanitize_line(note.tool or grant.tool, MAX_NAME),
        scope=scope,
        origin=sanitize_line(origin),
        granted_at=note.granted_at,
        used_at=note.used_at,
    )


def pattern_views(deny: Iterable[ToolPattern], allow: Iterable[ToolPattern]) -> list[GrantView]:
    """Show the patterns of the settings in the list of rules."""
    denying = [("deny", Effect.DENY, rule, rule_place(rule)) for rule in deny]
    allowing = [("allow", Effect.ALLOW, rule, "gemdeck.alwaysAllow") for rule in allow]
    return [
        _settings_view(f"{kind}:{number}", effect, rule.server, rule.tool, f"settings: {place}")
        for number, (kind, effect, rule, place) in enumerate((*denying, *allowing))
    ]


def rule_place(rule: ToolPattern) -> str:
    """Say where a rule that denies tools stands."""
    return rule.source if isinstance(rule, DenyRule) else "gemdeck.alwaysDeny"


def trust_view(definition: ServerDefinition, asks: str = "") -> GrantView:
    """Show ``trust: true`` of a server in the list of rules.

    Args:
        definition: The server.
        asks: Why it spares no question, or "".
    """
    origin = f"trust: true in {definition.source or definition.origin.value}"
    effect = Effect.ALLOW if not asks else Effect.ASK
    origin = f"{origin}, which {asks}" if asks else origin
    return _settings_view(f"trust:{definition.id}", effect, definition.id, "*", origin)


def unasked_view() -> GrantView:
    """Show ``--yolo`` in the list of rules."""
    return GrantView(
        UNASKED_GRANT, Effect.ALLOW, "*", "*", "this session", "--yolo", revocable=False
    )


def _settings_view(name: str, effect: Effect, server: str, tool: str, origin: str) -> GrantView:
    return GrantView(
        id=GrantId(name),
        effect=effect,
        server=sanitize_line(server, MAX_NAME),
        tool=sanitize_line(tool, MAX_NAME),
        scope="settings",
        origin=sanitize_line(origin),
        revocable=False,
    )
