"""A question locks nothing else: it steps aside, and comes back as it was."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual import events
from textual.widgets import Input

from tests.support.waiting import PATIENCE
from tests.ui.consent.samples import SCHEMA, asked, trust
from tests.ui.consent.test_placing import LONG, WORDS, call
from tests.ui.consent.test_placing import events as until_asked
from tests.ui.harness import WIDE, Running, holds
from tests.ui.requests.samples import form
from tests.ui.shell import decks
from tests.ui.shell.test_tabs import B, begin_turn, press_and_see, strip, tabbed, type_at_once
from tui.model import events as e
from tui.model.chat import MAIN
from tui.model.consent import Choice, Decision
from tui.model.requests import PendingRequest
from tui.model.sessions import ConversationSelected
from tui.ui.commands.palette import DeckPalette
from tui.ui.dialogs.model_setup import ModelScreen
from tui.ui.messages import PaneName
from tui.ui.questions import arming
from tui.ui.questions.address import LinkScreen
from tui.ui.questions.calls.steps import WITHDRAWN, EditArgumentsScreen
from tui.ui.questions.question import Question
from tui.ui.widgets.chat.composer import Composer
from tui.ui.widgets.chat.transcript import Transcript

LINE = "A question is waiting: F8"


@asynccontextmanager
async def opened(*requests: PendingRequest) -> AsyncIterator[tuple[Running, Question[Any]]]:
    """Run the app with questions, the first on the screen and armed."""
    async with tabbed(decks.full_store(), WIDE) as deck:
        for request in requests:
            deck.dispatch(e.RequestRaised(request))
        yield deck, await question(deck)


async def question(deck: Running) -> Question[Any]:
    """Wait until a question takes answers."""
    await deck.until(lambda: isinstance(deck.app.screen, Question) and deck.app.screen.armed)
    assert isinstance(deck.app.screen, Question)
    return deck.app.screen


async def put_away(deck: Running, key: str = "f6") -> None:
    await deck.press(key)
    await deck.until(lambda: LINE in deck.text)
    assert len(deck.app.screen_stack) == 1


async def bring_back(deck: Running, asks: Question[Any]) -> None:
    await deck.press("f8")
    assert await question(deck) is asks


def values(deck: Running) -> list[str]:
    """Give what stands in the fields on the screen."""
    return [field.value for field in deck.app.screen.query(Input)]


def answers(deck: Running) -> list[object]:
    return [arguments[1] for arguments in deck.asked("desk.answer")]


async def test_keys_of_panes_dialogs_and_searches_put_it_away_and_do_what_they_say() -> None:
    async with opened(asked()) as (deck, asks):
        for key, has_happened in {
            "f2": lambda: deck.app.deck.place is PaneName.SERVERS,
            "f3": lambda: deck.app.deck.place is PaneName.TOOLS,
            "f7": lambda: deck.app.deck.place is PaneName.ACTIVITY,
            "f6": lambda: deck.one(Composer).has_focus,
            "ctrl+r": lambda: deck.one(Composer).searching,
            "ctrl+p": lambda: deck.on_top(DeckPalette),
            "f9": lambda: deck.on_top(ModelScreen),
        }.items():
            await deck.press(key)
            await deck.until(has_happened)
            if len(deck.app.screen_stack) > 1 or key == "ctrl+r":
                await deck.press("escape")
            await deck.until(lambda: LINE in deck.text)
            await deck.press("f1", "escape")
            assert len(deck.app.screen_stack) == 1, "it comes when it is asked for"
            await bring_back(deck, asks)
        type_at_once(deck, "f2", "f8", "f3", "alt+2", "f8")
        await deck.until(lambda: not asks.armed)
        assert await question(deck) is asks
        await put_away(deck)
        row = next(n for n, line in enumerate(deck.lines) if LINE in line)
        await deck.pilot.click(offset=(deck.lines[row].index(LINE) + 2, row))
        assert await question(deck) is asks
        assert answers(deck) == []


async def test_it_comes_back_at_another_size_with_what_was_read_and_takes_no_key_before() -> None:
    async with opened(LONG) as (deck, asks):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(arming, "ARMING_SECONDS", PATIENCE)  # for which the answer is held
            await deck.press("end", "o")
            assert holds(deck.app)
            at = asks.reading.main.scroll_y
            await put_away(deck, "f2")
        await deck.resize(80, 24)
        assert answers(deck) == []
        # Typed before it has come, however late they are handled.
        early = [events.Key("o", "o"), events.Key("enter", "\r"), events.Key("o", "o")]
        await deck.pilot.press("f8")
        for key in early:
            deck.app.post_message(key)
        assert await question(deck) is asks
        assert asks.reading.main.scroll_y >= at > 0
        assert asks.frame.region.bottom <= 24
        assert asks.frame.region.width <= 80
        assert "more line" not in deck.text
        assert answers(deck) == []
        await deck.press("o")
        await deck.until(lambda: answers(deck) == [Decision(Choice.ONCE)])


async def test_what_was_typed_in_a_form_or_an_editor_comes_back() -> None:
    async with opened(form()) as (deck, asks):
        field = asks.query(Input).first()
        field.focus()
        await deck.press(*"half a")
        written = field.value
        await put_away(deck, "f2")
        await bring_back(deck, asks)
        assert field.value == written
        assert "half a" in written
        assert deck.focus is field
        await deck.happen(e.RequestSettled(form().id))
        deck.commands.offer(SCHEMA)
        deck.dispatch(e.RequestRaised(asked()))
        await question(deck)
        await deck.press("e")
        await deck.until(lambda: deck.on_top(EditArgumentsScreen) and deck.focus)
        await deck.press(*"dev")
        editor, edited = deck.app.screen, values(deck)
        assert any("dev" in value for value in edited)
        await put_away(deck, "f3")
        await deck.press("f8")
        await deck.until(lambda: deck.app.screen is editor)
        assert values(deck) == edited
        await deck.press("ctrl+s")
        called = await question(deck)
        assert "your edit" in deck.text
        await deck.press("e")
        await deck.until(lambda: deck.on_top(EditArgumentsScreen) and deck.focus)
        editor = deck.app.screen
        await put_away(deck, "f2")
        await deck.happen(e.RequestSettled(asked().id))
        await deck.until(lambda: not (editor.is_attached or called.is_attached))
        assert deck.said == WITHDRAWN
        assert LINE not in deck.text


async def test_esc_once_too_often_after_a_look_aside_brings_it_back_and_stops_nothing() -> None:
    async with opened(asked()) as (deck, asks):
        begin_turn(deck, MAIN)
        await deck.press("f3")
        await deck.until(lambda: LINE in deck.text)
        await deck.press("escape")
        await deck.until(lambda: deck.one(Composer).has_focus)
        await deck.press("escape")
        assert await question(deck) is asks
        assert deck.asked("conversations.current.cancel") == []
        await deck.happen(e.RequestSettled(asked().id))
        await deck.press("escape")
        await deck.until(lambda: deck.asked("conversations.current.cancel") == [()])


async def test_other_questions_wait_with_it_and_a_later_one_comes_by_itself() -> None:
    second = replace(form(), id=type(form().id)("second"))
    async with opened(form(), second) as (deck, asks):
        await put_away(deck)
        deck.dispatch(e.RequestRaised(asked()))
        called = await question(deck)
        assert called.request == asked()
        await put_away(deck)
        await deck.happen(e.RequestSettled(asked().id))
        await deck.until(lambda: not called.is_attached)
        assert len(deck.app.screen_stack) == 1
        await bring_back(deck, asks)
        await deck.happen(e.RequestSettled(form().id))
        assert (await question(deck)).request == second
        await put_away(deck)
        await deck.press("ctrl+q")
        assert not deck.app.is_running


async def test_it_stays_in_its_tab_and_comes_back_with_it() -> None:
    for request in (asked(), trust()):
        async with opened(request) as (deck, asks):
            await press_and_see(deck, "ctrl+t", B)
            is_of_a_tab = request.id == asked().id
            assert ("◆ asks" in strip(deck)) == is_of_a_tab
            await deck.press(*"text", "f2")
            await deck.until(lambda: "F8" in deck.text)
            assert len(deck.app.screen_stack) == 1
            await deck.press("alt+1")
            assert await question(deck) is asks
            assert deck.store.state.current == MAIN
            for tab in (B, MAIN):  # at once, before it could be told that it left
                deck.dispatch(ConversationSelected(tab))
                deck.app.bridge.update()
            assert await question(deck) is asks
            await press_and_see(deck, "alt+2", B)
            await deck.press("f8")
            assert await question(deck) is asks
            assert (deck.store.state.current == MAIN) == is_of_a_tab
            assert answers(deck) == []


async def test_the_question_on_a_link_closes_for_another_pane() -> None:
    async with tabbed(None, WIDE) as deck:
        deck.app.push_screen(LinkScreen("https://a.example", deck.commands))
        await deck.until(lambda: deck.on_top(LinkScreen))
        await deck.press("f2")
        assert deck.app.deck.place is PaneName.SERVERS
        assert LINE not in deck.text


async def test_what_led_to_it_scrolls_behind_it_by_keys_and_by_the_wheel() -> None:
    async with tabbed(None, WIDE) as deck:
        for event in until_asked(1):
            deck.dispatch(event)
        asks = await question(deck)
        assert WORDS in deck.text
        chat = deck.one(Transcript)
        at = chat.scroll_y
        await deck.press("shift+pageup")
        await deck.until(lambda: chat.scroll_y < at)
        assert WORDS not in deck.text
        await deck.press("shift+pagedown")
        await deck.until(lambda: WORDS in deck.text)
        x, y = chat.region.x + 3, chat.region.y + 1
        deck.app.post_message(events.MouseScrollUp(None, x, y, 0, 0, 0, False, False, False))
        await deck.until(lambda: 0 < at - chat.scroll_y < 5)
        await deck.resize(110, 36)
        await deck.until(lambda: asks.frame.region.right <= 110)
        assert chat.scroll_y < at, "what the user scrolled to stays"
        await deck.happen(e.RequestSettled(call(0).id))
        await deck.until(lambda: chat.scroll_y == chat.max_scroll_y)
