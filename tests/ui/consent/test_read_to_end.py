"""What an answer sends or runs was in sight to its end, whatever is asked and however small."""

from dataclasses import dataclass, replace
from functools import partial

import pytest
from textual import events

from tests.ui.consent.samples import GIT, asked, changed_tools, trust
from tests.ui.hands import Asking, asking, confirming
from tests.ui.harness import ChatApp, screen_lines, until
from tests.ui.requests.samples import address, form, result, review, sampling, sign_in
from tui.model import events as e
from tui.model.requests import FieldKind, FieldOption, FormField, PendingRequest, SamplingMessage
from tui.model.trust import DifferenceLine, ToolChange
from tui.ui.dialogs.viewer import ViewerScreen
from tui.ui.questions.question import Question

END = "the-very-end"
ROWS = tuple(f"row {number}" for number in range(40))
TEXT = "\n".join((*ROWS, END))
PROSE = " ".join(["A server writes twelve hundred characters here."] * 25) + f" {END}"

OPTIONAL = tuple(FormField(row, FieldKind.TEXT, row) for row in ROWS[:25])
LAST = FormField("last", FieldKind.TEXT, "Last", f"What it is for: {END}")
TICKS = FormField(
    "ticks",
    FieldKind.CHOICES,
    "Ticks",
    default=(END,),
    options=tuple(FieldOption(row, row) for row in (*ROWS, END)),
)
WIDE = f"{'wide ' * 170}{END}"
NUMBER = "12345678901234567890" * 20 + "987654321"
WIDE_OPTIONS = (FieldOption("a", ROWS[0]), FieldOption(END, WIDE))


@dataclass(frozen=True)
class Kind:
    """A kind of question, the end of its text, and the key that allows."""

    request: PendingRequest
    key: str
    end: str = END
    presses: int = 1


def ends_with(field: FormField, end: str = END) -> Kind:
    """Make a form whose last field holds the end."""
    return Kind(form((*OPTIONAL[:9], field)), "ctrl+s", end)


CALLS = {
    "call": Kind(asked({"text": [*ROWS, END]}), "o"),
    "always": Kind(asked({"text": [*ROWS, END]}), "t", presses=2),
    "all that were seen": Kind(asked({"text": [*ROWS, END]}), "a", presses=2),
    "call with many arguments": Kind(asked(dict.fromkeys((*ROWS, f"~{END}"), 1)), "o"),
    "call with notes": Kind(asked(notes=(*ROWS[:6], f"{'a note ' * 40}{END}")), "o"),
}
TEXTS = {
    "folder": Kind(trust(servers=(replace(GIT, args=(*ROWS, END)),), variables=(), rules=()), "t"),
    "changed tools": Kind(
        changed_tools(0, ToolChange("a", tuple(DifferenceLine("+", row) for row in (*ROWS, END)))),
        "a",
    ),
    "sampling": Kind(sampling(SamplingMessage("user", PROSE)), "o"),
    "sampling in many messages": Kind(
        sampling(*(SamplingMessage("user", text) for text in (*ROWS, END))), "o"
    ),
    "sampling with tools": Kind(replace(sampling(), declarations=(TEXT,)), "o"),
    "answer": Kind(review(TEXT), "s"),
    "result": Kind(result(TEXT), "p"),
    "result with many pictures": Kind(result("a", *ROWS, END), "p"),
}
FORMS = {
    "form of many fields": Kind(form((*OPTIONAL, LAST)), "ctrl+s"),
    "form of many words": Kind(form((), message=TEXT), "ctrl+s"),
    "form with a long choice": Kind(form((TICKS,)), "ctrl+s"),
    "form with wide choices": ends_with(
        FormField("ticks", FieldKind.CHOICES, "Ticks", options=WIDE_OPTIONS, default=(END,))
    ),
    "form with a wide choice": ends_with(
        FormField("choice", FieldKind.CHOICE, "Choice", options=WIDE_OPTIONS, default=END)
    ),
    "form with a long number": ends_with(
        FormField("number", FieldKind.INTEGER, "Number", default=int(NUMBER)), NUMBER[-14:]
    ),
    "form with a wide text": ends_with(
        FormField("text", FieldKind.TEXT, "Text", default="漢" * 12 + END)
    ),
}
ADDRESSES = {
    "sign-in": Kind(sign_in(url=f"https://a.example/{'x/' * 950}{END}"), "ctrl+s"),
    "address": Kind(address(message=TEXT), "o"),
}
KINDS = {**CALLS, **TEXTS, **FORMS, **ADDRESSES}


def in_sight(hands: Asking, end: str = END) -> bool:
    """Tell whether the end can be read, also where it is folded."""
    return end in "".join("".join(c for c in hands.text if c not in " \n│┃▎█▇▆▅▄▃▂▁▊▐▌"))


async def allow(hands: Asking, kind: Kind) -> None:
    """Press the key that allows, as often as it wants to be."""
    await hands.press(*[kind.key] * kind.presses)


LARGER = {
    name: KINDS[name]
    for name in (
        *("call", "call with notes", "folder", "sampling in many messages", "result"),
        *("form of many fields", "form with wide choices", "sign-in", "address"),
    )
}
"""Where another size has another layout."""


@pytest.mark.parametrize(
    ("kinds", "size"),
    [*((kinds, (40, 12)) for kinds in (CALLS, TEXTS, FORMS, ADDRESSES)), (LARGER, (80, 24))],
    ids=["calls", "texts", "forms", "addresses", "larger"],
)
async def test_nothing_is_allowed_before_the_end_was_in_sight(
    kinds: dict[str, Kind], size: tuple[int, int]
) -> None:
    async with asking(trust(9, servers=()), size) as hands:
        for name, kind in kinds.items():
            await hands.ask_next(kind.request)
            assert not in_sight(hands, kind.end), name
            await allow(hands, kind)
            assert hands.calls == [], name
            assert "Read to the end" in hands.text, name
            await hands.resize((size[0], size[1] + 1))
            await hands.resize(size)
            await hands.until(lambda: "Read to the end" not in hands.text)
            await hands.press("end")
            await hands.until(partial(in_sight, hands, kind.end))
            await hands.press("end")
            assert "more line" not in hands.text, name
            await allow(hands, kind)
            assert len(hands.calls) == 1, name


WAYS = {
    "call": ("pagedown", "wheel"),
    "folder": ("wheel",),
    "sampling": ("down",),
    "form of many fields": ("pagedown", "wheel"),
    "address": ("down",),
}


async def test_each_way_of_scrolling_reaches_the_end_and_what_denies_needs_none() -> None:
    async with asking(trust(9, servers=()), (40, 12)) as hands:
        # Each way of scrolling reaches the end.
        for name, way in ((name, way) for name, ways in WAYS.items() for way in ways):
            await hands.ask_next(KINDS[name].request)
            await allow(hands, KINDS[name])
            assert hands.calls == [], (name, way)
            hands.modal.set_focus(hands.modal.rows.button(hands.modal.SAFE))
            for _ in range(200):
                if "more line" not in hands.text:
                    break
                await scroll(hands, way)
            await hands.until(partial(in_sight, hands))
            await allow(hands, KINDS[name])
            assert len(hands.calls) == 1, (name, way)
        # What denies is taken at once.
        for name in WAYS:
            await hands.ask_next(KINDS[name].request)
            await hands.press("ctrl+d" if "form" in name else "d")
            assert len(hands.calls) == 1, name


async def scroll(hands: Asking, way: str) -> None:
    """Scroll a step; the wheel turns over the answers, which do not scroll themselves."""
    if way != "wheel":
        await hands.pilot.press(way)
        return
    x, y = hands.modal.rows.region.offset
    hands.app.post_message(events.MouseScrollDown(None, x, y, 0, 0, 0, False, False, False))
    await hands.pilot.pause()


async def test_another_text_has_to_be_read_anew_and_another_size_does_not() -> None:
    async with asking(KINDS["folder"].request, (80, 24)) as hands:
        await hands.arm()
        await hands.press("end", "home")
        await hands.pilot.resize_terminal(40, 12)
        await until(hands.pilot, lambda: hands.modal.size == (40, 12))
        assert "more line" not in hands.text
        await hands.press("end")
        assert hands.view.scroll_offset.y > 0
        again = trust(servers=(replace(GIT, args=(*ROWS, "other", END)),), variables=(), rules=())
        await hands.ask(again)
        await hands.arm()
        assert hands.view.scroll_offset.y == 0
        await hands.press("t")
        assert hands.calls == []
        await hands.press("end", "t")
        assert len(hands.calls) == 1


NOTICE = "a server put this here"


async def test_no_toast_covers_a_question() -> None:
    app = ChatApp()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        app.notify(NOTICE, timeout=60, markup=False)
        for request in (asked(), trust(), changed_tools(), form()):
            await until(pilot, lambda: NOTICE in "\n".join(screen_lines(app)))
            app.store.dispatch(e.RequestRaised(request))
            await until(pilot, lambda: isinstance(app.screen, Question))
            await until(pilot, lambda: bool(app.screen.query("Toast")))
            await pilot.pause()
            assert not any(toast.display for toast in app.screen.query("Toast"))
            app.store.dispatch(e.RequestSettled(request.id))
        await until(pilot, lambda: NOTICE in "\n".join(screen_lines(app)))


async def test_what_changed_under_another_dialog_takes_no_answer_before_it_is_seen() -> None:
    async with asking(trust(servers=()), armed=True) as hands:
        under = hands.modal
        hands.app.push_screen(ViewerScreen(hands.app.commands, "another", "text"))
        await until(hands.pilot, lambda: isinstance(hands.app.screen, ViewerScreen))
        changed = trust(servers=(replace(GIT, args=("other",)),))
        hands.app.store.dispatch(e.RequestRaised(changed))
        await hands.pilot.pause(0.1)
        hands.clock.advance(10)
        await hands.pilot.pause(0.2)
        assert not under.armed
        await hands.pilot.press("escape")
        await until(hands.pilot, lambda: hands.app.screen is under)
        await hands.pilot.press("t")
        assert hands.calls == []


async def test_a_screen_without_room_for_the_text_lets_nothing_be_allowed() -> None:
    async with asking(trust(servers=()), (80, 24)) as hands:
        await hands.pilot.resize_terminal(20, 2)
        await hands.ask(trust(servers=(GIT,)))
        await hands.arm()
        await hands.press("end", "t")
        assert hands.calls == []
    async with confirming(size=(80, 24)) as confirmed:
        await confirmed.pilot.resize_terminal(20, 2)
        await confirmed.ask(replace(asked(), description="other"))
        await confirmed.arm()
        await confirmed.press("end", "o")
        assert confirmed.decisions == []
