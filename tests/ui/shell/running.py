"""Runs the app without a terminal, and reads what is on its screen."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget

from tests.fakes.commands import RecordingCommands
from tui.store.store import Store
from tui.ui.app import GemdeckApp
from tui.ui.bridge import MIN_INTERVAL
from tui.ui.panes.tools import ToolsPane
from tui.ui.preferences import UiPreferences

W = TypeVar("W", bound=Widget)

WIDE = (120, 36)
NARROW = (80, 24)


@dataclass
class Running:
    """An app that runs, and the hands on it."""

    app: GemdeckApp
    pilot: Pilot[int]
    store: Store
    commands: RecordingCommands

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def settle(self) -> None:
        """Wait until what was dispatched is on the screen."""
        await self.pilot.pause(MIN_INTERVAL)
        await self.pilot.pause()

    async def until(self, condition: Callable[[], bool]) -> None:
        with anyio.fail_after(5):
            while not condition():
                await self.pilot.pause(0.01)

    def one(self, kind: type[W]) -> W:
        """Find a widget of the main screen."""
        return self.app.deck.query_one(kind)

    def on_top(self, kind: type[Screen[Any]]) -> bool:
        return isinstance(self.app.screen, kind)

    @property
    def focus(self) -> Widget | None:
        return self.app.screen.focused

    @property
    def lines(self) -> list[str]:
        """The screen as text."""
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@asynccontextmanager
async def running(
    store: Store,
    size: tuple[int, int] = WIDE,
    *,
    preferences: UiPreferences | None = None,
    on_first_paint: Callable[[], None] | None = None,
    crash_dir: Path | None = None,
) -> AsyncIterator[Running]:
    commands = RecordingCommands()
    app = GemdeckApp(
        store,
        commands,
        preferences=preferences or UiPreferences(),
        on_first_paint=on_first_paint,
        crash_dir=crash_dir,
    )
    async with app.run_test(size=size, notifications=True) as pilot:
        deck = Running(app, pilot, store, commands)
        await deck.until(lambda: bool(deck.app.deck.query(ToolsPane)))
        await deck.settle()
        yield deck


async def run_and_fail(store: Store, crash_dir: Path, action: Callable[[], None]) -> None:
    """Let an action raise inside an app and wait for the app's end; raises the same."""
    async with running(store, crash_dir=crash_dir) as deck:
        deck.app.deck.call_next(action)
        await deck.until(lambda: deck.app.return_code is not None)
        assert deck.app.return_code == 1
