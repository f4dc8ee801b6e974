"""`Engine`: settings, servers, conversation and consent under one roof, with one lifetime."""

import asyncio
import importlib
import logging
import os
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from tui import __version__
from tui.engine.chat.backend import ModelBackend, ModelError
from tui.engine.chat.conversation import Conversation
from tui.engine.chat.generation import BackendGenerator
from tui.engine.chat.message import Message
from tui.engine.consent.broker import Consent
from tui.engine.demo.definitions import demo_definitions
from tui.engine.demo.model import DemoBackend
from tui.engine.events import Publish
from tui.engine.offerings import Offerings
from tui.engine.paths import state_dir
from tui.engine.requests import DecliningDesk, Desk
from tui.engine.servers import enablement, eras
from tui.engine.servers.enablement import Enablement
from tui.engine.servers.eras import Eras
from tui.engine.servers.facilities import Facilities, OpenUrl, open_nothing
from tui.engine.servers.manager import ServerManager
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.threads import in_daemon_thread
from tui.model.chat import BackendKind, ModelView, Severity
from tui.model.events import ModelSelected, Notice, NoticeRaised
from tui.model.servers import ServerId
from tui.text import sanitize_line

if TYPE_CHECKING:
    from tui.engine.auth.credentials import ModelAccess
    from tui.engine.configuration import Configuration
    from tui.engine.settings.loader import LoadedSettings

SERVER_PATIENCE: Final = 3.0
"""Seconds after the start of the servers during which a turn waits for them.

Later ones join at the next step of the model: one slow server must not hold the user up.
"""

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What the command line says.

    Attributes:
        folder: The workspace.
        demo: Whether the offline demo was asked for, whatever keys there are.
        model: The model asked for, or None for the settings' choice.
        demo_without_key: Whether the demo stands in where there is no key.
        follow_settings: Whether edits of settings files take effect while the engine runs.
        server_patience: Seconds after the start of the servers during which a turn waits for
            those that are still starting.
    """

    folder: Path
    demo: bool = False
    model: str | None = None
    demo_without_key: bool = True
    follow_settings: bool = True
    server_patience: float = SERVER_PATIENCE


class Engine:
    """Everything that works behind the screen.

    Use it as an async context manager. Entering costs nothing; `start` reads the settings and
    starts the servers; leaving ends the turn and closes every server.

    Args:
        options: What the command line says.
        publish: Takes every event.
        consent: Answers whether a tool may run.
        desk: Puts the requests of servers to the user; declines them all unless given.
        open_url: Opens an address in the browser after the user's consent.

    Attributes:
        servers: The servers; theirs are the commands to start and stop them.
        offerings: The commands on what servers offer beside tools.
        desk: Takes the answers to requests of servers.
    """

    def __init__(
        self,
        options: EngineOptions,
        publish: Publish,
        consent: Consent,
        *,
        desk: Desk | None = None,
        open_url: OpenUrl = open_nothing,
    ) -> None:
        self._options = options
        self._publish = publish
        self._consent = consent
        self._configuration: Configuration | None = None
        self._conversation: Conversation | None = None
        self._with_demo = False
        self._enablement = Enablement(_state_file(enablement.FILE_NAME))
        self._kind = BackendKind.DEMO
        self._waiting_ends = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._stack = AsyncExitStack()
        self.desk: Desk = desk or DecliningDesk()
        facilities = Facilities(
            publish,
            self.desk,
            generator=BackendGenerator(self._backend) if desk is not None else None,
            open_url=open_url,
        )
        self.servers = ServerManager(
            publish,
            workspace=options.folder,
            client_version=__version__,
            facilities=facilities,
            eras=Eras(_state_file(eras.FILE_NAME)),
            enablement=self._enablement,
        )
        self.offerings = Offerings(self.servers, facilities, publish, self._send_message)

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.servers)
        await self._stack.enter_async_context(self.offerings)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()

    async def start(self) -> "Configuration":
        """Read the settings, open the model backend, start the servers.

        Returns:
            What was read, problems included. Nothing in the settings makes this fail.
        """
        module = await asyncio.to_thread(importlib.import_module, "tui.engine.configuration")
        configuration: Configuration = await in_daemon_thread(
            partial(
                module.load_configuration,
                self._options.folder,
                self._options.model,
                os.environ,
                demo=self._options.demo,
            )
        )
        self._configuration = configuration
        await asyncio.to_thread(self._enablement.load)
        for notice in configuration.notices:
            self._publish(NoticeRaised(notice))
        access = configuration.access
        try:
            backend = await self._open_backend(access)
        except ModelError as error:
            self._complain(error)
            access, backend = None, DemoBackend()
        if access is None and not (self._options.demo or self._options.demo_without_key):
            return configuration
        self._conversation = Conversation(
            backend,
            self.servers,
            self._consent,
            self._publish,
            max_tool_calls=configuration.settings.gemdeck.max_tool_calls,
            system_instruction=configuration.settings.gemdeck.system_instruction,
            prepare=self._wait_for_servers,
        )
        self._spawn(self._conversation.run())
        self._announce(backend, needs_setup=access is None and not self._options.demo)
        self._with_demo = access is None
        self._waiting_ends = asyncio.get_running_loop().time() + self._options.server_patience
        self.servers.configure(self._definitions())
        if self._options.follow_settings:
            self._spawn(self._follow_settings(configuration.settings))
        return configuration

    def send(self, text: str) -> None:
        """Send a message to the model; it waits while a turn runs."""
        if self._conversation is not None:
            self._conversation.send(text)

    def _send_message(self, message: Message) -> None:
        """Send a message whose form for the model differs from the shown one."""
        if self._conversation is not None:
            self._conversation.send_message(message)

    def _backend(self) -> ModelBackend | None:
        """Give the model that answers now."""
        return self._conversation.backend if self._conversation is not None else None

    def cancel_turn(self) -> None:
        """Stop the running turn, down to the wire."""
        if self._conversation is not None:
            self._conversation.cancel()

    def clear_conversation(self) -> None:
        """Begin a new conversation."""
        if self._conversation is not None:
            self._conversation.clear()

    async def wait_idle(self) -> None:
        """Wait until every message sent has been answered."""
        if self._conversation is not None:
            await self._conversation.wait_idle()

    def use_api_key(self, key: str) -> None:
        """Keep a Gemini key and let Gemini answer; the demo's servers leave."""
        self._spawn(self._switch_access("remember_api_key", key))

    def use_vertex(self, project: str, location: str) -> None:
        """Let Vertex answer, with the credentials of the environment; the demo's servers leave."""
        self._spawn(self._switch_access("open_vertex", project, location))

    def use_demo(self) -> None:
        """Stay with the offline demo model, or let it answer again with its servers."""
        if self._conversation is None:
            return
        answers_already = self._kind is BackendKind.DEMO
        backend = DemoBackend()
        if not answers_already:
            self._conversation.use_backend(backend)
        self._announce(backend, needs_setup=False)
        if not answers_already:
            self._with_demo = True
            self.servers.configure(self._definitions())

    async def _switch_access(self, function: str, *arguments: str) -> None:
        """Get an access from `tui.engine.configuration` and let its model answer."""
        if self._conversation is None:
            return
        module = importlib.import_module("tui.engine.configuration")
        try:
            access: ModelAccess = await in_daemon_thread(
                partial(getattr(module, function), *arguments)
            )
            backend = await self._open_backend(access)
        except (ValueError, OSError, ModelError) as error:
            self._complain(error)
            return
        self._conversation.use_backend(backend)
        self._announce(backend, needs_setup=False)
        self._with_demo = False
        self.servers.configure(self._definitions())

    async def _open_backend(self, access: "ModelAccess | None") -> ModelBackend:
        if access is None or self._configuration is None:
            return DemoBackend()
        module = importlib.import_module("tui.engine.configuration")
        backend: ModelBackend = await in_daemon_thread(
            partial(module.open_backend, access, self._configuration.settings.gemdeck)
        )
        return backend

    def _complain(self, error: Exception) -> None:
        """Say why there is no other model than before."""
        advice = getattr(error, "advice", "") or "Nothing has changed."
        notice = Notice(Severity.ERROR, sanitize_line(str(error)), sanitize_line(advice))
        self._publish(NoticeRaised(notice))

    def _announce(self, backend: ModelBackend, *, needs_setup: bool) -> None:
        self._kind = backend.kind
        model = ModelView(sanitize_line(backend.model, 64), backend.kind, needs_setup)
        self._publish(ModelSelected(model))

    async def _follow_settings(self, loaded: "LoadedSettings") -> None:
        """Apply edits of the settings files to the servers, for as long as the engine runs."""
        module = await asyncio.to_thread(importlib.import_module, "tui.engine.reload")
        options = self._options
        await module.SettingsReloader(
            options.folder, options.model, loaded, self._apply_settings, self._publish
        ).run()

    def _apply_settings(self, loaded: "LoadedSettings") -> None:
        """Let the servers be those of new settings; all that did not change go on."""
        if self._configuration is not None:
            self._configuration = replace(self._configuration, settings=loaded)
            self.servers.configure(self._definitions())

    def _definitions(self) -> tuple[ServerDefinition, ...]:
        """Give the user's servers and, in the demo, the bundled ones under names still free."""
        own = self._configuration.settings.servers if self._configuration is not None else ()
        if not self._with_demo:
            return own
        taken = {definition.id for definition in own}
        bundled = (
            replace(definition, id=ServerId(f"demo-{definition.id}"))
            if definition.id in taken
            else definition
            for definition in demo_definitions()
        )
        return (*own, *bundled)

    async def _wait_for_servers(self) -> None:
        patience = self._waiting_ends - asyncio.get_running_loop().time()
        if patience > 0:
            await self.servers.wait_discovered(patience)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        """Let go of a task that has ended; say so if it broke down."""
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        _log.error("A task of the engine broke down", exc_info=error)
        text = f"A part of the engine failed unexpectedly ({type(error).__name__})."
        advice = "The log tells more. Restart gemdeck if it does not answer."
        self._publish(NoticeRaised(Notice(Severity.ERROR, text, advice)))


def _state_file(name: str) -> Path | None:
    """Give the place of a file of our own; None where there can be none."""
    try:
        return state_dir() / name
    except OSError:
        return None
