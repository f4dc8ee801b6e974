"""What comes while the conversation is not on the screen, or as it comes there, is seen."""

from dataclasses import replace
from time import monotonic

import pytest

from tests.ui.harness import ChatApp, Running, chatting, running, screen_lines, until
from tui.model import events as e
from tui.model.chat import MAIN, ConversationId, EntryId, TurnId, TurnOutcome, UserMessage
from tui.model.sessions import ConversationOpened, ConversationSelected
from tui.store.store import Store


def answer(
    deck: ChatApp | Running, number: int, rows: int = 1, within: ConversationId = MAIN
) -> None:
    """Let a whole turn happen, whose answer has so many rows."""
    turn, entry = TurnId(f"t{number}"), EntryId(f"t{number}-m")
    text = "\n\n".join(f"answer {number}.{row}" for row in range(rows))
    for event in (
        e.TurnStarted(turn, UserMessage(EntryId(f"{turn}-u"), "question"), monotonic()),
        e.TextStreamed(entry, text),
        e.EntryCompleted(entry),
        e.TurnFinished(turn, TurnOutcome.COMPLETED, "", 1.0),
    ):
        deck.store.dispatch(replace(event, conversation=within))


@pytest.mark.parametrize(("height", "before"), [(24, 60), (30, 1), (45, 60)])
async def test_each_answer_after_a_cleared_conversation_is_shown(height: int, before: int) -> None:
    async with chatting(size=(120, height)) as (app, pilot):
        transcript = app.chat.transcript

        async def shows(number: int, rows: int = 1) -> None:
            words = f"answer {number}.{rows - 1}"
            await until(pilot, lambda: any(words in line for line in screen_lines(app)))

        for cleared in (0, 100):
            answer(app, cleared, before)
            await shows(cleared, before)
            app.store.dispatch(e.ConversationCleared())
            await until(pilot, lambda: not transcript.display)
            for number in range(cleared + 1, cleared + 5):
                answer(app, number)
                await shows(number)
                if transcript.max_scroll_y == 0:
                    assert transcript.scroll_y == 0
            app.store.dispatch(e.ConversationCleared())
            await until(pilot, lambda: not transcript.display)


@pytest.mark.parametrize(
    ("height", "before", "after"), [(24, 1, 60), (24, 60, 1), (45, 60, 60), (45, 1, 1)]
)
async def test_what_came_while_the_chat_was_hidden_is_shown(
    height: int, before: int, after: int
) -> None:
    async with chatting(size=(120, height)) as (app, pilot):
        transcript = app.chat.transcript
        answer(app, 1, before)
        await until(pilot, lambda: f"answer 1.{before - 1}" in "\n".join(screen_lines(app)))
        app.chat.display = False
        await until(pilot, lambda: not transcript.size)
        answer(app, 2, after)
        await until(pilot, lambda: len(transcript.views) == 6)
        app.chat.display = True
        await until(pilot, lambda: f"answer 2.{after - 1}" in "\n".join(screen_lines(app)))
        answer(app, 3)
        await until(pilot, lambda: "answer 3.0" in "\n".join(screen_lines(app)))
        assert transcript.scroll_y == transcript.max_scroll_y
        assert transcript.is_anchored is (transcript.max_scroll_y > 0)


async def test_who_reads_back_stays_there_while_the_chat_is_hidden_and_when_its_size_changes() -> (
    None
):
    async with chatting(size=(120, 30)) as (app, pilot):
        transcript = app.chat.transcript
        answer(app, 1, 60)
        await until(pilot, lambda: "answer 1.59" in "\n".join(screen_lines(app)))
        transcript.scroll_home(animate=False)
        await until(pilot, lambda: "answer 1.0" in "\n".join(screen_lines(app)))
        app.chat.display = False
        await until(pilot, lambda: not transcript.size)
        answer(app, 2, 60)
        app.chat.display = True
        await until(pilot, lambda: "answer 1.0" in "\n".join(screen_lines(app)))
        for height in (24, 40):
            await pilot.resize_terminal(120, height)
            answer(app, height, 2)
            await until(pilot, lambda: app.size.height == height)  # noqa: B023 - awaited here
            await pilot.pause()
            assert transcript.scroll_y == 0
        transcript.go_to_end()
        await until(pilot, lambda: "answer 40.1" in "\n".join(screen_lines(app)))


@pytest.mark.parametrize(("height", "rows"), [(24, 60), (36, 1)])
async def test_what_came_in_another_tab_is_shown_when_it_comes_to_the_front(
    height: int, rows: int
) -> None:
    async with running(Store(), (120, height)) as deck:
        other = ConversationId("b")

        async def shows(number: int, rows: int) -> None:
            await deck.until(lambda: f"answer {number}.{rows - 1}" in deck.text)

        answer(deck, 1, rows)
        await shows(1, rows)
        await deck.happen(ConversationOpened(other))
        await deck.happen(ConversationSelected(other))
        for number in (2, 3):
            answer(deck, number, rows)
            answer(deck, number + 10, rows, other)
            await shows(number + 10, rows)
        await deck.happen(ConversationSelected(MAIN))
        await shows(3, rows)
        for number in (4, 5, 6):
            answer(deck, number)
            await shows(number, 1)
        deck.dispatch(replace(e.ConversationCleared(), conversation=other))
        await deck.happen(ConversationSelected(other))
        for number in (7, 8, 9):
            answer(deck, number, 1, other)
            await shows(number, 1)
