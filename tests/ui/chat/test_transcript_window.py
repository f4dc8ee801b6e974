"""The part of a conversation that is mounted: opening, scrolling, following and walking it."""

from time import process_time

from tests.ui.chat.samples import call, conversation
from tests.ui.harness import chatting, until
from tui.model import events as e
from tui.model.chat import EntryId
from tui.store.state import TranscriptState
from tui.ui.widgets.chat.entries import EntryView
from tui.ui.widgets.chat.entry_window import MAX_ENTRIES, MAX_MOUNTED


async def test_ten_thousand_entries_open_quickly_and_mount_a_window() -> None:
    began = process_time()
    async with chatting(conversation(10_000), size=(120, 40)) as (app, pilot):
        await until(pilot, lambda: len(app.chat.transcript.views) > 0)
        assert process_time() - began < 3, "of processor time; about 0.4 s is measured"
        transcript = app.chat.transcript
        assert len(transcript.views) <= MAX_ENTRIES
        assert len(list(app.screen.walk_children())) < MAX_ENTRIES + 30
        assert transcript.views[-1].entry.id == "e9999"
        assert transcript.scroll_y == transcript.max_scroll_y
        await pilot.press("h", "i")
        assert app.chat.composer.text == "hi"


async def test_page_up_at_the_top_brings_in_earlier_entries_and_end_returns() -> None:
    async with chatting(conversation(400), size=(100, 30)) as (app, pilot):
        transcript = app.chat.transcript
        await until(pilot, lambda: transcript.max_scroll_y > 0)
        first = transcript.views[0]
        transcript.scroll_home(animate=False)
        await pilot.pause()
        top = first.region.y
        assert transcript.load_earlier()
        await until(pilot, lambda: transcript.views[0] is not first and first.region.y == top)
        for _ in range(20):
            transcript.load_earlier()
            await pilot.pause()
            assert len(transcript.views) <= MAX_MOUNTED
        assert transcript.views[0].entry.id == "e0"
        assert not transcript.load_earlier()
        await pilot.press("ctrl+end")
        await until(pilot, lambda: transcript.views[-1].entry.id == "e399")
        await until(pilot, lambda: transcript.scroll_y == transcript.max_scroll_y)
        assert len(transcript.views) <= MAX_ENTRIES


async def test_a_page_up_key_in_the_composer_scrolls_and_loads() -> None:
    async with chatting(conversation(300), size=(60, 40)) as (app, pilot):
        transcript = app.chat.transcript
        await until(pilot, lambda: transcript.max_scroll_y > 0)
        before = transcript.views[0]
        for _ in range(40):
            await pilot.press("pageup")
            if transcript.views[0] is not before:
                break
        assert transcript.views[0] is not before
        assert app.focused is app.chat.composer


async def test_the_end_is_followed_until_the_user_scrolls_up_and_then_nothing_moves() -> None:
    async with chatting(conversation(30), size=(100, 20)) as (app, pilot):
        transcript = app.chat.transcript
        app.start_turn()
        await until(pilot, lambda: len(transcript.views) == 31)
        app.store.dispatch(e.TextStreamed(EntryId("m"), "line\n\n" * 30))
        await until(pilot, lambda: len(transcript.views) == 32)
        await until(pilot, lambda: transcript.scroll_y == transcript.max_scroll_y)
        transcript.scroll_relative(y=-15, animate=False)
        await pilot.pause()
        position = transcript.scroll_y
        views = {view: view.region for view in transcript.views}
        app.store.dispatch(e.TextStreamed(EntryId("m"), "more\n\n" * 50))
        app.store.dispatch(e.ToolCallRequested(call()))
        app.store.dispatch(e.EntryCompleted(EntryId("m")))
        await until(pilot, lambda: len(transcript.views) == 33)
        await pilot.pause(0.1)
        assert transcript.scroll_y == position
        last = transcript.views[-2]
        assert all(view.region == region for view, region in views.items() if view is not last)
        await pilot.press("ctrl+end")
        await until(pilot, lambda: transcript.scroll_y == transcript.max_scroll_y)


async def test_following_a_burst_or_not_the_number_of_mounted_entries_is_bounded() -> None:
    async with chatting(conversation(100), size=(100, 30)) as (app, pilot):
        transcript = app.chat.transcript
        app.start_turn()
        await until(pilot, lambda: len(transcript.views) > 1)
        for number in range(100):
            app.store.dispatch(e.ToolCallRequested(call(number)))
            if number % 10 == 0:
                await pilot.pause(0.04)
        await until(pilot, lambda: transcript.views[-1].entry.id == "call99")
        assert len(transcript.views) <= MAX_ENTRIES
        await until(pilot, lambda: transcript.scroll_y == transcript.max_scroll_y)
        transcript.scroll_home(animate=False)
        await pilot.pause()
        for number in range(100, 300):
            app.store.dispatch(e.ToolCallRequested(call(number)))
        await until(pilot, lambda: transcript.later.display)
        assert len(transcript.views) <= MAX_MOUNTED
        transcript.focus()
        await pilot.press("end")
        await until(pilot, lambda: transcript.views[-1].entry.id == "call299")


async def test_the_cursor_walks_entries_and_another_conversation_takes_their_place() -> None:
    async with chatting(conversation(6)) as (app, pilot):
        transcript = app.chat.transcript
        await until(pilot, lambda: len(transcript.views) == 6)
        transcript.focus()
        await pilot.pause()
        assert transcript.cursor is transcript.views[-1]
        await pilot.press("up")
        assert transcript.cursor is transcript.views[-2]
        await pilot.press("c")
        assert app.clipboard == "question 4"
        await pilot.press("escape")
        await until(pilot, lambda: app.focused is app.chat.composer)
        other = conversation(3).conversation.transcript.settled
        transcript.show(TranscriptState(settled=other, epoch=1))
        await until(pilot, lambda: len(transcript.views) == 3)
        assert len(transcript.query(EntryView)) == 3
