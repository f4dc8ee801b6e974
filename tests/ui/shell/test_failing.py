"""Whatever fails ends the app with a report and an exit code that says so."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.traceback import Traceback

from tests.support.waiting import eventually
from tests.ui.harness import running
from tests.ui.shell import decks
from tui.ui.app import GemdeckApp
from tui.ui.driver import DeckDriver


class ThreadError(Exception):
    """What goes wrong in a thread."""


async def run_until_failed(crash_dir: Path, fail: Callable[[GemdeckApp], object]) -> None:
    """Let the app fail, and wait for its exit code."""
    async with running(decks.full_store(), crash_dir=crash_dir) as deck:
        fail(deck.app)
        await eventually(lambda: deck.app.return_code is not None)
        assert deck.app.return_code == 1


def report_in(directory: Path) -> str:
    (report,) = directory.iterdir()
    return report.read_text()


async def test_an_error_of_the_input_thread_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_driver: DeckDriver) -> None:
        raise ThreadError

    monkeypatch.setattr(DeckDriver, "run_input_thread", fail)
    with pytest.raises(ThreadError):
        await run_until_failed(tmp_path, lambda app: DeckDriver(app)._run_input_thread())
    written = report_in(tmp_path)
    assert "ThreadError" in written
    assert ", in fail" in written


async def test_a_drawn_traceback_is_reported_by_its_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        raise ThreadError
    except ThreadError:
        drawn = Traceback()
    await run_until_failed(tmp_path, lambda app: app.call_later(app.panic, drawn))
    assert "ThreadError" in report_in(tmp_path)
    shown = capsys.readouterr()
    assert "ThreadError" in shown.out + shown.err
