"""What the composition root owns, without a screen."""

import asyncio
import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.fakes.gemini import KEY
from tests.support.leaks import FIXTURE_SECRET
from tests.support.waiting import eventually
from tui import compose
from tui.engine.files import unwritten
from tui.engine.files.paths import state_dir
from tui.engine.files.preferences import MESSAGES, append_message, load_messages
from tui.engine.options import EngineOptions
from tui.store.store import Store
from tui.ui.layout import Layout
from tui.ui.themes import UiPreferences
from tui.ui.widgets.chat.composer import HistoryStorage

TOKEN = f"{FIXTURE_SECRET}of-a-server"


@pytest.fixture(autouse=True)
def guarded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note with which codes the end is guarded; a guard would end the run of the tests."""
    codes: list[int] = []
    monkeypatch.setattr(compose, "_guard_end", lambda _writer, code: codes.append(code))
    return codes


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
        self._preferences.save_layout(Layout(alone=True))


def test_what_is_remembered_is_written_in_order_beside_the_loop_and_before_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, guarded: list[int]
) -> None:
    written: list[tuple[object, bool]] = []

    def note(_folder: Path, text: object, _tell: Callable[[str], None]) -> None:
        written.append((text, threading.current_thread() is threading.main_thread()))

    for name, stand_in in (("append_message", note), ("save_look", note), ("GemdeckApp", Sender)):
        monkeypatch.setattr(compose, name, stand_in)
    assert compose.run_deck(EngineOptions(tmp_path, demo=True)) == 0
    assert guarded == [0]
    assert not any(on_the_loop for _, on_the_loop in written)
    chosen = {"theme": "dark"}, {"layout": {"alone": True, "widths": {}}}
    assert [what for what, _ in written] == ["one", "two", *chosen]


class EarlySender:
    """Stands for an app in which a secret is typed before anything was read."""

    return_code = 0
    paints = True

    def __init__(
        self, *_: object, history: HistoryStorage, on_first_paint: Callable[[], None], **__: object
    ) -> None:
        self._history, self._paint = history, on_first_paint

    async def run_async(self) -> None:
        self._history.append(f"use {TOKEN}, not {KEY}")
        if self.paints:
            self._paint()
            await eventually(lambda: [*state_dir().glob(f"sessions/*/{MESSAGES}")])


@pytest.mark.writes_secrets("settings.json")
@pytest.mark.parametrize("stands", [True, False])
def test_messages_are_masked(home: Path, monkeypatch: pytest.MonkeyPatch, stands: bool) -> None:
    server = {"command": "none", "disabled": True, "env": {"TOKEN": TOKEN}}
    (home / ".gemini").mkdir()
    settings = {"mcpServers": {"shop": server} if stands else {}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    if not stands:  # the engine never was, so only the environment is known
        monkeypatch.setenv("OTHER_TOKEN", TOKEN)
    monkeypatch.setattr(EarlySender, "paints", stands)
    monkeypatch.setattr(compose, "GemdeckApp", EarlySender)
    assert compose.run_deck(EngineOptions(home, follow_settings=False)) == 0
    [file] = state_dir().glob(f"sessions/*/{MESSAGES}")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ('"use ***, not ***"\n', 0o600)


async def test_a_message_that_cannot_be_written_is_told_on_the_screen(tmp_path: Path) -> None:
    store = Store()
    (tmp_path / "messages.jsonl").mkdir()
    tell = compose._telling(store)
    for text in ("one", "two"):
        await asyncio.to_thread(append_message, tmp_path, text, tell)
    await eventually(lambda: store.state.notices)
    [notice] = store.state.notices
    assert f"{tmp_path / 'messages.jsonl'} cannot be written: Is a directory." in notice.text
    (tmp_path / "messages.jsonl").rmdir()
    unwritten.write_now()
    assert load_messages(tmp_path) == ("one", "two")


def test_E46_steps_that_hang_end_in_time_in_their_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    now, begun = 0.0, list[str]()

    def hang(seconds: float, step: Callable[[], object]) -> None:
        nonlocal now
        assert seconds > 0
        now += seconds
        step()
        raise TimeoutError

    def end(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(compose, "within", hang)
    monkeypatch.setattr(compose, "monotonic", lambda: now)
    monkeypatch.setattr("os._exit", end)
    steps = [partial(begun.append, str(number)) for number in range(5)]
    with pytest.raises(SystemExit, match="1"):
        compose._end(1, compose.HELD_PATIENCE, *steps)
    assert begun == [*"01234"]
    assert now < compose.HELD_PATIENCE
