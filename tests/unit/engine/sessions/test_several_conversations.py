"""Several conversations at once, each with its own model, turn, questions and session."""

from collections.abc import Sequence

import anyio
import pytest

from tests.fakes.gemini import FakeGemini, Request
from tests.fakes.gemini_script import Action, Say, Stall
from tests.security.decks import Deck, deck
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.support import eventually
from tui.model.answering.models import ModelOptions
from tui.model.chat import MAIN, ConversationId, ModelText, UserMessage
from tui.model.events import TextStreamed

FLASH, PRO = "gemini-3.8-flash", "gemini-2.5-pro"


def by_words(**answers: Sequence[Action]) -> list:  # type: ignore[type-arg]
    """Answer each request by the first word of its last message of the user."""

    def step(request: Request) -> Sequence[Action]:
        said = [part["text"] for c in request.contents for part in c["parts"] if "text" in part]
        return answers[said[-1].split()[0]]

    return [step] * 20


def said_to(request: Request) -> list[str]:
    return [part["text"] for c in request.contents for part in c["parts"] if "text" in part]


def shown(it: Deck, key: ConversationId) -> list[str]:
    transcript = it.store.state.conversations[key].transcript
    found = (*transcript.settled, *transcript.live)
    return [e.text for e in found if isinstance(e, UserMessage | ModelText)]


def open_another(it: Deck) -> ConversationId:
    """Open a conversation, and return its key."""
    it.engine.conversations.open()
    return it.store.state.current


async def test_two_conversations_answer_at_the_same_time_with_their_own_model_and_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = by_words(one=[Say("1"), Stall()], two=[Say("2")], more=[Say("3")])
    async with FakeGemini(answers) as fake, deck(fake, monkeypatch) as it:
        it.engine.send("one")
        await fake.wait_for_stall()
        second = open_another(it)
        it.engine.model.use_model(PRO)
        await eventually(lambda: it.store.state.model.name == PRO)
        it.engine.model.set_options(ModelOptions(temperature=0.5))
        await it.ask("two")
        await it.ask("more")
        assert [r.model for r in fake.requests] == [FLASH, PRO, PRO]
        assert said_to(fake.requests[-1]) == ["two", "2", "more"]
        assert [r.body["generationConfig"].get("temperature") for r in fake.requests[1:]] == [
            0.5,
            0.5,
        ]
        first = it.store.state.conversations[MAIN]
        assert (first.model.name, first.options, first.turn is None) == (
            FLASH,
            ModelOptions(),
            False,
        )
        it.engine.cancel_turn(MAIN)
        with anyio.fail_after(PATIENCE):
            await it.engine.wait_idle(MAIN)
        assert shown(it, MAIN) == ["one", "1"]
        assert shown(it, second) == ["two", "2", "more", "3"]
        assert it.store.state.conversations[MAIN].has_news
        streamed = [e for e in it.events if isinstance(e, TextStreamed)]
        assert {e.delta: e.conversation for e in streamed} == {
            "1": MAIN,
            "2": second,
            "3": second,
        }
        assert len({e.entry for e in streamed}) == 3
        assert fake.violations == []
