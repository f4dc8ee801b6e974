"""Which tools the model holds, and which a search finds."""

from dataclasses import replace

import pytest

from tests.unit.engine.chats.support import make_tool
from tui.engine.mcp.catalog.offer import Tool
from tui.engine.mcp.catalog.offered_tool import OfferedTool
from tui.engine.mcp.catalog.registry import MAX_FOUND, Budget, Holding, search
from tui.model.catalog import ToolId, ToolView
from tui.model.servers import ServerId

RAW = ServerId("raw")


def sized(number: int, size: int) -> list[Tool]:
    """Make tools whose declarations have a size."""
    return [
        Tool(f"t{n:03}", ToolView(ToolId(f"t{n}"), f"t{n}"), "", {}, {}, "", size=size)
        for n in range(number)
    ]


def test_what_the_model_holds_is_bounded_by_its_context() -> None:
    budget = Budget(max_tools=10_000, share=1, context=100_000)
    assert budget.max_bytes == 4_000
    holding = Holding(lambda: budget)
    tools = {RAW: sized(30, 400)}
    beyond = holding.beyond(tools)
    assert len(beyond) == 25
    holding.load(sorted(beyond))
    assert len(holding.beyond(tools)) == 20
    assert (RAW, "t029") not in holding.beyond(tools)
    budget.share = 50
    assert holding.beyond(tools) == frozenset()


def test_servers_share_what_there_is_and_the_newest_of_what_was_loaded_stays() -> None:
    holding = Holding(lambda: Budget(max_tools=10))
    tools = {RAW: sized(20, 1), ServerId("few"): sized(1, 1)}
    beyond = holding.beyond(tools)
    assert len(beyond) == 21 - 5
    assert (ServerId("few"), "t000") not in beyond
    holding.load((RAW, f"t{n:03}") for n in range(10, 16))
    assert beyond - holding.beyond(tools) == {(RAW, f"t{n:03}") for n in range(11, 16)}
    holding.load([(RAW, "t010")])
    assert (RAW, "t010") not in holding.beyond(tools)
    assert (RAW, "t011") in holding.beyond(tools)


def described(name: str, words: str, server: str = "notes") -> OfferedTool:
    tool = make_tool(name, server)
    return replace(tool, view=replace(tool.view, description=words))


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create issue", "createIssue"),
        ("open a new ticket", "createIssue"),
        ("list_branches", "list_branches"),
        ("branches of git", "list_branches"),
        ("weather", ""),
    ],
)
def test_a_search_finds_tools_by_the_words_of_names_and_descriptions(
    query: str, first: str
) -> None:
    tools = [
        described("list_branches", "Show all branches.", "git"),
        described("createIssue", "Open a ticket."),
        *(described(f"other_{n}", "Show something of a list.") for n in range(50)),
    ]
    found = search(query, tools)
    assert (found[0].id if found else "") == first
    assert len(search("list", tools)) == MAX_FOUND
