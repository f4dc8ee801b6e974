"""The gate: who is asked, what an answer covers, how every question ends, whatever changes."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.definitions import define_server
from tests.unit.engine.chats.support import make_inquiry, make_policy, make_tool, rule
from tests.unit.engine.mcp.support import eventually
from tui.engine.approval.gate import Gate
from tui.engine.approval.grants import GrantBook
from tui.engine.approval.inquiry import Denial, Edit, TurnRecord
from tui.engine.approval.policy import Verdict
from tui.engine.chats.own_tools import KeptResults
from tui.engine.desk import Desk, WithdrawnError
from tui.engine.files.state_file import StateFile
from tui.engine.mcp.catalog.offered_tool import (
    JsonObject,
    OfferedTool,
    TextPart,
    ToolCallError,
    ToolResult,
)
from tui.engine.mcp.catalog.permit import Permit
from tui.engine.settings.prohibitions import Permission, Restriction
from tui.model import events as e
from tui.model.catalog import Catalog, ToolId
from tui.model.chat import EntryId, ToolCallStatus
from tui.model.consent import Choice, Decision, GrantScope, RequestId
from tui.model.requests import ConfirmationRequest
from tui.model.servers import Origin, ServerId, ServerStatus, Transport

CALL = EntryId("e1")


class Asked:
    """A gate, its events, and the questions that are open."""

    def __init__(self, book: GrantBook | None = None, *, attended: bool = True) -> None:
        self.events: list[e.Event] = []
        self.policy = make_policy(book)
        self.desk = Desk(self.events.append, attended=attended)
        self.gate = Gate(self.desk, self.events.append, self.policy)

    async def ask(
        self,
        tool: OfferedTool,
        *others: OfferedTool,
        arguments: JsonObject | None = None,
        turn: TurnRecord | None = None,
    ) -> tuple["asyncio.Task[Permit | Denial]", RequestId]:
        """Ask in a task; give it and the question, which is empty where nobody is asked."""
        before = len(self.requests)
        inquiry = make_inquiry(tool, *others, arguments=arguments, turn=turn)
        task = asyncio.create_task(self.gate.decide(inquiry))
        await asyncio.sleep(0)
        new = self.requests[before:]
        return task, new[0].request.id if new else RequestId("")

    @property
    def questions(self) -> list[ConfirmationRequest]:
        found = (event.request for event in self.requests)
        return [request for request in found if isinstance(request, ConfirmationRequest)]

    @property
    def requests(self) -> list[e.RequestRaised]:
        return [event for event in self.events if isinstance(event, e.RequestRaised)]

    @property
    def settled(self) -> list[RequestId]:
        return [event.request for event in self.events if isinstance(event, e.RequestSettled)]

    async def answer(
        self, tool: OfferedTool, choice: Choice, *others: OfferedTool
    ) -> Permit | Denial:
        task, request = await self.ask(tool, *others)
        self.desk.answer(request, Decision(choice))
        return await task

    async def passes(self, tool: OfferedTool) -> bool:
        """Tell whether a call passes unasked; a question is withdrawn again."""
        task, request = await self.ask(tool)
        task.cancel()
        await asyncio.wait({task})
        return not request


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


async def ended(*tasks: "asyncio.Task[Permit | Denial]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_a_question_shows_a_call_and_ends_with_its_answer_which_may_be_for_once() -> None:
    asked = Asked()
    assert isinstance(await asked.answer(make_tool("go"), Choice.ONCE), Permit)
    [request] = asked.questions
    shown = (request.server, request.tool, request.arguments, request.description)
    assert shown == ("notes", "go", "{}", "Does go.")
    assert asked.settled == [request.id]
    assert asked.events[0] == e.ToolCallChanged(CALL, ToolCallStatus.ASKING)
    assert not await asked.passes(make_tool("go"))
    for choice in Choice:
        before = len(asked.settled)
        await asked.answer(make_tool(f"go {choice}"), choice)
        assert len(asked.settled) == before + 1, choice
    known = len(asked.events)
    asked.desk.answer(RequestId("q999"), Decision(Choice.ALWAYS_SERVER))
    assert len(asked.events) == known, "an answer to nothing"


async def test_always_this_server_covers_what_was_offered_with_it_and_nothing_new() -> None:
    asked, foreign = Asked(), make_tool("far", server="other")
    await asked.answer(make_tool("go"), Choice.ALWAYS_SERVER, make_tool("stay"), foreign)
    used = {view.tool for view in asked.policy.views() if view.used_at is not None}
    assert used == {"go"}, "the call that was asked about runs"
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
    asked.desk.answer(request, Decision(Choice.ALWAYS_TOOL))
    assert (await first).source == "you: always this tool, this session"
    assert "always this tool" in (await second).source
    assert not third.done()
    asked.desk.answer(other, Decision(Choice.DENY, "no"))
    assert (await third, len(asked.settled)) == (Denial("you: deny", "no", is_reason=True), 3)
    task, request = await asked.ask(make_tool("stay"))
    asked.desk.answer(request, Decision(Choice.DENY, "x" * 4_001))
    cut = (await task).note  # type: ignore[union-attr]  # a denial
    assert (len(cut), cut[-16:]) == (4_000, "…[+1 characters]"), "so much reaches the model"


async def test_a_cancelled_question_is_withdrawn_and_its_answer_grants_nothing() -> None:
    asked = Asked()
    task, request = await asked.ask(make_tool("go"))
    await ended(task)
    assert asked.settled == [request]
    asked.desk.answer(request, Decision(Choice.ALWAYS_SERVER))
    assert asked.settled == [request]
    assert not await asked.passes(make_tool("go"))


async def test_questions_of_a_server_that_went_away_are_withdrawn() -> None:
    asked, turn = Asked(), TurnRecord()
    gone, _ = await asked.ask(make_tool("go"), turn=turn)
    stays, _ = await asked.ask(make_tool("go", server="other"))
    asked.gate.heed(e.ServerStatusChanged(ServerId("notes"), ServerStatus.RETRYING))
    with pytest.raises(match="disconnected"):
        await gone
    assert not stays.done()
    assert len(asked.settled) == 1
    again, question = await asked.ask(make_tool("go"), turn=turn)
    assert question, "that was no denial"
    await ended(stays, again)


async def test_the_rest_of_a_turn_is_denied_also_what_is_granted() -> None:
    asked = Asked()
    turn = TurnRecord()
    await asked.answer(make_tool("granted"), Choice.ALWAYS_TOOL)
    first, request = await asked.ask(make_tool("go"), turn=turn)
    waits, _ = await asked.ask(make_tool("other"), turn=turn)
    asked.desk.answer(request, Decision(Choice.DENY_REST_OF_TURN, "Enough."))
    denial = await first
    assert isinstance(denial, Denial)
    assert denial.note.startswith("Enough. The user denied all further calls")
    assert isinstance(await waits, Denial)
    granted, _ = await asked.ask(make_tool("granted"), turn=turn)
    assert isinstance(await granted, Denial)
    assert await asked.passes(make_tool("granted"))


async def test_edited_arguments_come_back_as_they_will_be_sent() -> None:
    asked = Asked()
    arguments: JsonObject = {"text": "a"}
    for edit, sent in (('{"text":\n"a"}', arguments), ('{"text": "b"}', {"text": "b"})):
        task, request = await asked.ask(make_tool("go"), arguments=arguments)
        asked.desk.answer(request, Decision(Choice.ALWAYS_TOOL, arguments=edit))
        permit = await task
        assert isinstance(permit, Permit)
        assert permit.arguments == sent
        assert (permit.arguments is arguments) is (sent is arguments), "edited back is unchanged"
        assert await asked.passes(make_tool("go"))
        asked = Asked()


async def test_a_denial_that_comes_while_an_edit_is_read_counts_without_the_edit() -> None:
    asked = Asked()
    reading, read = asyncio.Event(), asyncio.Event()

    async def read_slowly(_text: str) -> Edit:
        reading.set()
        await read.wait()
        return Edit({"text": "b"}, "b")

    inquiry = replace(make_inquiry(make_tool("go")), read_edit=read_slowly)
    task = asyncio.create_task(asked.gate.decide(inquiry))
    await settle()
    request = asked.questions[0].id
    asked.desk.answer(request, Decision(Choice.ALWAYS_TOOL, arguments='{"text": "b"}'))
    await reading.wait()
    asked.desk.answer(request, Decision(Choice.DENY))
    read.set()
    assert await task == Denial(source="you: deny")
    assert not await asked.passes(make_tool("go"))


async def test_an_edit_that_cannot_be_used_asks_again_and_grants_nothing() -> None:
    asked = Asked()
    task, request = await asked.ask(make_tool("go"), arguments={"text": "a"})
    for number in (2, 3):
        asked.desk.answer(request, Decision(Choice.ALWAYS_TOOL, arguments='{"a": 1, "a": 2}'))
        await eventually(lambda: len(asked.questions) == number)  # noqa: B023 - awaited at once
        first, *_, again = asked.questions
        assert (first.id, first.arguments) == (again.id, again.arguments)
        assert "duplicate key" in again.problem
    assert [one.refusals for one in asked.questions] == [0, 1, 2]
    assert asked.settled == []
    assert not await asked.passes(make_tool("go"))
    asked.desk.answer(request, Decision(Choice.DENY))
    assert isinstance(await task, Denial)


async def test_a_server_without_a_fingerprint_gets_no_lasting_answer() -> None:
    asked = Asked()
    tool = make_tool("go", fingerprint="")
    assert isinstance(await asked.answer(tool, Choice.ALWAYS_TOOL), Permit)
    assert asked.questions[0].not_lasting == "nothing identifies this server later on"
    assert not await asked.passes(tool)


async def test_what_a_rule_asks_about_gets_no_lasting_answer_and_no_old_one_counts() -> None:
    for void, notes in ((tuple(Permission), 1), ((Permission.GRANTS,), 0)):
        asked, (tool, other) = Asked(), map(make_tool, ("go", "stay"))
        asked.policy.allow([tool], GrantScope.EVERYWHERE, "always this tool")
        assert await asked.passes(tool)
        asking = Restriction(tool="go", source="a file", voids=void)
        asked.policy.configure((), [asking], ())
        assert isinstance(await asked.answer(tool, Choice.ALWAYS_SERVER, other), Permit)
        why = "a file says so"
        assert asked.questions[-1].not_lasting == why
        assert asked.questions[-1].notes == (f"Asked each time: {why}.",) * notes
        assert not await asked.passes(tool)
        assert await asked.passes(other)
        rules = [(view.effect, view.tool) for view in asked.policy.views()]
        assert sorted(rules) == [("allow", "go"), ("allow", "stay"), ("ask", "go")]


async def test_where_nobody_is_asked_a_denial_names_the_rule_that_would_ask() -> None:
    asking = Restriction(tool="go", source="a file", voids=tuple(Permission))
    for rules, source in (((), "nobody to ask"), ((asking,), "nobody to ask: a file says so")):
        asked = Asked(attended=False)
        asked.policy.configure((), rules, ())
        denial = await asked.gate.decide(make_inquiry(make_tool("go")))
        assert isinstance(denial, Denial)
        assert (asked.questions, denial.source, denial.is_reason) == ([], source, False)
        assert denial.note.startswith("This run has no user to ask")


async def test_a_permit_is_for_the_very_call_that_was_allowed_and_for_one() -> None:
    asked = Asked()
    tool, arguments = make_tool("go"), {"text": "a"}
    task, request = await asked.ask(tool, arguments=arguments)
    asked.desk.answer(request, Decision(Choice.ONCE))
    permit = await task
    assert isinstance(permit, Permit)
    assert (permit.tool is tool, permit.arguments is arguments) == (True, True)
    permit.use()
    with pytest.raises(ToolCallError, match="This call was approved only once"):
        permit.use()


async def test_a_call_is_judged_once_by_the_same_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    judged: list[str] = []
    judge = asked.policy.judge

    def count(tool: OfferedTool, arguments: JsonObject | None = None) -> Verdict:
        judged.append(tool.name)
        return judge(tool, arguments)

    monkeypatch.setattr(asked.policy, "judge", count)
    first, request = await asked.ask(make_tool("go"))
    waits, other = await asked.ask(make_tool("other"))
    asked.desk.answer(request, Decision(Choice.ONCE))
    assert isinstance(await first, Permit)
    assert judged == ["go", "other"]
    asked.policy.configure((), [rule("notes", "other")], ())
    asked.desk.answer(other, Decision(Choice.ONCE))
    assert isinstance(await waits, Denial)
    assert judged == ["go", "other", "other"]


async def test_a_rule_that_comes_while_files_are_looked_at_spares_the_question() -> None:
    asked = Asked()
    task, request = await asked.ask(make_tool("go"), arguments={"path": "src/a.py"})
    assert (request, task.done()) == ("", False)
    asked.policy.configure((), [rule("notes", "go")], ())
    await eventually(lambda: task.done() or asked.questions)
    assert asked.questions == []
    assert isinstance(await task, Denial)


async def test_a_call_that_the_user_composed_is_not_asked_about_unless_a_rule_denies_it() -> None:
    asked = Asked()
    composed = replace(make_inquiry(make_tool("go")), by_user=True)
    answer = await asked.gate.decide(composed)
    assert isinstance(answer, Permit)
    assert answer.source == "you: composed this call"
    assert not await asked.passes(make_tool("go"))
    asked.policy.configure((), [rule("notes", "go")], ())
    assert isinstance(await asked.gate.decide(composed), Denial)
    told = [event for event in asked.events if isinstance(event, e.ToolCallDecided)]
    assert [event.decision for event in told] == ["allow", "withdrawn", "deny"]


def listed(*tools: OfferedTool) -> e.CatalogChanged:
    return e.CatalogChanged(ServerId("notes"), Catalog(tuple(tool.view for tool in tools)))


async def test_a_tool_that_changes_or_goes_takes_its_question_along() -> None:
    asked = Asked()
    go, stay = make_tool("go"), make_tool("stay")
    changing, first = await asked.ask(go)
    staying, second = await asked.ask(stay)
    changed = replace(go.view, problem="it has changed", changed=True)
    asked.gate.heed(listed(replace(go, view=changed), stay))
    with pytest.raises(match="The tool changed or was removed"):
        await changing
    assert asked.settled == [first]
    asked.gate.heed(e.CatalogChanged(ServerId("other"), Catalog()))
    renamed = replace(stay, view=replace(stay.view, id=ToolId("notes__stay")))
    asked.gate.heed(listed(renamed))  # another name towards the model
    await settle()
    assert not staying.done()
    going, _ = await asked.ask(make_tool("gone"))
    asked.gate.heed(listed(stay))
    with pytest.raises(WithdrawnError):
        await going
    asked.desk.answer(second, Decision(Choice.ONCE))
    assert isinstance(await staying, Permit)


async def test_what_another_gemdeck_revoked_counts_before_the_next_call(tmp_path: Path) -> None:
    path = tmp_path / "private" / "grants.json"
    files = [StateFile(path, on_problem=pytest.fail) for _ in "12"]
    asked, other = Asked(GrantBook(files[0])), make_policy(GrantBook(files[1]))
    for policy in (asked.policy, other):
        await policy.open()
    asked.policy.allow((make_tool("go"),), GrantScope.EVERYWHERE, "always this tool")
    await asked.policy.aclose()
    assert isinstance(await asked.gate.decide(make_inquiry(make_tool("go"))), Permit)
    await other.refresh()
    other.revoke(other.views()[0].id)
    await other.aclose()
    task = asyncio.create_task(asked.gate.decide(make_inquiry(make_tool("go"))))
    await eventually(lambda: task.done() or asked.questions)
    assert asked.questions
    await ended(task)


async def test_a_question_says_where_its_server_comes_from() -> None:
    asked, fake = Asked(), "min\u0435"
    origins = {"mine": Origin.USER, fake: Origin.PROJECT}
    servers = [define_server(ServerId(n), o, Transport.STDIO) for n, o in origins.items()]
    asked.policy.configure((), (), servers)
    tasks = [(await asked.ask(make_tool("go", server)))[0] for server in (fake, "mine")]
    found = [(one.server, one.origin, one.notes) for one in asked.questions]
    await ended(*tasks)
    note = "This folder's settings define the server."
    assert found == [(fake, "this folder", (note,)), ("mine", "your settings", ())]


async def test_a_question_says_where_nothing_can_be_saved(tmp_path: Path) -> None:
    problems: list[str] = []
    (tmp_path / "no folder").touch()
    file = StateFile(tmp_path / "no folder" / "grants.json", on_problem=problems.append)
    asked = Asked(GrantBook(file))
    first_call, _ = await asked.ask(make_tool("go"))
    await eventually(lambda: len(asked.questions) == 1)
    asked.policy.allow((make_tool("stay"),), GrantScope.EVERYWHERE, "always this tool")
    await asked.policy.aclose()
    second_call, _ = await asked.ask(make_tool("go"))
    await eventually(lambda: len(asked.questions) == 2)
    await ended(first_call, second_call)
    note = "Rules cannot be saved now: what you always allow lasts until you quit."
    assert [one.notes for one in asked.questions] == [(), (note,)]
    assert len(problems) == 1


async def test_what_denies_a_tool_denies_reading_on_in_its_results() -> None:
    asked, kept, look = Asked(), KeptResults(limit=10), make_tool("look")
    cut = kept.cut(look, ToolResult((TextPart("x" * 50_000),), ""))
    [key] = re.findall('id="(.+)"', str(cut.parts))
    bind = kept.tool().bind
    assert bind is not None
    read = bind({"id": key})
    assert await asked.passes(read)
    asked.policy.configure((), [rule("notes", "look")], ())
    task, request = await asked.ask(read)
    assert request == ""
    assert isinstance(outcome := await task, Denial)
    assert "alwaysDeny" in outcome.source
