"""Consent that leaves a record: of each decision, and of how each allowed call ended."""

from dataclasses import replace

from tui.engine.consent.audit import AuditLog
from tui.engine.consent.protocol import Answer, Consent, Inquiry


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
        answer = await self._consent.confirm(inquiry)
        tool, call = inquiry.tool, inquiry.call
        arguments = answer.edit.shown if answer.edit is not None else inquiry.shown
        decision = "allow" if answer.allows else "deny"
        self._log.record_decision(tool, call, arguments, decision=decision, source=answer.source)

        def record_end(outcome: str, seconds: float) -> None:
            self._log.record_call(tool, call, arguments, outcome=outcome, seconds=seconds)

        return replace(answer, on_end=record_end)
