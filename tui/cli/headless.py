"""One turn without a screen: the same engine, the same turn loop, answers from flags.

Stdout carries the result and nothing else; everything said on the way goes to stderr.
"""

import asyncio
import json
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui.cli.exit_codes import ExitCode
from tui.cli.stdin import read_piped_input
from tui.engine.consent.headless import HeadlessConsent
from tui.engine.engine import Engine, EngineOptions
from tui.engine.events import EventBus
from tui.engine.logs import log_to_file
from tui.engine.servers.supervisor import CONNECT_TIMEOUT
from tui.model.chat import ChatNotice, ModelText, Severity, ToolCall, TurnOutcome
from tui.model.events import Event, NoticeRaised, ServerStatusChanged, TurnFinished
from tui.model.servers import ServerStatus
from tui.store.selectors import entries
from tui.store.store import Store


@dataclass(frozen=True, slots=True)
class HeadlessRun:
    """What to run.

    Attributes:
        prompt: The user's message; what is piped in goes before it.
        folder: The workspace.
        as_json: Whether to print one JSON object instead of the answer's text.
        allowed_tools: ``server.tool`` or ``server`` patterns that may run.
        model: The model asked for, or None.
        demo: Whether to use the offline demo.
        debug: Whether to write verbose logs.
    """

    prompt: str
    folder: Path
    as_json: bool = False
    allowed_tools: tuple[str, ...] = ()
    model: str | None = None
    demo: bool = False
    debug: bool = False


def run_headless(run: HeadlessRun) -> int:
    """Run one turn, print its result, give the exit code."""
    log_to_file(verbose=run.debug)
    prompt = "\n\n".join(part for part in (read_piped_input(), run.prompt.strip()) if part)
    if not prompt:
        return _complain("there is no prompt; give -p a text", ExitCode.NO_INPUT)
    try:
        return asyncio.run(_Session(run).answer(prompt))
    except KeyboardInterrupt:
        return ExitCode.CANCELLED


@dataclass
class _Session:
    """The engine, and the store that gathers what it says."""

    run: HeadlessRun
    store: Store = field(default_factory=Store)
    warnings: list[str] = field(default_factory=list)
    outcome: TurnOutcome | None = None

    async def answer(self, prompt: str) -> int:
        bus = EventBus()
        bus.subscribe(self.store.dispatch)
        bus.subscribe(self._watch)
        options = EngineOptions(
            self.run.folder,
            demo=self.run.demo,
            model=self.run.model,
            demo_without_key=False,
            follow_settings=False,
            server_patience=CONNECT_TIMEOUT,
        )
        consent = HeadlessConsent(self.run.allowed_tools)
        async with Engine(options, bus.publish, consent) as engine:
            self._stop_on_signals(engine)
            configuration = await engine.start()
            if any(problem.fatal for problem in configuration.settings.problems):
                return ExitCode.BAD_SETTINGS
            if self.store.state.model.name == "":
                return _complain(
                    "there is no Gemini key; set GEMINI_API_KEY, or use --demo", ExitCode.NO_KEY
                )
            engine.send(prompt)
            await engine.wait_idle()
        self._print_result()
        return self._exit_code()

    def _stop_on_signals(self, engine: Engine) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)):
            loop.add_signal_handler(number, engine.cancel_turn)

    def _watch(self, event: Event) -> None:
        """Say on stderr what a user of a pipe has to know at once."""
        match event:
            case NoticeRaised(notice):
                self._warn(" ".join(part for part in (notice.text, notice.advice) if part))
            case ServerStatusChanged(server, ServerStatus.FAILED, failure):
                self._warn(f"server {server} failed: {failure.reason if failure else 'unknown'}")
            case TurnFinished(_, outcome):
                self.outcome = outcome

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        print(f"gemdeck: {text}", file=sys.stderr)  # noqa: T201 - the command's own output

    def _print_result(self) -> None:
        transcript = entries(self.store.state)
        answer = "\n\n".join(e.text.strip() for e in transcript if isinstance(e, ModelText))
        notices = [e for e in transcript if isinstance(e, ChatNotice)]
        if self.run.as_json:
            result = self._result(
                answer, notices, [e for e in transcript if isinstance(e, ToolCall)]
            )
            print(json.dumps(result, ensure_ascii=False, indent=2))  # noqa: T201
            return
        for notice in notices:
            self._warn(" ".join(part for part in (notice.text, notice.advice) if part))
        if answer:
            print(answer)  # noqa: T201

    def _result(
        self, answer: str, notices: list[ChatNotice], calls: list[ToolCall]
    ) -> dict[str, Any]:
        usage = self.store.state.usage
        errors = [notice for notice in notices if notice.severity is Severity.ERROR]
        error = errors[-1] if errors and self.outcome is not TurnOutcome.COMPLETED else None
        return {
            "response": answer,
            "model": self.store.state.model.name,
            "outcome": self.outcome.value if self.outcome else None,
            "tool_calls": [
                {
                    "server": call.server,
                    "tool": call.tool,
                    "arguments": json.loads(call.arguments),
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


def _complain(text: str, code: ExitCode) -> ExitCode:
    print(f"gemdeck: {text}", file=sys.stderr)  # noqa: T201
    return code
