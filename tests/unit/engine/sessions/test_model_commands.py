"""Another model, other options, and a smaller context, through a whole engine."""

import json
from collections.abc import Sequence

import pytest

from tests.fakes.gemini import FakeGemini, Request
from tests.fakes.gemini_rules import Json
from tests.fakes.gemini_script import Action, Call, Fail, Say, Sleep
from tests.security.decks import Deck, Play, Script, Turncoat, deck, play, shop, tool
from tests.unit.engine.mcp.support import eventually
from tests.unit.engine.sessions.test_resuming import asked, library, notices, remarks, told_in
from tui.engine import late
from tui.engine.chats.backends.backend import ModelBackend, ModelError
from tui.engine.chats.backends.gemini import thinking_problem
from tui.engine.chats.history import shortened
from tui.engine.chats.model_commands import SUMMARISED, context_parts
from tui.engine.keys.credentials import ModelAccess
from tui.model.chat import ChatNotice, UserMessage
from tui.model.models import ModelOptions
from tui.model.servers import ServerId
from tui.model.settings import GemdeckSettings
from tui.store.selectors import entries

__all__ = ["play", "shop"]

FLASH, PRO = "gemini-3.8-flash", "gemini-2.5-pro"


def asked_with(it: Deck) -> dict[str, object]:
    config: dict[str, object] = it.fake.requests[-1].body.get("generationConfig", {})
    return config


async def uses(it: Deck, model: str) -> None:
    """Choose a model and wait until it is the one that answers."""
    it.engine.models.use_model(model)
    await eventually(lambda: it.store.state.model.name == model)


async def test_models_are_listed_chosen_and_kept_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeGemini([[Say("1")], [Say("2")], [Say("3")]]) as fake:
        async with deck(fake, monkeypatch) as it:
            it.engine.models.list_models()
            await eventually(lambda: it.store.state.models)
            assert it.store.state.models is not None
            assert [m.name for m in it.store.state.models.models] == ["gemini-3.8-flash"]
            await it.ask("one")
            await uses(it, PRO)
            it.engine.models.set_options(ModelOptions("512", 0.5, 4_000))
            assert "from the next request" in notices(it)
            await it.ask("two")
            config = asked_with(it)
            found = (fake.requests[-1].model, config["temperature"], config["maxOutputTokens"])
            assert found == (PRO, 0.5, 4_000)
            assert "512" in str(config["thinkingConfig"])
        fake.models.append(PRO)
        async with deck(fake, monkeypatch) as it:
            assert it.store.state.model.name == FLASH
            it.engine.sessions.resume()
            await eventually(lambda: it.store.state.model.name == PRO)
            assert it.store.state.options == ModelOptions("512", 0.5, 4_000)
            await it.ask("three")
            assert asked_with(it)["temperature"] == 0.5
        assert fake.violations == []


async def test_a_session_of_a_refused_model_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(access: ModelAccess, settings: GemdeckSettings) -> ModelBackend:
        if settings.model == PRO:
            raise ModelError(f"{PRO} is not for you.")
        return opened(access, settings)

    async with FakeGemini([[Say("1")], [Say("2")], [Say("3")]]) as fake:
        async with deck(fake, monkeypatch) as it:
            await uses(it, PRO)
            it.engine.models.set_options(ModelOptions("512", 0.5))
            await it.ask("one")
        opened = late.open_backend
        monkeypatch.setattr(late, "open_backend", refuse)
        async with deck(fake, monkeypatch) as it:
            it.engine.sessions.resume()
            await eventually(lambda: f"{PRO} is not for you." in notices(it))
            await it.ask("two")
            request = it.fake.requests[-1]
            assert (request.model, len(request.contents)) == (FLASH, 3)
        assert fake.violations == []


async def test_the_last_message_goes_again_to_another_model(shop: Turncoat, play: Play) -> None:
    steps: Script = [[Call([("look", {})])], [Say("1")], [Say("2")]]
    async with play(steps, shop, allows_all=True) as it:
        await it.ask("one")
        [message] = [e for e in entries(it.store.state) if isinstance(e, UserMessage)]
        it.engine.models.retry(message.id, "one", "not a model")
        await eventually(lambda: "name of a model" in notices(it))
        assert len(it.fake.requests) == 2
        it.engine.models.retry(message.id, "one", PRO)
        await it.fake.wait_for_requests(3)
        await it.engine.wait_idle()
        assert [request.model for request in it.fake.requests[1:]] == [FLASH, PRO]
        assert it.fake.requests[-1].contents == it.fake.requests[0].contents
        assert (it.store.state.model.name, it.fake.violations) == (PRO, [])


async def test_what_another_model_cannot_think_is_dropped_with_a_word(play: Play) -> None:
    async with play([[Say("1")], [Say("2")]]) as it:
        it.engine.models.set_options(ModelOptions("low", 0.5))
        await it.ask("one")
        it.engine.models.use_model(PRO)
        await eventually(lambda: it.store.state.options == ModelOptions(temperature=0.5))
        assert f"{PRO} supports a budget" in notices(it)
        await it.ask("two")
        assert [request.model for request in it.fake.requests] == [FLASH, PRO]
        assert (asked_with(it)["temperature"], remarks(it)) == (0.5, "")
        assert "thinkingBudget" not in str(asked_with(it))
        assert it.fake.violations == []


async def test_options_that_the_model_does_not_take_are_refused(play: Play) -> None:
    async with play([]) as it:
        wrong = ModelOptions("512"), ModelOptions(temperature=3), ModelOptions(max_output=0)
        for options in wrong:
            it.engine.models.set_options(options)
        it.engine.models.use_model("../evil")
        await eventually(lambda: "name of a model" in notices(it))
        assert it.store.state.options == ModelOptions()
        assert "from the next request" not in notices(it)
        for words in ("levels: minimal, low, medium, high, xhigh", "between 0 and 2"):
            assert words in notices(it)


def test_thinking_is_a_level_or_a_budget() -> None:
    assert thinking_problem(FLASH, "low") == thinking_problem("gemini-2.5-flash", "-1") == ""
    for model, thinking in (("2.5", "low"), ("2.5", "\u00b2"), ("2.0", "low")):
        assert thinking_problem(f"gemini-{model}-flash", thinking)


async def test_a_summary_replaces_the_history_which_is_kept(shop: Turncoat, play: Play) -> None:
    shop.offer(tool("look", "x" * 20_000))
    long = "one " * 100
    steps: Script = [[Say("1")], [Say("We spoke of one.")], [Say("2")]]
    async with play(steps, shop) as it:
        await it.ask(long)
        it.engine.models.compress()
        await eventually(lambda: "Compressed" in remarks(it))
        assert "functionDeclarations" not in str(it.fake.requests[1].body)
        notice = entries(it.store.state)[-1]
        assert isinstance(notice, ChatNotice)
        assert notice.text == f"{notice.brief} This is the model's summary:\n\nWe spoke of one."
        assert notice.advice == "The full version is in /sessions."
        after, tools = it.store.state.conversation.usage.context, it.store.state.context_parts[0]
        assert (tools.name, tools.tokens) == ("tools", 7), "they go out with each request"
        assert after == 7 + len(SUMMARISED + "We spoke of one.") // 4
        assert f"from 7 to about {after} tokens" in notice.brief
        await it.ask("two")
        said = [(one["role"], *one["parts"]) for one in it.fake.requests[-1].contents]
        texts = (("user", SUMMARISED), ("model", "We spoke of one."), ("user", "two"))
        told = "what tools said is not in the user's mouth"
        assert said == [(role, {"text": text}) for role, text in texts], told
        assert it.fake.violations == []
        now = it.engine.sessions.recorder.session
    old, new = sorted(library().sessions(), key=lambda view: view.id == now)
    saved = library().read(new)
    assert (old.parent, told_in(old), told_in(new)) == (now, [long], [long, "two"])
    assert [len(one.contents) for one in (library().read(old), saved)] == [2, 4]
    assert list(saved.starts.values()) == [2]  # what the summary stands for cannot be sent again


async def test_a_conversation_that_is_too_long_is_cut_until_it_can_be_summarised(
    play: Play,
) -> None:
    def too_long(request: Request) -> Sequence[Action]:
        size = len(str(request.contents))
        words = f"The input token count ({size}) exceeds the maximum number of tokens allowed."
        return [Say("We spoke of one.")] if size < 3_000 else [Fail(400, words)]

    script: Script = [[Say("1")], [Say("2")], [Say("3")], *[too_long] * 8, [Say("4")]]
    async with play(script) as it:
        for words in ("one", "x" * 20_000, "three"):
            await it.ask(words)
        it.engine.models.compress()
        await eventually(lambda: "Compressed" in remarks(it))
        assert "long texts and old turns were shortened" in remarks(it)
        sizes = [len(str(request.contents)) for request in it.fake.requests[3:]]
        assert sizes == sorted(sizes, reverse=True)
        assert (len(sizes), it.fake.violations) == (3, [])
        assert "one" in str(it.fake.requests[-1].contents), "what is short is kept"


async def test_where_not_even_one_turn_fits_nothing_changes_and_the_advice_is_another(
    play: Play,
) -> None:
    words = "The input token count (5000) exceeds the maximum number of tokens allowed (4096)."
    async with play([[Say("1")], *[[Fail(400, words)]] * 4]) as it:
        await it.ask("one")
        it.engine.models.compress()
        await eventually(lambda: "too long for the model" in notices(it))
        assert words in notices(it)
        assert "/edit" in notices(it)
        assert "/compress" not in notices(it)
        assert asked(it) == ["one"]


def test_a_conversation_gets_shorter_until_one_turn_is_left() -> None:
    call = {"role": "model", "parts": [{"functionCall": {"name": "look"}}]}
    turns: list[Json] = []
    for number in range(5):
        result = {"name": "look", "response": {"output": "x" * 1_000 * number}}
        user = {"role": "user", "parts": [{"text": f"turn {number}"}]}
        turns += [user, call, {"role": "user", "parts": [{"functionResponse": result}]}]
    before, lengths = json.dumps(turns), []
    made = turns
    while made := shortened(made):
        lengths.append(len(made))
        assert made[0]["parts"][0]["text"].startswith("turn"), "a turn is whole"
    assert lengths == [15, 15, 9, 6, 3]
    assert json.dumps(turns) == before


async def test_a_full_context_offers_the_summary_once_and_is_anothers_in_the_background(
    monkeypatch: pytest.MonkeyPatch, play: Play
) -> None:
    monkeypatch.setattr("tui.engine.chats.backends.gemini.context_limit", lambda _: 8)
    script: Script = [[Say("1")], [Say("2")], [Say("3"), Sleep(0.05)]]
    async with play(script) as it:
        it.engine.models.use_model("gemini-3.8-flash")
        await eventually(lambda: it.store.state.model.choice == 1)
        await it.ask("one")
        await it.ask("two")
        assert notices(it).count("/compress replaces the conversation with a summary") == 1
        first = it.store.state.current
        it.engine.conversations.open()
        second = it.store.state.current
        it.engine.send("three")
        it.engine.conversations.select(first)
        await it.engine.wait_idle(second)
        assert "The context of another conversation is 88% full: Go to its tab" in notices(it)


async def test_no_summary_leaves_the_history(monkeypatch: pytest.MonkeyPatch, play: Play) -> None:
    summary = Say("We spoke of one.")
    steps: Script = [[Say("1" * 200)], [Call([("look", {})])], [Say("o" * 100)], [summary]]
    async with play(steps) as it:
        await it.ask("one")
        main, recorder = it.engine.conversations.current.context, it.engine.sessions.recorder
        assert main is not None
        it.engine.models.compress()
        await eventually(lambda: "returned no summary" in notices(it))
        it.engine.models.compress()
        await eventually(lambda: "the summary is longer" in notices(it))
        assert len(main.history.contents) == 2

        async def go_on(_: str) -> None:
            main.history.contents.append({"role": "user", "parts": [{"text": "meanwhile"}]})

        monkeypatch.setattr(recorder, "keep_copy", go_on)
        it.engine.models.compress()
        await eventually(lambda: "continued in the meantime" in notices(it))
        assert len(main.history.contents) == 3


async def test_the_context_is_split_by_what_fills_it(shop: Turncoat, play: Play) -> None:
    shop.offer(tool("look", "x" * 2_000))
    steps: Script = [[Call([("look", {})])], [Say("done")]]
    async with play(steps, shop) as it:
        it.engine.models.measure()
        measured, state = (ServerId("shop"), "tools and instructions"), it.store
        await eventually(
            lambda: measured in {(one.server, one.name) for one in state.state.context_parts}
        )


def test_images_count_for_what_the_service_takes_for_them() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "A" * 1_000_000}}
    answer = {"name": "f", "response": {"output": "x" * 400}, "parts": [image]}
    parts = ([image, {"text": "x"}], [{"functionResponse": answer}])
    contents: list[Json] = [{"role": "user", "parts": one} for one in parts]
    tokens = {part.name: part.tokens for part in context_parts((), "", contents, 0)}
    assert 250 < tokens["messages"] < 350 < tokens["tool results"] < 450
    counted = context_parts((), "hello", contents, 1_000)
    assert abs(sum(part.tokens for part in counted) - 1_000) < 3
