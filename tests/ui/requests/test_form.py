"""Forms that servers ask to fill in, and what of them is in sight, however long their words are."""

from dataclasses import replace
from functools import partial

from textual import events
from textual.widgets import Button, Input, Select

from tests.ui.chat.samples import rows_of
from tests.ui.hands import Asking, asking
from tests.ui.harness import holds, until
from tests.ui.requests.samples import COLOURS, FIELDS, FORM_ID, form
from tui.model.requests import (
    PRIVATE_WARNING,
    FieldKind,
    FieldOption,
    FormField,
    FormValue,
    Reply,
    ReplyAction,
)
from tui.ui.questions.arming import ARMING_SECONDS
from tui.ui.questions.form import INCOMPLETE, FormQuestion
from tui.ui.widgets.forms.form_fields import FieldRow, Tick, WholeText

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


async def test_fields_begin_with_their_defaults_and_are_sent_by_their_keys_and_types() -> None:
    defaults: dict[str, FormValue] = {"age": 30, "news": True, "colour": "g", "tags": ("r",)}
    empty = dict.fromkeys(("mail", "share", "password"))
    async with asking(form(), (120, 50)) as hands:
        assert "everything asks you" in hands.text
        assert "Name *" in hands.text
        assert "Mail *" not in hands.text
        assert "( ) yes" not in hands.text, "the server says yes"
        await hands.arm()
        await hands.press(*"Ada", "ctrl+s")
        reply = Reply(ReplyAction.ACCEPT, content={**defaults, **empty, "name": "Ada"})
        assert hands.calls == [("desk.answer", (FORM_ID, reply))]
        await hands.ask_next(form())
        for key, text in (("name", "Ada"), ("mail", "a@b.c"), ("age", "41"), ("share", "0.5")):
            await fill(hands, key, text)
        row(hands, "news").control.focus()
        await hands.press("space")
        row(hands, "colour").query_one(Select).value = 2
        for box in row(hands, "tags").query(Tick):
            box.action_change()
        await hands.press("ctrl+s")
        content = hands.replies[0].content
        assert content is not None
        typed = {"name": "Ada", "mail": "a@b.c", "age": 41, "share": 0.5, "password": None}
        assert content == {**typed, "news": False, "colour": "b", "tags": ("g", "b")}
        assert type(content["age"]) is int


async def test_what_is_wrong_is_said_beside_the_field_and_nothing_is_sent() -> None:
    async with asking(form(), armed=True) as hands:
        await hands.press("pagedown", "pagedown")
        for key, text, reason, mended in (
            ("name", "", "This is required.", "Ada"),
            ("name", "A", "At least 2 characters.", "Ada"),
            ("age", "121", "At most 120.", "30"),
            ("age", "-", "Enter a whole number.", "30"),
            ("share", "-", "Enter a number.", "1"),
        ):
            await fill(hands, key, text)
            await hands.press("ctrl+s")
            assert hands.replies == [], key
            assert complaint(hands, key) == reason
            assert hands.problem == INCOMPLETE
            assert hands.app.focused is row(hands, key).control
            await hands.until_shown(reason)
            await fill(hands, key, mended)


async def test_yes_and_no_are_chosen_by_their_letters_and_taken_back() -> None:
    field = FormField("agree", FieldKind.BOOLEAN, "Agree")
    async with asking(form((field, NAME)), armed=True) as hands:
        for key, shown, value in (
            ("y", "(•) yes  ( ) no", True),
            ("n", "( ) yes  (•) no", False),
            ("space", "(•) yes  ( ) no", True),
            ("backspace", "( ) yes  ( ) no", None),
        ):
            await hands.press(key)
            assert shown in hands.text
            assert row(hands, "agree").value() is value
        await hands.press("enter")
        assert hands.app.focused is row(hands, "name").control


async def test_keys_in_a_field_move_on_and_write_what_fits_and_never_accept() -> None:
    async with asking(form(), (40, 12), armed=True) as hands:
        await hands.press("A", "enter")
        assert hands.app.focused is row(hands, "mail").control
        line = row(hands, "age").query_one(Input)
        line.focus()
        await until(hands.pilot, lambda: hands.body.region.contains_region(line.region))
        await hands.press(*"x7y")
        assert line.value == "307", "no letter goes into a number"
        await hands.press("home")
        assert line.cursor_position == 0
        assert hands.body.scroll_offset.y > 0
        await hands.press("home")
        await until(hands.pilot, lambda: hands.body.scroll_offset.y == 0)
        assert hands.replies == []


async def test_declining_and_cancelling_send_nothing_that_was_typed() -> None:
    async with asking(form()) as hands:
        for key, action in (("ctrl+d", ReplyAction.DECLINE), ("escape", ReplyAction.CANCEL)):
            await hands.ask_next(form(), armed=False)
            await hands.pilot.press(key)
            assert hands.replies == [], "not armed yet"
            await hands.arm()
            await hands.press("A", key, key)
            assert hands.replies == [Reply(action)]
        await hands.ask_next(form(()))
        assert hands.focused == "decline", "the safe answer, where there is nothing to fill in"


async def test_typing_for_the_composer_reaches_no_field_and_answers_nothing() -> None:
    async with asking(form()) as hands:
        for key in (*"hello", "enter", "tab", "ctrl+s", "escape"):
            await hands.pilot.press(key)
            hands.clock.advance(0.3)
        hands.app.post_message(events.Paste("pasted\r"))
        await hands.arm()
        assert hands.replies == []
        line = row(hands, "name").query_one(Input)
        assert line.value == hands.app.chat.composer.text == ""
        line.post_message(events.Paste("Ada\nLovelace\r\n\tof London\n"))
        await hands.until(lambda: line.value == "Ada Lovelace of London")


async def test_escape_closes_an_open_choice_before_it_cancels_the_form() -> None:
    async with asking(form(), armed=True) as hands:
        choice = row(hands, "colour").query_one(Select)
        choice.focus()
        await hands.press("enter")
        assert choice.expanded
        await hands.press("escape")
        await until(hands.pilot, lambda: not choice.expanded)
        assert hands.replies == []
        await hands.press("escape")
        assert hands.replies == [Reply(ReplyAction.CANCEL)]


async def test_a_form_that_is_not_taken_keeps_what_was_typed_and_says_why() -> None:
    twin = replace(FIELDS[0], key="twin", title="Mail", required=False)
    fields = (FIELDS[0], twin, *FIELDS[1:])
    async with asking(form(fields), armed=True) as hands:
        await hands.press(*"Ada", "end", "ctrl+s")
        first = hands.modal
        again = form(fields, problem="this is no address.", wrong="mail")
        await hands.ask(again)
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


async def test_a_complaint_goes_once_what_it_is_about_is_mended() -> None:
    async with asking(form(), (120, 50), armed=True) as hands:
        await fill(hands, "age", "-")
        await hands.press("ctrl+s")
        assert complaint(hands, "name") == "This is required."
        assert complaint(hands, "age") == "Enter a whole number."
        await fill(hands, "name", "Ada")
        assert complaint(hands, "name") == ""
        assert hands.problem == INCOMPLETE, "the age is still wrong"
        await fill(hands, "age", "18")
        assert complaint(hands, "age") == ""
        assert hands.problem == ""
        assert hands.replies == []


def is_in_sight(hands: Asking, field: Input) -> bool:
    return hands.body.region.contains_region(field.region)


async def test_every_answer_is_in_sight_and_every_field_can_be_reached() -> None:
    async with asking(form(), armed=True) as hands:
        for size in ((80, 24), (120, 36), (60, 16), (40, 10)):
            await hands.resize(size)
            for button in hands.modal.query(Button):
                assert hands.modal.frame.region.contains_region(button.region), size
                assert hands.app.screen.region.contains_region(button.region), size
            last = row(hands, "password").query_one(Input)
            last.focus()
            await hands.until(partial(is_in_sight, hands, last))
            if size != (40, 10):
                assert PRIVATE_WARNING.split(".")[0] in hands.text
        await hands.resize((60, 16))
        await hands.until(partial(is_in_sight, hands, last))


async def test_a_default_that_its_line_cannot_show_stands_below_it_and_is_sent_as_it_came() -> None:
    async with asking(form(), (40, 24)) as hands:
        for default in ("x" * 60 + "end", "a\nb"):
            await hands.ask_next(form((FormField("t", FieldKind.TEXT, "T", default=default),)))
            shown = hands.one(WholeText, ".default")
            assert "".join(rows_of(shown)) == default.replace("\n", "")
            assert shown.display
            assert "prefilled" in hands.text
            await hands.press("end", "ctrl+s")
            assert hands.replies[0].content == {"t": default}


WIDE = FieldOption("wide", f"{'wide ' * 40}end")


async def test_options_are_ticked_one_by_one_and_read_whole() -> None:
    field = FormField("t", FieldKind.CHOICES, "T", options=(WIDE, *COLOURS))
    async with asking(form((field,)), (60, 24), armed=True) as hands:
        wide, *others = row(hands, "t").query(Tick)
        assert wide.size.height > 3
        assert [one.size.height for one in others] == [1, 1, 1]
        rows = hands.text.splitlines()
        words = [line.split("wide") for line in rows if "wide" in line]
        assert sum(len(between) - 1 for between in words) == 40
        column = next(before for before, *_ in words if "[ ]" in before).index("[")
        assert all(before[column:] in ("[ ] ", "    ") for before, *_ in words), rows
        wide.focus()
        await hands.press("space", "enter", "space")
        assert [hands.text.count(box) for box in ("[x]", "[ ]")] == [2, 2]
        assert "[x] Red" in hands.text
        await hands.press("up", "space", "space", "ctrl+s")
        assert hands.replies[0].content == {"t": ("wide", "r")}


async def test_a_wide_option_is_read_once_it_is_chosen() -> None:
    fields = (FormField("c", FieldKind.CHOICE, "C", options=(*COLOURS, WIDE)), *FIELDS[1:])
    async with asking(form(fields), armed=True) as hands:
        await hands.press("end")
        assert "more below" not in hands.text
        choice = row(hands, "c").query_one(Select)
        choice.focus()
        await hands.press("enter", "end", "enter", "ctrl+s")
        assert choice.value == len(COLOURS)
        assert hands.replies == []
        await hands.press("pagedown", "pagedown", "pagedown", "ctrl+s")
        assert hands.replies[0].content is not None
        assert hands.replies[0].content["c"] == "wide"


async def test_what_cannot_be_in_sight_with_the_words_above_it_gets_no_keys() -> None:
    async with asking(form((NAME,), message="word\n" * 40), armed=True) as hands:
        assert hands.focused == "decline"
        assert hands.body.scroll_offset.y == 0
