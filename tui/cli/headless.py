"""Run one turn without a screen, with consent from command-line flags.

Only the result goes to stdout; all messages go to stderr.
"""

import asyncio
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tui.cli.exit_codes import ExitCode
from tui.cli.output import prepare_output, say, write_out
from tui.engine.consent.tool_patterns import Meaning, meanings
from tui.engine.demo.demo_servers import demo_definitions
from tui.engine.engine import Engine, EngineOptions
from tui.engine.logs.redaction import Redactor
from tui.engine.startup import prepare_process
from tui.model.chat import ChatNotice, ModelText, Severity, ToolCall, TurnOutcome, TurnPhase
from tui.model.events import (
    ChatNoticeAdded,
    Event,
    MessageReturned,
    Notice,
    NoticeRaised,
    ServerStatusChanged,
    TurnFinished,
    TurnPhaseChanged,
)
from tui.model.servers import ServerId, ServerStatus, ServerView
from tui.store.selectors import entries, waiting_text
from tui.store.store import Store
from tui.text import sanitize_line

_E: Final = Severity.ERROR
READY: Final = ServerStatus.READY

PATIENCE: Final = 0.5
"""Seconds before a message on standard error says what the command is waiting for."""

MAX_INPUT: Final = 8 * 1024 * 1024
"""Most bytes read; the rest is ignored."""

_PIECE: Final = 64 * 1024


def run_headless(
    options: EngineOptions, prompt: str, *, as_json: bool = False, debug: bool = False
) -> int:
    """Run one turn, print its result, and return the exit code.

    Args:
        options: What the command line says.
        prompt: The user's message; standard input goes along as data.
        as_json: Whether to print one JSON object instead of the answer's text.
        debug: Whether to write verbose logs.
    """
    session = _Session(options, prepare_process(verbose=debug), as_json)
    if warning := prepare_output():
        session.warn(warning)
    try:
        piped = read_piped_input(session.warn)
        if not piped and not prompt.strip():
            return session.refuse("No prompt was given.", "Use -p TEXT.", ExitCode.NO_INPUT)
        return asyncio.run(session.answer(prompt.strip(), piped))
    except IsADirectoryError:
        advice = "Give a file or a pipe, or </dev/null."
        return session.refuse("Standard input is a folder.", advice, ExitCode.NO_INPUT)
    except (KeyboardInterrupt, asyncio.CancelledError):
        session.outcome = TurnOutcome.CANCELLED
        return session.refuse("Cancelled before the turn started.", "", ExitCode.CANCELLED)


@dataclass
class _Session:
    """The engine and the store that collects its events."""

    options: EngineOptions
    redactor: Redactor
    as_json: bool
    store: Store = field(default_factory=Store)
    warnings: list[str] = field(default_factory=list)
    outcome: TurnOutcome | None = None
    error: Notice | None = None
    is_out: bool = False
    allowed: list[Meaning] = field(default_factory=list)

    async def answer(self, prompt: str, data: str) -> int:
        options = replace(
            self.options,
            demo_without_key=False,
            follow_settings=False,
        )
        async with Engine(options, self._watch, redactor=self.redactor) as engine:
            self._stop_on_signals(engine)
            settings = await engine.load()
            for problem in settings.problems:
                if problem.fatal:
                    advice = "Correct the file and try again."
                    return self._end_early(Notice(_E, str(problem), advice), ExitCode.BAD_SETTINGS)
            bundled = demo_definitions() if options.demo else ()
            if unclear := self._read_allowed([one.id for one in (*settings.servers, *bundled)]):
                advice = "SERVER.* allows all tools of one server."
                return self.refuse(unclear, advice, ExitCode.USAGE)
            if not (engine.models.is_found or options.demo):  # then no server starts in vain
                return self._without_model()
            await engine.start()
            if self.store.state.model.name == "":
                return self._without_model()
            engine.send(prompt, data=data)
            await engine.wait_idle()
            self._name_missing_tools(engine)
        self._print_result()
        return self._exit_code()

    def _without_model(self) -> int:
        if self.error is not None:
            return self._end_early(self.error, ExitCode.NO_KEY)
        advice = "Set GEMINI_API_KEY, or use --demo."
        return self.refuse("No Gemini API key was found.", advice, ExitCode.NO_KEY)

    def _read_allowed(self, servers: Sequence[ServerId]) -> str:
        """Go by what --allowed-tools means; return why it cannot be told, or nothing."""
        for word in self.options.allowed_tools:
            meant = meanings(word, servers)
            if len(meant) > 1:
                first, second = map(_meaning_words, meant[:2])
                return sanitize_line(f"--allowed-tools: {word} could be {first} or {second}")
            self.allowed += meant
            if not meant:
                known = ", ".join(dict.fromkeys(servers)) or "none"
                words = f"--allowed-tools: {word} names no server; configured are: {known}"
                self.warn(sanitize_line(words))
        return ""

    def _name_missing_tools(self, engine: Engine) -> None:
        """Warn about tools in --allowed-tools that a running server does not have."""
        offered = {(tool.server, tool.name) for tool in engine.servers.offered_tools()}
        running = {server for server, _ in offered}
        for server, tool in self.allowed:
            if server in running and tool is not None and (server, tool) not in offered:
                self.warn(sanitize_line(f"--allowed-tools: {server} has no tool {tool}"))

    def _stop_on_signals(self, engine: Engine) -> None:
        loop, main, is_leaving = asyncio.get_running_loop(), asyncio.current_task(), False

        def stop() -> None:
            nonlocal is_leaving
            if self.store.state.conversation.turn is not None:
                engine.cancel_turn()
            elif self.outcome is None and main is not None and not is_leaving:
                is_leaving = True  # let the servers close undisturbed
                main.cancel()

        for number in (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)):
            loop.add_signal_handler(number, stop)

    def _watch(self, event: Event) -> None:
        """Collect an event, and report a notice on stderr."""
        self.store.dispatch(event)
        match event:
            case NoticeRaised(notice):
                self.error = notice if notice.severity is _E else self.error
                self.warn(_words(notice))
            case ChatNoticeAdded(notice) if notice.severity is Severity.WARNING:
                self.warn(_words(notice))
            case ServerStatusChanged(server, ServerStatus.FAILED, failure) if self.is_out:
                self.warn(f"server {server} failed: {failure.reason if failure else 'unknown'}")
            case TurnPhaseChanged(phase=TurnPhase.SERVERS) if (
                sys.stderr is not None and sys.stderr.isatty()
            ):
                asyncio.get_running_loop().call_later(PATIENCE, self._say_waiting)
            case TurnPhaseChanged(phase=phase) if phase is not TurnPhase.SERVERS:
                self._name_missing()
            case TurnFinished(_, outcome):
                self.outcome = outcome
            case MessageReturned():
                self.outcome = TurnOutcome.FAILED

    def _name_missing(self) -> None:
        """Name once, as the turn goes out, every server that it goes out without, and why."""
        missing = [view for view in self.store.state.servers if view.status is not READY]
        for view in missing if not self.is_out else ():
            self.warn(f"without server {view.id}: {_why_missing(view)}")
        self.is_out = True

    def _say_waiting(self) -> None:
        """Tell whoever watches what the turn waits for; it is no warning."""
        turn = self.store.state.conversation.turn
        if turn is not None and turn.phase is TurnPhase.SERVERS:
            say(f"{waiting_text(self.store.state)}; --wait sets for how long")

    def warn(self, text: str) -> None:
        """Write a warning to standard error, and keep it for the result."""
        self.warnings.append(text)
        say(text)

    def refuse(self, text: str, advice: str, code: ExitCode) -> ExitCode:
        """Report why no turn is run, and return the exit code."""
        notice = Notice(_E, text, advice)
        say(_words(notice))
        return self._end_early(notice, code)

    def _end_early(self, error: Notice, code: ExitCode) -> ExitCode:
        """Print the result of a run without a turn."""
        if self.as_json:
            self._write(self._json("", error, []))
        return code

    def _print_result(self) -> None:
        transcript = entries(self.store.state)
        answer = "\n\n".join(e.text.strip() for e in transcript if isinstance(e, ModelText))
        errors = [e for e in transcript if isinstance(e, ChatNotice) and e.severity is _E]
        if self.as_json:
            calls = [e for e in transcript if isinstance(e, ToolCall)]
            self._write(self._json(answer, self._error(errors), calls))
            return
        for notice in errors:
            self.warn(_words(notice))
        if answer:
            self._write(answer)

    def _write(self, text: str) -> None:
        """Write the result, or say that it is lost."""
        if problem := write_out(text):
            self.outcome = TurnOutcome.FAILED
            say(problem)

    def _json(self, answer: str, error: ChatNotice | Notice | None, calls: list[ToolCall]) -> str:
        """Return the result in ASCII, so that it cannot control a terminal."""
        return json.dumps(self._result(answer, error, calls), ensure_ascii=True, indent=2)

    def _error(self, errors: list[ChatNotice]) -> ChatNotice | Notice | None:
        """Return why the turn was not completed."""
        if self.outcome is TurnOutcome.LIMITED:
            advice = "Ask for less, or increase gemdeck.maxToolCalls in the settings."
            return Notice(_E, "The turn reached its limit of tool calls.", advice)
        if self.outcome is TurnOutcome.COMPLETED:
            return None
        return errors[-1] if errors else self.error

    def _result(
        self, answer: str, error: ChatNotice | Notice | None, calls: list[ToolCall]
    ) -> dict[str, Any]:
        usage = self.store.state.conversation.usage
        return {
            "response": answer,
            "model": self.store.state.model.name,
            "outcome": self.outcome.value if self.outcome else None,
            "tool_calls": [
                {
                    "server": call.server,
                    "tool": call.tool,
                    "arguments": json_arguments(call.arguments),
                    "status": call.status.value,
                    "seconds": call.seconds,
                    "result": call.result,
                }
                for call in calls
            ],
            "usage": {
                "prompt_tokens": usage.prompt,
                "output_tokens": usage.output,
                "thought_tokens": usage.thoughts,
                "cached_tokens": usage.cached,
            },
            "warnings": self.warnings,
            "error": {"message": error.text, "advice": error.advice} if error else None,
        }

    def _exit_code(self) -> int:
        match self.outcome:
            case TurnOutcome.COMPLETED:
                return ExitCode.OK
            case TurnOutcome.CANCELLED:
                return ExitCode.CANCELLED
            case TurnOutcome.LIMITED:
                return ExitCode.TURN_LIMIT
            case _:
                return ExitCode.ERROR


def json_arguments(text: str) -> object:
    """Return arguments as JSON, or as text if they were cut."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def read_piped_input(warn: Callable[[str], None]) -> str:
    """Read standard input to its end if it is a pipe or a file.

    There is no timeout, since the writer may be slow; after a while a message on standard error
    says that the command is waiting.

    Args:
        warn: Called if the input was cut.

    Raises:
        IsADirectoryError: If it is a folder.
    """
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ""
    try:
        data = _read(sys.stdin.fileno())
    except IsADirectoryError:
        raise
    except (OSError, ValueError):  # a closed descriptor
        return ""
    if len(data) > MAX_INPUT:
        warn(f"standard input was cut off at {MAX_INPUT // 1024 // 1024} MiB")
    return data[:MAX_INPUT].decode("utf-8", errors="replace").strip()


def _read(descriptor: int) -> bytes:
    """Read to the end, or until `MAX_INPUT` is exceeded."""
    data = bytearray()
    deadline = time.monotonic() + PATIENCE
    is_told = False
    while len(data) <= MAX_INPUT:
        left = None if is_told else max(0.0, deadline - time.monotonic())
        if not _is_ready(descriptor, left):
            is_told = True
            say("reading standard input; press Ctrl+C to stop")
            continue
        piece = os.read(descriptor, _PIECE)
        if not piece:
            break
        data += piece
    return bytes(data)


def _is_ready(descriptor: int, seconds: float | None) -> bool:
    """Wait until there is data or the end; None waits forever."""
    if sys.platform == "win32":  # select supports only sockets there
        return True
    readable, _, _ = select.select([descriptor], [], [], seconds)
    return bool(readable)


def _why_missing(view: ServerView) -> str:
    """Say why a server is not there, in one line."""
    if view.status is ServerStatus.STARTING:
        words = f": {view.last_words}" if view.last_words else ""
        return f"still starting after {time.monotonic() - view.since:.0f} s{words}"
    failure = view.failure or view.last_failure
    return f"{view.status.value}: {failure.reason}" if failure is not None else view.status.value


def _meaning_words(meaning: Meaning) -> str:
    server, tool = meaning
    return f"all tools of {server}" if tool is None else f"the tool {tool} of {server}"


def _words(notice: Notice | ChatNotice) -> str:
    return " ".join(part for part in (notice.text, notice.advice) if part)
