"""Another provider answers through the whole engine, with nothing changed but its module."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

import tui.engine
from tests.cli.running import run
from tests.providers.echo import open_echo
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.support import eventually
from tui import compose
from tui.cli.output import ExitCode
from tui.engine import ChatNoticeAdded, Engine, EngineOptions, Event, TurnFinished, TurnOutcome
from tui.model.chat import ModelText
from tui.store.commands import Commands
from tui.store.selectors import entries
from tui.store.store import Store


def said(store: Store) -> list[str]:
    return [one.text for one in entries(store.state) if isinstance(one, ModelText)]


async def test_a_library_gives_a_provider_and_learns_why_a_turn_failed(tmp_path: Path) -> None:
    told: list[Event] = []
    options = EngineOptions(tmp_path, follow_settings=False)
    async with Engine(options, told.append, provider=open_echo) as engine:
        await engine.start()
        with anyio.fail_after(PATIENCE):
            engine.send("fail")
            await engine.wait_idle()
            name = engine.conversations.open()
            engine.send("again", name)
            await engine.wait_idle(name)
    [notice] = [one.notice for one in told if isinstance(one, ChatNoticeAdded)]
    assert (notice.text, notice.advice) == ("The echo is away", "Shout.")
    ends = [(one.conversation, one.outcome) for one in told if isinstance(one, TurnFinished)]
    assert ends == [("main", TurnOutcome.FAILED), (name, TurnOutcome.COMPLETED)]


def test_what_is_public_is_listed() -> None:
    names: dict[str, object] = {}
    exec("from tui.engine import *", names)
    assert {"ConversationId", "ConversationOpened", "ToolCallRequested"} <= names.keys()
    assert {*dir(tui.engine)} == names.keys() - {"__builtins__"}


class Asker:
    """Stands for the app: sends a message, goes to the demo and back, and ends."""

    return_code = 0

    def __init__(
        self, store: Store, commands: Commands, *, on_first_paint: Callable[[], None], **_: object
    ) -> None:
        self._store, self._commands, self._paint = store, commands, on_first_paint

    async def run_async(self) -> None:
        store, commands = self._store, self._commands
        commands.send("hello")
        self._paint()
        await eventually(lambda: said(store) == ["hello"])
        commands.choose(lambda choice: choice.use_demo())
        await eventually(lambda: store.state.model.backend == "demo")
        commands.engine.models.list_models()
        await eventually(lambda: "echo/loud" in str(store.state.models))
        commands.engine.models.use_model("loud")
        await eventually(lambda: store.state.model.backend == "Echo")
        commands.send("hello")
        await eventually(lambda: said(store)[-1] == "HELLO")


def test_the_app_takes_it_and_finds_back_from_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compose, "GemdeckApp", Asker)
    monkeypatch.setattr(compose, "_guard_end", lambda *_: None)
    options = EngineOptions(tmp_path, follow_settings=False, private=True)
    assert compose.run_deck(options, provider=open_echo) == 0


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that brings the provider."""
    about = tmp_path / "echo_provider-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-provider\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[gemdeck.providers]\necho = tests.providers.echo:open_echo\nmodels = no:thing\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("installed")
async def test_a_package_brings_one_by_an_entry_point() -> None:
    loud = await run("-m", "echo/loud", "-p", "hello", code=0)
    assert loud.stdout == "HELLO\n"
    wrong = await run("-m", "echo/none", "-p", "hello", code=ExitCode.NO_KEY)
    assert "There is no echo none." in wrong.stderr
    doctor = await run("doctor", env={"GEMINI_MODEL": "echo/soft"}, code=0)
    assert "echo, with credentials from the service's package" in doctor.stdout


@pytest.mark.usefixtures("installed")
async def test_its_models_are_listed_beside_those_of_other_services(tmp_path: Path) -> None:
    store = Store()
    options = EngineOptions(tmp_path, attended=True, follow_settings=False)
    async with Engine(options, store.dispatch) as engine:
        await engine.start()
        engine.models.list_models("echo")
        await eventually(lambda: store.state.models is not None)
        listed = store.state.models
        assert listed is not None
        assert [one.name for one in listed.models] == ["echo/soft", "echo/loud"]
        names = {one.name: one.is_ready for one in listed.services}
        assert names["echo"]
        assert "models" not in names
        engine.choice.use_service("echo/loud")
        await eventually(lambda: store.state.model.backend == "Echo")
