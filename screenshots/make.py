"""Takes the pictures of the README from the real app: ``python3 screenshots/make.py [FOLDER]``.

With ``--all FOLDER [PATTERN]`` it draws every pane, question and empty state instead, in every
look and size, or those whose names match a pattern such as ``tools-*-80x24``: see `gallery`.

The demo runs with its server in an empty home folder, whose path does not show. What
differs from run to run, how long things took, is set to fixed times, so that a second run writes
the same bytes.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

# Textual reads the environment when it is imported.
os.environ.update(TEXTUAL_ANIMATIONS="none", COLORTERM="truecolor", LANG="C.UTF-8", TZ="UTC")

from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from tui.engine.bus import EventBus
from tui.engine.engine import Engine, EngineOptions
from tui.model.events import Event, ToolCallChanged, TurnFinished, TurnStarted
from tui.model.servers import ServerStatus
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui import themes
from tui.ui.app import GemdeckApp
from tui.ui.themes import UiPreferences


class Run(NamedTuple):
    """One run of the deck.

    Attributes:
        suffix: What the file names end in.
        size: The size of the terminal in columns and rows.
        theme: The theme's name.
        pictures: The steps after which a picture is taken.
    """

    suffix: str
    size: tuple[int, int]
    theme: str
    pictures: tuple[str, ...]


RUNS: Final = (
    Run("", (120, 36), themes.DARK.name, ("confirmation", "chat", "tools", "palette")),
    Run("-light", (120, 36), themes.LIGHT.name, ("chat",)),
    Run("-80x24", (80, 24), themes.DARK.name, ("chat",)),
)
"""The runs for the pictures of the README."""

MESSAGE: Final = "add a note: buy milk"

CALL_SECONDS: Final = 0.042
"""How long every call took, as the pictures say."""

TURN_SECONDS: Final = 2.4
"""How long every turn took, as the pictures say."""

KEY_PAUSE: Final = 0.2
"""Seconds after a key that moves the focus, which Textual does later."""

MAX_WAIT: Final = 30.0
"""Seconds for anything to appear."""


@dataclass(frozen=True, slots=True)
class Deck:
    """The parts of a running deck."""

    engine: Engine
    store: Store
    app: GemdeckApp


def assemble(workspace: Path, theme: str) -> Deck:
    """Put a deck together as `tui.compose` does, but for the times of calls."""
    bus = EventBus()
    store = Store(AppState(workspace=f"~/{workspace.name}"))
    bus.subscribe(with_fixed_times(store.dispatch))
    engine = Engine(EngineOptions(workspace, demo=True, attended=True), bus.publish)
    commands = Commands(bus.publish)
    commands.attach(engine)
    app = GemdeckApp(store, commands, preferences=UiPreferences(theme=theme))
    return Deck(engine, store, app)


async def take_pictures(folder: Path, workspace: Path) -> list[Path]:
    """Play the main job in each run and write what the screen shows.

    Args:
        folder: Where the pictures go.
        workspace: The folder the app works in.

    Returns:
        The files written.
    """
    written = []
    for run in RUNS:
        os.environ["GEMDECK_HOME"] = str(workspace.with_name(f".gemdeck{run.suffix}"))
        deck = assemble(workspace, run.theme)
        async with deck.engine, deck.app.run_test(size=run.size) as pilot:
            for name, play in _STEPS.items():
                await play(pilot, deck)
                await settle(pilot)
                path = folder / f"{name}{run.suffix}.svg"
                if name in run.pictures:
                    path.write_text(deck.app.export_screenshot(title="gemdeck"), "utf-8")
                    written.append(path)
            deck.app.exit()
    return written


async def ask(pilot: Pilot[Any], deck: Deck) -> None:
    """Let the server come up, send the message, and wait for the question.

    The list of tools is put to its first entry.
    """
    await deck.engine.start()
    await until(pilot, deck, server_is_ready)
    for key in ("f3", "home", "f3"):
        await pilot.press(key)
        await pilot.pause(KEY_PAUSE)
    await pilot.press(*MESSAGE)
    await pilot.press("enter")
    await until(pilot, deck, lambda state: bool(state.pending))
    await until(pilot, deck, lambda _: bool(getattr(deck.app.screen, "armed", False)))


async def allow(pilot: Pilot[Any], deck: Deck) -> None:
    """Allow the call and wait for the end of the answer."""
    await pilot.press("o")
    await until(pilot, deck, lambda state: state.conversation.turn is None and not state.pending)


async def show_tools(pilot: Pilot[Any], _deck: Deck) -> None:
    """Go to the tools and look at one."""
    await pilot.press("f3")
    await pilot.pause(KEY_PAUSE)
    await pilot.press("down", "down")


async def find(pilot: Pilot[Any], _deck: Deck) -> None:
    """Look for what has to do with notes."""
    await pilot.press("ctrl+p", *"note")


_STEPS: Final = {"confirmation": ask, "chat": allow, "tools": show_tools, "palette": find}


def server_is_ready(state: AppState) -> bool:
    """Tell whether the bundled server is there with its catalog."""
    return [view.status for view in state.servers if view.catalog.tools] == [ServerStatus.READY]


async def until(pilot: Pilot[Any], deck: Deck, reached: Callable[[AppState], bool]) -> None:
    """Let the app work until the state fulfils a condition."""
    async with asyncio.timeout(MAX_WAIT):
        while not reached(deck.store.state):
            await pilot.pause(0.02)


async def settle(pilot: Pilot[Any]) -> None:
    """Let everything be drawn, without a cursor that blinks."""
    for screen in pilot.app.screen_stack:
        for field in (*screen.query(Input), *screen.query(TextArea)):
            field.cursor_blink = False
    await pilot.wait_for_scheduled_animations()
    await pilot.pause(0.3)


def with_fixed_times(publish: Callable[[Event], None]) -> Callable[[Event], None]:
    """Let every call and every turn have taken the same time, and no running turn show its own."""

    def through(event: Event) -> None:
        match event:
            case ToolCallChanged(seconds=float()):
                event = replace(event, seconds=CALL_SECONDS)
            case TurnFinished():
                event = replace(event, seconds=TURN_SECONDS)
            case TurnStarted(time=time):
                event = replace(event, time=time + MAX_WAIT)
        publish(event)

    return through


def main() -> None:
    """Write the pictures beside this file, or into the folder that is named."""
    words = [word for word in sys.argv[1:] if word != "--all"]
    folder = Path(words[0]) if words else Path(__file__).parent
    folder.mkdir(parents=True, exist_ok=True)
    if "--all" in sys.argv:
        sys.path.insert(0, str(Path(__file__).parent.parent))
        from gallery import draw_all  # noqa: PLC0415 - its parts are those of the tests

        for path in asyncio.run(draw_all(folder, words[1] if len(words) > 1 else "*")):
            click.echo(path)
        return
    with tempfile.TemporaryDirectory() as home:
        for name in tuple(os.environ):
            if name.startswith(("GEMINI", "GOOGLE", "GEMDECK", "XDG_")):
                del os.environ[name]
        os.environ["HOME"] = home
        workspace = Path(home, "shop")
        workspace.mkdir()
        os.chdir(workspace)
        for path in asyncio.run(take_pictures(folder, workspace)):
            click.echo(path)
        os.chdir("/")


if __name__ == "__main__":
    main()
