"""All servers: configured together, each on its own, closed together.

Importing this module costs little. What speaks MCP is imported in a thread, before the first
server starts.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tui.engine.events import Publish
from tui.engine.servers.backoff import PATIENT, Backoff, RetryPolicy
from tui.engine.servers.catalog import ServerOffer
from tui.engine.servers.enablement import Enablement
from tui.engine.servers.eras import Eras
from tui.engine.servers.facilities import Facilities
from tui.engine.servers.features import Features, ServerCallError
from tui.engine.servers.live import CallNotTakenError, Connect, Host, LiveServer
from tui.engine.servers.loading import ConnectLoader
from tui.engine.servers.log import ServerLog
from tui.engine.servers.registry import Registry
from tui.engine.servers.supervisor import Supervisor
from tui.engine.servers.views import server_view
from tui.engine.servers.withholding import Gate
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.tools import JsonObject, OfferedTool, ToolCallError, ToolResult
from tui.model.catalog import Catalog, ToolView
from tui.model.chat import Progress
from tui.model.events import CatalogChanged, ServersConfigured, ServerStatusChanged
from tui.model.servers import SETTLED, ServerId, ServerStatus

SHUTDOWN_TIMEOUT: Final = 4.5
"""Seconds all servers together get to close when the manager does."""

KILL_TIMEOUT: Final = 0.5
"""Seconds those get that had to be killed then."""

RECONNECT_PATIENCE: Final = 30.0
"""Seconds a call that a server did not take in waits for the next connection."""

_RETURNING: Final = frozenset({ServerStatus.READY, ServerStatus.RETRYING, ServerStatus.STARTING})
logger = logging.getLogger(__name__)


class ServerManager:
    """The servers of a run; a `tui.engine.tools.ToolHost`.

    Use it as an async context manager: leaving it closes all servers at the same time, within
    five seconds, and leaves no process. Commands return at once and are harmless where they do
    not apply. Lives on one event loop.

    Args:
        publish: Takes `ServersConfigured`, `ServerStatusChanged`, `CatalogChanged` and
            `ServerLogged`.
        workspace: The folder that servers are told of as their first root.
        client_version: Our version, as servers are told it.
        connect: Makes attempts to connect; None for the real ones.
        eras: Remembers which servers speak which era of the protocol.
        enablement: Remembers which servers the user has disabled.
        retry: How patient to be with servers that fail.
        facilities: What servers may use of us; by default nothing but the workspace.
    """

    def __init__(
        self,
        publish: Publish,
        *,
        workspace: Path,
        client_version: str,
        connect: Connect | None = None,
        eras: Eras | None = None,
        enablement: Enablement | None = None,
        retry: RetryPolicy = PATIENT,
        facilities: Facilities | None = None,
    ) -> None:
        self._publish = publish
        self._facilities = facilities or Facilities(publish)
        self._facilities.workspaces = (workspace,)
        self._announcing: set[asyncio.Task[None]] = set()
        self._host = Host(client_version, eras or Eras(), self._facilities)
        self._enablement = enablement or Enablement()
        self._saving: set[asyncio.Task[None]] = set()
        self._retry = retry
        self._loader = ConnectLoader(connect)
        self._supervisors: dict[ServerId, Supervisor] = {}
        self._tasks: dict[Supervisor, asyncio.Task[None]] = {}
        self._registry = Registry(self._is_ready, self._facilities.gate)
        self._catalogs: dict[ServerId, Catalog] = {}
        self._changed = asyncio.Event()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closed = True
        for supervisor in self._tasks:
            supervisor.close()
        try:
            await self._wait_for_tasks(SHUTDOWN_TIMEOUT)
        finally:
            for supervisor, task in self._tasks.items():
                supervisor.kill()
                task.cancel()
            self._loader.cancel()
            for announcing in self._announcing:
                announcing.cancel()
            await self._wait_for_tasks(KILL_TIMEOUT)
            await asyncio.gather(*self._saving)

    def configure(self, definitions: Sequence[ServerDefinition]) -> None:
        """Take the servers there are, in settings order.

        New ones start unless they are withheld, missing ones are closed, changed ones restart,
        and the others go on undisturbed.
        """
        if self._closed:
            return
        before, self._supervisors = self._supervisors, {}
        added: list[Supervisor] = []
        for definition in definitions:
            known = before.get(definition.id)
            if known is not None and known.definition == definition:
                self._supervisors[definition.id] = before.pop(definition.id)
                continue
            if known is not None:
                self._registry.forget(definition.id)
            supervisor = self._add(definition)
            self._supervisors[definition.id] = supervisor
            added.append(supervisor)
        for supervisor in before.values():
            supervisor.close()
        self._registry.configure(definitions)
        self._catalogs = {server: self._registry.catalog(server) for server in self._supervisors}
        views = (server_view(s, self._catalogs[s.id]) for s in self._supervisors.values())
        self._publish(ServersConfigured(tuple(views)))
        for supervisor in added:
            supervisor.start()
        self._changed.set()

    def start(self, server: ServerId) -> None:
        """Start a stopped or failed server."""
        self._command(server, Supervisor.start)

    def stop(self, server: ServerId) -> None:
        """Stop a server; it stays stopped."""
        self._command(server, Supervisor.stop)

    def restart(self, server: ServerId) -> None:
        """Stop a server where it runs and start it; the others are left alone."""
        self._command(server, Supervisor.restart)

    def restart_all(self) -> None:
        """Restart every server that is not disabled, untrusted or invalid."""
        for server in self._supervisors:
            self.restart(server)

    def set_enabled(self, server: ServerId, *, enabled: bool) -> None:
        """Disable a server, or let it run again, also in later runs.

        One that the settings withhold stays so, unless it is its own entry that disables it;
        such a server runs until the end of this run.
        """
        supervisor = self._supervisors.get(server)
        if supervisor is None or self._closed:
            return
        supervisor.set_enabled(enabled=enabled)
        if supervisor.definition.withheld is not None:
            return
        self._enablement.set_enabled(supervisor.definition, enabled=enabled)
        saving = asyncio.create_task(asyncio.to_thread(self._enablement.save))
        self._saving.add(saving)
        saving.add_done_callback(self._saving.discard)

    def start_extension(self, extension: str) -> None:
        """Start the servers of a gemini-cli extension."""
        self._command_extension(extension, Supervisor.start)

    def stop_extension(self, extension: str) -> None:
        """Stop the servers of a gemini-cli extension; they stay stopped."""
        self._command_extension(extension, Supervisor.stop)

    def restart_extension(self, extension: str) -> None:
        """Stop the servers of a gemini-cli extension where they run and start them."""
        self._command_extension(extension, Supervisor.restart)

    def waiting_for(self) -> tuple[ServerId, ...]:
        """Name the servers whose first answer is still awaited, in settings order."""
        return tuple(s.id for s in self._supervisors.values() if s.status not in SETTLED)

    async def wait_discovered(self, patience: float) -> None:
        """Wait until every server is ready or will not be, at most `patience` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while self.waiting_for():
                    self._changed.clear()
                    await self._changed.wait()

    def offered_tools(self) -> Sequence[OfferedTool]:
        """List what the model may call now, in settings order of the servers."""
        return self._registry.offered()

    async def call_tool(
        self,
        tool: OfferedTool,
        arguments: JsonObject,
        on_progress: Callable[[Progress], None],
    ) -> ToolResult:
        """Run a tool, if its server is still the same and defines it as it was offered.

        A call that the server did not take in, because it had forgotten the session, is made
        once more when the server is connected again; no other call is ever repeated.
        Cancelling the awaiting task cancels the call on the server.

        Raises:
            ToolCallError: If no result came back.
        """
        supervisor = self._supervisors.get(tool.server)
        forgotten = supervisor.live if supervisor is not None else None
        try:
            return await self._call_once(tool, arguments, on_progress)
        except CallNotTakenError:
            await self._reconnected(tool.server, forgotten)
        return await self._call_once(tool, arguments, on_progress)

    async def _call_once(
        self,
        tool: OfferedTool,
        arguments: JsonObject,
        on_progress: Callable[[Progress], None],
    ) -> ToolResult:
        supervisor = self._supervisors.get(tool.server)
        if supervisor is None or supervisor.live is None:
            status = supervisor.status.value if supervisor is not None else "not configured"
            raise ToolCallError(f"The server {tool.server} cannot be called: it is {status}.")
        current = self._registry.current(tool)
        if current is None or current.definition_hash != tool.definition_hash:
            raise ToolCallError("The server has changed this tool meanwhile; it was not run.")
        if current.fingerprint != tool.fingerprint:
            text = f"Another server is called {tool.server} now; the tool was not run."
            raise ToolCallError(text)
        return await supervisor.live.call_tool(tool.name, arguments, on_progress)

    async def _reconnected(self, server: ServerId, forgotten: LiveServer | None) -> None:
        """Wait until a server has another connection than this one, or seems to get none."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RECONNECT_PATIENCE):
                while self._is_returning(server, forgotten):
                    self._changed.clear()
                    await self._changed.wait()

    def _is_returning(self, server: ServerId, forgotten: LiveServer | None) -> bool:
        supervisor = self._supervisors.get(server)
        if supervisor is None or supervisor.live not in {None, forgotten}:
            return False
        return supervisor.status in _RETURNING

    def features(self, server: ServerId) -> Features:
        """Give what a ready server can be asked for beside tools.

        Raises:
            ServerCallError: If it is not there.
        """
        supervisor = self._supervisors.get(server)
        if supervisor is None or supervisor.live is None:
            status = supervisor.status.value if supervisor is not None else "not configured"
            raise ServerCallError(f"The server {server} cannot be asked: it is {status}.")
        return supervisor.live.features

    def own_prompt_name(self, server: ServerId, name: str) -> str:
        """Give the name by which a server knows a prompt; any other word comes back unchanged."""
        return self._registry.own_prompt_name(server, name)

    def set_workspaces(self, folders: Sequence[Path]) -> None:
        """Change the folders that servers are told of as roots, and tell those that listen."""
        if tuple(folders) == self._facilities.workspaces:
            return
        self._facilities.workspaces = tuple(folders)
        for supervisor in self._supervisors.values():
            if supervisor.live is not None:
                task = asyncio.create_task(_announce_roots(supervisor.live.features))
                self._announcing.add(task)
                task.add_done_callback(self._announcing.discard)

    def status_changed(self, supervisor: Supervisor) -> None:
        """Publish that a server moved (its supervisor calls this)."""
        if self._supervisors.get(supervisor.id) is not supervisor:
            return
        self._changed.set()
        self._publish(
            ServerStatusChanged(
                supervisor.id,
                supervisor.status,
                supervisor.failure,
                supervisor.retry_at,
                supervisor.info,
            )
        )

    def offer_changed(self, supervisor: Supervisor, offer: ServerOffer) -> None:
        """Publish each catalog that a new offer changes (the supervisor calls this)."""
        if self._supervisors.get(supervisor.id) is not supervisor:
            return
        for name, own in self._registry.update(supervisor.id, offer).items():
            supervisor.remark(f"its prompt {own} is called {name} here: the other name is taken")
        self._publish_catalogs()

    def judge_tools_again(self) -> None:
        """Ask the gate anew which tools are withheld from the model."""
        self._registry.judge_again()
        self._publish_catalogs()

    def look_up(self, server: ServerId, shown: str) -> tuple[ToolView, OfferedTool | None] | None:
        """Find a tool by its name as shown; see `Registry.look_up`."""
        return self._registry.look_up(server, shown)

    def _publish_catalogs(self) -> None:
        for server in self._supervisors:
            catalog = self._registry.catalog(server)
            if catalog != self._catalogs.get(server):
                self._catalogs[server] = catalog
                self._publish(CatalogChanged(server, catalog))

    def _add(self, definition: ServerDefinition) -> Supervisor:
        log = ServerLog(definition.id, self._publish, definition.secrets)
        supervisor = Supervisor(
            definition,
            self._loader.load,
            self._host,
            self,
            log,
            backoff=Backoff(self._retry),
            enabled=self._enablement.is_enabled(definition),
        )
        earlier = [task for known, task in self._tasks.items() if known.id == definition.id]
        predecessor = earlier[-1] if earlier else None
        task = asyncio.create_task(
            _supervise(supervisor, predecessor, self._facilities.gate),
            name=f"server {definition.id}",
        )
        self._tasks[supervisor] = task
        task.add_done_callback(lambda done: self._forget(supervisor, done))
        return supervisor

    def _forget(self, supervisor: Supervisor, task: asyncio.Task[None]) -> None:
        self._tasks.pop(supervisor, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a server's supervisor broke down", exc_info=error)

    def _command(self, server: ServerId, command: Callable[[Supervisor], None]) -> None:
        supervisor = self._supervisors.get(server)
        if supervisor is not None and not self._closed:
            command(supervisor)

    def _command_extension(self, extension: str, command: Callable[[Supervisor], None]) -> None:
        for server, supervisor in self._supervisors.items():
            if extension and supervisor.definition.extension == extension:
                self._command(server, command)

    def _is_ready(self, server: ServerId) -> bool:
        supervisor = self._supervisors.get(server)
        return supervisor is not None and supervisor.live is not None

    async def _wait_for_tasks(self, seconds: float) -> None:
        if self._tasks:
            await asyncio.wait(set(self._tasks.values()), timeout=seconds)


async def _supervise(
    supervisor: Supervisor, predecessor: asyncio.Task[None] | None, gate: Gate
) -> None:
    """Run a supervisor once the one it replaces has let go of what both may need."""
    if predecessor is not None:
        await asyncio.wait({predecessor})
    await gate.prepare(supervisor.definition)
    await supervisor.run()


async def _announce_roots(features: Features) -> None:
    with suppress(ServerCallError):  # it is told when it connects again
        await features.announce_roots()
