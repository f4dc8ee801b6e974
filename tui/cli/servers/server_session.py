"""Servers that are started for one command."""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from tui.cli.command import CommandError, check_known
from tui.cli.output import ExitCode, quote, say
from tui.cli.servers.server_words import advised, why_not_ready
from tui.cli.shared_options import trace_option, trust_option
from tui.engine import late
from tui.engine.background import in_daemon_thread
from tui.engine.browser import open_in_browser
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.engine import Engine, EngineOptions
from tui.engine.logs.log_file import prepare_process
from tui.engine.mcp.context import OpenUrl
from tui.engine.serving.lending import Borrowing
from tui.engine.settings.loader import KeyCheck
from tui.model.chat import TaskProgress
from tui.model.consent import RequestId
from tui.model.events import Event, LogLine, NoticeRaised, ServerLogged, ToolCallProgressed
from tui.model.frozen import Frozen
from tui.model.servers import ServerId, ServerStatus, ServerView
from tui.model.settings_rules import MAX_WAIT
from tui.model.trust import FolderTrust
from tui.store import selectors
from tui.store.store import Store

T = TypeVar("T")


class StartOptions(Frozen):
    """How servers are started.

    Attributes:
        timeout: Seconds that each gets to become ready.
        trusted: Folders whose own settings count, by their real paths.
        own: Whether all are started, also those that run in an open deck.
    """

    timeout: float
    trusted: tuple[Path, ...] = ()
    own: bool = True


def starts_servers(command: Callable[..., T]) -> Callable[..., T]:
    """Let a command say in options how servers are started, as its argument `start`."""

    @functools.wraps(command)
    def run(*, trusted_folders: tuple[Path, ...], timeout: float, **given: Any) -> T:  # noqa: ANN401 - its own options
        start = StartOptions(timeout, trusted_folders, given.pop("own", True))
        return command(start=start, **given)

    for option in (
        trust_option,
        click.option(
            "--timeout",
            metavar="SECONDS",
            type=click.FloatRange(0, MAX_WAIT, min_open=True),
            default=10.0,
            show_default=True,
            help="Longest time for a server to become ready.",
        ),
        trace_option,
    ):
        run = option(run)
    return run


class ServerSession:
    """An engine without a model, and what it says.

    Args:
        start: How servers are started.
        names: The servers that count; None for all.
        open_url: Opens the browser, once the person at the terminal has agreed.
        check_keys: Judges the user's keys.

    Attributes:
        engine: The engine.
        redactor: Masks secrets.
        borrowing: Finds the servers that run in an open deck.
        warnings: What was written to standard error.
        follow: Takes each line that a server logs, at once.
    """

    def __init__(
        self,
        start: StartOptions,
        names: Sequence[str] | None,
        open_url: OpenUrl = open_in_browser,
        check_keys: KeyCheck = lambda _: {},
    ) -> None:
        self.warnings = list[str]()
        self.follow: Callable[[ServerId, LogLine], object] = lambda _server, _line: None
        self._task = ""
        self._store = Store()
        context = click.get_current_context(silent=True)
        given = context.find_root().params if context is not None else {}
        options = EngineOptions(
            Path.cwd(),
            follow_settings=False,
            needs_model=False,
            only_servers=None if names is None else frozenset(names),
            trusted_folders=start.trusted,
            trace=given.get("trace"),
            check_keys=check_keys,
        )
        self.redactor = prepare_process(verbose=given.get("debug", False))
        self.borrowing = Borrowing(None if start.own else Path.cwd())
        self.engine = Engine(
            options, self._watch, open_url=open_url, redactor=self.redactor, borrow=self.borrowing
        )

    @property
    def views(self) -> tuple[ServerView, ...]:
        return self._store.state.servers

    @property
    def folder_trust(self) -> FolderTrust:
        return self._store.state.folder_trust

    async def definitions(self) -> tuple[ServerDefinition, ...]:
        """Read the settings.

        Raises:
            CommandError: If they cannot be used.
        """
        settings = await self.engine.load()
        for problem in settings.problems:
            if problem.fatal:
                raise CommandError(str(problem), ExitCode.BAD_SETTINGS)
        return settings.servers

    def ready(self, name: str) -> ServerView:
        """Return a server that is ready.

        Raises:
            CommandError: If it is not.
        """
        view = selectors.server(self._store.state, ServerId(name))
        if view is None or view.status is not ServerStatus.READY:
            reason, advice = why_not_ready(view) if view is not None else ("", "")
            status = view.status.value if view is not None else "gone"
            raise CommandError(f"{name} is not ready ({status}): {advised(reason, advice)}")
        return view

    def log(self, name: str) -> tuple[LogLine, ...]:
        return self._store.state.logs.get(ServerId(name), ())

    def _watch(self, event: Event) -> None:
        self._store.dispatch(event)
        match event:
            case ServerLogged(server=server, lines=lines):
                for line in lines:
                    self.follow(server, line)
            case ToolCallProgressed(progress=TaskProgress() as task):
                if self._task != (said := f"task {task.status.words}: {task.message}"):
                    self._task = said
                    quote(said)
            case ToolCallProgressed(progress=progress):
                quote(f"progress: {progress.words}")
            case NoticeRaised(notice=notice):
                self.warnings.append(" ".join(filter(None, (notice.text, notice.advice))))
                say(self.warnings[-1])

    def is_open(self, request: RequestId) -> bool:
        """Return whether a question of a server still waits for its answer."""
        return any(one.id == request for one in self._store.state.pending)


async def attending(answers: Coroutine[Any, Any, None], work: Coroutine[Any, Any, T]) -> T:
    """Do some work while its questions are answered; what ends the answers ends it, too."""
    working, asking = asyncio.create_task(work), asyncio.create_task(answers)
    try:
        await asyncio.wait({working, asking}, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            asking.result()
        return await working
    finally:
        working.cancel()
        asking.cancel()
        await asyncio.gather(working, asking, return_exceptions=True)


@asynccontextmanager
async def serving(
    start: StartOptions,
    names: Sequence[str] | None,
    open_url: OpenUrl = open_in_browser,
    follow: Callable[[ServerId, LogLine], object] | None = None,
) -> AsyncIterator[ServerSession]:
    """Start servers, and wait until each is ready, has failed or has had its time.

    One that starts when it is needed and is known sleeps, unless it is named. Those that run in the
    deck that is open in this folder are used there.

    Args:
        start: How to start them.
        names: Their names; None for all.
        follow: Takes each line that a server logs, at once.
        open_url: As `ServerSession` takes it.

    Raises:
        CommandError: If settings cannot be used, or there is no server of a name.
    """
    session = ServerSession(start, names, open_url)
    session.follow = follow or session.follow
    async with session.engine as engine:
        known = [one.id for one in await session.definitions()]
        check_known("server", names or (), known)
        await engine.start()
        await in_daemon_thread(late.import_connection)  # which is not the servers' time
        await engine.wait_ready(start.timeout)
        waking = (engine.servers.wait_awake(ServerId(name), start.timeout) for name in names or ())
        await asyncio.gather(*waking)
        yield session
