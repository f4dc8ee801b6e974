"""The servers of a run: configured and closed together, each supervised on its own.

This module does not import the MCP SDK; a thread does, before the first server starts.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from tui.engine.background import TaskSet
from tui.engine.bus import Publish
from tui.engine.definitions.definition import ServerDefinition, shown_sandbox, shown_target
from tui.engine.files.paths import shown_path
from tui.engine.files.state_file import Content, StateFile
from tui.engine.mcp.backoff import PATIENT, Backoff, RetryPolicy
from tui.engine.mcp.catalog.offer import ServerOffer
from tui.engine.mcp.catalog.offered_tool import (
    CallNotTakenError,
    OfferedTool,
    OwnTool,
    RenderedPrompt,
    ToolCallError,
    ToolResult,
)
from tui.engine.mcp.catalog.permit import Permit
from tui.engine.mcp.catalog.registry import Registry
from tui.engine.mcp.catalog.skill_entry import Skill
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.network_watch import watch_network
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.session.task_state import TaskState
from tui.engine.mcp.supervisor import Connect, Supervisor
from tui.engine.mcp.tasks import RemoteTasks
from tui.engine.mcp.transports.stdio.launch import environment_names
from tui.model import events as e
from tui.model.bounded_json import as_list
from tui.model.catalog import Catalog
from tui.model.chat import Progress, Severity
from tui.model.servers import ServerId, ServerStatus, ServerUsage, ServerView, Transport
from tui.model.settings import EVERYTHING, Profile
from tui.text import sanitize_line

if TYPE_CHECKING:
    from tui.engine.mcp.session.connection import Connection
    from tui.engine.mcp.session.features import Features

MAX_ENTRIES: Final = 2_000
"""Most entries that are read; nobody disables as many by hand."""

ENABLEMENT_FILE: Final = "disabled-servers.json"

_log: Final = logging.getLogger(__name__)

Key = tuple[str, str]
"""A server's origin and id: a project's server is not the user's server of the same name."""

LAUNCH_PATIENCE: Final = 1.0
"""Seconds that the import of the MCP SDK waits for the processes of all servers."""

SHUTDOWN_TIMEOUT: Final = 4.5
"""Seconds that all servers together get to close."""

KILL_TIMEOUT: Final = 0.5
"""Seconds that the killed ones get after that."""

SAVE_TIMEOUT: Final = 5.0
"""Seconds to write which servers are enabled."""

RECONNECT_PATIENCE: Final = 30.0
"""Seconds that a call the server did not run waits for the next connection."""

WAKE_PATIENCE: Final = 60.0
"""Seconds that whoever needs a server that sleeps waits until it is awake."""

_CONDITION: Final = (
    *("status", "failure", "retry_at", "info", "since", "restarted", "transport", "lacks"),
)
_RETURNING: Final = frozenset({ServerStatus.READY, ServerStatus.RETRYING, ServerStatus.STARTING})


class Enablement:
    """Remembers which servers are disabled, in a file or only for this run.

    `load` and `save` block on the file and belong in a thread; the others use memory only.

    Args:
        path: The file; its folder exists.
        on_problem: Takes a sentence for the user if the file cannot be read or written; see
            `StateFile`.
    """

    def __init__(
        self, path: Path | None = None, on_problem: Callable[[str], None] = _log.warning
    ) -> None:
        self._file = StateFile(path, on_problem=on_problem)
        self._disabled: frozenset[Key] = frozenset()
        self._changes: dict[Key, bool] = {}

    def load(self) -> None:
        """Read the file; an unreadable one counts as empty."""
        self._disabled = _disabled(self._file.load() or {})

    def is_enabled(self, definition: ServerDefinition) -> bool:
        """Return whether the user has left a server enabled."""
        key = _key(definition)
        return self._changes.get(key, key not in self._disabled)

    def set_enabled(self, definition: ServerDefinition, *, enabled: bool) -> None:
        self._changes[_key(definition)] = enabled

    def save(self) -> None:
        """Write the changes of this run; those that another gemdeck has written stay."""
        changes = dict(self._changes)

        def change(content: Content) -> Content:
            kept = {key for key in _disabled(content) if changes.get(key) is not True}
            kept |= {key for key, enabled in changes.items() if not enabled}
            listed = [{"origin": origin, "server": server} for origin, server in sorted(kept)]
            return {**content, "disabled": listed}

        self._file.update(change)


def _disabled(content: Content) -> frozenset[Key]:
    """Read the file's content, skipping malformed entries."""
    found: set[Key] = set()
    for entry in as_list(content.get("disabled"))[:MAX_ENTRIES]:
        match entry:
            case {"origin": str() as origin, "server": str() as server}:
                found.add((origin, server))
    return frozenset(found)


def _key(definition: ServerDefinition) -> Key:
    return definition.entry.origin.value, definition.id


class ServerManager:
    """The servers of a run, and how their tools are called.

    Use it as an async context manager: leaving it closes all servers at the same time, within
    five seconds, and leaves no process behind. Commands return at once and do nothing if they do
    not apply. Lives on one event loop.

    Args:
        publish: Takes `ServersConfigured`, `ServerStatusChanged`, `CatalogChanged` and
            `ServerLogged`.
        context: What all connections share.
        import_connect: Imports the function that makes connections; slow, run in a thread.
        enablement: Remembers which servers the user has disabled.
        retry: When to start failed servers again.

    Attributes:
        catalogs: What each server offers, as shown.
        registry: The names of tools and prompts.
        wire: What was said with them.
        tasks: The calls that they run as tasks.
        redactor: Knows what stands for their secrets.
    """

    def __init__(
        self,
        publish: Publish,
        context: ClientContext,
        import_connect: Callable[[], Connect],
        *,
        enablement: Enablement | None = None,
        retry: RetryPolicy = PATIENT,
    ) -> None:
        self._publish, self._context = publish, context
        self.wire, self.redactor = context.wire, context.redactor
        self._enablement = enablement or Enablement()
        self._saving = TaskSet("whether a server is enabled could not be saved")
        self._retry, self._import_connect = retry, import_connect
        self._importing: asyncio.Task[Connect] | None = None
        self._supervisors: dict[ServerId, Supervisor] = {}
        self._tasks = TaskSet("a server's supervisor broke down")
        self._running: dict[Supervisor, asyncio.Task[None]] = {}
        self.registry = Registry(
            self._is_callable,
            context.visibility,
            lambda: context.budget,
            lambda server: self._status(server) in _RETURNING or self._is_callable(server),
        )
        self.catalogs: dict[ServerId, Catalog] = {}
        self.tasks = RemoteTasks(self._reach, publish)
        self._changed = asyncio.Event()
        self._closed = False

    async def __aenter__(self) -> Self:
        self._unwatch = watch_network(self.network_changed)
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._closed = True
        self._unwatch()
        await self.tasks.aclose()
        for supervisor in self._running:
            supervisor.close()
        with closing(self._context.zygote):
            try:
                await self._tasks.wait(SHUTDOWN_TIMEOUT)
            finally:
                for supervisor in self._running:
                    supervisor.kill()
                self._tasks.cancel()
                if self._importing is not None:
                    self._importing.cancel()
                await self._tasks.wait(KILL_TIMEOUT)
                await self._saving.wait(SAVE_TIMEOUT)
                self._saving.cancel()
                await asyncio.to_thread(self._context.catalogs.close, SAVE_TIMEOUT)

    def configure(self, definitions: Sequence[ServerDefinition]) -> None:
        """Set the servers, in settings order.

        New ones start unless they are withheld or sleep, missing ones close, changed ones restart,
        and the others keep running, also where only other tools are left out. See
        `Supervisor.redefine` for those that are to run in another place.
        """
        if self._closed:
            return
        before, self._supervisors = self._supervisors, {}
        added: list[Supervisor] = []
        for definition in definitions:
            known = before.get(definition.id)
            if known is not None and _is_same(known.definition, definition):
                known.redefine(definition)
                self._supervisors[definition.id] = before.pop(definition.id)
                continue
            if known is not None:
                self.registry.forget(definition.id)
            self._supervisors[definition.id] = supervisor = self._add(definition)
            added.append(supervisor)
        for supervisor in before.values():
            supervisor.close()
        self.registry.configure(definitions)
        self.catalogs = {server: self.registry.catalog(server) for server in self._supervisors}
        left_out = self._context.outside.variables[1]
        views = (server_view(s, self.catalogs[s.id], left_out) for s in self._supervisors.values())
        self._publish(e.ServersConfigured(tuple(views)))
        for supervisor in added:
            supervisor.begin()
        self._changed.set()

    def start(self, server: ServerId) -> None:
        self._command(server, Supervisor.start)

    def stop(self, server: ServerId) -> None:
        """Stop a server; it stays stopped."""
        self._command(server, Supervisor.stop)

    def restart(self, server: ServerId) -> None:
        self._command(server, Supervisor.restart)

    def restart_all(self) -> None:
        """Restart every server that is not disabled, untrusted or invalid."""
        for server in self._supervisors:
            self.restart(server)

    def network_changed(self) -> None:
        """Try the servers on the network again that are away."""
        for supervisor in self._supervisors.values():
            supervisor.network_changed()

    def set_enabled(self, server: ServerId, *, enabled: bool) -> None:
        """Disable or enable a server, also for later runs.

        A server that the settings withhold stays withheld, unless its own entry disables it; then
        it runs until the end of this run.
        """
        supervisor = self._supervisors.get(server)
        if supervisor is None or self._closed:
            return
        supervisor.set_enabled(enabled=enabled)
        if supervisor.definition.withheld is not None:
            return
        self._enablement.set_enabled(supervisor.definition, enabled=enabled)
        self._saving.start(asyncio.to_thread(self._enablement.save))

    def switch_tools(self, server: ServerId, tool: str | None, *, off: bool) -> None:
        """Switch a tool off for the model, or on again; see `Registry.switch`."""
        self.registry.switch(server, tool, off=off)
        self._publish_catalogs()

    def waiting_for(self, profile: Profile = EVERYTHING) -> tuple[ServerId, ...]:
        """Return the servers that are starting for the first time."""
        starting = (s.id for s in self._supervisors.values() if s.is_first_start)
        return tuple(filter(profile.includes, starting))

    async def wait_discovered(self, patience: float) -> None:
        """Wait until each server has been ready, has failed, or has had its time from its start."""

        async def wait(one: Supervisor) -> None:
            await self.wait_while(lambda: one.is_queued, None)
            await self.wait_while(lambda: one.is_first_start, patience)

        await asyncio.gather(*map(wait, self._supervisors.values()))

    async def wait_imported(self) -> None:
        """Wait until what speaks MCP is imported, if a server starts; it may have failed."""
        if self._importing or any(one.is_launching for one in self._supervisors.values()):
            await asyncio.wait({self._import()})

    def offered_tools(self, profile: Profile = EVERYTHING) -> Sequence[OfferedTool]:
        return self.registry.offered(profile)

    def held_tools(self, profile: Profile = EVERYTHING) -> Sequence[OfferedTool]:
        return self.registry.held(profile)

    def load_tools(self, tools: Sequence[OfferedTool]) -> None:
        self.registry.load(tools)
        self._publish_catalogs()

    @property
    def callable_servers(self) -> tuple[ServerId, ...]:
        """The servers that can be used now, asleep or not, in settings order."""
        return tuple(one.id for one in self._supervisors.values() if one.is_callable)

    def instructions(self) -> Sequence[tuple[ServerId, str]]:
        if not self._context.gives_instructions:
            return ()
        ready = (s for s in self._supervisors.values() if s.is_callable)
        return [(s.id, s.info.instructions) for s in ready if s.info and s.info.instructions]

    async def call_tool(
        self, permit: Permit, on_progress: Callable[[Progress], None]
    ) -> ToolResult:
        """Run a call that was allowed, if the server has not changed the tool.

        A server that sleeps wakes for it, and what it offers then is reviewed first.
        If the server had lost the session and so did not run the call, it is repeated once after
        reconnecting; no other call is ever repeated. Cancelling the caller cancels the call on
        the server.

        Raises:
            ToolCallError: If no result came back.
            ServerCallError: If no answer came to a request that goes as it is.
        """
        permit.use()
        tool = permit.tool
        may_be = self.redactor.may_hold_mask(permit.arguments)  # a thread costs half a short call
        if may_be and (words := await asyncio.to_thread(self.why_masked, tool, permit.arguments)):
            raise ToolCallError(words)
        if isinstance(tool, OwnTool):
            permit.check()
            return await tool.run(permit.arguments)
        await self.wait_awake(tool.server, WAKE_PATIENCE)
        forgotten = self._live(tool.server)
        try:
            return await self._call_once(permit, on_progress)
        except CallNotTakenError:
            await self.wait_while(
                lambda: self._is_returning(tool.server, forgotten), RECONNECT_PATIENCE
            )
        return await self._call_once(permit, on_progress)

    def why_masked(self, tool: OfferedTool, arguments: Mapping[str, Any]) -> str:
        """Say why a call cannot be made whose arguments contain a mask; or ""."""
        mask = "" if isinstance(tool, OwnTool) else self.redactor.mask_in(arguments)
        words = f"The arguments contain {mask}, a placeholder for a secret that gemdeck masks."
        ways = "Change only the text around it, or edit the file outside gemdeck."
        return f"{words} The call was not run. {ways}" if mask else ""

    async def _call_once(
        self, permit: Permit, on_progress: Callable[[Progress], None]
    ) -> ToolResult:
        tool = permit.tool
        live = self._live(tool.server)
        if live is None:
            raise ToolCallError(self._away_words(tool.server))
        current = self.registry.current(tool)
        if current is None or current.definition_hash != tool.definition_hash:
            raise ToolCallError("The server has changed this tool in the meantime; it was not run.")
        if current.fingerprint != tool.fingerprint:
            raise ToolCallError(f"{tool.server} is now a different server; the tool was not run.")

        async def call() -> ToolResult:
            permit.check()
            if permit.request is not None:
                allowed = {"name": tool.name, "arguments": permit.arguments}
                sent = {name: allowed.get(name, given) for name, given in permit.request.items()}
                answer = await live.send_call(sent, on_progress)
                return ToolResult((), "", "error" in answer, raw=answer)
            result = await live.call_tool(tool.name, permit.arguments, on_progress)
            if isinstance(result, TaskState):
                result = await self.tasks.attend(tool, result, on_progress)
            return result

        supervisor = self._supervisors[tool.server]
        try:
            with live.calling():
                result = await supervisor.usage.time(tool.view.name, call(), live.clock)
        except ToolCallError as error:
            if refused := await supervisor.look(str(error)):
                error.advice = f"{error.advice} {refused.words}".strip()
            raise
        if result.is_error and (refused := await supervisor.look(result.display)):
            return replace(result, display=f"{result.display}\n{refused.words}")
        return result

    async def _reach(self, tool: OfferedTool, patience: float) -> "Connection | None":
        """Return the connection of a tool's very server, once that is awake or back."""

        def find() -> Supervisor | None:
            found = self._supervisors.get(tool.server)
            return found if found and found.definition.fingerprint == tool.fingerprint else None

        def is_returning() -> bool:
            if (found := find()) is None or found.wake():
                return found is not None
            is_ready = found.live is not None and found.status is ServerStatus.READY
            return not is_ready and found.status in {ServerStatus.STOPPING, *_RETURNING}

        await self.wait_while(is_returning, patience)
        return found.live if (found := find()) is not None else None

    def away_words(self, server: ServerId) -> str:
        """Say that a server cannot be called now, with its status; nothing while it is ready."""
        return "" if self._is_callable(server) else self._away_words(server)

    def _away_words(self, server: ServerId) -> str:
        return f"The server {server} cannot be called ({self._status(server)})."

    async def wait_awake(self, server: ServerId, patience: float) -> None:
        """Wake a server if it sleeps, and wait until it is ready or cannot be."""
        await self.wait_while(
            lambda: server in self._supervisors and self._supervisors[server].wake(), patience
        )

    async def awake(self, server: ServerId) -> "Features":
        """Return the prompts and resources of a server, which wakes if it sleeps.

        Raises:
            ServerCallError: If it cannot be asked.
        """
        await self.wait_awake(server, WAKE_PATIENCE)
        return self.features(server)

    async def wait_while(self, condition: Callable[[], bool], patience: float | None) -> None:
        """Wait until a condition, checked whenever a server's status changes, no longer holds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while condition():
                    self._changed.clear()
                    await self._changed.wait()

    def wake(self) -> None:
        self._changed.set()  # whoever waits checks its condition again

    def _is_returning(self, server: ServerId, forgotten: "Connection | None") -> bool:
        one = self._supervisors.get(server)
        return one is not None and one.live in {None, forgotten} and one.status in _RETURNING

    def features(self, server: ServerId) -> "Features":
        """Return the prompts and resources of a server; raises `ServerCallError` unless ready."""
        live = self._live(server)
        if live is None:
            raise ServerCallError(f"The server {server} cannot be used ({self._status(server)}).")
        return live.features

    def usage(self, server: ServerId) -> ServerUsage:
        """Return what was measured of a server until now."""
        found = self._supervisors.get(server)
        return found.usage.read(found.live) if found is not None else ServerUsage()

    async def render_prompt(
        self, server: ServerId, name: str, arguments: Mapping[str, str]
    ) -> RenderedPrompt:
        """Let a server render a prompt, by its name here; raises `ServerCallError`."""
        features = await self.awake(server)
        return await features.get_prompt(self.registry.own_prompt_name(server, name), arguments)

    def _status_changed(self, supervisor: Supervisor) -> None:
        if self._supervisors.get(supervisor.id) is not supervisor:
            return
        self._changed.set()
        self._publish(e.ServerStatusChanged(supervisor.id, **_condition(supervisor)))
        self.registry.count_again()
        self._publish_catalogs()

    def _offer_changed(self, supervisor: Supervisor, offer: ServerOffer) -> None:
        """Publish each catalog that a new offer changes."""
        if self._supervisors.get(supervisor.id) is not supervisor:
            return
        self.registry.update(supervisor.id, offer)
        self._publish_catalogs()

    def judge_tools_again(self) -> None:
        """Decide again which tools are withheld from the model."""
        self.registry.judge_again()
        self._publish_catalogs()

    def renew_skill(self, server: ServerId, skill: Skill) -> None:
        """Take how a server describes a skill now; see `Registry.renew_skill`."""
        self.registry.renew_skill(server, skill)
        self._publish_catalogs()

    def _publish_catalogs(self) -> None:
        for server in self._supervisors:
            catalog = self.registry.catalog(server)
            if catalog != self.catalogs.get(server):
                self.catalogs[server] = catalog
                self._publish(e.CatalogChanged(server, catalog))
        if self.registry.newly_exceeds():
            words = f"Too many tools: the model gets at most {self._context.budget.words()}."
            advice = "It searches the other tools and loads those that it needs."
            self._publish(e.NoticeRaised(e.Notice(Severity.INFO, words, advice)))

    async def _connect(self) -> Connect:
        """Return the function that makes connections; imported when the first server starts."""
        self._changed.set()
        return await asyncio.shield(self._import())

    def _import(self) -> "asyncio.Task[Connect]":
        if self._importing is None:
            self._importing = asyncio.create_task(self._import_late(), name="import the MCP SDK")
        return self._importing

    async def _import_late(self) -> Connect:
        """Import what speaks MCP once the first processes run: it holds up the event loop."""
        servers = self._supervisors.values()
        await self.wait_while(
            lambda: any(one.is_launching and not one.is_queued for one in servers), LAUNCH_PATIENCE
        )
        return await asyncio.to_thread(self._import_connect)

    def _add(self, definition: ServerDefinition) -> Supervisor:
        context, server = self._context, definition.id
        tap = context.wire.tap(server)
        log = ServerLog(server, self._publish, definition.secrets, context.redactor, tap)
        supervisor = Supervisor(
            definition,
            self._connect,
            self._context,
            log,
            on_status=self._status_changed,
            on_offer=self._offer_changed,
            backoff=Backoff(self._retry, gives_up=definition.transport is Transport.STDIO),
            enabled=self._enablement.is_enabled(definition),
        )
        supervisor.others = lambda: [one.definition for one in self._supervisors.values()]
        earlier = [task for known, task in self._running.items() if known.id == server]

        async def supervise() -> None:
            if earlier:  # the one it replaces ends first
                await asyncio.wait(earlier[-1:])
            await supervisor.run()

        self._running[supervisor] = task = self._tasks.start(supervise(), f"server {server}")
        task.add_done_callback(lambda _: self._running.pop(supervisor, None))
        return supervisor

    def _command(self, server: ServerId, command: Callable[[Supervisor], None]) -> None:
        supervisor = self._supervisors.get(server)
        if supervisor is not None and not self._closed:
            command(supervisor)

    def _live(self, server: ServerId) -> "Connection | None":
        supervisor = self._supervisors.get(server)
        return supervisor.live if supervisor is not None else None

    def _is_callable(self, server: ServerId) -> bool:
        supervisor = self._supervisors.get(server)
        return supervisor is not None and supervisor.is_callable

    def _status(self, server: ServerId) -> str:
        supervisor = self._supervisors.get(server)
        return supervisor.status.value if supervisor is not None else "not configured"


def _is_same(one: ServerDefinition, other: ServerDefinition) -> bool:
    """Return whether two differ at most in when and where they start, and the tools left out."""
    only = replace(one, include_tools=other.include_tools, exclude_tools=other.exclude_tools)
    is_outside = (other if one.withheld is None else one).is_outside
    return replace(only, start=other.start, is_outside=is_outside) == other


class FirstStarts:
    """Waits for the servers that a turn would otherwise miss, each of them once.

    Args:
        servers: The servers.

    Attributes:
        patience: Seconds that one message waits.
    """

    def __init__(self, servers: ServerManager) -> None:
        self.patience = 0.0
        self._servers = servers
        self._given_up = set[ServerId]()

    async def wait(self, profile: Profile) -> tuple[ServerId, ...]:
        """Wait at most `patience`; return the servers to go without, if not named before."""
        named, waiting_for = frozenset(self._given_up), partial(self._servers.waiting_for, profile)
        await self._servers.wait_while(
            lambda: not self._given_up.issuperset(waiting_for()), self.patience
        )
        missing = tuple(one for one in waiting_for() if one not in named)
        self._given_up.update(missing)
        return missing

    def skip(self) -> None:
        """Go without the servers that are still starting."""
        self._given_up.update(self._servers.waiting_for())
        self._servers.wake()


def _condition(supervisor: Supervisor) -> dict[str, Any]:
    """Return what a view and the event of its change have of a server's status."""
    return {name: getattr(supervisor, name) for name in _CONDITION}


def server_view(
    supervisor: Supervisor, catalog: Catalog, left_out: Sequence[str] = ()
) -> ServerView:
    """Return the current state of a server for the UI, with its catalog.

    Args:
        supervisor: The server's.
        catalog: What it offers.
        left_out: The variables that no server gets outside the opened folder.
    """
    definition = supervisor.definition
    entry, cwd = definition.entry, definition.launch.cwd
    passed, withheld, lost = environment_names(definition, os.environ, left_out)
    return ServerView(
        id=definition.id,
        origin=entry.origin,
        target=shown_target(definition),
        description=definition.description,
        catalog=catalog,
        **_condition(supervisor),
        environment=passed,
        variables=tuple(sanitize_line(name) for name in sorted(definition.launch.env)),
        withheld=withheld,
        is_outside=definition.is_outside,
        left_out=lost,
        cwd="" if cwd is None else shown_path(cwd, Path.home()),
        timeout=definition.timeout,
        trusted=definition.trust,
        account=sanitize_line(definition.endpoint.sign_in.oauth.account),
        source=entry.source + (f", line {entry.line}" if entry.line else ""),
        extension=entry.extension,
        sandbox=shown_sandbox(definition),
        refused=supervisor.refused,
    )
