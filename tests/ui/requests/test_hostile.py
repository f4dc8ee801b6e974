"""Whatever a server writes into a request is only ever text."""

import pytest

from tests.support.stalls import HANG_SECONDS, LoopWatch
from tests.ui.hands import asking
from tests.ui.requests.samples import review
from tui.model.chat import EntryId
from tui.model.consent import RequestId
from tui.model.requests import (
    FieldKind,
    FieldOption,
    FormField,
    FormRequest,
    PendingRequest,
    ResultReview,
    SamplingMessage,
    SamplingRequest,
    SamplingReview,
    SignInRequest,
    UrlRequest,
)
from tui.model.servers import ServerId

ID = RequestId("hostile")


def hostile_form(text: str) -> PendingRequest:
    part = text[:1_000]  # the engine lets no more of a field through
    options = tuple(FieldOption(f"{part}{i}", part) for i in range(5))
    fields = tuple(
        FormField(f"{kind}", kind, part, part, default=_default(kind, part), options=options)
        for kind in FieldKind
    )
    return FormRequest(ID, ServerId(text), text, fields, problem=text, wrong=fields[0].key)


def _default(kind: FieldKind, text: str) -> str | None:
    return text if kind is FieldKind.TEXT else None


def hostile_address(text: str) -> PendingRequest:
    return UrlRequest(ID, ServerId(text), text, text, text, f"{text}.", text)


def hostile_sampling(text: str) -> PendingRequest:
    half = text[: len(text) // 2]  # the engine takes no more in all
    messages = (SamplingMessage(text, half), SamplingMessage(text, half))
    return SamplingRequest(ID, ServerId(text), text, messages, 10, half, (half,), (half,))


def hostile_sign_in(text: str) -> PendingRequest:
    part = text[:500]  # the engine lets no more of a fact through
    facts = (part, part, f"{part}.", part, part, (part[:200],) * 20, text[:4_000], part)
    return SignInRequest(ID, ServerId(part), *facts, notes=(part,), kept=part, problem=part)


def hostile_result(text: str) -> PendingRequest:
    return ResultReview(ID, EntryId("e1"), ServerId(text), text, text, (text[:200],))


def hostile_review(text: str) -> PendingRequest:
    return SamplingReview(ID, ServerId(text), text, text)


TEXTS = {
    "markup": "[/x] [@click=app.quit]q[/] $accent {b} \\[",
    "blank": "a" + "\n" * 5_000,
    "long": "x" * 200_000,
    "wide": "漢" * 50_000,
}


@pytest.mark.parametrize("name", TEXTS)
async def test_hostile_requests_neither_crash_nor_act_nor_hold_up_the_loop(
    name: str, loop_watch: LoopWatch
) -> None:
    async with asking(review()) as hands:
        loop_watch.clear()
        for make in (
            *(hostile_form, hostile_address, hostile_sampling, hostile_sign_in, hostile_review),
            hostile_result,
        ):
            await hands.ask_next(make(TEXTS[name]))
            buttons, region = hands.modal.query("Button"), hands.app.screen.region
            assert all(region.contains_region(one.region) for one in buttons), make
            if name == "markup":
                assert "[@click=app.quit]q[/]" in hands.text, make
            for y in (4, 8, 16):
                await hands.pilot.click(offset=(20, y))
            assert hands.app.is_running
            await hands.press("escape")
            assert len(hands.answers) == 1, f"{make}: a button that was clicked, or the key"
            loop_watch.assert_smooth(HANG_SECONDS)
