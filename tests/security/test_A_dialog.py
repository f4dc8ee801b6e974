"""The question on a folder: it shows everything, and no careless key gives the yes."""

import string
from dataclasses import replace

import pytest

from tests.security.paging import hold, rows_seen_by_paging
from tests.ui.consent.samples import GIT, SEARCH, trust
from tests.ui.hands import Asking, asking
from tui.model.servers import ServerId
from tui.model.trust import TrustAnswer
from tui.ui.widgets.text.labelled_text import LABEL_WIDTH

NO = {TrustAnswer.NOT_NOW}


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


async def test_A12_every_character_of_a_long_argument_can_be_reached() -> None:
    noise = string.ascii_letters + string.digits
    long = "".join(noise[n * n % 61] for n in range(64 * 1024))
    server = replace(GIT, args=("-y", long, "--danger"))
    async with asking(trust(servers=(server,)), (120, 60), armed=True) as hands:
        rows = await rows_seen_by_paging(hands, hands.view)
        assert value_after(rows, "2") == long
        assert value_after(rows, "3") == "--danger"


HIDDEN = ("x" + " " * 300 + "; rm -rf ~", "x\n\n\nserver     no", "⟨U+202E⟩fdp.exe", "\tx\r\ny")


async def test_A12_nothing_in_an_argument_moves_the_rest_out_of_sight() -> None:
    many = (f"--option-{n}" for n in range(6, 301))
    server = replace(GIT, args=(*HIDDEN, "--last", *many))
    async with asking(trust(servers=(server,)), (80, 60), armed=True) as hands:
        await hands.press("t")
        assert hands.calls == []
        rows = await rows_seen_by_paging(hands, hands.view)
        for number, hidden in enumerate(HIDDEN, 1):
            visible = hidden.replace("\n", "␊").replace("\t", "␉").replace("\r", "␍")
            assert value_after(rows, str(number)).replace(" ", "") == visible.replace(" ", "")
        assert value_after(rows, "5") == "--last"
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


async def test_A23_a_calm_enter_says_not_now_and_escape_does_the_same() -> None:
    for key in ("enter", "escape"):
        async with asking(trust(), armed=True) as hands:
            await hands.press("end", key)
            assert answers(hands) == NO
