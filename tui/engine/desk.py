"""The desk, where every question to the user is asked, answered or withdrawn."""

import asyncio
import itertools
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from tui.engine.bus import Publish
from tui.model.chat import Severity
from tui.model.consent import RequestId
from tui.model.events import Notice, NoticeRaised, RequestRaised, RequestSettled, RequestsQueued
from tui.model.requests import (
    Answer,
    AnswerT,
    ConfirmationRequest,
    FormRequest,
    PendingRequest,
    Reply,
    ReplyAction,
    Request,
    SamplingRequest,
    SamplingReview,
    UrlRequest,
)
from tui.model.servers import ServerId

MAX_WAITING: Final = 8
"""Most requests of one server queued behind the shown one; further ones are declined."""

MAX_PENDING: Final = 64
"""Most tool calls waiting for consent; further ones are refused."""

MAX_OF_CLIENT: Final = 8
"""Most tool calls of another client waiting for consent, beside the others."""

ServerRequest = FormRequest | UrlRequest | SamplingRequest | SamplingReview
"""A request from a server."""

Check = Callable[[AnswerT], Awaitable[PendingRequest | None]]
"""Returns the question with what is wrong with an accepting answer; None if that is valid."""


class WithdrawnError(Exception):
    """A question ended without the user's answer; the message says why, in one line.

    This is not a denial: the same question may be asked again.
    """


@dataclass(slots=True)
class _Question:
    """An open request; `shown` once it was published."""

    request: PendingRequest
    answer: "asyncio.Future[Answer | WithdrawnError]"
    shown: bool = False


class Desk:
    """Asks the user. Belongs to one event loop.

    A question is published as `RequestRaised`, followed by `RequestSettled` when it is answered
    or withdrawn. One request per server is shown; up to `MAX_WAITING` are queued behind it.

    Args:
        publish: Publishes the events.
        attended: Whether a user is at the screen. If not, requests of servers are declined and
            every other question is withdrawn at once.

    Attributes:
        attended: The same.
        remarks: What is called, by server, with why a request of it was declined unasked.
    """

    def __init__(self, publish: Publish, *, attended: bool = True) -> None:
        self.attended, self._publish = attended, publish
        self._queues: dict[ServerId, deque[_Question]] = {}
        self._open: dict[RequestId, _Question] = {}
        self._numbers = itertools.count(1)
        self._overrun: set[ServerId] = set()
        self._told = RequestsQueued(0)
        self.remarks: dict[ServerId, Callable[[str], None]] = {}

    def new_id(self) -> RequestId:
        return RequestId(f"q{next(self._numbers)}")

    async def ask(self, request: Request[AnswerT], check: Check[AnswerT] | None = None) -> AnswerT:
        """Ask, and wait for the answer. Canceling the task withdraws the question.

        Args:
            request: The question, with an id from `new_id`.
            check: Validates an accepting answer. If it is invalid, the question is raised again
                as returned. A later answer replaces one being checked.

        Raises:
            WithdrawnError: If the question was withdrawn, or nobody can be asked. A server's
                request is declined instead if nobody can be asked or too many are waiting.
        """
        line = self._queue(request)
        if reason := self._why_not(request, line):
            return cast("AnswerT", self._refused(request, reason))
        question = _Question(request, asyncio.get_running_loop().create_future())
        line.append(question)
        try:
            self._show_first(line)
            return cast("AnswerT", await self._answered(question, check))
        finally:
            self._remove(question, line)

    def answer(self, request: RequestId, answer: Answer) -> None:
        """Accept the user's answer; it is ignored if the question is not open."""
        question = self._open.get(request)
        if question is None or question.answer.done():
            return
        if isinstance(answer, question.request.answer_type):
            question.answer.set_result(answer)

    def withdraw(self, request: RequestId, reason: WithdrawnError) -> None:
        """End a question without an answer; the asking task gets the error."""
        question = self._open.get(request)
        if question is not None and not question.answer.done():
            question.answer.set_result(reason)

    async def _answered(self, question: _Question, check: Check[Any] | None) -> Answer:
        """Wait for a valid answer."""
        while True:
            answer = await question.answer
            if isinstance(answer, WithdrawnError):
                raise answer
            if check is None or not answer.allows:
                return answer
            question.answer = asyncio.get_running_loop().create_future()
            again = await check(answer)
            if question.answer.done():
                continue  # answered again, or withdrawn, while it was checked
            if again is None:
                return answer
            question.request = again
            self._publish(RequestRaised(again))

    def _why_not(self, request: PendingRequest, line: deque[_Question]) -> str:
        """Return why the user is not asked, or an empty string."""
        if not self.attended:
            return "Nobody is there to answer."
        if len(line) > MAX_WAITING:
            return f"{len(line)} requests are already waiting for the user."
        if not isinstance(request, ConfirmationRequest):
            return ""
        calls = (q.request for q in self._open.values() if isinstance(q.request, type(request)))
        number = sum(one.caller == request.caller for one in calls)
        is_full = number >= (MAX_OF_CLIENT if request.caller else MAX_PENDING)
        return "Too many calls are already waiting." if is_full else ""

    def _refused(self, request: PendingRequest, reason: str) -> Answer:
        """Decline a server's request, or raise why another question is not asked.

        That is said once of each server for all that come while others wait.
        """
        if not isinstance(request, ServerRequest):
            raise WithdrawnError(reason)
        if remark := self.remarks.get(request.server):
            remark(f"declined without asking: {reason}")
        if request.server not in self._overrun:
            self._overrun.add(request.server)
            words, advice = "sends too many requests at once; further ones are declined.", reason
            if not self.attended:
                words = "requested what only a user can give, so it was declined."
                advice = "Run gemdeck in a terminal to answer such requests."
            text = f"{request.server} {words}"
            self._publish(NoticeRaised(Notice(Severity.WARNING, text, advice)))
        return Reply(ReplyAction.DECLINE)

    def _queue(self, request: PendingRequest) -> deque[_Question]:
        """Return the queue for a request: its server's, or a new one."""
        if isinstance(request, ServerRequest):
            return self._queues.setdefault(request.server, deque())
        return deque()

    def _show_first(self, line: deque[_Question]) -> None:
        if not line[0].shown:
            line[0].shown = True
            self._open[line[0].request.id] = line[0]
            self._publish(RequestRaised(line[0].request))
        self._tell_queued()

    def _tell_queued(self) -> None:
        told = RequestsQueued(sum(len(line) - 1 for line in self._queues.values() if line))
        if told != self._told:
            self._told = told
            self._publish(told)

    def _remove(self, question: _Question, line: deque[_Question]) -> None:
        """Remove a question, and show the next one in its queue."""
        if self._open.pop(question.request.id, None) is not None:
            self._publish(RequestSettled(question.request.id))
        line.remove(question)
        if line:
            self._show_first(line)
        elif isinstance(question.request, ServerRequest):
            del self._queues[question.request.server]
            self._overrun.discard(question.request.server)
