"""The questions on a folder and on a call: they show everything, and no stray key gives the yes."""

import json
import string
from dataclasses import replace
from typing import Any, Final

import pytest
from textual.widget import Widget

from tests.ui.consent.samples import GIT, SEARCH, asked, trust
from tests.ui.hands import Asking, Hands, asking, confirming
from tests.ui.harness import click
from tui.model.consent import Choice, Decision
from tui.model.input.arguments import canonical_json
from tui.model.servers import ServerId
from tui.model.trust import TrustAnswer
from tui.text import sanitize
from tui.ui.questions.calls.argument_lines import drawn
from tui.ui.questions.calls.call_view import facts
from tui.ui.widgets.text.labelled_text import LABEL_WIDTH

NO = {TrustAnswer.NOT_NOW}

KEY_REPEAT_SECONDS: Final = 0.03
"""How fast a held key comes."""

HELD_KEYS: Final = 25
"""How often it comes here."""


async def rows_seen_by_paging(hands: Hands[Any], view: Widget) -> list[str]:
    """Page through a text as a user does, and collect each row that was on the screen once."""
    seen: dict[int, str] = {}
    while True:
        top = view.scroll_offset.y
        box = view.content_region
        lines = hands.text.split("\n")[box.y : box.bottom]
        right = box.x + min(box.width, view.virtual_size.width)
        seen |= {top + n: line[box.x : right].rstrip("▁▂▃▄▅▆▇█ ") for n, line in enumerate(lines)}
        await hands.press("pagedown")
        await hands.pilot.pause()
        if view.scroll_offset.y == top:
            return [seen[row] for row in sorted(seen)]


async def hold(hands: Hands[Any], key: str) -> None:
    """Hold a key down for a while."""
    for _ in range(HELD_KEYS):
        hands.clock.advance(KEY_REPEAT_SECONDS)
        await hands.pilot.press(key)


def answers(hands: Asking) -> set[object]:
    return {arguments[1] for name, arguments in hands.calls if name == "desk.answer"}


def value_after(rows: list[str], label: str) -> str:
    """Give a text that begins behind a label and goes on in the rows below it."""
    start = next(n for n, row in enumerate(rows) if row[:LABEL_WIDTH].strip() == label)
    value = rows[start][LABEL_WIDTH:]
    for row in rows[start + 1 :]:
        if row[:LABEL_WIDTH].strip():
            break
        value += row[LABEL_WIDTH:]
    return value


async def test_A03_the_question_lists_every_server_before_any_answer_that_allows() -> None:
    servers = tuple(replace(GIT, server=ServerId(f"server-{n}")) for n in range(12))
    async with asking(trust(servers=(*servers, SEARCH)), armed=True) as hands:
        await hands.press("t", "c", "c")
        assert hands.calls == []
        rows = await rows_seen_by_paging(hands, hands.view)
        named = [row[LABEL_WIDTH:] for row in rows if row.startswith("server ")]
        assert named == [*(server.server for server in servers), "search"]
        assert sum(row.endswith("--repository") for row in rows) == len(servers)
        await hands.press("t")
        assert answers(hands) == {TrustAnswer.TRUST}


ARGUMENTS = ("x" + " " * 300 + "; rm -rf ~", "x\n\n\nserver     no", "⟨U+202E⟩fdp.exe", "\tx\r\ny")


async def test_A12_nothing_in_an_argument_moves_the_rest_out_of_sight() -> None:
    noise = string.ascii_letters + string.digits
    long = "".join(noise[n * n % 61] for n in range(64 * 1024))
    many = (f"--option-{n}" for n in range(6, 301))
    server = replace(GIT, args=(*ARGUMENTS, long, *many))
    async with asking(trust(servers=(server,)), (80, 60), armed=True) as hands:
        await hands.press("t")
        assert hands.calls == []
        rows = await rows_seen_by_paging(hands, hands.view)
        for number, hidden in enumerate(ARGUMENTS, 1):
            visible = hidden.replace("\n", "␊").replace("\t", "␉").replace("\r", "␍")
            assert value_after(rows, str(number)).replace(" ", "") == visible.replace(" ", "")
        assert value_after(rows, "5") == long
        assert [row for row in rows if row.startswith("server")] == ["server     git"]
        numbered = [row.split() for row in rows if "--option-" in row]
        assert numbered == [[str(n), f"--option-{n}"] for n in range(6, 301)]


@pytest.mark.parametrize("size", [(80, 24), (40, 10)])
async def test_A23_forty_servers_and_a_held_enter_trust_nothing(size: tuple[int, int]) -> None:
    servers = tuple(replace(GIT, server=ServerId(f"server-{n}")) for n in range(40))
    async with asking(trust(servers=servers), size) as hands:
        await hold(hands, "enter")
        await hands.arm()
        await hold(hands, "enter")
        await hands.pilot.pause()
        assert answers(hands) <= NO


SAYS, UNVERIFIED = "server's claim: ", "(unverified)"
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
        await click(hands.pilot, "#once")
        await click(hands.pilot, "#always-tool")
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
        assert [label for label in labels if label][:3] == [
            "server",
            "tool",
            SAYS[:LABEL_WIDTH].strip(),
        ]
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
