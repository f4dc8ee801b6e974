"""The model on the screen: choosing who answers, the list, options, and what fills the context."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from pydantic import SecretStr
from textual.widgets import Input, OptionList

from tests.fakes.completions import FakeCompletions
from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Say
from tests.security.decks import write_settings
from tests.support.google_account import google_account
from tests.ui.engine_deck import EngineDeck, engine_deck
from tests.ui.harness import running
from tests.ui.shell import decks
from tui.engine.keys.key_store import KeyStore
from tui.model.chat import BackendKind, ModelText
from tui.model.models import (
    ContextMeasured,
    ContextPart,
    ModelOffer,
    ModelOptions,
    ModelOptionsChanged,
    ModelsListed,
    ProfilesSet,
    ServiceOffer,
)
from tui.model.servers import ServerId
from tui.model.settings import EVERYTHING, Profile, ToolPattern
from tui.store.selectors import entries
from tui.ui.commands.palette import palette_actions
from tui.ui.dialogs.list_dialog import DetailsScreen
from tui.ui.dialogs.model_setup import ModelScreen, ModelsScreen
from tui.ui.dialogs.prompt_arguments import OptionsScreen
from tui.ui.panes.browser import ToolsPane

OFFERS = (
    ModelOffer("gemini-3.8-flash", "Flash", 1_048_576, 65_536),
    ModelOffer("gemini-2.5-pro", "[b]Pro[/b]", 1_048_576, 65_536),
)


async def test_a_model_is_chosen_from_the_services_list() -> None:
    async with running(decks.full_store()) as deck:
        await deck.typed("/model")
        await deck.until(lambda: deck.on_top(ModelsScreen))
        assert "Loading models" in deck.text
        await deck.press(*"pro", "escape")
        await deck.until(lambda: not deck.on_top(ModelsScreen))
        await deck.press("f9", "end", "enter")
        await deck.until(lambda: deck.on_top(ModelsScreen))
        deck.dispatch(ModelsListed(failure="The service is [b]down[/b]."))
        await deck.until(lambda: "The service is [b]down[/b]." in deck.text)
        await deck.press("escape", "escape")
        for _ in range(2):
            await deck.until(lambda: not deck.on_top(ModelsScreen))
            await deck.typed("/model")
            deck.dispatch(ModelsListed(OFFERS))
            await deck.until(lambda: "[b]Pro[/b]" in deck.text)
            assert "Loading" not in deck.text
            row = next(line for line in deck.lines if "gemini-2.5-pro" in line)
            assert "context 1M · output 65.5k" in row
            await deck.press("escape")
        await deck.typed("/model")
        await deck.press(*"pro", "enter")
        assert deck.asked("models.use_model") == [("gemini-2.5-pro",)]


async def test_services_stand_before_models_and_a_name_of_ones_own_can_be_typed() -> None:
    services = (
        ServiceOffer("Gemini", "", is_ready=True),
        ServiceOffer("ollama", "running here", is_ready=True, is_local=True),
        ServiceOffer("openai", "There is no [b]key[/b].", is_ready=False),
    )
    qwen = ModelOffer("ollama/qwen", "", 8_192, tools=True, thinking=True, pictures=False)
    phi = ModelOffer("ollama/phi", tools=False)
    async with running(decks.full_store()) as deck:
        await deck.typed("/model")
        deck.dispatch(ModelsListed(OFFERS, services=services))
        await deck.until(lambda: "There is no [b]key[/b]." in deck.text)
        assert deck.text.index("openai") < deck.text.index("gemini-2.5-pro")
        await deck.press(*"olma", "enter")
        deck.dispatch(ModelsListed((qwen, phi), "", "ollama", services))
        await deck.until(lambda: "context 8.2k · tools · thinking" in deck.text)
        assert deck.asked("models.list_models") == [("",), ("ollama",)]
        assert "no tools" in deck.text
        await deck.press(*"my:own", "enter")
        assert deck.asked("models.use_model") == [("ollama/my:own",)]
        await deck.typed("/model")
        await deck.press(*"openai", "enter")
        await deck.until(lambda: deck.on_top(ModelScreen))
        assert "openai/" in deck.text


async def test_options_are_shown() -> None:
    async with running(decks.full_store()) as deck:
        deck.dispatch(ModelOptionsChanged(ModelOptions("high")))
        await deck.typed("/options")
        await deck.until(lambda: deck.on_top(OptionsScreen))
        assert "Thinking       high" in deck.text


async def test_a_profile_is_chosen_named_and_what_it_leaves_out_is_marked() -> None:
    review = Profile(servers=("git",), tools=(ToolPattern(server="git", tool="*diff*"),))
    profiles = {"": EVERYTHING, "review": review, "docs": Profile(description="[b]Docs[/b]")}
    async with running(decks.full_store(), (120, 30)) as deck:
        assert not [one for one in palette_actions(deck.app.deck) if one.label.startswith("use ")]
        deck.dispatch(ProfilesSet(profiles))
        use = [one for one in palette_actions(deck.app.deck) if one.label.startswith("use ")]
        offered = {one.row.label: one for one in use}
        assert {name: one.row.note for name, one in offered.items()} == {
            "Use all servers": "current",
            "Use profile review": "",
            "Use profile docs": "[b]Docs[/b]",
        }
        offered["Use profile docs"].item()
        await deck.typed("/profile review")
        await deck.typed("/profile")
        assert deck.asked("models.use_profile") == [("docs",), ("review",), ("",)]
        await deck.press("f3")
        tools = deck.one(ToolsPane).entries

        def tails() -> dict[str, str]:
            return {entry.row.label: entry.row.tail for entry in tools.shown}

        before = tails()
        assert "not in profile" not in before.values()
        assert "review" not in deck.lines[0]
        deck.dispatch(ModelOptionsChanged(ModelOptions(profile="review")))
        await deck.until(lambda: "not in profile" in tails().values())
        held = {name for name, tail in tails().items() if not tail}
        assert held == {name for name in before if "diff" in name}
        assert " · review" in deck.lines[0]
        deck.dispatch(ModelOptionsChanged(ModelOptions()))
        await deck.until(lambda: tails() == before)


async def test_the_context_is_shown_by_its_parts_on_one_key() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f10")
        await deck.until(lambda: deck.on_top(DetailsScreen))
        assert deck.asked("models.measure") == [()]
        parts = ContextPart("tools", 12_000, ServerId("git")), ContextPart("messages", 400)
        deck.dispatch(ContextMeasured(parts))
        await deck.until(lambda: "tools · git" in deck.text)
        assert any("12,000" in line and "tools · git" in line for line in deck.lines)


class Deck(EngineDeck):
    """A running deck that begins with the demo."""

    async def choose(self, downs: int, *words: str) -> None:
        """Choose on the screen, and type words into the fields."""
        await self.until(lambda: len(self.app.screen_stack) == 1)
        await self.pilot.press("f9")
        await self.until(lambda: len(self.app.screen_stack) == 2)
        await self.pilot.press(*["down"] * downs, "enter")
        await self.until(lambda: isinstance(self.app.focused, Input))
        for word in words:
            assert isinstance(self.app.focused, Input)
            self.app.focused.value = word
            await self.pilot.press("enter")

    async def answers(self, kind: BackendKind) -> None:
        await self.until(lambda: self.store.state.model.backend is kind)

    @property
    def notice(self) -> str:
        """The words of the last notice."""
        notices = self.store.state.notices
        return notices[-1].text if notices else ""

    async def says(self, words: str) -> None:
        await self.until(lambda: words in self.notice)

    async def ask(self) -> str:
        """Send a message; give the answer."""
        self.commands.send("hello")
        await asyncio.wait_for(self.engine.wait_idle(), 20)
        found = [one for one in entries(self.store.state) if isinstance(one, ModelText)]
        return found[-1].text


def deck() -> AbstractAsyncContextManager[Deck]:
    return engine_deck(Deck, server_patience=0)


async def test_without_a_key_a_local_model_is_offered_and_kept() -> None:
    async with FakeCompletions([(Say("one"),), (Say("two"),)], keys=[""]) as fake:
        write_settings({"gemdeck": {"services": {"local": {"url": fake.url}}}})
        async with deck() as chosen:
            await chosen.until(lambda: chosen.store.state.model.needs_setup)
            await chosen.pilot.press("f9")
            offered = chosen.app.screen.query_one(OptionList)
            await chosen.until(lambda: "Use a local model" in str(offered.options[4].prompt))
            assert fake.checks == []
            await chosen.pilot.press(*["down"] * 4, "enter")
            await chosen.until(lambda: "local/large" in str(chosen.store.state.models))
            await chosen.pilot.press(*"large", "enter")
            await chosen.until(lambda: chosen.store.state.model.name == "local/large")
            assert await chosen.ask() == "one"
        async with deck() as later:
            await later.until(lambda: later.store.state.model.name == "local/large")
            assert await later.ask() == "two"


@pytest.mark.writes_secrets("credentials.json")
async def test_another_address_is_kept_with_its_key_which_goes_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other_key = "B" * len(KEY)
    async with (
        FakeGemini([(Say("one"),), (Say("one again"),)]) as one,
        FakeGemini([(Say("two"),)], keys=[other_key]) as two,
    ):
        async with deck() as chosen:
            for wrong, problem in (
                ("http://192.0.2.1", "not a safe address to send a key to"),
                (f"{one.url}/v1beta", "is not a Gemini API: asked for its models, it answered"),
            ):
                await chosen.choose(1, wrong, KEY)
                await chosen.says(problem)
                await chosen.pilot.press("escape", "escape")
            assert chosen.store.state.model.backend is BackendKind.DEMO
            await chosen.choose(1, f" {one.url}/ ", KEY)
            await chosen.answers(BackendKind.GEMINI)
            assert chosen.store.state.model.address == one.url
            assert await chosen.ask() == "one"
            await chosen.choose(1, two.url, "")
            await chosen.says("no saved key for this address")
            await chosen.pilot.press("escape", "escape")
        async with deck() as later:
            assert await later.ask() == "one again"
            await later.choose(1, two.url, KEY)
            await later.says("not valid")
            await later.pilot.press("escape", "escape")
            assert later.store.state.model.address == one.url, "nothing was replaced"
            await later.choose(1, two.url, other_key)
            await later.until(lambda: later.store.state.model.address == two.url)
            assert await later.ask() == "two"
            assert [KeyStore().get(url) for url in (one.url, two.url, "")] == [
                None,
                SecretStr(other_key),
                None,
            ]
            monkeypatch.setenv("GEMINI_API_KEY", "no key")
            later.engine.choice.forget_key()
            await later.answers(BackendKind.DEMO)
            assert later.store.state.model.needs_setup
            told = [notice.text for notice in later.store.state.notices[-2:]]
            assert told[0] == f"{two.url} and its key were forgotten."
            assert "GEMINI_API_KEY is not an API key" in told[1], "and so it answers no more"
            assert KeyStore().get(two.url) is KeyStore().get(f"{one.url}/v1beta") is None
    keys = {request.headers["x-goog-api-key"] for request in (*one.requests, *one.checks)}
    assert keys == {KEY}
    assert [request.headers["x-goog-api-key"] for request in two.requests] == [other_key]


async def test_vertex_answers_with_the_credentials_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FakeGemini([(Say("I am Vertex"),)]) as fake, google_account(tmp_path, monkeypatch):
        monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", fake.url)
        async with deck() as chosen:
            await chosen.choose(2, "my-project")
            await chosen.answers(BackendKind.VERTEX)
            assert await chosen.ask() == "I am Vertex"
        async with deck() as later:
            await later.answers(BackendKind.VERTEX)
            later.engine.choice.forget_key()
            await later.answers(BackendKind.DEMO)
            assert later.notice == "The project my-project was forgotten."
    assert "/projects/my-project/" in fake.checks[0].path
    assert "/projects/my-project/locations/global/" in fake.requests[0].path
    assert fake.requests[0].headers["authorization"] == "Bearer t"
