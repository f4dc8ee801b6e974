"""Activity and notices: what was written, in order, and what becomes a toast."""

import re
from time import mktime

from textual.widgets._toast import Toast, ToastRack

from tests.ui.consent.samples import trust
from tests.ui.harness import NARROW, WIDE, Running, running, toasts
from tests.ui.shell import decks
from tui.model import events as e
from tui.model.chat import EntryId, Severity, TaskProgress, ToolCall, ToolCallStatus
from tui.store.state import MAX_LOG_LINES
from tui.ui.panes.activity import ActivityPane, lines_after
from tui.ui.widgets.lists.log_view import LogView


def line(text: str, at: float = decks.EPOCH) -> e.LogLine:
    return e.LogLine(at, "stderr", Severity.INFO, text)


async def test_a_wide_log_has_a_column_for_the_source_which_is_told_where_it_changes() -> None:
    async with running(decks.full_store(), (200, 60)) as deck:
        await deck.press("f7", *["alt+left"] * 12)
        assert [entry.owner for entry in deck.one(LogView).entries] == ["git", "weather", "git"]
        decks.log(deck.store, decks.GIT, "again")
        await deck.settle()
        for words in ("  git +Starting", "✕ weather +ModuleNotFoundError: No module", " {15}again"):
            assert any(re.search(rf"\d\d:\d\d:\d\d {words}", row) for row in deck.lines), words
        assert "w warnings  v protocol  p pause  c copy" in deck.lines[-1]
        await deck.press("right", "right")
        assert any(re.search(r"\d   stderr +Starting", row) for row in deck.lines)


async def test_a_narrow_log_gives_the_text_its_width_and_names_a_source_above_its_lines() -> None:
    store = decks.full_store()
    decks.log(store, decks.GIT, "careful", severity=Severity.WARNING)
    async with running(store, WIDE) as deck:
        await deck.press("f7")
        await raise_notice(deck, Severity.INFO, "x" * 34)
        x = deck.one(LogView).region.x
        rows = [line[x:].rstrip("│ ") for line in deck.lines[5:]]
        assert rows[:6] == [
            "git",
            "00:00   Starting",
            "weather",
            "00:00 ✕ ModuleNotFoundError: No module",
            "        named 'pandas'",
            "git",
        ]
        assert rows[7] == "00:00 ! careful", "the source stands above"
        assert rows[8] == "gemdeck"
        assert rows[9].endswith(" " + "x" * 34), "of 48 columns"
        levels = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
        lines = tuple(e.LogLine(0.0, "log", Severity.INFO, '{"a": 1}', level) for level in levels)
        await deck.happen(e.ServerLogged(decks.GIT, lines))
        told = re.findall(r'(\w*)(?:: )?\{"a": 1\}', deck.text)
        assert told == [level.replace("info", "") for level in levels]
        decks.log(store, decks.GIT, *(f"n{number}" for number in range(60)))
        await deck.settle()
        assert any(line[x:].startswith("git") for line in deck.lines), "wherever one scrolls"
        tall = deck.one(LogView).virtual_size.height
        await deck.resize(360, 36)
        assert deck.one(LogView).virtual_size.height < tall, "laid out again at another width"


async def test_c_copies_the_last_line_in_view() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f7")
        await raise_notice(deck, Severity.INFO, "gemdeck mcp disable git")
        await deck.press("c")
        assert deck.app.clipboard == "gemdeck mcp disable git"
        decks.log(deck.store, decks.GIT, *(f"n{number}" for number in range(60)))
        await deck.settle()
        await deck.press("c", "home", "c")
        assert toasts(deck.app)[-2] == "Copied to the clipboard: n59"
        assert deck.app.clipboard == deck.lines[-3].split()[-2]


async def test_left_and_right_turn_from_log_to_log_and_the_search_keeps_lines_with_all_words() -> (
    None
):
    async with running(decks.full_store()) as deck:
        await deck.press("f7")
        view = deck.one(LogView)
        assert "all servers" in deck.text
        await deck.press("right")
        assert "gemdeck" in deck.lines[2]
        await deck.press("right")
        assert {entry.owner for entry in view.entries} == {"git"}
        await deck.press("left", "left")
        assert len(view.entries) == 3
        await deck.press("slash", *"pandas", "space", *"weather", "enter")
        assert view.has_focus
        assert [entry.owner for entry in view.entries] == ["weather"]
        decks.log(deck.store, decks.GIT, "no pandas here", "weather of pandas")
        await deck.settle()
        assert [entry.line.text for entry in view.entries][1:] == ["weather of pandas"]
        await deck.press("slash", *"x")
        assert "No line matches:" in deck.text
        await deck.press("escape")
        assert view.has_focus
        assert len(view.entries) == 5


async def test_w_shows_warnings_and_errors_then_errors_then_all_and_p_holds_lines_back() -> None:
    store = decks.full_store()
    decks.log(store, decks.GIT, "careful", severity=Severity.WARNING)
    async with running(store) as deck:
        await deck.press("f7")
        numbers, labels = [], []
        for _ in range(3):
            labels.append(next(w for w in ("w warnings", "w errors", "w all") if w in deck.text))
            await deck.press("w")
            numbers.append(len(deck.one(LogView).entries))
        assert numbers == [2, 1, 4]
        assert labels == ["w warnings", "w errors", "w all"]
        await deck.press("p")
        assert "paused" in deck.lines[2]
        decks.log(deck.store, decks.GIT, "meanwhile")
        await deck.settle()
        assert "meanwhile" not in deck.text
        await deck.press("p")
        assert "meanwhile" in deck.text
        assert "paused" not in deck.lines[2]


async def test_the_view_follows_the_end_of_a_thousand_lines_until_the_user_scrolls_away() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f7")
        view = deck.one(LogView)
        for batch in range(2):
            lines = (line(f"b{batch} n{i}", decks.EPOCH + 9) for i in range(MAX_LOG_LINES))
            await deck.happen(e.ServerLogged(decks.GIT, tuple(lines)))
        assert len(view.entries) == MAX_LOG_LINES
        assert {entry.line.text[:2] for entry in view.entries} == {"b1"}
        assert "b1 n999" in deck.text
        await deck.happen(e.ServerLogged(decks.GIT, (line("%" * 100, decks.EPOCH + 9),)))
        assert deck.text.count("%") == 100, "the scrollbar hides nothing"
        await deck.press("home")
        await deck.happen(e.ServerLogged(decks.GIT, (line("the newest", decks.EPOCH + 9),)))
        assert "the newest" not in deck.text
        assert view.scroll_offset.y == 0
        await deck.press("end")
        assert "the newest" in deck.text


async def test_a_hidden_log_renders_nothing_and_catches_up_when_shown() -> None:
    async with running(decks.full_store(), (79, 24)) as deck:
        await deck.press("f7", "f6")
        view = deck.one(ActivityPane).view
        before = view.entries
        await deck.happen(e.ServerLogged(decks.GIT, (line("written in the dark"),)))
        assert view.entries == before
        await deck.press("f7")
        assert "written in the dark" in deck.text


async def test_a_key_for_a_task_that_has_ended_cancels_no_other() -> None:
    calls = [ToolCall(EntryId(f"c{n}"), decks.GIT, f"deploy_{n}", "{}") for n in range(40)]
    async with running(decks.full_store(), NARROW) as deck:
        for call in calls:
            deck.dispatch(e.ToolCallRequested(call))
            deck.dispatch(e.ToolCallProgressed(call.id, TaskProgress(1.0)))
        await deck.press("f7", "t", "end")
        assert "deploy_39" in deck.lines[-3]
        assert "x cancel" in deck.lines[-1]
        await deck.happen(e.ToolCallChanged(calls[0].id, ToolCallStatus.OK))
        await deck.press("x")
        cancelled = [("main", "c39")]
        assert deck.asked("servers.tasks.cancel") == cancelled
        await deck.happen(e.ToolCallChanged(calls[39].id, ToolCallStatus.CANCELLED))
        await deck.press("x")
        assert deck.asked("servers.tasks.cancel") == cancelled
        assert deck.lines[-1].startswith(" Select a task in the list below first.")
        assert deck.focus is deck.one(LogView)


async def raise_notice(deck: Running, severity: Severity, text: str, advice: str = "") -> None:
    await deck.happen(e.NoticeRaised(e.Notice(severity, text, advice)))


async def test_a_notice_is_a_toast_once_unless_it_only_informs_and_stands_in_the_activity() -> None:
    async with running(decks.full_store()) as deck:
        raised = mktime((2026, 1, 2, 3, 4, 5, 0, 0, -1))
        await deck.happen(
            e.NoticeRaised(e.Notice(Severity.INFO, "The message waits.", time=raised))
        )
        assert toasts(deck.app) == []
        await raise_notice(deck, Severity.WARNING, "Odd settings.", "Look at line 3.")
        await raise_notice(deck, Severity.ERROR, "Worse settings.")
        done = e.Notice(Severity.INFO, "Exported to x.md.", is_answer=True)
        await deck.happen(e.NoticeRaised(done))
        await deck.until(lambda: len(toasts(deck.app)) == 3)
        told = ["Odd settings. Look at line 3.", "Worse settings.", "Exported to x.md."]
        assert toasts(deck.app) == told
        shown = deck.app.screen.query(Toast)
        assert [toast.has_class("-error") for toast in shown] == [False, True, False]
        await deck.press("f7")
        assert "! Odd settings. Look" in deck.text
        assert "03:04   The message" in deck.text


async def test_toasts_stand_under_the_header_and_leave_the_message_in_sight() -> None:
    frame = "╭─ A tool wants to run ─╮\n│ tool  look            │\n╰───────────────────────╯"
    async with running(decks.full_store(), NARROW) as deck:
        await raise_notice(deck, Severity.WARNING, frame)
        await deck.until(lambda: toasts(deck.app))
        assert toasts(deck.app) == ["A tool wants to run tool look"], "it looks like no question"
        for size in (NARROW, WIDE):
            await deck.resize(*size)
            toast = deck.app.screen.query_one(Toast).region
            assert toast.y == 1
            assert toast.right >= size[0] - 2
            assert toast.bottom < size[1] // 2
        await deck.resize(*NARROW)
        for number in range(3):
            await raise_notice(deck, Severity.ERROR, f"{number} broke. " * 200)
        await deck.until(lambda: "0 broke." in deck.text)
        composer = deck.app.deck.chat.composer.region
        rack = deck.app.screen.query_one(ToastRack).region
        assert rack.bottom < composer.y


async def test_toasts_wait_while_a_question_or_a_dialog_stands() -> None:
    store = decks.full_store()
    store.dispatch(e.RequestRaised(trust()))
    async with running(store, NARROW) as deck:
        await raise_notice(deck, Severity.WARNING, "Odd settings.")
        await raise_notice(deck, Severity.ERROR, "Worse settings.")
        assert toasts(deck.app) == []
        store.dispatch(e.RequestSettled(trust().id))
        await deck.until(lambda: len(toasts(deck.app)) == 2)
        await deck.until(lambda: "Odd settings." in deck.text and "Worse settings." in deck.text)
        await deck.press("f1")
        await raise_notice(deck, Severity.WARNING, "Strange settings.")
        assert "Strange settings." not in toasts(deck.app)
        await deck.press("escape")
        await deck.until(lambda: "Strange settings." in deck.text)


async def test_a_toast_over_a_dialog_is_one_row_above_what_it_says() -> None:
    async with running(decks.full_store(), NARROW) as deck:
        await deck.press("f1")
        deck.app.notify("Copied. " * 40)
        await deck.until(lambda: "Copied." in deck.text)
        toast = deck.app.screen.query_one(Toast).region
        assert (toast.y, toast.height) == (0, 1)


async def test_many_notices_at_once_are_one_toast() -> None:
    store = decks.full_store()
    for number in range(7):
        store.dispatch(e.NoticeRaised(e.Notice(Severity.WARNING, f"Problem {number}")))
    async with running(store) as deck:
        assert toasts(deck.app) == ["7 new notices. Press F7 to see them."]
        await deck.press("f7", "right")
        assert len(deck.one(LogView).entries) == 7


def test_new_lines_are_found_behind_the_last_one_seen() -> None:
    lines = (line("a"), line("a"), line("b"))
    assert lines_after(lines, lines[0]) == lines[1:]
    assert lines_after(lines, lines[2]) == ()
    assert lines_after(lines, line("a")) == lines
    assert lines_after((), None) == ()
