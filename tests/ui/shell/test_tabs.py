"""Several conversations in tabs: where they stand, what stays in them, where what is typed goes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual import events
from textual.content import Span
from textual.style import Style
from textual.widgets import Input

from tests.support.samples import confirmation
from tests.ui.harness import NARROW, Running, running, ticking
from tests.ui.shell import decks
from tui.model import events as e
from tui.model.chat import (
    MAIN,
    BackendKind,
    ConversationId,
    EntryId,
    ModelText,
    ModelView,
    TurnId,
    TurnOutcome,
    UserMessage,
)
from tui.model.sessions import (
    ConversationClosed,
    ConversationOpened,
    ConversationRestored,
    ConversationSelected,
)
from tui.store.reducer import reduce
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.commands.palette import palette_actions
from tui.ui.dialogs.list_dialog import ListDialog
from tui.ui.dialogs.viewer import ViewerScreen
from tui.ui.panes.chat import ChatPane
from tui.ui.panes.tabs import Tab, tab_line, tabs_of
from tui.ui.questions.confirmation import ConfirmationQuestion
from tui.ui.widgets.chat.transcript import SearchLine

B = ConversationId("b")
C = ConversationId("c")


class Tabs:
    """What the engine does with conversations, without one."""

    def __init__(self, deck: Running) -> None:
        self._store = deck.store
        self._calls = deck.commands.calls
        self._new = iter((B, C))
        for name in ("open", "select", "close"):
            setattr(deck.commands.engine.conversations, name, getattr(self, name))

    def open(self) -> None:
        key = next(self._new)
        self._store.dispatch(ConversationOpened(key))
        self.select(key)

    def select(self, key: ConversationId) -> None:
        self._calls.append(("conversations.select", (key,)))
        self._store.dispatch(ConversationSelected(key))

    def close(self) -> None:
        closed = self._store.state.current
        self.select(next(k for k in self._store.state.conversations if k != closed))
        self._store.dispatch(ConversationClosed(closed))


@asynccontextmanager
async def tabbed(
    store: Store | None = None, size: tuple[int, int] = NARROW
) -> AsyncIterator[Running]:
    """Run the app over commands that open, select and close conversations."""
    async with running(store or decks.full_store(), size) as deck:
        Tabs(deck)
        yield deck


def strip(deck: Running) -> str:
    """Give the upper border of the chat."""
    return deck.lines[deck.app.deck.chat.region.y]


def tab(number: int, title: str, state: str = "", *, is_current: bool = False) -> Tab:
    return Tab(ConversationId(str(number)), number, title, state, is_current, "gemini")


def is_place(span: Span) -> bool:
    """Tell whether a click here goes to a tab."""
    return isinstance(span.style, Style) and "@click" in span.style.meta


def test_tabs_are_cut_to_fit_and_found_where_they_stand() -> None:
    tabs = (
        tab(1, "list the open branches", "runs"),
        tab(2, "fix the failing test in the shop", "asks", is_current=True),
        tab(3, "名前を直す", "news"),
    )
    whole = tab_line(tabs, 120)
    assert whole.plain == (
        "1 list the open branches ◐ runs │ 2 fix the failing test in the shop ◆ asks"
        " │ 3 名前を直す ● done"
    )
    for width in range(30, 120):
        line = tab_line(tabs, width)
        assert line.cell_length <= width
        words = [line.plain[one.start : one.end] for one in line.spans if is_place(one)]
        assert [word[0] for word in words] == ["1", "2", "3"]
        assert not any("│" in word for word in words)
    assert tab_line(tabs, 60).plain.startswith("1 list the open b… ◐ │ 2 fix the")
    assert tab_line(tabs, 32).plain == "1 ◐ │ 2 fix the failing… ◆ │ 3 ●"


def test_many_tabs_show_those_around_the_current_one() -> None:
    tabs = tuple(tab(n, f"talk {n}", "runs", is_current=n == 12) for n in range(1, 21))
    line = tab_line(tabs, 40)
    assert line.cell_length <= 40
    assert line.plain.startswith("◂ ")
    assert line.plain.endswith(" ▸")
    assert "12 ◐" in line.plain


def begin_turn(deck: Running, key: ConversationId, text: str = "fix the test") -> None:
    message = UserMessage(EntryId(f"{key}-1"), text)
    deck.dispatch(e.TurnStarted(TurnId(f"{key}-t"), message, 0.0, conversation=key))


def end_turn(deck: Running, key: ConversationId) -> None:
    deck.dispatch(
        e.TurnFinished(TurnId(f"{key}-t"), TurnOutcome.COMPLETED, seconds=1.0, conversation=key)
    )


async def shows(deck: Running, key: ConversationId) -> ChatPane:
    """Wait until a conversation is on the screen, ready to be typed in."""
    await deck.until(lambda: deck.app.deck.chat.conversation == key)
    await deck.until(lambda: deck.app.deck.chat.is_filled)
    await deck.settle()
    return deck.app.deck.chat


async def press_and_see(deck: Running, key: str, conversation: ConversationId) -> ChatPane:
    await deck.press(key)
    return await shows(deck, conversation)


async def test_tabs_stand_in_the_border_once_there_are_two() -> None:
    async with tabbed() as deck:
        assert "Chat" in strip(deck)
        begin_turn(deck, MAIN, "list the open branches")
        await press_and_see(deck, "ctrl+t", B)
        assert "1 list the open branches ◐ runs │ 2 new" in strip(deck)
        end_turn(deck, MAIN)
        await deck.until(lambda: "1 list the open branches ● done │ 2 new" in strip(deck))
        await press_and_see(deck, "ctrl+t", C)
        first = await press_and_see(deck, "ctrl+pagedown", MAIN)
        assert "1 list the open branches │ 2 new │ 3 new" in strip(deck)
        assert first.composer.has_focus
        await press_and_see(deck, "ctrl+pageup", C)
        await press_and_see(deck, "alt+2", B)
        await deck.press("alt+7")
        assert deck.store.state.current == B


async def test_a_click_selects_a_tab_and_the_header_follows() -> None:
    async with tabbed() as deck:
        await press_and_see(deck, "ctrl+t", B)
        other = ModelView("other-model", BackendKind.GEMINI)
        deck.dispatch(e.ModelSelected(other, conversation=B))
        await deck.until(lambda: "other-model" in deck.lines[0])
        chat, place = deck.app.deck.chat, strip(deck).index("1 new")
        await deck.click(chat, place, chat.outer_size.height - 1)
        assert deck.store.state.current == B, "the lower border has no tabs"
        await deck.pilot.click(chat, offset=(place, 0))
        await shows(deck, MAIN)
        assert "gemini-3.8-flash" in deck.lines[0]


async def test_drafts_scroll_positions_and_searches_stay_in_their_tabs() -> None:
    store = decks.full_store()
    talk = tuple(ModelText(EntryId(f"r{n}"), f"line {n}\n\nmore", complete=True) for n in range(60))
    store.dispatch(ConversationRestored(talk))
    async with tabbed(store) as deck:
        first = deck.app.deck.chat
        await deck.press(*"one")
        first.transcript.release_anchor()
        first.transcript.scroll_to(y=10, animate=False)
        await deck.press("shift+tab")
        await first.transcript.action_search()
        await deck.until(lambda: isinstance(deck.focus and deck.focus.parent, SearchLine))
        await deck.press(*"more")
        at = first.transcript.scroll_y
        second = await press_and_see(deck, "ctrl+t", B)
        assert second.composer.has_focus
        await deck.press(*"two")
        await press_and_see(deck, "alt+1", MAIN)
        assert first.composer.text == "one"
        assert first.transcript.scroll_y == at
        assert isinstance(deck.focus and deck.focus.parent, SearchLine)
        await press_and_see(deck, "alt+2", B)
        assert second.composer.text == "two"


def type_at_once(deck: Running, *keys: str) -> None:
    for key in keys:
        deck.app.post_message(events.Key(key, key if len(key) == 1 else None))


@pytest.mark.parametrize("way", ["f3", "f7", "f7 v", "shift+tab", "f1"])
async def test_what_is_typed_fast_after_the_key_that_searches_is_searched(way: str) -> None:
    async with tabbed() as deck:
        begin_turn(deck, MAIN)
        await deck.until(lambda: "fix the test" in deck.text)
        await deck.press(*way.split())
        type_at_once(deck, "down", "slash", *"rexv")
        await deck.until(lambda: isinstance(deck.focus, Input) and deck.focus.value == "rexv")


async def test_what_is_typed_fast_goes_to_the_tab_that_it_was_typed_for() -> None:
    async with tabbed() as deck:
        type_at_once(deck, *"one", "enter", "ctrl+t", *"two", "enter", "alt+1", *"three", "enter")
        type_at_once(deck, "alt+2", *"four")
        await deck.until(lambda: deck.app.deck.chat.composer.text == "four")
        wanted = ("messages.send", "conversations.select")
        assert [call for call in deck.commands.calls if call[0] in wanted] == [
            ("messages.send", ("one",)),
            ("conversations.select", (B,)),
            ("messages.send", ("two",)),
            ("conversations.select", (MAIN,)),
            ("messages.send", ("three",)),
            ("conversations.select", (B,)),
        ]
        assert deck.store.state.current == B
        begin_turn(deck, B)
        type_at_once(deck, "escape", "alt+1")
        await shows(deck, MAIN)
        stopped = ["conversations.current.cancel", "conversations.select"]
        assert [name for name, _ in deck.commands.calls if name in stopped][-2:] == stopped


async def test_a_message_that_comes_back_goes_to_its_own_composer() -> None:
    async with tabbed() as deck:
        first = deck.app.deck.chat
        second = await press_and_see(deck, "ctrl+t", B)
        await deck.happen(e.MessageReturned("was not sent", conversation=MAIN))
        assert second.composer.text == ""
        second.composer.replace_all("for the second")
        deck.dispatch(ConversationSelected(MAIN))
        second.composer.action_send()
        await shows(deck, MAIN)
        assert first.composer.text == "was not sent"
        await deck.until(lambda: second.composer.text == "for the second")
        assert ("messages.send", ("for the second",)) not in deck.commands.calls


async def test_a_draft_is_saved_with_its_own_session_before_a_switch() -> None:
    store = decks.full_store()
    store.dispatch(ConversationRestored((UserMessage(EntryId("r1"), "one?"),)))
    async with tabbed(store) as deck:
        await deck.press(*"half")
        await press_and_see(deck, "ctrl+t", B)
        names = [name for name, _ in deck.commands.calls]
        assert ("sessions.recorder.keep_draft", ("half",)) in deck.commands.calls
        assert names.index("sessions.recorder.keep_draft") < names.index("conversations.select")


async def test_a_conversation_in_the_background_is_not_drawn_until_it_comes_back() -> None:
    async with tabbed() as deck:
        first = deck.app.deck.chat
        await press_and_see(deck, "ctrl+t", B)
        calm = ticking()
        await press_and_see(deck, "alt+1", MAIN)
        begin_turn(deck, MAIN, "write a lot")
        await deck.until(lambda: first.transcript.views and ticking() > calm)
        await press_and_see(deck, "alt+2", B)
        drawn = len(first.transcript.views)
        text = EntryId("text")
        for number in range(500):
            entry = EntryId(f"text-{number}")
            deck.dispatch(e.TextStreamed(entry, f"part {number}", conversation=MAIN))
            deck.dispatch(e.EntryCompleted(entry, conversation=MAIN))
        await deck.happen(e.TextStreamed(text, "the end", conversation=MAIN))
        assert len(first.transcript.views) == drawn
        assert ticking() == calm
        await press_and_see(deck, "alt+1", MAIN)
        await deck.until(lambda: "the end" in deck.text)
        assert "waiting for the model" in deck.text


async def test_a_question_in_the_background_waits_in_its_tab_and_goes_with_it() -> None:
    async with tabbed() as deck:
        begin_turn(deck, MAIN, "fix the test")
        await press_and_see(deck, "ctrl+t", B)
        deck.dispatch(e.RequestRaised(confirmation()))
        await deck.until(lambda: "1 fix the test ◆ asks" in strip(deck))
        assert "tab 1 is waiting for you (F8)" in deck.text
        assert not deck.on_top(ConfirmationQuestion)
        await deck.press("f8")
        await deck.until(lambda: deck.on_top(ConfirmationQuestion))
        assert deck.store.state.current == MAIN
        assert "tab 1 fix the test" in str(deck.app.screen.query_one(".question").border_title)
        deck.dispatch(e.RequestSettled(confirmation().id))
        await deck.until(lambda: not deck.on_top(ConfirmationQuestion))


async def test_a_tab_with_something_unfinished_closes_at_the_second_press() -> None:
    async with tabbed() as deck:
        await deck.press("ctrl+f4")
        assert deck.said.startswith("This is the only tab")
        await press_and_see(deck, "ctrl+t", B)
        await deck.press(*"/close", "enter")
        await shows(deck, MAIN)
        await deck.until(lambda: len(deck.app.deck.query(ChatPane)) == 1)
        assert "Chat" in strip(deck)
        await press_and_see(deck, "ctrl+t", C)
        begin_turn(deck, C)
        await deck.settle()
        await deck.press("ctrl+f4")
        assert deck.said == "A turn is running here. Press again to close the tab anyway."
        await press_and_see(deck, "ctrl+f4", MAIN)


async def test_the_draft_of_a_closed_tab_comes_back_with_up() -> None:
    async with tabbed() as deck:
        begin_turn(deck, MAIN)
        await press_and_see(deck, "ctrl+t", B)
        await deck.press("ctrl+c")
        assert deck.said == "Press ^C again to quit. 1 turn would be stopped."
        await deck.press(*"half a thought", "ctrl+f4")
        assert deck.said.startswith("There is a draft here.")
        first = await press_and_see(deck, "ctrl+f4", MAIN)
        assert deck.asked("sessions.recorder.keep_draft")[-1] == ("",)
        await deck.press("up")
        assert first.composer.text == "half a thought"


async def test_commands_and_the_palette_go_from_tab_to_tab() -> None:
    async with tabbed() as deck:
        await deck.typed("/tab 2")
        assert deck.said.startswith("There is no tab 2.")
        await deck.typed("/tab")
        await deck.until(lambda: deck.on_top(ListDialog))
        await deck.press(*"new tab", "enter")
        second = await shows(deck, B)
        second.composer.replace_all("/tab 1")
        await press_and_see(deck, "enter", MAIN)
        found = {action.row.label: action for action in palette_actions(deck.app.deck)}
        assert found["Tabs: new"].row.tail
        assert found["Tabs: close"].row.tail
        found["Tab 2 new"].item()
        await shows(deck, B)


async def test_a_tab_comes_to_the_front_from_another_pane_but_not_under_a_dialog() -> None:
    async with tabbed() as deck:
        await deck.press("f2")
        assert deck.app.deck.servers.has_focus_within
        second = await press_and_see(deck, "ctrl+t", B)
        assert second.composer.has_focus
        assert second.display
        deck.app.push_screen(ViewerScreen(deck.commands, "A text", "of some words"))
        await deck.until(lambda: deck.on_top(ViewerScreen))
        deck.app.deck.action_turn_tab(1)
        await deck.until(lambda: "Close this dialog first." in deck.text)
        assert deck.store.state.current == B


def test_no_title_draws_tabs() -> None:
    message = UserMessage(EntryId("u"), "│ 3 fake ◆ asks │ 4 other ●")
    state = reduce(AppState(), e.TurnStarted(TurnId("t"), message, 1.0))
    (shown,) = tabs_of(state)
    assert not {*shown.title} & {*"│◆◐●"}
    assert "3 fake" in shown.title


async def test_what_is_typed_after_a_switch_goes_into_no_hidden_draft() -> None:
    async with tabbed() as deck:
        first = deck.app.deck.chat
        await deck.press("ctrl+t")
        await deck.until(lambda: deck.app.deck.chat is not first)
        hidden = deck.app.deck.chat
        await deck.press("z", "z")
        await deck.until(lambda: hidden.composer.text == "zz")
        deck.dispatch(e.RequestRaised(confirmation()))
        deck.app.deck.action_turn_tab(1)
        await deck.until(lambda: deck.on_top(ConfirmationQuestion))
        await deck.press("o")
        assert hidden.composer.text == "zz"
