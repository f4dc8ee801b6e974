"""The broker that asks the user, and remembers what was allowed."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tui.engine.consent.grants import SessionGrants
from tui.engine.consent.protocol import Consent
from tui.engine.events import Publish
from tui.engine.tools import OfferedTool
from tui.model.chat import EntryId, ToolCallStatus
from tui.model.consent import Choice, ConfirmationRequest, Decision, RequestId
from tui.model.events import (
    Event,
    RequestRaised,
    RequestSettled,
    ServerStatusChanged,
    ToolCallChanged,
)
from tui.model.servers import ServerId, ServerStatus

__all__ = ["Consent", "ConsentBroker"]

MAX_PENDING: Final = 64
"""Questions that may wait at once; further calls are denied unasked."""

_ALLOWED: Final = Decision(Choice.ONCE)


@dataclass(frozen=True, slots=True)
class _Question:
    """A call that waits.

    `siblings` are the tools of the same server as they were offered when this was asked.
    """

    request: ConfirmationRequest
    tool: OfferedTool
    siblings: tuple[OfferedTool, ...]
    answer: asyncio.Future[Decision]


class ConsentBroker:
    """Implements `Consent` for somebody who sits before the screen.

    Trusted servers and granted tools pass. For every other call a `RequestRaised` is
    published, and a `RequestSettled` once it was answered, withdrawn or cancelled.

    Args:
        publish: Takes the events.
    """

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._grants = SessionGrants()
        self._questions: dict[RequestId, _Question] = {}
        self._numbers = itertools.count(1)

    async def confirm(
        self, call: EntryId, tool: OfferedTool, arguments: str, offered: Sequence[OfferedTool]
    ) -> Decision:
        """Decide on one call; see `Consent.confirm`."""
        if tool.trusted or self._grants.covers(tool):
            return _ALLOWED
        if len(self._questions) >= MAX_PENDING:
            return Decision(Choice.DENY, "Too many calls wait for the user already.")
        question = self._ask(call, tool, arguments, offered)
        try:
            return await question.answer
        finally:
            self._close(question)

    def decide(self, request: RequestId, decision: Decision) -> None:
        """Take the user's answer. What a new grant covers besides is settled with it.

        An answer to a question that is no longer open is ignored.
        """
        question = self._questions.get(request)
        if question is None:
            return
        match decision.choice:
            case Choice.ALWAYS_TOOL:
                self._grants.allow((question.tool,))
            case Choice.ALWAYS_SERVER:
                self._grants.allow((question.tool, *question.siblings))
        self._settle(question, decision)
        for other in tuple(self._questions.values()):
            if self._grants.covers(other.tool):
                self._settle(other, _ALLOWED)

    def heed(self, event: Event) -> None:
        """Take an event of the engine: a server that is not ready takes its questions with it."""
        if isinstance(event, ServerStatusChanged) and event.status is not ServerStatus.READY:
            self.withdraw_server(event.server)

    def withdraw_server(self, server: ServerId) -> None:
        """Deny what waits for a server that went away; an answer could come too late."""
        for question in tuple(self._questions.values()):
            if question.tool.server == server:
                self._settle(
                    question, Decision(Choice.DENY, "The server went away before the answer.")
                )

    def _ask(
        self, call: EntryId, tool: OfferedTool, arguments: str, offered: Sequence[OfferedTool]
    ) -> _Question:
        request = ConfirmationRequest(
            id=RequestId(f"q{next(self._numbers)}"),
            call=call,
            server=tool.server,
            tool=tool.view.name,
            description=tool.view.description,
            arguments=arguments,
            claims=tool.view.claims,
        )
        siblings = tuple(other for other in offered if other.server == tool.server)
        answer = asyncio.get_running_loop().create_future()
        question = _Question(request, tool, siblings, answer)
        self._questions[request.id] = question
        self._publish(ToolCallChanged(call, ToolCallStatus.ASKING))
        self._publish(RequestRaised(request))
        return question

    def _settle(self, question: _Question, decision: Decision) -> None:
        self._close(question)
        if not question.answer.done():
            question.answer.set_result(decision)

    def _close(self, question: _Question) -> None:
        """Take a question off the screen, once."""
        if self._questions.pop(question.request.id, None) is not None:
            self._publish(RequestSettled(question.request.id))
