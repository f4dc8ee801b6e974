"""The desk: one question of a server at a time, in order, and none that outlives its asker."""

import asyncio
from dataclasses import replace

import pytest

from tui.engine.desk import MAX_PENDING, MAX_WAITING, Desk, ServerRequest, WithdrawnError
from tui.model.chat import EntryId
from tui.model.consent import Choice, Decision, RequestId
from tui.model.events import Event, NoticeRaised, RequestRaised, RequestSettled, RequestsQueued
from tui.model.requests import (
    ConfirmationRequest,
    FormRequest,
    Reply,
    ReplyAction,
    TrustRequest,
    UrlRequest,
)
from tui.model.servers import ServerId
from tui.model.trust import TrustAnswer, TrustSubject

ACCEPT = Reply(ReplyAction.ACCEPT)
DECLINE = Reply(ReplyAction.DECLINE)


class Room:
    """A desk, and what it published."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.desk = Desk(self.events.append)

    def form(self, server: str = "a") -> FormRequest:
        return FormRequest(self.desk.new_id(), ServerId(server), "?", ())

    def ask(self, request: ServerRequest) -> "asyncio.Task[Reply]":
        return asyncio.create_task(self.desk.ask(request))

    def shown(self) -> list[RequestId]:
        """Give the questions that are on the screen."""
        shown: list[RequestId] = []
        for event in self.events:
            if isinstance(event, RequestRaised) and event.request.id not in shown:
                shown.append(event.request.id)
            elif isinstance(event, RequestSettled):
                shown.remove(event.request)
        return shown


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_of_each_server_one_question_is_shown_and_the_next_follows() -> None:
    room = Room()
    first, second, other = room.form(), room.form(), room.form("b")
    asking = [room.ask(request) for request in (first, second, other)]
    await settle()
    assert room.shown() == [first.id, other.id]
    room.desk.answer(second.id, ACCEPT)
    await settle()
    assert not asking[1].done(), "what is not shown cannot be answered"
    room.desk.answer(first.id, DECLINE)
    await settle()
    assert room.shown() == [other.id, second.id]
    room.desk.answer(second.id, ACCEPT)
    room.desk.answer(other.id, ACCEPT)
    assert await asyncio.gather(*asking) == [DECLINE, ACCEPT, ACCEPT]


async def test_more_than_one_shown_and_eight_waiting_are_declined_at_once() -> None:
    room, remarks = Room(), list[str]()
    room.desk.remarks[ServerId("a")] = remarks.append
    asking = [room.ask(room.form()) for _ in range(200)]
    await settle()
    declined = [task for task in asking if task.done()]
    assert len(asking) - len(declined) == 1 + MAX_WAITING
    assert {task.result() for task in declined} == {DECLINE}
    assert len(remarks) == len(declined)
    assert set(remarks) == {"declined without asking: 9 requests are already waiting for the user."}
    assert [e.notice.text for e in room.events if isinstance(e, NoticeRaised)] == [
        "a sends too many requests at once; further ones are declined."
    ]
    queued = [event for event in room.events if isinstance(event, RequestsQueued)]
    assert list(dict.fromkeys(event.queued for event in queued)) == [*range(1, MAX_WAITING + 1)]
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert room.shown() == []
    assert [e for e in room.events if isinstance(e, RequestsQueued)][-1] == RequestsQueued(0)


async def test_a_cancelled_asker_withdraws_its_question_shown_or_not() -> None:
    room = Room()
    requests = [room.form() for _ in range(3)]
    asking = [room.ask(request) for request in requests]
    await settle()
    asking[1].cancel()
    asking[0].cancel()
    await settle()
    assert room.shown() == [requests[2].id]
    raised = [event.request.id for event in room.events if isinstance(event, RequestRaised)]
    assert requests[1].id not in raised
    room.desk.answer(requests[2].id, ACCEPT)
    assert await asking[2] == ACCEPT


async def test_an_answer_that_cannot_be_used_keeps_the_question_open() -> None:
    room = Room()
    request = room.form()

    async def check(reply: Reply) -> FormRequest | None:
        is_right = reply.content == {"age": 3}
        return None if is_right else replace(request, problem="is no number", wrong="age")

    asking = asyncio.create_task(room.desk.ask(request, check))
    await settle()
    room.desk.answer(request.id, Reply(ReplyAction.ACCEPT, {"age": "x"}))
    await settle()
    again = RequestRaised(replace(request, problem="is no number", wrong="age"))
    assert (room.events[-1], asking.done()) == (again, False)
    room.desk.answer(request.id, Reply(ReplyAction.ACCEPT, {"age": 3}))
    assert ((await asking).content, room.shown()) == ({"age": 3}, [])
    for action in (ReplyAction.DECLINE, ReplyAction.CANCEL):  # which need no usable answer
        asking = asyncio.create_task(room.desk.ask(room.form(), check))
        await settle()
        room.desk.answer(room.shown()[0], Reply(action))
        assert (await asking).action is action


async def test_answers_to_nothing_and_second_answers_are_ignored() -> None:
    room = Room()
    room.desk.answer(RequestId("r99"), ACCEPT)
    request = UrlRequest(room.desk.new_id(), ServerId("a"), "", "https://x.y/", "x.y", "x.y")
    asking = room.ask(request)
    await settle()
    room.desk.answer(request.id, DECLINE)
    room.desk.answer(request.id, ACCEPT)
    assert await asking == DECLINE
    room.desk.answer(request.id, ACCEPT)
    assert room.events == [RequestRaised(request), RequestSettled(request.id)]


async def test_without_a_user_servers_are_declined_and_nothing_else_is_asked() -> None:
    events: list[Event] = []
    desk = Desk(events.append, attended=False)
    form, trust = FormRequest(desk.new_id(), ServerId("a"), "?", ()), trust_request(desk)
    assert form.id != trust.id
    assert await desk.ask(form) == await desk.ask(form) == DECLINE
    with pytest.raises(WithdrawnError):
        await desk.ask(trust)
    desk.answer(form.id, ACCEPT)
    [told] = events
    assert isinstance(told, NoticeRaised)
    assert told.notice.text == "a requested what only a user can give, so it was declined."


def trust_request(desk: Desk) -> TrustRequest:
    return TrustRequest(desk.new_id(), TrustSubject.FOLDER, "~/shop", ())


def confirmation(desk: Desk) -> ConfirmationRequest:
    return ConfirmationRequest(desk.new_id(), EntryId("e1"), ServerId("a"), "tool", "", "{}")


async def test_every_kind_of_question_has_its_kind_of_answer_and_no_other() -> None:
    room = Room()
    trust, call = trust_request(room.desk), confirmation(room.desk)
    trusting = asyncio.create_task(room.desk.ask(trust))
    calling = asyncio.create_task(room.desk.ask(call))
    await settle()
    room.desk.answer(trust.id, Decision(Choice.ONCE))
    room.desk.answer(call.id, ACCEPT)
    await settle()
    assert room.shown() == [trust.id, call.id]
    room.desk.answer(trust.id, TrustAnswer.NEVER)
    room.desk.answer(call.id, Decision(Choice.ONCE))
    assert (await trusting, await calling) == (TrustAnswer.NEVER, Decision(Choice.ONCE))
    assert room.shown() == []


async def test_more_calls_than_may_wait_are_refused() -> None:
    room = Room()
    desk = room.desk
    asking = [asyncio.create_task(desk.ask(confirmation(desk))) for _ in range(MAX_PENDING)]
    await settle()
    with pytest.raises(WithdrawnError, match="Too many"):
        await desk.ask(confirmation(desk))
    trusting = asyncio.create_task(room.desk.ask(trust_request(room.desk)))
    await settle()
    assert len(room.shown()) == MAX_PENDING + 1
    for task in (*asking, trusting):
        task.cancel()
    await asyncio.gather(*asking, trusting, return_exceptions=True)
    assert room.shown() == []
