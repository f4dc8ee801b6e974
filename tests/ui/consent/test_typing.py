"""When keys count as answers, and what becomes of those that do not."""

from textual import events

from tests.ui.consent.samples import asked, trust
from tests.ui.hands import asking, confirming, disclosing
from tests.ui.harness import ChatApp, Clock, holds, until
from tests.ui.requests.samples import address
from tui.model import events as e
from tui.model.consent import Choice, Decision
from tui.model.requests import Reply, ReplyAction
from tui.model.trust import TrustAnswer
from tui.ui.questions.arming import (
    ARMING_SECONDS,
    EARLY,
    HOLD_SECONDS,
    KEY_REPEAT_SECONDS,
    PAUSE_SECONDS,
    WRITING,
)
from tui.ui.questions.question import Question

LARGE = (120, 40)


def question_is_open(app: ChatApp) -> bool:
    return isinstance(app.screen, Question)


async def test_an_allowing_letter_is_dropped_if_another_letter_follows() -> None:
    async with confirming() as hands:
        await hands.arm()
        await hands.pilot.press("o")
        assert hands.hint == "o: allow this call · any other letter stops it"
        hands.clock.advance(ARMING_SECONDS - 0.01)
        await hands.pilot.press("k")
        assert hands.hint == EARLY[0]
        hands.clock.advance(PAUSE_SECONDS)
        await hands.until(lambda: hands.modal.armed)
        assert hands.decisions == []
        await hands.press("o")
        assert hands.decisions == [Decision(Choice.ONCE)]


async def test_an_allowing_letter_counts_once_nothing_followed_it() -> None:
    async with confirming() as hands:
        await hands.arm()
        await hands.pilot.press("o")
        hands.clock.advance(ARMING_SECONDS - 0.01)
        await hands.pilot.pause(3 * HOLD_SECONDS)
        assert hands.decisions == []
        hands.clock.advance(0.011)
        await hands.until(lambda: hands.decisions == [Decision(Choice.ONCE)])


async def test_enter_on_an_allowing_button_waits_only_for_the_rest_of_a_paste() -> None:
    for key, decisions in (("k", []), ("", [Decision(Choice.ONCE)])):
        async with confirming() as hands:
            await hands.arm()
            await hands.pilot.press("shift+tab", "shift+tab")
            assert hands.focused == "once"
            await hands.pilot.press("enter")
            hands.clock.advance(HOLD_SECONDS - 0.01)
            await hands.pilot.pause(2 * HOLD_SECONDS)
            assert hands.decisions == []
            if key:
                await hands.pilot.press(key)
            hands.clock.advance(0.011)
            await hands.until(lambda: not holds(hands.app))
            assert hands.decisions == decisions


async def test_a_denying_answer_is_not_held() -> None:
    async with confirming() as hands:
        await hands.arm()
        await hands.pilot.press("d")
        assert hands.decisions == [Decision(Choice.DENY)]


async def test_other_allowing_answers_are_held_as_well() -> None:
    async with disclosing(trust(), LARGE) as hands:
        await hands.arm()
        await hands.pilot.press("t", "x")
        hands.clock.advance(PAUSE_SECONDS)
        await until(hands.pilot, lambda: hands.modal.armed)
        assert hands.calls == []
        await hands.press("t")
        assert [answer for _, (_, answer) in hands.calls] == [TrustAnswer.TRUST]
    async with asking(address()) as asked_for:
        await asked_for.arm()
        await asked_for.pilot.press("o", "k")
        asked_for.clock.advance(PAUSE_SECONDS)
        await until(asked_for.pilot, lambda: asked_for.modal.armed)
        assert asked_for.replies == []
        await asked_for.press("o")
        assert asked_for.replies == [Reply(ReplyAction.ACCEPT)]


async def test_scrolling_holds_no_answer_back() -> None:
    async with confirming(asked({"list": list(range(200))})) as hands:
        await hands.pilot.press("down", "pagedown", "end")
        hands.clock.advance(ARMING_SECONDS + 0.01)
        await hands.until(lambda: hands.modal.armed)
        await hands.pilot.press("up", "end", "tab", "shift+tab", "o")
        hands.clock.advance(ARMING_SECONDS + 0.01)
        await hands.until(lambda: hands.decisions == [Decision(Choice.ONCE)])


async def test_a_key_that_comes_too_early_is_dropped_and_says_so() -> None:
    async with confirming() as hands:
        await hands.pilot.press("o")
        assert hands.hint == EARLY[0]
        hands.clock.advance(ARMING_SECONDS - 0.1)
        await hands.pilot.pause(0.2)
        assert not hands.modal.armed
        hands.clock.advance(0.11)
        await hands.until(lambda: hands.modal.armed)
        assert "scroll the arguments" in hands.hint
        assert hands.decisions == []
        assert hands.app.chat.composer.text == ""


async def test_words_with_answers_in_them_run_nothing() -> None:
    words = ("tomatoes", "please do so", "atoms", "ok then", "oops", "aardvark", "so", "ssh to it")
    for word in words:
        async with confirming() as hands:
            await hands.arm()
            for letter in word:
                await hands.pilot.press("space" if letter == " " else letter)
                hands.clock.advance(0.499)
            hands.clock.advance(0.6)
            await hands.until(lambda: not holds(hands.app))
            assert not any(one.choice.allows for one in hands.decisions), word


async def test_text_pasted_without_brackets_runs_nothing() -> None:
    async with confirming() as hands:
        await hands.arm()
        for key in ("o", "t", "t", "s", "s", "a", "a", "o", "enter", "o"):
            await hands.pilot.press(key)
            hands.clock.advance(0.001)
        hands.clock.advance(0.3)
        await hands.pilot.pause(2 * HOLD_SECONDS)
        assert hands.decisions == []


async def test_a_key_held_from_before_runs_nothing() -> None:
    async with confirming() as hands:
        for _ in range(60):
            await hands.pilot.press("o")
            hands.clock.advance(0.09)
        assert hands.decisions == []


async def test_a_key_held_on_an_armed_question_runs_nothing() -> None:
    async with confirming() as hands:
        await hands.arm()
        await hands.pilot.press("o")
        hands.clock.advance(0.4)  # a keyboard waits so long before it repeats
        for _ in range(20):
            await hands.pilot.press("o")
            hands.clock.advance(0.09)
        hands.clock.advance(ARMING_SECONDS)
        await hands.until(lambda: not holds(hands.app))
        assert hands.decisions == []


async def test_a_held_key_is_no_second_press() -> None:
    async with confirming() as hands:
        await hands.arm()
        await hands.pilot.press("t")
        hands.clock.advance(0.4)  # a keyboard waits so long before it repeats
        for _ in range(21):  # an odd number: each would be the second press of the one before
            await hands.pilot.press("t")
            hands.clock.advance(0.09)
        hands.clock.advance(ARMING_SECONDS)
        await hands.until(lambda: not holds(hands.app))
        assert hands.decisions == []


async def test_the_second_press_counts_from_a_moment_after_the_first() -> None:
    async with confirming() as hands:
        await hands.arm()
        await hands.pilot.press("t")
        hands.clock.advance(KEY_REPEAT_SECONDS + 0.01)
        await hands.press("t")
        assert hands.decisions == [Decision(Choice.ALWAYS_TOOL)]


def answers(app: ChatApp) -> list[str]:
    """Give what was answered; the draft is saved as it may be."""
    return [name for name, _ in app.commands.calls if name != "sessions.recorder.keep_draft"]


async def test_what_was_being_written_goes_on_into_the_message() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await pilot.press(*"stop")
        app.store.dispatch(e.RequestRaised(asked()))
        await until(pilot, lambda: question_is_open(app))
        for key in ("t", "o", "d", "o", "x", "backspace", "a", "y"):
            await pilot.press(key)
            clock.advance(0.3)
        await until(pilot, lambda: app.chat.composer.text == "stoptodoay")
        question = app.screen
        assert isinstance(question, Question)
        assert str(question.hint.render()) == WRITING[0]
        assert answers(app) == []
        clock.advance(PAUSE_SECONDS)
        await until(pilot, lambda: question.armed)
        await pilot.press("o")
        clock.advance(ARMING_SECONDS + 0.01)
        await until(pilot, lambda: not holds(app))
        assert len(answers(app)) == 1
        assert app.chat.composer.text == "stoptodoay"


async def test_nothing_typed_is_lost_in_whatever_moment_a_question_opens() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    text = "so that not one letter of it is lost"
    async with app.run_test() as pilot:
        for number, letter in enumerate(text):
            app.post_message(events.Key("space" if letter == " " else letter, letter))
            if number == 5:
                app.store.dispatch(e.RequestRaised(asked()))
            if number % 4 == 0:
                await pilot.pause(0.02)
        await until(pilot, lambda: app.chat.composer.text == text)
        assert question_is_open(app)
        app.post_message(events.Paste(" and this"))
        await until(pilot, lambda: app.chat.composer.text == f"{text} and this")
        assert app.commands.calls == []


async def test_a_question_that_nobody_asked_for_waits_for_a_pause_and_says_so() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await pilot.press(*"hello")
        app.store.dispatch(e.RequestRaised(trust()))
        await until(pilot, lambda: "A question waits" in str(app.chat.working.render()))
        clock.advance(PAUSE_SECONDS - 0.1)
        await pilot.press("left")
        clock.advance(PAUSE_SECONDS - 0.1)
        await pilot.pause(0.2)
        assert not question_is_open(app), "any key puts it off"
        clock.advance(0.11)
        await until(pilot, lambda: question_is_open(app))
        assert str(app.chat.working.render()) == ""
        assert app.chat.composer.text == "hello"


async def test_a_waiting_question_opens_with_its_key() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await pilot.press(*"hello")
        app.store.dispatch(e.RequestRaised(address()))
        await until(pilot, lambda: "opens it ·" in str(app.chat.working.render()))
        await pilot.press("f8")
        await until(pilot, lambda: question_is_open(app))


async def test_a_waiting_question_that_is_settled_leaves_no_trace() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await pilot.press(*"hello")
        app.store.dispatch(e.RequestRaised(address()))
        await until(pilot, lambda: "A question waits" in str(app.chat.working.render()))
        app.store.dispatch(e.RequestSettled(address().id))
        await until(pilot, lambda: str(app.chat.working.render()) == "")
        clock.advance(PAUSE_SECONDS)
        await pilot.pause(0.2)
        assert len(app.screen_stack) == 1


async def test_a_confirmation_opens_at_once() -> None:
    app = ChatApp(clock=Clock())
    async with app.run_test() as pilot:
        await pilot.press(*"hello")
        app.store.dispatch(e.RequestRaised(asked()))
        await until(pilot, lambda: question_is_open(app))
