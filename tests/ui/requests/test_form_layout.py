"""What of a form is in sight, at any size and however long its words are."""

import pytest
from textual.widgets import Button, Input, Select, SelectionList

from tests.ui.chat.samples import rows_of
from tests.ui.hands import asking
from tests.ui.harness import until
from tests.ui.requests.samples import COLOURS, FIELDS, form
from tests.ui.requests.test_form import NAME, row
from tui.model.requests import FieldKind, FieldOption, FormField
from tui.ui.widgets.forms.argument_form import WholeText
from tui.ui.widgets.forms.form_fields import PRIVATE_WARNING


@pytest.mark.parametrize("size", [(60, 16), (40, 10)])
async def test_another_size_leaves_the_field_that_is_filled_in_in_sight(
    size: tuple[int, int],
) -> None:
    async with asking(form()) as hands:
        await hands.arm()
        last = row(hands, "password").query_one(Input)
        last.focus()
        await hands.pilot.resize_terminal(*size)
        await until(hands.pilot, lambda: hands.modal.size == size)
        await until(hands.pilot, lambda: hands.body.region.contains_region(last.region))


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (60, 16), (40, 10)])
async def test_every_answer_is_in_sight_and_every_field_can_be_reached(
    size: tuple[int, int],
) -> None:
    async with asking(form(), size) as hands:
        await hands.arm()
        for button in hands.modal.query(Button):
            assert hands.modal.frame.region.contains_region(button.region)
            assert hands.app.screen.region.contains_region(button.region)
        last = row(hands, "password").query_one(Input)
        last.focus()
        await until(hands.pilot, lambda: hands.body.region.contains_region(last.region))
        if size != (40, 10):
            assert PRIVATE_WARNING.split(".")[0] in hands.text


async def test_a_default_of_many_lines_is_sent_as_it_came_unless_it_is_changed() -> None:
    field = FormField("t", FieldKind.TEXT, "T", default="a\nb")
    async with asking(form((field,))) as hands:
        await hands.arm()
        await hands.press("ctrl+s")
        assert hands.replies[0].content == {"t": "a\nb"}


@pytest.mark.parametrize("default", ["a\nb", "x" * 60 + "end"])
async def test_a_default_that_its_line_cannot_show_stands_above_it(default: str) -> None:
    field = FormField("t", FieldKind.TEXT, "T", default=default)
    async with asking(form((field,)), (40, 24)) as hands:
        shown = hands.one(WholeText, ".default")
        assert "".join(rows_of(shown)) == "Already filled in below:" + default.replace("\n", "")


WIDE = FieldOption("wide", f"{'wide ' * 40}end")


async def test_an_option_of_several_rows_has_one_box() -> None:
    field = FormField("t", FieldKind.CHOICES, "T", options=(WIDE, *COLOURS))
    async with asking(form((field,)), (60, 24)) as hands:
        await hands.arm()
        ticks = row(hands, "t").query_one(SelectionList)
        rows = [ticks.render_line(y).text for y in range(ticks.size.height)]
        boxes = [y for y, text in enumerate(rows) if text.startswith("▐")]
        assert len(rows) > 6
        assert boxes == [0, *range(len(rows) - 3, len(rows))]
        assert "".join("".join(rows).split()).startswith("▐▌" + WIDE.label.replace(" ", ""))
        ticks.focus()
        await hands.press("space", "down", "space", "ctrl+s")
        assert hands.replies[0].content == {"t": ("wide", "r")}


async def test_a_wide_option_is_read_once_it_is_chosen() -> None:
    fields = (FormField("c", FieldKind.CHOICE, "C", options=(*COLOURS, WIDE)), *FIELDS[1:])
    async with asking(form(fields)) as hands:
        await hands.arm()
        await hands.press("end")
        assert "Read to the end" not in hands.text
        choice = row(hands, "c").query_one(Select)
        choice.focus()
        await hands.press("enter", "end", "enter", "ctrl+s")
        assert choice.value == len(COLOURS)
        assert hands.replies == []
        await hands.press("pagedown", "pagedown", "pagedown", "ctrl+s")
        assert hands.replies[0].content is not None
        assert hands.replies[0].content["c"] == "wide"


async def test_what_cannot_be_in_sight_with_the_words_above_it_gets_no_keys() -> None:
    async with asking(form((NAME,), message="word\n" * 40)) as hands:
        await hands.arm()
        assert hands.focused == "decline"
        assert hands.body.scroll_offset.y == 0


async def test_home_and_end_move_the_cursor_before_they_scroll() -> None:
    async with asking(form(), (40, 12)) as hands:
        await hands.arm()
        line = row(hands, "age").query_one(Input)
        line.focus()
        await until(hands.pilot, lambda: hands.body.region.contains_region(line.region))
        await hands.press("home")
        assert line.cursor_position == 0
        assert hands.body.scroll_offset.y > 0
        await hands.press("home")
        await until(hands.pilot, lambda: hands.body.scroll_offset.y == 0)
