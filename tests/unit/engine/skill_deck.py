"""A server with skills that a test can change or let lie, and an engine before a fake Gemini."""

import hashlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import servers
from tests.fakes.gemini import FakeGemini, Step
from tests.security.decks import Deck, deck
from tests.support.waiting import eventually, whole_lines
from tui.model.chat import ChatNotice
from tui.model.requests import SkillRequest
from tui.model.servers import ServerId, ServerStatus
from tui.model.trust import TrustAnswer
from tui.store.selectors import entries

LIBRARY = Path(servers.__file__).with_name("library.py")
Json = dict[str, Any]


def file_entry(uri: str, data: bytes) -> Json:
    digest = hashlib.sha256(data).hexdigest()
    return {"uri": uri, "digest": f"sha256:{digest}", "size": len(data)}


@dataclass
class Shelf:
    """The skills of one server, in a file that it reads at each request; `more` is in its offer."""

    name: str
    home: Path
    said: Json = field(default_factory=lambda: {"list": {}, "get": {}, "read": {}})
    more: Json = field(default_factory=dict)

    @property
    def file(self) -> Path:
        return self.home / f"{self.name}-skills.json"

    @property
    def record(self) -> Path:
        return self.home / f"{self.name}-record"

    def put(
        self,
        name: str = "pdf",
        text: str = "Fill the form.",
        folder: str = "",
        listed: bool = True,
        more: Json | None = None,
    ) -> str:
        """Serve a skill with one more file, and more in its front matter; give its address."""
        folder = folder or f"skill://{name}/"
        front = {"name": name, "description": f"Does {name}.", **(more or {})}
        whole = f"---\n{yaml.safe_dump(front)}---\n\n{text}\n".encode()
        files = {f"{folder}SKILL.md": whole, f"{folder}docs/FORMS.md": f"Forms of {name}.".encode()}
        uri = f"{folder}SKILL.md"
        resources = [file_entry(one, data) for one, data in files.items()]
        entry = {"uri": uri, "frontmatter": front, "resources": resources}
        if listed:
            self.said["list"][uri] = entry
        self.said["get"][uri] = entry
        for one, data in files.items():
            self.said["read"][one] = [{"uri": one, "text": data.decode()}]
        return uri

    def save(self) -> None:
        self.file.write_text(json.dumps(self.said))

    @property
    def entry(self) -> Json:
        """Its entry in the settings."""
        says = self.home / f"{self.name}.json"
        offer = {"skills": str(self.file), "record": str(self.record), "resources": ["memo://1"]}
        says.write_text(json.dumps({**offer, **self.more}))
        self.save()
        return {"command": sys.executable, "args": [str(LIBRARY), str(says)]}

    def asked(self, method: str = "resources/read") -> list[str]:
        """Give the addresses that it was asked for."""
        lines = map(json.loads, whole_lines(self.record))
        return [one["params"]["uri"] for one in lines if one["method"] == method]


def said(part: Json) -> str:
    """Give the text of a part, or what a call gave."""
    if "text" in part:
        return str(part["text"])
    return str(next(iter(part["functionResponse"]["response"].values())))


@dataclass
class SkillDeck(Deck):
    """A deck whose user looks at skills."""

    async def answer(self, *answers: TrustAnswer) -> list[SkillRequest]:
        """Answer questions about skills as they come."""
        asked = []
        for answer in answers:
            request = await self.pending(SkillRequest)
            self.engine.desk.answer(request.id, answer)
            await eventually(partial(self._is_gone, request))
            asked.append(request)
        return asked

    def _is_gone(self, request: SkillRequest) -> bool:
        return request not in self.store.state.pending

    async def type(self, text: str, *answers: TrustAnswer) -> list[SkillRequest]:
        """Send what is typed, answer what is asked, and wait for the end of the turn."""
        self.engine.messages.send(text)
        asked = await self.answer(*answers)
        await self.idle()
        return asked

    @property
    def system(self) -> str:
        """What the system instruction of the last request says."""
        said = self.fake.requests[-1].body.get("systemInstruction", {"parts": [{"text": ""}]})
        return str(said["parts"][0]["text"])

    @property
    def declared(self) -> list[str]:
        return self.fake.requests[-1].declared

    @property
    def got(self) -> list[str]:
        """The texts of the last content that the model got, and what calls gave."""
        return [*map(said, self.fake.requests[-1].contents[-1]["parts"])]

    @property
    def answers(self) -> list[str]:
        """What all calls gave, as the last request has it."""
        parts = (part for one in self.fake.requests[-1].contents for part in one["parts"])
        return [said(part) for part in parts if "functionResponse" in part]

    @property
    def error(self) -> str:
        """The last notice in the conversation."""
        last = [one for one in entries(self.store.state) if isinstance(one, ChatNotice)][-1]
        return f"{last.text} {last.advice}".strip()


@asynccontextmanager
async def skill_deck(
    monkeypatch: pytest.MonkeyPatch,
    steps: Sequence[Step],
    *shelves: Shelf,
    allows_all: bool = False,
    **gemdeck: Any,  # noqa: ANN401 - settings
) -> AsyncIterator[SkillDeck]:
    """Run an engine with these servers before a model that plays a script."""
    named = {shelf.name: shelf.entry for shelf in shelves}
    settings = {"mcpServers": named, "gemdeck": gemdeck}
    async with (
        FakeGemini(list(steps)) as fake,
        deck(fake, monkeypatch, settings=settings, allows_all=allows_all) as made,
    ):
        up = {ServerStatus.READY, ServerStatus.ASLEEP}  # some fall asleep at once
        await eventually(lambda: all(made.status(one) in up for one in named))
        yield SkillDeck(made.engine, fake, made.store, made.events)
        assert fake.violations == []


Opens = Callable[..., AbstractAsyncContextManager[SkillDeck]]
"""Runs the engine and the servers until a block ends; it takes what `skill_deck` takes."""


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> Opens:
    return partial(skill_deck, monkeypatch)


def names_of(running: Deck, server: str) -> list[str]:
    """Name the skills of a server as they are shown."""
    return [one.name for one in running.engine.servers.catalogs[ServerId(server)].skills]
