"""The composition root: options -> store -> app -> engine, and their lifetimes.

The only module that sees all layers. The screen stands first; the engine, whose imports cost more
than the first frame, follows. It outlives the app: whatever ends the app (a key, a signal, a
crash) then also closes the servers.
"""

import asyncio
import gc
import importlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from tui.engine.background import OrderedWorker, in_daemon_thread, within
from tui.engine.files.paths import log_dir, shown_path, state_dir
from tui.engine.files.preferences import (
    append_message,
    load_look,
    load_messages,
    messages_place,
    save_look,
)
from tui.engine.files.unwritten import WRITE_PATIENCE, write_now
from tui.engine.options import EngineOptions
from tui.model.chat import ConversationId
from tui.stopping import NUMBERS
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.app import GemdeckApp
from tui.ui.layout import read_layout
from tui.ui.questions.own_keys import check_keys
from tui.ui.themes import UiPreferences, fitting
from tui.ui.widgets.chat.composer import HistoryStorage

if TYPE_CHECKING:
    from tui.engine.chats.backends.backend import Provider
    from tui.engine.chats.conversations import Conversations
    from tui.engine.logs.redaction import Redactor

Tell = Callable[[str], None]
Known: TypeAlias = "Future[Redactor]"

_log: Final = logging.getLogger(__name__)

END_PATIENCE: Final = 2.0
"""Seconds that the process gets to end after the screen was left and the servers have ended."""

HELD_PATIENCE: Final = 1.25
"""Seconds in which the process ends while the event loop is held."""

HELD_WORDS: Final = b"gemdeck did not respond, so Ctrl+Q ended it.\n"

SIGNAL_EXIT_BASE: Final = 128
"""Added to a signal's number for the exit code, as shells do."""


def run_deck(
    options: EngineOptions,
    *,
    first_message: str = "",
    debug: bool = False,
    provider: "Provider | None" = None,
) -> int:
    """Run the deck until the user quits; give the exit code, with which the process is to end.

    It is ended in any case, `END_PATIENCE` after the servers.

    Args:
        options: What the command line says.
        first_message: What to send first, or an empty string.
        debug: Whether to write verbose logs.
        provider: Opens the models, in place of Gemini's; see `Engine`.
    """
    logging.getLogger().addHandler(logging.NullHandler())  # nothing may be written on the screen
    writer, known = OrderedWorker(), Future["Redactor"]()
    try:
        begin_engine = partial(
            _run_engine,
            replace(options, attended=True, check_keys=check_keys),
            known=known,
            debug=debug,
            provider=provider,
        )
        return asyncio.run(_run(options, writer, known, first_message, begin_engine))
    finally:
        if not known.done():
            from tui.engine.logs.log_file import prepare_process  # noqa: PLC0415 - no engine was there

            known.set_result(prepare_process())
        writer.close(WRITE_PATIENCE)
        write_now()


async def _run(
    options: EngineOptions,
    writer: OrderedWorker,
    known: Known,
    first_message: str,
    begin_engine: Callable[[Store, Commands, asyncio.Event], Coroutine[Any, Any, None]],
) -> int:
    store = Store(AppState(workspace=shown_path(options.folder, Path.home())))
    commands = Commands(store.dispatch)
    painted, closing = asyncio.Event(), asyncio.Event()
    folder, tell = state_dir(), _telling(store)
    look = load_look(folder)

    def keep(part: dict[str, Any]) -> None:
        writer.submit(lambda: save_look(folder, part, tell))

    app = GemdeckApp(
        store,
        commands,
        preferences=UiPreferences(
            fitting(look.get("theme")),
            lambda theme: keep({"theme": theme}),
            read_layout(look.get("layout")),
            lambda layout: keep({"layout": layout.saved()}),
        ),
        on_first_paint=painted.set,
        crash_dir=log_dir(),
        history=_history(options, writer, folder, known, tell),
        end_held=partial(_end_held, writer, commands),
    )
    is_broken = False

    async def run_engine() -> None:
        nonlocal is_broken
        try:
            await painted.wait()
            if first_message:
                commands.send(first_message)
            if not closing.is_set():
                await begin_engine(store, commands, closing)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not end in raw frames
            _log.exception("the engine failed")
            if not closing.is_set():
                app.fail(error)
            else:  # the screen has gone
                from tui.ui.crash import summarize, write_report  # noqa: PLC0415 - hardly ever needed

                is_broken = True
                sys.stderr.write(summarize(error, write_report(error, log_dir())) + "\n")

    _exit_on_signals(app)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(run_engine())
        try:
            await app.run_async()
        finally:
            painted.set()
            closing.set()
    code = 1 if is_broken else app.return_code or 0
    _guard_end(writer, code)
    return code


def _guard_end(writer: OrderedWorker, code: int) -> None:
    """End the process all the same if a thread that still runs, in a call that hangs, keeps it."""
    timer = threading.Timer(END_PATIENCE, _end, (code, 2 * WRITE_PATIENCE, writer.close, write_now))
    timer.daemon = True
    timer.start()


def _end_held(writer: OrderedWorker, commands: Commands, restore: Callable[[], None]) -> None:
    """End the process while the event loop is held; the guards of the servers end those."""
    words = [HELD_WORDS]

    async def save() -> None:
        conversations = commands.running.conversations
        words.append(_way_back(conversations).encode())  # which closing forgets
        closing = (one.recorder.aclose() for one in conversations)
        await asyncio.gather(*closing, return_exceptions=True)

    def say() -> None:  # to a terminal that may be gone, or read nothing
        os.write(2, b"".join(words))

    _end(
        *(1, HELD_PATIENCE, lambda: asyncio.run(save()), restore),
        *(writer.close, write_now, say),
    )


def _end(code: int, patience: float, *steps: Callable[[], object]) -> NoReturn:
    """End the process in time: each step gets half of what is left, and the next one its turn."""
    end = monotonic() + patience
    for step in steps:
        with suppress(Exception):  # whatever fails now, the others must be tried
            within((end - monotonic()) / 2, step)
    os._exit(code)


def _history(
    options: EngineOptions, writer: OrderedWorker, state: Path, known: Known, tell: Tell
) -> HistoryStorage:
    """Give the messages that were sent in the opened folder; a private run adds none.

    They are written once the redactor knows the secrets of the settings.
    """
    place = cache(partial(messages_place, state, options.folder))

    def load() -> Sequence[str]:
        return load_messages(place()) or load_messages(state)  # those of all folders came before

    def append(text: str) -> None:
        writer.submit(lambda: append_message(place(), known.result().redact_known(text), tell))

    return HistoryStorage(load) if options.private else HistoryStorage(load, append)


def _telling(store: Store) -> Tell:
    """Give a function that shows a problem, from any thread."""
    loop = asyncio.get_running_loop()

    def tell(text: str) -> None:
        from tui.model.chat import Severity  # noqa: PLC0415 - hardly ever needed
        from tui.model.events import Notice, NoticeRaised  # noqa: PLC0415

        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(store.dispatch, NoticeRaised(Notice(Severity.WARNING, text)))

    return tell


async def _run_engine(
    options: EngineOptions,
    store: Store,
    commands: Commands,
    closing: asyncio.Event,
    *,
    known: Known,
    debug: bool,
    provider: "Provider | None",
) -> None:
    """Run the engine until the app has ended; give what knows its secrets once it has begun."""
    await asyncio.to_thread(importlib.import_module, "tui.engine.engine")
    gc.freeze()  # collect garbage from now on, but not among what was imported
    gc.enable()
    from tui.engine.browser import open_in_browser  # noqa: PLC0415
    from tui.engine.engine import Engine  # noqa: PLC0415
    from tui.engine.logs.log_file import prepare_process  # noqa: PLC0415
    from tui.engine.serving.lending import answering_others  # noqa: PLC0415

    redactor = prepare_process(verbose=debug)
    made = Engine(
        options, store.dispatch, open_url=open_in_browser, redactor=redactor, provider=provider
    )
    async with made as engine:
        commands.attach(engine, is_ready=False)  # questions are asked before the model is open
        try:
            is_open = await _ends_before(closing, engine.start())
        finally:
            known.set_result(redactor)
        if is_open:
            commands.attach(engine)
            async with answering_others(engine, options.folder):
                await _ends_before(closing, _follow_branch(store, options.folder))
            await asyncio.gather(*(one.recorder.save() for one in engine.conversations))
            await asyncio.wait({in_daemon_thread(write_now)}, timeout=WRITE_PATIENCE)
            with suppress(OSError):  # the terminal is gone
                sys.stderr.write(_way_back(engine.conversations))


def _way_back(conversations: "Conversations") -> str:
    """Say what is not saved, and how to come back to what is, in front first; or nothing."""
    in_front = [one.recorder for one in (conversations.current, *conversations)]
    saved = [*dict.fromkeys(filter(None, (one.way_back for one in in_front)))]
    words, article = "", "A" if in_front[2:] else "The"
    for one in in_front[1:]:
        if one.unsaved:
            degree = " completely" if one.way_back else ""
            words += f"{article} conversation was not saved{degree}: {one.unsaved}.\n"
    if not saved:
        return words
    more = f" ({len(saved) - 1} more: gemdeck sessions list)" if saved[1:] else ""
    return f"{words}Resume with: gemdeck --resume {saved[0]}{more}\n"


async def _follow_branch(store: Store, folder: Path) -> None:
    """Show the folder's git branch; read it again whenever a turn begins or ends."""
    from tui.engine.files.git_branch import branch_of  # noqa: PLC0415 - after the first frame
    from tui.model.events import BranchRead  # noqa: PLC0415

    is_due, running = asyncio.Event(), _running(store.state)

    def notice(state: AppState) -> None:
        nonlocal running
        before, running = running, _running(state)
        if running != before:
            is_due.set()

    forget = store.listen(notice)
    try:
        while True:
            is_due.clear()
            branch = await asyncio.to_thread(branch_of, folder)
            if branch != store.state.branch:
                store.dispatch(BranchRead(branch))
            await is_due.wait()
    finally:
        forget()


def _running(state: AppState) -> set[ConversationId]:
    """Return the conversations in which a turn runs."""
    return {key for key, one in state.conversations.items() if one.turn is not None}


async def _ends_before(event: asyncio.Event, work: Coroutine[Any, Any, object]) -> bool:
    """Do some work unless an event comes first, which cancels it; tell whether it was done."""
    working, waiting = asyncio.create_task(work), asyncio.create_task(event.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
        return working.done()
    finally:
        working.cancel()
        waiting.cancel()
        await asyncio.wait({working, waiting})


def _exit_on_signals(app: GemdeckApp) -> None:
    """Leave in good order when the terminal closes or somebody ends the process.

    A signal that comes while the app ends, or the servers are being closed, changes nothing:
    they get a few seconds, and ending without them would leave the stubborn ones behind.
    """

    def leave(number: int) -> None:
        if app.is_lent and number == signal.SIGINT:
            return  # for an editor with a window of its own, not for us
        if app.return_code is None:  # else it ends already
            app.exit(None, SIGNAL_EXIT_BASE + number)

    loop = asyncio.get_running_loop()
    for number in NUMBERS:
        loop.add_signal_handler(number, leave, number)
