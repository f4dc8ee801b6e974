"""`Engine`: settings, servers, conversations and consent under one roof, with one lifetime."""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self
from weakref import WeakSet

from tui import __version__
from tui.engine import late
from tui.engine.approval.gate import ToolAccess
from tui.engine.approval.tool_review import FOLDER_NAME as PINS
from tui.engine.approval.tool_review import PinStore
from tui.engine.background import TaskSet, in_daemon_thread
from tui.engine.bus import EventBus, EventStream, Publish
from tui.engine.by_hand.saved_calls import SavedCalls
from tui.engine.by_hand.tool_runs import ToolRuns
from tui.engine.chats.backends.backend import ModelBackend, Provider
from tui.engine.chats.calls import ResultReviewer
from tui.engine.chats.conversations import Conversations
from tui.engine.chats.costs import Costs
from tui.engine.chats.feature_commands import FeatureCommands
from tui.engine.chats.instructions import ContextFiles
from tui.engine.chats.model_commands import ModelCommands
from tui.engine.chats.sessions.library import SessionLibrary
from tui.engine.chats.sessions.recorder import Recorder
from tui.engine.chats.sessions.session_commands import SessionCommands
from tui.engine.chats.skills import FOLDER_NAME, Skills
from tui.engine.chats.step import backend_generator
from tui.engine.chats.turn import TurnSetup
from tui.engine.chats.typed_messages import TypedMessages
from tui.engine.definitions.definition import ServerDefinition, SettingsProblem, secrets_of
from tui.engine.definitions.outside import Outside
from tui.engine.desk import Desk
from tui.engine.files.paths import shown_path, usable_state_dir
from tui.engine.files.unwritten import check_folder
from tui.engine.keys.credentials import ServiceStore
from tui.engine.logs.problems import Problems
from tui.engine.logs.redaction import Redactor, environment_secrets
from tui.engine.mcp.catalog.kept_catalogs import FOLDER_NAME as KEPT
from tui.engine.mcp.catalog.kept_catalogs import CatalogStore
from tui.engine.mcp.catalog.offered_tool import JsonObject, ToolResult
from tui.engine.mcp.catalog.registry import Budget
from tui.engine.mcp.context import Borrow, ClientContext, OpenUrl, open_nothing
from tui.engine.mcp.manager import ENABLEMENT_FILE, Enablement, FirstStarts, ServerManager
from tui.engine.mcp.session import era
from tui.engine.mcp.transports.stdio.sandbox import Sandboxes
from tui.engine.mcp.wire.trace import TraceFile
from tui.engine.mcp.wire.wire import Wire
from tui.engine.model_choice import ModelChoice
from tui.engine.options import READY_PATIENCE, EngineOptions
from tui.engine.plan import Answers, Plan, plan
from tui.engine.reload import Reading, SettingsReader, problem_notice, read_settings
from tui.engine.server_setup.server_imports import OwnEdits, ServerImports
from tui.engine.server_setup.server_trials import ServerTrials
from tui.engine.server_setup.sign_in_commands import SignInCommands
from tui.engine.settings.edits import EditError, set_value
from tui.engine.settings.entries import server_id
from tui.engine.settings.importers import Machine
from tui.engine.settings.loader import LoadedSettings
from tui.engine.trust.opened_folder import OpenedFolder
from tui.engine.trust.trust_questions import TrustCase, TrustQuestions
from tui.model.chat import BackendKind, ConversationId, Severity
from tui.model.consent import ToolStanding
from tui.model.events import Event, FolderTrustChanged, Notice, NoticeRaised, TerminalSet
from tui.model.models import ModelOptionsChanged, PricesSet, ProfilesSet
from tui.model.servers import ServerId
from tui.model.sessions import ConversationClosed
from tui.model.settings import EVERYTHING
from tui.model.trust import FolderTrust, TrustAnswer, TrustSubject
from tui.text import sanitize_line

__all__ = ["Engine", "EngineOptions"]


class Engine:
    """Everything that works behind the screen.

    Use it as an async context manager. Entering costs nothing; `start` reads the settings and
    starts the servers; leaving ends the turn and closes every server.

    Args:
        options: What the command line says.
        publish: Takes every event; `events` gives them as well.
        open_url: Opens an address in the browser after the user's consent.
        borrow: Finds a server in an open deck before it is started; None starts all.
        redactor: Is told every secret of the settings and the model's key.
        provider: Opens the models, in place of Gemini's; no credentials are looked for.

    Attributes:
        servers: The servers; theirs are the commands to start and stop them.
        features: The commands on what servers offer beside tools.
        runs: Runs tools by hand; theirs are the saved calls.
        messages: Takes what the user sends, prompts and resources of servers included.
        conversations: The open conversations; commands mean the current one.
        context_files: What the user, extensions and a trusted project tell the model.
        sessions: Theirs are the commands on saved conversations.
        trials: Starts servers that are to be added.
        imports: Finds servers of other clients; its `edits` change the settings.
        desk: Takes the user's answers.
        access: The rules of tools, and the tools that changed.
        choice: Takes the user's choice of a service and its key.
        wire: What was said between gemdeck and the servers.
        models: The commands on the model that answers.
        costs: What the requests of all conversations cost.
        problems: Takes sentences for the user, from any thread.
    """

    def __init__(
        self,
        options: EngineOptions,
        publish: Publish | None = None,
        *,
        open_url: OpenUrl = open_nothing,
        redactor: Redactor | None = None,
        borrow: Borrow | None = None,
        provider: Provider | None = None,
    ) -> None:
        self._options = options
        self._bus = bus = EventBus()
        bus.subscribe(publish or (lambda _: None))
        self._publish = publish = bus.publish
        self._redactor = redactor = redactor or Redactor()
        self.desk = Desk(publish, attended=options.attended)
        self.problems = say = Problems(publish, redactor)
        state = usable_state_dir()
        if state is not None:
            check_folder(state, say)
        self.access = ToolAccess(bus, self.desk, options, state, problems=say, redactor=redactor)
        home, trusted, attended = Path.home(), options.trusted_folders, options.attended
        self._opened = OpenedFolder(options.folder, home, state, trusted, say, attended=attended)
        trace = TraceFile(options.trace, redactor, say) if options.trace is not None else None
        self.wire = Wire(publish, redactor, trace)
        self._tasks = TaskSet("A task of the engine broke down", self._say_broken)
        self._trust = TrustQuestions(
            self.desk, self._opened, self.access.audit, say, self._tasks, self._take_answer
        )
        self._enablement = Enablement(state and state / ENABLEMENT_FILE, say)
        self.context_files = ContextFiles(publish, Path.home(), self._tasks)
        self.costs = Costs(most=options.max_cost, is_attended=options.attended)
        bus.subscribe(self.costs.take)
        self._context = self._make_context(open_url, state)
        self._context.borrow = borrow
        connect, kept = late.import_connection, self._enablement
        self.servers = ServerManager(publish, self._context, connect, enablement=kept)
        self._first_starts = FirstStarts(self.servers)
        pins = PinStore(state and state / FOLDER_NAME, say)
        skills = Skills(self.servers, self.desk, pins, publish, self.access.audit)
        reviewer, wait = ResultReviewer(self.desk), self._first_starts.wait
        parts = self.access.gate, skills, self.context_files.read, wait, reviewer
        self._turns = TurnSetup(self.servers, *parts, options.max_steps, costs=self.costs)
        self.sessions = self._open_sessions(state)
        self.conversations = self.sessions.conversations
        saved = SavedCalls(state, publish, say)
        used = self.access, self.conversations, saved, self.wire, publish
        self.runs = ToolRuns(self._turns, *used)
        self.features = FeatureCommands(self.servers, self._context, publish)
        self.sign_ins = SignInCommands(self.servers, self._context, state, self._definitions)
        self.trials = ServerTrials(self._read_trial, self._context)
        machine = Machine(Path.home(), options.folder, os.environ)
        self.imports = ServerImports(machine, OwnEdits(options.folder, Path.home(), state, say))
        self._first: Reading | None = None
        self.messages = TypedMessages(self.servers, self.features, self.conversations)
        self.sessions.send = self.messages.send
        self._reader: SettingsReader | None = None
        self._reading: Reading | None = None
        self._answers = Answers(names_mode=options.names_mode)
        self._plan: Plan | None = None
        use, services = self._plan_for, ServiceStore(state, say)
        self.choice = ModelChoice(
            publish, redactor, self._tasks, self.conversations, options, use, services, provider
        )
        asked = self.choice.use_model, self.choice.listed
        self.models = ModelCommands(bus, self._tasks, self.sessions, self.servers, *asked)
        bus.subscribe(self._heed)
        self._stack = contextlib.AsyncExitStack()
        self._streams = WeakSet[EventStream]()

    def _open_sessions(self, state: Path | None) -> SessionCommands:
        library = SessionLibrary(state) if state is not None else None
        bus, options, tasks, redactor = self._bus, self._options, self._tasks, self._redactor
        recorder = partial(Recorder, library, options.folder, redactor, self.problems)
        opened = Conversations(bus, tasks, recorder, self._turns, attended=options.attended)
        opened.on_context = self._fit_tools
        return SessionCommands(
            library, options.folder, opened, self._publish, tasks, redactor, self.problems
        )

    def _make_context(self, open_url: OpenUrl, state: Path | None) -> ClientContext:
        """Say what servers may use of us; without a user nothing that has to be asked for."""

        def answering() -> tuple[ModelBackend | None, Publish]:
            one = self.conversations.current
            return one.backend, one.publish

        return ClientContext(
            self._publish,
            self.desk,
            generator=backend_generator(answering, self.costs) if self.desk.attended else None,
            open_url=open_url,
            workspaces=(self._options.folder, *self._options.more_folders),
            outside=Outside(self._options.folder, Path.home(), state),
            sandboxes=Sandboxes(Path.home(), state),
            client_version=__version__,
            catalogs=CatalogStore(state and state / KEPT, self.problems, state and state / PINS),
            eras=era.EraCache(state and state / era.FILE_NAME, on_problem=self.problems),
            visibility=self.access.review,
            redactor=self._redactor,
            wire=self.wire,
        )

    async def __aenter__(self) -> Self:
        self.problems.attach()
        self._stack.callback(self._context.outside.close)
        self._stack.push_async_callback(self.wire.aclose)
        for part in (self.choice, self.access, self._trust, self.conversations, self.sign_ins):
            self._stack.push_async_callback(part.aclose)
        await self._stack.enter_async_context(self.servers)
        await self._stack.enter_async_context(self.features)
        self._stack.push_async_callback(self.runs.aclose)
        self._stack.push_async_callback(self.trials.aclose)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await asyncio.sleep(0)  # an answer that was given just now is still taken
        await self._tasks.aclose()
        for stream in [*self._streams]:
            stream.close()
        await self._stack.aclose()

    def events(self) -> EventStream:
        """Give every event from now on, for ``async for``, until the engine is left."""
        self._streams.add(stream := EventStream(self._bus))
        return stream

    async def wait_ready(self, patience: float = READY_PATIENCE) -> None:
        await self.servers.wait_discovered(patience)

    async def load(self) -> LoadedSettings:
        """Read the settings and find the model, once; nothing is started.

        Returns:
            What was read, problems included. Nothing in the settings makes this fail.
        """
        settings = (await self._read_first()).settings
        await self.choice.find(settings)
        return settings

    async def start(self) -> None:
        """Read the settings, start the servers, and open the model meanwhile; see `load`."""
        first = await self._read_first()
        options = self._options
        if options.attended and not options.private and options.resume is None:
            self._tasks.start(self.sessions.find_last())
        self._reader = SettingsReader(self._options.folder, self._read, first, self._publish)
        if options.profile:  # what it leaves out is not to start
            self.models.begin_profile(sanitize_line(options.profile))
        self._take(first)
        if self._options.follow_settings:
            self._tasks.start(self._reader.watch())
        self._tasks.start(self._follow(self._reader))
        await self.choice.find(first.settings)
        if self.choice.is_found:
            await self.servers.wait_imported()  # servers answer while the model's SDK is imported
        await self.choice.begin()
        if self._options.resume is not None:
            await asyncio.wait({self.sessions.resume(self._options.resume)})
        elif self._options.attended:
            self.sessions.take_over_drafts()

    async def _read_first(self) -> Reading:
        """Read the settings, and what is kept of earlier runs, once."""
        if self._first is not None:
            return self._first
        await in_daemon_thread(lambda: self._context.outside.variables)
        self._first = first = await in_daemon_thread(self._read)
        self._turns.settings = settings = first.settings.gemdeck
        self._turns.max_requests = first.settings.run.max_requests
        if self._options.max_cost is None:
            self.costs.most = settings.max_cost
        if further := first.settings.context.said.include_directories:
            self.features.open_folders(map(Path, further))
        patience = self._options.server_patience
        self._first_starts.patience = settings.wait_for_servers if patience is None else patience
        self._context.budget = Budget(settings.max_tools, settings.max_tool_share)
        self._context.gives_instructions = settings.server_instructions
        self.sessions.configure(settings.sessions, saves=self._options.saves)
        await asyncio.to_thread(self._enablement.load)
        await self.runs.saved.load()
        self.access.ignores_hooks = settings.project_hooks == "ignore"
        await self.access.open(self.servers)
        for problem in (one for one in first.settings.problems if not one.quiet):
            self._publish(NoticeRaised(problem_notice(problem)))
        if self._options.demo:
            self.choice.use_demo()
        return first

    def _read(self, tried: Mapping[str, object] | None = None) -> Reading:
        """Read the settings by what was answered until now; for a thread."""
        answered, check = self._answers.answered, self._options.check_keys
        model = self._options.model
        return read_settings(self._opened, model, answered, check_keys=check, tried=tried)

    def _read_trial(
        self, name: str, entry: Mapping[str, object]
    ) -> tuple[ServerDefinition, list[SettingsProblem]]:
        """Read an entry that the user is about to add, whose start the user asked for."""
        reading = self._read({name: entry})
        settings = reading.settings.only(frozenset({server_id(name)}))
        reading = replace(reading, settings=settings, refused={})
        fresh = Answers().reading(reading)
        [one] = plan(reading, replace(fresh, answered=self._answers.answered)).definitions
        return one, [problem for problem in settings.problems if not problem.file]

    # What runs: settings and answers become a plan, and the plan is applied.

    def _apply(self, now: Plan) -> None:
        """Let servers, rules and questions be those of a plan; what did not change goes on."""
        before, self._plan = self._plan, now
        self._redactor.register(*secrets_of(now.definitions))
        self.access.configure(now.rules, now.definitions, now.asks)
        self.servers.configure(now.definitions)
        self.servers.judge_tools_again()
        for notice in now.notices:
            if before is None or notice not in before.notices:
                self._publish(NoticeRaised(notice))
        if now.trust is not (before.trust if before is not None else FolderTrust.UNKNOWN):
            self._publish(FolderTrustChanged(now.trust))
        self._trust.ask_all(now.questions)
        if self._reading is not None:
            self.context_files.configure(self._reading.settings.context.own, now.context)

    async def _follow(self, reader: SettingsReader) -> None:
        while True:
            self._take(await reader.changed())

    def _take(self, reading: Reading) -> None:
        """Go by settings that were read."""
        gemdeck = reading.settings.gemdeck
        self.costs.prices = gemdeck.prices
        self._publish(PricesSet(gemdeck.prices))
        self._context.sleep_after = gemdeck.sleep_after
        # one in use that the settings have no more stays as it was
        profiles = {"": EVERYTHING, **self.conversations.profiles, **gemdeck.profiles}
        self._turns.profiles.clear()
        self._turns.profiles.update(profiles)
        self._publish(ProfilesSet(profiles))
        keys = {name: ",".join(own) for name, own in gemdeck.keys.items()}
        self._publish(TerminalSet(gemdeck.bell, gemdeck.title, keys, gemdeck.mouse))
        self._redactor.register(*environment_secrets(reading.settings.variables))
        for one in reading.settings.servers:
            self._redactor.know_masks(name for name, _ in one.given({}))
        trust = self._plan.trust if self._plan is not None else FolderTrust.UNKNOWN
        verdict, self._reading = reading.verdict, reading
        self._context.opened = reading.seen.identity
        if verdict.source and verdict.trust is not trust:
            folder = str(self._options.folder)
            self._trust.record(folder, reading.seen.hash, verdict.trust.value, verdict.source)
        answers = self._answers.reading(reading)
        if answers.answered.review and reading.seen.content is None:
            answers = replace(answers, answered=replace(answers.answered, review=False))
            words = "This folder cannot be examined."
            self._publish(NoticeRaised(Notice(Severity.WARNING, words, is_answer=True)))
        self._plan_again(replace(answers, profiles=self.conversations.profiles))

    def _heed(self, event: Event) -> None:
        """Let those servers run that the open conversations may use."""
        if isinstance(event, ModelOptionsChanged | ConversationClosed):
            self._plan_again(replace(self._answers, profiles=self.conversations.profiles))

    def _plan_again(self, answers: Answers) -> None:
        """Go by what was answered."""
        self._answers = answers
        if self._reading is not None:
            settings = self._reading.settings.only(self._options.only_servers)
            self._apply(plan(replace(self._reading, settings=settings), answers))

    def _take_answer(self, question: TrustCase, answer: TrustAnswer) -> None:
        kept = self._trust.keep(question, answer)
        if self._reading is not None and question.subject is TrustSubject.FOLDER:
            self._reading = replace(self._reading, no_sandbox=question.no_sandbox)
        self._plan_again(self._answers.answer(question, answer))
        self._tasks.start(self._read_after(kept))

    async def _read_after(self, kept: "Future[None]") -> None:
        """Read the settings again once the writing of an answer ended, well or not."""
        with contextlib.suppress(Exception):  # the user was told
            await asyncio.shield(asyncio.wrap_future(kept))
        self._read_again()

    def _read_again(self) -> None:
        if self._reader is not None:
            self._reader.read_again()

    def start_demo_servers(self) -> None:
        """Run the bundled servers beside the user's until the engine ends."""
        self._plan_again(replace(self._answers, demo_servers=True))

    def review_folder(self) -> None:
        """Ask about the folder, whatever was said of it."""
        self._plan_again(replace(self._answers, answered=self._answers.answered.reviewing()))
        self._read_again()

    def forget_folder(self) -> None:
        """Take back what was said of the opened folder: its servers stop, also in later runs."""
        if self._reading is None:
            return
        seen = self._reading.seen
        kept = self._trust.forget(seen.hash)
        answered = self._answers.answered.taken_back(seen.key)
        self._plan_again(replace(self._answers, answered=answered))
        self._tasks.start(self._read_after(kept))

    def tool_standing(self, server: ServerId, tool: str) -> ToolStanding:
        """Tell how a tool stands, by its name as shown."""
        return self.access.standing(self.servers, server, tool)

    def exclude_tool(self, server: ServerId, tool: str, *, off: bool) -> None:
        """Save in the user's settings that a tool is off, by its name as shown, or on again.

        Where that cannot be, it counts for this session.
        """
        self._tasks.start(self._exclude_tool(server, tool, off=off))

    async def _exclude_tool(self, server: ServerId, tool: str, *, off: bool) -> None:
        if (one := self.servers.registry.definition(server)) is None:
            return
        severity = Severity.INFO
        try:
            edit = partial(self.imports.edits.exclude, one, tool, off=off)
            path = shown_path(await in_daemon_thread(edit), Path.home())
            word = "off" if off else "on"
            words = f"{tool} is {word}, in later sessions too: saved to {path}."
        except EditError as error:
            word, severity = "is off for this session only", Severity.WARNING
            words = f"{tool} {word if off else 'stays off'}: {error}"
        self.servers.switch_tools(server, tool, off=off)
        self._publish(NoticeRaised(Notice(severity, sanitize_line(words), is_answer=True)))

    async def set_own(self, value: object, *keys: str) -> bool:
        """Write a value below ``gemdeck`` in the user's settings, or with None remove its key.

        It applies at once. Where it was saved, or why it was not, is told.

        Returns:
            Whether it was.
        """
        severity, path = Severity.INFO, self.imports.edits.file_of("user")
        try:
            await in_daemon_thread(partial(set_value, path, value, "gemdeck", *keys))
            words = f"Saved to {shown_path(path, Path.home())}."
        except EditError as error:
            severity, words = Severity.ERROR, f"Not saved: {error}"
        self._read_again()
        self._publish(NoticeRaised(Notice(severity, sanitize_line(words), is_answer=True)))
        return severity is Severity.INFO

    async def call_tool(
        self, server: ServerId, tool: str, arguments: JsonObject, *, by_user: bool = False
    ) -> ToolResult:
        """Run a tool, by its name as shown, with the same consent as a call of the model.

        That the user composed this very call, in a form or a command (`by_user`), is consent to
        these arguments, unless a rule denies it.

        Raises:
            ToolCallError: If it did not run; the text says why.
        """
        return await self.runs.call(server, tool, arguments, by_user=by_user)

    # In these, no conversation means the current one.

    def send(
        self, text: str, conversation: ConversationId | None = None, *, data: str = ""
    ) -> None:
        """Send what the user typed; it waits while a turn runs, and comes back without a model.

        Names in `data`, which goes along as a text, count for nothing.
        """
        self.messages.send(text, conversation, data=data)

    def cancel_turn(self, conversation: ConversationId | None = None) -> None:
        """Stop the running turn, down to the wire."""
        if (one := self.conversations.get(conversation)) is not None:
            one.cancel()

    def clear_conversation(self, conversation: ConversationId | None = None) -> None:
        """Begin a new conversation."""
        if (one := self.conversations.get(conversation)) is not None:
            one.clear()

    async def wait_idle(self, conversation: ConversationId | None = None) -> None:
        """Wait until every message sent has been answered."""
        if (one := self.conversations.get(conversation)) is not None:
            await one.wait_idle()

    def send_without_waiting(self) -> None:
        """Let the message that waits for starting servers, or to go out again, go out now."""
        self._first_starts.skip()
        self.conversations.current.retry.end(again=True)

    def _definitions(self) -> tuple[ServerDefinition, ...]:
        return self._plan.definitions if self._plan is not None else ()

    def _plan_for(self, service: str) -> None:
        """Go by the service that answers now; the demo brings its servers along."""
        answers = replace(self._answers, demo=service is BackendKind.DEMO)
        if answers != self._answers:
            self._plan_again(answers)

    def _fit_tools(self, context: int) -> None:
        if context != self._context.budget.context:
            self._context.budget.context = context
            self.servers.judge_tools_again()

    def _say_broken(self, error: BaseException) -> None:
        text = f"A part of the engine failed unexpectedly ({type(error).__name__})."
        advice = "See the log for details. Restart gemdeck if it stops responding."
        self._publish(NoticeRaised(Notice(Severity.ERROR, text, advice)))
