"""The policy on tools: what is denied, asked about or allowed, and why.

Deny beats ask beats allow; without a rule, ask.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from tui.engine.approval.grants import MAX_GRANTS, MAX_LABEL, Grant, GrantBook, GrantNote
from tui.engine.bus import Publish
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.catalog.argument_rules import ArgumentRule, folded, placed
from tui.engine.mcp.catalog.offer import Tool
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool, sanitize_name
from tui.engine.settings.prohibitions import HOOKS, Permission, PlanRule, Restriction, voids
from tui.model.consent import (
    UNASKED_GRANT,
    Condition,
    Effect,
    GrantId,
    GrantScope,
    GrantView,
    ToolRuleChanged,
    conditions_words,
)
from tui.model.events import GrantsChanged
from tui.model.frozen import Frozen
from tui.model.servers import Origin, ServerId, Transport
from tui.model.settings import ToolPattern
from tui.model.settings_rules import ANY, matches
from tui.text import sanitize_line

_REMEMBERED: Final = 65_536
"""Names whose likeness is remembered: those of a large catalog are compared with each call."""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""The names that the protocol allows for tools."""

likeness: Final = lru_cache(maxsize=_REMEMBERED)(folded)
"""See `folded`; that of names is remembered, which are few and short."""

MAX_NAME: Final = 256
"""Characters of a name or folder that are shown."""

EFFECTS: Final = {
    Effect.ALLOW: "Allowed",
    Effect.ASK: "Ask every time",
    Effect.DENY: "Denied",
}
_SCOPES: Final = {
    GrantScope.SESSION: "for this session",
    GrantScope.FOLDER: "for this folder",
    GrantScope.EVERYWHERE: "everywhere",
}

DENIED_BY_GRANT: Final = "a saved rule denies it"
"""Why a tool is kept from the model."""


Rules = Mapping[str, Sequence[ToolPattern]]
"""Rules by the likeness of the tool that they name."""


class DenyingPatterns:
    """Patterns of rules that deny or ask: compared by what names look like.

    Those that are about a server are sorted out once, so that a long catalog is judged fast.
    """

    def __init__(self, patterns: Iterable[ToolPattern] = ()) -> None:
        self.patterns = tuple(patterns)
        self._by_server: dict[str, tuple[Rules, Rules]] = {}

    def find(self, server: str, tool: str, given: str = "") -> Iterator[ToolPattern]:
        """Give the rules that match a tool.

        Args:
            server: Its server.
            tool: Its name as the server spells it.
            given: Its name towards the model, where it has one already.
        """
        if not self.patterns:
            return
        exact, wild = self._about(server)
        for name in _looks(server, tool, given):
            yield from exact.get(name, ())
            for pattern, rules in wild.items():
                if matches(pattern, name):
                    yield from rules

    def _about(self, server: str) -> tuple[Rules, Rules]:
        """Return the rules about a server: all, and those with ``*``."""
        known = self._by_server.get(server)
        if known is None:
            forms = {likeness(server), likeness(sanitize_name(server))}
            exact: dict[str, list[ToolPattern]] = {}
            for rule in self.patterns:
                if any(matches(likeness(rule.server), form) for form in forms):
                    exact.setdefault(likeness(rule.tool), []).append(rule)
            wild = {pattern: rules for pattern, rules in exact.items() if ANY in pattern}
            known = self._by_server[server] = exact, wild
        return known


def is_plain(name: str) -> bool:
    """Return whether the protocol allows a name for tools."""
    return _PLAIN_NAME.fullmatch(name) is not None


@lru_cache(maxsize=_REMEMBERED)
def _looks(server: str, tool: str, given: str) -> frozenset[str]:
    """Return the likeness of each form of a tool's name, gemini-cli's among them."""
    plain, start = sanitize_name(tool), "" if server.startswith("mcp_") else "mcp_"
    theirs = f"{start}{server}_{tool}", f"{start}{sanitize_name(server)}_{plain}"
    return frozenset(map(likeness, (tool, sanitize_line(tool), plain, given or tool, *theirs)))


_WHOLE_SERVER: Final = ".*"

Meaning = tuple[ServerId, str | None]
"""A server and the name of one of its tools, or None for all of them."""


def meanings(word: str, servers: Collection[ServerId]) -> tuple[Meaning, ...]:
    """Return all that a word of ``--allowed-tools`` can mean.

    It goes by the names of servers alone, so that it means the same whichever of them are up.

    Args:
        word: ``SERVER``, ``SERVER.*`` or ``SERVER.TOOL``; names may hold dots.
        servers: All configured servers.
    """
    wholes = sorted({word, word.removesuffix(_WHOLE_SERVER)})
    splits = ((word[:dot], word[dot + 1 :]) for dot, sign in enumerate(word) if sign == ".")
    return (
        *((ServerId(whole), None) for whole in wholes if whole in servers),
        *((ServerId(one), tool) for one, tool in splits if one in servers and is_plain(tool)),
    )


def names_tool(
    words: Iterable[str], server: ServerId, tool: str, servers: Collection[ServerId]
) -> bool:
    """Return whether one of the words can mean only this tool, or only its server."""
    found = (meanings(word, servers) for word in words)
    return any(meant in {((server, tool),), ((server, None),)} for meant in found)


@lru_cache(maxsize=MAX_GRANTS)
def record_view(grant: Grant, note: GrantNote) -> GrantView:
    """Show a grant in the list of rules."""
    scope = grant.scope.value
    if grant.scope is GrantScope.FOLDER:
        scope = f"saved for {sanitize_line(grant.folder, MAX_NAME)}"
    return GrantView(
        id=grant.id,
        effect=grant.effect,
        server=sanitize_line(note.server, MAX_NAME) or "(unknown)",
        tool="*" if grant.tool is None else sanitize_line(note.tool or grant.tool, MAX_NAME),
        scope=scope,
        origin=sanitize_line(f"you: {note.words}" if note.words else "saved rule"),
        granted_at=note.granted_at,
        used_at=note.used_at,
        where=conditions_words(grant.conditions),
    )


def pattern_views(
    deny: Iterable[ToolPattern], ask: Iterable[ToolPattern], allow: Iterable[ToolPattern]
) -> list[GrantView]:
    """Show the patterns of the settings in the list of rules."""
    denying = [(Effect.DENY, rule, rule_place(rule)) for rule in deny]
    asking = [(Effect.ASK, rule, rule_place(rule)) for rule in ask]
    allowing = [(Effect.ALLOW, rule, "gemdeck.alwaysAllow") for rule in allow]
    return [
        _settings_view(f"{effect}:{number}", effect, rule, f"settings: {place}")
        for number, (effect, rule, place) in enumerate((*denying, *asking, *allowing))
    ]


def rule_place(rule: ToolPattern) -> str:
    """Say where a rule that restricts tools stands."""
    return (rule.source if isinstance(rule, Restriction) else "") or "gemdeck.alwaysDeny"


def trust_view(definition: ServerDefinition, asks: str = "") -> GrantView:
    """Show ``trust: true`` of a server in the list of rules.

    Args:
        definition: The server.
        asks: Why it spares no question, or "".
    """
    origin = f"trust: true in {definition.entry.source or definition.entry.origin.value}"
    effect = Effect.ALLOW if not asks else Effect.ASK
    origin = f"{origin}, which {asks}" if asks else origin
    everything = ToolPattern.model_construct(server=definition.id)
    return _settings_view(f"trust:{definition.id}", effect, everything, origin)


_UNASKED: Final = GrantView(
    UNASKED_GRANT, Effect.ALLOW, "*", "*", "this session", "--yolo", revocable=False
)


def _settings_view(name: str, effect: Effect, rule: ToolPattern, origin: str) -> GrantView:
    return GrantView(
        id=GrantId(name),
        effect=effect,
        server=sanitize_line(rule.server, MAX_NAME),
        tool=sanitize_line(rule.tool, MAX_NAME),
        scope="settings",
        origin=sanitize_line(origin),
        revocable=False,
        where=conditions_words(rule.conditions),
    )


class Verdict(Frozen):
    """The rules' decision on a call; `source` says why.

    `grant` is the record it rests on, and `rule` what has to be so of the arguments for that.
    """

    effect: Effect
    source: str
    grant: Grant | None = None
    rule: ArgumentRule | None = None

    @property
    def words(self) -> str:
        return f"{EFFECTS[self.effect]}: {self.source}."


def _denial_words(rule: ToolPattern) -> str:
    """Say why a tool is denied."""
    if isinstance(rule, PlanRule):
        lifts = "start with --approval-mode default to lift it"
        return f"plan mode ({rule_place(rule)}) denies every tool; {lifts}"
    return f"a rule in the settings ({rule_place(rule)}) denies it"


class Policy:
    """Judges calls by all rules there are.

    The rules are the saved and the session's grants, the patterns of the settings, and
    ``trust: true`` of servers. Lives on one event loop; files are used in a thread.

    Args:
        book: The grants.
        folder: The real path of the opened folder.
        publish: Takes `GrantsChanged` and `ToolRuleChanged`.
        allows_all: Whether the command line said that all runs unasked which no rule denies.

    Attributes:
        on_denials: Called when other tools may be denied than before.
        state: A number for each state of the rules: as long as it stays, verdicts do.
    """

    def __init__(
        self, book: GrantBook, folder: str, publish: Publish, *, allows_all: bool = False
    ) -> None:
        self._book, self._folder, self._publish = book, folder, publish
        book.on_used = self._announce
        self._shown: tuple[GrantView, ...] = ()
        self._allow: tuple[ToolPattern, ...] = ()
        self._deny = DenyingPatterns()
        self._voiding = dict.fromkeys(Permission, self._deny)
        self._definitions: dict[ServerId, ServerDefinition] = {}
        self._asks = ""
        self._allows_all = allows_all
        self.state = 0
        self.on_denials: Callable[[], None] = lambda: None

    async def open(self) -> None:
        """Read the saved grants."""
        await self._book.refresh()
        self._changed()

    async def refresh(self) -> None:
        """Take in what another gemdeck saved or revoked; to be awaited before calls are judged.

        Those who wait go on in the order in which they came.
        """
        if await self._book.refresh():
            self._changed()
            self.on_denials()

    async def aclose(self) -> None:
        await self._book.aclose()

    def configure(
        self,
        allow: Iterable[ToolPattern],
        deny: Iterable[ToolPattern],
        definitions: Iterable[ServerDefinition],
        asks: str = "",
    ) -> None:
        """Take the patterns of the settings and the servers there are.

        Args:
            allow: What may run.
            deny: What may not, or not without a question.
            definitions: The servers.
            asks: Why ``trust: true`` of servers spares no question, or "".
        """
        self._asks = asks
        rules = tuple(deny)
        self._allow = tuple(allow)
        self._deny = DenyingPatterns(rule for rule in rules if not voids(rule))
        self._voiding = {
            permission: DenyingPatterns(rule for rule in rules if permission in voids(rule))
            for permission in Permission
        }
        self._definitions = {definition.id: definition for definition in definitions}
        self._changed()

    @property
    def is_kept(self) -> bool:
        return self._book.is_kept

    @property
    def origins(self) -> Mapping[ServerId, Origin]:
        return {server: definition.entry.origin for server, definition in self._definitions.items()}

    def judge(self, tool: OfferedTool, arguments: JsonObject | None = None) -> Verdict:
        """Decide what the rules say about a call.

        Args:
            tool: The tool as it was offered.
            arguments: The arguments; None judges the tool whatever they are.
        """
        start = self.start_of(tool.server)
        found = self._book.grants.find(tool, arguments, self._folder, start)
        by_effect = {grant.effect: grant for grant in reversed(found)}
        if rule := self._denying(tool, arguments):
            return Verdict(Effect.DENY, _denial_words(rule))
        if grant := by_effect.get(Effect.DENY):
            return Verdict(Effect.DENY, self._words(grant), grant)
        if self._allows_all and not self.asking_words(tool, Permission.YOLO):
            return Verdict(Effect.ALLOW, "gemdeck was started with --yolo")
        if grant := by_effect.get(Effect.ASK):
            return Verdict(Effect.ASK, self._words(grant), grant)
        if words := self.asking_words(tool, Permission.SETTINGS):
            return Verdict(Effect.ASK, words)
        if (words := self._trust_words(tool)) and not self._asks:
            return Verdict(Effect.ALLOW, words)
        if (limit := self._allowing(tool, arguments)) is not None:
            words = "a rule in your settings (gemdeck.alwaysAllow) matches it"
            return Verdict(Effect.ALLOW, words, rule=limit)
        if words := self.asking_words(tool, Permission.GRANTS):
            return Verdict(Effect.ASK, words)
        if grant := by_effect.get(Effect.ALLOW):
            limit = ArgumentRule(grant.conditions, start, self._folder)
            return Verdict(Effect.ALLOW, self._words(grant), grant, limit)
        words = self.untrusted_words(tool)
        if not words and arguments is None and self._may_allow(tool):
            words = "except where a rule on arguments allows it"
        return Verdict(Effect.ASK, words or "no rule allows it")

    def _may_allow(self, tool: OfferedTool) -> bool:
        """Tell whether a saved rule allows calls of a tool with some arguments."""
        named = tool.bound_to, tool.name, tool.definition_hash, self._folder
        return any(one.effect is Effect.ALLOW and one.is_on(*named) for one in self._book.grants)

    def asking_words(self, tool: OfferedTool, permission: Permission) -> str:
        """Say which rule of the settings makes a permission void for a tool, or ""."""
        rule = next(self._voiding[permission].find(tool.server, tool.name, tool.id), None)
        place = rule_place(rule) if rule else ""
        if place.startswith(HOOKS):
            file = place.removeprefix(HOOKS)
            return f"a BeforeTool hook in {file} would check this tool, and gemdeck runs no hooks"
        return f"{place} requires it" if place else ""

    def untrusted_words(self, tool: OfferedTool) -> str:
        """Say why ``trust: true`` of a tool's server does not count here, if it has that."""
        words = self._trust_words(tool)
        return f"{words}, which {self._asks}" if words and self._asks else ""

    def hidden(
        self, definition: ServerDefinition, tools: Iterable[tuple[str, str]]
    ) -> dict[str, str]:
        """Return which tools of a server the model must not see, and why.

        Args:
            definition: The server.
            tools: Its tools: their names as it spells them, with the hashes of their definitions.

        Returns:
            The reason for each tool that a rule denies whatever its arguments are.
        """
        own = [one for one in self._book.grants if one.fingerprint == definition.fingerprint]
        denying = [one for one in own if one.effect is Effect.DENY and not one.conditions]
        hidden: dict[str, str] = {}
        for tool, definition_hash in tools:
            about = definition.fingerprint, tool, definition_hash, self._folder
            rules = (rule for rule in self._deny.find(definition.id, tool) if not rule.arguments)
            if rule := next(rules, None):
                hidden[tool] = _denial_words(rule)
            elif any(grant.is_on(*about) for grant in denying):
                hidden[tool] = DENIED_BY_GRANT
        return hidden

    def allow(
        self,
        tools: Collection[OfferedTool],
        scope: GrantScope,
        words: str,
        conditions: tuple[Condition, ...] = (),
    ) -> None:
        """Let these tools run in their present definitions.

        A server without a fingerprint cannot be told from another one, so its tools are left
        out, as are those that a rule of the settings asks about each time. Where no folder is
        known, what was to hold for the folder holds for this session.

        Args:
            tools: The tools as they were offered.
            scope: How long and where.
            words: The answer that this comes of.
            conditions: What has to be so of the arguments; without any they may be anything.
        """
        if scope is GrantScope.FOLDER and not self._folder:
            scope = GrantScope.SESSION
        self._book.add(
            {
                Grant.allowing(tool, scope, self._folder, conditions): GrantNote(
                    str(tool.server)[:MAX_LABEL], sanitize_line(tool.view.name, MAX_LABEL), words
                )
                for tool in tools
                if tool.bound_to and not self.asking_words(tool, Permission.GRANTS)
            }
        )
        self._changed()

    def takes_any_wording(self, definition: ServerDefinition, tool: Tool) -> bool:
        """Return whether the user accepted whatever the description of a tool says."""
        return Grant.rewording(definition.fingerprint, tool) in self._book.grants

    def take_any_wording(self, definition: ServerDefinition, tool: Tool) -> None:
        """Accept whatever the description of a tool says, until that is revoked."""
        note = GrantNote(str(definition.id)[:MAX_LABEL], tool.view.name[:MAX_LABEL], "any wording")
        self._book.add({Grant.rewording(definition.fingerprint, tool): note})
        self._changed()

    def used(self, verdict: Verdict) -> None:
        """Note that a call rests on a verdict."""
        if verdict.grant is not None:
            self._book.use(verdict.grant)

    def revoke(self, grant: GrantId) -> None:
        """Take a grant back; rules of settings files stay. One that is gone changes nothing."""
        if (known := self._book.grants.named(grant)) is not None:
            self._tell(known, "revoke")
            self._book.remove(known)
            self._changed()
            if known.effect is not Effect.ALLOW:
                self.on_denials()

    def save(self, grant: GrantId) -> None:
        """Save a rule of this session for this folder."""
        known = self._book.grants.named(grant)
        if known is not None and known.scope is GrantScope.SESSION and self._folder:
            self._tell(known, "save")
            self._book.save(known, self._folder)
            self._changed()

    def _tell(self, grant: Grant, change: str) -> None:
        """Tell what the user changes about a rule."""
        note = self._book.grants[grant]
        tool = note.tool if grant.tool is not None else "*"
        event = ToolRuleChanged(note.server, grant.fingerprint, tool, grant.definition_hash, change)
        self._publish(event)

    def views(self) -> tuple[GrantView, ...]:
        """List all rules: records newest first, then what the settings say."""
        records = [record_view(grant, note) for grant, note in self._book.grants.items()]
        records.sort(key=lambda view: view.granted_at or 0.0, reverse=True)
        trusted = [trust_view(d, self._asks) for d in self._definitions.values() if d.trust]
        asked = ((rule.server, rule.tool) for rule in self._voiding[Permission.YOLO].patterns)
        everything = [_UNASKED] if self._allows_all and (ANY, ANY) not in asked else []
        asking = self._voiding[Permission.GRANTS].patterns
        patterns = pattern_views(self._deny.patterns, asking, self._allow)
        return (*everything, *records, *patterns, *trusted)

    def _trust_words(self, tool: OfferedTool) -> str:
        """Say where ``trust: true`` stands by which its server's tools are allowed now, or ""."""
        definition = self._definitions.get(tool.server)
        if definition is None or not (tool.trusted and definition.trust):
            return ""
        place = f" in {definition.entry.source}" if definition.entry.source else ""
        return f"its server has trust: true{place}"

    def start_of(self, server: ServerId) -> str:
        """Return the folder that a server starts in; empty if it is none of this machine."""
        definition = self._definitions.get(server)
        if definition is None or definition.transport is not Transport.STDIO:
            return ""
        return os.path.realpath(definition.launch.cwd or self._folder)

    def _denying(self, tool: OfferedTool, arguments: JsonObject | None) -> ToolPattern | None:
        """Return a rule of the settings that denies a call, or a tool whatever its arguments."""
        rules = self._deny.find(tool.server, tool.name, tool.id)
        return next((r for r in rules if self._limit(r, tool.server).denies(arguments)), None)

    def _allowing(self, tool: OfferedTool, arguments: JsonObject | None) -> ArgumentRule | None:
        """Return what a rule of the settings that allows a call wants of its arguments.

        Names are compared by their exact characters, and only those that a tool may have are
        allowed; a project's tools never, since it picks their names.
        """
        definition = self._definitions.get(tool.server)
        is_own = definition is not None and definition.entry.origin is not Origin.PROJECT
        if not is_own or not is_plain(tool.name):
            return None
        rules = (rule for rule in self._allow if rule.matches(tool.server, tool.name))
        limits = (self._limit(rule, tool.server) for rule in rules)
        return next((limit for limit in limits if limit.allows(arguments)), None)

    def _limit(self, rule: ToolPattern, server: ServerId) -> ArgumentRule:
        conditions = tuple(placed(one, self._folder) for one in rule.conditions)
        return ArgumentRule(conditions, self.start_of(server), self._folder)

    def _words(self, grant: Grant) -> str:
        """Say where a grant comes from and how far it reaches."""
        words = self._book.grants[grant].words
        chosen = f"you chose {words}" if words else "a saved rule applies"
        conditions = ", for certain arguments" if grant.conditions else ""  # also in the audit log
        return sanitize_line(f"{chosen}, {_SCOPES[grant.scope]}{conditions}")

    def _changed(self) -> None:
        self.state += 1
        self._announce()

    def _announce(self) -> None:
        views = self.views()
        if views != self._shown:
            self._shown = views
            self._publish(GrantsChanged(views))
