"""Results: how much reaches the model, what the user sees first, and calls that go in circles."""

import re
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Deck, Play, Script, Turncoat, play, shop
from tests.support.waiting import eventually
from tests.unit.engine.chats.support import make_tool
from tests.unit.engine.mcp.support import FOLDER
from tests.unit.engine.sessions.test_resuming import library
from tests.unit.engine.sessions.written import turn, write
from tui.engine.approval.inquiry import MAX_SAME_CALLS
from tui.engine.chats import own_tools
from tui.engine.chats.calls import WITHHELD
from tui.engine.chats.own_tools import GONE, KeptResults
from tui.engine.mcp.catalog.offered_tool import (
    MAX_STRUCTURED,
    MediaPart,
    TextPart,
    ToolCallError,
    ToolResult,
)
from tui.model.chat import ToolCallStatus, TurnOutcome
from tui.model.consent import Choice
from tui.model.events import TurnFinished
from tui.model.requests import ConfirmationRequest, Reply, ReplyAction, ResultReview
from tui.model.servers import ServerStatus

__all__ = ["play", "shop"]

ACCEPT, DECLINE = ReplyAction.ACCEPT, ReplyAction.DECLINE


def calling(times: int, *, text: str = "same") -> Script:
    """Let the model make the same call in steps of one turn."""
    return [*[[Call([("look", {"text": text})])] for _ in range(times)], [Say("done")]]


async def reply(running: Deck, action: ReplyAction, text: str | None = None) -> ResultReview:
    request = await running.pending(ResultReview)
    assert running.calls[-1].status is ToolCallStatus.ASKING
    assert len(running.fake.requests) % 2 == 1, "the model knows nothing yet"
    running.engine.desk.answer(request.id, Reply(action, text=text))
    await eventually(lambda: request not in running.store.state.pending)
    return request


async def test_a_result_is_passed_trimmed_withheld_or_stopped(shop: Turncoat, play: Play) -> None:
    script = [*calling(1), *calling(1), *calling(1), *calling(1)[:1], [Say("two")]]
    settings = {"mcpServers": {"shop": {**shop.entry, "reviewResults": True, "trust": True}}}
    async with play(script, shop, settings=settings) as running:
        for action, text, told, status in (
            (ACCEPT, None, "{whole}", ToolCallStatus.OK),
            (ACCEPT, "A part.", "[The user changed this result.]\nA part.", ToolCallStatus.OK),
            (DECLINE, None, WITHHELD, ToolCallStatus.ERROR),
        ):
            running.engine.clear_conversation()
            running.engine.send("go")
            request = await reply(running, action, text)
            assert (request.server, request.tool, request.media) == ("shop", "look", ())
            await running.idle()
            assert running.fake.requests[-1].answers == [told.format(whole=request.text)]
            assert running.calls[-1].status is status, told
        running.engine.clear_conversation()
        running.engine.send("go")
        request = await running.pending(ResultReview)
        running.engine.cancel_turn()
        await running.idle()
        assert running.store.state.pending == ()
        await running.ask("again")
        assert request.text not in running.seen()
        assert running.fake.violations == []


async def test_the_same_call_a_third_time_asks_despite_rules(shop: Turncoat, play: Play) -> None:
    script = [*calling(3)[:3], *calling(1, text="other")[:1], *calling(2)]
    settings = {"mcpServers": {"shop": {**shop.entry, "trust": True}}}
    async with play(script, shop, settings=settings) as running:
        running.engine.send("go")
        request = await running.pending(ConfirmationRequest)
        assert len(shop.calls) == MAX_SAME_CALLS - 1
        assert request.notes[0] == "The model made this very call 2 times before in this turn."
        await running.decide(Choice.ONCE)
        await running.idle()
        outcomes = [e.outcome for e in running.events if isinstance(e, TurnFinished)]
        assert (outcomes, len(running.raised(ConfirmationRequest))) == ([TurnOutcome.COMPLETED], 1)
        assert len(shop.calls) == 6


async def test_the_model_reads_on_in_a_result_that_was_cut(home: Path, play: Play) -> None:
    """Of the first answer it gets as much as the settings say; the rest it gets unasked."""
    text = "".join(f"{number:04}" for number in range(800))
    entry = {"command": sys.executable, "args": [str(FOLDER / "raw.py")]}
    settings = {"mcpServers": {"raw": entry}, "gemdeck": {"maxResultSize": 1_000}}
    script: Script = [[Call([("echo", {"text": text})])], [Say("done")]]
    async with play(script, settings=settings) as running:
        await eventually(lambda: running.status("raw") is ServerStatus.READY)
        await running.answered("go", Choice.ONCE)
        [answer] = running.fake.requests[-1].answers
        gap = r'\n… \[characters 501 to 2,700 of 3,200 are left out: call read_result\(id="(.+)", '
        found = re.fullmatch(rf"(.+){gap}offset=500\) for the rest\] …\n(.+)", answer)
        assert found is not None
        assert (found[1], found[3]) == (text[:500], text[-500:])
        shown = "[The model gets 1,000 of 3,200 characters, and can read the rest.]"
        assert running.calls[0].result.endswith(shown)
        asked = ((found[2], 500), (found[2], 2_500), (found[2], 3_200), ("x", 0))
        read = [("read_result", {"id": key, "offset": offset}) for key, offset in asked]
        running.fake.steps += [[Call(read)], [Say("done")]]
        await running.ask("read on")
        assert len(running.raised(ConfirmationRequest)) == 1
        rest = f'call read_result(id="{found[2]}", offset=1500) for the rest'
        assert running.fake.requests[-1].answers == [
            f"{text[500:1500]}\n[Characters 501 to 1,500 of 3,200: {rest}]",
            f"{text[2500:]}\n[Characters 2,501 to 3,200 of 3,200: the end]",
            "The result has 3200 characters: the offset is too large.",
            f"The call cannot be made: {GONE}",
        ]
        made = [(call.server, call.tool) for call in running.calls[1:3]]
        assert made == [("raw", "read_result")] * 2
        names = [running.fake.requests[request].declared for request in range(4)]
        assert ["read_result" in one for one in names] == [False, True, True, True]
        view = write(library(), home / "work", turn(1, "one", "1"))
        for is_resumed in (True, False):
            running.fake.steps += [*script, [Call(read[:1])], [Say("done")]]
            await running.answered("go", Choice.ONCE)
            assert "read_result" in running.fake.requests[-1].declared
            if is_resumed:
                await running.engine.sessions.resume(view.id)
            else:
                running.engine.clear_conversation()
            await running.ask("read on")
            assert "read_result" not in running.fake.requests[-1].declared
            assert running.fake.requests[-1].answers == [f"The call cannot be made: {GONE}"]


def test_what_stands_beside_a_text_takes_nothing_from_it() -> None:
    said, beside = "w" * 50_000, "r" * 90_000
    result = ToolResult((TextPart(said), TextPart(beside)), "", beside=1)
    first, second = KeptResults().cut(make_tool("look"), result).parts
    assert first == TextPart(said)
    assert isinstance(second, TextPart)
    assert MAX_STRUCTURED < len(second.text) < MAX_STRUCTURED + 200
    assert "[characters 52,502 to 137,501 of 140,001 are left out" in second.text
    assert "offset=52501" in second.text
    rows = ToolResult((TextPart("1 row"), TextPart("r" * 40_000)), "", beside=1)
    assert KeptResults().cut(make_tool("look"), rows) is rows, "they may be as long as any result"


async def test_the_oldest_of_too_many_long_results_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_tools, "MAX_KEPT", 5_000)
    reviewed = replace(make_tool("look"), is_reviewed=True)
    kept, keys = KeptResults(limit=1_000), list[str]()
    for size in (2_000, 2_001, 2_002, 9_000):
        picture = MediaPart("image/png", "AA==")
        result = ToolResult((TextPart("x" * size), picture), "", is_error=True)
        text, media = (cut := kept.cut(reviewed, result)).parts
        assert (media, cut.is_error) == (picture, True)
        keys += re.findall('id="(.+)"', str(text))
        bound = kept.tool().bind
        assert bound is not None
        known = []
        for key in keys:
            with suppress(ToolCallError):
                known.append(bound({"id": key}))
        assert len(known) == (1 if size == 9_000 else min(len(keys), 2)), size
        assert {(one.server, one.is_reviewed) for one in known} == {("notes", True)}
