"""The room for the chat: which panes stand beside it, how wide, and what is remembered."""

import pytest
from textual import events
from textual.widgets import TextArea

from tests.ui.harness import Running, running
from tests.ui.shell import decks
from tui.ui.layout import MIN_CHAT, MIN_SIDE, Layout, Side, read_layout
from tui.ui.panes import PaneName
from tui.ui.panes.chat import ChatPane
from tui.ui.panes.deck import Deck
from tui.ui.panes.servers import ServersPane
from tui.ui.panes.servers_tree import ServersTree
from tui.ui.panes.side import FoldedTabs, SidePane
from tui.ui.themes import UiPreferences
from tui.ui.widgets.lists.row_list import RowList

PANES = ("f2", "f3", "f4", "f5", "f7", "f6")


def shares(deck: Running) -> tuple[int, int, int]:
    """Give the columns of the servers, the chat and the right side; 0 if hidden."""
    servers, chat, side = (deck.one(kind) for kind in (ServersPane, ChatPane, SidePane))
    return tuple(pane.region.width if pane.display else 0 for pane in (servers, chat, side))  # type: ignore[return-value]


async def mouse(deck: Running, kind: type[events.MouseEvent], x: int, y: int = 5) -> None:
    """Send a mouse event as a terminal does."""
    held = 0 if kind is events.MouseMove else 1
    deck.app.post_message(kind(None, x, y, 0, 0, held, False, False, False))
    await deck.pilot.pause()


async def drag(deck: Running, start: int, end: int) -> None:
    await mouse(deck, events.MouseDown, start)
    for x in (start, (start + end) // 2, end):
        await mouse(deck, events.MouseMove, x)
    await mouse(deck, events.MouseUp, end)
    await deck.settle()


async def test_the_panes_fill_every_width_and_the_chat_has_most_of_it_wherever_the_focus_is() -> (
    None
):
    async with running(decks.full_store()) as deck:
        for width, servers, right in ((80, 0, 0), (120, 1, 0), (140, 1, 1)):
            await deck.resize(width, 36)
            shown = shares(deck)
            assert (bool(shown[0]), bool(shown[2])) == (servers, right), "at first"
            assert deck.one(FoldedTabs).display == (width == 120)
        for width in (80, 109, 110, 139, 300):
            await deck.resize(width, 36)
            for key in PANES:
                await deck.press(key)
                assert shares(deck)[1] >= width * 0.6, (width, key)
                folded = deck.one(FoldedTabs)
                assert sum(shares(deck)) + folded.region.width * folded.display == width
                assert deck.focus is not None
                assert deck.focus.region.width > MIN_SIDE / 2, (width, key)


async def test_the_key_of_the_pane_with_the_focus_hides_its_side() -> None:
    async with running(decks.full_store()) as deck:
        for width, keys in ((100, {"f2": 0, "f7": 2}), (120, {"f2": 0, "f3": 2}), (160, {"f5": 2})):
            await deck.resize(width, 36)
            for key, pane in keys.items():
                await deck.press(key)
                assert shares(deck)[pane], (width, key)
                await deck.press(key)
                assert not shares(deck)[pane], (width, key)
                assert isinstance(deck.focus, TextArea), (width, key)
                await deck.press(key)
                assert shares(deck)[pane], (width, key)


async def test_a_side_that_took_the_room_of_the_other_gives_it_back() -> None:
    async with running(decks.full_store()) as deck:
        before = shares(deck)
        await deck.press("f3")
        assert shares(deck)[0] == 0
        await deck.press("f3")
        assert shares(deck) == before
        assert [line[117:119] for line in deck.lines[2:6]] == ["F3", "F4", "F5", "F7"]
        await deck.click(FoldedTabs, 1, 2)
        assert deck.one(SidePane).active is PaneName.PROMPTS
        assert shares(deck)[2]
        await deck.press("f3")
        assert deck.one(SidePane).active is PaneName.TOOLS
        assert shares(deck)[2], "another pane of the same side is shown, not hidden"


async def test_the_chat_stands_alone_and_the_rest_comes_back() -> None:
    async with running(decks.full_store(), (160, 36)) as deck:
        before = shares(deck)
        await deck.press("f6")
        assert shares(deck) == (0, 160, 0)
        await deck.press("f6")
        assert shares(deck) == before
        await deck.press("f6", "f2")
        assert deck.one(ServersTree).has_focus
        assert shares(deck) == before
        await deck.press("f6")
        assert isinstance(deck.focus, TextArea)
        assert shares(deck) == before, "from another pane it goes to the chat and hides nothing"
        await deck.press("f3")
        for width in (120, 90, 70, 160):
            await deck.resize(width, 36)
            assert isinstance(deck.focus, RowList)
            assert shares(deck)[2], "the pane with the focus stays in sight"


async def test_tabs_without_room_for_their_names_show_their_keys() -> None:
    async with running(decks.full_store(), (80, 24)) as deck:
        await deck.press("f4")
        assert "F3 Prompts F5 F7" in " ".join(deck.lines[1].split())
        await deck.click(SidePane, deck.lines[1].index("F7") - 48, 0)
        assert deck.one(SidePane).active is PaneName.ACTIVITY


async def test_a_border_follows_the_mouse_and_hides_no_pane_until_a_question_ends_the_drag() -> (
    None
):
    async with running(decks.full_store(), (160, 36)) as deck:
        for from_chat in (0, 1):
            servers, chat, right = shares(deck)
            start = servers - 1 + from_chat
            await drag(deck, start, start + 6)
            assert shares(deck) == (servers + 6, chat - 6, right)
            start = 160 - right - from_chat
            await drag(deck, start, start - 12)
            wanted = (servers + 6, chat - 18, right + 12)
            assert shares(deck) == wanted
            assert not deck.app.screen.get_selected_text()
            await mouse(deck, events.MouseMove, 60)
            assert shares(deck) == wanted
        await drag(deck, shares(deck)[0] - 1, 159)
        assert min(shares(deck)) >= MIN_SIDE
        assert shares(deck)[1] == MIN_CHAT
        await drag(deck, shares(deck)[0] - 1, 0)
        assert shares(deck)[0] == MIN_SIDE
        await mouse(deck, events.MouseDown, MIN_SIDE - 1)
        assert deck.app.mouse_captured is deck.one(Deck)
        await deck.press("f1")
        assert deck.app.mouse_captured is None


async def test_keys_move_the_border_of_the_focused_pane() -> None:
    async with running(decks.full_store(), (160, 36)) as deck:
        for keys, pane, left in ((["f2"], 0, -2), (["f6", "shift+tab"], 0, -2), (["f3"], 2, 2)):
            await deck.press(*keys)
            before = shares(deck)[pane]
            await deck.press("alt+left")
            assert shares(deck)[pane] == before + left, keys
            await deck.press("alt+right", "alt+right")
            assert shares(deck)[pane] == before - left, keys


async def test_widths_are_remembered_for_each_class_of_width_and_between_runs() -> None:
    saved: list[Layout] = []
    preferences = UiPreferences(save_layout=saved.append)
    async with running(decks.full_store(), (160, 36), preferences=preferences) as deck:
        await drag(deck, shares(deck)[0] - 1, 49)
        assert len(saved) == 1, "only where the border was let go"
        await deck.resize(120, 36)
        assert shares(deck)[0] == 30
        await deck.press("f2", "f2")
        await deck.resize(150, 36)
        assert shares(deck)[0] == 50
    preferences = UiPreferences(layout=read_layout(saved[-1].saved()))
    async with running(decks.full_store(), (160, 36), preferences=preferences) as deck:
        assert shares(deck)[0] == 50
        await deck.resize(120, 36)
        assert shares(deck)[0] == 0


async def test_with_much_room_lists_show_descriptions_beside_names() -> None:
    async with running(decks.full_store(), (200, 50)) as deck:
        await deck.press("f3")
        row = next(line for line in deck.lines if "branch_list" in line)
        assert "  branch_list           List the branches of …" in row
        await deck.resize(140, 36)
        await deck.press("f3")
        row = next(line for line in deck.lines if " commit " in line)
        assert "Record" not in row


def test_a_layout_is_the_same_after_a_run() -> None:
    layout = Layout().with_side(120, Side.RIGHT, opened=True).with_width(160, Side.RIGHT, 33)
    layout = layout.toggled(160)
    assert layout.alone
    assert read_layout(layout.saved()) == layout


@pytest.mark.parametrize(
    "saved",
    [
        None,
        [],
        {"widths": []},
        {"alone": "yes", "widths": {"80": 3, "7": {}, "x": {}}},
        {"widths": {"110": {"open": ["servers", "right", 3, {}]}}},
        {"widths": {"140": {"open": {"servers": 1}, "servers": True, "right": -4}}},
        {"widths": {"140": {"open": ["servers", "right"], "servers": 10**9, "right": 1000}}},
        {"widths": {"200": {"open": ["right"], "right": "12", "servers": 2.5}}},
    ],
)
def test_no_saved_layout_takes_the_chat_away(saved: object) -> None:
    layout = read_layout(saved)
    for width in range(80, 320):
        columns = layout.columns(width)
        assert columns.servers >= 0
        assert columns.right >= 0
        assert width - columns.servers - columns.right >= MIN_CHAT
