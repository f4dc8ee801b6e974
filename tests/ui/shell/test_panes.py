"""The panes: how one gets to them, what there is room for, and what is remembered of that."""

import re

import anyio
import pytest
from textual import events
from textual.widget import Widget
from textual.widgets import TextArea

from tests.support.samples import confirmation
from tests.ui.harness import NARROW, Running, running, toasts
from tests.ui.requests.samples import FORM_ID, form
from tests.ui.shell import decks
from tui.model import events as e
from tui.model.chat import BackendKind, ModelView, TurnPhase
from tui.model.events import BranchRead, TerminalSet
from tui.model.servers import ServerStatus
from tui.model.trust import FolderTrust
from tui.ui.dialogs.help import HelpScreen
from tui.ui.layout import MIN_CHAT, MIN_SIDE, Layout, Side, read_layout
from tui.ui.main import MainScreen
from tui.ui.messages import PaneName
from tui.ui.panes.activity import ActivityPane
from tui.ui.panes.browser import PromptsPane, ToolsPane
from tui.ui.panes.chat import ChatPane
from tui.ui.panes.row import PaneRow
from tui.ui.panes.servers import ServersPane
from tui.ui.panes.servers_tree import ServersTree
from tui.ui.panes.side import SidePane
from tui.ui.questions.form import FormQuestion
from tui.ui.themes import UiPreferences
from tui.ui.widgets.chat.composer import Composer
from tui.ui.widgets.header import header_content
from tui.ui.widgets.lists.filter_list import FilterLine
from tui.ui.widgets.lists.log_view import LogView
from tui.ui.widgets.lists.row_list import RowList

KEYS: list[tuple[str, type[Widget], type[Widget]]] = [
    *(("f2", ServersPane, ServersTree), ("f3", SidePane, RowList), ("f4", SidePane, RowList)),
    *(("f5", SidePane, RowList), ("f6", ChatPane, TextArea), ("f7", SidePane, LogView)),
]


async def test_a_narrow_terminal_shows_one_pane_over_its_whole_width_and_a_wide_one_all() -> None:
    async with running(decks.full_store(), (79, 24)) as deck:
        assert deck.one(ChatPane).region.width == 79
        assert not deck.one(ServersPane).display
        await deck.press("f2")
        assert deck.one(ServersPane).region.width == 79
        assert not deck.one(ChatPane).display
        await deck.press("escape")
        assert isinstance(deck.focus, TextArea)
        assert deck.one(ChatPane).region.width == 79
        await deck.press("f3")
        await deck.resize(150, 40)
        assert all(deck.one(pane).display for pane in (ServersPane, ChatPane, SidePane))
        await deck.resize(79, 24)
        assert deck.one(SidePane).display
        assert not deck.one(ChatPane).display
        for size in [(1, 1), (3, 2), (20, 5), (110, 3), (109, 40), (120, 36)]:
            await deck.resize(*size)
        assert "gemdeck" in deck.lines[0], "the app survives terminals of almost no size"


def test_the_header_names_the_service_unless_the_model_does() -> None:
    for model, backend, words in (
        ("gemini-x", BackendKind.VERTEX, "gemini-x Vertex "),
        ("gemma", BackendKind.GEMINI, "gemma Gemini "),
        ("demo", BackendKind.DEMO, "gemdeck   demo   "),
    ):
        text = header_content(decks.headed(ModelView(model, backend)), 100).plain
        assert words in text
        assert text.casefold().count(backend.value.casefold()) == 1, model


async def test_the_header_names_model_folder_servers_and_tokens_once_each() -> None:
    store = decks.full_store()
    store.dispatch(BranchRead("next"))
    async with running(store, (160, 36)) as deck:
        header = deck.lines[0]
        for word in ("gemdeck", "gemini-3.8-flash", "~/shop next (trusted)", "2 ready · 1 failed"):
            assert header.count(word) == 1
        assert header.rstrip().endswith("12.4k of 1M tokens")
        assert "Gemini" not in header, "the model's name tells its service"
        await deck.resize(*NARROW)
        assert "2 ready · 1 failed · +3   12.4k tokens" in deck.lines[0]


def test_the_branch_goes_before_the_path_is_cut() -> None:
    model = ModelView("m", BackendKind.DEMO)
    state = decks.headed(model, folder_trust=FolderTrust.TRUSTED, branch="b" * 9)
    texts = [header_content(state, width).plain for width in range(50, 90)]
    assert any("bbb" in text for text in texts)
    assert all("~/shop " + "b" * 9 in text for text in texts if "bb" in text)
    assert any("~/shop (trusted)" in text for text in texts)


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


async def test_the_foot_shows_what_can_be_done_here_and_the_borders_name_the_panes() -> None:
    async with running(decks.full_store(), (40, 24)) as deck:
        for width in (40, 60, 80, 120, 140, 200):
            await deck.resize(width, 24)
            for key, foot, most in (
                ("f6", ["↵ send", "F1 help"], 5),
                ("f2", ["↵ details", "Esc chat", "F1 help"], 7),
                ("f3", ["↵ run", "Esc chat", "F1 help"], 7),
            ):
                if not isinstance(deck.focus, TextArea) or key != "f6":
                    await deck.press(key)
                shown = deck.lines[-1]
                assert all(words in shown for words in foot), (key, shown)
                assert sum(shown.count(hint) for hint in ("F2", "F3", "F4", "F5", "F6", "F7")) == 0
                assert len(re.findall(r"(?:^| )(?:\^?\S|F1|Esc|Shift\+Tab) \w", shown)) <= most
                if deck.one(SidePane).display:
                    title = deck.lines[1][deck.one(SidePane).region.x :]
                    assert re.findall(r"\w+", title) in (
                        ["Tools", "Prompts", "Resources", "Activity"],
                        ["Tools", "Prompts", "Res", "Act"],
                    )
                if deck.one(ChatPane).display:
                    border = deck.lines[-2]
                    assert ("F2 servers" in border) != deck.one(ServersPane).has_focus_within
                    assert ("F3 tools" in border) != deck.one(SidePane).has_focus_within
                    assert ("F3 hide" in border) == deck.one(SidePane).has_focus_within


async def test_a_key_without_effect_says_why_and_narrow_tabs_have_short_names() -> None:
    async with running(decks.full_store(), (80, 24)) as deck:
        # A key that does nothing says why but not while one types.
        for keys, words in (
            (("f2", "home", "a"), "git runs as a command and needs no sign-in."),
            (("down", "down", "down", "down", "down", "r"), "legacy is disabled: enable it first."),
            (("down", "x"), "team-notes is untrusted: review this folder first."),
            (("%",), "% does nothing here: F1 shows the keys"),
            (("ctrl+pagedown",), "This is the only tab."),
            (("alt+7",), "There is no tab 7."),
            (("f3", "down", "z"), "z does nothing here: F1 shows the keys"),
            (("f5", "down", "down", "w"), "Open the template and fill it in first."),
            (("f7", "e"), "No log level can be set for all servers."),
        ):
            await deck.press(*keys)
            assert words in deck.lines[-1], keys
        assert not toasts(deck.app)
        await deck.press("f6")
        assert "↵ send" in deck.lines[-1], "another place takes the words away"
        await deck.press("h", "i", "f12", "escape")
        assert "↵ send" in deck.lines[-1]
        await deck.press("alt+m")
        assert "Alt+m does nothing here: F1 shows the keys" in deck.lines[-1]
        await deck.press("backslash", "enter", "x")
        assert deck.one(Composer).text == "hi\nx", "as in gemini-cli"
        # Tabs without room for their names have the beginnings of them.
        await deck.afresh()
        await deck.press("f4")
        assert "Tools  Prompts  Res…  Act…" in deck.lines[1]
        await deck.click(SidePane, deck.lines[1].index("Act…") - 48, 0)
        assert deck.one(SidePane).active is PaneName.ACTIVITY


async def test_remapped_keys_work_and_are_shown() -> None:
    async with running(decks.full_store()) as deck:
        keys = {"deck.servers": "f12", "servers.restart": "z", "tools.review": "b"}
        keys["app.help"] = "f11"
        deck.dispatch(TerminalSet(bell=True, title=False, keys=keys))
        await deck.settle()
        await deck.press("f12")
        assert isinstance(deck.focus, ServersTree)
        await deck.press("z")
        assert [name for name, _ in deck.commands.calls] == ["servers.restart"]
        await deck.press("f12")
        assert "F12 servers" in deck.lines[-2]
        await deck.press("f12", "question_mark")
        here = [line for line in deck.lines if "│  F12" in line or "│  z  " in line]
        assert ["Restart the server" in line for line in here] == [True, False], deck.text
        await deck.press("escape", "f3", "v")
        assert "Schema" in str(deck.one(ToolsPane).details.content), "it shared a key with another"
        await deck.press("ctrl+p", *"manual")
        assert any(re.search(r"Help .* F11 ", line) for line in deck.lines)
        await deck.press("escape", "f12", "f12")
        assert "F12 servers" in deck.lines[-2]
        deck.dispatch(TerminalSet(bell=True, title=False, keys={}))
        await deck.settle()
        await deck.press("f2", "f2")
        assert "F2 servers" in deck.lines[-2]


@pytest.mark.parametrize("phase", [TurnPhase.SERVERS, TurnPhase.ASKING, TurnPhase.TOOLS])
async def test_a_turn_whose_user_is_asked_waits_for_them(phase: TurnPhase) -> None:
    async with running(decks.full_store()) as deck:
        decks.start_turn(deck.store)
        decks.change_phase(deck.store, phase)
        await deck.until(lambda: "Esc stop" in deck.text)
        deck.dispatch(e.RequestRaised(confirmation()))
        working = deck.one(ChatPane).working
        await deck.until(lambda: "waiting for you" in str(working.render()))
        assert "Esc stop" not in str(working.render())


async def test_escape_leads_from_waiting_messages_to_the_composer_and_stops_nothing() -> None:
    async with running(decks.full_store()) as deck:
        decks.start_turn(deck.store)
        deck.dispatch(e.QueueChanged(("first", "second")))
        chat = deck.one(ChatPane)
        await deck.until(lambda: chat.queued.option_count == 2)
        chat.queued.focus()
        await deck.until(lambda: deck.focus is chat.queued)
        await deck.press("escape")
        await deck.until(lambda: deck.focus is chat.composer)
        assert not deck.asked("conversations.current.cancel")


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
        for width in (80, 109, 110, 139, 300):
            await deck.resize(width, 36)
            for key in ("f2", "f3", "f6", "f7"):
                await deck.press(key)
                assert shares(deck)[1] >= width * 0.6, (width, key)
                assert sum(shares(deck)) == width
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


async def test_sides_show_hide_and_give_back_their_room_by_keys_and_clicks() -> None:
    async with running(decks.full_store()) as deck:
        # A side that took the room of the other gives it back.
        before = shares(deck)
        await deck.press("f3")
        assert shares(deck)[0] == 0
        await deck.press("f3")
        assert shares(deck) == before
        line = deck.lines[-2]
        assert line.rstrip("─╯ ").endswith("F3 tools  F4 prompts  F5 resources  F7 activity")
        await deck.click(None, line.index("F4") + 1, len(deck.lines) - 2)
        assert deck.one(SidePane).active is PaneName.PROMPTS
        assert shares(deck)[2]
        await deck.press("f3")
        assert deck.one(SidePane).active is PaneName.TOOLS
        assert shares(deck)[2], "another pane of the same side is shown, not hidden"
        # Each pane key shows its pane and gives it the focus and escape leaves it.
        await deck.afresh()
        assert isinstance(deck.focus, TextArea), "typing starts in the chat"
        for key, pane, focused in KEYS:
            await deck.press(key)
            focus = deck.focus
            assert isinstance(focus, focused), key
            assert pane in [type(node) for node in focus.ancestors], key
            assert deck.one(pane).region.area > 0, key
            if pane is not ChatPane:
                await deck.press("escape")
                assert isinstance(deck.focus, TextArea), key
        await deck.press("f3", "slash", "e", "c", "escape")
        assert deck.one(FilterLine).value == "", "it clears a filter before it leaves the pane"
        assert isinstance(deck.focus, RowList)
        await deck.press("escape")
        assert isinstance(deck.focus, TextArea)
        # A click on a shown key or tab presses it.
        await deck.afresh()

        async def click(words: str) -> None:
            y = next(y for y, line in enumerate(deck.lines) if words in line)
            await deck.click(None, deck.lines[y].index(words) + 1, y)

        await deck.press("f2")
        await click("r restart")
        assert deck.asked("servers.restart") == [("search",)]
        await deck.press("f3")
        await click("v schema")
        assert "Schema" in str(deck.one(ToolsPane).details.content)
        await deck.press("enter")
        await deck.until(lambda: "Esc back" in deck.text)
        await click("Esc back")
        await deck.until(lambda: deck.on_top(MainScreen))
        side = deck.one(SidePane)
        await deck.click(SidePane, 3 + 7, 0)
        assert side.active is PaneName.PROMPTS
        await deck.click(SidePane, 3 + 27, 0)
        assert deck.one(ActivityPane).display
        assert not deck.one(PromptsPane).display
        # Over a question the key bar lists the keys that work there.
        await deck.afresh()
        deck.dispatch(e.RequestRaised(form()))
        await deck.until(lambda: deck.on_top(FormQuestion))
        await deck.settle()
        without = deck.lines[-1]
        assert without.strip() == "^O last result  ^T tab  ^P all actions  F1 help"
        await deck.press("f1")
        assert deck.on_top(HelpScreen)
        await deck.press("escape")
        deck.dispatch(e.RequestSettled(FORM_ID))
        await deck.until(lambda: deck.on_top(MainScreen))
        await deck.settle()
        assert "↵ send" in deck.lines[-1]


async def test_the_widths_of_panes_follow_keys_and_mouse_and_the_chat_can_stand_alone() -> None:
    async with running(decks.full_store(), (160, 36)) as deck:
        # The chat stands alone and the rest comes back.
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
        # Keys move the border of the focused pane.
        await deck.afresh()
        for keys, pane, left in ((["f2"], 0, -2), (["f6", "shift+tab"], 0, -2), (["f3"], 2, 2)):
            await deck.press(*keys)
            width = shares(deck)[pane]
            await deck.press("alt+left")
            assert shares(deck)[pane] == width + left, keys
            await deck.press("alt+right", "alt+right")
            assert shares(deck)[pane] == width - left, keys
        # A border follows the mouse and hides no pane until a question ends the drag.
        await deck.afresh()
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
        assert deck.app.mouse_captured is deck.one(PaneRow)
        await deck.press("f1")
        assert deck.app.mouse_captured is None


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


async def test_much_room_is_used() -> None:
    async with running(decks.full_store(), (200, 50)) as deck:
        await deck.press("f3")
        row = next(line for line in deck.lines if "branch_list" in line)
        assert "  branch_list       List the branches of a repo…" in row
        pane = deck.one(ServersPane)
        assert pane.scroller.region.bottom == pane.content_region.bottom
        assert "connection refused" in str(pane.details.content)
        await deck.press("f2", "f2", "f3")
        details = deck.one(ToolsPane).scroller.region
        assert details.x > deck.one(RowList).region.x, "beside the list"
        assert details.width > 30
        assert details.height > 40
        await deck.resize(140, 36)
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
        columns = layout.columns(width).values()
        assert min(columns) >= 0
        assert width - sum(columns) >= MIN_CHAT


async def test_the_header_counts_servers_once_the_settings_are_read() -> None:
    async with running(decks.new_store()) as deck:
        assert "loading settings" in deck.lines[0]
        decks.configure(deck.store)
        await deck.settle()
        assert "no servers" in deck.lines[0]
        decks.configure(deck.store, decks.server(decks.GIT))
        await deck.happen(e.ServerStatusChanged(decks.GIT, ServerStatus.FAILED))
        assert "1 failed" in deck.lines[0]
