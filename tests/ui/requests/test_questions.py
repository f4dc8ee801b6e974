"""What servers ask for: prompts for the model, results on their way to it, addresses, sign-ins."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from textual import events
from textual.widgets import Button, Input, TextArea

from tests.support.stalls import HANG_SECONDS, LoopWatch
from tests.ui.chat.samples import request as confirmation
from tests.ui.chat.samples import rows_of
from tests.ui.hands import Asking, asking, hint_of
from tests.ui.harness import until
from tests.ui.requests.samples import address, form, result, review, sampling, sign_in
from tui.model import events as e
from tui.model.requests import (
    FieldKind,
    FieldOption,
    FormField,
    PendingRequest,
    Reply,
    ReplyAction,
    SamplingMessage,
)
from tui.model.servers import ServerId
from tui.ui.questions.address import AddressQuestion
from tui.ui.questions.arming import PAUSE_SECONDS
from tui.ui.questions.confirmation import ConfirmationQuestion
from tui.ui.questions.form import FormQuestion
from tui.ui.questions.sampling import MAX_EDITABLE
from tui.ui.widgets.text.labelled_text import LABEL_WIDTH, LabelledText

SIGN_IN = replace(sign_in(notes=("Until now you signed in at old.example.",)), shown_host="ш.x")
SHOWN: dict[PendingRequest, tuple[str, ...]] = {
    sampling(): (
        *("everything", "gemini-flash", "claude-3-sonnet", "1,000 tokens", "echo"),
        *("Summarise this file for me.", "(picture, image/png, 12 kB)", "You are terse."),
        "sampling, deprecated in revision 2026-07-28",
    ),
    review(): ("It is about cats.", "And dogs."),
    SIGN_IN: (
        *("everything", "https://events.example.com/mcp", "login.example.com", "ш.x"),
        *("https://login.example.com", "tokens.example.net"),
        *("events.read, offline_access", "the system keyring", "Until now you signed in"),
        "https://login.example.com/authorize?",
    ),
}


async def test_all_that_is_asked_about_is_shown_and_nothing_to_fill_in() -> None:
    async with asking(address(), (120, 36)) as hands:
        for request, shown in SHOWN.items():
            await hands.ask_next(request)
            for words in shown:
                assert words in hands.text, request.id
            assert not any(field.display for field in hands.modal.query("Input, TextArea"))


async def test_a_result_goes_out_as_it_was_edited_or_whole() -> None:
    async with asking(result(), armed=True) as hands:
        # An edited result is what goes out and letters in it answer nothing.
        hands.one(TextArea).focus()
        await hands.press(*"pd ", "enter")
        assert hands.replies == []
        await hands.press("ctrl+s")
        assert hands.replies == [Reply(ReplyAction.ACCEPT, text="pd \nOne note.\nAnother.")]
        # A result too long to edit goes out as it is.
        long = "x" * (MAX_EDITABLE + 1)
        await hands.ask_next(result(long))
        assert not hands.modal.query(TextArea)
        await hands.press("end", "p")
        assert hands.replies == [Reply(ReplyAction.ACCEPT, text=long)]


async def test_the_cursor_stays_in_sight_while_a_long_result_is_edited() -> None:
    text = "\n".join(f"row {number}" for number in range(60))
    async with asking(result(text), (40, 12), armed=True) as hands:
        editor = hands.one(TextArea)
        editor.focus()
        await hands.press("ctrl+end", "enter", *"last", "enter")
        await hands.until_shown("last")
        await hands.press("ctrl+home", *"first")
        await hands.until_shown("firstrow 0")


async def test_many_messages_leave_every_answer_in_sight() -> None:
    messages = tuple(SamplingMessage("user", f"message {i}\n" * 5) for i in range(40))
    async with asking(sampling(*messages)) as hands:
        for size in ((120, 36), (80, 24), (40, 10)):
            await hands.resize(size)
            for button in hands.modal.query(Button):
                assert hands.modal.frame.region.contains_region(button.region), size
            await hands.press("end")
            assert "message 39" in hands.text, size
            await hands.press("home")


async def ask_again(hands: Asking, problem: str) -> None:
    """Let the engine say what came of the answer."""
    hands.app.store.dispatch(e.RequestRaised(sign_in(problem=problem)))
    await hands.until(lambda: problem[:20] in hands.text)
    await hands.arm()


async def test_the_address_of_a_sign_in_is_copied_and_where_it_ended_pasted() -> None:
    async with asking(sign_in(), (100, 36), armed=True) as hands:
        # The address can be copied.
        await hands.press("ctrl+y")
        assert hands.app.clipboard == sign_in().url
        assert hands.replies == []
        # What a browser elsewhere ended at is pasted.
        end = "http://localhost:7777/x?code=a&state=b"
        for key in ("enter", "ctrl+s"):
            await hands.ask_next(sign_in())
            await hands.press("ctrl+s")
            await ask_again(hands, "No browser could be opened here.")
            assert hands.one(Input).has_focus
            hands.app.post_message(events.Paste(end))
            await hands.until(lambda: hands.one(Input).value)
            await hands.press(key)
            assert hands.replies[1:] == [Reply(ReplyAction.ACCEPT, text=end)]
        await ask_again(hands, "What was pasted belongs to another sign-in.")
        await hands.press("escape")
        assert hands.replies[2:] == [Reply(ReplyAction.CANCEL)]


async def test_server_host_warning_and_the_whole_address_are_shown() -> None:
    asked = address()
    async with asking(asked) as hands:
        for size in ((120, 36), (80, 24), (60, 16)):
            await hands.resize(size)
            warning = "The host is written"
            for words in ("everything", asked.host, asked.shown_host, warning):
                assert words in hands.text, size
            rows = rows_of(hands.one(LabelledText))
            start = next(n for n, row in enumerate(rows) if row.startswith("address "))
            end = next(n for n, row in enumerate(rows) if row.startswith("message "))
            shown = "".join(row[LABEL_WIDTH:] for row in rows[start:end])
            assert shown.rstrip() == asked.url
            for button in hands.modal.query(Button):
                assert hands.modal.frame.region.contains_region(button.region), size


async def test_one_kind_of_question_takes_the_place_of_another() -> None:
    async with asking(address()) as hands:
        for request in (confirmation(), form()):
            hands.app.store.dispatch(e.RequestRaised(request))
        await until(hands.pilot, lambda: hint_of(hands.modal).endswith("1 of 3"))
        assert isinstance(hands.app.screen, AddressQuestion)
        hands.app.store.dispatch(e.RequestSettled(address().id))
        await until(hands.pilot, lambda: isinstance(hands.app.screen, ConfirmationQuestion))
        assert len(hands.app.screen_stack) == 2
        hands.app.store.dispatch(e.RequestSettled(confirmation().id))
        await until(hands.pilot, lambda: isinstance(hands.app.screen, FormQuestion))
        assert len(hands.app.screen_stack) == 2
        assert hands.app.commands.acts == []


@pytest.mark.parametrize("make", [sampling, address, sign_in, review])
async def test_each_key_gives_its_one_answer_once_armed(make: Callable[[], PendingRequest]) -> None:
    given = {
        sampling: {"o": "accept", "d": "decline", "escape": "decline", "enter": "decline"},
        address: {"o": "accept", "d": "decline", "escape": "cancel", "enter": "decline"},
        sign_in: {"ctrl+s": "accept", "escape": "cancel"},
        review: {"s": "accept", "d": "decline", "escape": "decline"},
    }
    async with asking(make()) as hands:
        for key, action in given[make].items():
            await hands.ask_next(make(), armed=False)
            await hands.pilot.press(key)
            assert hands.replies == [], f"{key}: not armed yet"
            hands.clock.advance(PAUSE_SECONDS)
            await hands.arm()
            await hands.press("end", key, key, "o")
            assert hands.replies == [Reply(ReplyAction(action))], key
            assert hands.app.opened == []


# Whatever a server writes into a request is only ever text.


def hostile(text: str) -> tuple[PendingRequest, ...]:
    """Write a text wherever a server can write, as long as the engine lets it through."""
    server, part, half = ServerId(text), text[:500], text[: len(text) // 2]
    options = tuple(FieldOption(f"{part}{i}", part) for i in range(5))
    defaults = {FieldKind.TEXT: part}
    fields = tuple(
        FormField(f"{kind}", kind, part, part, default=defaults.get(kind), options=options)
        for kind in FieldKind
    )
    messages = (SamplingMessage(text, half),) * 2
    facts: dict[str, Any] = dict.fromkeys(
        ("address", "host", "issuer", "resource", "token_host", "kept"), part
    )
    asked = address(url=text, warning=text, message=text)
    prompt = sampling(*messages, system=text)
    signs_in = sign_in(url=text[:4_000], problem=part, notes=(part,))
    facts |= {"server": ServerId(part), "shown_host": f"{part}.", "scopes": (text[:200],) * 20}
    return (
        replace(form(fields, problem=text, wrong=fields[0].key, message=text), server=server),
        replace(asked, server=server, host=text, shown_host=f"{text}."),
        replace(prompt, server=server, model=half, hints=(half,), tools=(half,)),
        replace(signs_in, **facts),
        replace(review(text), server=server, model=text),
        replace(result(text, text[:200]), server=server, tool=text),
    )


HOSTILE = {
    "markup": "[/x] [@click=app.quit]q[/] $accent {b} \\[",
    "blank": "a" + "\n" * 5_000,
    "long": "x" * 200_000,
    "wide": "漢" * 50_000,
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_requests_neither_crash_nor_act_nor_hold_up_the_loop(
    name: str, loop_watch: LoopWatch
) -> None:
    async with asking(review()) as hands:
        loop_watch.clear()
        for request in hostile(HOSTILE[name]):
            await hands.ask_next(request)
            buttons, region = hands.modal.query("Button"), hands.app.screen.region
            assert all(region.contains_region(one.region) for one in buttons), request.id
            if name == "markup":
                assert "[@click=app.quit]q[/]" in hands.text, request.id
            for y in (4, 8, 16):
                await hands.pilot.click(offset=(20, y))
            assert hands.app.is_running
            await hands.press("escape")
            assert len(hands.answers) == 1, f"{request.id}: a button that was clicked, or the key"
            loop_watch.assert_smooth(HANG_SECONDS)
