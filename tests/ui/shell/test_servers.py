"""The server tree: its keys, rows that change in place, none at all, those of other clients."""

from dataclasses import replace
from time import monotonic

from tests.ui.harness import Running, running, ticking
from tests.ui.shell import decks
from tui.engine.settings.edits import EditError
from tui.model import events as e
from tui.model.catalog import Catalog
from tui.model.chat import Severity
from tui.model.imports import ImportOffer, ImportState
from tui.model.servers import Failure, ServerId, ServerStatus
from tui.store.store import Store
from tui.ui.dialogs.choices import ImportScreen
from tui.ui.dialogs.server_page import ServerPage
from tui.ui.messages import PaneName
from tui.ui.panes.activity import ActivityPane
from tui.ui.panes.browser import ToolsPane
from tui.ui.panes.servers import ServersPane
from tui.ui.panes.servers_tree import ServersTree
from tui.ui.panes.side import SidePane
from tui.ui.widgets.lists.filter_list import FilterLine

SINGLE = (79, 24)
"""A terminal that shows one pane at a time, over its whole width."""


async def go_to(deck: Running, server: ServerId) -> ServersTree:
    """Put the cursor of the tree on a server."""
    tree = deck.one(ServersTree)
    if not tree.has_focus:
        await deck.press("f2")
    for line in range(len(tree.rows)):
        tree.cursor = line
        if tree.current is not None and tree.current.id == server:
            await deck.settle()
            return tree
    raise AssertionError(f"{server} is not in the tree")


def row_of(deck: Running, word: str) -> str:
    """Give what the pane of the servers shows on the line that holds a word."""
    width = deck.one(ServersPane).region.width
    return next(line[:width] for line in deck.lines[1:] if word in line[:width])


async def test_a_key_asks_the_engine_for_one_thing_where_it_applies() -> None:
    async with running(decks.full_store()) as deck:
        for server, key, call in [
            (decks.GIT, "r", ("servers.restart", (decks.GIT,))),
            (decks.GIT, "s", ("servers.stop", (decks.GIT,))),
            (decks.WEATHER, "s", ("servers.start", (decks.WEATHER,))),
            (decks.GIT, "x", ("servers.set_enabled", (decks.GIT, False))),
            (decks.LEGACY, "x", ("servers.set_enabled", (decks.LEGACY, True))),
            (decks.GIT, "R", ("servers.restart_all", ())),
            (decks.GIT, "t", ("review_folder", ())),
            (decks.TEAM, "s", ("review_folder", ())),
            (decks.TEAM, "t", ("review_folder", ())),
        ]:
            deck.commands.calls.clear()
            await go_to(deck, server)
            await deck.press(key)
            assert deck.commands.acts == [call]
        deck.commands.calls.clear()
        for server, keys in [(decks.LEGACY, "rsa"), (decks.TEAM, "ra"), (decks.GIT, "a")]:
            await go_to(deck, server)
            await deck.press(*keys)
            assert deck.commands.acts == [], server


async def test_the_hints_name_what_a_key_would_do_now() -> None:
    async with running(decks.full_store(), SINGLE) as deck:
        for server, hints in (
            (decks.DRIVE, ("a sign in",)),
            (decks.GIT, ("s stop", "x disable")),
            (decks.WEATHER, ("s start",)),
            (decks.LEGACY, ("x enable",)),
        ):
            await go_to(deck, server)
            for hint in hints:
                assert hint in deck.text
            assert ("a sign in" in deck.text) == (server == decks.DRIVE), "not over the network"


async def test_every_server_is_one_line_with_a_glyph_and_a_word_or_a_number() -> None:
    async with running(decks.full_store(retry_at=monotonic() + 60)) as deck:
        rows = deck.one(ServersPane)
        assert len(rows.rows.rows) == 7
        for word, glyph, status in [
            ("git", "●", "6 tools"),
            ("everything", "●", "7 tools"),
            ("search", "◐", "retry "),
            ("weather", "✕", "failed"),
            ("drive", "◌", "needs sign-in"),
            ("legacy", "○", "disabled"),
            ("team-notes", "◌", "untrusted"),
        ]:
            row = row_of(deck, f"{glyph} {word} ").split("│")[1]
            assert status in row
            assert row.endswith(f"{status} ") or word == "search"
        await deck.resize(40, 12)
        await deck.press("f2", "end")
        assert "untrusted " in row_of(deck, "team-notes"), "beside a scrollbar, too"


async def test_a_long_name_gives_way_to_the_status() -> None:
    store = decks.new_store()
    decks.configure(store, decks.server(ServerId("n" * 60), ServerStatus.DISABLED))
    async with running(store) as deck:
        assert row_of(deck, "○ nnnn").split("│")[1].endswith("nnn… disabled ")


def details_of(deck: Running) -> str:
    """Give the words of the details below the tree."""
    lines = (deck.one(ServersPane).details.render_line(y).text for y in range(30))
    return " ".join(" ".join(lines).split())


async def test_the_details_follow_the_cursor_and_the_keys_the_focus() -> None:
    async with running(decks.full_store(), (120, 60)) as deck:
        await go_to(deck, decks.WEATHER)
        told = details_of(deck)
        parts = (
            "weather",
            "The server ended with exit code 1 before it answered.",
            "No module named 'pandas'",
            "Look at its log with l, then restart it with r.",
        )
        assert [told.index(part) for part in parts] == sorted(told.index(part) for part in parts)
        for key in ("r restart", "s start", "l log", "x disable", "↵ details"):
            assert key in deck.text
        await go_to(deck, decks.GIT)
        assert "git 1.4.0" in details_of(deck)
        await go_to(deck, decks.TEAM)
        assert "Press t to review" in details_of(deck)
        assert "s review" in deck.text
        await deck.press("escape")
        assert "s review" not in deck.text


RETRY = e.ServerStatusChanged(
    decks.GIT,
    ServerStatus.RETRYING,
    failure=Failure("exited with code 3", stderr_tail=("KeyError: 'SHOP_TOKEN'",)),
    retry_at=monotonic() + 600,
)


def calm_store() -> Store:
    """Give a store with three servers that are well."""
    store = decks.new_store()
    names = (decks.EVERYTHING, decks.GIT, decks.SEARCH)
    decks.configure(store, *map(decks.server, names))
    for name in names:
        decks.make_ready(store, name, Catalog(tools=decks.GIT_TOOLS))
    return store


async def test_the_first_trouble_stays_in_sight_with_when_and_why_without_a_key() -> None:
    store = calm_store()
    async with running(store) as deck:
        assert "exited with code 3" not in deck.text
        store.dispatch(RETRY)
        await deck.until(lambda: "exited with code 3" in deck.text)
        assert "retry " in row_of(deck, "◐ git ")
        assert "SHOP_TOKEN" in deck.text
        await deck.happen(e.ServerStatusChanged(decks.SEARCH, ServerStatus.FAILED, Failure("gone")))
        assert "exited with code 3" in deck.text
        assert "failed" in row_of(deck, "✕ search")
        decks.start(store, decks.GIT)
        await deck.settle()
        assert "starting" in row_of(deck, "◐ git ")
        assert "exited with code 3" in deck.text, "nothing newer is known"
        await deck.happen(replace(RETRY, failure=Failure("it refused")))
        assert "it refused" in deck.text
        assert "SHOP_TOKEN" not in deck.text
        tree = await go_to(deck, decks.EVERYTHING)
        await deck.happen(RETRY)
        assert tree.current is not None
        assert tree.current.id == decks.EVERYTHING, "a user is at the tree"


async def test_updates_keep_cursor_folding_and_scroll() -> None:
    async with running(decks.full_store()) as deck:
        tree = await go_to(deck, decks.EVERYTHING)
        await deck.press("right", "down", "down")
        before = tree.cursor
        assert tree.rows[before].label == "prompts"
        decks.make_ready(deck.store, decks.SEARCH, Catalog(tools=decks.GIT_TOOLS))
        deck.dispatch(e.ServerStatusChanged(decks.GIT, ServerStatus.FAILED, Failure("gone")))
        await deck.happen(e.CatalogChanged(decks.EVERYTHING, Catalog(tools=decks.GIT_TOOLS)))
        assert tree.cursor == before
        assert row_of(deck, "├ tools").rstrip("│ ").endswith("6")
        assert "failed" in row_of(deck, "✕ git")
        await go_to(deck, decks.EVERYTHING)
        views = {view.id: view for view in deck.store.state.servers}
        decks.configure(deck.store, decks.server(ServerId("new")), views[decks.EVERYTHING])
        await deck.settle()
        assert tree.current == views[decks.EVERYTHING], "other settings keep it on its server"


async def test_the_cursor_leaves_a_row_that_disappears_for_its_server() -> None:
    store = decks.new_store()
    decks.configure(store, decks.server(decks.GIT))
    decks.make_ready(store, decks.GIT, Catalog())
    async with running(store) as deck:
        tree = await go_to(deck, decks.GIT)
        await deck.press("right", "down", "down")
        await deck.happen(e.ServerStatusChanged(decks.GIT, ServerStatus.STOPPED))
        assert "├ tools" not in deck.text
        assert tree.current is not None
        assert tree.current.id == decks.GIT
        await deck.press("r")
        assert deck.commands.acts == [("servers.restart", (decks.GIT,))]


async def test_rows_tell_the_time_of_a_retry_a_slow_start_and_a_return_and_tick_only_then() -> None:
    store = calm_store()
    async with running(store) as deck:
        await go_to(deck, decks.SEARCH)
        before = ticking()
        await deck.happen(replace(RETRY, server=decks.SEARCH, retry_at=monotonic() + 30))
        assert ticking() > before
        first = row_of(deck, "retry ")
        await deck.until(lambda: row_of(deck, "retry ") != first)
        since = monotonic() - 44
        store.dispatch(e.ServerStatusChanged(decks.SEARCH, ServerStatus.STARTING, since=since))
        decks.log(store, decks.SEARCH, "downloading 3 of 7")
        await deck.until(lambda: any("downloading 3 of 7" in row for row in deck.lines))
        assert any(f"starting {n} s" in row for n in range(44, 99) for row in deck.lines)
        told = "restarted 2 ×, exit 137"
        back = e.ServerStatusChanged(
            decks.SEARCH, ServerStatus.READY, since=monotonic(), restarted=told
        )
        store.dispatch(back)
        await deck.until(lambda: any(told in row for row in deck.lines))
        assert "restarted" in row_of(deck, "● search")
        assert "downloading" not in deck.text
        assert ticking() > before
        store.dispatch(replace(back, since=monotonic() - 58.5))
        await deck.until(lambda: not any(told in row for row in deck.lines))
        assert "6 tools" in row_of(deck, "● search")
        await deck.until(lambda: ticking() == before)


async def test_enter_shows_all_about_a_server_and_follows_it_and_l_opens_its_log_alone() -> None:
    async with running(decks.full_store()) as deck:
        await go_to(deck, decks.EVERYTHING)
        await deck.press("right", "down", "enter")
        assert deck.one(FilterLine).value == "everything:", "a number lists what is counted"
        assert len(deck.one(ToolsPane).entries.shown) == len(decks.EVERYTHING_TOOLS)
        await go_to(deck, decks.WEATHER)
        await deck.press("l")
        assert deck.one(SidePane).active is PaneName.ACTIVITY
        assert {entry.owner for entry in deck.one(ActivityPane).view.entries} == {"weather"}
        git = next(one for one in deck.store.state.servers if one.id == decks.GIT)
        told = replace(git, environment=("HOME", "PATH"), withheld=("MY_TOKEN",))
        decks.configure(deck.store, told)
        await go_to(deck, decks.GIT)
        await deck.press("enter")
        assert deck.on_top(ServerPage)
        for word in ("● ready", "uvx mcp-server-git", "2025-11-25", "Ask before you write."):
            assert word in deck.text
        assert "passed: HOME, PATH" in deck.text
        assert "withheld: MY_TOKEN" in deck.text
        await deck.happen(
            e.ServerStatusChanged(decks.GIT, ServerStatus.FAILED, Failure("It fell over."))
        )
        assert "✕ failed" in deck.text
        assert "It fell over." in deck.text
        await deck.press("escape")
        assert isinstance(deck.focus, ServersTree)


async def test_many_servers_are_drawn_and_scroll_with_the_cursor() -> None:
    store = decks.new_store()
    decks.configure(store, *(decks.server(ServerId(f"s{i}")) for i in range(200)))
    async with running(store, SINGLE) as deck:
        await deck.press("f2", "end")
        assert "s199" in deck.text
        changed = replace(store.state.servers[0], status=ServerStatus.STARTING)
        await deck.happen(e.ServerStatusChanged(changed.id, changed.status))
        assert "s199" in deck.text


FILES = ImportOffer(
    "Cursor",
    "~/.cursor/mcp.json",
    "files",
    ImportState.NEW,
    command=("npx", "-y", "@acme/files", "[red]/home"),
    env=("TOKEN",),
    warnings=("Not pinned (@acme/files).",),
)
OTHER = replace(FILES, server="other", state=ImportState.TAKEN, warnings=())


async def test_where_the_last_server_goes_the_pane_keeps_its_keys() -> None:
    async with running(decks.full_store()) as deck:
        tree = await go_to(deck, decks.LEGACY)
        views = deck.store.state.servers
        left = tuple(view for view in views if view.id != decks.LEGACY)
        await deck.happen(e.ServersConfigured(left))
        assert tree.current is not None
        assert (tree.current.id, deck.focus) == (left[0].id, tree)
        await deck.happen(e.ServersConfigured(()))
        assert "No servers yet." in deck.text
        await deck.press("d")
        assert deck.commands.acts == [("start_demo_servers", ())]
        await deck.happen(e.ServersConfigured(views))
        await deck.press("down")
        assert tree.current.id == views[1].id


async def test_without_servers_the_pane_says_what_to_do_and_those_of_others_are_taken_over() -> (
    None
):
    async with running(decks.new_store()) as deck:
        # Before and without servers the pane says what happens and what to do.
        assert "Reading the settings" in deck.text
        decks.configure(deck.store)
        await deck.settle()
        assert "No servers yet." in deck.text
        assert "~/.gemini/settings.json" in deck.text
        await deck.press("f2", "d")
        assert deck.commands.acts == [("start_demo_servers", ())]
        await deck.app.run_action("open('imports')")
        await deck.until(lambda: "No servers of other clients were found." in deck.text)
        words = "~/.gemini/settings.json:3: not valid JSON"
        deck.dispatch(e.NoticeRaised(e.Notice(Severity.ERROR, words)))
        await deck.until(lambda: "not valid JSON" in deck.text)
        assert "No servers yet." in deck.text, "beside the last error"
        # A server of another client is shown whole and taken over once.
        taken: list[str] = []

        def take(offer: ImportOffer) -> ImportOffer:
            taken.append(offer.server)
            if len(taken) == 1:
                raise EditError("line 3: not valid JSON")
            return replace(offer, state=ImportState.WRITTEN)

        await deck.afresh()
        deck.app.push_screen(ImportScreen([FILES, OTHER], take))
        await deck.until(lambda: "variable   TOKEN" in deck.text)
        for told in ("! Not pinned (@acme/files).", "argument   [red]/home", "name is taken here"):
            assert told in deck.text
        await deck.press("enter")
        await deck.until(lambda: "line 3: not valid JSON" in deck.text)
        deck.app.clear_notifications()  # it stands where the state is
        await deck.press("enter")
        await deck.until(lambda: "written" in deck.text)
        await deck.press("enter", "down", "enter")
        assert taken == ["files", "files"]
        await deck.press("escape")
        await deck.until(lambda: "Import servers from other clients" not in deck.text)
