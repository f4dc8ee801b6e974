"""Several conversations at once, each with its own model, turn, questions and session."""

import asyncio
import random
import threading
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import anyio
import pytest

from tests.fakes.gemini import KEY, FakeGemini, Request, Step
from tests.fakes.gemini_script import Action, Call, Fail, Say, Stall
from tests.security.decks import Deck, Play, Turncoat, deck, play, shop, tool, write_settings
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.support import eventually
from tests.unit.engine.sessions.test_resuming import asked, library, notices, remarks, told_in
from tests.unit.engine.sessions.test_two_instances import instance
from tui.engine.chats.backends.backend import ModelBackend
from tui.engine.chats.backends.gemini import GeminiBackend
from tui.engine.chats.conversations import MAX_OPEN, Conversation
from tui.model.chat import (
    MAIN,
    BackendKind,
    ConversationId,
    ModelText,
    ToolCallStatus,
    TurnPhase,
    UserMessage,
)
from tui.model.consent import Choice, Decision
from tui.model.events import RequestSettled, TextStreamed, ToolCallChanged
from tui.model.models import ModelOptions
from tui.model.requests import ConfirmationRequest, Reply, ReplyAction, ResultReview
from tui.model.sessions import ConversationClosed, ConversationNamed

__all__ = ["play", "shop"]

FLASH, PRO = "gemini-3.8-flash", "gemini-2.5-pro"


def by_words(**answers: Sequence[Action]) -> list[Step]:
    """Answer each request by the first word that its user said last."""

    def step(request: Request) -> Sequence[Action]:
        return answers[said_in(request)[-1].split()[0]]

    return [step] * 30


def said_in(request: Request) -> list[str]:
    return [part["text"] for c in request.contents for part in c["parts"] if "text" in part]


def shown(it: Deck, key: ConversationId) -> list[str]:
    transcript = it.store.state.conversations[key].transcript
    found = (*transcript.settled, *transcript.live)
    return [e.text for e in found if isinstance(e, UserMessage | ModelText)]


def open_another(it: Deck) -> ConversationId:
    it.engine.conversations.open()
    return it.store.state.current


async def idle(it: Deck, key: ConversationId) -> None:
    with anyio.fail_after(PATIENCE):
        await it.engine.wait_idle(key)


async def test_two_conversations_answer_at_once_with_a_model_of_their_own(play: Play) -> None:
    answers = by_words(one=[Say("1"), Stall()], two=[Say("2")], more=[Say("3")])
    async with play(answers) as it:
        it.engine.send("one")
        await it.fake.wait_for_stall()
        second = open_another(it)
        it.engine.models.use_model(PRO)
        await eventually(lambda: it.store.state.model.name == PRO)
        it.engine.models.set_options(ModelOptions(temperature=0.5))
        await it.ask("two")
        await it.ask("more")
        assert [request.model for request in it.fake.requests] == [FLASH, PRO, PRO]
        assert said_in(it.fake.requests[-1]) == ["two", "2", "more"]
        warmth = [r.body["generationConfig"].get("temperature") for r in it.fake.requests]
        assert warmth == [None, 0.5, 0.5]
        first = it.store.state.conversations[MAIN]
        assert (first.model.name, first.options) == (FLASH, ModelOptions())
        assert first.turn is not None
        it.engine.cancel_turn(MAIN)
        await idle(it, MAIN)
        assert (shown(it, MAIN), shown(it, second)) == (["one", "1"], ["two", "2", "more", "3"])
        assert it.store.state.conversations[MAIN].has_news
        streamed = [event for event in it.events if isinstance(event, TextStreamed)]
        keys = {event.delta: event.conversation for event in streamed}
        assert keys == {"1": MAIN, "2": second, "3": second}
        assert len({event.entry for event in streamed}) == 3
        assert it.fake.violations == []
    told = {view.first: told_in(view) for view in library().sessions()}
    assert told == {"one": ["one"], "two": ["two", "more"]}


async def test_a_call_in_the_background_asks_in_its_conversation(
    shop: Turncoat, play: Play
) -> None:
    settings = {"mcpServers": {"shop": {**shop.entry, "reviewResults": True}}}
    steps: list[Step] = [[Call([("look", {})])], [Say("2")], [Say("done")]]
    async with play(steps, settings=settings) as it:
        await eventually(it.offered)
        second = open_another(it)
        it.engine.send("look")
        request = await it.pending(ConfirmationRequest)
        it.engine.conversations.select(MAIN)
        await it.ask("two")
        it.engine.desk.answer(request.id, Decision(Choice.ONCE))
        review = await it.pending(ResultReview)
        assert request.conversation == review.conversation == second
        it.engine.desk.answer(review.id, Reply(ReplyAction.ACCEPT))
        await idle(it, second)
        assert (shown(it, MAIN), shown(it, second)) == (["two", "2"], ["look", "done"])
        changed = [event for event in it.events if isinstance(event, ToolCallChanged)]
        assert {event.conversation for event in changed} == {second}
        asking = [event.status for event in changed].count(ToolCallStatus.ASKING)
        assert (asking, len(shop.calls)) == (2, 1), "the call asks, then its result"


async def test_closing_stops_the_turn_on_the_wire_and_frees_the_session(play: Play) -> None:
    answers = by_words(one=[Say("1")], two=[Say("2"), Stall()], next=[Say("3")])
    async with play(answers) as it:
        await it.ask("one")
        second = open_another(it)
        it.engine.send("two")
        it.engine.send("next")
        await eventually(lambda: shown(it, second) == ["two", "2"])
        session = it.engine.sessions.recorder.session
        it.engine.conversations.close()
        assert it.store.state.current == MAIN
        with anyio.fail_after(PATIENCE):
            await it.fake.wait_for_gone()
        await eventually(lambda: ConversationClosed(second) in it.events)
        assert list(it.store.state.conversations) == [MAIN]
        it.engine.conversations.close()
        assert list(it.store.state.conversations) == [MAIN], "the only one stays"
        assert session is not None
        it.engine.sessions.resume(session)
        await eventually(lambda: asked(it) == ["two"])
        assert "read-only" not in remarks(it)
        assert it.store.state.conversation.unsent.texts == ("next",)
        await it.ask("next")
        assert (said_in(it.fake.requests[-1])[:2], it.fake.violations) == (["two", "2"], [])


async def test_closing_withdraws_the_questions_of_its_calls(shop: Turncoat, play: Play) -> None:
    steps: list[Step] = [[Call([("look", {})])]]
    async with play(steps, shop) as it:
        open_another(it)
        it.engine.send("look")
        asked_first = await it.pending(ConfirmationRequest)
        async with anyio.create_task_group() as group:

            async def call() -> None:
                with pytest.raises(Exception, match="conversation was closed"):
                    await it.engine.call_tool(shop_id, "look", {})

            shop_id = asked_first.server
            group.start_soon(call)
            await eventually(lambda: len(it.store.state.pending) == 2)
            it.engine.conversations.close()
        assert it.store.state.pending == ()
        assert RequestSettled(asked_first.id) in it.events
        assert shop.calls == []


async def test_a_session_is_open_once_and_two_conversations_go_on_after_a_kill(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / "work"
    folder.mkdir()
    answers = by_words(one=[Say("1")], two=[Say("2")], more=[Say("3")])
    async with FakeGemini(answers) as fake:
        write_settings({})
        async with instance(folder, fake, is_killed=True) as running:
            await running.ask("one")
            running.order("open")
            await running.ask("two")
        ids = {view.first: view.id for view in library().sessions(folder)}
        assert sorted(ids) == ["one", "two"]
        async with deck(fake, monkeypatch, folder=folder) as it:
            it.engine.sessions.resume(ids["one"])
            await eventually(lambda: asked(it) == ["one"])
            it.engine.sessions.resume_beside(ids["two"])
            second = it.store.state.current
            assert second != MAIN
            await eventually(lambda: asked(it) == ["two"])
            await it.ask("more")
            assert said_in(fake.requests[-1]) == ["two", "2", "more"]
            it.engine.sessions.resume(ids["one"])
            await eventually(lambda: it.store.state.current == MAIN)
            assert shown(it, second) == ["two", "2", "more", "3"]
            await it.ask("more")
            assert said_in(fake.requests[-1]) == ["one", "1", "more"]
            for key, session in ((second, ids["two"]), (MAIN, ids["one"])):
                it.engine.sessions.resume_beside(session)
                assert it.store.state.current == key
            assert (remarks(it), fake.violations) == ("", [])
            await renames_and_deletes(it, second)
    told = {view.title: told_in(view) for view in library().sessions()}
    assert told == {"": ["one", "more"], "other": ["two", "more"]}


async def renames_and_deletes(it: Deck, second: ConversationId) -> None:
    """Name the session that is open in the background; it cannot be deleted."""
    other = it.engine.conversations.get(second)
    assert other is not None
    assert other.recorder.session is not None
    it.engine.sessions.rename(other.recorder.session, "other")
    await eventually(lambda: ConversationNamed("other", conversation=second) in it.events)
    it.engine.sessions.delete(other.recorder.session)
    await eventually(lambda: "open in a tab" in notices(it))


@pytest.mark.writes_secrets("credentials.json")
async def test_a_service_answers_in_all_tabs(monkeypatch: pytest.MonkeyPatch, play: Play) -> None:
    close, closed = GeminiBackend.aclose, list[ModelBackend | None]()

    async def note_and_close(backend: GeminiBackend) -> None:
        closed.append(backend)
        await close(backend)

    monkeypatch.setattr(GeminiBackend, "aclose", note_and_close)

    def backends() -> list[ModelBackend | None]:
        return [one.backend for one in it.engine.conversations]

    def models() -> list[tuple[str, str]]:
        views = [one.model for one in it.store.state.conversations.values()]
        return [(view.backend, view.name) for view in views]

    async with play(by_words(one=[Say("1")])) as it:
        open_another(it)
        open_another(it)
        assert len({*backends()}) == 1, "they share what leads to the same model"
        it.engine.models.use_model(PRO)
        await eventually(lambda: it.store.state.model.name == PRO)
        gemini = BackendKind.GEMINI
        assert models() == [(gemini, FLASH), (gemini, FLASH), (gemini, PRO)]
        before = backends()
        it.engine.choice.use_demo()
        assert {kind for kind, _ in models()} == {BackendKind.DEMO}
        await eventually(lambda: {*before} <= {*closed})
        it.engine.choice.use_api_key(KEY)
        await eventually(lambda: models() == [(gemini, FLASH), (gemini, FLASH), (gemini, PRO)])
        shared, other = backends()[0], backends()[2]
        await it.ask("one")
        assert it.fake.requests[-1].model == PRO
        it.engine.conversations.close()
        await eventually(lambda: other in closed)
        it.engine.conversations.close()
        await eventually(lambda: len(models()) == 1)
        await it.ask("one")
        assert it.fake.requests[-1].model == FLASH
        assert shared not in closed
    assert shared in closed


async def test_waits_end_and_messages_are_edited_in_their_conversation(play: Play) -> None:
    busy = [Fail(503, "busy", retry_delay="60s")]
    answers = by_words(one=[Say("1")], busy=busy, better=[Say("2")])
    async with play(answers) as it:
        await it.ask("one")
        [message] = [e.id for e in it.store.state.conversation.transcript.settled][:1]
        second = open_another(it)
        it.engine.send("busy")

        def phase(key: ConversationId) -> TurnPhase | None:
            turn = it.store.state.conversations[key].turn
            return turn.phase if turn is not None else None

        await eventually(lambda: phase(second) is TurnPhase.RETRYING)
        it.engine.conversations.select(MAIN)
        it.engine.conversations.current.retry.end(again=False)
        it.engine.sessions.edit_message(message, "better")
        it.engine.conversations.select(second)
        await eventually(lambda: shown(it, MAIN) == ["better", "2"])
        assert phase(second) is TurnPhase.RETRYING, "another conversation's wait was ended"
        it.engine.conversations.current.retry.end(again=False)
        await idle(it, second)
        assert it.store.state.conversation.unsent.texts == ("busy",)


async def test_whatever_is_done_no_conversation_hears_of_another(play: Play) -> None:
    chance = random.Random(1)
    numbers = count()

    def answer(request: Request) -> Sequence[Action]:
        return [Say(f"to {said_in(request)[-1]}"), *([Stall()] if chance.random() < 0.3 else [])]

    async with play([answer] * 200) as it:
        conversations, commands = it.engine.conversations, it.engine

        def choose() -> Conversation:
            one: Conversation = chance.choice([*conversations])
            return one

        actions: list[Callable[[], object]] = [
            lambda: commands.send(f"{conversations.current.key} {next(numbers)}"),
            lambda: commands.send(f"{(one := choose()).key} {next(numbers)}", one.key),
            conversations.open,
            conversations.close,
            lambda: conversations.select(choose().key),
            lambda: commands.cancel_turn(choose().key),
            lambda: commands.clear_conversation(choose().key),
            lambda: commands.models.use_model(chance.choice([FLASH, PRO])),
        ]
        for _ in range(100):
            chance.choice(actions)()
            for _ in range(chance.choice([0, 0, 1, 20])):
                await asyncio.sleep(0)
            assert it.store.state.current == conversations.current.key
        for one in conversations:
            commands.cancel_turn(one.key)
            await idle(it, one.key)
        await eventually(lambda: [*it.store.state.conversations] == [o.key for o in conversations])
        assert all(chat.turn is None for chat in it.store.state.conversations.values())
        await eventually(lambda: "background call" not in [t.name for t in threading.enumerate()])
        assert it.fake.violations == []
    for request in it.fake.requests:
        assert len({word.removeprefix("to ").split()[0] for word in talk(request)}) == 1
    for view in library().sessions():
        assert len({text.split()[0] for text in told_in(view)}) == 1


def talk(request: Request) -> list[str]:
    """Give what was said, without the notes of turns that were stopped."""
    return [text for text in said_in(request) if not text.startswith("[")]


async def test_the_smallest_known_context_says_how_many_tools_fit_until_its_tab_closes(
    shop: Turncoat, monkeypatch: pytest.MonkeyPatch, play: Play
) -> None:
    shop.offer(*(tool(f"look_{number}", "x" * 2_000) for number in range(4)))
    limits = {FLASH: 0, PRO: 20_000}
    monkeypatch.setattr("tui.engine.chats.backends.gemini.context_limit", limits.__getitem__)
    async with play([[Say("1")], [Say("2")]], shop) as it:
        open_another(it)
        it.engine.models.use_model(PRO)
        await eventually(lambda: it.store.state.model.name == PRO)
        await it.ask("one")
        it.engine.conversations.close()
        await it.ask("two")
        few, whole = (len(request.declared) for request in it.fake.requests)
        assert few < whole == 4


async def test_a_new_tab_is_like_the_present_one_and_may_close_unused(play: Play) -> None:
    async with play(by_words(one=[Say("1")])) as it:
        first = it.engine.conversations.current
        it.engine.models.use_model(PRO)  # while it opens, the new one is as the first one was
        second = open_another(it)
        await eventually(lambda: first.model == PRO)
        opened = it.engine.conversations.current
        assert opened.backend is not None
        assert (opened.model, opened.backend.model) == ("", FLASH)
        it.engine.send("one")
        it.engine.conversations.close()
        await eventually(lambda: ConversationClosed(second) in it.events)
        assert it.fake.requests == []
        it.engine.models.set_options(ModelOptions("512", 0.5, 4_000))
        open_another(it)
        await it.ask("one")
        [request] = it.fake.requests
        assert (request.model, request.body["generationConfig"]["temperature"]) == (PRO, 0.5)


async def test_there_is_a_most_and_what_nothing_was_said_in_leaves_nothing(play: Play) -> None:
    async with play([]) as it:
        keys = [open_another(it) for _ in range(MAX_OPEN)]
        assert len({*keys}) == MAX_OPEN - 1
        assert f"{MAX_OPEN} conversations are open" in notices(it)
        it.engine.conversations.select(keys[2])
        it.engine.conversations.close()
        assert it.store.state.current == keys[3]
        it.engine.conversations.select(keys[2])
        assert it.store.state.current == keys[3], "it is closed"
        await eventually(lambda: len(it.store.state.conversations) == MAX_OPEN - 1)
    assert library().sessions() == ()
