"""Results: how much reaches the model, what the user sees first, and calls that go in circles."""

import sys

from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Deck, Play, Script, Turncoat, play, shop
from tests.support.waiting import eventually
from tests.unit.engine.mcp.support import FOLDER
from tests.unit.engine.test_own_tools import answers
from tui.engine.approval.inquiry import MAX_SAME_CALLS
from tui.engine.chats.calls import WITHHELD
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


async def test_a_result_is_passed_trimmed_or_withheld_and_goes_to_nobody_after_a_stop(
    shop: Turncoat, play: Play
) -> None:
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
            assert answers(running) == [told.format(whole=request.text)]
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


async def test_the_same_call_a_third_time_asks_whatever_rules_say(
    shop: Turncoat, play: Play
) -> None:
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
        assert outcomes == [TurnOutcome.COMPLETED]
        assert len(running.raised(ConfirmationRequest)) == 1
        assert len(shop.calls) == 6


async def test_the_model_gets_as_much_of_a_result_as_the_settings_say(play: Play) -> None:
    """Without a setting it is `DEFAULT_RESULT_SIZE`, as the longest file of the round trips."""
    entry = {"command": sys.executable, "args": [str(FOLDER / "raw.py")]}
    settings = {"mcpServers": {"raw": entry}, "gemdeck": {"maxResultSize": 1_000}}
    script: Script = [[Call([("echo", {"text": "x" * 5_000})])], [Say("done")]]
    async with play(script, settings=settings) as running:
        await eventually(lambda: running.status("raw") is ServerStatus.READY)
        await running.answered("go", Choice.ONCE)
        [answer] = answers(running)
    assert 900 <= len(answer) <= 1_200
