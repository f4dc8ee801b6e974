"""Questions on calls while tools, rules and servers change around them."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.engine.approval.asked import Asked, ended, settle
from tests.unit.engine.chats.support import make_inquiry, make_policy, make_tool
from tests.unit.engine.mcp.support import eventually
from tui.engine.approval.grants import GrantBook
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.desk import WithdrawnError
from tui.engine.files.state_file import StateFile
from tui.engine.mcp.catalog.offered_tool import OfferedTool, Permit
from tui.model.catalog import Catalog, ToolId
from tui.model.consent import Choice, Decision, GrantScope
from tui.model.events import (
    CatalogChanged,
)
from tui.model.servers import Origin, ServerId, Transport


def listed(*tools: OfferedTool) -> CatalogChanged:
    return CatalogChanged(ServerId("notes"), Catalog(tuple(tool.view for tool in tools)))


async def test_a_tool_that_changes_takes_its_question_along() -> None:
    asked = Asked()
    go, stay = make_tool("go"), make_tool("stay")
    changing, first = await asked.ask(go)
    staying, second = await asked.ask(stay)
    changed = replace(go.view, problem="it has changed", changed=True)
    asked.gate.heed(listed(replace(go, view=changed), stay))
    with pytest.raises(match="The tool changed or was removed"):
        await changing
    assert asked.settled == [first]
    asked.desk.answer(second, Decision(Choice.ONCE))
    assert isinstance(await staying, Permit)


async def test_a_tool_that_goes_takes_its_question_along() -> None:
    asked = Asked()
    task, _ = await asked.ask(make_tool("go"))
    asked.gate.heed(CatalogChanged(ServerId("other"), Catalog()))
    await settle()
    assert not task.done()
    assert asked.settled == []
    asked.gate.heed(listed())
    with pytest.raises(WithdrawnError):
        await task


async def test_another_name_towards_the_model_leaves_the_question() -> None:
    asked = Asked()
    go = make_tool("go")
    task, request = await asked.ask(go)
    asked.gate.heed(listed(replace(go, view=replace(go.view, id=ToolId("notes__go")))))
    assert asked.settled == []
    asked.desk.answer(request, Decision(Choice.ONCE))
    assert isinstance(await task, Permit)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


async def test_what_another_gemdeck_revoked_counts_before_the_next_call(private: Path) -> None:
    files = [StateFile(private / "grants.json", on_problem=pytest.fail) for _ in "12"]
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


def defined(name: str, origin: Origin) -> ServerDefinition:
    return ServerDefinition(ServerId(name), origin, Transport.STDIO, command=name)


async def test_a_question_says_where_its_server_comes_from() -> None:
    asked = Asked()
    fake = "min\u0435"
    known = (defined("mine", Origin.USER), defined(fake, Origin.PROJECT))
    asked.policy.configure((), (), known)
    tasks = [(await asked.ask(make_tool("go", server)))[0] for server in (fake, "mine")]
    first, second = asked.questions
    await ended(*tasks)
    assert first.origin == "this folder"
    assert second.origin == "your settings"
    assert (first.server, second.server) == (fake, "mine")


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
    first, second = asked.questions
    await ended(first_call, second_call)
    assert first.notes == ()
    assert second.notes == (
        "Rules cannot be saved now: what you always allow lasts until you quit.",
    )
    assert len(problems) == 1
