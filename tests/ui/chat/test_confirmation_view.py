"""What the question whether a tool may run shows, whatever it is about."""

import json
from dataclasses import replace

import pytest

from tests.support.stalls import HANG_SECONDS, LoopWatch
from tests.ui.chat.confirming import arm, ask, asking, modal, press
from tests.ui.chat.samples import request, rows_of
from tests.ui.harness import chatting, until
from tui.model import events as e
from tui.model.consent import RequestId
from tui.model.requests import ConfirmationRequest
from tui.model.servers import ServerId
from tui.ui.questions.calls.argument_lines import coloured_arguments
from tui.ui.questions.confirmation import DENY, ConfirmationQuestion

SHOWN = tuple(answer.name for answer in ConfirmationQuestion.ROWS[0])
"""The buttons that are always there."""


async def test_the_question_shows_server_tool_claims_and_all_arguments() -> None:
    arguments = json.dumps({"message": "hello", "deep": {"list": list(range(100))}}, indent=2)
    async with asking(request(arguments=arguments), armed=False) as (app, pilot, clock):
        facts = str(modal(app).facts.render())
        assert "git" in facts
        assert "commit0" in facts
        assert "read-only  (claimed, not checked)" in facts
        await arm(app, pilot, clock)
        await press(app, pilot, clock, "j")
        assert "\n".join(rows_of(modal(app).arguments)) == arguments


@pytest.mark.parametrize(
    ("size", "rows"), [((80, 24), 6), ((120, 36), 6), ((50, 16), 2), ((40, 10), 1)]
)
async def test_every_choice_and_some_arguments_are_in_sight(
    size: tuple[int, int], rows: int
) -> None:
    arguments = json.dumps(list(range(100)), indent=2)
    async with chatting(size=size) as (app, pilot):
        await ask(app, pilot, request(arguments=arguments))
        assert modal(app).arguments.size.height >= rows
        for name in SHOWN:
            button = modal(app).query_one(f"#{name}")
            assert app.screen.region.contains_region(button.region)
            assert modal(app).frame.region.contains_region(button.region)
            assert button.size.width >= len(str(button.render())), name


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 10)])
async def test_long_names_take_a_row_each_and_show_both_ends(size: tuple[int, int]) -> None:
    async with chatting(size=size) as (app, pilot):
        asked = replace(
            request(),
            server=ServerId("s" * 194 + "server"),
            tool="rm" + "t" * 194 + "last",
            claims=("c" * 200,),
        )
        await ask(app, pilot, asked)
        facts = modal(app).facts
        await until(pilot, lambda: "…" in str(facts.render()))
        server, tool, *claims = str(facts.render()).split("\n")
        assert server.endswith("server")
        assert tool.startswith("tool     rmt")
        assert tool.endswith("last")
        assert claims[-1].endswith("(claimed, not checked)")
        assert max(map(len, (server, tool, *claims[:-1]))) <= facts.size.width
        assert app.screen.region.contains_region(facts.region)
        assert facts.size.height >= 2


@pytest.mark.parametrize(("size", "rows"), [((80, 30), 2), ((80, 24), 2), ((80, 16), 1)])
async def test_claims_are_wrapped_where_there_is_room(size: tuple[int, int], rows: int) -> None:
    claims = ("read-only", "not destructive", "idempotent", "stays in a closed world")
    async with chatting(size=size) as (app, pilot):
        await ask(app, pilot, replace(request(), claims=claims))
        view = modal(app)
        await until(pilot, lambda: view.facts.size.height == 2 + rows)
        shown = [line[9:].strip() for line in str(view.facts.render()).split("\n")[2:]]
        assert len(shown) == rows
        assert shown[-1].endswith("(claimed, not checked)")
        assert (" ".join(", ".join(claims).split()) in " ".join(shown)) == (rows > 1)
        assert app.screen.region.contains_region(view.rows.region)
        assert app.screen.region.contains_region(view.hint.region)


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 10)])
async def test_the_question_says_where_its_server_comes_from(size: tuple[int, int]) -> None:
    async with chatting(size=size) as (app, pilot):
        await ask(app, pilot, replace(request(), origin="this folder"))
        server = str(modal(app).facts.render()).split("\n")[0]
        assert server == "server   git  from this folder"


@pytest.mark.parametrize("padding", ["", "x" * 20_000])
def test_blanks_that_deceive_look_like_no_others(padding: str) -> None:
    text = f'{{\n  "a": "x      y\u00a0z\u3000·w",\n  "{padding}": 1\n}}'
    shown = coloured_arguments(text)
    assert '"x······y\\u00a0z\\u3000\\u00b7w"' in shown.plain
    assert "\u00a0" not in shown.plain
    marked = {
        shown.plain[span.start : span.end]
        for span in shown.spans
        if span.style == "$text-warning" and not shown.plain[span.start : span.end].isdigit()
    }
    assert marked == (set() if padding else {"······", "\\u00a0", "\\u3000\\u00b7"})


async def test_arguments_scroll_with_the_keys_to_their_last_line() -> None:
    arguments = json.dumps(list(range(1_000)), indent=2)
    async with asking(request(arguments=arguments)) as (app, pilot, _clock):
        view = modal(app).arguments
        await pilot.press("down", "pagedown")
        await until(pilot, lambda: view.scroll_y > 1)
        await pilot.press("end")
        await until(pilot, lambda: view.scroll_y == view.max_scroll_y)
        assert view.row_count == arguments.count("\n") + 1
        assert app.focused is modal(app).rows.button(DENY)


def test_runs_of_blanks_are_made_visible_and_nothing_is_lost() -> None:
    text = json.dumps({"path": "/safe" + " " * 5_000 + "; rm -rf /", "indent": {"x": 1}}, indent=2)
    shown = coloured_arguments(text).plain
    assert len(shown) == len(text)
    assert " " * 5 not in shown.split('"indent"')[0]
    assert shown.replace("·", " ") == text


@pytest.mark.parametrize(
    "text",
    ["[/x] [@click=app.quit]q[/]", "\n" * 5_000, "x" * 1_000_000, "漢" * 300_000],
    ids=["markup", "blank", "long", "wide"],
)
async def test_hostile_questions_neither_crash_nor_hold_up_the_loop(
    text: str, loop_watch: LoopWatch
) -> None:
    async with chatting() as (app, pilot):
        await ask(app, pilot, request(arguments='{"warm": "up"}'))
        loop_watch.clear()
        hostile = ConfirmationRequest(
            RequestId("h"), request().call, request().server, text, text, text, (text, text)
        )
        app.store.dispatch(e.RequestRaised(hostile))
        app.store.dispatch(e.RequestSettled(RequestId("r0")))
        await until(pilot, lambda: modal(app).request == hostile)
        await pilot.pause(0.05)
        modal(app).action_scroll(0, 1000)
        await pilot.pause(0.05)
        loop_watch.assert_smooth(HANG_SECONDS)
        assert app.is_running
        assert app.screen.region.contains_region(modal(app).rows.button(DENY).region)
