"""Forms that servers ask to fill in."""

from dataclasses import replace

import pytest
from textual import events
from textual.widgets import Button, Input, Select, SelectionList, TextArea

from tests.ui.hands import Asking, asking
from tests.ui.harness import click, holds, until
from tests.ui.requests.samples import COLOURS, FIELDS, FORM_ID, form
from tui.model import events as e
from tui.model.consent import RequestId
from tui.model.requests import (
    FieldKind,
    FormField,
    FormValue,
    Reply,
    ReplyAction,
)
from tui.ui.dialogs.list_dialog import ViewerScreen
from tui.ui.questions.arming import ARMING_SECONDS
from tui.ui.questions.form import INCOMPLETE, FormQuestion
from tui.ui.widgets.forms.form_fields import FieldRow, problem_of

NAME = FIELDS[0]


def row(hands: Asking, key: str) -> FieldRow:
    screen = hands.modal
    assert isinstance(screen, FormQuestion)
    return next(row for row in screen.form.rows if row.field.key == key)


def complaint(hands: Asking, key: str) -> str:
    return str(row(hands, key).query_one(".field-problem").render())


async def fill(hands: Asking, key: str, text: str) -> None:
    row(hands, key).query_one(Input).value = text
    await hands.pilot.pause()


async def test_each_kind_of_field_begins_with_its_default_and_is_sent_by_its_key() -> None:
    async with asking(form(), (120, 50)) as hands:
        assert "everything" in hands.text
        assert "required" in hands.text
        await hands.arm()
        await hands.press(*"Ada")
        await hands.press("ctrl+s")
        content = {
            "name": "Ada",
            "mail": None,
            "age": 30,
            "share": None,
            "news": True,
            "colour": "g",
            "tags": ("r",),
            "password": None,
        }
        assert hands.app.commands.calls == [
            ("desk.answer", (FORM_ID, Reply(ReplyAction.ACCEPT, content=content)))
        ]


async def test_changed_fields_are_sent_with_their_types() -> None:
    async with asking(form(), (120, 50)) as hands:
        await hands.arm()
        for key, text in (("name", "Ada"), ("mail", "a@b.c"), ("age", "41"), ("share", "0.5")):
            await fill(hands, key, text)
        row(hands, "news").query_one(Select).value = 1
        row(hands, "colour").query_one(Select).value = 2
        row(hands, "tags").query_one(SelectionList).select_all().deselect(0)
        await hands.press("ctrl+s")
        content = hands.replies[0].content
        assert content is not None
        assert dict(content) == {
            "name": "Ada",
            "mail": "a@b.c",
            "age": 41,
            "share": 0.5,
            "news": False,
            "colour": "b",
            "tags": ("g", "b"),
            "password": None,
        }
        assert type(content["age"]) is int


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("name", "", "This is required."),
        ("name", "A", "At least 2 characters."),
        ("age", "17", "At least 18."),
        ("age", "121", "At most 120."),
        ("age", "-", "Enter a whole number."),
        ("share", "1.5", "At most 1."),
    ],
)
async def test_what_is_wrong_is_said_beside_the_field_and_nothing_is_sent(
    key: str, text: str, reason: str
) -> None:
    async with asking(form()) as hands:
        await hands.arm()
        await fill(hands, "name", "Ada")
        await fill(hands, key, text)
        await hands.press("pagedown", "pagedown", "ctrl+s")
        assert hands.replies == []
        assert complaint(hands, key) == reason
        assert hands.problem == INCOMPLETE
        assert hands.app.focused is row(hands, key).control
        await until(hands.pilot, lambda: reason in hands.text)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        (
            FormField("c", FieldKind.CHOICES, "C", options=COLOURS, minimum=2),
            ("r",),
            "At least 2 op",
        ),
        (
            FormField("c", FieldKind.CHOICES, "C", options=COLOURS, maximum=0),
            ("r",),
            "At most 0 opt",
        ),
        (FormField("t", FieldKind.TEXT, "T", maximum=1e3), "x" * 1001, "At most 1,000 characters."),
        (FormField("b", FieldKind.BOOLEAN, "B", required=True), False, ""),
        (FormField("b", FieldKind.BOOLEAN, "B", required=True), None, "This is required."),
        (FormField("t", FieldKind.TEXT, "T", minimum=5), None, ""),
        (FormField("n", FieldKind.NUMBER, "N", minimum=0.25), 0.1, "At least 0.25."),
    ],
)
def test_bounds_hold_for_what_is_filled_in(field: FormField, value: FormValue, reason: str) -> None:
    found = problem_of(field, value)
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


async def test_letters_cannot_be_typed_into_numbers() -> None:
    async with asking(form()) as hands:
        await hands.arm()
        row(hands, "age").query_one(Input).focus()
        await hands.press(*"x7y")
        assert row(hands, "age").query_one(Input).value == "307"


@pytest.mark.parametrize(
    ("key", "action"), [("ctrl+d", ReplyAction.DECLINE), ("escape", ReplyAction.CANCEL)]
)
async def test_declining_and_cancelling_send_nothing_that_was_typed(
    key: str, action: ReplyAction
) -> None:
    async with asking(form()) as hands:
        await hands.press(key)
        assert hands.replies == [], "not armed yet"
        await hands.arm()
        await hands.press(*"Ada")
        await hands.press(key, key)
        assert hands.replies == [Reply(action)]


async def test_typing_for_the_composer_reaches_no_field_and_answers_nothing() -> None:
    async with asking(form()) as hands:
        for key in (*"hello", "enter", "tab", "ctrl+s", "escape"):
            await hands.pilot.press(key)
            hands.clock.advance(0.3)
        hands.app.post_message(events.Paste("pasted\r"))
        await hands.pilot.pause()
        assert hands.replies == []
        await hands.arm()
        assert row(hands, "name").query_one(Input).value == ""
        assert hands.app.chat.composer.text == ""


async def test_enter_goes_to_the_next_field_and_never_accepts() -> None:
    async with asking(form((NAME, FIELDS[1]))) as hands:
        await hands.arm()
        await hands.press(*"Ada", "enter")
        assert hands.app.focused is row(hands, "mail").control
        assert hands.replies == []


async def test_escape_closes_an_open_choice_before_it_cancels_the_form() -> None:
    async with asking(form()) as hands:
        await hands.arm()
        choice = row(hands, "colour").query_one(Select)
        choice.focus()
        await hands.press("enter")
        assert choice.expanded
        await hands.press("escape")
        await until(hands.pilot, lambda: not choice.expanded)
        assert hands.replies == []
        await hands.press("escape")
        assert hands.replies == [Reply(ReplyAction.CANCEL)]


async def test_buttons_answer_by_mouse_once_armed() -> None:
    async with asking(form()) as hands:
        await click(hands.pilot, "#decline")
        assert hands.replies == []
        await hands.arm()
        pressed = hands.one(Button, "#decline")
        await until(hands.pilot, lambda: not pressed.has_class("-active"))
        await click(hands.pilot, "#decline")
        await until(hands.pilot, lambda: bool(hands.replies))
        assert hands.replies == [Reply(ReplyAction.DECLINE)]


async def test_a_form_that_is_not_taken_keeps_what_was_typed_and_says_why() -> None:
    twin = replace(FIELDS[0], key="twin", title="Mail", required=False)
    fields = (FIELDS[0], twin, *FIELDS[1:])
    async with asking(form(fields)) as hands:
        await hands.arm()
        await hands.press(*"Ada", "end", "ctrl+s")
        first = hands.modal
        again = form(fields, problem="this is no address.", wrong="mail")
        hands.app.store.dispatch(e.RequestRaised(again))
        await until(hands.pilot, lambda: hands.modal.request == again)
        assert hands.modal is first
        assert hands.problem == "Mail: this is no address."
        assert complaint(hands, "mail") == "this is no address."
        assert complaint(hands, "twin") == "", "its title is the same"
        assert row(hands, "name").query_one(Input).value == "Ada"
        assert hands.app.focused is row(hands, "mail").control
        await hands.arm()
        await fill(hands, "mail", "a@b.c")
        await hands.press("ctrl+s")
        assert [reply.action for reply in hands.replies] == [ReplyAction.ACCEPT] * 2


async def test_a_form_can_be_accepted_again_where_the_problem_stays_the_same() -> None:
    async with asking(form(problem="no.", wrong="mail")) as hands:
        assert hands.problem == "Mail: no."
        await hands.arm()
        await hands.press(*"Ada", "end")
        await hands.pilot.press("ctrl+s", "ctrl+s")
        hands.clock.advance(ARMING_SECONDS / 2)
        await until(hands.pilot, lambda: not holds(hands.app))
        assert len(hands.replies) == 1, "not armed anew"
        await hands.arm()
        await hands.press("ctrl+s")
        assert len(hands.replies) == 2


async def test_a_settled_form_goes_and_the_next_takes_its_place() -> None:
    async with asking(form()) as hands:
        other = form((NAME,), request=RequestId("other"), message="Another one.")
        hands.app.store.dispatch(e.RequestRaised(other))
        await until(hands.pilot, lambda: str(hands.modal.frame.border_subtitle) == "1 of 2")
        hands.app.store.dispatch(e.RequestSettled(FORM_ID))
        await until(hands.pilot, lambda: hands.modal.request == other)
        assert len(hands.app.screen_stack) == 2
        hands.app.store.dispatch(e.RequestSettled(other.id))
        await until(hands.pilot, lambda: len(hands.app.screen_stack) == 1)
        assert isinstance(hands.app.focused, TextArea)


async def test_a_form_under_another_dialog_goes_when_that_closes() -> None:
    async with asking(form()) as hands:
        await hands.app.push_screen(ViewerScreen("title", "text"))
        hands.app.store.dispatch(e.RequestSettled(FORM_ID))
        await until(hands.pilot, lambda: not hands.app.store.state.pending)
        await hands.pilot.pause(0.1)
        await hands.press("escape")
        await until(hands.pilot, lambda: len(hands.app.screen_stack) == 1)


async def test_a_complaint_goes_once_what_it_is_about_is_mended() -> None:
    async with asking(form(), (120, 50)) as hands:
        await hands.arm()
        await fill(hands, "age", "17")
        await hands.press("ctrl+s")
        assert complaint(hands, "name") == "This is required."
        assert complaint(hands, "age") == "At least 18."
        await fill(hands, "name", "Ada")
        assert complaint(hands, "name") == ""
        assert hands.problem == INCOMPLETE, "the age is still wrong"
        await fill(hands, "age", "18")
        assert complaint(hands, "age") == ""
        assert hands.problem == ""
        assert hands.replies == []


async def test_a_paste_of_several_lines_loses_none_of_them() -> None:
    async with asking(form(), (120, 50)) as hands:
        await hands.arm()
        line = row(hands, "name").query_one(Input)
        line.post_message(events.Paste("Ada\nLovelace\r\n\tof London\n"))
        await until(hands.pilot, lambda: line.value == "Ada Lovelace of London")


async def test_a_form_without_fields_has_the_safe_answer_in_focus() -> None:
    async with asking(form(())) as hands:
        await hands.arm()
        await hands.press("enter")
        assert hands.replies == [Reply(ReplyAction.DECLINE)]


async def test_no_answer_can_be_given_by_the_name_of_an_action() -> None:
    async with asking(form((replace(NAME, required=False),))) as hands:
        await hands.arm()
        for _, binding in hands.modal._bindings:
            if binding.id and binding.id.startswith("form."):
                await hands.modal.run_action(binding.action)
        assert hands.replies == []
