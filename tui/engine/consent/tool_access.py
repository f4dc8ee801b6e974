"""All that stands between the model and the tools of a run: rules, review of changes, records."""

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.engine.consent.audit import FILE_NAME as AUDIT_FILE
from tui.engine.consent.audit import AuditLog
from tui.engine.consent.changes.pins import FOLDER_NAME, PinStore
from tui.engine.consent.changes.review import ToolReview
from tui.engine.consent.protocol import Consent
from tui.engine.consent.recorded import RecordedConsent
from tui.engine.consent.rules.book import FILE_NAME as GRANTS_FILE
from tui.engine.consent.rules.book import VERSION, GrantBook
from tui.engine.consent.rules.grants import Grant, GrantNote
from tui.engine.consent.rules.patterns import Pattern
from tui.engine.consent.tool_gate import ToolGate
from tui.engine.events import Publish
from tui.engine.redaction import Redactor
from tui.engine.servers.catalog import Tool
from tui.engine.servers.manager import ServerManager
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.state_file import StateFile
from tui.model.consent import Effect, ToolStanding
from tui.model.events import ToolExplained
from tui.model.servers import ServerId
from tui.text import sanitize_line

if TYPE_CHECKING:
    from tui.model.settings import GemdeckSettings, ToolPattern

AUDIT_PATIENCE: Final = 2.0
"""Seconds that the last records get to be written."""


class Safeguards:
    """The safeguards of one run. Lives on one event loop.

    Args:
        consent: Decides on calls.
        publish: Takes events.
        folder: The opened folder.
        state: The folder of gemdeck's own state; None keeps nothing.
        has_user: Whether somebody sits before a screen.
        problems: Takes sentences for the user, in any thread.
        redactor: Masks secrets in the records.

    Attributes:
        policy: The rules on tools.
        review: Finds tools that changed, and asks about them.
        consent: Decides on calls, and records it.
        gate: Says which tools the model must not see.
        log: Keeps records of what is decided.
    """

    def __init__(
        self,
        consent: Consent,
        publish: Publish,
        folder: Path,
        state: Path | None,
        *,
        has_user: bool,
        problems: Callable[[str], None],
        redactor: Redactor,
    ) -> None:
        self._publish = publish
        audit_path = state / AUDIT_FILE if state is not None else None
        self.log = AuditLog(audit_path, on_problem=problems, redactor=redactor)
        pins = PinStore(state / FOLDER_NAME if state is not None else None, problems)
        self.policy = consent.policy
        grants = StateFile(
            state / GRANTS_FILE if state is not None else None,
            version=VERSION,
            fails_closed=True,
            on_problem=problems,
        )
        self.policy.attach(GrantBook(grants), os.path.realpath(folder), publish)
        self.review = ToolReview(publish, pins, has_user=has_user)
        self.policy.on_revoked = self._record_revocation
        self.review.on_answered = self._record_change
        self.consent = RecordedConsent(consent, self.log)
        self.gate = ToolGate(self.policy, self.review)

    async def open(self, servers: ServerManager) -> None:
        """Read what is kept, and let these servers follow what is decided."""
        self.policy.on_denials = servers.judge_tools_again
        self.review.on_accepted = servers.judge_tools_again
        await self.policy.open()

    async def aclose(self) -> None:
        """Write what is still to be written."""
        await self.policy.aclose()
        await self.review.aclose()
        await asyncio.to_thread(self.log.close, AUDIT_PATIENCE)

    def configure(
        self, settings: "GemdeckSettings | None", definitions: Sequence[ServerDefinition]
    ) -> None:
        """Take the rules of the settings and the servers there are."""
        allow = _patterns(settings.always_allow) if settings is not None else ()
        deny = _patterns(settings.always_deny) if settings is not None else ()
        self.policy.configure(allow, deny, definitions)
        self.review.keep_only({definition.id for definition in definitions})

    def _record_revocation(self, grant: Grant, note: GrantNote) -> None:
        self.log.record_rule(
            note.server,
            note.tool if grant.tool is not None else "*",
            decision="revoke",
            fingerprint=grant.fingerprint,
            definition=grant.definition_hash,
        )

    def _record_change(
        self, server: ServerDefinition, tools: Sequence[Tool], accepted: bool
    ) -> None:
        for tool in tools:
            self.log.record_rule(
                server.id,
                tool.view.name,
                decision="accept change" if accepted else "refuse change",
                fingerprint=server.fingerprint,
                definition=tool.definition_hash,
            )

    def explain(self, servers: ServerManager, server: ServerId, tool: str) -> None:
        """Publish how a tool stands, by its name as shown; also of one that is not offered."""
        self._publish(ToolExplained(self._standing(servers, server, tool)))

    def _standing(self, servers: ServerManager, server: ServerId, tool: str) -> ToolStanding:
        found = servers.look_up(server, tool)
        if found is None:
            return ToolStanding(server, tool, Effect.DENY, "Its server does not offer it now.")
        view, offered = found
        if view.problem:
            words = f"The model is not offered it: {sanitize_line(view.problem)}."
            return ToolStanding(server, tool, Effect.DENY, words)
        if offered is None:
            return ToolStanding(server, tool, Effect.DENY, "The model is not offered it.")
        verdict = self.policy.judge(offered)
        return ToolStanding(server, tool, verdict.effect, verdict.words)


def _patterns(rules: "Iterable[ToolPattern]") -> tuple[Pattern, ...]:
    return tuple(Pattern(rule.server, rule.tool) for rule in rules)
