"""Tasks of the engine that nobody waits for: none breaks down unheard."""

from pathlib import Path

import anyio
import pytest

from tui.engine.consent.headless import HeadlessConsent
from tui.engine.engine import Engine, EngineOptions
from tui.model.chat import Severity
from tui.model.events import Event, NoticeRaised


async def test_a_task_that_breaks_down_is_logged_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_key: str) -> None:
        raise ZeroDivisionError("a bug")

    said = anyio.Event()
    notices: list[NoticeRaised] = []

    def hear(event: Event) -> None:
        if isinstance(event, NoticeRaised) and event.notice.severity is Severity.ERROR:
            notices.append(event)
            said.set()

    monkeypatch.setattr("tui.engine.configuration.remember_api_key", broken)
    options = EngineOptions(tmp_path, demo=True)
    async with Engine(options, hear, HeadlessConsent(())) as engine:
        await engine.start()
        engine.use_api_key("any")
        with anyio.fail_after(5):
            await said.wait()
    assert "ZeroDivisionError" in notices[0].notice.text
    assert "ZeroDivisionError: a bug" in caplog.text
