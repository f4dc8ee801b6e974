"""A second provider answers through the whole engine, with nothing changed but the module."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import pytest

from tests.providers.completions import CompletionsBackend
from tests.providers.fake_completions import KEY, FakeCompletions, Step, call, end, text, thought
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.support import eventually
from tui import compose
from tui.engine.chats.backends.backend import ModelError
from tui.engine.engine import Engine
from tui.engine.options import EngineOptions
from tui.model.chat import ChatNotice, Entry, ModelText, Thought, ToolCall, ToolCallStatus
from tui.model.models import ModelOptions
from tui.store.commands import Commands
from tui.store.selectors import entries
from tui.store.store import Store


@dataclass
class Deck:
    """A running engine."""

    fake: FakeCompletions
    engine: Engine
    store: Store

    async def ask(self, words: str) -> tuple[Entry, ...]:
        """Send a message; return what is shown when its turn has ended."""
        self.engine.send(words)
        with anyio.fail_after(PATIENCE):
            await self.engine.wait_idle()
        return entries(self.store.state)


@asynccontextmanager
async def deck(folder: Path, *steps: Step) -> AsyncIterator[Deck]:
    store = Store()
    async with FakeCompletions(steps) as fake:
        options = EngineOptions(
            folder, allowed_tools=("notes",), follow_settings=False, attended=True
        )
        provider = partial(CompletionsBackend, fake.origin, KEY)
        async with Engine(options, store.dispatch, provider=provider) as engine:
            await engine.start()
            yield Deck(fake, engine, store)
    assert fake.violations == []


def note(index: int, words: str) -> list[dict[str, object]]:
    """Give the pieces of a call that adds a note."""
    return [
        call(index, id=f"call_{index}", function={"name": "add_note", "arguments": '{"te'}),
        call(index, function={"arguments": f'xt": "{words}"}}'}),
    ]


async def test_a_step_of_all_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMDECK_NOTES_DB", str(tmp_path / "notes.db"))
    ended = end("tool_calls", prompt_tokens=90, completion_tokens=30, reasoning_tokens=10)
    said = [thought("**Two notes**"), text("I add "), text("both.")]
    first = [*said, *note(0, "milk"), *note(1, "bread"), ended]
    last = [text("Done."), end(prompt_tokens=200, completion_tokens=5, cached_tokens=90)]
    async with deck(tmp_path, first, last) as it:
        it.engine.start_demo_servers()
        await it.engine.wait_ready()
        shown = await it.ask("add milk and bread")
        assert [one.text for one in shown if isinstance(one, Thought)] == ["**Two notes**"]
        assert [one.text for one in shown if isinstance(one, ModelText)] == ["I add both.", "Done."]
        calls = [one for one in shown if isinstance(one, ToolCall)]
        assert [(one.status, one.tool) for one in calls] == [(ToolCallStatus.OK, "add_note")] * 2
        usage, model = it.store.state.conversation.usage, it.store.state.model
        assert (usage.prompt, usage.output, usage.thoughts, usage.cached) == (290, 25, 10, 90)
        assert (usage.context, usage.context_limit) == (200, 128_000)
        assert (model.name, model.backend) == ("large", "Completions")
        _, asked = it.fake.bodies
        roles = [one["role"] for one in asked["messages"]]
        assert roles[-4:] == ["user", "assistant", "tool", "tool"]
        assert "milk" in asked["messages"][-2]["content"]
        tools = {one["function"]["name"]: one["function"]["parameters"] for one in asked["tools"]}
        assert "text" in tools["add_note"]["properties"]


async def test_an_error_ends_the_turn_and_the_next_one_goes_on(tmp_path: Path) -> None:
    broken = [text("Half"), {"error": {"message": "The model \x1b[31mfell over."}}]
    malformed = [call(0, id="0", function={"name": "add", "arguments": "{"}), end("tool_calls")]
    well = [text("Here."), end()]
    async with deck(tmp_path, 400, broken, 429, malformed, well) as it:
        for words in ("refused (HTTP 400): not now", "fell over."):
            shown = await it.ask("hello")
            notice = shown[-2]
            assert isinstance(notice, ChatNotice)
            assert words in notice.text
            assert "\x1b" not in notice.text
        shown = await it.ask("again")
        assert [one.text for one in shown if isinstance(one, ModelText)][-1] == "Here."
        assert it.fake.bodies[-1]["messages"][-1]["content"] == "again"


async def test_a_cancelled_turn_ends_on_the_wire(tmp_path: Path) -> None:
    async with deck(tmp_path, None, [text("Yes."), end()]) as it:
        it.engine.send("hello")
        with anyio.fail_after(PATIENCE):
            await it.fake.stalled.wait()
            await eventually(lambda: "half" in str(entries(it.store.state)))
            it.engine.cancel_turn()
            await it.fake.gone.wait()
            await it.engine.wait_idle()
        shown = await it.ask("still there?")
        assert [one.text for one in shown if isinstance(one, ModelText)] == ["half", "Yes."]


async def test_its_models_and_options_are_its_own(tmp_path: Path) -> None:
    async with deck(tmp_path, [text("Hi."), end()]) as it:
        it.engine.models.list_models()
        await eventually(lambda: it.store.state.models)
        assert it.store.state.models is not None
        assert [one.name for one in it.store.state.models.models] == ["large"]
        it.engine.models.set_options(ModelOptions("minimal"))
        await eventually(lambda: "thinks low or high" in str(it.store.state.notices))
        it.engine.models.set_options(ModelOptions("high", 0.5, 100))
        it.engine.models.use_model("small")
        await eventually(lambda: it.store.state.model.name == "small")
        await it.ask("hello")
        body = it.fake.bodies[-1]
        assert body["model"] == "small"
        chosen = {"reasoning_effort": "high", "temperature": 0.5, "max_tokens": 100}
        assert chosen.items() <= body.items()


class Asker:
    """Stands for the app: sends a message, and ends once it is answered."""

    return_code = 0
    url = ""

    def __init__(
        self, store: Store, commands: Commands, *, on_first_paint: Callable[[], None], **_: object
    ) -> None:
        self._store, self._commands, self._paint = store, commands, on_first_paint

    async def run_async(self) -> None:
        async with FakeCompletions([[text("Here."), end()]]) as fake:
            Asker.url = fake.origin
            self._commands.send("hello")
            self._paint()
            await eventually(lambda: "Here." in str(entries(self._store.state)))
        assert self._store.state.model.backend == "Completions"


def test_the_app_takes_it_like_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose, "GemdeckApp", Asker)
    monkeypatch.setattr(compose, "_guard_end", lambda *_: None)
    options = EngineOptions(tmp_path, follow_settings=False, private=True)
    later = lambda name: CompletionsBackend(Asker.url, KEY, name)  # noqa: E731 - once it is there
    assert compose.run_deck(options, provider=later) == 0


async def test_a_key_is_checked(tmp_path: Path) -> None:
    async with deck(tmp_path) as it:
        right, wrong = (CompletionsBackend(it.fake.origin, key, "") for key in (KEY, "wrong"))
        async with aclosing(right), aclosing(wrong):
            await right.check()
            with pytest.raises(ModelError, match="key was not accepted"):
                await wrong.check()
