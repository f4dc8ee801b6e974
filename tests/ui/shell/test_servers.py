"""The server tree: its keys, and rows that change in place."""

from dataclasses import replace
from time import monotonic

from tests.ui.harness import Running, running
from tests.ui.shell import decks
from tui.model.catalog import Catalog
from tui.model.chat import Severity
from tui.model.events import CatalogChanged, LogLine, ServerLogged, ServerStatusChanged
from tui.model.servers import Failure, ServerId, ServerStatus
from tui.ui.panes import PaneName
from tui.ui.panes.activity import ActivityPane
from tui.ui.panes.servers import ServersPane, ServersTree
from tui.ui.panes.side import SidePane
from tui.ui.panes.tools import ToolsPane
from tui.ui.screens.details import ServerDetailsScreen
from tui.ui.widgets.lists.filter_list import FilterLine

SINGLE = (79, 24)
"""A terminal that shows one pane at a time, over its whole width."""


async def go_to(deck: Running, server: ServerId) -> ServersTree:
    """Put the cursor of the tree on a server."""
    tree = deck.one(ServersTree)
    if not tree.has_focus:
        await deck.press("f2")
    for line in range(tree.last_line + 1):
        tree.cursor_line = line
        if tree.current is not None and tree.current.id == server:
            await deck.pilot.pause()
            return tree
    raise AssertionError(f"{server} is not in the tree")


def row_of(deck: Running, word: str) -> str:
    """Give what the pane of the servers shows on the line that holds a word."""
    width = deck.one(ServersPane).region.width
    return next(line[:width] for line in deck.lines[1:] if word in line[:width])


async def test_a_key_asks_the_engine_for_one_thing() -> None:
    async with running(decks.full_store()) as deck:
        for server, key, call in [
            (decks.GIT, "r", ("restart_server", (decks.GIT,))),
            (decks.GIT, "s", ("stop_server", (decks.GIT,))),
            (decks.WEATHER, "s", ("start_server", (decks.WEATHER,))),
            (decks.GIT, "x", ("set_server_enabled", (decks.GIT, False))),
            (decks.LEGACY, "x", ("set_server_enabled", (decks.LEGACY, True))),
            (decks.GIT, "R", ("restart_all_servers", ())),
            (decks.GIT, "t", ("review_folder", ())),
            (decks.TEAM, "s", ("review_folder", ())),
            (decks.TEAM, "t", ("review_folder", ())),
        ]:
            deck.commands.calls.clear()
            await go_to(deck, server)
            await deck.press(key)
            assert deck.commands.calls == [call]


async def test_keys_that_do_not_apply_do_nothing() -> None:
    async with running(decks.full_store()) as deck:
        for server, keys in [(decks.LEGACY, "rsa"), (decks.TEAM, "ra"), (decks.GIT, "a")]:
            await go_to(deck, server)
            await deck.press(*keys)
            assert deck.commands.calls == []


async def test_signing_in_is_not_offered_before_it_exists() -> None:
    async with running(decks.full_store(), SINGLE) as deck:
        await go_to(deck, decks.DRIVE)
        assert "sign in" not in deck.lines[-2]


async def test_the_hints_name_what_a_key_would_do_now() -> None:
    async with running(decks.full_store(), SINGLE) as deck:
        await go_to(deck, decks.GIT)
        assert "s stop" in deck.text
        assert "x disable" in deck.text
        await go_to(deck, decks.WEATHER)
        assert "s start" in deck.text
        await go_to(deck, decks.LEGACY)
        assert "x enable" in deck.text


async def test_every_status_is_a_word_beside_a_glyph() -> None:
    async with running(decks.full_store(retry_at=monotonic() + 60)) as deck:
        for word, glyph, status in [
            ("git", "●", "ready, 6 tools"),
            ("search", "◐", "retry in"),
            ("weather", "✕", "failed"),
            ("drive", "◌", "needs sign-in"),
            ("legacy", "○", "disabled"),
            ("team-notes", "◌", "untrusted"),
        ]:
            row = row_of(deck, f" {word} ")
            assert glyph in row
            assert status in row


async def test_status_words_stand_on_the_right_and_give_way_to_the_name() -> None:
    async with running(decks.full_store()) as deck:
        git, everything = row_of(deck, " git "), row_of(deck, "everything")
        git, everything = git.split("│")[1], everything.split("│")[1]
        assert git.endswith("  ready, 6 tools ")
        assert everything.endswith("everything         ready ")
        await deck.pilot.resize_terminal(*SINGLE)
        await deck.press("f2")
        assert "ready, 7 tools" in row_of(deck, "everything")


async def test_a_dead_server_shows_why_with_its_last_stderr_lines() -> None:
    async with running(decks.full_store(), SINGLE) as deck:
        await deck.press("f2")
        assert "The server ended with exit code 1 before it answered." in deck.text
        assert "Look at its log with l" in deck.text
        assert "No module named 'pandas'" in deck.text


RETRY = ServerStatusChanged(
    decks.GIT,
    ServerStatus.RETRYING,
    failure=Failure("exited with code 3", stderr_tail=("KeyError: 'SHOP_TOKEN'",)),
    retry_at=monotonic() + 600,
)


async def test_a_server_that_is_tried_again_shows_when_and_why_without_a_key() -> None:
    store = decks.full_store()
    async with running(store) as deck:
        assert "exited with code 3" not in deck.text
        store.dispatch(RETRY)
        await deck.settle()
        for words in ("retry in", "exited with code 3", "SHOP_TOKEN"):
            assert words in deck.text
        decks.start(store, decks.GIT)
        await deck.settle()
        assert "starting" in row_of(deck, " git ")
        assert "exited with code 3" in deck.text, "nothing newer is known"
        store.dispatch(replace(RETRY, failure=Failure("it refused")))
        await deck.settle()
        assert "it refused" in deck.text
        assert "SHOP_TOKEN" not in deck.text


async def test_the_users_folding_stands_however_often_a_server_is_tried() -> None:
    store = decks.full_store()
    async with running(store) as deck:
        store.dispatch(RETRY)
        await deck.settle()
        await go_to(deck, decks.GIT)
        await deck.press("left")
        assert "SHOP_TOKEN" not in deck.text
        for status in (ServerStatus.STARTING, ServerStatus.RETRYING, ServerStatus.FAILED):
            store.dispatch(replace(RETRY, status=status))
            await deck.settle()
            assert "SHOP_TOKEN" not in deck.text


async def test_a_server_that_came_up_again_is_folded_as_it_was() -> None:
    store = decks.full_store()
    async with running(store) as deck:
        tree = deck.one(ServersTree)
        lines = tree.last_line
        store.dispatch(RETRY)
        await deck.settle()
        assert tree.last_line > lines
        decks.make_ready(store, decks.GIT, Catalog(tools=decks.GIT_TOOLS))
        await deck.settle()
        assert tree.last_line == lines


async def test_a_server_that_comes_up_under_the_cursor_stays_unfolded() -> None:
    store = decks.full_store()
    async with running(store) as deck:
        store.dispatch(RETRY)
        await deck.settle()
        tree = await go_to(deck, decks.GIT)
        await deck.press("down")
        decks.make_ready(store, decks.GIT, Catalog(tools=decks.GIT_TOOLS))
        await deck.settle()
        node = tree.cursor_node
        assert node is not None
        assert node.parent is not None
        assert node.parent.is_expanded


async def test_a_reason_is_wrapped_to_the_pane() -> None:
    async with running(decks.full_store()) as deck:
        width = deck.one(ServersPane).region.width
        pane = " ".join(line[:width].strip("│ ") for line in deck.lines)
        assert "The server ended with exit code 1 before it answered." in pane


async def test_updates_keep_cursor_folding_and_scroll() -> None:
    store = decks.full_store()
    async with running(store) as deck:
        tree = await go_to(deck, decks.EVERYTHING)
        await deck.press("right", "down", "down")
        before = tree.cursor_node
        assert before is not None
        assert before.data is not None
        assert before.data.text == "prompts"
        decks.make_ready(store, decks.SEARCH, Catalog(tools=decks.GIT_TOOLS))
        store.dispatch(ServerStatusChanged(decks.GIT, ServerStatus.FAILED, Failure("gone")))
        store.dispatch(CatalogChanged(decks.EVERYTHING, Catalog(tools=decks.GIT_TOOLS)))
        await deck.settle()
        assert tree.cursor_node is before
        assert tree.cursor_line == before.line
        assert row_of(deck, "tools").rstrip("│ ").endswith("6")
        assert "gone" in deck.text


async def test_the_cursor_leaves_a_row_that_disappears_for_its_server() -> None:
    store = decks.full_store()
    async with running(store, SINGLE) as deck:
        tree = await go_to(deck, decks.WEATHER)
        await deck.press("down", "down")
        store.dispatch(ServerStatusChanged(decks.WEATHER, ServerStatus.STOPPED))
        await deck.settle()
        assert "pandas" not in deck.text
        assert tree.current is not None
        assert tree.current.id == decks.WEATHER
        await deck.press("r")
        assert deck.commands.calls == [("restart_server", (decks.WEATHER,))]


async def test_other_settings_keep_the_cursor_on_its_server() -> None:
    store = decks.full_store()
    async with running(store) as deck:
        tree = await go_to(deck, decks.EVERYTHING)
        views = {view.id: view for view in store.state.servers}
        decks.configure(store, decks.server(ServerId("new")), views[decks.EVERYTHING])
        await deck.settle()
        assert tree.current == views[decks.EVERYTHING]


async def test_a_retry_counts_down_and_ticks_only_while_a_row_tells_the_time() -> None:
    store = decks.full_store(retry_at=monotonic() + 30)
    async with running(store) as deck:
        pane = deck.one(ServersPane)
        assert pane._clock is not None
        first = row_of(deck, "retry in")
        await deck.until(lambda: row_of(deck, "retry in") != first)
        store.dispatch(ServerStatusChanged(decks.SEARCH, ServerStatus.STOPPED))
        await deck.settle()
        assert pane._clock is None


async def test_the_details_name_the_variables_that_a_server_gets_and_does_not_get() -> None:
    store = decks.full_store()
    async with running(store, (140, 50)) as deck:
        view = next(one for one in store.state.servers if one.id == decks.GIT)
        decks.configure(store, replace(view, environment=("HOME", "PATH"), withheld=("MY_TOKEN",)))
        deck.app.deck.show_server(decks.GIT)
        await deck.until(lambda: "gets HOME, PATH" in deck.text)
        assert "withheld MY_TOKEN" in deck.text


async def test_a_slow_start_says_for_how_long_and_its_last_words() -> None:
    store = decks.full_store()
    async with running(store) as deck:
        await go_to(deck, decks.SEARCH)
        since = monotonic() - 44
        store.dispatch(ServerStatusChanged(decks.SEARCH, ServerStatus.STARTING, since=since))
        line = LogLine(0.0, "stderr", Severity.INFO, "downloading 3 of 7")
        store.dispatch(ServerLogged(decks.SEARCH, (line,)))
        await deck.until(lambda: any("downloading 3 of 7" in row for row in deck.lines))
        assert any(f"starting for {n} s" in row for n in range(44, 99) for row in deck.lines)
        store.dispatch(ServerStatusChanged(decks.SEARCH, ServerStatus.READY, since=monotonic()))
        await deck.settle()
        assert not any("downloading" in row for row in deck.lines)


async def test_a_server_that_came_back_says_so_for_a_minute() -> None:
    store = decks.full_store()
    async with running(store) as deck:
        pane = deck.one(ServersPane)
        words = "restarted 2 ×, exit 137"

        def come_back(ago: float) -> None:
            since = monotonic() - ago
            store.dispatch(
                ServerStatusChanged(decks.SEARCH, ServerStatus.READY, since=since, restarted=words)
            )

        come_back(ago=57)
        await deck.until(lambda: any(words in row for row in deck.lines))
        assert pane._clock is not None
        await deck.until(lambda: not any(words in row for row in deck.lines))
        await deck.until(lambda: pane._clock is None)


async def test_l_opens_the_log_of_that_server_alone() -> None:
    async with running(decks.full_store()) as deck:
        await go_to(deck, decks.WEATHER)
        await deck.press("l")
        assert deck.one(SidePane).active is PaneName.ACTIVITY
        assert {entry.owner for entry in deck.one(ActivityPane).view.entries} == {"weather"}


async def test_enter_shows_all_about_a_server_and_follows_it() -> None:
    store = decks.full_store()
    async with running(store) as deck:
        await go_to(deck, decks.GIT)
        await deck.press("enter")
        assert deck.on_top(ServerDetailsScreen)
        for word in ("● ready", "uvx mcp-server-git", "2025-11-25", "Ask before you write."):
            assert word in deck.text
        store.dispatch(
            ServerStatusChanged(decks.GIT, ServerStatus.FAILED, Failure("It fell over."))
        )
        await deck.settle()
        assert "✕ failed" in deck.text
        assert "It fell over." in deck.text
        await deck.press("escape")
        assert isinstance(deck.focus, ServersTree)


async def test_enter_on_a_number_lists_what_is_counted() -> None:
    async with running(decks.full_store()) as deck:
        await go_to(deck, decks.EVERYTHING)
        await deck.press("right", "down", "enter")
        await deck.settle()
        assert deck.one(FilterLine).value == "everything:"
        assert len(deck.one(ToolsPane).entries.shown) == len(decks.EVERYTHING_TOOLS)


async def test_before_and_without_servers_the_pane_says_what_happens_and_what_to_do() -> None:
    store = decks.new_store()
    async with running(store) as deck:
        assert "Reading the settings" in deck.text
        decks.configure(store)
        await deck.settle()
        assert "No servers yet." in deck.text
        assert "~/.gemini/settings.json" in deck.text
        await deck.press("f2", "d")
        assert deck.commands.calls == [("start_demo_servers", ())]


async def test_many_servers_are_drawn_and_scroll_with_the_cursor() -> None:
    store = decks.new_store()
    decks.configure(store, *(decks.server(ServerId(f"s{i}")) for i in range(200)))
    async with running(store, SINGLE) as deck:
        await deck.press("f2", "end")
        assert "s199" in deck.text
        changed = replace(store.state.servers[0], status=ServerStatus.STARTING)
        store.dispatch(ServerStatusChanged(changed.id, changed.status))
        await deck.settle()
        assert "s199" in deck.text
