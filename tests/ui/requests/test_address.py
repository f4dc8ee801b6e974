"""Addresses that servers ask to open."""

import pytest
from textual.widgets import Button

from tests.ui.chat.samples import request as confirmation
from tests.ui.chat.samples import rows_of
from tests.ui.hands import asking
from tests.ui.harness import until
from tests.ui.requests.samples import address, form
from tui.model import events as e
from tui.model.requests import Reply, ReplyAction
from tui.ui.questions.address import AddressQuestion
from tui.ui.questions.confirmation import ConfirmationQuestion
from tui.ui.questions.form import FormQuestion
from tui.ui.widgets.text.labelled_text import LABEL_WIDTH, LabelledText


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
        rows = rows_of(hands.one(LabelledText))
        start = next(n for n, row in enumerate(rows) if row.startswith("address "))
        end = next(n for n, row in enumerate(rows) if row.startswith("says "))
        shown = "".join(row[LABEL_WIDTH:] for row in rows[start + 1 : end])
        assert shown.rstrip() == asked.url
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
        assert "Read to the end" in hands.text
        await hands.press("end")
        await until(hands.pilot, lambda: "Read to the end" not in hands.text)
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
        assert isinstance(hands.app.screen, AddressQuestion)
        hands.app.store.dispatch(e.RequestSettled(address().id))
        await until(hands.pilot, lambda: isinstance(hands.app.screen, ConfirmationQuestion))
        assert len(hands.app.screen_stack) == 2
        hands.app.store.dispatch(e.RequestSettled(confirmation().id))
        await until(hands.pilot, lambda: isinstance(hands.app.screen, FormQuestion))
        assert len(hands.app.screen_stack) == 2
        assert hands.app.commands.calls == []
