"""Buttons, by mouse and by Enter: they hold to the same rules as the keys of their answers."""

from textual import events
from textual.widgets import Button

from tests.support.waiting import PATIENCE
from tests.ui.consent.samples import asked, trust
from tests.ui.hands import Confirming, asking, confirming
from tests.ui.harness import WIDE, click, holds
from tui.model.consent import Choice, Decision, GrantScope
from tui.model.trust import TrustAnswer
from tui.ui.questions.arming import ARMING_SECONDS, CLICK_SECONDS, HOLD_SECONDS, REPEAT_SECONDS

TWICE = {
    "allow-seen": Decision(Choice.ONCE),
    "always-tool": Decision(Choice.ALWAYS_TOOL),
    "always-server": Decision(Choice.ALWAYS_SERVER),
}


async def rest(hands: Confirming, name: str) -> None:
    """Wait until a button can be pressed again."""
    button = hands.modal.query_one(f"#{name}")
    await hands.until(lambda: not button.has_class("-active"))


async def click_and_wait(hands: Confirming, name: str, seconds: float = CLICK_SECONDS) -> None:
    await click(hands.pilot, f"#{name}")
    await rest(hands, name)
    hands.clock.advance(seconds)


async def open_all(hands: Confirming) -> None:
    """Ask anew, and show all answers."""
    await hands.ask_next(asked())
    await hands.press("full_stop")


async def test_a_click_on_a_wide_answer_takes_a_second_one_and_a_double_click_is_one() -> None:
    async with confirming(size=WIDE) as hands:
        for name, decision in TWICE.items():
            await open_all(hands)
            await click_and_wait(hands, name, CLICK_SECONDS - 0.01)
            await click_and_wait(hands, name)
            assert hands.decisions == [], "that was a double click"
            assert "again: " in hands.hint
            await click(hands.pilot, f"#{name}")
            assert hands.decisions == [decision]


async def test_a_click_elsewhere_or_too_late_is_no_second_one() -> None:
    async with confirming(size=WIDE) as hands:
        await open_all(hands)
        await click_and_wait(hands, "allow-seen")
        await click_and_wait(hands, "always-tool")
        await click_and_wait(hands, "allow-seen", REPEAT_SECONDS)
        await click_and_wait(hands, "allow-seen")
        assert hands.decisions == []


async def test_clicks_switch_the_scope_that_an_answer_takes() -> None:
    async with confirming(size=WIDE) as hands:
        await open_all(hands)
        await click_and_wait(hands, "scope", 0.2)
        assert GrantScope.FOLDER in hands.text
        await click_and_wait(hands, "always-server")
        await click(hands.pilot, "#always-server")
        expected = Decision(Choice.ALWAYS_SERVER, scope=GrantScope.FOLDER)
        await hands.until(lambda: hands.decisions == [expected])


async def test_a_click_on_the_trust_of_all_folders_takes_a_second_one() -> None:
    async with asking(trust(), WIDE, armed=True) as hands:
        await hands.pilot.press("end")
        await click(hands.pilot, "#children")
        assert hands.answers == []
        button = hands.modal.query_one("#children")
        await hands.until(lambda: not button.has_class("-active"))
        hands.clock.advance(CLICK_SECONDS)
        await click(hands.pilot, "#children")
        await hands.until(lambda: hands.answers == [TrustAnswer.TRUST_WITH_CHILDREN])


async def test_a_mouse_button_that_went_down_before_the_question_was_armed_answers_nothing() -> (
    None
):
    async with confirming(size=WIDE) as hands:
        await click(hands.pilot, "#deny")
        assert hands.decisions == []
        button = hands.modal.query_one("#deny", Button)
        await rest(hands, "deny")
        button.active_effect_duration = PATIENCE  # what shows that it was pressed lasts
        x, y, *_ = button.region
        down, up = (
            kind(None, x + 1, y, 0, 0, 1, False, False, False)
            for kind in (events.MouseDown, events.MouseUp)
        )
        hands.app.post_message(down)
        await hands.pilot.pause()
        await hands.arm()
        hands.app.post_message(up)
        await hands.until(lambda: button.has_class("-active"))
        assert hands.answers == []
        button.remove_class("-active")
        await click(hands.pilot, "#deny")
        await hands.until(lambda: hands.decisions == [Decision(Choice.DENY)])


async def test_enter_on_a_wide_answer_has_to_be_pressed_again() -> None:
    async with confirming(size=WIDE) as hands:
        for name in ("allow-seen", "always-server"):
            await open_all(hands)
            while hands.focused != name:
                await hands.pilot.press("tab")
            hands.clock.advance(ARMING_SECONDS)
            await hands.pilot.press("enter")
            assert "again: " in hands.hint
            assert not holds(hands.app)
            hands.clock.advance(ARMING_SECONDS)
            assert hands.decisions == []
            await hands.pilot.press("enter")
            hands.clock.advance(HOLD_SECONDS)
            await hands.until(lambda: not holds(hands.app))
            assert hands.decisions == [TWICE[name]]
