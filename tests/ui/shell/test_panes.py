"""The panes: how one gets to them, and what a narrow terminal shows."""

from time import monotonic

import anyio
import pytest
from textual.widget import Widget
from textual.widgets import TextArea

from tests.support.samples import confirmation
from tests.ui.harness import NARROW, running, ticking
from tests.ui.requests.samples import FORM_ID, form
from tests.ui.shell import decks
from tui.model.chat import BackendKind, TurnPhase, Usage
from tui.model.events import RequestRaised, RequestSettled, ServerStatusChanged
from tui.model.servers import ServerStatus
from tui.model.trust import BranchRead, FolderTrust
from tui.ui.dialogs.details import HelpScreen
from tui.ui.main import MainScreen
from tui.ui.panes import PaneName
from tui.ui.panes.activity import ActivityPane
from tui.ui.panes.browser import PromptsPane, ToolsPane
from tui.ui.panes.chat import ChatPane
from tui.ui.panes.servers import ServersPane
from tui.ui.panes.servers_tree import ServersTree
from tui.ui.panes.side import SidePane
from tui.ui.questions.form import FormQuestion
from tui.ui.widgets.header import HeaderView, header_content
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


async def test_each_pane_key_shows_its_pane_and_gives_it_the_focus_and_escape_leaves_it() -> None:
    async with running(decks.full_store()) as deck:
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


@pytest.mark.parametrize(
    ("model", "backend", "words"),
    [
        ("gemini-x", BackendKind.VERTEX, "gemini-x Vertex "),
        ("gemma", BackendKind.GEMINI, "gemma Gemini "),
        ("demo", BackendKind.DEMO, "gemdeck   demo   "),
    ],
)
def test_the_header_names_the_service_unless_the_model_does(
    model: str, backend: BackendKind, words: str
) -> None:
    view = HeaderView(model, "~/s", FolderTrust.UNKNOWN, backend, Usage())
    text = header_content(view, 100).plain
    assert words in text
    assert text.casefold().count(backend.value.casefold()) == 1


async def test_the_header_counts_the_seconds_of_a_start_and_ticks_only_then() -> None:
    async with running(decks.new_store()) as deck:
        assert "reading settings" in deck.lines[0]
        decks.configure(deck.store)
        await deck.settle()
        assert "no servers" in deck.lines[0]
        before = ticking()
        decks.configure(deck.store, decks.server(decks.GIT))
        since = monotonic() - 12.9
        deck.dispatch(ServerStatusChanged(decks.GIT, ServerStatus.STARTING, since=since))
        await deck.until(lambda: "1 starting 12 s" in deck.lines[0])
        assert ticking() > before
        await deck.until(lambda: "1 starting 13 s" in deck.lines[0])
        await deck.happen(ServerStatusChanged(decks.GIT, ServerStatus.FAILED))
        assert "1 failed" in deck.lines[0]
        await deck.until(lambda: ticking() == before)


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
    view = HeaderView("m", "~/shop", FolderTrust.TRUSTED, BackendKind.DEMO, Usage(), branch="b" * 9)
    texts = [header_content(view, width).plain for width in range(50, 90)]
    assert any("bbb" in text for text in texts)
    assert all("~/shop " + "b" * 9 in text for text in texts if "bb" in text)
    assert any("~/shop (trusted)" in text for text in texts)


async def test_over_a_question_the_key_bar_lists_the_keys_that_work_there() -> None:
    async with running(decks.full_store()) as deck:
        deck.dispatch(RequestRaised(form()))
        await deck.until(lambda: deck.on_top(FormQuestion))
        await deck.settle()
        assert deck.lines[-1].split() == ["F1", "help", "^P", "palette", "^Q", "quit"]
        await deck.press("f2")
        assert deck.on_top(FormQuestion)
        await deck.press("f1")
        assert deck.on_top(HelpScreen)
        await deck.press("escape")
        deck.dispatch(RequestSettled(FORM_ID))
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


async def test_the_key_bar_names_the_panes_by_the_same_words_at_every_width() -> None:
    async with running(decks.full_store()) as deck:
        names = ("help", "palette", *(name.value for name in PaneName), "model", "quit")
        for width in (40, 60, 100, 200):
            await deck.resize(width, 24)
            bar = deck.lines[-1].replace(" ^", " F").strip().replace(" F", "\n").split("\n")
            shown = {part.strip().split(maxsplit=1)[1] for part in bar}
            assert shown <= set(names)
            if width >= 60:
                for key in ("F1 help", "^P palette", "F2 servers", "F6 chat", "^Q quit"):
                    assert key in deck.lines[-1], width
            if width >= 100:
                assert {name.value for name in PaneName} <= shown


async def test_a_click_on_a_shown_key_or_tab_presses_it() -> None:
    async with running(decks.full_store()) as deck:

        async def click(words: str) -> None:
            y = next(y for y, line in enumerate(deck.lines) if words in line)
            await deck.click(None, deck.lines[y].index(words) + 1, y)

        await click("F2 servers")
        assert isinstance(deck.focus, ServersTree)
        await click("restart all")
        assert deck.asked("servers.restart_all") == [()]
        await deck.press("f3")
        await click("v schema")
        assert "Schema" in str(deck.one(ToolsPane).details.content)
        await deck.press("enter")
        await click("Esc close")
        await deck.until(lambda: deck.on_top(MainScreen))
        side = deck.one(SidePane)
        await deck.click(SidePane, 3 + 7, 0)
        assert side.active is PaneName.PROMPTS
        await deck.click(SidePane, 3 + 27, 0)
        assert deck.one(ActivityPane).display
        assert not deck.one(PromptsPane).display


async def test_remapped_keys_work_and_are_shown() -> None:
    async with running(decks.full_store()) as deck:
        deck.app.set_keymap({"deck.servers": "f12", "servers.restart": "z"})
        await deck.press("f12")
        assert isinstance(deck.focus, ServersTree)
        await deck.press("z")
        assert [name for name, _ in deck.commands.calls] == ["servers.restart"]
        assert "F12 servers" in deck.lines[-1]
        await deck.press("f1")
        for _ in range(10):
            if "F12" not in deck.text:
                await deck.press("pagedown")
        assert "F12" in deck.text


async def test_a_call_that_is_asked_about_waits_for_the_user() -> None:
    async with running(decks.full_store()) as deck:
        decks.start_turn(deck.store)
        decks.change_phase(deck.store, TurnPhase.TOOLS)
        await deck.until(lambda: "Esc stops" in deck.text)
        deck.dispatch(RequestRaised(confirmation()))
        working = deck.one(ChatPane).working
        await deck.until(lambda: "waiting for your answer" in str(working.render()))
        assert "Esc stops" not in str(working.render())
