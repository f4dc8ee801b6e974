"""Tools, prompts and resources: found, looked at, filled in, read, sent and followed."""

import re
from dataclasses import replace
from time import thread_time

import pytest
from textual.widget import Widget
from textual.widgets import Input, OptionList, TextArea

from tests.support.pictures import picture
from tests.ui.harness import NARROW, WIDE, Running, running
from tests.ui.shell import decks
from tui.model import events as e
from tui.model.catalog import (
    Catalog,
    PromptView,
    ResourceContent,
    ResourceTemplateView,
    ResourceView,
    ToolId,
    ToolView,
)
from tui.model.models import ContextPart
from tui.model.runs import PromptRendered, RenderedMessage
from tui.model.servers import (
    Origin,
    RefusedAccess,
    ServerId,
    ServerInfo,
    ServerStatus,
    ServerUsage,
    ServerView,
    Transport,
)
from tui.ui.dialogs import fetched
from tui.ui.dialogs.fetched import PromptScreen, ResourceScreen
from tui.ui.dialogs.list_dialog import ChoiceDialog
from tui.ui.dialogs.prompt_arguments import ArgumentsScreen
from tui.ui.dialogs.server_page import ServerPage
from tui.ui.dialogs.tool_run import ToolFormScreen
from tui.ui.main import MainScreen
from tui.ui.messages import PaneName, ShowServer
from tui.ui.panes.activity import ActivityPane
from tui.ui.panes.browser import PromptsPane, ResourcesPane, ToolsPane
from tui.ui.panes.chat import ChatPane
from tui.ui.panes.side import SidePane
from tui.ui.panes.side_part import SidePart
from tui.ui.widgets.chat.completion import mention
from tui.ui.widgets.chat.composer import Composer
from tui.ui.widgets.lists.filter_list import FilterLine, ListEntry, matching
from tui.ui.widgets.lists.row_list import Row, RowList
from tui.ui.widgets.text.describe import (
    describe_prompt,
    describe_resource,
    describe_tool,
    era,
    server_facts,
    server_texts,
    summarize_server,
)

MANY = 10_000


def many_tools() -> Catalog:
    return Catalog(
        tools=tuple(decks.tool(f"tool_{i}", f"Does the work of number {i}.") for i in range(MANY))
    )


async def test_a_scrollbar_hides_nothing_of_a_row() -> None:
    offered = tuple(
        ResourceTemplateView(f"t://{number}/{{id}}", f"Template {number}") for number in range(99)
    )
    store = decks.full_store()
    store.dispatch(e.CatalogChanged(decks.GIT, Catalog(templates=offered)))
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
        for word in (
            "List branches",
            "repo_path",
            "string",
            "required",
            "server's claim: read-only",
        ):
            assert word in deck.text
        assert '"required"' not in deck.text
        await deck.press("v")
        assert '"required"' in deck.text
        await deck.press("v", "enter")
        assert deck.on_top(ToolFormScreen)


async def test_a_wide_list_of_tools_has_columns_for_their_tokens_and_last_use() -> None:
    async with running(decks.full_store(), (78, 30)) as deck:
        deck.commands.answers["models.context_part"] = ContextPart("tool", 1_234)
        deck.commands.answers["servers.usage"] = ServerUsage(last_calls={"git_log": 0.0})
        await deck.press("f3")
        await deck.until(lambda: "tokens" in deck.text)
        assert re.search(r"▾ git +\d+ +tokens +used", deck.text), deck.text
        assert re.search(r"\S +1\.2k ", deck.text)


async def test_typing_narrows_the_list_and_names_come_before_descriptions() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f3", "slash", *"ec")
        entries = deck.one(ToolsPane).entries
        found = ["echo", "commit", "broken_schema"]
        assert [entry.item[1].name for entry in entries.shown] == found
        assert "3 of 13 tools" in deck.text
        await deck.press("escape", "slash", *"git:", "down", "down")
        assert {entry.item[0] for entry in entries.shown} == {decks.GIT}
        assert entries.current is not None
        assert entries.current[1].name == "diff"
        assert isinstance(deck.focus, FilterLine)
        assert "Show changes between commits." in deck.text
        await deck.press("escape", "slash", *"zzz", "enter", "down")
        assert entries.current is None
        assert "0 of 13 tools" in deck.text
        assert "No match." in deck.text


def marked(deck: Running) -> list[str]:
    """Give what is marked in each row of the list on the screen."""
    rows = deck.app.screen.query_one("RowList:focus, FilterList:focus-within RowList", RowList)
    match = rows.get_component_rich_style("row-list--match")
    assert match.bold
    assert not deck.app.current_theme.ansi or match.underline, "seen without colors, too"
    lines = [rows.render_line(y) for y in range(len(rows.rows))]
    looks = (match.bold, match.underline, match.color)
    return [
        "".join(
            piece.text
            for piece in line
            if piece.style and (piece.style.bold, piece.style.underline, piece.style.color) == looks
        )
        for line in lines
    ]


@pytest.mark.parametrize("theme", ["gemdeck-dark", "gemdeck-16"])
async def test_what_matches_is_marked_together_or_letter_by_letter(theme: str) -> None:
    async with running(decks.full_store(), (160, 36)) as deck:
        deck.app.theme = theme
        await deck.press("f3", "slash", *"ec")
        assert marked(deck) == ["ec", "", "ec"], "a name, what is not shown, a name's letters"
        await deck.press("escape")
        assert set(marked(deck)) == {""}
        await deck.press("ctrl+p", *"quit")
        assert marked(deck)[0] == "Quit"
        await deck.press("space", *"leave")
        assert marked(deck) == ["QuitLeave"]


async def test_tools_that_the_model_loads_on_demand_are_marked() -> None:
    store = decks.full_store()
    tools = (ToolView(ToolId("near"), "near"), ToolView(ToolId("far"), "far"))
    catalog = Catalog(tools=tools, excess=frozenset({ToolId("far")}))
    store.dispatch(e.CatalogChanged(decks.GIT, catalog))
    store.dispatch(e.InstructionsSent({decks.GIT: "Ask before you write."}))
    async with running(store) as deck:
        await deck.press("f3")
        rows = {entry.row.label: entry.row.tail for entry in deck.one(ToolsPane).entries.shown}
        assert (rows["near"], rows["far"]) == ("", "on demand")
        await deck.press("f2", "home", "enter")
        assert deck.on_top(ServerPage)
        assert "Instructions (sent to the model)" in deck.text


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
            began = thread_time()
            entries.set_filter(query)
            took.append(thread_time() - began)
        assert len(entries.shown) == MANY
        entries.set_filter("tool_9999")
        await deck.settle()
        assert "1 of 10,000 tools" in deck.text
        entries.set_filter("")
        await deck.press("escape", "end")
        assert "tool_9999" in deck.text, "the whole list can be walked"
        await deck.press("home", "pagedown", "up")
        assert 0 < deck.one(ToolsPane).query_one(RowList).cursor < 20
        # The budget is 50 ms; the bound is wide because other work shares this machine.
        assert sorted(took)[len(took) // 2] < 0.25


async def test_a_narrow_window_names_the_key_that_clears_a_filter() -> None:
    async with running(decks.full_store(), NARROW) as deck:
        await deck.press("f3", "/", "e", "tab")
        assert "Esc clear" in deck.lines[-1]


async def test_a_hidden_list_does_nothing_until_it_is_shown() -> None:
    async with running(decks.full_store(), NARROW) as deck:
        pane = deck.one(ToolsPane)
        before = pane.entries.shown
        await deck.happen(e.CatalogChanged(decks.GIT, Catalog()))
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
        assert deck.one(PromptsPane).entries.rows.has_focus, "Enter goes to what is listed"
        await deck.press("enter")
        assert deck.on_top(PromptScreen)
        assert "/simple_prompt" in deck.text
        await deck.press("escape")
        blank = Catalog(resources=(ResourceView("test://a b", "a b"),))
        await deck.happen(e.CatalogChanged(decks.EVERYTHING, blank))
        for keys in (("f5", "i"), ("f5", "enter", "i")):
            composer.clear()
            await deck.press(*keys)
            await deck.until(lambda: composer.text.strip() == '@everything:"test://a b"')


async def test_a_part_that_opens_is_never_drawn_beside_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mount = SidePane.mount

    async def mount_and_lay_out(side: SidePane, part: SidePart) -> None:
        await mount(side, part)
        side.screen._refresh_layout()  # as it happens where the machine is busy
        shown.append([one for one in side.children if one.region])

    shown: list[list[Widget]] = []
    monkeypatch.setattr(SidePane, "mount", mount_and_lay_out)
    async with running(decks.full_store(), WIDE) as deck:
        await deck.press("f4", "f5")
        assert deck.one(ResourcesPane).region
    assert len(shown) > 2
    assert all(len(parts) <= 1 for parts in shown)


def test_a_template_is_mentioned_up_to_what_is_to_fill_in() -> None:
    template = decks.EVERYTHING_TEMPLATES[0]
    assert mention(decks.EVERYTHING, template).text == "@everything:test://static/resource/"


async def test_empty_panes_say_what_fills_them() -> None:
    async with running(decks.new_store()) as deck:
        await deck.press("f3")
        assert "Tools from your servers appear here" in deck.text
        await deck.press("f4")
        assert "Prompts from your servers" in deck.text
        await deck.press("f5")
        assert "Resources from your" in deck.text
        assert deck.one(PromptsPane).entries.current is None


def test_every_word_of_a_query_must_be_there() -> None:
    entries = [
        ListEntry(1, Row("git", "log"), "git:log", "shows commits"),
        ListEntry(2, Row("git", "show"), "git:show", "one commit of the log"),
    ]
    assert [entry.item for entry in matching(entries, "LOG")] == [1, 2]
    assert [entry.item for entry in matching(entries, "git: commit")] == [1, 2]
    assert [entry.item for entry in matching(entries, "show one")] == [2]
    near = ListEntry(3, Row("", "so we"), "so we")
    wide = ListEntry(4, Row("", "shallow"), "shallow")
    listed = [wide, near, *entries, ListEntry(5, Row("", "x"), "x", "swap")]
    assert [one.item for one in matching(listed, "sw")] == [5, 3, 2, 4], "words before letters"
    group = ListEntry(6, Row("shows", "aa"), "shows:aa")
    assert [one.item for one in matching([group, *entries], "show")][:2] == [2, 6], "its own name"
    assert matching(entries, "nothing") == []
    assert matching(entries, "  ") is entries


async def test_a_word_on_the_right_is_whole_and_details_tell_the_era() -> None:
    async with running(decks.full_store(), (140, 36)) as deck:
        # A word on the right is whole however narrow the list is.
        assert any("not offered" in line and "broken_s" in line for line in deck.lines)
        await deck.press("f3", "slash", *"broken")
        assert any("not offered" in line and "everyt" in line for line in deck.lines)
        # The details tell the era of a connection.
        await deck.afresh()
        assert era(ServerInfo("git", "2", "2025-11-25")) == "handshake"
        info = ServerInfo("git", "2", "2026-07-28")
        deck.dispatch(e.ServerStatusChanged(decks.GIT, ServerStatus.READY, info=info))
        deck.app.deck.post_message(ShowServer(decks.GIT))
        await deck.until(lambda: "2026-07-28 · stateless" in deck.text)


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
        await deck.happen(e.CatalogChanged(decks.GIT, Catalog(tools=decks.GIT_TOOLS[1:])))
        assert entries.current == (decks.GIT, decks.GIT_TOOLS[2])
        await deck.press("left")
        await deck.happen(e.CatalogChanged(decks.GIT, Catalog(tools=decks.GIT_TOOLS[:2])))
        assert headings(deck) == ["▸ git 2", "▾ everything 7"]
        assert entries.group is not None


SERVER = ServerId("s")
REASON = "its name cannot be shown as it is"


def test_a_tool_a_prompt_and_a_resource_say_what_is_wrong_with_them() -> None:
    tool = ToolView(ToolId("t"), "t", left_out=(f"parameter “x⟨U+200B⟩”: {REASON}",))
    shown = describe_tool(SERVER, tool, schema=False).plain
    assert f"omitted: parameter “x⟨U+200B⟩”: {REASON}" in shown
    greet = PromptView("(prompt 1)", "greet", problem=REASON)
    assert f"✕ cannot be used: {REASON}" in describe_prompt(SERVER, greet).plain
    memo = ResourceView("memo://a", "a", problem=REASON)
    for resource in (memo, ResourceTemplateView("memo://{x}", "a", problem=REASON)):
        assert f"✕ cannot be read: {REASON}" in describe_resource(SERVER, resource).plain


def test_a_server_shows_its_instructions_as_they_were_sent() -> None:
    info = ServerInfo("s", "1", "2025-11-25", instructions="Ask first. And more.")
    view = ServerView(SERVER, Origin.USER, Transport.STDIO, "s", info=info)
    unsent = "\n".join(map(str, server_texts(view, "")))
    assert unsent.endswith("Instructions (not sent to the model)\nAsk first. And more.")
    words = "Ask first.\n… [10 more characters left out]"
    sent = "\n".join(map(str, server_texts(view, words)))
    assert sent.endswith("sent to the model)\nAsk first.\n… [10 more characters left out]")
    assert "not sent" not in sent


def test_a_server_that_starts_elsewhere_says_so() -> None:
    view = ServerView(SERVER, Origin.USER, Transport.STDIO, "s")
    assert "gemdeck's" not in "\n".join(map(str, server_facts(view, 0)))
    never = replace(view, status=ServerStatus.RETRYING, restarted="restarted 3 ×, exit 1")
    [line] = [one for one in map(str, server_facts(never, 0)) if "exit 1" in one]
    assert line.split() == ["restarted", "3", "×,", "exit", "1"], "it never came, so not back"
    shown = map(str, server_facts(replace(view, is_outside=True), 0))
    assert "directory    an empty folder of gemdeck's" in shown


@pytest.mark.parametrize("is_offered", [True, False])
def test_only_an_access_that_is_offered_has_its_key_beside_it(*, is_offered: bool) -> None:
    refused = RefusedAccess("read", "~/notes", is_offered)
    view = ServerView(SERVER, Origin.USER, Transport.STDIO, "s", refused=refused)
    line = str(summarize_server(view, 0)).splitlines()[1]
    assert line.endswith("· p allow access") == is_offered


ONE = "test://static/resource/1"
TWO = "test://static/resource/2"
FIRST, SECOND = decks.EVERYTHING_RESOURCES


async def open_complex_prompt(deck: Running) -> ArgumentsScreen:
    await deck.press("f4", "down", "enter")
    screen = await deck.come(ArgumentsScreen)
    return screen


async def looks_at(deck: Running, name: str, values: dict[str, str]) -> None:
    """Wait until the server is to render a prompt, and send what it says."""
    await deck.until(lambda: deck.on_top(PromptScreen))
    token, *asked = deck.asked("features.render_prompt")[-1]
    assert asked == [decks.EVERYTHING, name, values]
    said = RenderedMessage("user", (f"a text for {values}",))
    await deck.happen(PromptRendered(str(token), (said,)))
    await deck.until(lambda: f"│ a text for {values}" in deck.text)
    await deck.press("enter")
    await deck.until(lambda: deck.on_top(MainScreen))
    await deck.until(lambda: deck.asked("messages.send_rendered")[-1:] == [(token,)])


async def test_a_typed_prompt_that_lacks_an_argument_opens_its_form_filled_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetched, "ARMING_SECONDS", 0.0)
    async with running(decks.full_store()) as deck:
        await deck.typed("/complex_prompt help")
        await deck.until(lambda: deck.on_top(ArgumentsScreen))
        assert "A prompt with arguments." in deck.text
        assert "How warm." in deck.text
        assert {line.value for line in deck.app.screen.query(Input)} == {""}
        await deck.press("escape")
        await deck.until(lambda: deck.one(Composer).text == "/complex_prompt ")
        await deck.typed("/complex_prompt --style=calm")
        await deck.until(lambda: deck.on_top(ArgumentsScreen))
        assert "calm" in deck.text
        await deck.press("escape")
        await deck.until(lambda: deck.one(Composer).text == "/complex_prompt --style=calm")
        await deck.press("enter")
        await deck.until(lambda: deck.on_top(ArgumentsScreen))
        await deck.press(*"hot", "ctrl+s")
        await looks_at(deck, "complex_prompt", {"temperature": "hot", "style": "calm"})
        assert deck.asked("messages.send") == []
        await deck.press(*"/compl", "tab", *"hot", "enter")
        await deck.until(lambda: deck.asked("messages.send") == [("/complex_prompt hot",)])


async def test_a_server_that_completes_nothing_is_not_asked() -> None:
    store = decks.new_store()
    decks.configure(store, decks.server(decks.EVERYTHING))
    full = decks.full_store().state.servers[1]
    decks.make_ready(store, decks.EVERYTHING, full.catalog, completions=False)
    async with running(store) as deck:
        await open_complex_prompt(deck)
        await deck.press(*"ho")
        await deck.pilot.pause(0.3)
        assert deck.asked("features.complete") == []


async def read_resource(deck: Running, content: ResourceContent) -> None:
    """Open the first resource, and let its server answer."""
    await deck.press("enter")
    assert deck.asked("features.read_resource")[-1] == (decks.EVERYTHING, ONE)
    await deck.happen(e.ResourceRead(decks.EVERYTHING, ONE, content))


async def test_a_resource_opens_over_the_whole_height_is_sent_and_followed() -> None:
    async with running(decks.full_store(), (120, 50)) as deck:
        # A resource opens over the whole height.
        await deck.press("f5", "enter")
        await deck.until(lambda: "Reading…" in deck.text)
        deck.dispatch(e.ResourceRead(decks.EVERYTHING, ONE, failure="It is gone [/x]."))
        await deck.until(lambda: "It is gone [/x]." in deck.text)
        await deck.press("escape")
        content = ResourceContent("the [bold]text[/bold]", "text/plain", ("[image/png, 3 kB]",), 7)
        await read_resource(deck, content)
        assert deck.on_top(ResourceScreen)
        for words in ("the [bold]text[/bold]", "21 characters", "[image/png, 3 kB]", ONE):
            assert words in deck.text
        assert "7 more characters omitted" in deck.text
        assert deck.app.screen.query_one(".viewer").region.height == 48
        assert deck.app.screen.check_action("use", ()) is False
        again = e.ResourceRead(decks.EVERYTHING, ONE, content, pictures=(picture(),), raw={"a": 1})
        await deck.happen(again)
        await deck.until(lambda: "▀" * 40 in deck.text)
        await deck.press("o", "f", "r")
        assert deck.asked("features.open_picture") == [(picture(),)]
        assert deck.asked("features.save_resource") == [(again,)]
        assert len(deck.asked("features.read_resource")) == 3
        await deck.press("c", "escape")
        assert deck.app.clipboard == "the [bold]text[/bold]"
        assert "the [bold]text[/bold]" not in deck.text
        await read_resource(deck, ResourceContent("text"))
        await deck.press("i")
        await deck.until(lambda: deck.on_top(MainScreen))
        composer = deck.one(ChatPane).query_one(TextArea)
        await deck.until(lambda: composer.text.strip() == f"@everything:{ONE}")
        assert deck.focus is composer
        # A resource is sent with the draft or a question and followed.
        await deck.afresh()
        composer = deck.one(ChatPane).query_one(TextArea)
        for draft, left in (("look:", ""), ("", f"@everything:{ONE} ")):
            composer.text = draft
            await deck.press("f5", "m")
            assert deck.asked("messages.send_resource") == [(decks.EVERYTHING, ONE, "look:")]
            assert composer.text == left
            assert deck.focus is composer
        await deck.press("f5", "down", "w")
        assert deck.asked("features.subscribe") == [(decks.EVERYTHING, TWO, True)]
        deck.dispatch(e.SubscriptionChanged(decks.EVERYTHING, TWO, True))
        await deck.until(lambda: "watching:" in deck.text)
        assert deck.one(ResourcesPane).action_label("watch") == "unwatch"
        await deck.press("w")
        assert deck.asked("features.subscribe")[-1] == (decks.EVERYTHING, TWO, False)


async def test_every_kind_of_template_is_filled_in_and_one_that_cannot_be_read_refused() -> None:
    store = decks.full_store()
    async with running(store, (120, 50)) as deck:
        await deck.press("f5", "end", "m", "w")
        assert deck.commands.acts == [], "nothing is known to send or follow yet"
        for template, keys, uri in (
            ("test://{id}", ("7", "space", "slash"), "test://7%20%2F"),
            ("file:///{+path}{?q,tags*}", ("a", "/", "b", "enter", "enter", *"x,y"),
             "file:///a/b?tags=x&tags=y"),
            ("memo://days{/day}", (), "memo://days"),
        ):  # fmt: skip
            offered = Catalog(templates=(ResourceTemplateView(template, "files"),))
            await deck.happen(e.CatalogChanged(decks.EVERYTHING, offered))
            deck.commands.calls.clear()
            await deck.press("end", "enter", *keys, "ctrl+s")
            await deck.until(lambda: bool(deck.asked("features.read_resource")))
            assert deck.asked("features.read_resource") == [(decks.EVERYTHING, uri)]
            composer = deck.one(ChatPane).query_one(TextArea)
            composer.text = "look:"
            await deck.press("m")
            await deck.until(lambda: bool(deck.asked("messages.send_resource")))
            assert deck.asked("messages.send_resource") == [(decks.EVERYTHING, uri, "look:")]
            await deck.press("f5")
        deck.commands.calls.clear()
        broken = Catalog(templates=(ResourceTemplateView("file:///{path", "files"),))
        await deck.happen(e.CatalogChanged(decks.EVERYTHING, broken))
        await deck.press("end", "enter")
        await deck.until(lambda: "cannot be filled in" in deck.text)
        assert deck.commands.acts == []


async def test_resources_are_drawn_and_arguments_completed() -> None:
    async with running(decks.full_store()) as deck:
        # A resource is drawn as what it is and a long one plain.
        await deck.press("f5")
        for text, media_type, shown, hidden in (
            ("# Title\n\n- **one**", "text/markdown", "• one", "**"),
            ('{"a":[1,2]}', "application/json", '"a": [', '{"a"'),
            ("x = 1", "text/x-python", "x = 1", "• one"),
            ("# not Markdown", "text/plain", "# not Markdown", "x = 1"),
        ):
            await read_resource(deck, ResourceContent(text, media_type))
            assert shown in deck.text, media_type
            assert hidden not in deck.text, media_type
            await deck.press("escape")
        long = "\n".join(f"# line {number}" for number in range(5_000))
        await read_resource(deck, ResourceContent(long, "text/markdown"))
        await deck.press("end")
        await deck.until(lambda: "# line 4999" in deck.text)
        # The server completes what is typed after a pause.
        await deck.afresh()
        screen = await open_complex_prompt(deck)
        await deck.press("tab", *"fo", "shift+tab", *"ho")
        await deck.until(lambda: "ho" in (deck.asked("features.complete") or [()])[-1])
        token, *rest = deck.asked("features.complete")[-1]
        assert rest == [
            decks.EVERYTHING, "complex_prompt", "temperature", "ho", {"style": "fo"}
        ]  # fmt: skip
        await deck.happen(e.ArgumentCompleted("of-another", ("cold",)))
        assert "cold" not in deck.text
        deck.dispatch(e.ArgumentCompleted(str(token), ("hot", "hotter [/x]")))
        await deck.until(lambda: "hotter [/x]" in deck.text)
        await deck.press("down", "down", "enter")
        assert screen.query(Input).first().value == "hotter [/x]"
        assert not any(offered.display for offered in screen.query(OptionList))


async def test_a_log_level_is_chosen_and_a_filter_takes_what_is_typed_at_once() -> None:
    async with running(decks.full_store()) as deck:
        # The log level of a server is chosen in the activity pane.
        await deck.press("f7", "e")
        assert deck.on_top(MainScreen), "all servers have no one level"
        await deck.app.deck.show_pane(PaneName.ACTIVITY, decks.GIT)
        await deck.press("e")
        assert deck.on_top(ChoiceDialog)
        await deck.press("down", "down", "enter")
        assert deck.asked("features.set_log_level") == [(decks.GIT, "warning")]
        deck.dispatch(e.LogLevelChanged(decks.GIT, "warning"))
        await deck.until(lambda: "log level warning" in deck.text)
        # What is typed right after the key of a filter goes into it.
        await deck.afresh()
        await deck.press("f3")
        entries = deck.one(ToolsPane).entries
        entries.action_filter()  # no message is handled in between
        assert deck.app.focused is entries.line
        await deck.press("f7")
        activity = deck.one(ActivityPane)
        activity.action_search()
        assert deck.app.focused is activity.line
