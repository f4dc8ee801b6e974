"""The question whether a tool may run: what it shows, whatever it is about, and who settles it."""

import json
import re
from dataclasses import replace

from textual import events

from tests.support.stalls import HANG_SECONDS, LoopWatch
from tests.ui.chat.samples import request, rows_of
from tests.ui.hands import confirming
from tests.ui.harness import NARROW, WIDE, click
from tui.model import events as e
from tui.model.consent import Choice, Decision, RequestId
from tui.model.requests import BellSet, ConfirmationRequest
from tui.model.servers import ServerId
from tui.ui.dialogs.list_dialog import ViewerScreen
from tui.ui.pending import notification
from tui.ui.questions.calls.argument_lines import coloured_arguments
from tui.ui.questions.confirmation import DENY, ConfirmationQuestion
from tui.ui.widgets.frame import Heading

ONCE = Decision(Choice.ONCE)


async def test_the_question_shows_server_tool_claims_and_all_arguments() -> None:
    arguments = json.dumps({"message": "hello", "deep": {"list": list(range(100))}}, indent=2)
    asked = replace(request(arguments=arguments), origin="this folder")
    async with confirming(asked, armed=True) as hands:
        server, tool, claims = str(hands.modal.facts.render()).split("\n")
        assert server == "server   git  from this folder"
        assert "commit0" in tool
        assert "read-only  (claimed, not checked)" in claims
        await hands.press("j")
        assert "\n".join(rows_of(hands.modal.arguments)) == arguments


async def test_long_names_take_a_row_each_and_show_both_ends() -> None:
    asked = replace(
        request(),
        server=ServerId("s" * 194 + "server"),
        tool="rm" + "t" * 194 + "last",
        claims=("c" * 200,),
    )
    async with confirming(asked) as hands:
        for size in (WIDE, NARROW, (40, 10)):
            await hands.resize(size)
            facts = hands.modal.facts
            server, tool, *claims = str(facts.render()).split("\n")
            assert "…" in server
            assert server.endswith("server")
            assert tool.startswith("tool     rmt")
            assert tool.endswith("last")
            assert claims[-1].endswith("(claimed, not checked)")
            assert max(map(len, (server, tool, *claims[:-1]))) <= facts.size.width
            assert hands.app.screen.region.contains_region(facts.region)
            assert facts.size.height >= 2


async def test_claims_are_wrapped_where_there_is_room() -> None:
    claims = ("read-only", "not destructive", "idempotent", "stays in a closed world")
    async with confirming(replace(request(), claims=claims)) as hands:
        for height, rows in ((24, 2), (16, 1)):
            await hands.resize((80, height))
            view = hands.modal
            assert view.facts.size.height == 2 + rows
            shown = [line[9:].strip() for line in str(view.facts.render()).split("\n")[2:]]
            assert len(shown) == rows
            assert shown[-1].endswith("(claimed, not checked)")
            assert (" ".join(", ".join(claims).split()) in " ".join(shown)) == (rows > 1)
            assert hands.app.screen.region.contains_region(view.rows.region)
            assert hands.app.screen.region.contains_region(view.hint.region)


def test_blanks_that_deceive_look_like_no_others() -> None:
    for padding in ("", "x" * 20_000):
        text = f'{{\n  "a": "x      y\u00a0z\u3000·w",\n  "{padding}": 1\n}}'
        shown = coloured_arguments(text)
        assert '"x······y\\u00a0z\\u3000\\u00b7w"' in shown.plain
        assert "\u00a0" not in shown.plain
        marked = {
            shown.plain[span.start : span.end]
            for span in shown.spans
            if span.style == "$text-warning" and not shown.plain[span.start : span.end].isdigit()
        }
        assert marked == (set() if padding else {"······", "\\u00a0", "\\u3000\\u00b7"})


async def test_arguments_that_do_not_fit_are_scrolled_by_keys_and_allowed_after_their_end() -> None:
    arguments = json.dumps(list(range(2_998)), indent=2)
    async with confirming(request(arguments=arguments), armed=True) as hands:
        view = hands.modal.arguments
        assert hands.hint == "Read to the end first: PageDown, End · line 1 of 3,000"
        await hands.press("o", "t", "t", "s", "s")
        await click(hands.pilot, "#once")
        await click(hands.pilot, "#always-tool")
        assert hands.decisions == []
        assert view.show_vertical_scrollbar
        await hands.press("down", "pagedown")
        assert view.scroll_y > 1
        await hands.press("end")
        assert view.scroll_y == view.max_scroll_y
        assert view.row_count == arguments.count("\n") + 1
        assert hands.focused == "always-tool", "scrolling leaves the focus where it was"
        assert "scroll the arguments" in hands.hint
        heading = str(hands.modal.query_one(Heading).render())
        assert re.search(r"line 2,9\d\d of 3,000", heading)
        await hands.press("o")
        assert hands.decisions == [ONCE]


async def test_hostile_questions_neither_crash_nor_hold_up_the_loop(loop_watch: LoopWatch) -> None:
    async with confirming(request(arguments='{"warm": "up"}')) as hands:
        loop_watch.clear()
        for text in ("[/x] [@click=app.quit]q[/]", "\n" * 5_000, "x" * 1_000_000, "漢" * 300_000):
            hostile = ConfirmationRequest(
                RequestId(text[:3]), request().call, request().server, text, text, text, (text,) * 2
            )
            await hands.ask_next(hostile, armed=False)
            hands.modal.action_scroll(0, 1000)
            await hands.pilot.pause()
            loop_watch.assert_smooth(HANG_SECONDS)
            assert hands.app.is_running
            region = hands.modal.rows.button(DENY).region
            assert hands.app.screen.region.contains_region(region), text[:3]


# Questions after each other, and who else may settle one.


async def test_a_question_settled_elsewhere_goes_and_the_next_takes_its_place() -> None:
    async with confirming() as hands:
        await hands.ask_also(request(1))
        await hands.settle("r0")
        assert hands.modal.request.id == "r1"
        await hands.settle("r1")
        assert not isinstance(hands.app.screen, ConfirmationQuestion)
        assert hands.decisions == []
        assert hands.app.focused is hands.app.chat.composer


async def test_an_answered_question_is_not_asked_again_while_the_engine_settles_it() -> None:
    async with confirming(armed=True) as hands:
        await hands.press("o")
        hands.app.store.dispatch(e.RequestRaised(request(1)))
        await hands.pilot.pause(0.1)
        assert not hands.modal.asks
        hands.clock.advance(1)
        await hands.pilot.press("o")
        assert len(hands.decisions) == 1


async def test_a_question_under_another_dialog_goes_when_that_closes() -> None:
    async with confirming() as hands:
        await hands.app.push_screen(ViewerScreen("title", "text"))
        await hands.settle()
        assert isinstance(hands.app.screen, ViewerScreen)
        await hands.pilot.press("escape")
        await hands.until(lambda: len(hands.app.screen_stack) == 1)


async def test_the_bell_rings_once_in_ten_seconds_and_only_while_the_user_is_elsewhere() -> None:
    async with confirming() as hands:
        assert hands.app.bells == 0
        hands.app.post_message(events.AppBlur())
        await hands.until(lambda: not hands.app.app_focus)
        hands.clock.advance(1)
        for number, seconds, rung in ((1, 0.0, 1), (2, 9.9, 1), (3, 0.2, 2)):
            hands.clock.advance(seconds)
            await hands.ask_also(request(number))
            assert hands.app.bells == rung, seconds
        await hands.settle()
        assert hands.app.bells == 2, "a question that comes up was told of"
        hands.clock.advance(60)
        hands.app.store.dispatch(BellSet(False))
        await hands.ask_also(request(4))
        assert hands.app.bells == 2, "it is off"


def test_a_notification_is_for_terminals_known_to_show_it() -> None:
    for environment, begins in (
        ({"TERM_PROGRAM": "iTerm.app"}, "\x1b]9;"),
        ({"TERM_PROGRAM": "WezTerm", "TERM": "xterm-256color"}, "\x1b]9;"),
        ({"TERM": "xterm-ghostty"}, "\x1b]9;"),
        ({"TERM": "xterm-kitty"}, "\x1b]99;"),
        ({"TERM_PROGRAM": "tmux", "TERM": "xterm-256color"}, ""),
        ({}, ""),
    ):
        assert notification(environment).startswith(begins), environment
        assert bool(notification(environment)) is bool(begins), environment


async def test_quitting_works_over_the_question_and_deck_keys_do_not_reach_behind() -> None:
    async with confirming() as hands:
        await hands.pilot.press("f2", "f6", "f7")
        assert hands.app.leaks == 0
        await hands.settle()
        await hands.pilot.press("f2")
        assert hands.app.leaks == 1
        await hands.ask(request(1))
        await hands.pilot.press("ctrl+q")
        await hands.pilot.pause()
        assert not hands.app.is_running
    assert hands.decisions == []
