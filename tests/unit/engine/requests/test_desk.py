"""The desk: one question of a server at a time, in order, and none that outlives its asker."""

import asyncio

import pytest

from tui.engine.requests import MAX_WAITING, DecliningDesk, Desk, RequestDesk, ServerRequest
from tui.model.consent import RequestId
from tui.model.events import Event, RequestRaised, RequestSettled
from tui.model.requests import FormRequest, Reply, ReplyAction, UrlRequest
from tui.model.servers import ServerId

ACCEPT = Reply(ReplyAction.ACCEPT)
DECLINE = Reply(ReplyAction.DECLINE)


class Room:
    """A desk, and what it published."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.desk = RequestDesk(self.events.append)

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


async def test_a_question_is_shown_answered_and_taken_away() -> None:
    room = Room()
    request = room.form()
    asking = room.ask(request)
    await settle()
    assert room.events == [RequestRaised(request)]
    room.desk.reply(request.id, ACCEPT)
    assert await asking == ACCEPT
    assert room.events[1:] == [RequestSettled(request.id)]


async def test_of_each_server_one_question_is_shown_and_the_next_follows() -> None:
    room = Room()
    first, second, other = room.form(), room.form(), room.form("b")
    asking = [room.ask(request) for request in (first, second, other)]
    await settle()
    assert room.shown() == [first.id, other.id]
    room.desk.reply(second.id, ACCEPT)
    await settle()
    assert not asking[1].done(), "what is not shown cannot be answered"
    room.desk.reply(first.id, DECLINE)
    await settle()
    assert room.shown() == [other.id, second.id]
    room.desk.reply(second.id, ACCEPT)
    room.desk.reply(other.id, ACCEPT)
    assert await asyncio.gather(*asking) == [DECLINE, ACCEPT, ACCEPT]


async def test_more_than_one_shown_and_eight_waiting_are_declined_at_once() -> None:
    room = Room()
    asking = [room.ask(room.form()) for _ in range(2_000)]
    await settle()
    declined = [task for task in asking if task.done()]
    assert len(asking) - len(declined) == 1 + MAX_WAITING
    assert {task.result() for task in declined} == {DECLINE}
    assert len(room.events) == 1
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert room.shown() == []


async def test_a_cancelled_asker_withdraws_its_question_shown_or_not() -> None:
    room = Room()
    requests = [room.form() for _ in range(3)]
    asking = [room.ask(request) for request in requests]
    await settle()
    asking[1].cancel()
    asking[0].cancel()
    await settle()
    assert room.shown() == [requests[2].id]
    assert requests[1].id not in [
        event.request.id for event in room.events if isinstance(event, RequestRaised)
    ]
    room.desk.reply(requests[2].id, ACCEPT)
    assert await asking[2] == ACCEPT


async def test_an_answer_that_cannot_be_used_keeps_the_question_open() -> None:
    room = Room()
    request = room.form()

    def check(reply: Reply) -> str:
        return "" if reply.content == {"age": 3} else "Age: is no number"

    asking = asyncio.create_task(room.desk.ask(request, check))
    await settle()
    room.desk.reply(request.id, Reply(ReplyAction.ACCEPT, {"age": "x"}))
    await settle()
    again = room.events[-1]
    assert isinstance(again, RequestRaised)
    assert isinstance(again.request, FormRequest)
    assert (again.request.id, again.request.problem) == (request.id, "Age: is no number")
    assert not asking.done()
    room.desk.reply(request.id, Reply(ReplyAction.ACCEPT, {"age": 3}))
    assert (await asking).content == {"age": 3}
    assert room.shown() == []


@pytest.mark.parametrize("action", [ReplyAction.DECLINE, ReplyAction.CANCEL])
async def test_declining_needs_no_usable_answer(action: ReplyAction) -> None:
    room = Room()
    request = room.form()
    asking = asyncio.create_task(room.desk.ask(request, lambda _: "wrong"))
    await settle()
    room.desk.reply(request.id, Reply(action))
    assert (await asking).action is action


async def test_answers_to_nothing_and_second_answers_are_ignored() -> None:
    room = Room()
    room.desk.reply(RequestId("r99"), ACCEPT)
    request = UrlRequest(room.desk.new_id(), ServerId("a"), "", "https://x.y/", "x.y", "x.y")
    asking = room.ask(request)
    await settle()
    room.desk.reply(request.id, DECLINE)
    room.desk.reply(request.id, ACCEPT)
    assert await asking == DECLINE
    room.desk.reply(request.id, ACCEPT)
    assert room.events == [RequestRaised(request), RequestSettled(request.id)]


async def test_without_a_user_everything_is_declined() -> None:
    desk: Desk = DecliningDesk()
    ids = {desk.new_id() for _ in range(3)}
    assert len(ids) == 3
    reply = await desk.ask(FormRequest(desk.new_id(), ServerId("a"), "?", ()))
    assert reply == DECLINE
    desk.reply(RequestId("r1"), ACCEPT)
