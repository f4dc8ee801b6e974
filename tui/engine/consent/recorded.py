"""Consent that leaves a record: of each decision, and of how each allowed call ended."""

import asyncio
from dataclasses import replace

from tui.engine.consent.audit import AuditLog
from tui.engine.consent.protocol import Answer, Consent, ConsentWithdrawnError, Inquiry


class RecordedConsent:
    """Implements `Consent` by another one, and records what comes of it.

    Args:
        consent: Decides.
        log: Keeps the records.
    """

    def __init__(self, consent: Consent, log: AuditLog) -> None:
        self.policy = consent.policy
        self._consent = consent
        self._log = log

    async def confirm(self, inquiry: Inquiry) -> Answer:
        """Decide on one call; see `Consent.confirm`."""
        try:
            answer = await self._consent.confirm(inquiry)
        except ConsentWithdrawnError as error:
            self._record_withdrawn(inquiry, str(error))
            raise
        except asyncio.CancelledError:
            self._record_withdrawn(inquiry, "the turn was stopped")
            raise
        tool, call = inquiry.tool, inquiry.call
        arguments = answer.edit.shown if answer.edit is not None else inquiry.shown
        decision = "allow" if answer.allows else "deny"
        self._log.record_decision(tool, call, arguments, decision=decision, source=answer.source)

        def record_end(outcome: str, seconds: float) -> None:
            self._log.record_call(tool, call, arguments, outcome=outcome, seconds=seconds)

        return replace(answer, on_end=record_end)

    def _record_withdrawn(self, inquiry: Inquiry, why: str) -> None:
        """Record that nobody decided on a call, which did not run."""
        self._log.record_decision(
            inquiry.tool, inquiry.call, inquiry.shown, decision="withdrawn", source=why
        )
