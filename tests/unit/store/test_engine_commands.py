"""The commands as the engine carries them out."""

import json
from pathlib import Path

import anyio
import pytest

from tests.unit.engine.servers.support import eventually, find_tool
from tui.engine.consent.broker import ConsentBroker
from tui.engine.engine import Engine, EngineOptions
from tui.engine.events import EventBus
from tui.engine.requests import RequestDesk
from tui.model.chat import ModelText, UserMessage
from tui.model.requests import FormRequest, Reply, ReplyAction
from tui.model.servers import ServerId, ServerStatus
from tui.store.commands import Commands
from tui.store.engine_commands import EngineCommands
from tui.store.selectors import entries
from tui.store.store import Store

ASKING_SERVER = Path(__file__).parents[2] / "servers" / "asking.py"
ASKING = ServerId("asking")


def as_commands(commands: EngineCommands) -> Commands:
    """Let the type checker see that the engine's commands are all that the UI knows."""
    return commands


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GEMDECK_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    return tmp_path


def write_settings(home: Path) -> None:
    import sys  # noqa: PLC0415

    server = {"command": sys.executable, "args": [str(ASKING_SERVER)]}
    folder = home / "home" / ".gemini"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps({"mcpServers": {"asking": server}}))


async def test_prompts_resources_and_answers_go_through_the_commands(home: Path) -> None:
    write_settings(home)
    store, bus = Store(), EventBus()
    bus.subscribe(store.dispatch)
    broker = ConsentBroker(bus.publish)
    options = EngineOptions(home, demo=True)
    async with Engine(options, bus.publish, broker, desk=RequestDesk(bus.publish)) as engine:
        engine_commands = EngineCommands(bus.publish)
        engine_commands.attach(engine, broker)
        commands = as_commands(engine_commands)
        await engine.start()
        await eventually(
            lambda: any(
                view.id == ASKING and view.status is ServerStatus.READY
                for view in store.state.servers
            )
        )
        commands.read_resource(ASKING, "counter://now")
        await eventually(lambda: store.state.resource)
        assert store.state.resource is not None
        assert store.state.resource.content.text == "count 0"
        commands.subscribe_resource(ASKING, "counter://now", subscribed=True)
        await eventually(lambda: (ASKING, "counter://now") in store.state.subscriptions)
        commands.complete_argument("t", ASKING, "greet", "name", "A", {})
        await eventually(lambda: store.state.completion)
        commands.set_log_level(ASKING, "error")
        await eventually(lambda: store.state.log_levels.get(ASKING) == "error")
        commands.send_prompt(ASKING, "greet", {"name": "Ada"})
        await eventually(lambda: any(isinstance(e, ModelText) for e in entries(store.state)))
        with anyio.fail_after(10):
            await engine.wait_idle()
        commands.send_resource(ASKING, "memo://monday", "hello")
        await eventually(lambda: store.state.turn is None and len(messages(store)) == 2)
        assert messages(store)[0].startswith('/greet --name="Ada"')
        assert messages(store)[1].startswith("hello\n\n[memo://monday of asking")
        await answer_a_form(store, commands, engine)


async def test_a_link_is_opened_and_it_is_told_where_that_cannot_be(home: Path) -> None:
    opened: list[str] = []

    async def open_url(url: str) -> bool:
        opened.append(url)
        return "good" in url

    store, bus = Store(), EventBus()
    bus.subscribe(store.dispatch)
    broker = ConsentBroker(bus.publish)
    options = EngineOptions(home, demo=True)
    async with Engine(options, bus.publish, broker, open_url=open_url) as engine:
        commands = EngineCommands(bus.publish)
        commands.attach(engine, broker)
        commands.open_link("https://good.example/")
        commands.open_link("https://bad.example/")
        await eventually(lambda: store.state.notices)
        assert opened == ["https://good.example/", "https://bad.example/"]
        [notice] = store.state.notices
        assert notice.text == "There is no program here to open links with."


async def answer_a_form(store: Store, commands: Commands, engine: Engine) -> None:
    tool = find_tool(engine.servers, "form")
    assert tool is not None
    said = ""

    async def run() -> None:
        nonlocal said
        said = (await engine.servers.call_tool(tool, {}, lambda _: None)).display

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await eventually(lambda: store.state.pending)
        [request] = store.state.pending
        assert isinstance(request, FormRequest)
        reply = Reply(ReplyAction.ACCEPT, {"name": "Ada", "age": "36"})
        commands.reply(request.id, reply)
    assert json.loads(said)["content"]["age"] == 36
    assert store.state.pending == ()


def messages(store: Store) -> list[str]:
    return [entry.text for entry in entries(store.state) if isinstance(entry, UserMessage)]
