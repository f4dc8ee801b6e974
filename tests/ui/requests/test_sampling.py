"""Prompts that servers want answered, their answers before they go out, and results of tools."""

import pytest
from textual.widgets import Button, TextArea

from tests.ui.hands import asking
from tests.ui.harness import until
from tests.ui.requests.samples import result, review, sampling
from tui.model.requests import Reply, ReplyAction, SamplingMessage
from tui.ui.questions.sampling import MAX_EDITABLE
from tui.ui.widgets.forms.argument_form import WholeText

TEXTS = ("Summarise this file for me.", "(picture, image/png, 12 kB)")


async def test_the_whole_prompt_and_its_bounds_are_shown() -> None:
    async with asking(sampling(), (120, 36)) as hands:
        shown = ("everything", "gemini-flash", "claude-3-sonnet", "1,000 tokens", "echo", *TEXTS)
        for words in (*shown, "You are terse.", "sampling, deprecated in revision 2026-07-28"):
            assert words in hands.text


@pytest.mark.parametrize(
    ("key", "reply"),
    [
        ("o", Reply(ReplyAction.ACCEPT)),
        ("d", Reply(ReplyAction.DECLINE)),
        ("escape", Reply(ReplyAction.DECLINE)),
        ("enter", Reply(ReplyAction.DECLINE)),
    ],
)
async def test_each_key_gives_its_one_answer_once_armed(key: str, reply: Reply) -> None:
    async with asking(sampling()) as hands:
        await hands.press(key)
        assert hands.replies == [], "not armed yet"
        await hands.arm()
        await hands.press(key, key)
        assert hands.replies == [reply]


async def test_the_end_of_a_text_to_read_can_be_reached_on_the_smallest_screen() -> None:
    words = " ".join(f"word{number}" for number in range(200))
    async with asking(review(words), (40, 10)) as hands:
        await hands.arm()
        await hands.press("end")
        await until(hands.pilot, lambda: "word199" in hands.text)


async def test_an_edited_result_is_what_goes_out_and_letters_in_it_answer_nothing() -> None:
    async with asking(result()) as hands:
        await hands.arm()
        hands.one(TextArea).focus()
        await hands.press(*"pd ", "enter")
        assert hands.replies == []
        await hands.press("ctrl+s")
        assert hands.replies == [Reply(ReplyAction.ACCEPT, text="pd \nOne note.\nAnother.")]


async def test_a_result_too_long_to_edit_goes_out_as_it_is() -> None:
    long = "x" * (MAX_EDITABLE + 1)
    async with asking(result(long)) as hands:
        await hands.arm()
        assert not hands.modal.query(TextArea)
        await hands.press("end", "p")
        assert hands.replies == [Reply(ReplyAction.ACCEPT, text=long)]


@pytest.mark.parametrize("size", [(40, 12), (80, 24)])
async def test_the_cursor_stays_in_sight_while_a_long_result_is_edited(
    size: tuple[int, int],
) -> None:
    text = "\n".join(f"row {number}" for number in range(60))
    async with asking(result(text), size) as hands:
        await hands.arm()
        editor = hands.one(TextArea)
        editor.focus()
        await hands.press("ctrl+end", "enter", *"last", "enter", *"very last")
        await until(hands.pilot, lambda: "very last" in hands.text)
        assert editor.size.height == 62
        await hands.press("ctrl+home", *"first")
        await until(hands.pilot, lambda: "firstrow 0" in hands.text)


@pytest.mark.parametrize(
    ("key", "action"), [("s", "accept"), ("d", "decline"), ("escape", "decline")]
)
async def test_an_answer_is_shown_whole_and_sent_or_refused(key: str, action: str) -> None:
    async with asking(review()) as hands:
        assert "It is about cats." in hands.text
        assert "And dogs." in hands.text
        assert not hands.modal.query(TextArea)
        await hands.arm()
        await hands.press(key)
        assert hands.replies == [Reply(ReplyAction(action))]


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (60, 16), (40, 10)])
async def test_many_messages_leave_every_answer_in_sight(size: tuple[int, int]) -> None:
    messages = tuple(SamplingMessage("user", f"message {i}\n" * 5) for i in range(60))
    async with asking(sampling(*messages), size) as hands:
        for button in hands.modal.query(Button):
            assert hands.modal.frame.region.contains_region(button.region)
        last = list(hands.modal.query(WholeText))[-1]
        hands.body.scroll_end(animate=False)
        await until(hands.pilot, lambda: bool(hands.body.region.intersection(last.region).area))
        await hands.arm()
        await hands.press("o")
        assert hands.replies == [Reply(ReplyAction.ACCEPT)]
