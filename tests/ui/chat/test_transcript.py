"""The conversation on the screen: its entries as they grow, and hostile text in them."""

import asyncio
import contextvars
import re
from dataclasses import replace
from time import monotonic, sleep

import pytest
from textual import _time, events

from tests.support.stalls import HANG_SECONDS, LoopWatch
from tests.ui.chat.samples import call, rows_of
from tests.ui.harness import afresh, chatting, click, screen_lines, ticking, until
from tests.ui.shell import decks
from tui.model import events as e
from tui.model.catalog import Catalog, PromptArgument, PromptView, ToolId, ToolView
from tui.model.chat import (
    BackendKind,
    ChatNotice,
    EntryId,
    ModelText,
    ModelView,
    Progress,
    Severity,
    ToolCallStatus,
    TurnId,
    TurnOutcome,
    TurnPhase,
    Usage,
    UserMessage,
)
from tui.model.servers import Origin, ServerId, ServerStatus
from tui.store.state import AppState
from tui.ui.bridge import MIN_WAIT
from tui.ui.dialogs.viewer import ViewerScreen
from tui.ui.panes.chat import NOTHING
from tui.ui.questions.address import LinkScreen
from tui.ui.widgets.chat.entries import MAX_SHOWN, EntryView, ModelEntry, ThoughtEntry
from tui.ui.widgets.chat.tool_call import ToolCallEntry
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.labelled_text import LABEL_WIDTH, LabelledText

HOSTILE = (
    "[/x] [@click=app.quit]press[/] [bold]b[/bold] $text-error \\[esc",
    "\n" * 5_000,
    "x" * 1_000_000,
    "a://" * 20_000,
    ("word " * 30 + "\n") * 6_000,
    "漢字" * 100_000,
)


def shown(view: EntryView) -> str:
    return "\n".join(line.plain for line in view.lines(view.size.width or 80))


async def test_an_empty_conversation_says_what_to_try_with_the_tools_that_are_there() -> None:
    names = ("get-env", "list_api_keys", "list-env", "delete_all", "list_branches")
    tools = tuple(ToolView(ToolId(name), name, claims_to_read=True) for name in names)
    tools = (ToolView(ToolId("list_all"), "list_all"), *tools)
    asks = PromptView("review", arguments=(PromptArgument("file", required=True),))
    prompts = (asks, PromptView("show-env"), PromptView("changes"))
    catalog = Catalog(tools=tools, prompts=prompts)
    git = replace(decks.server(ServerId("git"), ServerStatus.READY), catalog=catalog)
    starting = decks.server(ServerId("notes"), origin=Origin.DEMO)
    notes = replace(starting, status=ServerStatus.READY)
    async with chatting(AppState(configured=True)) as (app, pilot):
        welcome = app.chat.welcome
        app.store.dispatch(e.ModelSelected(ModelView("gemini-x", BackendKind.GEMINI)))
        assert "No servers yet" in str(welcome.render())
        app.store.dispatch(e.ServersConfigured((git,)))
        await until(pilot, lambda: "use the list_branches tool of git" in str(welcome.render()))
        assert "No servers yet" not in str(welcome.render())
        tries = ["what can git do?", "use the list_branches tool of git", "/changes"]
        assert welcome.examples == tries
        await pilot.press("enter")
        await until(pilot, lambda: str(app.chat.working.render()) == NOTHING)
        assert app.commands.acts == []
        for words in tries:
            await pilot.press("tab")
            assert app.chat.composer.text == words
        app.chat.composer.clear()
        for key in ("tab", "enter"):  # at once
            app.post_message(events.Key(key, None))
        await until(pilot, lambda: app.commands.acts == [("messages.send", (tries[0],))])
        app.store.dispatch(e.ServersConfigured((starting,)))
        await until(pilot, lambda: not welcome.examples)
        app.store.dispatch(e.ServersConfigured((notes,)))
        app.store.dispatch(e.ModelSelected(ModelView("demo", BackendKind.DEMO)))
        await until(pilot, lambda: "add a note: buy milk" in str(welcome.render()))
        app.start_turn()
        await until(pilot, lambda: not welcome.display)
        app.store.dispatch(e.ConversationCleared())
        await until(pilot, lambda: welcome.display)
        assert app.chat.transcript.views == ()


async def test_entries_are_drawn_with_their_words_as_they_grow() -> None:
    async with chatting() as (app, pilot):
        # Each kind of entry is drawn with its words.
        app.start_turn("list the branches")
        app.store.dispatch(e.ThoughtStreamed(EntryId("th"), "secret thoughts"))
        app.store.dispatch(e.TextStreamed(EntryId("m"), "There are **three**."))
        app.store.dispatch(
            e.ChatNoticeAdded(
                ChatNotice(EntryId("n"), Severity.ERROR, "The key is wrong.", "Paste another.")
            )
        )
        await until(pilot, lambda: len(app.chat.transcript.views) == 4)
        user, thought, model, notice = app.chat.transcript.views
        assert shown(user) == "▌ list the branches"
        assert shown(thought) == "▸ thinking…"
        await until(pilot, lambda: shown(model) == "There are three.")
        assert "✕ error  The key is wrong." in shown(notice)
        assert "Paste another." in shown(notice)
        # A thought is laid out only once it is opened.
        await afresh(app, pilot)
        app.start_turn()
        app.store.dispatch(e.ThoughtStreamed(EntryId("th"), "**Reading it**\n\nbecause "))
        app.store.dispatch(e.ThoughtStreamed(EntryId("th"), "of reasons\n\n**Then this**\n\nEnd."))
        await until(pilot, lambda: len(app.chat.transcript.views) == 2)
        thought = app.chat.transcript.views[-1]
        assert isinstance(thought, ThoughtEntry)
        await until(pilot, lambda: shown(thought) == "▸ thinking…  Then this")
        app.store.dispatch(e.EntryCompleted(EntryId("th"), 6.14))
        await until(pilot, lambda: shown(thought) == "▸ thought  Then this  6.1 s")
        await pilot.click(ThoughtEntry, offset=(3, 0))
        await until(pilot, lambda: "because of reasons" in shown(thought))
        assert "**" not in shown(thought), "opened, it is drawn as Markdown"
        # A turn ends with its tools its seconds and its tokens.
        await afresh(app, pilot)
        app.start_turn()
        app.store.dispatch(e.ToolCallRequested(call(0)))
        app.store.dispatch(e.ToolCallChanged(EntryId("call0"), ToolCallStatus.OK, 0.1, "main"))
        app.store.dispatch(e.UsageReported(Usage(prompt=5_000, output=1_000, thoughts=200)))
        end = e.TurnFinished(TurnId("t1"), TurnOutcome.COMPLETED, seconds=2.44)
        app.store.dispatch(end)
        await until(pilot, lambda: len(app.chat.transcript.views) == 3)
        assert shown(app.chat.transcript.views[-1]) == "── 1 tool · 2.4 s · 6.2k tokens ──"
        # A streamed answer ends as the text that was sent.
        text = "# Head\n\n- one\n- **two**\n\n```py\nx = 1\n```\n\nend"
        await afresh(app, pilot)
        app.start_turn()
        for start in range(0, len(text), 3):
            app.store.dispatch(e.TextStreamed(EntryId("m"), text[start : start + 3]))
            await pilot.pause(0.001)
        app.store.dispatch(e.EntryCompleted(EntryId("m")))
        app.store.dispatch(e.TurnFinished(TurnId("t1"), TurnOutcome.COMPLETED))
        await until(pilot, lambda: len(app.chat.transcript.views) == 3)
        view = app.chat.transcript.views[1]
        assert isinstance(view, ModelEntry)
        await until(pilot, lambda: shown(view).endswith("end"))
        assert view.full_text() == text
        fresh = ModelEntry(ModelText(EntryId("m"), text, complete=True))
        assert [line.plain for line in fresh.lines(60)] == [line.plain for line in view.lines(60)]


async def test_a_notice_opens_and_texts_of_others_run_nothing_unasked() -> None:
    async with chatting() as (app, pilot):
        # A refusal is a line until it is opened and goes with its turn.
        app.start_turn("hello")
        words = "Too many requests: " + "no, " * 100
        advice = "Trying again in 9 s."
        notice = ChatNotice(EntryId("n"), Severity.WARNING, words, advice, "Too many requests.")
        app.store.dispatch(e.ChatNoticeAdded(replace(notice, passes=True)))
        app.store.dispatch(e.ChatNoticeAdded(replace(notice, id=EntryId("n2"))))
        app.store.dispatch(e.TextStreamed(EntryId("m"), "Hi."))
        await until(pilot, lambda: len(app.chat.transcript.views) == 4)
        asked, passing, lasting, answer = app.chat.transcript.views
        line = "! warning  ▸ Too many requests. Trying again in 9 s."
        assert [shown(view) for view in (passing, lasting)] == [line, line]
        await pilot.press("shift+tab", "up", "enter")
        await until(pilot, lambda: lasting.size.height > 3)
        assert shown(lasting).count("no,") == 100
        app.store.dispatch(e.TurnFinished(TurnId("t1"), TurnOutcome.COMPLETED))
        await until(pilot, lambda: app.chat.transcript.views[:-1] == (asked, lasting, answer))
        assert lasting.expanded
        # A cut turn still draws its last words and a click on them runs nothing.
        await afresh(app, pilot)
        app.start_turn("[@click=app.quit]press me[/]")
        app.store.dispatch(e.TextStreamed(EntryId("m"), "[@click=app.quit]press "))
        app.store.dispatch(e.TextStreamed(EntryId("m"), "me[/]"))
        app.store.dispatch(e.TurnFinished(TurnId("t1"), TurnOutcome.CANCELLED))
        await until(pilot, lambda: len(app.chat.transcript.views) == 3)
        cut = app.chat.transcript.views[1]
        await until(pilot, lambda: shown(cut) == "[@click=app.quit]press me[/]")
        for view in app.chat.transcript.views[:2]:
            await pilot.click(view, offset=(8, 0))
        assert app.is_running
        assert app.commands.acts == []
        # A click on a link asks and opens only when told.
        await afresh(app, pilot)
        app.start_turn()
        text = "[my bank](https://evil.example/login) or [this](ssh://-oProxyCommand=x)"
        app.store.dispatch(e.TextStreamed(EntryId("m"), text))
        app.store.dispatch(e.EntryCompleted(EntryId("m")))
        await until(pilot, lambda: len(app.chat.transcript.views) == 2)

        async def click_on_link(x: int) -> None:
            await pilot.click(app.chat.transcript.views[-1], offset=(x, 0))
            await until(pilot, lambda: isinstance(app.screen, LinkScreen))
            await until(pilot, lambda: getattr(app.screen, "armed", False))

        strip = app.chat.transcript.views[-1].render_line(0)
        sent = {segment.style.link for segment in strip if segment.style and segment.style.link}
        assert sent == {"https://evil.example/login"}, "a terminal gets it as well"
        await click_on_link(3)
        told = ["host       evil.example", "address    https://evil.example/login"]
        assert rows_of(app.screen.query_one(LabelledText)) == told
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(app.screen, LinkScreen))
        assert app.opened == [], "the focused button closes"
        await click_on_link(3)
        await click(pilot, "#open")
        await until(pilot, lambda: app.opened == ["https://evil.example/login"])
        await click_on_link(42)
        assert not app.screen.query_one("#open").display
        await pilot.press("escape")
        assert len(app.opened) == 1


async def test_what_a_task_of_the_engine_tells_is_shown_until_the_app_stops_listening() -> None:
    """Its task knows nothing of the app, which is what timers need."""
    async with chatting() as (app, pilot):

        async def publish(turn: str) -> None:
            app.start_turn("list the branches", turn)

        await asyncio.create_task(publish("t1"), context=contextvars.Context())
        await until(pilot, lambda: len(app.chat.transcript.views) == 1)
        app.bridge.stop()
        await publish("t2")
        await pilot.pause(0.1)
        assert len(app.chat.transcript.views) == 1


async def test_a_long_message_of_ones_own_is_folded_until_it_is_opened() -> None:
    async with chatting(size=(100, 30)) as (app, pilot):
        long = "\n".join(f"row {number}" for number in range(1, 51))
        for text, first, last, more in (
            (long, "row 1", "row 6", "▸ 44 more lines"),
            ("x" * 2_000, "▌ xxx", "", "▸ 1,400 more characters"),
            ("a\nb\n" + "x" * 2_000, "▌ a", "xxx", "▸ 1,404 more characters"),
        ):
            await afresh(app, pilot)
            app.start_turn(text)
            await until(pilot, lambda: len(app.chat.transcript.views) == 1)
            own = app.chat.transcript.views[0]
            folded = shown(own)
            assert first in folded
            assert last in folded
            assert more in folded
            assert "row 7" not in folded
            app.chat.transcript.focus()
            await pilot.press("enter")
            await until(pilot, lambda: "▸" not in shown(own))  # noqa: B023 - awaited at once
            assert len("".join(shown(own).split())) >= len("".join(text.split()))
            await pilot.press("enter")
            await until(pilot, lambda: shown(own) == folded)  # noqa: B023 - awaited at once


async def test_a_call_tells_its_server_its_error_and_its_result_at_any_width() -> None:
    async with chatting(size=(100, 30)) as (app, pilot):
        # A tool row lives from waiting to its result.
        app.start_turn()
        app.store.dispatch(
            e.ToolCallRequested(call(0, ToolCallStatus.WAITING, arguments='{\n  "a": 1\n}'))
        )
        await until(pilot, lambda: len(app.chat.transcript.views) == 2)
        row = app.chat.transcript.views[-1]
        assert isinstance(row, ToolCallEntry)
        assert shown(row).split() == ["○", "waiting", "branch_list", "a=1", "git"]
        height = len(shown(row).split("\n"))
        app.store.dispatch(e.ToolCallChanged(EntryId("call0"), ToolCallStatus.RUNNING))
        app.store.dispatch(e.ToolCallProgressed(EntryId("call0"), Progress(3, 4, "nearly")))
        await until(pilot, lambda: "75%  nearly" in shown(row))
        assert "running" in shown(row)
        result = "main\nnext"
        app.store.dispatch(e.ToolCallChanged(EntryId("call0"), ToolCallStatus.OK, 0.042, result))
        first = ["✓", "ran", "branch_list", "a=1", "git", "42", "ms"]
        await until(pilot, lambda: shown(row).split("\n")[0].split() == first)
        assert shown(row).split("\n")[1].split() == ["2", "lines", "·", "main", "↵"]
        assert len(shown(row).split("\n")) == height == 2, "no row moves while it runs"
        app.chat.transcript.focus()
        await pilot.press("enter")
        await until(pilot, lambda: "next" in shown(row))
        assert '"a": 1' in shown(row)
        await pilot.press("enter")
        await until(pilot, lambda: "next" not in shown(row))
        # A closed call shows up to three lines of its error.
        await afresh(app, pilot)
        await pilot.resize_terminal(60, 30)
        app.start_turn()
        app.store.dispatch(e.ToolCallRequested(call()))
        words = "\n".join(f"reason {number} " + "word " * 3 for number in range(9))
        app.store.dispatch(e.ToolCallChanged(EntryId("call0"), ToolCallStatus.ERROR, 1, words))
        await until(pilot, lambda: len(app.chat.transcript.views) == 2)
        head, *lines = shown(app.chat.transcript.views[-1]).split("\n")
        assert head.split()[:3] == ["✕", "failed", "branch_list"]
        assert [line.split()[1] for line in lines] == ["0", "1", "2"]
        assert lines[-1].endswith("…")
        # The name of a tool is cut only after the whole of its servers.
        await afresh(app, pilot)
        await pilot.resize_terminal(51, 30)
        app.start_turn()
        rows = (
            ("everything", "get-sum", "get-sum everything"),
            ("a-server-whose-name-goes-on-and-on", "get-sum", "get-sum a-server-whose-n…"),
            ("everything", "trigger-long-operation", "trigger-long-operation"),
            ("s" * 300, "t" * 300, "t" * 25 + "…"),
            ("", "get-sum", "get-sum"),
        )
        for number, (server, tool, _) in enumerate(rows):
            waiting = call(number, ToolCallStatus.WAITING)
            named = replace(waiting, server=ServerId(server), tool=tool)
            app.store.dispatch(e.ToolCallRequested(named))
        await until(pilot, lambda: len(app.chat.transcript.views) == 1 + len(rows))
        drawn = [" ".join(shown(view).split()[2:]) for view in app.chat.transcript.views[1:]]
        assert drawn == [row for _, _, row in rows]
        # A long result is trimmed and the viewer shows all of it.
        result = "\n".join(f"line {number}" for number in range(5_000))
        await afresh(app, pilot)
        await pilot.resize_terminal(80, 24)
        app.start_turn()
        app.store.dispatch(e.ToolCallRequested(call()))
        app.store.dispatch(e.ToolCallChanged(EntryId("call0"), ToolCallStatus.OK, 1.0, result))
        await until(pilot, lambda: len(app.chat.transcript.views) == 2)
        app.chat.transcript.focus()
        await pilot.press("enter")
        row = app.chat.transcript.views[-1]
        await until(pilot, lambda: "more characters · Shift+Tab, then v" in shown(row))
        assert len(shown(row)) < MAX_SHOWN * 2
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, ViewerScreen))
        viewer = app.screen.query_one(FoldedText)
        await pilot.press("end")
        await until(pilot, lambda: viewer.scroll_y >= viewer.max_scroll_y)
        assert viewer.row_count > 5_000
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ViewerScreen))


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_text_in_every_place_neither_crashes_nor_holds_up_the_loop(
    text: str, loop_watch: LoopWatch
) -> None:
    async with chatting(size=(100, 30)) as (app, pilot):
        app.start_turn("hello")
        app.store.dispatch(e.TextStreamed(EntryId("warm"), "- *warm* `up`\n"))
        app.store.dispatch(e.ToolCallRequested(call(9, arguments='{"warm": 1}')))
        await until(pilot, lambda: len(app.chat.transcript.views) == 3)
        app.chat.transcript.toggle(app.chat.transcript.views[-1])
        await pilot.pause(0.1)
        loop_watch.clear()
        message = UserMessage(EntryId("u"), text)
        app.store.dispatch(e.TurnStarted(TurnId("t2"), message, monotonic()))
        app.store.dispatch(e.ThoughtStreamed(EntryId("th"), text))
        app.store.dispatch(e.TextStreamed(EntryId("m"), text[: len(text) // 2]))
        app.store.dispatch(e.TextStreamed(EntryId("m"), text[len(text) // 2 :]))
        app.store.dispatch(e.EntryCompleted(EntryId("m")))
        notice = ChatNotice(EntryId("n"), Severity.WARNING, text, text[:500])
        app.store.dispatch(e.ChatNoticeAdded(notice))
        app.store.dispatch(e.ToolCallRequested(call(1, arguments=text)))
        app.store.dispatch(e.ToolCallChanged(EntryId("call1"), ToolCallStatus.ERROR, 1.0, text))
        await until(pilot, lambda: len(app.chat.transcript.views) == 8)
        for view in app.chat.transcript.views:
            if view.expandable and not view.expanded:
                app.chat.transcript.toggle(view)
        await pilot.pause(0.1)
        app.chat.transcript.focus()
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, ViewerScreen))
        await pilot.press("end")
        await pilot.pause(0.05)
        loop_watch.assert_smooth(HANG_SECONDS)
        assert app.is_running


async def test_a_link_opens_only_once_the_end_of_its_address_was_in_sight() -> None:
    async with chatting(size=(40, 10)) as (app, pilot):
        url = f"https://a.example/{'x' * 1_900}/end"
        app.push_screen(LinkScreen(url, app.commands, keyboard=app.keyboard))
        await until(pilot, lambda: isinstance(app.screen, LinkScreen))
        await until(pilot, lambda: app.screen.query_one(LabelledText).row_count > 0)
        target, button = app.screen.query_one(LabelledText), app.screen.query_one("#open")
        assert "".join(row[LABEL_WIDTH:] for row in rows_of(target)) == f"a.example{url}"
        assert app.screen.region.contains_region(button.region)
        await click(pilot, "#open")
        assert app.opened == []
        await pilot.press("end")
        await until(pilot, lambda: getattr(app.screen, "armed", False))
        await click(pilot, "#open")
        await until(pilot, lambda: app.opened == [url])


async def test_the_working_line_says_what_runs_and_ticks_only_then() -> None:
    async with chatting() as (app, pilot):
        line = app.chat.working
        calm = ticking()
        assert str(line.render()) == ""
        message = UserMessage(EntryId("u"), "x")
        app.store.dispatch(e.TurnStarted(TurnId("t1"), message, monotonic() - 12))
        words = re.compile(r"waiting for the model   [1-9]\d s")  # 12 of them, or a few more
        await until(pilot, lambda: words.search(str(line.render())))
        assert "esc stop" in str(line.render())
        assert ticking() > calm
        app.store.dispatch(e.TurnPhaseChanged(TurnId("t1"), TurnPhase.TOOLS))
        await until(pilot, lambda: "running tools" in str(line.render()))
        app.store.dispatch(e.TurnFinished(TurnId("t1"), TurnOutcome.COMPLETED))
        await until(pilot, lambda: str(line.render()) == "")
        await until(pilot, lambda: ticking() == calm)


async def test_all_is_shown_however_late_a_timer_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    def held_up() -> float:
        """Tell the time, then lose the core, as to another process."""
        now = monotonic()
        sleep(2 * MIN_WAIT)
        return now

    monkeypatch.setattr(_time, "get_time", held_up)
    async with chatting() as (app, pilot):
        app.start_turn("first")
        await until(pilot, lambda: app.chat.transcript.views)
        for text in ("one ", "two ", "three "):
            app.store.dispatch(e.TextStreamed(EntryId("m"), text))
            await until(pilot, lambda: text in "\n".join(screen_lines(app)))  # noqa: B023 - at once
