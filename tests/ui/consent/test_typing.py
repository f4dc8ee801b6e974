"""When keys count as answers, and what becomes of those that do not."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot

from tests.ui.consent.samples import asked, trust
from tests.ui.hands import asking, confirming, hint_of
from tests.ui.harness import NARROW, ChatApp, chat_app, holds, screen_lines, until
from tests.ui.requests.samples import address, sign_in
from tui.model import events as e
from tui.model.consent import Choice, Decision
from tui.model.requests import PendingRequest, Reply, ReplyAction
from tui.model.trust import TrustAnswer
from tui.ui.questions.arming import (
    ARMING_SECONDS,
    HOLD_SECONDS,
    KEY_REPEAT_SECONDS,
    PAUSE_SECONDS,
    UNARMED,
    WRITING,
    Arming,
)
from tui.ui.questions.confirmation import ConfirmationQuestion
from tui.ui.questions.question import Question
from tui.ui.widgets.frame import Frame

LARGE = (120, 40)


async def test_letters_of_words_are_no_answers_and_a_second_press_comes_a_moment_later() -> None:
    async with confirming(armed=True) as hands:
        # An allowing letter is dropped if another letter follows and else counts.
        await hands.pilot.press("o")
        assert hands.hint == "o: allow this call · any other letter cancels it"
        hands.clock.advance(ARMING_SECONDS - 0.01)
        await hands.pilot.press("k")
        assert hands.hint == UNARMED
        hands.clock.advance(PAUSE_SECONDS)
        await hands.until(lambda: hands.modal.armed)
        await hands.pilot.press("o")
        hands.clock.advance(ARMING_SECONDS - 0.01)
        await hands.pilot.pause(3 * HOLD_SECONDS)
        assert hands.decisions == []
        hands.clock.advance(0.011)
        await hands.until(lambda: hands.decisions == [Decision(Choice.ONCE)])
        # Words typed slowly answer nothing once there was a letter of none.
        await hands.ask_next(asked())
        for key in ("p", "l", "e", "a", "s", "e", "space", "n", "o", "enter"):
            await hands.pilot.press(key)
            hands.clock.advance(0.62)
        assert hands.decisions == []
        await hands.until(lambda: not hands.modal.armed)
        assert "stop typing" in hands.hint
        # The second press counts from a moment after the first.
        await hands.ask_next(asked())
        await hands.pilot.press("t")
        hands.clock.advance(KEY_REPEAT_SECONDS + 0.01)
        await hands.press("t")
        assert hands.decisions == [Decision(Choice.ALWAYS_TOOL)]


async def test_a_key_counts_alone_once_the_question_takes_answers() -> None:
    async with confirming() as hands:
        # A key that came too early is asked for again until the next one.
        for key in ("o", "d"):
            await hands.ask_next(asked(), armed=False)
            await hands.pilot.press("down", key)
            assert hands.hint == f"Too early: press {key} again"
            await hands.arm()
            assert hands.hint == f"Too early: press {key} again", "it stays"
            await hands.pilot.press("down")
            assert "about the tool" in hands.hint
        await hands.ask_next(asked({"text": "line\n" * 99}), armed=False)
        await hands.pilot.press("o")
        assert hands.hint.endswith(UNARMED), "there is more to read before that"
        assert hands.decisions == []
        # What neither allows nor denies counts at once where no key came just before.
        for key, shown in (
            ("j", '"branch"'),
            ("full_stop", "Always server"),
            ("e", "Edit the arguments"),
            ("w", "Deny with a note"),
        ):
            await hands.ask_next(asked(), armed=False)
            await hands.pilot.press("down")
            hands.clock.advance(ARMING_SECONDS - 0.01)
            await hands.pilot.press(key)
            assert shown not in hands.text
            assert hands.hint.startswith("Too early")
            await hands.ask_next(asked(), armed=False)
            await hands.pilot.press(key)
            await hands.until_shown(shown)
            await hands.pilot.press("escape")
            await hands.until(lambda: isinstance(hands.app.screen, ConfirmationQuestion))
        assert hands.decisions == []
        # Enter on an allowing button waits only for the rest of a paste.
        for key, decisions in (("k", []), ("", [Decision(Choice.ONCE)])):
            await hands.ask_next(asked())
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
        # Scrolling holds no answer back.
        await hands.ask_next(asked({"list": list(range(200))}), armed=False)
        await hands.pilot.press("down", "pagedown", "end")
        hands.clock.advance(ARMING_SECONDS + 0.01)
        await hands.until(lambda: hands.modal.armed)
        await hands.pilot.press("up", "end", "tab", "shift+tab", "o")
        hands.clock.advance(ARMING_SECONDS + 0.01)
        await hands.until(lambda: hands.decisions == [Decision(Choice.ONCE)])


async def test_a_denying_answer_is_not_held_and_every_allowing_one_is() -> None:
    async with asking(asked(), LARGE, armed=True) as hands:
        await hands.pilot.press("d")
        assert hands.answers == [Decision(Choice.DENY)]
        for request, key, answer in (
            (trust(), "t", TrustAnswer.TRUST),
            (address(), "o", Reply(ReplyAction.ACCEPT)),
        ):
            await hands.ask_next(request)
            await hands.pilot.press(key, "k")
            hands.clock.advance(PAUSE_SECONDS)
            await hands.until(lambda: hands.modal.armed)
            assert hands.calls == []
            await hands.press(key)
            assert hands.answers == [answer]


WORDS = ("tomatoes", "please do so", "oops", "aardvark", "ssh to it")


async def test_B10_what_is_typed_pasted_or_held_runs_nothing() -> None:
    async with confirming() as hands:
        # Words with answers in them run nothing.
        for word in WORDS:
            await hands.ask_next(asked())
            for letter in word:
                await hands.pilot.press("space" if letter == " " else letter)
                hands.clock.advance(0.499)
            hands.clock.advance(0.6)
            await hands.until(lambda: not holds(hands.app))
            assert not any(one.choice.allows for one in hands.decisions), word
        # A key held on an armed question runs nothing.
        # An odd number, for each would be the second press of the one before.
        for key, repeats in (("o", 8), ("t", 9)):
            await hands.ask_next(asked())
            await hands.pilot.press(key)
            hands.clock.advance(0.4)  # a keyboard waits so long before it repeats
            for _ in range(repeats):
                await hands.pilot.press(key)
                hands.clock.advance(0.09)
            hands.clock.advance(ARMING_SECONDS)
            await hands.until(lambda: not holds(hands.app))
            assert hands.decisions == [], key
        # No paste runs anything in brackets or without.
        await hands.ask_next(asked(), armed=False)
        hands.app.post_message(events.Paste("o\r"))
        await hands.arm()
        hands.app.post_message(events.Paste("o\ry\r"))
        await hands.pilot.pause()
        await hands.arm()
        for key in ("o", "t", "t", "s", "s", "a", "a", "o", "enter", "o"):
            await hands.pilot.press(key)
            hands.clock.advance(0.001)
        hands.clock.advance(0.3)
        await hands.pilot.pause(2 * HOLD_SECONDS)
        assert hands.decisions == []
        assert hands.app.chat.composer.text == ""
        # Keys typed before are swallowed and each delays the arming.
        await hands.ask_next(asked(), armed=False)
        for key in "yyoots":
            await hands.pilot.press(key)
            hands.clock.advance(0.3)
        await hands.pilot.press("enter", "tab", "enter")
        assert hands.decisions == []
        assert hands.app.chat.composer.text == ""
        hands.clock.advance(0.3)
        await hands.pilot.pause(0.05)
        assert not hands.modal.armed, "the last key was 0.3 s ago"
        assert hands.hint == UNARMED
        await hands.arm()
        assert "about the tool" in hands.hint
        await hands.press("o")
        assert hands.decisions == [Decision(Choice.ONCE)]


def answers(app: ChatApp) -> list[object]:
    """Give what was answered."""
    return [arguments[1] for _, arguments in app.commands.acts]


async def test_what_was_being_written_goes_on_into_the_message() -> None:
    async with chat_app(NARROW) as (app, pilot, clock):
        await pilot.press(*"stop")
        app.store.dispatch(e.RequestRaised(asked()))
        await until(pilot, lambda: isinstance(app.screen, Question))
        for key in ("t", "o", "d", "o", "x", "backspace", "a", "y"):
            await pilot.press(key)
            clock.advance(0.3)
        await until(pilot, lambda: app.chat.composer.text == "stoptodoay")
        assert hint_of(question(app)) == WRITING
        assert answers(app) == []
        clock.advance(PAUSE_SECONDS)
        await until(pilot, lambda: question(app).armed)
        await pilot.press("o")
        clock.advance(ARMING_SECONDS + 0.01)
        await until(pilot, lambda: not holds(app))
        assert len(answers(app)) == 1
        assert app.chat.composer.text == "stoptodoay"


async def test_a_question_waits_longer_for_who_was_writing_but_not_after_a_message() -> None:
    async with confirming() as hands:
        for keys, delay in (("hi", 0.0), ("adra", 0.5), (("a", "backspace"), 0.5)):
            await hands.settle()
            hands.clock.advance(PAUSE_SECONDS)
            hands.app.chat.composer.clear_draft()
            await hands.pilot.press(*keys, *([] if delay else ["enter"]))
            await hands.ask(asked())
            hands.clock.advance(ARMING_SECONDS + 0.01)
            if delay:
                await hands.pilot.pause(0.05)
                assert not hands.modal.armed, keys
                hands.clock.advance(delay)
            await hands.until(lambda: hands.modal.armed)


async def test_nothing_typed_is_lost_in_whatever_moment_a_question_opens() -> None:
    text = "so that not one letter of it is lost"
    async with chat_app(NARROW) as (app, pilot, _):
        for number, letter in enumerate(text):
            app.post_message(events.Key("space" if letter == " " else letter, letter))
            if number == 5:
                app.store.dispatch(e.RequestRaised(asked()))
            if number % 4 == 0:
                await pilot.pause(0.02)
        await until(pilot, lambda: app.chat.composer.text == text)
        assert isinstance(app.screen, Question)
        app.post_message(events.Paste(" and this"))
        await until(pilot, lambda: app.chat.composer.text == f"{text} and this")
        assert app.commands.acts == []


async def test_a_question_that_nobody_asked_for_waits_for_a_pause_or_its_key_and_says_so() -> None:
    async with chat_app(NARROW) as (app, pilot, clock):

        async def raise_question(request: PendingRequest = address()) -> None:  # noqa: B008
            app.store.dispatch(e.RequestRaised(request))
            await until(pilot, lambda: "A question is waiting" in str(app.chat.working.render()))

        async def settle_question() -> None:
            app.store.dispatch(e.RequestSettled(address().id))
            await until(pilot, lambda: str(app.chat.working.render()) == "")

        await pilot.press(*"hello")
        await raise_question(sign_in())  # which a call of another client may cause
        app.store.dispatch(e.RequestSettled(sign_in().id))
        await settle_question()
        clock.advance(PAUSE_SECONDS)
        await pilot.pause(0.2)
        assert len(app.screen_stack) == 1, "it was settled"
        await pilot.press("a")
        await raise_question()
        clock.advance(PAUSE_SECONDS - 0.1)
        await pilot.press("left")
        clock.advance(PAUSE_SECONDS - 0.1)
        await pilot.pause(0.2)
        assert not isinstance(app.screen, Question), "any key puts it off"
        clock.advance(0.11)
        await until(pilot, lambda: isinstance(app.screen, Question))
        await settle_question()
        await pilot.press("b")
        await raise_question()
        assert str(app.chat.working.render()) == "A question is waiting: f8"
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(app.screen, Question))
        assert app.chat.composer.text == "helloba"


def stall(seconds: float) -> None:
    """Hold the loop up."""
    time.sleep(seconds)


def read(key: str) -> events.Key:
    """Read a key from the terminal, which is when it is stamped."""
    return events.Key(key, key)


def hand_over(app: ChatApp, *keys: events.Key) -> None:
    for key in keys:
        app.post_message(key)


def question(app: ChatApp) -> Question[Any]:
    assert isinstance(app.screen, Question)
    return app.screen


def hint(app: ChatApp) -> str:
    return hint_of(question(app))


def when_held(app: ChatApp, act: Callable[[], None]) -> None:
    """Act once as soon as an answer is held, in the very moment."""
    patch = pytest.MonkeyPatch()
    show_hint = question(app).show_hint

    def act_once() -> None:
        show_hint()
        if holds(app):
            patch.undo()
            act()

    patch.setattr(question(app), "show_hint", act_once)


async def rearmed(app: ChatApp, pilot: Pilot[None]) -> None:
    """Wait until what was typed has held answers back, and no longer does."""
    await until(pilot, lambda: not question(app).armed)
    await until(pilot, lambda: question(app).armed and not holds(app))


@asynccontextmanager
async def armed() -> AsyncIterator[tuple[ChatApp, Pilot[None]]]:
    app = ChatApp()
    async with app.run_test() as pilot:
        app.store.dispatch(e.RequestRaised(asked()))
        await until(pilot, lambda: isinstance(app.screen, Question) and app.screen.armed)
        yield app, pilot


async def test_a_word_during_a_stall_runs_nothing_and_an_answer_alone_counts() -> None:
    def type_on(app: ChatApp) -> None:
        hand_over(app, read("k"))
        stall(ARMING_SECONDS + 0.1)

    def stall_then_read(app: ChatApp) -> None:
        """A parser may hold the interpreter, and with it the thread that reads the terminal."""
        stall(ARMING_SECONDS + 0.1)
        loop = asyncio.get_running_loop()
        loop.call_later(HOLD_SECONDS / 4, lambda: hand_over(app, read("k")))

    for act in (type_on, stall_then_read):
        async with armed() as (app, pilot):
            when_held(app, partial(act, app))
            hand_over(app, read("o"))
            await rearmed(app, pilot)
            assert answers(app) == [], act
    async with armed() as (app, pilot):
        when_held(app, lambda: stall(ARMING_SECONDS + 0.1))
        hand_over(app, read("o"))
        await until(pilot, lambda: answers(app) == [Decision(Choice.ONCE)])


async def test_a_key_from_before_the_question_was_armed_is_too_early_however_late_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = Arming.begin
    app = ChatApp()

    def begin_and_stall(arming: Arming) -> None:
        begin(arming)
        hand_over(app, read("d"))
        stall(ARMING_SECONDS + 0.1)

    async with app.run_test() as pilot:
        monkeypatch.setattr(Arming, "begin", begin_and_stall)
        app.store.dispatch(e.RequestRaised(asked()))
        await until(pilot, lambda: isinstance(app.screen, Question))
        await until(pilot, lambda: question(app).armed)
        hand_over(app, read("m"))
        await until(pilot, lambda: "Scope: folder" in "\n".join(screen_lines(app)))
        assert answers(app) == []


async def test_a_held_key_whose_repeats_are_handled_late_is_no_second_press() -> None:
    async with armed() as (app, pilot):
        first, repeated = read("t"), read("t")
        hand_over(app, first)
        await until(pilot, lambda: "Press t again" in hint(app))
        stall(2 * KEY_REPEAT_SECONDS)
        hand_over(app, repeated)
        await until(pilot, lambda: "Press t again" not in hint(app))
        assert answers(app) == []


async def test_what_was_being_written_goes_on_through_a_stall() -> None:
    app = ChatApp()
    async with app.run_test() as pilot:
        *begun, rest = map(read, "had")
        hand_over(app, *begun)
        await until(pilot, lambda: app.chat.composer.text == "ha")
        app.store.dispatch(e.RequestRaised(asked()))
        await until(pilot, lambda: isinstance(app.screen, Question))
        stall(PAUSE_SECONDS)
        hand_over(app, rest)
        await until(pilot, lambda: app.chat.composer.text == "had")
        assert answers(app) == []


async def test_a_question_whose_timer_comes_as_the_app_ends_breaks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with asking(address()) as hands:
        asks, frame = hands.modal, hands.modal.frame
        leave = type(frame)._message_loop_exit

        async def leave_and_look(part: Frame) -> None:
            await leave(part)
            if part is frame:
                asks._arming._look_again()

        monkeypatch.setattr(type(frame), "_message_loop_exit", leave_and_look)
