"""The panes: how one gets to them, and what a narrow terminal shows."""

import anyio
import pytest
from textual.widget import Widget
from textual.widgets import TextArea

from tests.ui.harness import NARROW, running
from tests.ui.requests.samples import FORM_ID, form
from tests.ui.shell import decks
from tui.model.events import RequestRaised, RequestSettled
from tui.model.servers import ServerId
from tui.ui.panes import PaneName
from tui.ui.panes.activity import ActivityPane
from tui.ui.panes.chat import ChatPane
from tui.ui.panes.prompts import PromptsPane
from tui.ui.panes.servers import ServersPane, ServersTree
from tui.ui.panes.side import SidePane
from tui.ui.questions.form import FormQuestion
from tui.ui.screens.help import HelpScreen
from tui.ui.screens.main import MainScreen
from tui.ui.widgets.lists.filter_list import FilterLine
from tui.ui.widgets.lists.log_view import LogView
from tui.ui.widgets.lists.row_list import RowList

KEYS: list[tuple[str, type[Widget], type[Widget]]] = [
    ("f2", ServersPane, ServersTree),
    ("f3", SidePane, RowList),
    ("f4", SidePane, RowList),
    ("f5", SidePane, RowList),
    ("f6", ChatPane, TextArea),
    ("f7", SidePane, LogView),
]


async def test_typing_starts_in_the_chat() -> None:
    async with running(decks.full_store(), (140, 36)) as deck:
        assert isinstance(deck.focus, TextArea)
        assert deck.one(ServersPane).region.area > 0
        assert deck.one(SidePane).region.area > 0


@pytest.mark.parametrize("size", [(120, 36), NARROW])
async def test_each_pane_key_shows_its_pane_and_gives_it_the_focus(size: tuple[int, int]) -> None:
    async with running(decks.full_store(), size) as deck:
        for key, pane, focused in KEYS:
            await deck.press(key)
            focus = deck.focus
            assert isinstance(focus, focused), key
            assert pane in [type(node) for node in focus.ancestors], key
            assert deck.one(pane).region.area > 0, key


async def test_a_narrow_terminal_shows_one_pane_over_its_whole_width() -> None:
    async with running(decks.full_store(), (79, 24)) as deck:
        assert deck.one(ChatPane).region.width == 79
        assert not deck.one(ServersPane).display
        await deck.press("f2")
        assert deck.one(ServersPane).region.width == 79
        assert not deck.one(ChatPane).display
        await deck.press("escape")
        assert isinstance(deck.focus, TextArea)
        assert deck.one(ChatPane).region.width == 79


async def test_making_the_terminal_wider_shows_all_panes_again() -> None:
    async with running(decks.full_store(), (79, 24)) as deck:
        await deck.press("f3")
        await deck.pilot.resize_terminal(150, 40)
        await deck.settle()
        assert all(deck.one(pane).display for pane in (ServersPane, ChatPane, SidePane))
        await deck.pilot.resize_terminal(79, 24)
        await deck.settle()
        assert deck.one(SidePane).display
        assert not deck.one(ChatPane).display


async def test_the_app_survives_terminals_of_almost_no_size() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f3")
        for size in [(1, 1), (3, 2), (20, 5), (110, 3), (109, 40), (120, 36)]:
            await deck.pilot.resize_terminal(*size)
            await deck.settle()
        assert "gemdeck" in deck.lines[0]


async def test_escape_in_a_side_pane_goes_back_to_the_chat() -> None:
    async with running(decks.full_store()) as deck:
        for key in ("f2", "f3", "f5", "f7"):
            await deck.press(key, "escape")
            assert isinstance(deck.focus, TextArea), key


async def test_escape_clears_a_filter_before_it_leaves_the_pane() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f3", "slash", "e", "c", "escape")
        line = deck.one(FilterLine)
        assert line.value == ""
        assert isinstance(deck.focus, RowList)
        await deck.press("escape")
        assert isinstance(deck.focus, TextArea)


async def test_a_click_on_a_tab_shows_its_pane() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f3")
        side = deck.one(SidePane)
        await deck.pilot.click(SidePane, offset=(3 + 7, 0))
        await deck.settle()
        assert side.active is PaneName.PROMPTS
        await deck.pilot.click(SidePane, offset=(3 + 27, 0))
        await deck.settle()
        assert deck.one(ActivityPane).display
        assert not deck.one(PromptsPane).display


async def test_the_header_names_model_folder_servers_tokens_and_service() -> None:
    async with running(decks.full_store()) as deck:
        header = deck.lines[0]
        for word in ("gemdeck", "gemini-3.8-flash", "~/shop (trusted)", "servers 2/6", "Gemini"):
            assert word in header
        assert "tokens 12.4k/1M" in header
        assert "◐ starting" not in header


async def test_the_header_says_that_servers_are_starting_without_moving_the_rest() -> None:
    store = decks.new_store()
    async with running(store) as deck:
        before = deck.lines[0].index("servers")
        decks.configure(store, decks.server(decks.GIT))
        decks.start(store, decks.GIT)
        await deck.settle()
        assert "◐ waiting for git   servers" in deck.lines[0]
        assert deck.lines[0].index("servers") == before


async def test_where_the_header_is_narrow_it_says_starting_and_names_nobody() -> None:
    store = decks.new_store()
    names = [ServerId(f"number-{number}") for number in range(4)]
    async with running(store) as deck:
        decks.configure(store, *map(decks.server, names))
        for name in names:
            decks.start(store, name)
        await deck.settle()
        assert f"waiting for {names[0]}, {names[1]}, +2" in deck.lines[0]
        await deck.pilot.resize_terminal(80, 24)
        await deck.settle()
        assert "◐ starting   servers" in deck.lines[0]


async def test_over_a_question_the_key_bar_lists_the_keys_that_work_there() -> None:
    store = decks.full_store()
    async with running(store) as deck:
        store.dispatch(RequestRaised(form()))
        await deck.until(lambda: deck.on_top(FormQuestion))
        await deck.settle()
        assert deck.lines[-1].split() == ["F1", "help", "^P", "palette", "^Q", "quit"]
        await deck.press("f2")
        assert deck.on_top(FormQuestion)
        await deck.press("f1")
        assert deck.on_top(HelpScreen)
        await deck.press("escape")
        store.dispatch(RequestSettled(FORM_ID))
        await deck.until(lambda: deck.on_top(MainScreen))
        await deck.settle()
        assert "F2 servers" in deck.lines[-1]


async def test_the_part_asked_for_last_is_shown_whichever_is_made_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(decks.full_store()) as deck:
        side = deck.one(SidePane)
        mount, go_on = side.mount, anyio.Event()

        async def mount_late(part: Widget) -> None:
            await mount(part)
            if isinstance(part, PromptsPane):
                await go_on.wait()

        monkeypatch.setattr(side, "mount", mount_late)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(side.show, PaneName.PROMPTS)
            await deck.until(lambda: bool(side.query(PromptsPane)))
            await side.show(PaneName.ACTIVITY)
            go_on.set()
        shown = [part for part in side.children if part.display]
        assert [type(part) for part in shown] == [ActivityPane]


async def test_the_key_bar_shows_the_way_out_at_every_width() -> None:
    async with running(decks.full_store(), NARROW) as deck:
        for key in ("F1 help", "^P palette", "F2 serv", "F3 tools", "F4 prompts"):
            assert key in deck.lines[-1]
        for key in ("F5 res", "F6 chat", "F7 act", "^Q quit"):
            assert key in deck.lines[-1]
        await deck.pilot.resize_terminal(60, 24)
        await deck.settle()
        for key in ("F1 help", "^P palette", "F2 serv", "F6 chat", "^Q quit"):
            assert key in deck.lines[-1]
        await deck.pilot.resize_terminal(120, 36)
        await deck.settle()
        for key in ("F4 prompts", "F5 resources", "F7 activity"):
            assert key in deck.lines[-1]


async def test_a_click_on_the_key_bar_presses_the_key() -> None:
    async with running(decks.full_store()) as deck:
        x = deck.lines[-1].index("F2 servers")
        await deck.pilot.click(offset=(x + 1, 35))
        await deck.settle()
        assert isinstance(deck.focus, ServersTree)


async def test_remapped_keys_work_and_are_shown() -> None:
    async with running(decks.full_store()) as deck:
        deck.app.set_keymap({"deck.servers": "f12", "servers.restart": "z"})
        await deck.press("f12")
        assert isinstance(deck.focus, ServersTree)
        await deck.press("z")
        assert deck.commands.calls == [("restart_server", (decks.GIT,))]
        assert "F12 servers" in deck.lines[-1]
        await deck.press("f1")
        for _ in range(10):
            if "F12" not in deck.text:
                await deck.press("pagedown")
                await deck.settle()
        assert "F12" in deck.text
