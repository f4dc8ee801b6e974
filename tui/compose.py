"""The composition root: options -> engine -> store -> app, and their lifetimes.

The only module that sees all layers. The engine wraps the app, so that whatever ends the app
(a key, a signal, a crash) also closes the servers.
"""

import asyncio
import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tui.engine.consent.broker import ConsentBroker
from tui.engine.engine import Engine, EngineOptions
from tui.engine.events import EventBus
from tui.engine.logs import log_to_file
from tui.engine.paths import log_dir, state_dir
from tui.engine.preferences import append_message, load_messages, load_theme, save_theme
from tui.model.events import Event, ServerStatusChanged
from tui.model.servers import ServerStatus
from tui.store.engine_commands import EngineCommands
from tui.store.state import AppState
from tui.store.store import Store
from tui.text import sanitize_line
from tui.ui.app import GemdeckApp
from tui.ui.preferences import UiPreferences
from tui.ui.widgets.history import HistoryStorage

SIGNAL_EXIT_BASE = 128
"""Added to a signal's number for the exit code, as shells do."""


@dataclass(frozen=True, slots=True)
class DeckOptions:
    """What the command line says about a run with a screen."""

    folder: Path
    demo: bool = False
    model: str | None = None
    debug: bool = False


def run_deck(options: DeckOptions) -> int:
    """Run the deck until the user quits; give the exit code."""
    log_to_file(verbose=options.debug)
    return asyncio.run(_run(options))


async def _run(options: DeckOptions) -> int:
    bus = EventBus()
    store = Store(AppState(workspace=shown_folder(options.folder)))
    bus.subscribe(store.dispatch)
    broker = ConsentBroker(bus.publish)
    bus.subscribe(partial(_withdraw_questions, broker))
    engine = Engine(
        EngineOptions(options.folder, demo=options.demo, model=options.model), bus.publish, broker
    )
    painted = asyncio.Event()
    folder = state_dir()
    app = GemdeckApp(
        store,
        EngineCommands(engine, broker),
        preferences=UiPreferences(load_theme(folder), partial(save_theme, folder)),
        on_first_paint=partial(_on_first_paint, painted),
        crash_dir=log_dir(),
        history=HistoryStorage(partial(load_messages, folder), partial(append_message, folder)),
    )
    async with engine, asyncio.TaskGroup() as tasks:
        starting = tasks.create_task(_start_after(painted, engine))
        with _exit_on_signals(app):
            await app.run_async()
        starting.cancel()
    return app.return_code or 0


def _withdraw_questions(broker: ConsentBroker, event: Event) -> None:
    """Let nobody allow a call on a server that has gone."""
    if isinstance(event, ServerStatusChanged) and event.status is not ServerStatus.READY:
        broker.withdraw_server(event.server)


def _on_first_paint(painted: asyncio.Event) -> None:
    """Let the engine start, and collect garbage from now on, but not among what was imported."""
    gc.freeze()
    gc.enable()
    painted.set()


async def _start_after(painted: asyncio.Event, engine: Engine) -> None:
    """Start the engine once the screen stands: its imports cost more than the first frame."""
    await painted.wait()
    await engine.start()


@contextmanager
def _exit_on_signals(app: GemdeckApp) -> Iterator[None]:
    """Leave in good order when the terminal closes or somebody ends the process."""
    loop = asyncio.get_running_loop()
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]
    for number in numbers:
        loop.add_signal_handler(number, app.exit, None, SIGNAL_EXIT_BASE + number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def shown_folder(folder: Path) -> str:
    """Give a folder as the header shows it, the home as ``~``."""
    with suppress(ValueError):
        return sanitize_line(str(Path("~") / folder.relative_to(Path.home())))
    return sanitize_line(str(folder))
