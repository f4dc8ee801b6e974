"""The broker: who is asked, what an answer covers, how every question ends."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.engine.chat.support import make_tool
from tui.engine.consent.broker import MAX_PENDING, ConsentBroker
from tui.engine.consent.grants import Grant
from tui.engine.tools import OfferedTool
from tui.model.chat import EntryId, ToolCallStatus
from tui.model.consent import Choice, Decision, RequestId
from tui.model.events import Event, RequestRaised, RequestSettled, ToolCallChanged
from tui.model.servers import ServerId

CALL = EntryId("e1")


class Asked:
    """A broker, its events, and the questions that are open."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.broker = ConsentBroker(self.events.append)

    async def ask(
        self, tool: OfferedTool, *others: OfferedTool
    ) -> tuple["asyncio.Task[Decision]", RequestId | None]:
        """Ask in a task; give it and the question, or None where nobody is asked."""
        before = len(self.requests)
        offered = (tool, *others)
        task = asyncio.create_task(self.broker.confirm(CALL, tool, "{}", offered))
        await asyncio.sleep(0)
        new = self.requests[before:]
        return task, new[0].request.id if new else None

    @property
    def requests(self) -> list[RequestRaised]:
        return [event for event in self.events if isinstance(event, RequestRaised)]

    @property
    def settled(self) -> list[RequestId]:
        return [event.request for event in self.events if isinstance(event, RequestSettled)]

    async def answer(self, tool: OfferedTool, choice: Choice, *others: OfferedTool) -> Decision:
        task, request = await self.ask(tool, *others)
        assert request is not None
        self.broker.decide(request, Decision(choice))
        return await task

    async def passes(self, tool: OfferedTool) -> bool:
        """Tell whether a call passes unasked; a question is withdrawn again."""
        task, request = await self.ask(tool)
        task.cancel()
        await asyncio.wait({task})
        return request is None


async def test_a_question_shows_server_tool_arguments_and_ends_with_its_answer() -> None:
    asked = Asked()
    assert (await asked.answer(make_tool("go"), Choice.ONCE)).choice is Choice.ONCE
    request = asked.requests[0].request
    assert (request.server, request.tool, request.arguments) == ("notes", "go", "{}")
    assert request.description == "Does go."
    assert asked.settled == [request.id]
    assert asked.events[0] == ToolCallChanged(CALL, ToolCallStatus.ASKING)


async def test_once_is_for_one_call_only() -> None:
    asked = Asked()
    await asked.answer(make_tool("go"), Choice.ONCE)
    assert not await asked.passes(make_tool("go"))


async def test_a_trusted_server_is_not_asked_about() -> None:
    assert await Asked().passes(make_tool("go", trusted=True))


async def test_always_this_tool_is_bound_to_server_name_and_definition() -> None:
    asked = Asked()
    await asked.answer(make_tool("go"), Choice.ALWAYS_TOOL)
    assert await asked.passes(make_tool("go"))
    assert not await asked.passes(make_tool("go", definition_hash="another"))
    assert not await asked.passes(make_tool("go", server="other"))
    assert not await asked.passes(make_tool("other"))


async def test_always_this_server_covers_what_was_offered_and_nothing_new() -> None:
    asked = Asked()
    foreign = make_tool("far", server="other")
    await asked.answer(make_tool("go"), Choice.ALWAYS_SERVER, make_tool("stay"), foreign)
    assert await asked.passes(make_tool("go"))
    assert await asked.passes(make_tool("stay"))
    assert not await asked.passes(make_tool("new"))
    assert not await asked.passes(make_tool("stay", definition_hash="another"))
    assert not await asked.passes(foreign)


async def test_a_grant_settles_the_other_questions_it_covers() -> None:
    asked = Asked()
    first, request = await asked.ask(make_tool("go"))
    second, _ = await asked.ask(make_tool("go"))
    third, other = await asked.ask(make_tool("other"))
    assert request is not None
    assert other is not None
    asked.broker.decide(request, Decision(Choice.ALWAYS_TOOL))
    assert (await first).choice is Choice.ALWAYS_TOOL
    assert (await second).choice is Choice.ONCE
    assert not third.done()
    asked.broker.decide(other, Decision(Choice.DENY, "no"))
    assert await third == Decision(Choice.DENY, "no")
    assert len(asked.settled) == 3


async def test_a_cancelled_question_is_withdrawn_and_its_answer_grants_nothing() -> None:
    asked = Asked()
    task, request = await asked.ask(make_tool("go"))
    assert request is not None
    task.cancel()
    await asyncio.wait({task})
    assert asked.settled == [request]
    asked.broker.decide(request, Decision(Choice.ALWAYS_SERVER))
    assert asked.settled == [request]
    assert not await asked.passes(make_tool("go"))


async def test_questions_of_a_server_that_went_away_are_denied() -> None:
    asked = Asked()
    gone, _ = await asked.ask(make_tool("go"))
    stays, _ = await asked.ask(make_tool("go", server="other"))
    asked.broker.withdraw_server(ServerId("notes"))
    assert (await gone).choice is Choice.DENY
    assert not stays.done()
    stays.cancel()
    await asyncio.wait({stays})
    assert len(asked.settled) == 2


async def test_answers_to_nothing_are_ignored() -> None:
    asked = Asked()
    asked.broker.decide(RequestId("q999"), Decision(Choice.ALWAYS_SERVER))
    assert asked.events == []


async def test_more_questions_than_anyone_answers_are_denied() -> None:
    asked = Asked()
    open_tasks = [(await asked.ask(make_tool("go")))[0] for _ in range(MAX_PENDING)]
    task, request = await asked.ask(make_tool("go"))
    assert request is None
    assert (await task).choice is Choice.DENY
    for open_task in open_tasks:
        open_task.cancel()
    await asyncio.wait(open_tasks)


WORDS = st.text(st.sampled_from("ab._*"), min_size=1, max_size=4)


@given(WORDS, WORDS, WORDS, WORDS)
def test_two_different_tools_never_share_a_grant(
    server: str, tool: str, other_server: str, other_tool: str
) -> None:
    grant = Grant.of(make_tool(tool, server, definition_hash="same"))
    other = Grant.of(make_tool(other_tool, other_server, definition_hash="same"))
    assert (grant == other) == ((server, tool) == (other_server, other_tool))


@pytest.mark.parametrize("choice", list(Choice))
async def test_every_choice_settles_its_question(choice: Choice) -> None:
    asked = Asked()
    await asked.answer(make_tool("go"), choice)
    assert len(asked.settled) == 1
