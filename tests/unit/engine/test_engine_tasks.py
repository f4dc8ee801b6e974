"""Tasks of the engine that nobody waits for: none breaks down unheard."""

from pathlib import Path

import anyio
import pytest

from tests.fakes.gemini import FakeGemini
from tests.support.waiting import PATIENCE
from tui.engine.engine import Engine, EngineOptions
from tui.engine.keys.key_store import KeyStore
from tui.model.chat import Severity
from tui.model.events import Event, NoticeRaised


async def test_a_task_that_breaks_down_is_logged_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    said = anyio.Event()
    notices: list[NoticeRaised] = []

    def hear(event: Event) -> None:
        if isinstance(event, NoticeRaised) and event.notice.severity is Severity.ERROR:
            notices.append(event)
            said.set()

    monkeypatch.setattr(KeyStore, "set", broken)
    options = EngineOptions(tmp_path, demo=True)
    async with FakeGemini(keys=["any"]) as fake, Engine(options, hear) as engine:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", fake.url)
        await engine.start()
        engine.service.use_api_key("any")
        with anyio.fail_after(PATIENCE):
            await said.wait()
    assert "ZeroDivisionError" in notices[0].notice.text
    assert "ZeroDivisionError: a bug" in caplog.text
