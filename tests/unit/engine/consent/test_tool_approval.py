"""The broker: who is asked, what an answer covers, how every question ends."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.engine.chat.support import make_inquiry, make_tool
from tests.unit.engine.servers.support import eventually
from tui.engine.consent.broker import MAX_PENDING, ConsentBroker
from tui.engine.consent.protocol import Answer, ConsentWithdrawnError, TurnRecord
from tui.engine.consent.rules.book import VERSION, GrantBook
from tui.engine.consent.rules.patterns import Pattern
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.state_file import StateFile
from tui.engine.tools import JsonObject, OfferedTool
from tui.model.catalog import Catalog, ToolId
from tui.model.chat import EntryId, ToolCallStatus
from tui.model.consent import Choice, Decision, GrantScope, RequestId
from tui.model.events import CatalogChanged, Event, RequestRaised, RequestSettled, ToolCallChanged
from tui.model.requests import ConfirmationRequest
from tui.model.servers import Origin, ServerId, Transport

CALL = EntryId("e1")


class Asked:
    """A broker, its events, and the questions that are open."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.broker = ConsentBroker(self.events.append)

    async def ask(
        self,
        tool: OfferedTool,
        *others: OfferedTool,
        arguments: JsonObject | None = None,
        turn: TurnRecord | None = None,
    ) -> tuple["asyncio.Task[Answer]", RequestId | None]:
        """Ask in a task; give it and the question, or None where nobody is asked."""
        before = len(self.requests)
        inquiry = make_inquiry(tool, *others, arguments=arguments, turn=turn)
        task = asyncio.create_task(self.broker.confirm(inquiry))
        await asyncio.sleep(0)
        new = self.requests[before:]
        return task, new[0].request.id if new else None

    @property
    def questions(self) -> list[ConfirmationRequest]:
        found = (event.request for event in self.requests)
        return [request for request in found if isinstance(request, ConfirmationRequest)]

    @property
    def requests(self) -> list[RequestRaised]:
        return [event for event in self.events if isinstance(event, RequestRaised)]

    @property
    def settled(self) -> list[RequestId]:
        return [event.request for event in self.events if isinstance(event, RequestSettled)]

    async def answer(self, tool: OfferedTool, choice: Choice, *others: OfferedTool) -> Answer:
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
    assert (await asked.answer(make_tool("go"), Choice.ONCE)).allows
    request = asked.requests[0].request
    assert isinstance(request, ConfirmationRequest)
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
    assert (await first).source == "you: always this tool, this session"
    assert "always this tool" in (await second).source
    assert not third.done()
    asked.broker.decide(other, Decision(Choice.DENY, "no"))
    assert await third == Answer(allows=False, source="you: deny", note="no")
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


async def test_questions_of_a_server_that_went_away_are_withdrawn() -> None:
    asked = Asked()
    gone, _ = await asked.ask(make_tool("go"))
    stays, _ = await asked.ask(make_tool("go", server="other"))
    asked.broker.withdraw_server(ServerId("notes"))
    with pytest.raises(ConsentWithdrawnError, match="went away"):
        await gone
    assert not stays.done()
    stays.cancel()
    await asyncio.wait({stays})
    assert len(asked.settled) == 2


async def test_answers_to_nothing_are_ignored() -> None:
    asked = Asked()
    asked.broker.decide(RequestId("q999"), Decision(Choice.ALWAYS_SERVER))
    assert asked.events == []


async def test_more_questions_than_anyone_answers_are_not_asked() -> None:
    asked = Asked()
    open_tasks = [(await asked.ask(make_tool("go")))[0] for _ in range(MAX_PENDING)]
    task, request = await asked.ask(make_tool("go"))
    assert request is None
    with pytest.raises(ConsentWithdrawnError, match="Too many"):
        await task
    for open_task in open_tasks:
        open_task.cancel()
    await asyncio.wait(open_tasks)


@pytest.mark.parametrize("choice", list(Choice))
async def test_every_choice_settles_its_question(choice: Choice) -> None:
    asked = Asked()
    await asked.answer(make_tool("go"), choice)
    assert len(asked.settled) == 1


async def test_the_rest_of_a_turn_is_allowed_for_that_turn_only() -> None:
    asked = Asked()
    turn = TurnRecord()
    first, request = await asked.ask(make_tool("go"), turn=turn)
    waits, _ = await asked.ask(make_tool("other"), turn=turn)
    foreign, _ = await asked.ask(make_tool("other"), turn=TurnRecord())
    assert request is not None
    asked.broker.decide(request, Decision(Choice.REST_OF_TURN))
    assert (await first).allows
    assert (await waits).allows
    assert not foreign.done()
    later, question = await asked.ask(make_tool("third"), turn=turn)
    assert question is None
    assert (await later).source == "you: all further calls of this turn"
    assert not await asked.passes(make_tool("go"))
    foreign.cancel()
    await asyncio.wait({foreign})


async def test_the_rest_of_a_turn_is_denied_also_what_is_granted() -> None:
    asked = Asked()
    turn = TurnRecord()
    await asked.answer(make_tool("granted"), Choice.ALWAYS_TOOL)
    first, request = await asked.ask(make_tool("go"), turn=turn)
    waits, _ = await asked.ask(make_tool("other"), turn=turn)
    assert request is not None
    asked.broker.decide(request, Decision(Choice.DENY_REST_OF_TURN, "Enough."))
    assert (await first).note.startswith("Enough. The user denied all further calls")
    assert not (await waits).allows
    granted, _ = await asked.ask(make_tool("granted"), turn=turn)
    assert not (await granted).allows
    assert await asked.passes(make_tool("granted"))


async def test_a_rule_that_denies_wins_over_the_rest_of_the_turn() -> None:
    asked = Asked()
    asked.broker.policy.configure((), [Pattern("*", "evil")], ())
    turn = TurnRecord(rest=Choice.REST_OF_TURN)
    denied, question = await asked.ask(make_tool("evil"), turn=turn)
    assert question is None
    assert not (await denied).allows


async def test_a_rule_that_came_up_while_the_user_decided_wins() -> None:
    asked = Asked()
    task, request = await asked.ask(make_tool("go"))
    assert request is not None
    asked.broker.policy.configure((), [Pattern("notes", "go")], ())
    asked.broker.decide(request, Decision(Choice.ONCE))
    assert not (await task).allows


async def test_edited_arguments_come_back_as_they_will_be_sent() -> None:
    asked = Asked()
    task, request = await asked.ask(make_tool("go"), arguments={"text": "a"})
    assert request is not None
    asked.broker.decide(request, Decision(Choice.ALWAYS_TOOL, arguments='{"text": "b"}'))
    answer = await task
    assert answer.edit is not None
    assert answer.edit.arguments == {"text": "b"}
    assert await asked.passes(make_tool("go"))


async def test_arguments_that_were_edited_back_count_as_unchanged() -> None:
    asked = Asked()
    task, request = await asked.ask(make_tool("go"), arguments={"text": "a"})
    assert request is not None
    asked.broker.decide(request, Decision(Choice.ONCE, arguments='{"text":\n"a"}'))
    assert (await task).edit is None


async def test_an_edit_that_cannot_be_used_asks_again_and_grants_nothing() -> None:
    asked = Asked()
    task, request = await asked.ask(make_tool("go"), arguments={"text": "a"})
    assert request is not None
    asked.broker.decide(request, Decision(Choice.ALWAYS_TOOL, arguments='{"a": 1, "a": 2}'))
    await eventually(lambda: len(asked.questions) == 2)
    first, again = asked.questions
    assert (first.id, first.arguments) == (again.id, again.arguments)
    assert "stands twice" in again.problem
    assert asked.settled == []
    assert not await asked.passes(make_tool("go"))
    asked.broker.decide(request, Decision(Choice.DENY))
    assert not (await task).allows


async def test_a_form_is_filled_in_with_the_arguments() -> None:
    asked = Asked()
    task, _ = await asked.ask(make_tool("go"), arguments={"text": "a"})
    [field] = asked.questions[0].fields
    assert (field.key, field.default) == ("text", "a")
    task.cancel()
    await asyncio.wait({task})


async def test_a_server_without_a_fingerprint_gets_no_lasting_answer() -> None:
    asked = Asked()
    tool = make_tool("go", fingerprint="")
    assert (await asked.answer(tool, Choice.ALWAYS_TOOL)).allows
    assert not asked.questions[0].may_last
    assert not await asked.passes(tool)


def listed(*tools: OfferedTool) -> CatalogChanged:
    return CatalogChanged(ServerId("notes"), Catalog(tuple(tool.view for tool in tools)))


async def test_a_tool_that_changes_takes_its_question_along() -> None:
    asked = Asked()
    go, stay = make_tool("go"), make_tool("stay")
    changing, first = await asked.ask(go)
    staying, second = await asked.ask(stay)
    changed = replace(go.view, problem="it has changed", changed=True)
    asked.broker.heed(listed(replace(go, view=changed), stay))
    with pytest.raises(ConsentWithdrawnError, match="The tool changed or went"):
        await changing
    assert asked.settled == [first]
    assert second is not None
    asked.broker.decide(second, Decision(Choice.ONCE))
    assert (await staying).allows


async def test_a_tool_that_goes_takes_its_question_along() -> None:
    asked = Asked()
    task, _ = await asked.ask(make_tool("go"))
    asked.broker.heed(CatalogChanged(ServerId("other"), Catalog()))
    assert not task.done()
    asked.broker.heed(listed())
    with pytest.raises(ConsentWithdrawnError):
        await task


async def test_another_name_towards_the_model_leaves_the_question() -> None:
    asked = Asked()
    go = make_tool("go")
    task, request = await asked.ask(go)
    asked.broker.heed(listed(replace(go, view=replace(go.view, id=ToolId("notes__go")))))
    assert asked.settled == []
    assert request is not None
    asked.broker.decide(request, Decision(Choice.ONCE))
    assert (await task).allows


async def ended(*tasks: "asyncio.Task[Answer]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def defined(name: str, origin: Origin) -> ServerDefinition:
    return ServerDefinition(ServerId(name), origin, Transport.STDIO, command=name)


async def test_a_server_whose_name_looks_like_another_one_is_remarked() -> None:
    asked = Asked()
    fake = "min\u0435"
    known = (defined("mine", Origin.USER), defined(fake, Origin.PROJECT))
    asked.broker.policy.configure((), (), known)
    tasks = [(await asked.ask(make_tool("go", server)))[0] for server in (fake, "mine")]
    first, second = asked.questions
    await ended(*tasks)
    assert first.origin == "this folder"
    assert first.notes == ("Its server's name looks like that of another server: mine.",)
    assert second.origin == "your settings"
    assert second.notes == (f"Its server's name looks like that of another server: {fake}.",)


async def test_a_question_says_where_nothing_can_be_saved(tmp_path: Path) -> None:
    problems: list[str] = []
    file = StateFile(
        tmp_path / "missing" / "grants.json", version=VERSION, on_problem=problems.append
    )
    asked = Asked()
    asked.broker.policy.attach(GrantBook(file), "/work", asked.events.append)
    first_call, _ = await asked.ask(make_tool("go"))
    await eventually(lambda: len(asked.questions) == 1)
    asked.broker.policy.allow((make_tool("stay"),), GrantScope.EVERYWHERE, "always this tool")
    await asked.broker.policy.aclose()
    second_call, _ = await asked.ask(make_tool("go"))
    await eventually(lambda: len(asked.questions) == 2)
    first, second = asked.questions
    await ended(first_call, second_call)
    assert first.notes == ()
    assert second.notes == (
        "Rules cannot be saved now: what you allow for good ends with this run.",
    )
    assert len(problems) == 1
