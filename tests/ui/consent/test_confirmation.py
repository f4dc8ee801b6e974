"""The question whether a tool may run: what it shows, who settles it, and several at once."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from textual import events

from tests.support.stalls import HANG_SECONDS, LoopWatch
from tests.ui.chat.samples import request, rows_of
from tests.ui.consent.samples import asked
from tests.ui.hands import Confirming, confirming
from tests.ui.harness import NARROW, WIDE, chat_app, click, until
from tui.model import events as e
from tui.model.chat import TurnId, TurnOutcome
from tui.model.consent import Choice, Decision, RequestId
from tui.model.events import TerminalSet
from tui.model.requests import ConfirmationRequest
from tui.model.servers import ServerId
from tui.ui.attention import notification
from tui.ui.questions.calls.argument_lines import drawn
from tui.ui.questions.confirmation import DENY, ConfirmationQuestion
from tui.ui.questions.question import Names
from tui.ui.widgets.text.folded_text import position_in

ONCE = Decision(Choice.ONCE)


async def test_the_question_shows_server_tool_claims_and_all_arguments() -> None:
    arguments = json.dumps({"message": "hello", "deep": {"list": list(range(100))}}, indent=2)
    asked = replace(request(arguments=arguments), origin="this folder")
    async with confirming(asked, armed=True) as hands:
        assert "git wants to run commit0 ── read-only (server's claim)" in hands.text
        assert not hands.one(Names).display
        assert not hands.modal.facts.display
        assert "Records changes." not in hands.text
        await hands.press("i")
        said = "from this folder · server's claim: read-only (unverified)"
        assert str(hands.modal.facts.render()) == said
        assert "Records changes." in hands.text
        await hands.press("i", "j")
        assert "\n".join(rows_of(hands.modal.arguments)) == arguments


async def test_no_name_is_cut_whose_call_can_be_allowed() -> None:
    """Names stand in the frame where they fit and look like nothing else, else below it."""
    long = "s" * 64, "rm" + "t" * 124 + "last"
    fitting, odd = ("git", "branches_delete_all"), ("git", "push ── read-only")
    async with confirming(size=WIDE) as hands:
        for size in (WIDE, NARROW, (40, 12), (20, 5)):
            await hands.resize(size)
            for server, tool in (long, odd, fitting):
                named = replace(asked(), server=ServerId(server), tool=tool)
                await hands.ask_next(named)
                view = hands.one(Names)
                in_frame = f" {server} wants to run {tool} " in hands.text
                assert in_frame == (tool == fitting[1] and size[0] > 40), (size, tool)
                assert view.display != in_frame
                if in_frame:
                    continue
                shown = "".join("".join(row.split()) for row in rows_of(view))
                assert shown == f"server{server}tool{tool}".replace(" ", "")
                for _ in range(3):
                    hands.calls.clear()
                    await hands.press("o")
                    in_sight = view.region.height and position_in(view).shows_end
                    assert bool(hands.decisions) <= bool(in_sight), (size, tool)
                    if hands.decisions:
                        break
                    await hands.press("end")
                assert bool(hands.decisions) == (size != (20, 5)), (size, tool)


async def test_claims_that_the_frame_has_no_room_for_stand_below_it() -> None:
    claims = ("read-only", "not destructive", "safe to repeat", "stays in a closed world")
    async with confirming(replace(request(), claims=claims)) as hands:
        for size, in_frame in ((NARROW, False), ((60, 16), False), (WIDE, True)):
            await hands.resize(size)
            words = " ".join(hands.text.replace("│", "").split())
            whole = ", ".join(claims)
            assert (f"── {whole} (server's claim)" in words) == in_frame, size
            assert (f"server's claim: {whole} (unverified)" in words) != in_frame, size
            assert hands.app.screen.region.contains_region(hands.modal.rows.region)
            assert hands.app.screen.region.contains_region(hands.modal.frame.region)


def test_blanks_that_deceive_look_like_no_others() -> None:
    for padding in ("", "x" * 20_000):
        text = f'{{\n  "a": "x      y\u00a0z\u3000·w",\n  "{padding}": 1\n}}'
        shown = drawn(text)
        assert '"x······y\\u00a0z\\u3000\\u00b7w"' in shown.plain
        assert "\u00a0" not in shown.plain
        marked = {
            shown.plain[span.start : span.end]
            for span in shown.spans
            if span.style == "$text-warning" and not shown.plain[span.start : span.end].isdigit()
        }
        assert marked == (set() if padding else {"······", "\\u00a0", "\\u3000\\u00b7"})


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


async def test_a_question_that_is_settled_is_not_asked_again() -> None:
    async with confirming() as hands:
        # A question settled elsewhere goes and the next takes its place.
        await hands.ask_also(request(1))
        await hands.settle("r0")
        assert hands.modal.request.id == "r1"
        await hands.settle("r1")
        assert not isinstance(hands.app.screen, ConfirmationQuestion)
        assert hands.decisions == []
        assert hands.app.focused is hands.app.chat.composer
        # An answered question is not asked again while the engine settles it.
        hands.calls.clear()
        await hands.ask(asked())
        await hands.arm()
        await hands.press("o")
        hands.app.store.dispatch(e.RequestRaised(request(1)))
        await hands.pilot.pause(0.1)
        assert not hands.modal.asks
        hands.clock.advance(1)
        await hands.pilot.press("o")
        assert len(hands.decisions) == 1


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
        hands.app.store.dispatch(TerminalSet(bell=False, title=False, keys={}))
        await hands.ask_also(request(4))
        assert hands.app.bells == 2, "it is off"


async def test_the_end_of_long_work_rings_once_nothing_waits_if_the_user_is_elsewhere() -> None:
    async with chat_app(NARROW) as (app, pilot, clock):

        def work(seconds: float, queued: tuple[str, ...] = ()) -> None:
            app.store.dispatch(e.QueueChanged(()))
            app.start_turn()
            app.bridge.update()  # now, as the bell waits for it and nothing shows that it came
            clock.advance(seconds)
            app.store.dispatch(e.QueueChanged(queued))
            app.store.dispatch(e.TurnFinished(TurnId("t1"), TurnOutcome.COMPLETED))
            app.bridge.update()

        app.post_message(events.AppBlur())
        await until(pilot, lambda: not app.app_focus)
        for seconds, queued, rung in ((9.9, (), 0), (5.1, ("more",), 0), (5.1, (), 1), (99, (), 2)):
            work(seconds, queued)
            assert app.bells == rung, (seconds, queued)
        app.post_message(events.AppFocus())
        await until(pilot, lambda: app.app_focus)
        work(60)
        assert app.bells == 2


def test_a_notification_is_for_terminals_known_to_show_it() -> None:
    for environment, begins in (
        ({"TERM_PROGRAM": "iTerm.app"}, "\x1b]9;"),
        ({"TERM_PROGRAM": "WezTerm", "TERM": "xterm-256color"}, "\x1b]9;"),
        ({"TERM": "xterm-ghostty"}, "\x1b]9;"),
        ({"TERM": "xterm-kitty"}, "\x1b]99;"),
        ({"TERM_PROGRAM": "tmux", "TERM": "xterm-256color"}, ""),
        ({}, ""),
    ):
        written = notification(environment, "words")
        assert written.startswith(begins), environment
        assert written.removeprefix(begins) in {"words\x1b\\", ";words\x1b\\", ""}, environment


SHORT = {"path": "a.txt"}
LONG = {"text": "line\n" * 200}


def call(number: int, values: dict[str, str] = SHORT) -> ConfirmationRequest:
    made = asked(values)
    return replace(made, id=RequestId(f"r{number}"), tool=f"tool{number}")


@asynccontextmanager
async def asking_about(
    *values: dict[str, str], size: tuple[int, int] = WIDE
) -> AsyncIterator[Confirming]:
    """Ask about several calls at once."""
    async with confirming(call(0, values[0]), size) as hands:
        for number, one in enumerate(values[1:], 1):
            await hands.ask_also(call(number, one))
        await hands.arm()
        yield hands


def given(hands: Confirming) -> dict[str, Choice]:
    """The answers by their requests."""
    answers = [arguments for name, arguments in hands.calls if name == "desk.answer"]
    return {str(request): answer.choice for request, answer in answers}  # type: ignore[attr-defined]


async def settle(hands: Confirming, *numbers: int) -> None:
    for number in numbers:
        hands.app.store.dispatch(e.RequestSettled(RequestId(f"r{number}")))
    await hands.until(lambda: hands.modal.request.id not in {f"r{n}" for n in numbers})


async def test_a_page_leads_from_the_end_of_a_call_to_the_next_and_back() -> None:
    async with asking_about(SHORT, LONG, SHORT) as hands:
        assert "call 1 of 3" in hands.text
        await hands.press("pagedown")
        assert "call 2 of 3" in hands.text
        await hands.press("pagedown")
        assert "call 2 of 3" in hands.text, "there is more to read"
        await hands.press("end", "pagedown")
        assert "call 3 of 3" in hands.text
        await hands.press("pagedown")
        assert "call 3 of 3" in hands.text
        await hands.press("pageup")
        assert "call 2 of 3" in hands.text


async def test_all_that_were_seen_are_allowed_at_once_and_the_rest_stay_asked() -> None:
    async with asking_about(SHORT, SHORT, LONG) as hands:
        await hands.press("pagedown")
        await hands.arm()
        assert "a allow the 2 of 3 you have seen" in hands.hint
        await hands.press("pagedown")
        await hands.arm()
        assert "more line" in hands.hint
        await hands.press("a")
        assert hands.hint == "Press a again: allow the 2 of 3 calls you have seen"
        assert hands.decisions == []
        await hands.press("a")
        assert given(hands) == {"r0": Choice.ONCE, "r1": Choice.ONCE}
        await settle(hands, 0, 1)
        assert "call 3 of 3" in hands.text
        await hands.arm()
        await hands.press("o")
        assert len(hands.decisions) == 2, "not read yet"
        await hands.press("end", "o")
        assert given(hands)["r2"] is Choice.ONCE
        assert all(decision == Decision(Choice.ONCE) for decision in hands.decisions)


async def test_B10_each_call_is_answered_by_itself_and_counts_up() -> None:
    async with asking_about(SHORT, SHORT, SHORT) as hands:
        await hands.press("o")
        assert given(hands) == {"r0": Choice.ONCE}
        await settle(hands, 0)
        assert "call 2 of 3" in hands.text
        await hands.pilot.press("o")
        assert len(hands.decisions) == 1, "not armed for the next call"
        await hands.arm()
        await hands.press("a", "a")
        assert given(hands) == {"r0": Choice.ONCE, "r1": Choice.ONCE}, "the last was not shown"
        await settle(hands, 1)
        assert "call 3 of 3" in hands.text


async def test_an_edit_stays_with_its_call_and_is_what_is_sent() -> None:
    async with asking_about(SHORT, SHORT) as hands:
        await hands.edit_as_json('{"path": "b.txt"}')
        await hands.finish()
        assert "your edit" in hands.text
        await hands.press("pagedown")
        await hands.arm()
        assert "your edit" not in hands.text
        await hands.press("a", "a")
        by_id = {str(a[0]): a[1] for name, a in hands.calls if name == "desk.answer"}
        assert by_id == {
            "r0": Decision(Choice.ONCE, arguments='{\n  "path": "b.txt"\n}'),
            "r1": Decision(Choice.ONCE),
        }


async def test_a_click_in_the_list_shows_its_call_which_takes_no_key_at_once() -> None:
    async with asking_about(SHORT, SHORT, SHORT) as hands:
        x, y = hands.modal.calls.region.offset
        await click(hands.pilot, (x + 3, y + 2))
        await hands.until_shown("call 3 of 3")
        await hands.arm()
        await hands.pilot.press("c", "o")
        assert hands.decisions == []
        assert "call 1 of 3" in hands.text


async def test_a_call_that_goes_leaves_the_others_and_what_was_seen() -> None:
    async with asking_about(SHORT, SHORT, SHORT) as hands:
        await hands.press("pagedown")
        await settle(hands, 1)
        await hands.arm()
        await hands.press("a", "a")
        assert given(hands) == {"r0": Choice.ONCE}


async def test_calls_keep_their_numbers_when_others_are_answered() -> None:
    async with asking_about(SHORT, SHORT, SHORT) as hands:
        await hands.press("pagedown")
        await hands.arm()
        await hands.press("d")
        assert given(hands) == {"r1": Choice.DENY}
        await settle(hands, 1)
        assert "call 1 of 3" in hands.text
        await hands.arm()
        await hands.press("c")
        await hands.until_shown("call 3 of 3")
        assert "▸ 3 tool2" in hands.text
        assert "1 tool0" in hands.text
        hands.app.store.dispatch(e.RequestRaised(call(3)))
        await hands.until_shown("call 3 of 4")


async def test_a_refused_edit_among_several_is_still_there() -> None:
    async with asking_about(SHORT, SHORT) as hands:
        await hands.edit_as_json('{"path": "b.txt"}')
        await hands.finish()
        await hands.press("a", "a")
        refused = replace(call(0), problem="path: not that one")
        hands.app.store.dispatch(e.RequestRaised(refused))
        await hands.until_shown("! Not sent yet: path: not that one")
        assert "b.txt" in hands.text
