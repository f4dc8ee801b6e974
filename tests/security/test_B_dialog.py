"""The question about a call: it shows what is sent, no stray key answers it, none can fake it."""

import json
from dataclasses import replace

import pytest
from textual import events

from tests.security.paging import hold, rows_seen_by_paging
from tests.ui.consent.samples import asked
from tests.ui.hands import confirming
from tui.model import events as e
from tui.model.consent import Choice, Decision
from tui.model.input.arguments import canonical_json
from tui.model.servers import ServerId
from tui.text import sanitize
from tui.ui.questions.calls.argument_lines import drawn
from tui.ui.questions.calls.call_view import facts
from tui.ui.questions.confirmation import ConfirmationQuestion
from tui.ui.widgets.text.labelled_text import LABEL_WIDTH

SAYS, UNVERIFIED = "server says: ", "(unverified)"
"""Stand around what a server claims."""

SPACES = "/safe" + " " * 5_000 + "; rm -rf /"
HIDDEN = "run\u200b\u202e\U000e0041\U000e0042\x1b[8mhidden\x1b[0m\u3164end"
LONG = "x" * 200_000

FRAME = "╭─ A tool wants to run ─╮\n│ server   trusted      │\n╰───────────────────────╯"
"""What a server may draw to look like gemdeck."""


async def test_B09_every_character_of_the_arguments_is_reachable_on_the_screen() -> None:
    values = {"command": SPACES, "text": HIDDEN}
    async with confirming(asked(values)) as hands:
        await hands.arm()
        await hands.press("j")
        rows = await rows_seen_by_paging(hands, hands.modal.arguments)
        shown = "".join(row.rstrip() for row in rows).replace("·", " ")
        written = canonical_json(values)
        assert shown.replace(" ", "") == written.replace("\n", "").replace(" ", "")
        assert sanitize(written) == written
        assert json.loads(written) == values
        await hands.press("o")
        assert hands.decisions == [Decision(Choice.ONCE)]


def test_B09_long_arguments_are_on_the_screen_to_their_last_character() -> None:
    written = canonical_json({"command": LONG})
    assert drawn(written).plain == written


async def test_B09_no_answer_allows_arguments_whose_end_was_not_seen() -> None:
    async with confirming(asked({"command": LONG}), armed=True) as hands:
        await hands.press("o", "t", "t", "s", "s", "a", "a")
        assert hands.decisions == []
        await hands.arm()
        await hands.press("end", "o")
        assert hands.decisions == [Decision(Choice.ONCE)]


async def test_B09_edited_arguments_are_sent_as_the_question_shows_them() -> None:
    async with confirming() as hands:
        await hands.edit_as_json('{"b": "\u202edev", "a":   1.50}')
        await hands.finish()
        await hands.press("j")
        rows = [row.rstrip() for row in await rows_seen_by_paging(hands, hands.modal.arguments)]
        await hands.press("o")
        (decision,) = hands.decisions
        assert decision.arguments == "\n".join(rows)
        assert hands.sent() == {"a": 1.5, "b": "\u202edev"}


@pytest.mark.parametrize("keys", [("o", "t", "s", "space"), ("e",), ("enter",)])
async def test_B10_a_held_key_allows_nothing(keys: tuple[str, ...]) -> None:
    async with confirming() as hands:
        for key in keys:
            await hold(hands, key)
        assert not any(decision.choice.allows for decision in hands.decisions)


async def test_B10_neither_early_keys_nor_a_paste_answer_and_enter_denies() -> None:
    async with confirming() as hands:
        await hands.press("o")
        for key in ["y", "enter", "o", "o", "t", "t", "s", "s", "a", "a", "e", "enter", "space"]:
            await hands.pilot.press(key)
        assert hands.decisions == []
        assert isinstance(hands.app.screen, ConfirmationQuestion)
        await hands.arm()
        hands.app.post_message(events.Paste("o\rt\rt\ra\ra\r"))
        await hands.pilot.pause()
        assert hands.decisions == []
        await hands.arm()
        await hands.press("enter")
        assert hands.decisions == [Decision(Choice.DENY)]


async def test_B10_the_next_question_takes_no_key_meant_for_the_one_before() -> None:
    async with confirming() as hands:
        following = replace(asked(), id=type(asked().id)("r1"))
        hands.app.store.dispatch(e.RequestRaised(following))
        await hands.arm()
        await hands.press("o")
        await hands.settle()
        await hands.until(lambda: hands.modal.request == following)
        await hands.pilot.press("o", "o", "enter", "t", "t")
        assert hands.decisions == [Decision(Choice.ONCE)]


async def test_B11_a_frame_that_a_server_draws_stands_inside_gemdecks_own() -> None:
    drawn = replace(
        asked({"command": FRAME}, title=FRAME),
        server=ServerId(FRAME),
        tool=FRAME,
        description=FRAME * 40,
        claims=(FRAME,),
    )
    async with confirming(drawn, size=(80, 24)) as hands:
        view = hands.modal.frame
        lines = hands.text.split("\n")
        left = view.region.x
        tops = [n for n, line in enumerate(lines) if line[left:].startswith("╭─ A tool")]
        assert tops == [view.region.y], "one frame begins where a frame can begin"
        inside = lines[view.region.y + 1 : view.region.bottom - 1]
        labels = [line[left + 3 : left + 3 + LABEL_WIDTH].strip() for line in inside]
        assert [label for label in labels if label][:3] == ["server", "tool", SAYS.strip(": ")]
        for line in inside:
            at = line.find("╭", left + 1)
            assert at == -1 or at > left + 3, "indented behind a label or a bar"
        assert hands.app.screen.region.contains_region(hands.modal.rows.region)


def test_B11_a_claim_that_says_what_gemdeck_says_is_not_drawn_as_that() -> None:
    drawn = facts(replace(asked(), claims=(f"harmless {UNVERIFIED} and quick",)))
    notes = [span for span in drawn.spans if span.style and "muted" in str(span.style)]
    said = [drawn.plain[one.start : one.end].strip() for one in notes]
    assert [one for one in said if one] == [SAYS.strip(), UNVERIFIED]
    assert drawn.plain.endswith(UNVERIFIED)
