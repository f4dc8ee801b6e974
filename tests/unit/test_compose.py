"""What the composition root owns, without a screen."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tui import compose
from tui.engine.options import EngineOptions
from tui.ui.themes import UiPreferences
from tui.ui.widgets.chat.history import HistoryStorage


class Sender:
    """Stands for the app: sends two messages, chooses a theme, and ends."""

    return_code = 0

    def __init__(
        self, *_: object, history: HistoryStorage, preferences: UiPreferences, **__: object
    ) -> None:
        self._history = history
        self._preferences = preferences

    async def run_async(self) -> None:
        self._history.append("one")
        self._history.append("two")
        self._preferences.save("dark")


def test_what_is_remembered_is_written_in_order_beside_the_loop_and_before_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written: list[tuple[str, bool]] = []

    def note(_folder: Path, text: str) -> None:
        written.append((text, threading.current_thread() is threading.main_thread()))

    def patch(name: str, function: Callable[[Path, str], None]) -> None:
        monkeypatch.setattr(compose, name, function)

    patch("append_message", note)
    patch("save_theme", note)
    monkeypatch.setattr(compose, "GemdeckApp", Sender)
    assert compose.run_deck(EngineOptions(tmp_path, demo=True)) == 0
    assert written == [("one", False), ("two", False), ("dark", False)]
