"""The desk at which requests of servers wait for the user, one shown a server at a time."""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from tui.engine.events import Publish
from tui.model.consent import RequestId
from tui.model.events import RequestRaised, RequestSettled
from tui.model.requests import (
    FormRequest,
    Reply,
    ReplyAction,
    SamplingRequest,
    SamplingReview,
    UrlRequest,
)
from tui.model.servers import ServerId

MAX_WAITING: Final = 8
"""Questions of one server that wait behind the one that is shown; further ones are declined."""

ServerRequest = FormRequest | UrlRequest | SamplingRequest | SamplingReview
"""What a server may ask of the user."""

Check = Callable[[Reply], str]
"""Says what is wrong with an accepting reply, in one sanitised line; nothing if it can be used."""

_DECLINED: Final = Reply(ReplyAction.DECLINE)


class Desk(Protocol):
    """Puts requests of servers to whoever may answer them."""

    def new_id(self) -> RequestId:
        """Give an id that no other request has."""

    async def ask(self, request: ServerRequest, check: Check | None = None) -> Reply:
        """Ask, and wait for the answer.

        Cancelling the awaiting task withdraws the question.

        Args:
            request: The question, with an id of `new_id`.
            check: Judges a reply that accepts a form. One that cannot be used does not end
                the question: it is raised again with the problem beside it.

        Returns:
            The answer; declining where there are too many questions of that server already.
        """

    def reply(self, request: RequestId, reply: Reply) -> None:
        """Take an answer. One to a question that is not open is ignored."""


@dataclass(slots=True)
class _Question:
    """A request that waits; `shown` once it was published."""

    request: ServerRequest
    check: Check | None
    answer: asyncio.Future[Reply]
    shown: bool = False


class RequestDesk:
    """Implements `Desk` for somebody who sits before the screen.

    Of each server one question is shown, as `RequestRaised`, and up to `MAX_WAITING` wait for
    their turn. `RequestSettled` follows once it was answered or withdrawn.

    Args:
        publish: Takes the events.
    """

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._lines: dict[ServerId, deque[_Question]] = {}
        self._shown: dict[RequestId, _Question] = {}
        self._numbers = itertools.count(1)

    def new_id(self) -> RequestId:
        """Give an id that no other request has."""
        return RequestId(f"r{next(self._numbers)}")

    async def ask(self, request: ServerRequest, check: Check | None = None) -> Reply:
        """Ask, and wait for the answer; see `Desk.ask`."""
        line = self._lines.setdefault(request.server, deque())
        if len(line) > MAX_WAITING:
            return _DECLINED
        question = _Question(request, check, asyncio.get_running_loop().create_future())
        line.append(question)
        try:
            self._show_first(line)
            return await question.answer
        finally:
            self._remove(question)

    def reply(self, request: RequestId, reply: Reply) -> None:
        """Take an answer. One to a question that is not open is ignored."""
        question = self._shown.get(request)
        if question is None or question.answer.done():
            return
        accepts = reply.action in {ReplyAction.ACCEPT, ReplyAction.ACCEPT_ALWAYS}
        if accepts and question.check is not None and (problem := question.check(reply)):
            if isinstance(question.request, FormRequest):
                question.request = replace(question.request, problem=problem)
            self._publish(RequestRaised(question.request))
            return
        question.answer.set_result(reply)
        self._settle(question)

    def _show_first(self, line: deque[_Question]) -> None:
        if line and not line[0].shown:
            first = line[0]
            first.shown = True
            self._shown[first.request.id] = first
            self._publish(RequestRaised(first.request))

    def _settle(self, question: _Question) -> None:
        """Take a question off the screen, once."""
        if self._shown.pop(question.request.id, None) is not None:
            self._publish(RequestSettled(question.request.id))

    def _remove(self, question: _Question) -> None:
        """Let the next question of the same server take its place."""
        self._settle(question)
        line = self._lines[question.request.server]
        line.remove(question)
        if line:
            self._show_first(line)
        else:
            del self._lines[question.request.server]


class DecliningDesk:
    """Implements `Desk` where nobody can be asked: declines everything at once."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def new_id(self) -> RequestId:
        """Give an id that no other request has."""
        return RequestId(f"r{next(self._numbers)}")

    async def ask(self, request: ServerRequest, check: Check | None = None) -> Reply:
        """Decline."""
        del request, check
        return _DECLINED

    def reply(self, request: RequestId, reply: Reply) -> None:
        """Do nothing: there is no question to answer."""
