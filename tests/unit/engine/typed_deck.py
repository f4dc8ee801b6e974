"""A real server with prompts and resources, and an engine to which messages are typed."""

import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import servers
from tests.fakes.gemini import FakeGemini, Step
from tests.fakes.gemini_script import Say
from tests.security.decks import Deck, deck
from tests.support.waiting import PATIENCE, eventually, whole_lines
from tui.model.chat import ChatNotice, TurnPhase, UserMessage
from tui.model.events import MessageReturned, NoticeRaised, TurnFinished
from tui.model.runs import PromptRendered
from tui.model.servers import ServerId
from tui.store.selectors import entries
from tui.store.state import ConversationState

LIBRARY = Path(servers.__file__).with_name("library.py")
OFFER: dict[str, Any] = {
    "prompts": {
        "greet": ["name!", "mood"],
        "review": [],
        "code review": ["what!"],
        "fix!": [],
        "io.github.x/y": [],
        "slow": [],
        "clear": [],
        "poem-writer": ["title!", "mood"],
    },
    "resources": [
        *("memo://today", "memo://two words?at=1", "doc://resource/path", "memo://monday"),
        *("page://Foo_(bar)", "memo://slow"),
    ],
    "templates": ["memo://{day}/{hour}"],
    "silent": ["slow", "memo://slow"],
}
LIB = ServerId("lib")


class Typed(Deck):
    """A deck with the server: what was sent to the model and asked of the server."""

    async def asking(self) -> None:
        """Wait until the server is asked for a part of the message."""
        await eventually(lambda: self.turn is not None and self.turn.phase is TurnPhase.ASKING)

    async def told(self, words: str) -> None:
        """Wait until the user was told this last."""
        await eventually(lambda: self.notice == words)

    async def recorded(self, method: str, count: int = 1) -> None:
        """Wait until the server got so many messages of a method."""
        await eventually(lambda: self.record.read_text().count(method) == count)

    @property
    def chat(self) -> ConversationState:
        return self.store.state.conversation

    @property
    def turn(self) -> Any:  # noqa: ANN401 - the running turn, or None
        return self.chat.turn

    async def retry(self, model: str = "", place: int = -1, text: str = "") -> None:
        """Send a message again, as `/retry` does with the last one and `/edit` with another."""
        one = self.messages[place]
        before, words = len(self.fake.requests), text or one.typed
        if model:
            self.engine.models.retry(one.id, words, model)
        else:
            self.engine.sessions.edit_message(one.id, words)
        await self.fake.wait_for_requests(before + 1)
        await self.idle()

    @property
    def sent(self) -> list[str]:
        """The texts of the last content that the model got."""
        parts: Sequence[dict[str, Any]] = self.fake.requests[-1].contents[-1]["parts"]
        return [part["text"] for part in parts]

    @property
    def returned(self) -> list[str]:
        """The messages that came back without a turn."""
        return [event.text for event in self.events if isinstance(event, MessageReturned)]

    @property
    def unsent(self) -> str:
        """What the last turn gave back."""
        return [event.unsent for event in self.events if isinstance(event, TurnFinished)][-1]

    @property
    def notice(self) -> str:
        last = [event.notice for event in self.events if isinstance(event, NoticeRaised)][-1]
        return f"{last.text} {last.advice}".strip()

    @property
    def error(self) -> str:
        """The last notice in the conversation."""
        last = [one for one in entries(self.store.state) if isinstance(one, ChatNotice)][-1]
        return f"{last.text} {last.advice}".strip()

    @property
    def messages(self) -> list[UserMessage]:
        return [one for one in entries(self.store.state) if isinstance(one, UserMessage)]

    @property
    def shown(self) -> list[str]:
        return [one.text for one in self.messages]

    def rendered(self, token: str) -> list[PromptRendered]:
        """How often a prompt was rendered for the user to look at."""
        found = (one for one in self.events if isinstance(one, PromptRendered))
        return [one for one in found if one.token == token]

    @property
    def record(self) -> Path:
        return Path.home() / "record"

    def asked(self) -> list[dict[str, Any]]:
        """What the server was asked for."""
        lines = map(json.loads, whole_lines(self.record))
        return [m["params"] for m in lines if m["method"] in {"prompts/get", "resources/read"}]


@asynccontextmanager
async def typed_deck(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    steps: Sequence[Step] = ([Say("one")], [Say("two")]),
    *,
    ready: bool = True,
    patience: float = PATIENCE,
    name: str = "lib",
    **more: Any,  # noqa: ANN401 - what else the server does
) -> AsyncIterator[Typed]:
    says = home / "library.json"
    says.write_text(json.dumps({**OFFER, "record": str(home / "record"), **more}))
    off = {"command": str(home / "gone"), "disabled": True}
    entry = {"command": sys.executable, "args": [str(LIBRARY), str(says)]}
    servers = {"mcpServers": {name: entry, "off": off}}
    settings = {**servers, "gemdeck": {"waitForServers": patience}}
    async with FakeGemini(steps) as fake, deck(fake, monkeypatch, settings=settings) as running:
        if ready:
            await running.engine.wait_ready()
        yield Typed(running.engine, fake, running.store, running.events)
        assert fake.violations == []


Opens = Callable[..., AbstractAsyncContextManager[Typed]]
"""Runs the engine and the server until a block ends; it takes what `typed_deck` takes."""


@pytest.fixture
def opens(home: Path, monkeypatch: pytest.MonkeyPatch) -> Opens:
    return partial(typed_deck, home, monkeypatch)


@pytest.fixture
async def at(opens: Opens) -> AsyncIterator[Typed]:
    """Run them before a model that says a number to each message."""
    async with opens([(Say(f"{number}"),) for number in range(12)]) as made:
        yield made
