"""`Engine`: settings, servers, conversation and consent under one roof, with one lifetime."""

import asyncio
import importlib
import logging
import os
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from tui import __version__
from tui.engine.chat.backend import ModelBackend, ModelError
from tui.engine.chat.conversation import Conversation
from tui.engine.chat.generation import BackendGenerator
from tui.engine.chat.message import Message
from tui.engine.chat.turn import TurnLimits
from tui.engine.consent.folders.keeper import FolderKeeper, Hooks
from tui.engine.consent.protocol import Consent
from tui.engine.consent.safeguards import Safeguards
from tui.engine.demo.definitions import demo_definitions
from tui.engine.demo.model import DemoBackend
from tui.engine.events import Publish
from tui.engine.following import SettingsFollower
from tui.engine.offerings import Offerings
from tui.engine.options import EngineOptions
from tui.engine.paths import state_dir
from tui.engine.problems import Problems
from tui.engine.redaction import Redactor
from tui.engine.requests import DecliningDesk, Desk
from tui.engine.servers import enablement, eras
from tui.engine.servers.enablement import Enablement
from tui.engine.servers.eras import Eras
from tui.engine.servers.facilities import Facilities, OpenUrl, open_nothing
from tui.engine.servers.manager import ServerManager
from tui.engine.settings.definitions import ServerDefinition, secrets_of
from tui.engine.threads import in_daemon_thread
from tui.model.chat import BackendKind, ModelView, Severity
from tui.model.events import ModelSelected, Notice, NoticeRaised
from tui.model.servers import ServerId
from tui.text import sanitize_line

if TYPE_CHECKING:
    from tui.engine.auth.credentials import ModelAccess
    from tui.engine.configuration import Configuration
    from tui.engine.settings.loader import LoadedSettings
    from tui.model.settings import GemdeckSettings

__all__ = ["Engine", "EngineOptions"]

_log: Final = logging.getLogger(__name__)


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
        redactor: Is told every secret of the settings and the model's key.

    Attributes:
        servers: The servers; theirs are the commands to start and stop them.
        offerings: The commands on what servers offer beside tools.
        desk: Takes the answers to requests of servers.
        policy: The rules on tools; takes them back.
        tool_review: Takes the answers on tools that servers changed.
        folder: Takes the answers on what the opened folder brings.
    """

    def __init__(
        self,
        options: EngineOptions,
        publish: Publish,
        consent: Consent,
        *,
        desk: Desk | None = None,
        open_url: OpenUrl = open_nothing,
        redactor: Redactor | None = None,
    ) -> None:
        self._options = options
        self._publish = publish
        self._configuration: Configuration | None = None
        self._conversation: Conversation | None = None
        self._with_demo = False
        self._redactor = redactor or Redactor()
        self._problems = Problems(publish, self._redactor)
        self._safeguards = Safeguards(
            consent,
            publish,
            options.folder,
            _state_dir(),
            has_user=desk is not None,
            problems=self._problems,
            redactor=self._redactor,
        )
        self.policy = self._safeguards.policy
        self.tool_review = self._safeguards.review
        self._settings = SettingsFollower(
            options.folder,
            options.model,
            self._apply_settings,
            publish,
            watches=options.follow_settings,
        )
        self.folder = FolderKeeper(
            options.folder, publish, self._make_hooks(), asks=desk is not None
        )
        self._enablement = Enablement(_state_file(enablement.FILE_NAME), self._problems)
        self._kind = BackendKind.DEMO
        self._waiting_ends = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._stack = AsyncExitStack()
        self.desk: Desk = desk or DecliningDesk()
        self._open_url = open_url
        self._facilities = self._make_facilities(open_url, has_user=desk is not None)
        self.servers = self._make_servers(self._facilities)
        self.offerings = Offerings(self.servers, self._facilities, publish, self._send_message)

    def _make_hooks(self) -> Hooks:
        return Hooks(
            self._spawn,
            self._settings.reload,
            self._configure_servers,
            self._settings.load,
            self._safeguards.log.record_trust,
        )

    def _make_facilities(self, open_url: OpenUrl, *, has_user: bool) -> Facilities:
        """Say what servers may use of us; without a user nothing that has to be asked for."""
        return Facilities(
            self._publish,
            self.desk,
            generator=BackendGenerator(self._backend) if has_user else None,
            open_url=open_url,
            gate=self._safeguards.gate,
        )

    def _make_servers(self, facilities: Facilities) -> ServerManager:
        return ServerManager(
            self._publish,
            workspace=self._options.folder,
            client_version=__version__,
            facilities=facilities,
            eras=Eras(_state_file(eras.FILE_NAME)),
            enablement=self._enablement,
        )

    async def __aenter__(self) -> Self:
        self._problems.attach()
        self._stack.push_async_callback(self._safeguards.aclose)
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
        options = self._options
        self.folder.begin(_state_dir(), options.trusted_folders, self._problems)
        configuration: Configuration = await in_daemon_thread(
            partial(
                module.load_configuration,
                self._options.folder,
                self._options.model,
                os.environ,
                demo=self._options.demo,
                project=self.folder.gate(),
            )
        )
        self.folder.take(configuration.settings)
        self._configuration = configuration
        self._facilities.max_result_size = configuration.settings.gemdeck.max_result_size
        await asyncio.to_thread(self._enablement.load)
        await self._safeguards.open(self.servers)
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
        self._converse(backend, configuration.settings.gemdeck)
        self._announce(backend, needs_setup=access is None and not self._options.demo)
        self._with_demo = access is None
        self._waiting_ends = asyncio.get_running_loop().time() + self._options.server_patience
        self._configure_servers()
        if options.follow_settings or self.folder.asks:
            self._spawn(self._settings.run(configuration.settings, self.folder.gate))
        return configuration

    def _converse(self, backend: ModelBackend, settings: "GemdeckSettings") -> None:
        self._conversation = Conversation(
            backend,
            self.servers,
            self._safeguards.consent,
            self._publish,
            limits=TurnLimits(settings.max_tool_calls, settings.max_result_size),
            system_instruction=settings.system_instruction,
            prepare=self._wait_for_servers,
        )
        self._spawn(self._conversation.run())

    def send(self, text: str) -> None:
        """Send a message to the model; it waits while a turn runs."""
        if self._conversation is not None:
            self._conversation.send(text)

    def open_link(self, url: str) -> None:
        """Open an address in the browser, to which the user has agreed."""
        self._spawn(self._open_link(url))

    async def _open_link(self, url: str) -> None:
        if not await self._open_url(url):
            words = "There is no program here to open links with."
            self._publish(NoticeRaised(Notice(Severity.WARNING, words)))

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
        self._redactor.register(key)
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
            self._configure_servers()

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
        self._configure_servers()

    async def _open_backend(self, access: "ModelAccess | None") -> ModelBackend:
        if access is None or self._configuration is None:
            return DemoBackend()
        if access.api_key is not None:
            self._redactor.register(access.api_key.get_secret_value())
        module = importlib.import_module("tui.engine.configuration")
        backend: ModelBackend = await in_daemon_thread(
            partial(module.open_backend, access, self._configuration.settings.gemdeck)
        )
        return backend

    def _complain(self, error: Exception) -> None:
        """Say why there is no other model than before."""
        advice = getattr(error, "advice", "") or "Nothing has changed."
        text = sanitize_line(self._redactor.redact(str(error)))
        self._publish(NoticeRaised(Notice(Severity.ERROR, text, sanitize_line(advice))))

    def _announce(self, backend: ModelBackend, *, needs_setup: bool) -> None:
        self._kind = backend.kind
        model = ModelView(sanitize_line(backend.model, 64), backend.kind, needs_setup)
        self._publish(ModelSelected(model))

    def _apply_settings(self, loaded: "LoadedSettings") -> None:
        """Let the servers be those of new settings; all that did not change go on."""
        if self._configuration is not None:
            self.folder.take(loaded)
            self._configuration = replace(self._configuration, settings=loaded)
            self._configure_servers()

    def _configure_servers(self) -> None:
        """Let the rules and the servers be those of the settings, as far as they are trusted."""
        loaded = self._configuration.settings if self._configuration is not None else None
        definitions = self._definitions()
        rules = self.folder.admit_rules(loaded.gemdeck) if loaded is not None else None
        self._safeguards.configure(rules, definitions)
        self.servers.configure(definitions)
        self.servers.judge_tools_again()
        self.folder.ask()

    def explain_tool(self, server: ServerId, tool: str) -> None:
        """Tell how a tool stands, by its name as shown; it arrives as `ToolExplained`."""
        self._safeguards.explain(self.servers, server, tool)

    def _definitions(self) -> tuple[ServerDefinition, ...]:
        """Give the user's servers and, in the demo, the bundled ones under names still free."""
        own = self._configuration.settings.servers if self._configuration is not None else ()
        own = self.folder.admit(own)
        self._redactor.register(*secrets_of(own))
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


def _state_dir() -> Path | None:
    """Give the folder of our own state; None where there can be none."""
    try:
        return state_dir()
    except OSError:
        return None


def _state_file(name: str) -> Path | None:
    """Give the place of a file of our own; None where there can be none."""
    folder = _state_dir()
    return folder / name if folder is not None else None
