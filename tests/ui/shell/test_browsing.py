"""Tools, prompts and resources: filter, details, and what Enter does."""

from dataclasses import replace
from time import perf_counter

from textual.widgets import TextArea

from tests.ui.harness import NARROW, Running, running
from tests.ui.shell import decks
from tui.model.catalog import (
    Catalog,
    PromptView,
    ResourceTemplateView,
    ResourceView,
    ToolId,
    ToolView,
)
from tui.model.events import CatalogChanged, InstructionsSent
from tui.model.servers import Origin, ServerId, ServerInfo, ServerView, Transport
from tui.ui.dialogs.details import DetailsScreen, ServerDetailsScreen
from tui.ui.dialogs.prompt_arguments import ArgumentsScreen
from tui.ui.panes.browser import PromptsPane, ResourcesPane, ToolsPane, mention
from tui.ui.panes.chat import ChatPane
from tui.ui.widgets.lists.filter_list import FilterLine, ListEntry, matching
from tui.ui.widgets.lists.row_list import Row, RowList
from tui.ui.widgets.text.describe import (
    describe_prompt,
    describe_resource,
    describe_server,
    describe_tool,
)

MANY = 10_000


def many_tools(number: int = MANY) -> Catalog:
    return Catalog(
        tools=tuple(decks.tool(f"tool_{i}", f"Does the work of number {i}.") for i in range(number))
    )


async def test_a_scrollbar_hides_nothing_of_a_row() -> None:
    offered = tuple(
        ResourceTemplateView(f"t://{number}/{{id}}", f"Template {number}") for number in range(99)
    )
    store = decks.full_store()
    store.dispatch(CatalogChanged(decks.GIT, Catalog(templates=offered)))
    async with running(store) as deck:
        await deck.press("f5")
        rows = deck.one(ResourcesPane).query_one(RowList)
        assert rows.show_vertical_scrollbar
        shown = [line for line in deck.lines if "Template 1" in line]
        assert shown
        assert all(" template" in line for line in shown)


async def test_tools_of_all_servers_are_listed_with_the_details_of_one() -> None:
    async with running(decks.full_store(), (120, 76)) as deck:
        await deck.press("f3")
        for word in ("branch_list", "longRunningOperation", "13 tools", "not offered"):
            assert word in deck.text
        for word in ("List branches", "repo_path", "string", "required", "claims: read-only"):
            assert word in deck.text
        assert '"required"' not in deck.text
        await deck.press("v")
        assert '"required"' in deck.text
        await deck.press("v", "enter")
        assert deck.on_top(DetailsScreen)
        assert '"required"' in deck.text


async def test_typing_narrows_the_list_and_names_come_before_descriptions() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f3", "slash", *"ec")
        entries = deck.one(ToolsPane).entries
        assert [entry.item[1].name for entry in entries.shown] == ["echo", "commit"]
        assert "2 of 13 tools" in deck.text
        await deck.press("escape", "slash", *"git:", "down", "down")
        assert {entry.item[0] for entry in entries.shown} == {decks.GIT}
        assert entries.current is not None
        assert entries.current[1].name == "diff"
        assert isinstance(deck.focus, FilterLine)
        assert "Show changes between commits." in deck.text
        await deck.press("escape", "slash", *"zzz", "enter", "down")
        assert entries.current is None
        assert "0 of 13 tools" in deck.text
        assert "No tool has all these words." in deck.text


async def test_tools_that_the_model_loads_on_demand_are_marked() -> None:
    store = decks.full_store()
    tools = (ToolView(ToolId("near"), "near"), ToolView(ToolId("far"), "far"))
    catalog = Catalog(tools=tools, excess=frozenset({ToolId("far")}))
    store.dispatch(CatalogChanged(decks.GIT, catalog))
    store.dispatch(InstructionsSent(((decks.GIT, "Ask before you write."),)))
    async with running(store) as deck:
        await deck.press("f3")
        rows = {entry.row.label: entry.row.tail for entry in deck.one(ToolsPane).entries.shown}
        assert (rows["near"], rows["far"]) == ("", "on demand")
        await deck.press("f2", "home", "enter")
        assert deck.on_top(ServerDetailsScreen)
        assert "Instructions, sent to the model" in deck.text


async def test_ten_thousand_tools_filter_within_a_frame_or_two() -> None:
    store = decks.new_store()
    decks.configure(store, decks.server(decks.GIT))
    async with running(store, NARROW) as deck:
        decks.make_ready(store, decks.GIT, many_tools())
        await deck.settle()
        await deck.press("f3", "slash")
        entries = deck.one(ToolsPane).entries
        took = []
        for query in ("t", "to", "9", "99", "number 12", ""):
            began = perf_counter()
            entries.set_filter(query)
            took.append(perf_counter() - began)
        assert len(entries.shown) == MANY
        entries.set_filter("tool_9999")
        await deck.settle()
        assert "1 of 10,000 tools" in deck.text
        # The budget is 50 ms; the bound is wide because other work shares this machine.
        assert sorted(took)[len(took) // 2] < 0.25


async def test_the_whole_list_can_be_walked() -> None:
    store = decks.new_store()
    decks.configure(store, decks.server(decks.GIT))
    decks.make_ready(store, decks.GIT, many_tools(500))
    async with running(store, NARROW) as deck:
        await deck.press("f3", "end")
        assert "tool_499" in deck.text
        await deck.press("home", "pagedown", "up")
        rows = deck.one(ToolsPane).query_one(RowList)
        assert 0 < rows.cursor < 20


async def test_a_hidden_list_does_nothing_until_it_is_shown() -> None:
    async with running(decks.full_store(), NARROW) as deck:
        pane = deck.one(ToolsPane)
        before = pane.entries.shown
        await deck.happen(CatalogChanged(decks.GIT, Catalog()))
        assert pane.entries.shown is before
        await deck.press("f3")
        assert len(pane.entries.shown) == len(decks.EVERYTHING_TOOLS)


async def test_i_puts_a_prompt_or_a_resource_into_the_message() -> None:
    async with running(decks.full_store(), NARROW) as deck:
        composer = deck.one(ChatPane).query_one(TextArea)
        await deck.press("f4", "down")
        assert "temperature" in deck.text
        await deck.press("i")
        assert composer.text.strip() == "/complex_prompt"
        assert deck.focus is composer
        assert deck.one(ChatPane).display
        composer.clear()
        await deck.press("f5")
        assert "42 bytes" in deck.text
        await deck.press("i")
        assert composer.text.strip() == "@everything:test://static/resource/1"
        await deck.press("f4", "slash", *"simple", "enter")
        assert deck.on_top(ArgumentsScreen), "Enter in the filter chooses the first match"
        assert "/simple_prompt" in deck.text


def test_a_template_is_mentioned_up_to_what_is_to_fill_in() -> None:
    template = decks.EVERYTHING_TEMPLATES[0]
    assert mention(decks.EVERYTHING, template) == "@everything:test://static/resource/"


async def test_empty_panes_say_what_fills_them() -> None:
    async with running(decks.new_store()) as deck:
        await deck.press("f3")
        assert "The tools of your servers appear here" in deck.text
        await deck.press("f4")
        assert "The prompts of your servers" in deck.text
        await deck.press("f5")
        assert "The files and records of your" in deck.text
        assert deck.one(PromptsPane).entries.current is None


def test_every_word_of_a_query_must_be_there() -> None:
    entries = [
        ListEntry(1, Row("git", "log"), "git:log", "shows commits"),
        ListEntry(2, Row("git", "show"), "git:show", "one commit of the log"),
    ]
    assert [entry.item for entry in matching(entries, "LOG")] == [1, 2]
    assert [entry.item for entry in matching(entries, "git: commit")] == [1, 2]
    assert [entry.item for entry in matching(entries, "show one")] == [2]
    assert matching(entries, "nothing") == []
    assert matching(entries, "  ") is entries


async def test_a_word_on_the_right_is_whole_however_narrow_the_list_is() -> None:
    async with running(decks.full_store(), (140, 36)) as deck:
        assert any("not offered" in line and "broken_s" in line for line in deck.lines)
        await deck.press("f3", "slash", *"broken")
        assert any("not offered" in line and "everyt" in line for line in deck.lines)


def headings(deck: Running) -> list[str]:
    """Give the words of the headings in sight, with what follows on the right."""
    rows = [" ".join(line[72:].strip(" │").split()) for line in deck.lines]
    return [row for row in rows if row.startswith(("▾", "▸"))]


async def test_tools_stand_below_their_server_which_folds() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f3")
        entries = deck.one(ToolsPane).entries
        assert headings(deck) == ["▾ git 6", "▾ everything 7"]
        assert entries.current == (decks.GIT, decks.GIT_TOOLS[0])
        await deck.press("down", "left")
        assert headings(deck) == ["▸ git 6", "▾ everything 7"]
        assert "branch_list" not in deck.text
        assert "6 tools" in deck.text, "the details of a server"
        await deck.press("space")
        assert headings(deck) == ["▾ git 6", "▾ everything 7"]
        await deck.press("enter", "down", "enter")
        assert headings(deck) == ["▸ git 6", "▸ everything 7"]
        await deck.press("right", "up", "right", "down")
        assert entries.current == (decks.GIT, decks.GIT_TOOLS[0])
        await deck.press("slash", *"e ec", "left", "space", "backspace")
        assert headings(deck) == [], "a filter finds all, whatever is folded"


async def test_a_changed_catalog_keeps_the_cursor_on_its_tool_and_a_server_folded() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f3")
        rows = deck.one(ToolsPane).query_one(RowList)
        for shown in (["▸ git 6", "▾ everything 7"], ["▾ git 6", "▾ everything 7"]):
            await deck.click(rows, 4, 0)
            assert headings(deck) == shown
        await deck.press("down", "down", "down")
        entries = deck.one(ToolsPane).entries
        await deck.happen(CatalogChanged(decks.GIT, Catalog(tools=decks.GIT_TOOLS[1:])))
        assert entries.current == (decks.GIT, decks.GIT_TOOLS[2])
        await deck.press("left")
        await deck.happen(CatalogChanged(decks.GIT, Catalog(tools=decks.GIT_TOOLS[:2])))
        assert headings(deck) == ["▸ git 2", "▾ everything 7"]
        assert entries.group is not None


SERVER = ServerId("s")
REASON = "its name cannot be shown as it is"


def test_a_tool_names_what_is_left_out_of_it() -> None:
    tool = ToolView(ToolId("t"), "t", left_out=(f"parameter “x⟨U+200B⟩”: {REASON}",))
    shown = describe_tool(SERVER, tool, schema=False).plain
    assert f"left out: parameter “x⟨U+200B⟩”: {REASON}" in shown


def test_a_server_shows_its_instructions_as_they_were_sent() -> None:
    info = ServerInfo("s", "1", "2025-11-25", instructions="Ask first. And more.")
    view = ServerView(SERVER, Origin.USER, Transport.STDIO, "s", info=info)
    unsent = describe_server(view, 0).plain
    assert unsent.endswith("Instructions, not sent to the model\nAsk first. And more.")
    sent = describe_server(view, 0, "Ask first.\n… [10 more characters left out]").plain
    assert sent.endswith("sent to the model\nAsk first.\n… [10 more characters left out]")
    assert "not sent" not in sent


def test_a_server_that_starts_elsewhere_says_so() -> None:
    view = ServerView(SERVER, Origin.USER, Transport.STDIO, "s")
    assert "gemdeck's" not in describe_server(view, 0).plain
    shown = describe_server(replace(view, starts_outside=True), 0).plain
    assert "an empty folder of gemdeck's" in shown


def test_a_prompt_says_why_it_cannot_be_sent_and_what_is_left_out() -> None:
    prompt = PromptView("(prompt 1)", "greet", problem=REASON, left_out=("argument “y”: hidden",))
    shown = describe_prompt(SERVER, prompt).plain
    assert f"✕ cannot be sent: {REASON}" in shown
    assert "left out: argument “y”: hidden" in shown


def test_a_resource_and_a_template_say_why_they_cannot_be_read() -> None:
    for resource in (
        ResourceView("memo://a", "a", problem=REASON),
        ResourceTemplateView("memo://{x}", "a", problem=REASON),
    ):
        assert f"✕ cannot be read: {REASON}" in describe_resource(SERVER, resource).plain
