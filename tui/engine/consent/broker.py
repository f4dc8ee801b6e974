"""The broker that asks the user, and remembers what was allowed."""

import asyncio
import itertools
from dataclasses import dataclass, replace
from typing import Final

from tui.engine.consent.forms import argument_fields
from tui.engine.consent.notes import call_notes, origin_words
from tui.engine.consent.protocol import (
    Answer,
    Consent,
    ConsentWithdrawnError,
    DeniedCall,
    Edit,
    Inquiry,
    UnusableEditError,
)
from tui.engine.consent.rules.policy import Policy
from tui.engine.events import Publish
from tui.engine.tools import OfferedTool
from tui.model.catalog import Catalog
from tui.model.chat import ToolCallStatus
from tui.model.consent import Choice, Decision, Effect, RequestId
from tui.model.events import (
    CatalogChanged,
    Event,
    RequestRaised,
    RequestSettled,
    ServerStatusChanged,
    ToolCallChanged,
)
from tui.model.requests import ConfirmationRequest
from tui.model.servers import ServerId, ServerStatus
from tui.text import sanitize, sanitize_line

__all__ = ["Consent", "ConsentBroker"]

MAX_PENDING: Final = 64
"""Questions that may wait at once; further calls do not run."""

MAX_NOTE: Final = 4_000
"""Characters of the user's word on a denial that reach the model."""

DENIED_BY_RULE: Final = "A rule of the user forbids this tool."
"""What the model is told of a call that no one was asked about."""

_DENIED_BEFORE: Final = Answer(
    allows=False,
    source="you: denied this very call before",
    note="The user has denied this very call already. Do not ask for it again.",
)
_ALLOWED_REST: Final = Answer(allows=True, source="you: all further calls of this turn")
_DENIED_REST: Final = Answer(
    allows=False,
    source="you: deny all further calls of this turn",
    note="The user denied all further calls of this turn. Answer with what you have.",
)


@dataclass(slots=True)
class _Question:
    """A call that waits.

    Attributes:
        inquiry: The call.
        request: What is shown of it now.
        answer: Takes the next answer; a new one follows an answer that cannot be used.
    """

    inquiry: Inquiry
    request: ConfirmationRequest
    answer: "asyncio.Future[Decision | ConsentWithdrawnError | Answer]"


class ConsentBroker:
    """Implements `Consent` for somebody who sits before the screen.

    What the rules allow or deny is not asked about. For every other call a `RequestRaised` is
    published, and a `RequestSettled` once it was answered, withdrawn or cancelled.

    Args:
        publish: Takes the events.
        policy: The rules; without one there are only the grants of this session.
    """

    def __init__(self, publish: Publish, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self._publish = publish
        self._questions: dict[RequestId, _Question] = {}
        self._numbers = itertools.count(1)

    async def confirm(self, inquiry: Inquiry) -> Answer:
        """Decide on one call; see `Consent.confirm`."""
        await self.policy.refresh()
        if inquiry.turn.has_denied(inquiry.tool, inquiry.shown):
            return _DENIED_BEFORE
        if (known := self._known_answer(inquiry)) is not None:
            return known
        if len(self._questions) >= MAX_PENDING:
            raise ConsentWithdrawnError("Too many calls wait for the user already.")
        question = self._ask(inquiry)
        try:
            return await self._answered(question)
        finally:
            self._close(question)

    def decide(self, request: RequestId, decision: Decision) -> None:
        """Take the user's answer. What it covers besides is settled with it.

        An answer to a question that is no longer open is ignored. Edited arguments are read
        first; where they cannot be used, the question is raised again with the problem.
        """
        question = self._questions.get(request)
        if question is None or question.answer.done():
            return
        if decision.choice.allows and decision.arguments is not None:
            question.answer.set_result(decision)
        else:
            self._take(question, decision, None)

    def heed(self, event: Event) -> None:
        """Take an event of the engine: what it takes away takes the questions about it along."""
        match event:
            case ServerStatusChanged() if event.status is not ServerStatus.READY:
                self.withdraw_server(event.server)
            case CatalogChanged():
                self._withdraw_changed(event.server, event.catalog)

    def withdraw_server(self, server: ServerId) -> None:
        """Withdraw what waits for a server that went away; an answer could come too late."""
        for question in tuple(self._questions.values()):
            if question.inquiry.tool.server == server:
                reason = ConsentWithdrawnError("The server went away before the answer.")
                self._settle(question, reason)

    def _withdraw_changed(self, server: ServerId, catalog: Catalog) -> None:
        """Withdraw what waits for tools that are no longer as they were asked about."""
        for question in tuple(self._questions.values()):
            tool = question.inquiry.tool
            if tool.server == server and not _is_listed(tool, catalog):
                reason = ConsentWithdrawnError("The tool changed or went before the answer.")
                self._settle(question, reason)

    def _known_answer(self, inquiry: Inquiry) -> Answer | None:
        """Give the answer that rules and earlier answers of the turn give, if they give one."""
        verdict = self.policy.judge(inquiry.tool, inquiry.arguments)
        if verdict.effect is Effect.DENY:
            return Answer(allows=False, source=verdict.source, note=DENIED_BY_RULE)
        if inquiry.turn.rest is Choice.DENY_REST_OF_TURN:
            return _DENIED_REST
        if verdict.effect is Effect.ALLOW:
            self.policy.used(verdict)
            return Answer(allows=True, source=verdict.source)
        return _ALLOWED_REST if inquiry.turn.rest is Choice.REST_OF_TURN else None

    def _ask(self, inquiry: Inquiry) -> _Question:
        tool = inquiry.tool
        request = ConfirmationRequest(
            id=RequestId(f"q{next(self._numbers)}"),
            call=inquiry.call,
            server=tool.server,
            tool=tool.view.name,
            title=tool.view.title,
            description=tool.view.description,
            arguments=inquiry.shown,
            claims=tool.view.claims,
            fields=argument_fields(tool.schema, inquiry.arguments),
            notes=call_notes(inquiry, self.policy),
            may_last=bool(tool.fingerprint),
            origin=origin_words(tool.server, self.policy),
        )
        question = _Question(inquiry, request, asyncio.get_running_loop().create_future())
        self._questions[request.id] = question
        self._publish(ToolCallChanged(inquiry.call, ToolCallStatus.ASKING))
        self._publish(RequestRaised(request))
        return question

    async def _answered(self, question: _Question) -> Answer:
        """Wait for an answer that can be used."""
        while True:
            answer = await question.answer
            match answer:
                case ConsentWithdrawnError():
                    raise answer
                case Answer():
                    return self._with_rules(question.inquiry, answer)
            question.answer = asyncio.get_running_loop().create_future()
            await self._read_edit(question, answer)

    async def _read_edit(self, question: _Question, decision: Decision) -> None:
        """Read edited arguments; take the answer, or raise the question again."""
        reading = question.answer
        try:
            edit = await question.inquiry.read_edit(decision.arguments or "")
        except UnusableEditError as error:
            if not reading.done():
                problem = sanitize_line(str(error))
                question.request = replace(question.request, problem=problem)
                self._publish(RequestRaised(question.request))
            return
        if not reading.done():
            unchanged = edit.shown == question.inquiry.shown
            self._take(question, decision, None if unchanged else edit)

    def _with_rules(self, inquiry: Inquiry, answer: Answer) -> Answer:
        """Let a rule that came up meanwhile, or that edited arguments fall under, win."""
        arguments = answer.edit.arguments if answer.edit is not None else inquiry.arguments
        verdict = self.policy.judge(inquiry.tool, arguments)
        if verdict.effect is Effect.DENY:
            return Answer(allows=False, source=verdict.source, note=DENIED_BY_RULE)
        return answer

    def _take(self, question: _Question, decision: Decision, edit: Edit | None) -> None:
        """Act on an answer: what it says of this call, of later ones, and of others that wait."""
        inquiry, choice = question.inquiry, decision.choice
        source, note = f"you: {choice.value}", sanitize(decision.note, MAX_NOTE)
        match choice:
            case Choice.ALWAYS_TOOL:
                self.policy.allow((inquiry.tool,), decision.scope, choice.value)
                source += f", {decision.scope.value}"
            case Choice.ALWAYS_SERVER:
                tools = [tool for tool in inquiry.offered if _is_sibling(tool, inquiry)]
                self.policy.allow((inquiry.tool, *tools), decision.scope, choice.value)
                source += f", {decision.scope.value}"
            case Choice.REST_OF_TURN:
                inquiry.turn.rest = choice
            case Choice.DENY_REST_OF_TURN:
                inquiry.turn.rest = choice
                note = f"{note} {_DENIED_REST.note}".strip()
        if not choice.allows:
            inquiry.turn.denied.append(DeniedCall(inquiry.tool, inquiry.shown))
        self._settle(question, Answer(choice.allows, source, note, edit))
        for other in tuple(self._questions.values()):
            if not other.answer.done() and (known := self._known_answer(other.inquiry)):
                self._settle(other, known)

    def _settle(self, question: _Question, answer: Answer | ConsentWithdrawnError) -> None:
        self._close(question)
        if not question.answer.done():
            question.answer.set_result(answer)

    def _close(self, question: _Question) -> None:
        """Take a question off the screen, once."""
        if self._questions.pop(question.request.id, None) is not None:
            self._publish(RequestSettled(question.request.id))


def _is_listed(tool: OfferedTool, catalog: Catalog) -> bool:
    """Tell whether a tool is offered as it was, under whatever name the model has it now."""
    return any(
        view.name == tool.view.name and replace(view, id=tool.view.id) == tool.view
        for view in catalog.tools
    )


def _is_sibling(tool: OfferedTool, inquiry: Inquiry) -> bool:
    return (tool.server, tool.fingerprint) == (inquiry.tool.server, inquiry.tool.fingerprint)
