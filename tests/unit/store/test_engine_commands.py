"""The commands as the engine carries them out."""

from pathlib import Path

import pytest

from tests.unit.engine.mcp.support import eventually
from tui.engine.bus import EventBus
from tui.engine.engine import Engine, EngineOptions
from tui.store.commands import Commands
from tui.store.store import Store


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GEMDECK_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    return tmp_path


async def test_a_link_is_opened_and_it_is_told_where_that_cannot_be(home: Path) -> None:
    opened: list[str] = []

    async def open_url(url: str) -> bool:
        opened.append(url)
        return "good" in url

    store, bus = Store(), EventBus()
    bus.subscribe(store.dispatch)
    options = EngineOptions(home, demo=True, attended=True)
    async with Engine(options, bus.publish, open_url=open_url) as engine:
        commands = Commands(bus.publish)
        commands.attach(engine)
        commands.open_link("https://good.example/")
        commands.open_link("https://bad.example/")
        await eventually(lambda: store.state.notices)
        assert opened == ["https://good.example/", "https://bad.example/"]
        [notice] = store.state.notices
        assert notice.text == "No program to open links was found."
