"""Calls that wait at the same time are one question: each is answered, or all that were seen."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from textual import events

from tests.ui.consent.samples import asked
from tests.ui.hands import Confirming, confirming
from tests.ui.harness import WIDE
from tui.model import events as e
from tui.model.consent import Choice, Decision, RequestId
from tui.model.requests import ConfirmationRequest
from tui.ui.questions.calls.steps import EditArgumentsScreen

SHORT = {"path": "a.txt"}
LONG = {"text": "line\n" * 200}


def call(number: int, values: dict[str, str] = SHORT) -> ConfirmationRequest:
    made = asked(values, ())
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
        assert "2 of 3 seen: a allows these two" in hands.hint
        await hands.press("pagedown")
        await hands.arm()
        assert "Read to the end" in hands.hint
        await hands.press("a")
        assert hands.hint == "Press a again: allow these two once, 2 of 3 calls seen"
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


async def test_each_call_is_answered_by_itself_and_counts_up() -> None:
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
        for kind in (events.MouseDown, events.MouseUp):
            hands.app.post_message(kind(None, x + 3, y + 2, 0, 0, 1, False, False, False))
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
        assert "call 3 of 3" in hands.text
        rows = str(hands.modal.calls.render())
        assert "▸ 3 tool2" in rows
        assert "1 tool0" in rows
        await hands.ask_also(call(3))
        assert "call 3 of 4" in hands.text


async def test_a_refused_edit_among_several_is_offered_again() -> None:
    async with asking_about(SHORT, SHORT) as hands:
        await hands.edit_as_json('{"path": "b.txt"}')
        await hands.finish()
        await hands.press("a", "a")
        refused = replace(call(0), problem="path: not that one")
        hands.app.store.dispatch(e.RequestRaised(refused))
        await hands.until(lambda: isinstance(hands.app.screen, EditArgumentsScreen))
        assert "not that one" in hands.text
