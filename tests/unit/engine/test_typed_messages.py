"""Prompts after ``/`` and resources after ``@`` in a message, from a real server to the model."""

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests import servers
from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Say
from tests.support.waiting import PATIENCE
from tui.engine.engine import Engine, EngineOptions
from tui.model.events import Event, NoticeRaised, TurnFinished

SAMPLE = Path(servers.__file__).with_name("sample.py")


@asynccontextmanager
async def deck(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Engine, FakeGemini, list[Event]]]:
    entry = {"command": sys.executable, "args": [str(SAMPLE)]}
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps({"mcpServers": {"sample": entry}}))
    events: list[Event] = []
    async with FakeGemini([(Say("one"),), (Say("two"),)]) as fake:
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", fake.url)
        async with Engine(EngineOptions(home, follow_settings=False), events.append) as engine:
            await engine.start()
            await engine.wait_ready()
            yield engine, fake, events


async def say(engine: Engine, text: str) -> None:
    engine.send(text)
    with anyio.fail_after(PATIENCE):
        await engine.wait_idle()


def sent(fake: FakeGemini) -> list[str]:
    """Give the texts of the last content that the model got."""
    parts: Sequence[dict[str, Any]] = fake.requests[-1].contents[-1]["parts"]
    return [part["text"] for part in parts]


def returned(events: list[Event]) -> str:
    """Give the message that came back to the user last."""
    return [event.unsent for event in events if isinstance(event, TurnFinished)][-1]


def notice(events: list[Event]) -> str:
    last = [event.notice for event in events if isinstance(event, NoticeRaised)][-1]
    return f"{last.text} {last.advice}"


async def test_a_prompt_is_rendered_with_its_typed_arguments(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with deck(home, monkeypatch) as (engine, fake, _):
        await say(engine, '/greet "Ada Lovelace"')
        assert "Ada Lovelace" in " ".join(sent(fake))
        assert not any("/greet" in text for text in sent(fake))


async def test_what_is_no_command_never_reaches_the_model(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with deck(home, monkeypatch) as (engine, fake, events):
        await say(engine, "/gret Ada")
        assert notice(events) == "There is no command /gret. Did you mean /greet?"
        assert returned(events) == "/gret Ada"
        await say(engine, "/greet")
        assert notice(events).startswith("/greet needs name.")
        assert returned(events) == "/greet"
        assert fake.requests == []
        await say(engine, "/etc/hosts is a file")
        assert sent(fake) == ["/etc/hosts is a file"]


async def test_resources_go_along_with_the_words_that_name_them(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with deck(home, monkeypatch) as (engine, fake, _):
        await say(engine, "compare @sample:memo://today and @sample:memo://monday.")
        words, *contents = sent(fake)
        assert words == "compare @sample:memo://today and @sample:memo://monday."
        assert sum("memo://" in text for text in contents) >= 2
        await say(engine, "ask @nobody:else")
        assert sent(fake) == ["ask @nobody:else"]


async def test_a_resource_that_cannot_be_read_gives_the_message_back(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with deck(home, monkeypatch) as (engine, fake, events):
        await say(engine, "read @sample:none://there")
        assert "could not be read" in notice(events)
        assert returned(events) == "read @sample:none://there"
        assert fake.requests == []
