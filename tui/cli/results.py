"""What a run without a screen gives as JSON: one object, or one object a line as it goes.

Both hold what gemini-cli's do, in its shapes, and more beside it.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from tui.cli.output import ExitCode
from tui.model import events as e
from tui.model.bounded_json import json_or_text
from tui.model.chat import (
    ChatNotice,
    Entry,
    ModelText,
    Severity,
    ToolCall,
    ToolCallStatus,
    TurnPhase,
    Usage,
    UserMessage,
)
from tui.model.frozen import Frozen
from tui.store import selectors
from tui.store.state import AppState

_ERROR_TYPES: Final[Mapping[ExitCode, str]] = {
    ExitCode.NO_KEY: "FatalAuthenticationError",
    ExitCode.NO_INPUT: "FatalInputError",
    ExitCode.SANDBOX: "FatalSandboxError",
    ExitCode.BAD_SETTINGS: "FatalConfigError",
    ExitCode.TURN_LIMIT: "FatalTurnLimitedError",
    ExitCode.UNTRUSTED: "FatalUntrustedWorkspaceError",
    ExitCode.CANCELLED: "FatalCancellationError",
}
"""What gemini-cli calls the errors that end with these codes."""


class Ending(Frozen):
    """How a run ended.

    Attributes:
        code: The exit code.
        outcome: How the turn ended, or None if there was none.
        error: Why it did not complete, or None.
        warnings: What was written to standard error.
    """

    code: ExitCode
    outcome: str | None
    error: e.Notice | ChatNotice | None
    warnings: list[str]


@dataclass
class Statistics:
    """Counts requests to the model and decisions on calls.

    Attributes:
        session: Identifies the run.
        started: When it began, in seconds of `time.monotonic`.
    """

    session: str
    started: float = field(default_factory=time.monotonic)
    _requests: int = 0
    _answered: int = 0
    _asked_at: float = 0.0
    _latency: float = 0.0
    _denied: set[str] = field(default_factory=set)
    _allowed: set[str] = field(default_factory=set)

    def take(self, event: e.Event) -> None:
        match event:
            case e.TurnPhaseChanged(phase=TurnPhase.WAITING):
                self._requests += 1
                self._asked_at = time.monotonic()
            case e.UsageReported():
                self._answered += 1
                self._latency += time.monotonic() - self._asked_at
            case e.ToolCallDecided(call=call, decision=decision):
                (self._allowed if decision == "allow" else self._denied).add(call)

    def by_model(self, state: AppState) -> dict[str, Any]:
        """Return requests and tokens by model; none if nothing was asked."""
        if not self._requests:
            return {}
        errors = self._requests - self._answered
        requests = {
            "totalRequests": self._requests,
            "totalErrors": errors,
            "totalLatencyMs": _milliseconds(self._latency),
        }
        api = {**requests, "errorsByType": {"UNKNOWN": errors} if errors else {}}
        tokens = _tokens(state.conversation.usage)
        roles = {"main": {**requests, "tokens": tokens}}
        return {state.model.name: {"api": api, "tokens": tokens, "roles": roles}}

    def by_tool(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """Return how calls went, in total and by the tool's name."""
        total = self._counted(calls)
        return {
            "totalCalls": total["count"],
            "totalSuccess": total["success"],
            "totalFail": total["fail"],
            "totalDurationMs": total["durationMs"],
            "totalDecisions": total["decisions"],
            "byName": {
                name: self._counted([call for call in calls if call.tool == name])
                for name in dict.fromkeys(call.tool for call in calls)
            },
        }

    def _counted(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        succeeded = sum(call.status is ToolCallStatus.OK for call in calls)
        allowed = sum(call.id in self._allowed for call in calls)
        denied = sum(call.id in self._denied for call in calls)
        return {
            "count": len(calls),
            "success": succeeded,
            "fail": len(calls) - succeeded,
            "durationMs": sum(_milliseconds(call.seconds or 0.0) for call in calls),
            "decisions": {"accept": 0, "reject": denied, "modify": 0, "auto_accept": allowed},
        }

    def flat(self, state: AppState) -> dict[str, Any]:
        """Return the counts as the last line of a stream has them."""
        models = self.by_model(state)
        totals = {name: _flat_tokens(model["tokens"]) for name, model in models.items()}
        return {
            **_flat_tokens(_tokens(state.conversation.usage)),
            "duration_ms": _milliseconds(time.monotonic() - self.started),
            "tool_calls": len(_calls(state)),
            "models": totals,
        }


def answer_text(state: AppState) -> str:
    """Return what the model said."""
    texts = (one.text.strip() for one in turn_entries(state) if isinstance(one, ModelText))
    return "\n\n".join(texts)


def whole_result(state: AppState, statistics: Statistics, ending: Ending) -> dict[str, Any]:
    """Return the one object of ``-o json``."""
    usage, calls, cost = state.conversation.usage, _calls(state), None
    if state.prices is not None and state.conversation.cost:
        cost = {"amount": state.conversation.cost, "currency": state.prices.currency}
    return {
        "session_id": statistics.session,
        "response": answer_text(state),
        "model": state.model.name,
        "outcome": ending.outcome,
        "tool_calls": [
            {
                "server": call.server,
                "tool": call.tool,
                "arguments": json_or_text(call.arguments),
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
        **({"cost": cost} if cost is not None else {}),
        "stats": {
            "models": statistics.by_model(state),
            "tools": statistics.by_tool(calls),
            # gemini-cli counts lines of its own tools only, which gemdeck has not.
            "files": {"totalLinesAdded": 0, "totalLinesRemoved": 0},
        },
        "outside": [view.id for view in state.servers if view.runs_outside],
        "warnings": ending.warnings,
        "error": error_object(ending),
    }


def error_object(ending: Ending) -> dict[str, Any] | None:
    """Return why a run did not complete, with the exit code and gemini-cli's name for it."""
    if ending.error is None:
        return None
    return {
        "type": _ERROR_TYPES.get(ending.code, "Error"),
        "message": ending.error.text,
        "advice": ending.error.advice,
        "code": int(ending.code),
    }


class JsonLines:
    """Writes ``-o stream-json``: a line for each thing that happens.

    Args:
        write: Writes one line.
        statistics: Counts, and knows which session it is.
    """

    def __init__(self, write: Callable[[str], None], statistics: Statistics) -> None:
        self._write = write
        self._statistics = statistics
        self._model = ""
        self._has_begun = False
        self._held = list[str]()

    def take(self, event: e.Event) -> None:
        match event:
            case e.ModelSelected(model):
                self._model = model.name
            case e.TurnPhaseChanged():  # by now the session has its ID
                self._begin()
            case e.TurnStarted(message=message):
                self._line("message", role="user", content=message.text)
            case e.TextStreamed(delta=delta):
                self._line("message", role="assistant", content=delta, delta=True)
            case e.ToolCallRequested(call=call):
                self._line(
                    "tool_use",
                    tool_name=call.tool,
                    tool_id=call.id,
                    parameters=json_or_text(call.arguments),
                    server=call.server,
                )
            case e.ToolCallChanged(call=entry, status=status, result=result) if status.is_over:
                said = (
                    {"status": "success", "output": result}
                    if status is ToolCallStatus.OK
                    else {"status": "error", "error": {"type": status.value, "message": result}}
                )
                self._line("tool_result", tool_id=entry, **said)

    def problem(self, severity: Severity, text: str) -> None:
        self._line("error", severity=severity.value, message=text)

    def end(self, state: AppState, ending: Ending) -> None:
        """Write the last line."""
        self._begin()
        error = error_object(ending)
        self._line(
            "result",
            status="success" if ending.code is ExitCode.OK else "error",
            outcome=ending.outcome,
            **({"error": error} if error is not None else {}),
            stats=self._statistics.flat(state),
        )

    def _begin(self) -> None:
        """Write the first line, which names the model, and what was held back for it."""
        if not self._has_begun:
            self._has_begun = True
            self._line("init", session_id=self._statistics.session, model=self._model)
            for line in self._held:
                self._write(line)

    def _line(self, kind: str, **more: object) -> None:
        """Write an object in ASCII, so that it cannot control a terminal."""
        moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = json.dumps({"type": kind, "timestamp": moment, **more})
        if self._has_begun:
            self._write(line)
        else:
            self._held.append(line)


def _calls(state: AppState) -> list[ToolCall]:
    return [one for one in turn_entries(state) if isinstance(one, ToolCall)]


def turn_entries(state: AppState) -> list[Entry]:
    """Return what this run added to the conversation: all from its message on."""
    found = list[Entry]()
    for one in reversed(selectors.entries(state)):
        found.append(one)
        if isinstance(one, UserMessage):
            break
    return found[::-1]


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "input": max(0, usage.prompt - usage.cached),
        "prompt": usage.prompt,
        "candidates": usage.output,
        "total": usage.prompt + usage.output + usage.thoughts,
        "cached": usage.cached,
        "thoughts": usage.thoughts,
        "tool": 0,
    }


def _flat_tokens(tokens: Mapping[str, int]) -> dict[str, int]:
    return {
        "total_tokens": tokens["total"],
        "input_tokens": tokens["prompt"],
        "output_tokens": tokens["candidates"],
        "cached": tokens["cached"],
        "input": tokens["input"],
    }


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
