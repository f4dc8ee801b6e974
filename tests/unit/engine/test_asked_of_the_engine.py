"""What the screen asks of the engine's parts, and what a real engine makes of it in the state."""

import os
from pathlib import Path

import pytest

from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Say
from tests.security.decks import deck
from tests.support import warm
from tests.support.google_account import google_account
from tests.unit.engine.mcp.support import FOLDER, eventually
from tui.model.chat import BackendKind
from tui.model.events import ArgumentCompleted
from tui.model.servers import ServerId, ServerStatus

ASKING = ServerId("asking")
ENTRY = {"command": warm.python(), "args": [str(FOLDER / "asking.py")]}


async def test_what_servers_folders_and_sessions_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        FakeGemini([[Say("one")]]) as fake,
        deck(fake, monkeypatch, settings={"mcpServers": {"asking": ENTRY}}, ready=False) as it,
    ):
        engine, store = it.engine, it.store
        engine.features.complete_folder("f", "nothing/like it")
        await eventually(lambda: store.state.completion == ArgumentCompleted("f", ()))
        (Path.home() / ".gemini" / "GEMINI.md").write_text("Be brief.")
        engine.context_files.refresh()
        await eventually(lambda: [one.text for one in store.state.context] == ["Be brief."])
        await eventually(lambda: it.status(ASKING) is ServerStatus.READY)
        engine.features.set_log_level(ASKING, "error")
        await eventually(lambda: store.state.log_levels.get(ASKING) == "error")
        engine.features.open_link("https://example.com/")
        await eventually(lambda: store.state.notices)
        engine.sign_ins.begin(ASKING)
        engine.sign_ins.end(ASKING)
        await eventually(lambda: len(store.state.notices) == 3)
        assert [notice.text for notice in store.state.notices] == [
            "No program to open links was found.",
            *["asking runs on this computer and takes no sign-in."] * 2,
        ]
        await it.ask("first")
        engine.sessions.list_sessions()
        await eventually(lambda: [view.name for view in store.state.sessions] == ["first"])


@pytest.mark.writes_secrets("credentials.json")
async def test_the_last_chosen_service_is_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        google_account(tmp_path, monkeypatch),
        FakeGemini([[Say("hi")]]) as fake,
        deck(fake, monkeypatch, ready=False) as it,
    ):
        models, store = it.engine.service, it.store

        async def answers_with(backend: BackendKind) -> None:
            await eventually(lambda: store.state.model.backend is backend)

        await answers_with(BackendKind.GEMINI)
        models.use_demo()
        await answers_with(BackendKind.DEMO)
        models.use_api_key(KEY)
        await eventually(lambda: store.state.model.is_kept)
        models.forget_key()
        await eventually(lambda: not store.state.model.is_kept)
        address = os.environ["GOOGLE_GEMINI_BASE_URL"]
        models.use_address(address, KEY)
        await eventually(lambda: store.state.model.is_kept)
        monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", address)
        models.use_vertex("project", "")
        await answers_with(BackendKind.VERTEX)
