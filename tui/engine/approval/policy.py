"""The policy on tools: what is denied, asked about or allowed, and why.

Deny beats ask beats allow; without a rule, ask.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from tui.engine.approval.grant_store import GrantBook
from tui.engine.approval.grants import MAX_LABEL, Grant, GrantNote
from tui.engine.approval.rule_views import (
    EFFECTS,
    grant_words,
    pattern_views,
    record_view,
    rule_place,
    trust_view,
    unasked_view,
)
from tui.engine.approval.tool_patterns import AllowingPatterns, DenyingPatterns
from tui.engine.bus import Publish
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool
from tui.model.consent import Effect, GrantId, GrantScope, GrantView, ToolRuleChanged
from tui.model.events import GrantsChanged
from tui.model.frozen import dataclass
from tui.model.servers import Origin, ServerId
from tui.model.settings import ToolPattern
from tui.text import sanitize_line

DENIED_BY_GRANT: Final = "a saved rule denies it"
"""Why a tool is kept from the model."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The rules' decision on a call; `source` says why, `grant` is the record it rests on."""

    effect: Effect
    source: str
    grant: Grant | None = None

    @property
    def words(self) -> str:
        return f"{EFFECTS[self.effect]}: {self.source}."


def _denial_words(rule: ToolPattern) -> str:
    """Say why a tool is denied."""
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
        self._allow = AllowingPatterns()
        self._deny = DenyingPatterns()
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
            deny: What may not.
            definitions: The servers.
            asks: Why ``trust: true`` of servers spares no question, or "".
        """
        self._asks = asks
        self._allow, self._deny = AllowingPatterns(allow), DenyingPatterns(deny)
        self._definitions = {definition.id: definition for definition in definitions}
        self._changed()

    @property
    def is_kept(self) -> bool:
        return self._book.is_kept

    @property
    def origins(self) -> Mapping[ServerId, Origin]:
        return {server: definition.origin for server, definition in self._definitions.items()}

    def judge(self, tool: OfferedTool, arguments: JsonObject | None = None) -> Verdict:
        """Decide what the rules say about a call.

        Args:
            tool: The tool as it was offered.
            arguments: The arguments; None judges the tool whatever they are.
        """
        found = self._book.grants.find(tool, arguments, self._folder)
        by_effect = {grant.effect: grant for grant in reversed(found)}
        if rule := self._deny.match(tool.server, tool.name, tool.id):
            return Verdict(Effect.DENY, _denial_words(rule))
        if grant := by_effect.get(Effect.DENY):
            return Verdict(Effect.DENY, self._words(grant), grant)
        if self._allows_all:
            return Verdict(Effect.ALLOW, "gemdeck was started with --yolo")
        if grant := by_effect.get(Effect.ASK):
            return Verdict(Effect.ASK, self._words(grant), grant)
        if self._is_trusted(tool) and not self._asks:
            return Verdict(Effect.ALLOW, self._trust_words(tool.server))
        if self._is_allowed(tool.server, tool.name):
            words = "a rule in your settings (gemdeck.alwaysAllow) matches it"
            return Verdict(Effect.ALLOW, words)
        if grant := by_effect.get(Effect.ALLOW):
            return Verdict(Effect.ALLOW, self._words(grant), grant)
        return Verdict(Effect.ASK, self.untrusted_words(tool) or "no rule allows it")

    def untrusted_words(self, tool: OfferedTool) -> str:
        """Say why ``trust: true`` of a tool's server does not count here, if it has that."""
        if not self._asks or not self._is_trusted(tool):
            return ""
        return f"{self._trust_words(tool.server)}, which {self._asks}"

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
        denying = [
            grant
            for grant in self._book.grants
            if grant.effect is Effect.DENY
            and not grant.conditions
            and grant.fingerprint == definition.fingerprint
            and grant.folder in {"", self._folder}
        ]
        hidden: dict[str, str] = {}
        for tool, definition_hash in tools:
            if rule := self._deny.match(definition.id, tool):
                hidden[tool] = _denial_words(rule)
            elif any(
                grant.tool in {None, tool} and grant.definition_hash in {"", definition_hash}
                for grant in denying
            ):
                hidden[tool] = DENIED_BY_GRANT
        return hidden

    def allow(self, tools: Collection[OfferedTool], scope: GrantScope, words: str) -> None:
        """Let these tools run in their present definitions.

        A server without a fingerprint cannot be told from another one, so its tools are left
        out. Where no folder is known, what was to hold for the folder holds for this session.

        Args:
            tools: The tools as they were offered.
            scope: How long and where.
            words: The answer that this comes of.
        """
        if scope is GrantScope.FOLDER and not self._folder:
            scope = GrantScope.SESSION
        self._book.add(
            {
                Grant.allowing(tool, scope, self._folder): GrantNote(
                    str(tool.server)[:MAX_LABEL],
                    sanitize_line(tool.view.name, MAX_LABEL),
                    words,
                )
                for tool in tools
                if tool.fingerprint
            }
        )
        self._changed()

    def used(self, verdict: Verdict) -> None:
        """Note that a call rests on a verdict."""
        if verdict.grant is not None:
            self._book.use(verdict.grant)

    def revoke(self, grant: GrantId) -> None:
        """Take a grant back; rules of settings files stay. One that is gone changes nothing."""
        for known in self._book.grants:
            if known.id == grant:
                note = self._book.grants.note(known)
                self._book.remove(known)
                self._changed()
                self._publish(
                    ToolRuleChanged(
                        note.server,
                        known.fingerprint,
                        note.tool if known.tool is not None else "*",
                        known.definition_hash,
                        "revoke",
                    )
                )
                if known.effect is Effect.DENY:
                    self.on_denials()
                return

    def views(self) -> tuple[GrantView, ...]:
        """List all rules: records newest first, then what the settings say."""
        records = [record_view(grant, self._book.grants.note(grant)) for grant in self._book.grants]
        records.sort(key=lambda view: view.granted_at or 0.0, reverse=True)
        trusted = [trust_view(d, self._asks) for d in self._definitions.values() if d.trust]
        everything = [unasked_view()] if self._allows_all else []
        patterns = pattern_views(self._deny.patterns, self._allow.patterns)
        return (*everything, *records, *patterns, *trusted)

    def _is_trusted(self, tool: OfferedTool) -> bool:
        """Return whether a server's tools run without asking, by the settings in force."""
        definition = self._definitions.get(tool.server)
        return tool.trusted and definition is not None and definition.trust

    def _is_allowed(self, server: ServerId, tool: str) -> bool:
        """Return whether the settings allow a tool; a project's never, since it picks its names."""
        definition = self._definitions.get(server)
        if definition is None or definition.origin is Origin.PROJECT:
            return False
        return self._allow.match(server, tool)

    def _trust_words(self, server: ServerId) -> str:
        definition = self._definitions.get(server)
        place = f" in {definition.source}" if definition is not None and definition.source else ""
        return f"its server has trust: true{place}"

    def _words(self, grant: Grant) -> str:
        return grant_words(grant, self._book.grants.note(grant))

    def _changed(self) -> None:
        self.state += 1
        self._announce()

    def _announce(self) -> None:
        views = self.views()
        if views != self._shown:
            self._shown = views
            self._publish(GrantsChanged(views))
