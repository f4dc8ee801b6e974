"""The tool calls of one step: looked up, checked, confirmed one by one, run in parallel."""

import asyncio
import difflib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from tui.engine.chat.arguments import ArgumentRules
from tui.engine.chat.history import FunctionCall, FunctionResponse
from tui.engine.consent.display import canonical_json
from tui.engine.consent.protocol import Consent
from tui.engine.events import Publish
from tui.engine.tools import JsonObject, OfferedTool, TextPart, ToolCallError, ToolHost, ToolResult
from tui.model.chat import EntryId, Progress, ToolCall, ToolCallStatus
from tui.model.consent import Choice, Decision
from tui.model.events import ToolCallChanged, ToolCallProgressed, ToolCallRequested
from tui.model.servers import ServerId
from tui.text import clip, sanitize, sanitize_line

MAX_SUGGESTIONS: Final = 3
"""Names suggested for a tool that does not exist."""

MAX_FAULTS: Final = 10
"""Faults of a call's arguments told to the model at once."""

MAX_NAME: Final = 128
"""Longest name of a tool that does not exist which is shown, in characters."""

CANCELLED: Final = "The user stopped this call."
"""What the model is told of a call that did not come to its end."""


@dataclass
class StepCall:
    """One call and its answer; until there is another one, the answer is that it was stopped.

    Attributes:
        call: What the model asked for.
        entry: Its row in the transcript.
        answer: What the model is told.
        settled: Whether the row shows its end.
    """

    call: FunctionCall
    entry: EntryId
    answer: FunctionResponse = field(default_factory=lambda: FunctionResponse.error(CANCELLED))
    settled: bool = False


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A call that may run: the tool as offered, and the arguments exactly as shown."""

    tool: OfferedTool
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A call that does not run: why, for the model, and for the user where that differs."""

    text: str
    status: ToolCallStatus = ToolCallStatus.ERROR
    shown: str = ""


class CallRunner:
    """Runs the calls of one turn.

    Args:
        tools: Runs tools.
        consent: Is asked before each.
        publish: Takes the events of the transcript rows.
        new_entry: Gives the id of the next row.
    """

    def __init__(
        self,
        tools: ToolHost,
        consent: Consent,
        publish: Publish,
        new_entry: Callable[[], EntryId],
    ) -> None:
        self._tools = tools
        self._consent = consent
        self._publish = publish
        self._new_entry = new_entry
        self._denied: set[tuple[ServerId, str, str]] = set()

    def announce(
        self, calls: Sequence[FunctionCall], offered: Mapping[str, OfferedTool]
    ) -> list[StepCall]:
        """Put a row for each call into the transcript."""
        announced = []
        for call in calls:
            tool = offered.get(call.name)
            entry = self._new_entry()
            row = ToolCall(
                id=entry,
                server=tool.server if tool else ServerId(""),
                tool=tool.view.name if tool else sanitize_line(call.name, MAX_NAME),
                arguments=_shown_arguments(call.arguments),
            )
            self._publish(ToolCallRequested(row))
            announced.append(StepCall(call, entry))
        return announced

    async def run(
        self,
        step_calls: Sequence[StepCall],
        offered: Mapping[str, OfferedTool],
        rules: ArgumentRules,
    ) -> None:
        """Decide on each call in order, and run the allowed ones meanwhile.

        Whatever ends this, each call has an answer afterwards and each row shows an end.
        Cancelling cancels what runs, on its server, and withdraws what is asked.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for step_call in step_calls:
                    match await self._decide(step_call, offered, rules):
                        case _Admitted() as admitted:
                            group.create_task(self._execute(step_call, admitted))
                        case _Refusal(text, status, shown):
                            step_call.answer = FunctionResponse.error(text)
                            self._end(step_call, status, shown or text)
        finally:
            for step_call in step_calls:
                self._end(step_call, ToolCallStatus.CANCELLED, CANCELLED)

    async def _decide(
        self, step_call: StepCall, offered: Mapping[str, OfferedTool], rules: ArgumentRules
    ) -> _Admitted | _Refusal:
        """Look a call up, check it, and ask for consent."""
        call = step_call.call
        tool = offered.get(call.name)
        if tool is None:
            return _Refusal(_unknown_tool(call.name, offered))
        try:
            arguments = rules.coerce(tool.schema, deepcopy(call.arguments))
            shown = canonical_json(arguments)
            faults = rules.check(tool.schema, arguments)[:MAX_FAULTS]
        except (ValueError, RecursionError) as error:
            return _Refusal(f"The call cannot be made: {sanitize_line(str(error))}")
        if faults:
            listed = "; ".join(map(sanitize_line, faults))
            return _Refusal(f"The arguments do not fit the tool's schema: {listed}")
        key = (tool.server, tool.name, shown)
        if key in self._denied:
            text = "The user has denied this very call already. Do not ask for it again."
            return _Refusal(text, ToolCallStatus.DENIED)
        decision = await self._consent.confirm(step_call.entry, tool, shown, [*offered.values()])
        if decision.choice is Choice.DENY:
            self._denied.add(key)
            return _denial(decision)
        current = self._tools.find_tool(call.name)
        if current is None or current.definition_hash != tool.definition_hash:
            return _Refusal("The tool has changed or gone since it was offered, so it was not run.")
        return _Admitted(tool, arguments)

    async def _execute(self, step_call: StepCall, admitted: _Admitted) -> None:
        self._publish(ToolCallChanged(step_call.entry, ToolCallStatus.RUNNING))
        started = time.monotonic()

        def on_progress(progress: Progress) -> None:
            if not step_call.settled:
                self._publish(ToolCallProgressed(step_call.entry, progress))

        try:
            result = await self._tools.call_tool(admitted.tool, admitted.arguments, on_progress)
        except asyncio.CancelledError:
            seconds = time.monotonic() - started
            self._end(step_call, ToolCallStatus.CANCELLED, CANCELLED, seconds)
            raise
        except ToolCallError as error:
            result = _failed(sanitize(str(error)))
        except Exception as error:  # noqa: BLE001 - one broken call must not end the turn
            result = _failed(f"The call failed unexpectedly ({type(error).__name__}).")
        step_call.answer = FunctionResponse(result.parts, result.is_error)
        status = ToolCallStatus.ERROR if result.is_error else ToolCallStatus.OK
        self._end(step_call, status, result.display, time.monotonic() - started)

    def _end(
        self,
        step_call: StepCall,
        status: ToolCallStatus,
        result: str,
        seconds: float | None = None,
    ) -> None:
        """Show a call's end, once."""
        if not step_call.settled:
            step_call.settled = True
            self._publish(ToolCallChanged(step_call.entry, status, seconds, result))


def _denial(decision: Decision) -> _Refusal:
    """Tell the model of a denial, in the user's words where there are any."""
    text = decision.note or "The user denied this call."
    return _Refusal(
        f"Denied: {text} Do not try to do the same in another way.",
        ToolCallStatus.DENIED,
        shown=sanitize(f"Denied. {decision.note}".rstrip()),
    )


def _failed(text: str) -> ToolResult:
    return ToolResult(parts=(TextPart(text),), display=text, is_error=True)


def _shown_arguments(arguments: dict[str, Any]) -> str:
    """Give arguments as a row shows them, also where no tool could take them."""
    try:
        return canonical_json(arguments)
    except ValueError as error:
        return json.dumps({"not shown": sanitize_line(str(error))}, indent=2)


def _unknown_tool(name: str, offered: Mapping[str, OfferedTool]) -> str:
    """Tell the model that a tool does not exist, and which ones it may have meant."""
    short = clip(name, MAX_NAME)
    bare = short.replace(":", ".").rpartition(".")[2]
    near = [tool for tool in offered if tool == bare]
    near += difflib.get_close_matches(short, offered.keys(), MAX_SUGGESTIONS)
    names = list(dict.fromkeys(near))[:MAX_SUGGESTIONS]
    question = f" Did you mean {' or '.join(names)}?" if names else ""
    return f"Tool {sanitize_line(short)} not found.{question}"
