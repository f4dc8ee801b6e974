"""What holds for every question: what was on the screen, and what may lie over it."""

from dataclasses import replace

import pytest
from textual.widgets._toast import Toast

from tests.ui.consent.samples import GIT, asked, changed_tools, trust
from tests.ui.hands import Disclosing, confirming, disclosing
from tests.ui.harness import ChatApp, until
from tests.ui.requests.samples import form
from tui.model import events as e
from tui.model.requests import PendingRequest
from tui.model.trust import TrustAnswer, TrustRequest
from tui.ui.dialogs.list_dialog import Dialog
from tui.ui.questions.question import Question

NOTICE = "a server put this here"


def screen_text(app: ChatApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def show_again(hands: Disclosing, request: TrustRequest) -> None:
    """Let the request on the screen change."""
    hands.app.store.dispatch(e.RequestRaised(request))
    await until(hands.pilot, lambda: hands.modal.request == request)


@pytest.mark.parametrize("request_", [asked(), trust(), changed_tools(), form()])
async def test_no_toast_covers_a_question(request_: PendingRequest) -> None:
    app = ChatApp()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        app.notify(NOTICE, timeout=60, markup=False)
        await until(pilot, lambda: NOTICE in screen_text(app))
        app.store.dispatch(e.RequestRaised(request_))
        await until(pilot, lambda: isinstance(app.screen, Question))
        await until(pilot, lambda: bool(app.screen.query(Toast)))
        await pilot.pause()
        assert not any(toast.display for toast in app.screen.query(Toast))
        app.store.dispatch(e.RequestSettled(request_.id))
        await until(pilot, lambda: NOTICE in screen_text(app))


async def test_what_changed_has_to_be_read_to_its_end_anew() -> None:
    async with disclosing(trust(servers=(GIT,) * 9)) as hands:
        await hands.arm()
        await hands.press("end")
        await show_again(hands, trust(servers=(GIT,) * 8))
        await hands.arm()
        assert hands.view.scroll_offset.y == 0
        await hands.press("t")
        assert hands.calls == []
        await hands.press("end", "t")
        assert [answer for _, (_, answer) in hands.calls] == [TrustAnswer.TRUST]


async def test_what_changed_under_another_dialog_takes_no_answer_before_it_is_seen() -> None:
    async with disclosing(trust(servers=())) as hands:
        await hands.arm()
        under = hands.modal
        hands.app.push_screen(Dialog())
        await until(hands.pilot, lambda: isinstance(hands.app.screen, Dialog))
        changed = trust(servers=(replace(GIT, args=("other",)),))
        hands.app.store.dispatch(e.RequestRaised(changed))
        await hands.pilot.pause(0.1)
        hands.clock.advance(10)
        await hands.pilot.pause(0.2)
        assert not under.has_class("-armed")
        await hands.pilot.press("escape")
        await until(hands.pilot, lambda: hands.app.screen is under)
        await hands.pilot.press("t")
        assert hands.calls == []


async def test_a_screen_without_room_for_the_text_lets_nothing_be_allowed() -> None:
    async with disclosing(trust(servers=()), (80, 24)) as hands:
        await hands.pilot.resize_terminal(20, 2)
        await show_again(hands, trust(servers=(GIT,)))
        await hands.arm()
        await hands.press("end", "t")
        assert hands.calls == []
    async with confirming(size=(80, 24)) as confirmed:
        await confirmed.pilot.resize_terminal(20, 2)
        await confirmed.ask(replace(asked(), description="other"))
        await confirmed.arm()
        await confirmed.press("end", "o")
        assert confirmed.decisions == []


async def test_the_second_press_is_asked_for_in_words_that_fit() -> None:
    async with disclosing(trust(), (40, 10)) as hands:
        await hands.arm()
        await hands.press("end", "c")
        assert "c again: trust all folders in it" in hands.text
        await hands.press("c")
        assert [answer for _, (_, answer) in hands.calls] == [TrustAnswer.TRUST_WITH_CHILDREN]
