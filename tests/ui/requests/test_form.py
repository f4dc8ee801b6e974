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


async def test_fields_are_sent_by_their_types_and_complaints_go_once_mended() -> None:
    defaults: dict[str, FormValue] = {"age": 30, "news": True, "colour": "g", "tags": ("r",)}
    empty = dict.fromkeys(("mail", "share", "password"))
    async with asking(form(), (120, 50)) as hands:
        # Fields begin with their defaults and are sent by their keys and types.
        assert "everything asks for input" in hands.text
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
        # A complaint goes once what it is about is mended.
        await hands.ask_next(form())
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


async def test_each_kind_of_field_takes_what_fits_says_what_does_not_and_stays_in_sight() -> None:
    async with asking(form(), armed=True) as hands:
        # What is wrong is said beside the field and nothing is sent.
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
        # Escape closes an open choice before it cancels the form.
        await hands.ask_next(form())
        choice = row(hands, "colour").query_one(Select)
        choice.focus()
        await hands.press("enter")
        assert choice.expanded
        await hands.press("escape")
        await until(hands.pilot, lambda: not choice.expanded)
        assert hands.replies == []
        await hands.press("escape")
        assert hands.replies == [Reply(ReplyAction.CANCEL)]
        # Yes and no are chosen by their letters and taken back.
        field = FormField("agree", FieldKind.BOOLEAN, "Agree")
        await hands.ask_next(form((field, NAME)))
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
        # What cannot be in sight with the words above it gets no keys.
        await hands.ask_next(form((NAME,), message="word\n" * 40))
        assert hands.focused == "decline"
        assert hands.body.scroll_offset.y == 0
        # Every answer is in sight and every field can be reached.
        await hands.ask_next(form())
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


async def test_a_form_is_declined_or_accepted_by_its_own_keys_alone() -> None:
    async with asking(form()) as hands:
        # Declining and cancelling send nothing that was typed.
        for key, action in (("ctrl+d", ReplyAction.DECLINE), ("escape", ReplyAction.CANCEL)):
            await hands.ask_next(form(), armed=False)
            await hands.pilot.press(key)
            assert hands.replies == [], "not armed yet"
            await hands.arm()
            await hands.press("A", key, key)
            assert hands.replies == [Reply(action)]
        await hands.ask_next(form(()))
        assert hands.focused == "decline", "the safe answer, where there is nothing to fill in"
        # Typing for the composer reaches no field and answers nothing.
        await hands.ask_next(form(), armed=False)
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
        # A form can be accepted again where the problem stays the same.
        await hands.ask_next(form(problem="no.", wrong="mail"), armed=False)
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


def is_in_sight(hands: Asking, field: Input) -> bool:
    return hands.body.region.contains_region(field.region)


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
        assert "more line" not in hands.text
        choice = row(hands, "c").query_one(Select)
        choice.focus()
        await hands.press("enter", "end", "enter", "ctrl+s")
        assert choice.value == len(COLOURS)
        assert hands.replies == []
        await hands.press("pagedown", "pagedown", "pagedown", "ctrl+s")
        assert hands.replies[0].content is not None
        assert hands.replies[0].content["c"] == "wide"
