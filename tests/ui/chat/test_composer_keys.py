"""What comes back and waits, long pastes, and the keys that stop, clear, quit and leave alone."""

import re
import time
from typing import Final

import pytest
from textual import events
from textual.binding import Binding
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from tests.ui.hands import asking
from tests.ui.harness import ChatApp, afresh, chatting, running, screen_lines, toasts, until
from tests.ui.requests.samples import form
from tui.model import events as e
from tui.model.chat import MAIN, EntryId, TurnId, TurnOutcome, TurnPhase, UserMessage
from tui.model.requests import ReplyAction
from tui.store.store import Store
from tui.ui.widgets.chat.composer import (
    COUNT,
    FOLD_AT,
    FOLD_LINES,
    PASTE_TAIL,
    SHOWN,
    Composer,
    HistoryStorage,
)

USED_OTHERWISE: Final = {
    "up": "up",
    "down": "down",
    "ctrl+d": "end",
    "pageup": "scroll(-1)",
    "pagedown": "scroll(1)",
    "f6": "go('chat')",
    "f7": "go('activity')",
}
"""The keys of a text area that do something else in the composer, as the design has it."""


def started(text: str = "hello") -> e.TurnStarted:
    return e.TurnStarted(TurnId("t1"), UserMessage(EntryId("u1"), text), 0.0)


def unqueued(app: ChatApp) -> list[tuple[object, ...]]:
    """Give the arguments with which messages were taken out of the queue."""
    name = "conversations.current.unqueue"
    return [arguments for called, arguments in app.commands.calls if called == name]


async def test_the_composer_has_the_keys_of_a_text_area_but_those_of_the_design() -> None:
    expected = {
        key: USED_OTHERWISE.get(key, binding.action)
        for binding in TextArea.BINDINGS
        if isinstance(binding, Binding)
        for key in binding.key.split(",")
    }
    async with running(Store()) as deck:
        # No key of a text area is taken but those of the design.
        active = deck.app.screen.active_bindings
        assert deck.focus is deck.one(Composer)
        assert {key: active[key].binding.action for key in expected} == expected
        # What is typed right after ctrl c stays.
        deck.one(Composer).clear()
        composer = deck.one(Composer)
        await deck.press("tab", *"old", "tab")
        assert deck.focus is composer
        assert composer.text == "old"
        for key, character in (("ctrl+c", "\x03"), ("n", "n"), ("e", "e"), ("w", "w")):
            deck.app.post_message(events.Key(key, character))
        await deck.until(lambda: composer.text == "new")
        await deck.press("up")
        assert composer.text == "old"
        composer.clear()
        deck.store.dispatch(e.MessageReturned("my words"))
        await deck.until(lambda: composer.holds_returned)
        await deck.press("ctrl+c")
        assert (composer.text, deck.app.clipboard) == ("", ""), "what came back selected"
        # Ctrl d deletes to the right and in an empty message quits.
        deck.one(Composer).clear()
        await deck.press(*"ab", "home", "ctrl+d")
        assert deck.one(Composer).text == "b"
        await deck.press("ctrl+d", "ctrl+c", "ctrl+d")
        assert deck.app.return_code is None
        await deck.press("ctrl+d")
        assert deck.app.return_code == 0


@pytest.mark.parametrize("text", ["", "ab", "ab\n"])
async def test_every_key_that_edits_has_its_effect_on_the_last_line(text: str) -> None:
    """Textual's own deletion of a line ends at the beginning of the next, which is not there."""
    left = {"ctrl+x": text if "\n" in text else "", "ctrl+k": text}
    keys = [
        key for one in TextArea.BINDINGS if isinstance(one, Binding) for key in one.key.split(",")
    ]
    async with chatting() as (app, pilot):
        composer = app.chat.composer
        for key in [key for key in keys if key not in USED_OTHERWISE]:
            composer.text = text
            composer.move_cursor(composer.document.end)
            await pilot.press(key)
            assert composer.text == left.get(key, composer.text), key


@pytest.mark.parametrize("key", ["escape", "ctrl+c", "alt+up"])
async def test_what_is_sent_while_gemdeck_starts_stands_there_and_is_taken_back(key: str) -> None:
    async with running(Store()) as deck:
        deck.commands.is_ready = False
        deck.commands._publish = deck.store.dispatch
        await deck.until(lambda: "What would you like to do?" in deck.text)
        await deck.typed("an early question")
        await deck.until(lambda: "· an early question" in deck.text)
        assert "starting the model" in deck.text
        assert "What would you like to do?" not in deck.text
        await deck.press(key)
        await deck.until(lambda: deck.one(Composer).text == "an early question")
        assert "starting the model" not in deck.text
        assert "What would you like to do?" in deck.text
        await deck.typed("another")
        deck.commands.attach(deck.commands.running)
        assert deck.asked("messages.send") == [("another", MAIN)]


async def test_a_command_typed_while_gemdeck_starts_is_kept_or_comes_back() -> None:
    async with running(Store()) as deck:
        engine, deck.commands._engine = deck.commands.running, None
        deck.commands.is_ready = False
        deck.commands._publish = deck.store.dispatch
        for command in ("/compress", "/model gemini-x", "/mcp refresh", "/profile brief"):
            await deck.typed(command)
            assert deck.one(Composer).text == command
            assert "gemdeck is still starting" in deck.said
        await deck.typed("/stats")
        await deck.press("escape")
        assert deck.one(Composer).text == ""
        await deck.typed("/resume 2026")
        await deck.typed("/skill notes:tidy up")
        await deck.until(lambda: "· /skill notes:tidy up" in deck.text)
        deck.commands.attach(engine)
        assert deck.asked("sessions.resume") == [("2026",)]
        assert deck.asked("messages.send") == [("/skill notes:tidy up", MAIN)]


async def test_what_comes_back_or_waits_can_be_taken_back_and_typed_over() -> None:
    async with chatting() as (app, pilot):
        # What comes back is selected and replaced by typing or sent again.
        app.start_turn("my words")
        app.store.dispatch(e.TurnFinished(TurnId("t1"), TurnOutcome.FAILED, "my words"))
        await until(pilot, lambda: "Your message is back" in "\n".join(screen_lines(app)))
        assert app.chat.composer.selected_text == "my words"
        await pilot.press("enter")
        await until(pilot, lambda: app.commands.acts == [("messages.send", ("my words",))])
        assert "is back" not in "\n".join(screen_lines(app))
        app.store.dispatch(e.MessageReturned("my words"))
        await until(pilot, lambda: app.chat.composer.holds_returned)
        await pilot.press(*"other")
        assert app.chat.composer.text == "other"
        await until(pilot, lambda: "is back" not in "\n".join(screen_lines(app)))
        await pilot.press("ctrl+underscore", "ctrl+underscore")
        assert "my words" in app.chat.composer.text
        # What waits stands above the composer and is taken back or dropped.
        await afresh(app, pilot)
        app.start_turn()
        app.store.dispatch(e.QueueChanged(("first [b]one[/b]", "second", "third")))
        await until(pilot, lambda: "· third" in "\n".join(screen_lines(app)))
        assert "· first [b]one[/b]" in "\n".join(screen_lines(app))
        await pilot.press(*"draft", "alt+up")
        assert unqueued(app) == [("third", True)]
        app.store.dispatch(e.QueueChanged(("first [b]one[/b]", "second")))
        app.store.dispatch(e.MessageReturned("third"))
        await until(pilot, lambda: app.chat.composer.selected_text == "third")
        await pilot.press("home", "up")
        assert app.chat.composer.text == "draft"
        app.chat.queued.focus()
        await pilot.pause()
        await pilot.press("up", "delete")
        assert unqueued(app)[1:] == [("first [b]one[/b]", False)]
        app.store.dispatch(e.QueueChanged(("second",)))
        await until(pilot, lambda: app.chat.queued.option_count == 1)
        assert len(unqueued(app)) == 2
        app.store.dispatch(e.QueueChanged(()))
        await until(pilot, lambda: app.focused is app.chat.composer)
        assert not app.chat.queued.display
        # A wait for another try counts down and has keys.
        await afresh(app, pilot)
        app.start_turn()
        started_at = app.store.state.conversation.turn
        assert started_at is not None
        until_then = started_at.started_at + 61
        phase = e.TurnPhaseChanged(TurnId("t1"), TurnPhase.RETRYING, until=until_then)
        app.store.dispatch(phase)

        def words() -> str:
            return str(app.chat.working.render())

        def left() -> int:
            found = re.search(r"retrying in (\d+) ", words())
            return int(found[1]) if found else 0

        await until(pilot, left)
        first = left()
        assert "^s retry now  ^n give up" in words()
        await until(pilot, lambda: 0 < left() < first)
        await pilot.press("ctrl+s", "ctrl+n")
        assert app.commands.calls[-2:] == [
            ("send_without_waiting", ()),
            ("conversations.current.retry.end", (False,)),
        ]
        app.store.dispatch(e.TurnPhaseChanged(TurnId("t1"), TurnPhase.WAITING))
        await until(pilot, lambda: "never" not in words())
        # The path of a folder to add is completed step by step.
        await afresh(app, pilot)
        asked = app.commands.calls
        await pilot.press(*"/directory add ../n")
        await until(pilot, lambda: asked and asked[-1][0] == "features.complete_folder")
        token, typed = asked[-1][1]
        assert typed == "../n"
        app.store.dispatch(e.ArgumentCompleted(str(token), ("../my notes/", "../nodes/")))
        await until(pilot, lambda: len(app.chat.popup.rows) == 2)
        await pilot.press("tab")
        await until(pilot, lambda: app.chat.composer.text == "/directory add ../my notes/")
        await until(pilot, lambda: asked[-1][1][1] == "../my notes/")
        # Editing keys act in their order among letters that come at once.
        await afresh(app, pilot)
        app.chat.composer.focus()
        await pilot.pause()
        for key in ("x", "y", "ctrl+u", "a", "c", "backspace", "b", "left", "Z"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: app.chat.composer.text == "aZb")


async def test_ctrl_c_copies_else_stops_else_clears_else_quits_at_the_second_press() -> None:
    async with running(Store()) as deck:
        composer = deck.one(Composer)
        await deck.press(*"draft", "shift+home", "ctrl+c")
        assert deck.app.clipboard == "draft"
        deck.store.dispatch(started())
        await deck.press("end", "ctrl+c")
        assert deck.commands.acts == [("conversations.current.cancel", ())]
        deck.store.dispatch(e.TurnFinished(TurnId("t1"), TurnOutcome.CANCELLED))
        await deck.press("ctrl+c")
        assert composer.text == ""
        await deck.press("up")
        assert composer.text == "draft"
        await deck.press("ctrl+c", "ctrl+c")
        assert deck.said == "Press ^C again to quit."
        await deck.press("x", "ctrl+c", "ctrl+c")
        assert deck.app.return_code is None, "what was cleared between starts it anew"
        await deck.press("ctrl+c")
        assert deck.app.return_code == 0


async def test_ctrl_c_in_a_form_copies_what_is_selected_else_declines() -> None:
    async with asking(form()) as asked:
        await asked.arm()
        field = asked.one(Input)
        field.value = "some words"
        field.focus()
        field.select_all()
        await asked.pilot.press("ctrl+c")
        assert asked.app.clipboard == "some words"
        assert asked.replies == []
        await asked.press("home", "ctrl+c")
        await asked.until(lambda: len(asked.replies) == 1)
        assert asked.replies[0].action is ReplyAction.DECLINE


async def test_earlier_messages_are_searched_and_taken_not_sent() -> None:
    earlier = ["list the branches", "Branch [/x] off", "something else", "list the branches"]
    async with chatting(history=HistoryStorage(load=lambda: earlier)) as (app, pilot):
        await pilot.press(*"my draft", "home", "shift+end", "ctrl+r")
        await until(pilot, lambda: "Type to search" in "\n".join(screen_lines(app)))
        assert not app.chat.popup.display, "nothing contains the draft"
        await pilot.press(*"BRANCH")
        await until(pilot, lambda: len(app.chat.popup.rows) == 2)
        await pilot.press("ctrl+r", "enter")
        await until(pilot, lambda: app.chat.composer.text == "Branch [/x] off")
        assert "Type to search" not in "\n".join(screen_lines(app))
        assert app.commands.acts == []
        await pilot.press("ctrl+r", "escape", "enter")
        await until(pilot, lambda: app.commands.acts == [("messages.send", ("Branch [/x] off",))])


async def test_a_cleared_draft_is_not_kept_for_later_runs() -> None:
    kept: list[str] = []
    async with chatting(history=HistoryStorage(append=kept.append)) as (app, pilot):
        await pilot.press(*"secret")
        assert app.chat.interrupt()
        await pilot.press("up")
        assert app.chat.composer.text == "secret"
        assert kept == []


MILLION = 1_000_000

PASTES = {
    "a line": "x" * MILLION,
    "words": "word " * (MILLION // 5),
    "short lines": "line\n" * (MILLION // 5),
    "wide": "漢" * MILLION,
    "marks": "e\u0301" * (MILLION // 2),
}


MUCH = 10
"""Times the processor time of keys in a short text; in a million characters it were hundreds."""


async def paste(app: ChatApp, pilot: Pilot[None], text: str) -> None:
    before = len(app.chat.composer.text)
    app.post_message(events.Paste(text))
    await until(pilot, lambda: len(app.chat.composer.text) > before)


async def seconds_of_keys(pilot: Pilot[None]) -> float:
    """Type, correct and move; give the processor time of it."""
    await pilot.press("a")
    began = time.process_time()
    await pilot.press(*"typing on", "backspace", "left", "b", "end", "c", "home", "d")
    return time.process_time() - began


async def test_a_million_characters_are_typed_on_like_a_short_text_and_sent_whole() -> None:
    async with chatting() as (app, pilot):
        await paste(app, pilot, "short")
        short = await seconds_of_keys(pilot)
        for name, text in PASTES.items():
            app.chat.composer.clear()
            await paste(app, pilot, text)
            assert await seconds_of_keys(pilot) < MUCH * short, name
            app.chat.composer.clear()
            await paste(app, pilot, text)
            await pilot.press("e", "n", "d")
            await pilot.pause(2 * PASTE_TAIL)
            await pilot.press("enter")
            await until(pilot, lambda: app.commands.calls)
            assert app.commands.acts == [("messages.send", (f"{text}end".strip(),))], name
            assert app.chat.composer.text == ""
            app.commands.calls.clear()
            app.start_turn(text, name)
            assert await seconds_of_keys(pilot) < MUCH * short, name


async def test_many_pastes_on_one_line_are_no_long_line_either() -> None:
    async with chatting() as (app, pilot):
        pastes = [f"{number:03}" * 1_000 for number in range(COUNT + 5)]
        for one in pastes[:20]:
            await paste(app, pilot, one)
        assert len(app.chat.composer.text) < FOLD_AT
        assert app.chat.composer.message == "".join(pastes[:20])
        for one in pastes[20:]:
            await paste(app, pilot, one)
        assert app.chat.composer.message == "".join(pastes)


async def test_a_folded_paste_tells_its_size_and_is_passed_and_deleted_as_a_whole() -> None:
    async with chatting() as (app, pilot):
        composer = app.chat.composer
        chip = f"[{SHOWN} 1 line, 1,000 kB]"
        await pilot.press("a", " ")
        await paste(app, pilot, "x" * MILLION)
        await pilot.press("b")
        await until(pilot, lambda: f"a {chip}b" in str(composer.render_line(0).text))
        await pilot.press("left", "left", "c", "right", "d", "left", "left", "delete")
        assert composer.text == "a cdb"
        await pilot.press("ctrl+underscore")
        await pilot.press("right", "backspace")
        assert composer.text == "a cdb"
        await pilot.press("ctrl+underscore")
        assert composer.message == "a c" + "x" * MILLION + "db"
        before = composer.message
        await paste(app, pilot, "-" + "".join(chr(0xFDD0 + number) for number in range(COUNT)))
        assert len(composer.message) == len(before) + 1, "no paste brings a character of a chip"


async def test_the_last_line_end_of_a_paste_begins_no_line() -> None:
    async with chatting() as (app, pilot):
        await paste(app, pilot, "line\n" * 200)
        assert f"[{SHOWN} 200 lines, 1 kB]" in str(app.chat.composer.render_line(0).text)


async def test_a_folded_paste_opens_in_place_where_the_keys_say_so() -> None:
    lines = "\n".join(f"line {number}" for number in range(FOLD_LINES + 1))
    async with chatting(notifications=True) as (app, pilot):
        composer = app.chat.composer

        def offers() -> bool:
            hints = app.screen.active_bindings["tab"]
            return composer.action_label(hints.binding.action) == "open paste"

        await pilot.press("a", " ")
        await paste(app, pilot, lines)
        assert f"[{SHOWN} 21 lines, 1 kB]" in str(composer.render_line(0).text)
        await until(pilot, offers)
        await pilot.press("b")
        await until(pilot, lambda: not offers())
        await pilot.press("home", "right", "right")
        await until(pilot, offers)
        await pilot.press("tab")
        assert composer.text == composer.message == f"a {lines}b"
        await pilot.press("ctrl+underscore")
        assert composer.message == f"a {lines}b" != composer.text
        await pilot.pause(2 * PASTE_TAIL)
        await pilot.press("enter")
        await until(pilot, lambda: app.commands.acts == [("messages.send", (f"a {lines}b",))])
        await paste(app, pilot, "x" * MILLION)
        await pilot.press("tab")
        await until(pilot, lambda: "opens it in your editor" in str(toasts(app)))
        assert composer.message == "x" * MILLION != composer.text


async def test_what_is_cut_and_pasted_or_brought_back_is_whole() -> None:
    text = "x" * MILLION
    async with chatting() as (app, pilot):
        await paste(app, pilot, text)
        composer = app.chat.composer
        composer.select_all()
        composer.action_copy()
        assert app.clipboard == text
        composer.action_cut()
        assert app.clipboard == text
        assert composer.message == ""
        await composer.action_paste()
        assert composer.message == text
        await pilot.pause(2 * PASTE_TAIL)  # Enter at once would be the paste's
        composer.action_send()
        await until(pilot, lambda: app.commands.calls)
        await pilot.press("d")
        await paste(app, pilot, "y" * MILLION)
        await pilot.press("up")
        assert composer.message == text
        await pilot.press("down")
        assert composer.message == "d" + "y" * MILLION
