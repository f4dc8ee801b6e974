"""Long pastes: typed beside as quickly as beside a short text, and sent whole."""

import time

from textual import events
from textual.pilot import Pilot

from tests.ui.harness import ChatApp, chatting, toasts, until
from tui.ui.widgets.chat.composer import COUNT, FOLD_AT, PASTE_TAIL, SHOWN

MILLION = 1_000_000

PASTES = {
    "a line": "x" * MILLION,
    "words": "word " * (MILLION // 5),
    "short lines": "line\n" * (MILLION // 5),
    "wide": "漢" * MILLION,
    "marks": "e\u0301" * (MILLION // 2),
}


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
            assert await seconds_of_keys(pilot) < 3 * short, name
            app.chat.composer.clear()
            await paste(app, pilot, text)
            await pilot.press("e", "n", "d")
            await pilot.pause(2 * PASTE_TAIL)
            await pilot.press("enter")
            await until(pilot, lambda: app.commands.calls)
            assert app.commands.calls == [("messages.send", (f"{text}end".strip(),))], name
            assert app.chat.composer.text == ""
            app.commands.calls.clear()
            app.start_turn(text, name)
            assert await seconds_of_keys(pilot) < 3 * short, name


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


async def test_a_folded_paste_is_shown_told_and_deleted_as_one_character() -> None:
    async with chatting(notifications=True) as (app, pilot):
        await pilot.press("a", " ")
        await paste(app, pilot, "x" * MILLION)
        await pilot.press("b")
        await until(pilot, lambda: f"a {SHOWN}b" in str(app.chat.composer.render_line(0).text))
        assert toasts(app) == [f"{SHOWN} stands for 1,000,000 pasted characters."]
        await pilot.press("backspace", "backspace")
        assert app.chat.composer.message == "a "
        await pilot.press("ctrl+z")
        assert app.chat.composer.message.startswith("a " + "x" * MILLION)


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
        composer.action_paste()
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


async def test_a_paste_cannot_bring_a_character_that_stands_for_another() -> None:
    async with chatting() as (app, pilot):
        await paste(app, pilot, "x" * MILLION)
        await paste(app, pilot, "-" + "".join(chr(0xFDD0 + number) for number in range(COUNT)))
        assert app.chat.composer.message == "x" * MILLION + "-"
