"""Prompts that servers want answered, and the answers before they go out."""

import pytest
from textual.widgets import Button, TextArea

from tests.ui.hands import asking
from tests.ui.harness import until
from tests.ui.requests.samples import review, sampling
from tui.model.requests import Reply, ReplyAction, SamplingMessage
from tui.ui.questions.arming import REPEAT_SECONDS
from tui.ui.questions.sampling import MAX_EDITABLE, EditedText

TEXTS = ("Summarise this file for me.", "(picture, image/png, 12 kB)")


async def test_the_whole_prompt_and_its_bounds_are_shown() -> None:
    async with asking(sampling(), (120, 36)) as hands:
        shown = ("everything", "gemini-flash", "claude-3-sonnet", "1,000 tokens", "echo", *TEXTS)
        for words in (*shown, "You are terse."):
            assert words in hands.text


@pytest.mark.parametrize(
    ("key", "reply"),
    [
        ("o", Reply(ReplyAction.ACCEPT, system="You are terse.", messages=TEXTS)),
        ("ctrl+s", Reply(ReplyAction.ACCEPT, system="You are terse.", messages=TEXTS)),
        ("s", Reply(ReplyAction.ACCEPT_ALWAYS, system="You are terse.", messages=TEXTS)),
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
    async with asking(review(words, editable=False), (40, 10)) as hands:
        await hands.arm()
        await hands.press("end")
        await until(hands.pilot, lambda: "word199" in hands.text)


async def test_always_this_server_needs_its_key_twice_and_soon() -> None:
    async with asking(sampling()) as hands:
        await hands.arm()
        await hands.press("s")
        assert hands.replies == []
        assert "Press s again: always this server" in hands.text
        hands.clock.advance(REPEAT_SECONDS)
        await hands.press("s")
        assert hands.replies == []
        await hands.press("s")
        assert [reply.action for reply in hands.replies] == [ReplyAction.ACCEPT_ALWAYS]


async def test_an_edited_prompt_is_what_goes_out_and_letters_in_it_answer_nothing() -> None:
    async with asking(sampling()) as hands:
        await hands.arm()
        first, second = hands.modal.query(TextArea)
        first.focus()
        await hands.press(*"osd ")
        second.focus()
        await hands.press("enter")
        assert hands.replies == []
        await hands.press("ctrl+s")
        [reply] = hands.replies
        assert reply.system == "osd You are terse."
        assert reply.messages == ("\n" + TEXTS[0], TEXTS[1])


@pytest.mark.parametrize("size", [(40, 12), (80, 24)])
async def test_the_cursor_stays_in_sight_while_a_long_prompt_is_edited(
    size: tuple[int, int],
) -> None:
    text = "\n".join(f"row {number}" for number in range(60))
    async with asking(sampling(SamplingMessage("user", text)), size) as hands:
        await hands.arm()
        editor = hands.modal.query(TextArea)[1]
        editor.focus()
        await hands.press("ctrl+end", "enter", *"last", "enter", *"very last")
        await until(hands.pilot, lambda: "very last" in hands.text)
        assert editor.size.height == 62
        await hands.press("ctrl+home", *"first")
        await until(hands.pilot, lambda: "firstrow 0" in hands.text)


async def test_what_is_no_plain_text_cannot_be_edited() -> None:
    long = "x" * (MAX_EDITABLE + 1)
    async with asking(sampling(SamplingMessage("user", long))) as hands:
        await hands.arm()
        assert len(hands.modal.query(TextArea)) == 1, "the system prompt"
        await hands.press("end", "o")
        assert hands.replies[0].messages == (long,)


async def test_an_answer_can_be_changed_before_it_is_sent() -> None:
    async with asking(review()) as hands:
        assert "And dogs." in hands.text
        await hands.arm()
        hands.one(TextArea).focus()
        await hands.press(*"Yes. ", "ctrl+s")
        assert hands.replies == [
            Reply(ReplyAction.ACCEPT, text="Yes. It is about cats.\nAnd dogs.")
        ]


@pytest.mark.parametrize(
    ("key", "reply"),
    [
        ("s", Reply(ReplyAction.ACCEPT, text="calls echo")),
        ("d", Reply(ReplyAction.DECLINE)),
        ("escape", Reply(ReplyAction.DECLINE)),
    ],
)
async def test_an_answer_that_is_no_text_is_sent_as_it_is_or_refused(
    key: str, reply: Reply
) -> None:
    async with asking(review("calls echo", editable=False)) as hands:
        assert not hands.modal.query(TextArea)
        await hands.arm()
        await hands.press(key)
        assert hands.replies == [reply]


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (60, 16), (40, 10)])
async def test_many_messages_leave_every_answer_in_sight(size: tuple[int, int]) -> None:
    messages = tuple(SamplingMessage("user", f"message {i}\n" * 5) for i in range(60))
    async with asking(sampling(*messages), size) as hands:
        for button in hands.modal.query(Button):
            assert hands.modal.frame.region.contains_region(button.region)
        last = list(hands.modal.query(EditedText))[-1]
        hands.body.scroll_end(animate=False)
        await until(hands.pilot, lambda: bool(hands.body.region.intersection(last.region).area))
        await hands.arm()
        await hands.press("o")
        assert hands.replies[0].messages == tuple(message.text for message in messages)
