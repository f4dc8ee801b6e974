"""Run one turn without a screen, with consent from command-line flags.

Only the result goes to stdout; all messages go to stderr.
"""

import asyncio
import json
import os
import select
import shlex
import signal
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tui.cli.output import PATIENCE, ExitCode, prepare_output, say, write_out
from tui.cli.results import Ending, JsonLines, Statistics, answer_text, turn_entries, whole_result
from tui.cli.servers.server_words import say_outside, why_missing
from tui.engine.approval.gate import NOBODY_TO_ASK
from tui.engine.approval.policy import Meaning, meanings
from tui.engine.demo.model import demo_server
from tui.engine.engine import Engine, EngineOptions
from tui.engine.logs.log_file import prepare_process
from tui.engine.logs.redaction import Redactor
from tui.model import events as e
from tui.model.chat import ChatNotice, Severity, TurnOutcome, TurnPhase
from tui.model.servers import USABLE, ServerId, ServerStatus
from tui.model.sessions import ConversationRestored
from tui.stopping import NUMBERS, hold, release
from tui.store.selectors import waiting_text
from tui.store.store import Store
from tui.text import note_lost, sanitize_line

MAX_INPUT: Final = 8 * 1024 * 1024
"""Most bytes read; the rest is ignored."""

_E: Final = Severity.ERROR


def read_piped_input(warn: Callable[[str], None]) -> str:
    """Read standard input to its end if it is a pipe or a file.

    There is no timeout, since the writer may be slow; where nothing is there yet, a message on
    standard error says that the command is waiting.

    Args:
        warn: Called if the input was cut.

    Raises:
        IsADirectoryError: If it is a folder.
    """
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ""
    try:
        # Whoever waits in sys.stdin itself makes Python abort when it ends, and one long read would
        # keep a Ctrl+C that comes between two pieces waiting.
        descriptor, data, is_told = sys.stdin.fileno(), bytearray(), False
        os.set_blocking(descriptor, True)  # its owner may have it otherwise
        while len(data) <= MAX_INPUT:
            patience = PATIENCE if data else 0
            if not is_told and not select.select([descriptor], [], [], patience)[0]:
                is_told = True
                say("reading standard input to its end; Ctrl+C to stop, </dev/null to skip it")
            if not (piece := os.read(descriptor, 64 * 1024)):
                break
            data += piece
    except IsADirectoryError:
        raise
    except (OSError, ValueError):  # a closed descriptor
        return ""
    text = data[:MAX_INPUT].decode("utf-8", errors="replace")
    if len(data) > MAX_INPUT:
        warn(f"standard input was truncated at {MAX_INPUT // 1024 // 1024} MiB")
    elif words := note_lost(data, text):
        warn(f"standard input: {words}")
    return text.strip()


_ENDINGS: Final[Mapping[TurnOutcome | None, tuple[ExitCode, str, str]]] = {
    TurnOutcome.COMPLETED: (ExitCode.OK, "", ""),
    TurnOutcome.CANCELLED: (ExitCode.CANCELLED, "The turn was cancelled.", ""),
    TurnOutcome.LIMITED: (
        ExitCode.TURN_LIMIT,
        "The turn reached its limit of tool calls.",
        "Ask for less, or increase gemdeck.maxToolCalls in the settings.",
    ),
    TurnOutcome.OUT_OF_REQUESTS: (
        ExitCode.TURN_LIMIT,
        "The turn reached its limit of requests to the model.",
        "Ask for less, or increase --max-turns, or model.maxSessionTurns in the settings.",
    ),
    TurnOutcome.TOO_EXPENSIVE: (
        ExitCode.TURN_LIMIT,
        "The run reached its cost limit.",
        "Ask for less, or increase --max-cost, or gemdeck.maxCost in the settings.",
    ),
}
"""The exit codes of turns, and why they were not completed; of others the errors say why."""


def run_headless(options: EngineOptions, prompt: str, *, output: str | None, debug: bool) -> int:
    """Run one turn, print its result, and return the exit code.

    Args:
        options: What the command line says.
        prompt: The user's message; standard input goes along as data.
        output: What to print: ``text``, the answer; ``json``, one object at the end;
            ``stream-json``, one a line as things happen; None for what the settings say.
        debug: Whether to write verbose logs.
    """
    session = _Session(options, prepare_process(verbose=debug), output)
    if warning := prepare_output():
        session.warn(warning)
    try:
        if release():
            raise KeyboardInterrupt
        piped = read_piped_input(session.warn)
        hold()
        if not piped and not prompt.strip():
            return session.refuse("No prompt was given.", "Use -p TEXT.", ExitCode.NO_INPUT)
        return asyncio.run(session.answer(prompt.strip(), piped))
    except IsADirectoryError:
        advice = "Redirect a file or a pipe instead, or use </dev/null."
        return session.refuse("Standard input is a folder.", advice, ExitCode.NO_INPUT)
    except (KeyboardInterrupt, asyncio.CancelledError):
        if session.is_unread:
            return ExitCode.ERROR
        session.outcome = TurnOutcome.CANCELLED
        return session.refuse("Cancelled before the turn started.", "", ExitCode.CANCELLED)


@dataclass
class _Session:
    """The engine and the store that collects its events."""

    options: EngineOptions
    redactor: Redactor
    output: str | None
    store: Store = field(default_factory=Store)
    warnings: list[str] = field(default_factory=list)
    outcome: TurnOutcome | None = None
    error: e.Notice | None = None
    is_out: bool = False
    is_sent: bool = False
    is_resumed: bool = False
    is_unread: bool = False
    has_ended: bool = False
    engine: Engine | None = None
    allowed: list[Meaning] = field(default_factory=list)
    statistics: Statistics = field(default_factory=lambda: Statistics(str(uuid.uuid4())))

    def __post_init__(self) -> None:
        streams = self.output == "stream-json"
        self.lines = JsonLines(self._write, self.statistics) if streams else None
        self._stop: Callable[[], None] | None = None

    async def answer(self, prompt: str, data: str) -> int:
        options = replace(self.options, demo_without_key=False, follow_settings=False)
        async with Engine(options, self._watch, redactor=self.redactor) as engine:
            self._stop_on_signals(engine)
            settings = await engine.load()
            self.output = self.output or settings.run.output
            for problem in settings.problems:
                if problem.fatal:
                    advice = "Fix the file and try again."
                    return self._end(ExitCode.BAD_SETTINGS, e.Notice(_E, str(problem), advice))
            if options.allows_all and (place := settings.no_yolo):
                advice = "Omit it; --allowed-tools allows individual tools."
                refusal = f"--yolo is forbidden by {place}."
                return self.refuse(refusal, advice, ExitCode.BAD_SETTINGS)
            reason, advice = settings.run.why_refused(is_bare=settings.gemdeck.sandbox is None)
            if reason:
                code = ExitCode.UNTRUSTED if settings.run.untrusted else ExitCode.SANDBOX
                return self.refuse(f"{reason[0].upper()}{reason[1:]}.", advice, code)
            place = settings.plan_mode if not options.names_mode else ""
            bundled = (demo_server(),) if options.demo else ()
            if unclear := self._read_allowed([one.id for one in (*settings.servers, *bundled)]):
                advice = "SERVER.* allows all tools of one server."
                return self.refuse(unclear, advice, ExitCode.USAGE)
            for one, tool in self.allowed if place else ():
                words = f"{one}.{tool or '*'} is not available: plan mode ({place})."
                self.warn(sanitize_line(f"{words} Add --approval-mode default."))
            if not (engine.choice.is_found or options.demo):  # then no server starts in vain
                return self._without_model()
            await engine.start()
            if self.store.state.model.name == "":
                return self._without_model()
            if options.resume is not None and not self.is_resumed:
                missing = e.Notice(_E, "No session to resume in this folder.")
                return self._end(ExitCode.ERROR, self.error or missing)
            self.is_sent = True
            engine.send(prompt, data=data)
            await engine.wait_idle()
            self._name_session(engine)
            self._name_missing_tools(engine)
        return self._print_result()

    def _without_model(self) -> int:
        if self.error is not None:
            return self._end(ExitCode.NO_KEY, self.error)
        advice = "Set GEMINI_API_KEY, choose a model as SERVICE/NAME, or use --demo."
        return self.refuse("No Gemini API key was found.", advice, ExitCode.NO_KEY)

    def _read_allowed(self, servers: Sequence[ServerId]) -> str:
        """Go by what --allowed-tools means; return why it cannot be told, or nothing."""
        known = ", ".join(dict.fromkeys(servers)) or "none"
        for word in sorted((self.options.only_servers or frozenset()) - set(servers)):
            words = f"--allowed-mcp-server-names: there is no server {word}; configured"
            self.warn(sanitize_line(f"{words}: {known}"))
        for word in self.options.allowed_tools:
            meant = meanings(word, servers)
            if len(meant) > 1:
                first, second = map(_meaning_words, meant[:2])
                return sanitize_line(f"--allowed-tools: {word} is ambiguous: {first} or {second}")
            self.allowed += meant
            if not meant and word not in (self.options.only_servers or ()):
                words = f"--allowed-tools: {word} matches no server; configured: {known}"
                self.warn(sanitize_line(words))
        return ""

    def _name_session(self, engine: Engine) -> None:
        """Say how to go on with the turn, if that was asked for."""
        session, unsaved = engine.sessions.recorder.session, engine.sessions.recorder.unsaved
        if self.options.save and session is None:
            self.warn("The turn was not saved: gemdeck.sessions.save is off.")
        elif unsaved:
            self.warn(f"The turn was not saved: {unsaved}.")
        elif self.options.save and self.output == "text":
            say(f"resume with: gemdeck -p TEXT --resume {session}")

    def _name_missing_tools(self, engine: Engine) -> None:
        """Warn about tools in --allowed-tools that a running server does not have."""
        offered = {(tool.server, tool.name) for tool in engine.servers.offered_tools()}
        running = {server for server, _ in offered}
        for server, tool in self.allowed:
            if server in running and tool is not None and (server, tool) not in offered:
                self.warn(sanitize_line(f"--allowed-tools: {server} has no tool {tool}"))

    def _stop_on_signals(self, engine: Engine) -> None:
        loop, main, is_leaving = asyncio.get_running_loop(), asyncio.current_task(), False
        self.engine = engine

        def stop() -> None:
            nonlocal is_leaving
            if self.store.state.conversation.turn is not None:
                engine.cancel_turn()
            elif not (self.outcome or self.has_ended or is_leaving) and main is not None:
                is_leaving = True  # let the servers close undisturbed
                main.cancel()

        self._stop = stop
        for number in NUMBERS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, stop)
        if release():
            stop()

    def _watch(self, event: e.Event) -> None:
        """Collect an event, and report a notice on stderr."""
        self.store.dispatch(event)
        if self.engine is not None:
            session = self.engine.sessions.recorder.session
            self.statistics.session = session or self.statistics.session
        self.statistics.take(event)
        if self.lines is not None:
            self.lines.take(event)
        match event:
            case e.NoticeRaised(notice):
                self.error = notice if notice.severity is _E else self.error
                self.warn(_words(notice), notice.severity)
            case e.ChatNoticeAdded(notice) if notice.severity is Severity.WARNING:
                self.warn(_words(notice))
            case e.ChatNoticeAdded(notice) if notice.severity is _E and self.lines is not None:
                self.lines.problem(_E, _words(notice))
            case e.ToolCallDecided(server=server, tool=tool, source=source) if source.startswith(
                NOBODY_TO_ASK
            ):
                self._name_denied(server, tool, source.removeprefix(f"{NOBODY_TO_ASK}: "))
            case e.ServerStatusChanged(server, ServerStatus.FAILED) if self.is_out:
                [view] = (one for one in self.store.state.servers if one.id == server)
                self.warn(f"server {server} {why_missing(view)}")
            case e.TurnPhaseChanged(phase=TurnPhase.SERVERS) if (
                sys.stderr is not None and sys.stderr.isatty()
            ):
                asyncio.get_running_loop().call_later(PATIENCE, self._say_waiting)
            case e.TurnPhaseChanged(phase=phase) if phase is not TurnPhase.SERVERS:
                self._name_missing()
            case e.TurnFinished(_, outcome):
                self.outcome = outcome
            case ConversationRestored():
                self.is_resumed = True
            case e.MessageReturned() if self.is_sent:
                self.outcome = TurnOutcome.FAILED

    def _name_missing(self) -> None:
        """Name once, as the turn goes out, every server that it goes out without, and why."""
        state = self.store.state
        missing = [view for view in state.servers if view.status not in USABLE]
        for view in missing if not self.is_out else ():
            if not state.leaves_out(view.id):
                self.warn(f"running without server {view.id}: {why_missing(view)}")
        if not self.is_out:
            say_outside(state.servers)
        self.is_out = True

    def _say_waiting(self) -> None:
        """Tell whoever watches what the turn waits for; it is no warning."""
        turn = self.store.state.conversation.turn
        if turn is not None and turn.phase is TurnPhase.SERVERS:
            say(f"{waiting_text(self.store.state)}; --wait sets the limit")

    def _name_denied(self, server: ServerId, tool: str, rule: str) -> None:
        """Say once of each tool that it did not run for want of consent, or by which rule."""
        words = f"{server}.{tool} was denied: it needs approval, and nobody can be asked."
        advice = f"To allow it in this run, add --allowed-tools {shlex.quote(f'{server}.{tool}')}"
        if rule != NOBODY_TO_ASK:
            advice = f"It always needs approval: {rule}."
        if (warning := sanitize_line(f"{words} {advice}")) not in self.warnings:
            self.warn(warning)

    def warn(self, text: str, severity: Severity = Severity.WARNING) -> None:
        """Write a warning to standard error, and keep it for the result."""
        self.warnings.append(text)
        say(text)
        if self.lines is not None:
            self.lines.problem(max(severity, Severity.WARNING, key=list(Severity).index), text)

    def refuse(self, text: str, advice: str, code: ExitCode) -> ExitCode:
        """Report why no turn is run, and return the exit code."""
        notice = e.Notice(_E, text, advice)
        say(_words(notice))
        return self._end(code, notice)

    def _print_result(self) -> ExitCode:
        errors = [
            one
            for one in turn_entries(self.store.state)
            if isinstance(one, ChatNotice) and one.severity is _E
        ]
        if self.output == "text":
            for notice in errors:
                self.warn(_words(notice))
            if answer := answer_text(self.store.state):
                self._write(answer)
        if self.outcome not in _ENDINGS:
            return self._end(ExitCode.ERROR, errors[-1] if errors else self.error)
        code, text, advice = _ENDINGS[self.outcome]
        return self._end(code, e.Notice(_E, text, advice) if text else None)

    def _end(self, code: ExitCode, error: ChatNotice | e.Notice | None) -> ExitCode:
        """Write the result as JSON, if that was asked for, and return the exit code."""
        outcome = self.outcome.value if self.outcome is not None else None
        self.has_ended = True
        ending = Ending(code, outcome, error, self.warnings)
        if self.lines is not None:
            self.lines.end(self.store.state, ending)
        elif self.output == "json":
            # in ASCII, it cannot control a terminal
            result = whole_result(self.store.state, self.statistics, ending)
            self._write(json.dumps(result, ensure_ascii=True, indent=2))
        return ExitCode.ERROR if self.is_unread else code

    def _write(self, text: str) -> None:
        """Write to standard output; when that is impossible, the run ends."""
        if not self.is_unread and not write_out(text):
            self.is_unread = True
            if self._stop is not None:
                self._stop()


def _meaning_words(meaning: Meaning) -> str:
    server, tool = meaning
    return f"all tools of {server}" if tool is None else f"the tool {tool} of {server}"


def _words(notice: e.Notice | ChatNotice) -> str:
    return " ".join(part for part in (notice.text, notice.advice) if part)
