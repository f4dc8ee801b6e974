"""Reading back in the conversation: what is mounted, the newest entry, search, turns, code."""

import gc
import json
from collections.abc import Callable
from dataclasses import replace
from time import process_time, thread_time

import pytest
from textual.strip import Strip
from textual.widgets.tree import TreeNode

from tests.snapshots.decks import HISTORIES
from tests.support.pictures import picture
from tests.ui.chat.samples import call, conversation, rows_of
from tests.ui.harness import ChatApp, afresh, chatting, click, running, until
from tui.model import events as e
from tui.model.chat import EntryId, ModelText, Picture, ToolCallStatus, TurnId, TurnOutcome
from tui.model.servers import ServerId
from tui.model.sessions import ConversationRestored
from tui.store.reducer import reduce
from tui.store.state import AppState, TranscriptState
from tui.store.store import Store
from tui.ui.dialogs.fetched import ResourceScreen
from tui.ui.dialogs.viewer import ViewerScreen
from tui.ui.questions.address import LinkScreen
from tui.ui.themes import UiPreferences
from tui.ui.widgets.chat.entries import EntryView
from tui.ui.widgets.chat.entry_window import MAX_ENTRIES, MAX_MOUNTED
from tui.ui.widgets.chat.transcript import SearchLine, Transcript
from tui.ui.widgets.lists.filter_list import FilterLine
from tui.ui.widgets.text.blocks import COPY
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.json_tree import MAX_CHILDREN, JsonTree, json_in
from tui.ui.widgets.text.picture import MAX_PICTURES

CODE = "Two:\n\n```py\na = 1\nb = 2\n```\n\n~~~\nlast one\n~~~\n"


def answer(app: ChatApp, text: str, turn: str = "t1") -> None:
    """Let a whole turn of one answer happen."""
    app.start_turn(f"question of {turn}", turn)
    app.store.dispatch(e.TextStreamed(EntryId(f"{turn}-m"), text))
    app.store.dispatch(e.TurnFinished(TurnId(turn), TurnOutcome.COMPLETED))


def after_a_call() -> Store:
    """Give the store of an app in which a tool has run and an answer came."""
    state = AppState()
    for event in HISTORIES["done"]:
        state = reduce(state, event)
    return Store(state)


def is_in_view(transcript: Transcript, view: EntryView | None) -> bool:
    """Tell whether some of an entry can be seen."""
    return view is not None and transcript.content_region.overlaps(view.region)


def cursor_at(app: ChatApp, entry: str) -> Callable[[], bool]:
    """Give a condition: the cursor is on this entry, which can be seen."""
    transcript = app.chat.transcript

    def holds() -> bool:
        view = transcript.cursor
        return view is not None and view.entry.id == entry and is_in_view(transcript, view)

    return holds


def drawn_lines(words: str) -> list[Strip]:
    """List the drawn lines with these words that are in memory."""
    return [it for it in gc.get_objects() if isinstance(it, Strip) and words in it.text]


async def test_shift_tab_takes_the_newest_entry_each_time_and_passes_over_ends_of_turns() -> None:
    async with chatting(conversation(20), size=(80, 20)) as (app, pilot):
        await until(pilot, lambda: len(app.chat.transcript.views) == 20)
        await pilot.press("shift+tab")
        await until(pilot, cursor_at(app, "e19"))
        await pilot.press("up", "up", "escape")
        for number in range(6):
            answer(app, f"answer {number}\n\n" * 8, f"t{number}")
        await until(pilot, lambda: len(app.chat.transcript.views) == 38)
        await pilot.press("shift+tab")
        await until(pilot, cursor_at(app, "t5-m"))
        assert app.focused is app.chat.transcript
        for _ in range(40):
            await pilot.press("up")
            view = app.chat.transcript.cursor
            assert view is not None
            assert view.selectable
            await until(pilot, cursor_at(app, view.entry.id))
            if view.entry.id == "t4-m":
                break
        else:
            raise AssertionError("The cursor never came to the turn before.")


async def test_the_window_slides_back_and_forth_and_never_grows_beyond_its_limit() -> None:
    async with chatting(conversation(300)) as (app, pilot):
        transcript = app.chat.transcript
        await until(pilot, lambda: len(transcript.views) > 0)
        while transcript.load_earlier():
            assert len(transcript.views) <= MAX_MOUNTED
        assert len(transcript.views) == MAX_MOUNTED
        assert transcript.views[0].entry.id == "e0"
        while transcript.load_later():
            assert len(transcript.views) <= MAX_MOUNTED
        assert transcript.views[-1].entry.id == "e299"


async def test_ten_thousand_entries_open_quickly_and_are_searched_from_the_newest_match() -> None:
    began = process_time()
    async with chatting(conversation(10_000)) as (app, pilot):
        transcript = app.chat.transcript
        await until(pilot, lambda: len(transcript.views) > 0)
        assert process_time() - began < 3, "of processor time; about 0.4 s is measured"
        assert transcript.views[-1].entry.id == "e9999"
        assert len(list(app.screen.walk_children())) < MAX_ENTRIES + 30
        await pilot.press("shift+tab", "slash")
        await until(pilot, lambda: isinstance(app.focused, FilterLine))
        line = app.screen.query_one(SearchLine)
        await pilot.press(*"QUESTION", "space", "9", "9", "8")
        await until(pilot, cursor_at(app, "e9988"))
        assert str(line.count.render()) == "6 of 6", "998, and 9980 to 9988"
        await pilot.press("enter")
        await until(pilot, cursor_at(app, "e9986"))
        for entry in ("e9984", "e9982", "e9980", "e998"):
            await pilot.press("up")
            await until(pilot, cursor_at(app, entry))
        assert len(transcript.views) <= MAX_MOUNTED
        view = transcript.cursor
        assert view is not None
        assert view.marked_row == 0
        await pilot.press("up")
        await until(pilot, cursor_at(app, "e9988"))
        assert str(line.count.render()) == "6 of 6"
        await pilot.press("down")
        await until(pilot, cursor_at(app, "e998"))
        await pilot.press("x")
        await until(pilot, lambda: str(line.count.render()) == "not found")
        await pilot.press("escape")
        await until(pilot, lambda: app.focused is transcript)
        assert not app.screen.query(SearchLine)
        assert all(view.marked_row is None for view in transcript.views)
        await pilot.press("end")
        await until(pilot, lambda: transcript.views[-1].entry.id == "e9999")
        before = thread_time()
        assert transcript.find("answer 7777") == (1, 1)
        assert thread_time() - before < 0.5, "a bound for a slow machine; 20 ms are measured"


async def test_p_and_n_go_from_turn_to_turn_and_past_the_last_to_the_end() -> None:
    async with chatting(conversation(400), size=(80, 20)) as (app, pilot):
        await until(pilot, lambda: len(app.chat.transcript.views) > 0)
        await pilot.press("shift+tab")
        for entry in ("e398", "e396"):
            await pilot.press("p")
            await until(pilot, cursor_at(app, entry))
        last = 396 - MAX_MOUNTED // 2 * 2
        for number in range(394, last - 1, -2):
            await pilot.press("p")
            await until(pilot, cursor_at(app, f"e{number}"))
        await pilot.press("n")
        await until(pilot, cursor_at(app, f"e{last + 2}"))
        await pilot.press("end", "shift+tab", "n")
        await until(pilot, cursor_at(app, "e399"))


async def test_entries_open_and_fold_by_click_by_key_and_by_search_and_code_is_copied() -> None:
    async with chatting() as (app, pilot):
        # A click anywhere opens a closed call and one on its first line closes it.
        app.start_turn()
        app.store.dispatch(e.ToolCallRequested(call()))
        app.store.dispatch(e.ToolCallChanged(EntryId("call0"), ToolCallStatus.OK, 0.1, "a\nb"))
        await until(pilot, lambda: len(app.chat.transcript.views) == 2)
        row = app.chat.transcript.views[-1]
        await pilot.click(row, offset=(5, 1))
        await until(pilot, lambda: row.expanded and row.size.height > 2)
        await pilot.click(row, offset=(5, row.size.height - 1))
        await pilot.pause()
        assert row.expanded
        assert app.chat.transcript.cursor is row
        await pilot.click(row, offset=(5, 0))
        await until(pilot, lambda: not row.expanded)
        # A short conversation begins at the top and opens downwards.
        await afresh(app, pilot)
        transcript = app.chat.transcript
        app.start_turn()
        app.store.dispatch(e.ToolCallRequested(call()))
        result = "\n".join(map(str, range(30)))
        app.store.dispatch(e.ToolCallChanged(EntryId("call0"), ToolCallStatus.OK, 0.1, result))
        await until(pilot, lambda: len(transcript.views) == 2)
        message, row = transcript.views
        await until(pilot, lambda: message.region.y == transcript.content_region.y + 1)
        before = row.region.y
        await pilot.press("shift+tab", "enter")
        await until(pilot, lambda: transcript.max_scroll_y > 0)
        await pilot.pause()
        assert row.region.y == before
        await pilot.press("enter")
        await until(pilot, lambda: transcript.max_scroll_y == 0)
        app.store.dispatch(e.TextStreamed(EntryId("m"), "line\n\n" * 30))
        await until(pilot, lambda: transcript.scroll_y == transcript.max_scroll_y > 0)
        # Y copies the last code then the one before and a click copies its own.
        await afresh(app, pilot)
        answer(app, CODE)
        answer(app, "No code here.", "t2")
        await until(pilot, lambda: len(app.chat.transcript.views) == 6)
        await pilot.press("shift+tab", "y")
        assert app.clipboard == "last one"
        await pilot.press("y")
        assert app.clipboard == "a = 1\nb = 2"
        await pilot.press("y")
        assert app.clipboard == "last one"
        app.copy_to_clipboard("")
        view = app.chat.transcript.views[1]
        rows = [line.plain for line in view.lines(view.size.width)]
        head = next(index for index, text in enumerate(rows) if text.startswith(" py"))
        x = view.content_region.x + rows[head].index("copy")
        y = view.content_region.y + head
        assert app.screen.get_style_at(x, y).meta.get(COPY) == "a = 1\nb = 2"
        await pilot.click(offset=(x, y))
        assert app.clipboard == "a = 1\nb = 2"
        # A search opens a call for its result and folds it again.
        await afresh(app, pilot)
        app.start_turn()
        for number, result in enumerate(("first\nneedle one", "second\nneedle two")):
            app.store.dispatch(e.ToolCallRequested(call(number)))
            changed = e.ToolCallChanged(EntryId(f"call{number}"), ToolCallStatus.OK, 0.1, result)
            app.store.dispatch(changed)
        await until(pilot, lambda: len(app.chat.transcript.views) == 3)
        _, first, second = app.chat.transcript.views
        await pilot.press("shift+tab", "slash", *"needle")
        await until(pilot, cursor_at(app, "call1"))
        assert (first.expanded, second.expanded) == (False, True)
        await pilot.press("up")
        await until(pilot, cursor_at(app, "call0"))
        assert (first.expanded, second.expanded) == (True, False)


async def test_the_foot_names_the_keys_of_the_entry_and_a_click_presses_one() -> None:
    async with running(after_a_call()) as deck:
        assert "v full text" not in deck.text
        await deck.press("shift+tab")
        await deck.until(lambda: "v full text" in deck.text)
        assert "open" not in deck.text, "there is nothing to open in an answer"
        await deck.press("enter")
        assert deck.lines[-1].strip() == "This entry has nothing to open and no link."
        await deck.press("up")
        await deck.until(lambda: "↵ open" in deck.text)
        await deck.press("enter")
        await deck.until(lambda: "↵ close" in deck.text)
        y = len(deck.lines) - 1
        x = deck.lines[y].index("/ search") + 3
        await click(deck.pilot, (x, y))
        await deck.until(lambda: isinstance(deck.focus, FilterLine))
        await deck.press("escape", "escape")
        await deck.until(lambda: "v full text" not in deck.text)


async def test_ctrl_o_opens_the_last_result_from_anywhere_and_closes_it() -> None:
    async with running(Store(AppState())) as deck:
        assert "last result" not in deck.lines[-1]
        await deck.press("ctrl+o")
        await deck.until(lambda: "No tool has run here yet." in deck.lines[-1])
    async with running(after_a_call()) as deck:
        assert "^O last result" in deck.lines[-1]
        for keys in ((), ("f2",), ("f3",), ("f6", "shift+tab")):
            await deck.press(*keys)
            focus = deck.focus
            await deck.press("ctrl+o")
            await deck.until(lambda: deck.on_top(ViewerScreen))
            text = deck.app.screen.query_one(FoldedText)
            await deck.until(lambda: text.row_count == 1)  # noqa: B023 - awaited at once
            assert rows_of(text) == ["Added note 1: buy milk"]
            await deck.press("ctrl+o")
            await deck.until(lambda: not deck.on_top(ViewerScreen))
            assert deck.focus is focus
        await deck.press("f2", "ctrl+p", *"chat", "space", *"search", "enter")
        await deck.until(lambda: isinstance(deck.focus, FilterLine))
        await deck.press("escape", "ctrl+p", *"last", "enter")
        await deck.until(lambda: deck.on_top(ViewerScreen))


async def test_links_of_a_result_are_picked_and_a_resource_is_read_from_its_server() -> None:
    store = after_a_call()
    words = "Resource Link: a note at note://1 (text/plain)\nsee https://a.example/x, and so on"
    for event in (
        e.ToolCallRequested(replace(call(7), server=ServerId("notes"))),
        e.ToolCallChanged(EntryId("call7"), ToolCallStatus.OK, 1.0, words),
    ):
        store.dispatch(event)
    async with running(store) as deck:
        await deck.press("shift+tab")
        await deck.until(lambda: "↵ open" in deck.text)
        assert "o 2 links" not in deck.text
        await deck.press("enter")
        await deck.until(lambda: "o 2 links" in deck.text)
        await deck.press("o", *"note", "enter")
        await deck.until(lambda: deck.on_top(ResourceScreen))
        assert deck.commands.calls[-1] == (
            "features.read_resource",
            (ServerId("notes"), "note://1"),
        )
        await deck.press("escape", "o", *"exa", "enter")
        await deck.until(lambda: deck.on_top(LinkScreen))
        await deck.until(lambda: "address    https://a.example/x" in deck.text)


def ran(result: str, *pictures: Picture) -> Store:
    """Give the store of an app in which a call ended with this."""
    store = after_a_call()
    store.dispatch(e.ToolCallRequested(call(7)))
    end = e.ToolCallChanged(EntryId("call7"), ToolCallStatus.OK, 1.0, result, pictures=pictures)
    store.dispatch(end)
    return store


def labels(node: TreeNode[object]) -> list[str]:
    return [str(child.label) for child in node.children]


async def test_a_structured_result_is_a_tree_whose_branches_are_made_when_opened() -> None:
    value = {"rows": [{"id": n} for n in range(2_000)], "a\x1b[2J": "b\x1b]0;x\x07", "none": None}
    async with running(ran(f"Two.\n[Structured content]\n{json.dumps(value)}")) as deck:
        await deck.press("ctrl+o")
        await deck.until(lambda: "rows  [2,000]" in deck.text)
        tree = deck.app.screen.query_one(JsonTree)
        assert labels(tree.root) == ["rows  [2,000]", "a  b", "none  null"]
        rows = tree.root.children[0]
        assert not rows.children
        await deck.press("down", "right")
        await deck.until(lambda: len(rows.children) == MAX_CHILDREN + 1)
        assert labels(rows)[-1].startswith("… 1,500 more")
        await deck.press("left")
        await deck.until(lambda: not rows.is_expanded)
        await deck.press("t")
        await deck.until(lambda: "Two." in deck.text)
    for text in ("plain", "[1", "[Structured content]\nno", "[" * 100_000, "[]"):
        assert json_in(text) is None


@pytest.mark.parametrize(
    ("kind", "bad_chunk"),
    [("PNG", b""), ("PNG", b"iCCP"), ("JPEG", b""), ("GIF", b""), ("WEBP", b"")],
)
async def test_a_picture_is_drawn_in_the_conversation_and_in_the_viewer(
    kind: str, bad_chunk: bytes
) -> None:
    made = picture(kind=kind, bad_chunk=bad_chunk)
    async with running(ran("[image 40x20: image/png] 1 kB", made)) as deck:
        await deck.until(lambda: deck.text.count("▀" * 40) == 10)
        line = next(y for y, line in enumerate(deck.lines) if "▀" in line)
        view = deck.one(Transcript).views[-1]
        strip = view.render_line(line - view.content_region.y)
        colors = [one.style.color for one in strip if "▀" in one.text and one.style]
        assert colors[0] is not None
        red, _, blue = colors[0].get_truecolor()
        assert red - blue > 150
        await deck.press("ctrl+o")
        await deck.until(lambda: "o open outside" in deck.text)
        await deck.press("s", "o")
        said = [("features.save_picture", (made,)), ("features.open_picture", (made,))]
        assert deck.commands.calls[-2:] == said
        await deck.press("t")
        await deck.until(lambda: "[image 40x20" in deck.text)


async def test_E44_of_many_pictures_few_are_decoded_and_no_large_one_that_holds_the_loop() -> None:
    large = picture((2_100, 2_000), "WEBP")
    async with running(ran("many", *[large] * 60)) as deck:
        words = "cannot be shown: it has more than 4,000,000 pixels"
        await deck.until(lambda: deck.text.count(words) == MAX_PICTURES)
    async with running(ran("one", picture((2_100, 2_000), "PNG"))) as deck:
        await deck.until(lambda: "▀" in deck.text)


async def test_a_picture_that_cannot_be_decoded_says_so_and_16_colors_draw_none() -> None:
    cut = replace(picture(), data=picture().data[:80])
    huge = replace(picture(), width=100_000, height=100_000)
    store = ran("three", cut, picture(bad_chunk=b"ICCP"), huge)
    async with running(store) as deck:
        await deck.until(lambda: deck.text.count("cannot be shown: it is damaged") == 2)
        await deck.until(lambda: "cannot be shown: it has more than 16,000,000 pix" in deck.text)
    preferences = UiPreferences(theme="gemdeck-16")
    async with running(ran("[image 40x20]", picture()), preferences=preferences) as deck:
        await deck.until(lambda: "[image 40x20]" in deck.text)
        assert "▀" not in deck.text


async def test_small_terminals_read_back_as_well() -> None:
    async with running(after_a_call(), (40, 12)) as deck:
        await deck.press("shift+tab", "up")
        await deck.until(lambda: "✓ ran add_note" in deck.text)
        await deck.until(lambda: "↵ open" in deck.text)
        await deck.press("slash", *"milk")
        await deck.until(lambda: "of 2" in deck.text)


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
        first = transcript.views[0]
        while transcript.views[0] is first:
            await pilot.press("pageup")
        assert app.focused is app.chat.composer


async def test_of_long_answers_few_are_mounted_and_all_can_be_reached() -> None:
    long = "words of an answer " * 800
    answers = tuple(ModelText(EntryId(f"m{n}"), long, complete=True) for n in range(30))
    async with chatting(size=(100, 30)) as (app, pilot):
        app.store.dispatch(ConversationRestored(answers))
        transcript = app.chat.transcript
        await until(pilot, lambda: transcript.views and transcript.views[-1].entry.id == "m29")
        assert 1 < len(transcript.views) < 12
        app.start_turn()
        app.store.dispatch(e.TextStreamed(EntryId("new"), long))
        await until(pilot, lambda: transcript.views[-1].entry.id == "new")
        assert 1 < len(transcript.views) < 12
        loaded = len(transcript.views)
        while transcript.load_earlier():
            assert loaded < len(transcript.views) < loaded + 12
            loaded = len(transcript.views)
            await pilot.pause()
        assert transcript.views[0].entry.id == "m0"


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
        assert drawn_lines("question 4")
        other = conversation(3).conversation.transcript.settled
        transcript.show(TranscriptState(settled=other, epoch=1))
        await until(pilot, lambda: len(transcript.views) == 3)
        assert len(transcript.query(EntryView)) == 3
        await until(pilot, lambda: not drawn_lines("question 4"))
