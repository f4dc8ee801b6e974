"""Starts a server that stands in no settings yet, for a look at what it is."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from tui.engine import late
from tui.engine.background import TaskSet, in_daemon_thread
from tui.engine.definitions.definition import ServerDefinition, SettingsProblem, secrets_of
from tui.engine.desk import Desk
from tui.engine.mcp.catalog.kept_catalogs import CatalogStore
from tui.engine.mcp.catalog.registry import ToolVisibility
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.session.era import EraCache
from tui.engine.mcp.transports.stdio.zygote import Zygote
from tui.engine.reload import problem_notice
from tui.model.events import Event, NoticeRaised, ServerStatusChanged, ServerTried
from tui.model.servers import Failure, Origin, ServerStatus

PATIENCE: Final = 120.0
"""Seconds that a server gets: its package may have to be fetched first."""

Read = Callable[[str, Mapping[str, Any]], tuple[ServerDefinition, Iterable[SettingsProblem]]]
"""Reads an entry as if it stood in the user's settings; says what is wrong with it. Blocks."""


class ServerTrials:
    """Starts an entry as it would start from the settings, beside all servers; one at a time.

    What happens to it is told by `ServerTried`, until it is known what it offers or why it does not
    start. Then it ends. It cannot ask anybody.

    Args:
        read: Reads the entry.
        context: What the connections of the run share.
    """

    def __init__(self, read: Read, context: ClientContext) -> None:
        self._read, self._context = read, context
        self._tasks = TaskSet("the trial of a server broke down")

    async def aclose(self) -> None:
        await self._tasks.aclose()

    def begin(self, name: str, entry: Mapping[str, Any], scope: str) -> None:
        """Start a server; one that runs already ends."""
        self.end()
        self._tasks.start(self._try(name, entry, is_project=scope == "project"))

    def end(self) -> None:
        """End what was begun, and forget what came of it."""
        self._tasks.cancel()
        self._context.publish(ServerTried(None))

    async def _try(self, name: str, entry: Mapping[str, Any], *, is_project: bool) -> None:
        is_over = False

        def tell(event: Event) -> None:
            if not is_over:
                self._context.publish(ServerTried(event))

        one, problems = await in_daemon_thread(partial(self._read, name, entry))
        for problem in problems:
            tell(NoticeRaised(problem_notice(problem)))
        if is_project:  # its servers get fewer variables
            one = replace(one, entry=replace(one.entry, origin=Origin.PROJECT))
        self._context.redactor.register(*secrets_of([one]))
        alone = replace(
            self._context,
            publish=tell,
            desk=Desk(tell, attended=False),
            generator=None,
            subscriptions={},
            log_levels={},
            visibility=ToolVisibility(),
            catalogs=CatalogStore(),
            sleep_after=0,
            eras=EraCache(),
            zygote=Zygote(),
        )
        async with ServerManager(tell, alone, late.import_connection) as servers:
            try:
                servers.configure([one])
                await servers.wait_discovered(PATIENCE)
                if servers.waiting_for():
                    failure = Failure(f"No response within {PATIENCE:g} s.")
                    tell(ServerStatusChanged(one.id, ServerStatus.FAILED, failure))
            finally:
                is_over = True  # how it ends is nobody's matter
