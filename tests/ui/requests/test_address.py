"""Addresses that servers ask to open."""

import pytest
from textual.widgets import Button

from tests.ui.chat.support import request as confirmation
from tests.ui.chat.support import until
from tests.ui.requests.asking import asking
from tests.ui.requests.samples import address, form
from tui.model import events as e
from tui.model.requests import Reply, ReplyAction
from tui.ui.screens.address import AddressScreen
from tui.ui.screens.confirmation import ConfirmationScreen
from tui.ui.screens.form import FormScreen
from tui.ui.widgets.folded_text import FoldedText


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (60, 16)])
async def test_server_host_warning_and_the_whole_address_are_shown(size: tuple[int, int]) -> None:
    asked = address()
    async with asking(asked, size) as hands:
        for words in (
            "everything",
            asked.host,
            asked.shown_host,
            "The host is written",
            "223 char",
        ):
            assert words in hands.text
        shown = hands.one(FoldedText, ".request-address")
        assert "".join(shown._row(row).plain for row in range(shown.row_count)) == asked.url
        for button in hands.modal.query(Button):
            assert hands.modal.frame.region.contains_region(button.region)


@pytest.mark.parametrize(
    ("key", "action"),
    [("o", ReplyAction.ACCEPT), ("d", ReplyAction.DECLINE), ("escape", ReplyAction.CANCEL)],
)
async def test_each_key_gives_its_one_answer_once_armed(key: str, action: ReplyAction) -> None:
    async with asking(address()) as hands:
        await hands.press(key)
        assert hands.replies == [], "not armed yet"
        await hands.arm()
        await hands.press(key, key, "o")
        assert hands.replies == [Reply(action)]
        assert hands.app.opened == []


@pytest.mark.parametrize("size", [(80, 24), (40, 10)])
async def test_it_is_opened_only_once_the_end_of_the_address_was_in_sight(
    size: tuple[int, int],
) -> None:
    async with asking(address(url="https://a.example/" + "x" * 1_500), size) as hands:
        await hands.arm()
        await hands.press("o")
        assert hands.replies == []
        assert "Not opened yet" in hands.text
        while not isinstance(hands.app.focused, FoldedText):
            await hands.press("tab")
        await hands.press("end")
        await until(hands.pilot, lambda: "Not opened yet" not in hands.text)
        await hands.press("home")
        hands.clock.advance(1)
        await hands.press("o")
        assert hands.replies == [Reply(ReplyAction.ACCEPT)]


async def test_enter_is_not_yes() -> None:
    async with asking(address()) as hands:
        await hands.press("enter")
        await hands.arm()
        await hands.press("enter")
        assert hands.replies == [Reply(ReplyAction.DECLINE)]


async def test_one_kind_of_question_takes_the_place_of_another() -> None:
    async with asking(address()) as hands:
        for request in (confirmation(), form()):
            hands.app.store.dispatch(e.RequestRaised(request))
        await until(hands.pilot, lambda: str(hands.modal.frame.border_subtitle) == "1 of 3")
        assert isinstance(hands.app.screen, AddressScreen)
        hands.app.store.dispatch(e.RequestSettled(address().id))
        await until(hands.pilot, lambda: isinstance(hands.app.screen, ConfirmationScreen))
        assert len(hands.app.screen_stack) == 2
        hands.app.store.dispatch(e.RequestSettled(confirmation().id))
        await until(hands.pilot, lambda: isinstance(hands.app.screen, FormScreen))
        assert len(hands.app.screen_stack) == 2
        assert hands.app.commands.calls == []
