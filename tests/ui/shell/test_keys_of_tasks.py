"""How many keys the commonest tasks take from an empty composer, beside the words typed."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import pytest

from tests.support.samples import confirmation
from tests.ui.harness import NARROW, Running, running
from tests.ui.shell import decks
from tui.model import events as e
from tui.model.chat import EntryId, ToolCall, ToolCallStatus, TurnId, TurnOutcome
from tui.model.consent import Choice, Decision
from tui.model.servers import ServerId
from tui.ui.main import MainScreen
from tui.ui.questions.question import Question
from tui.ui.widgets.chat.composer import Composer

MOST: Final = 5
"""Keys that none of them may take more than."""

CODE: Final = "Like this:\n\n```python\nprint('one')\n```\n\nor\n\n```sh\necho two\n```\n\nDone."

COMMANDS: Final = (
    ("what is new?", ("enter",), ("messages.send", ("what is new?",))),
    ("", ("f2", "home", "down", "r"), ("servers.restart", ("everything",))),
    ("/mcp restart everything", ("enter",), ("servers.restart", ("everything",))),
    ("/new", ("enter",), ("conversations.current.clear", ())),
)
"""Words that are typed, keys after them, and what is asked of the engine."""


@dataclass
class Hands:
    """A deck whose composer is empty and has the focus, and the keys pressed on it."""

    deck: Running
    keys: list[str] = field(default_factory=list)

    async def words(self, text: str) -> None:
        """Type words, which do not count."""
        await self.deck.press(*text)

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.deck.press(key)
            self.keys.append(key)


async def approve_once(hands: Hands) -> None:
    decks.start_turn(hands.deck.store)
    hands.deck.dispatch(e.RequestRaised(confirmation()))
    await hands.deck.until(lambda: isinstance(hands.deck.app.screen, Question))
    screen = hands.deck.app.screen
    assert isinstance(screen, Question)
    await hands.deck.until(lambda: screen.armed)
    await hands.press("o")
    await hands.deck.until(lambda: hands.deck.asked("desk.answer"))
    (_, decision) = hands.deck.asked("desk.answer")[0]
    assert isinstance(decision, Decision)
    assert decision.choice is Choice.ONCE


async def see_the_last_result(hands: Hands) -> None:
    answered(hands.deck)
    await hands.deck.settle()
    assert "the whole of the last result" not in hands.deck.text
    await hands.press("ctrl+o")
    await hands.deck.until(lambda: "the whole of the last result" in hands.deck.text)


async def see_why_it_failed(hands: Hands) -> None:
    await hands.press("f2", "down")
    await hands.deck.until(lambda: "The server ended" in hands.deck.text)
    assert "ModuleNotFoundError" in hands.deck.text, "its own last words, too"


async def run_a_prompt(hands: Hands) -> None:
    await hands.words("/compl")
    await hands.press("tab")
    await hands.words("hot")
    await hands.press("enter")
    sent = [("/complex_prompt hot",)]
    await hands.deck.until(lambda: hands.deck.asked("messages.send") == sent)


async def put_a_resource_into_a_message(hands: Hands) -> None:
    await hands.words("what is in @resource/1")
    await hands.deck.until(lambda: hands.deck.app.deck.chat.popup.display)
    await hands.press("tab")
    mention = "@everything:test://static/resource/1 "
    composer = hands.deck.one(Composer)
    await hands.deck.until(lambda: composer.text == f"what is in {mention}")


async def copy_the_last_code_block(hands: Hands) -> None:
    answered(hands.deck, CODE)
    await hands.deck.settle()
    await hands.press("shift+tab", "y")
    await hands.deck.until(lambda: hands.deck.app.clipboard == "echo two")


def answered(deck: Running, text: str = "done") -> None:
    """Let a turn with a tool call and an answer be over."""
    decks.start_turn(deck.store)
    call = ToolCall(EntryId("c1"), ServerId("git"), "log", "{}")
    deck.dispatch(e.ToolCallRequested(call))
    result = "first line\n\nthe whole of the last result"
    deck.dispatch(e.ToolCallChanged(call.id, ToolCallStatus.OK, 0.1, result))
    deck.dispatch(e.TextStreamed(EntryId("m2"), text))
    deck.dispatch(e.TurnFinished(TurnId("t1"), TurnOutcome.COMPLETED))


@pytest.mark.parametrize(
    "task",
    [
        approve_once,
        see_the_last_result,
        see_why_it_failed,
        run_a_prompt,
        put_a_resource_into_a_message,
        copy_the_last_code_block,
    ],
)
async def test_a_common_task_takes_few_keys(task: Callable[[Hands], Awaitable[None]]) -> None:
    async with running(decks.full_store(), NARROW) as deck:
        composer = deck.one(Composer)
        assert deck.focus is composer
        assert deck.on_top(MainScreen)
        hands = Hands(deck)
        await task(hands)
        assert len(hands.keys) <= MOST, hands.keys


async def test_a_common_command_takes_few_keys() -> None:
    async with running(decks.full_store(), NARROW) as deck:
        for words, keys, call in COMMANDS:
            deck.one(Composer).focus()
            deck.commands.calls.clear()
            await deck.press(*words, *keys)
            assert len(keys) <= MOST
            await deck.until(lambda: deck.commands.calls == [call])  # noqa: B023 - awaited at once
