"""The tool calls of one step: looked up, checked, asked for and run side by side."""

import asyncio
import difflib
import json
import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from tui.engine.chat.arguments import ArgumentRules
from tui.engine.chat.edits import read_edit, told_changes
from tui.engine.chat.history import FunctionCall, FunctionResponse
from tui.engine.consent.protocol import (
    Answer,
    Consent,
    ConsentWithdrawnError,
    Inquiry,
    OnEnd,
    TurnRecord,
)
from tui.engine.events import Publish
from tui.engine.servers.names import without_model_prefix
from tui.engine.tools import JsonObject, OfferedTool, TextPart, ToolCallError, ToolHost, ToolResult
from tui.model.arguments import canonical_json
from tui.model.chat import EntryId, Progress, ToolCall, ToolCallStatus
from tui.model.events import ToolCallChanged, ToolCallProgressed, ToolCallRequested
from tui.model.servers import ServerId
from tui.text import clip, sanitize, sanitize_line

MAX_SUGGESTIONS: Final = 3
"""Names suggested for a tool that does not exist."""

MAX_FAULTS: Final = 10
"""Faults of a call's arguments told to the model at once."""

MAX_NAME: Final = 128
"""Longest name of a tool that does not exist which is shown, in characters."""

MAX_ASKED: Final = 32
"""Calls that are asked about at once; further ones of a step wait for an answer."""

CANCELLED: Final = "The user stopped this call."
"""What the model is told of a call that did not come to its end."""

_END_MARKS: Final = (".", "!", "?", "…", "\u3002", "\uff01", "\uff1f")
"""What ends a sentence, also in Chinese and Japanese, so that no full stop is put behind it."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A call as it is shown and would be sent.

    Attributes:
        tool: The tool as offered, or None if there is none of that name.
        arguments: The arguments that are sent.
        shown: The very same as JSON.
        fault: Why the call cannot be made, or nothing.
    """

    tool: OfferedTool | None
    arguments: JsonObject
    shown: str
    fault: str = ""


@dataclass
class StepCall:
    """One call and its answer; until there is another one, the answer is that it was stopped.

    Attributes:
        call: What the model asked for.
        entry: Its row in the transcript.
        prepared: What the row shows; None until it is announced.
        answer: What the model is told.
        settled: Whether the row shows its end.
    """

    call: FunctionCall
    entry: EntryId
    prepared: _Prepared | None = None
    answer: FunctionResponse = field(default_factory=lambda: FunctionResponse.error(CANCELLED))
    settled: bool = False


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A call that may run: the tool as offered, and the arguments exactly as shown.

    Attributes:
        tool: The tool.
        arguments: The arguments.
        shown: The very same as JSON.
        remark: For the model: how the user changed the arguments, or nothing.
        on_end: Takes how the call ended, and after how many seconds.
    """

    tool: OfferedTool
    arguments: JsonObject
    shown: str
    remark: str = ""
    on_end: OnEnd | None = None


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
        turn: What counts for the calls of this turn.
    """

    def __init__(
        self, tools: ToolHost, consent: Consent, publish: Publish, turn: TurnRecord
    ) -> None:
        self._tools = tools
        self._consent = consent
        self._publish = publish
        self._asking = asyncio.Semaphore(MAX_ASKED)
        self._turn = turn

    async def announce(
        self,
        step_calls: Sequence[StepCall],
        offered: Mapping[str, OfferedTool],
        rules: ArgumentRules,
    ) -> None:
        """Put a row for each call into the transcript, with the arguments that would be sent.

        Cancelling it leaves either all rows or none.
        """

        def prepare() -> list[_Prepared]:
            return [_prepare(step_call.call, offered, rules) for step_call in step_calls]

        for step_call, prepared in zip(step_calls, await asyncio.to_thread(prepare), strict=True):
            step_call.prepared = prepared
            tool = prepared.tool
            row = ToolCall(
                id=step_call.entry,
                server=tool.server if tool else ServerId(""),
                tool=tool.view.name if tool else sanitize_line(step_call.call.name, MAX_NAME),
                arguments=prepared.shown,
            )
            self._publish(ToolCallRequested(row))

    async def run(
        self,
        step_calls: Sequence[StepCall],
        offered: Mapping[str, OfferedTool],
        rules: ArgumentRules,
    ) -> None:
        """Ask about all announced calls in order, and run each as soon as it is allowed.

        Whatever ends this, each call has an answer afterwards and each row shows an end.
        Cancelling cancels what runs, on its server, and withdraws what is asked.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for step_call in step_calls:
                    match await _check(step_call.prepared, rules):
                        case _Refusal() as refusal:
                            self._refuse(step_call, refusal)
                        case admitted:
                            decide = self._decide(step_call, admitted, offered, rules)
                            group.create_task(decide)
        finally:
            for step_call in step_calls:
                self._end(step_call, ToolCallStatus.CANCELLED, CANCELLED)

    async def _decide(
        self,
        step_call: StepCall,
        admitted: _Admitted,
        offered: Mapping[str, OfferedTool],
        rules: ArgumentRules,
    ) -> None:
        """Ask for consent, and run the call or refuse it."""
        inquiry = Inquiry(
            call=step_call.entry,
            tool=admitted.tool,
            arguments=admitted.arguments,
            shown=admitted.shown,
            offered=[*offered.values()],
            turn=self._turn,
            read_edit=lambda text: read_edit(text, admitted.tool.schema, rules),
        )
        async with self._asking:
            outcome = await self._ask(inquiry)
        if isinstance(outcome, _Refusal):
            self._refuse(step_call, outcome)
        else:
            await self._execute(step_call, outcome)

    async def _ask(self, inquiry: Inquiry) -> _Admitted | _Refusal:
        """Ask for consent."""
        tool, arguments, shown = inquiry.tool, inquiry.arguments, inquiry.shown
        try:
            answer = await self._consent.confirm(inquiry)
        except ConsentWithdrawnError as error:
            return _Refusal(f"Not run: {sanitize_line(str(error))}")
        remark = ""
        if answer.edit is not None:
            remark = told_changes(arguments, answer.edit.arguments)
            arguments, shown = answer.edit.arguments, answer.edit.shown
        if not answer.allows:
            return _denial(answer)
        return _Admitted(tool, arguments, shown, remark, answer.on_end)

    def _refuse(self, step_call: StepCall, refusal: _Refusal) -> None:
        step_call.answer = FunctionResponse.error(refusal.text)
        self._end(step_call, refusal.status, refusal.shown or refusal.text)

    async def _execute(self, step_call: StepCall, admitted: _Admitted) -> None:
        shown = admitted.shown if admitted.remark else None
        running = ToolCallChanged(step_call.entry, ToolCallStatus.RUNNING, arguments=shown)
        self._publish(running)
        started = time.monotonic()

        def on_progress(progress: Progress) -> None:
            if not step_call.settled:
                self._publish(ToolCallProgressed(step_call.entry, progress))

        try:
            result = await self._tools.call_tool(admitted.tool, admitted.arguments, on_progress)
        except asyncio.CancelledError:
            self._finish(step_call, admitted, ToolCallStatus.CANCELLED, CANCELLED, started)
            raise
        except ToolCallError as error:
            result = _failed(sanitize(str(error)))
        except Exception as error:  # noqa: BLE001 - one broken call must not end the turn
            result = _failed(f"The call failed unexpectedly ({type(error).__name__}).")
        self._turn.read[admitted.tool.server] = None
        remark = (TextPart(admitted.remark),) if admitted.remark else ()
        step_call.answer = FunctionResponse((*remark, *result.parts), result.is_error)
        status = ToolCallStatus.ERROR if result.is_error else ToolCallStatus.OK
        self._finish(step_call, admitted, status, result.display, started)

    def _finish(
        self,
        step_call: StepCall,
        admitted: _Admitted,
        status: ToolCallStatus,
        result: str,
        started: float,
    ) -> None:
        """Tell and show the end of a call that ran."""
        seconds = time.monotonic() - started
        if admitted.on_end is not None:
            admitted.on_end(status.value, seconds)
        self._end(step_call, status, result, seconds)

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


def _prepare(
    call: FunctionCall, offered: Mapping[str, OfferedTool], rules: ArgumentRules
) -> _Prepared:
    """Look a call up and bring its arguments into the form in which they are sent."""
    tool = offered.get(call.name) or offered.get(without_model_prefix(call.name))
    if tool is None:
        shown = _shown_arguments(call.arguments)
        return _Prepared(None, call.arguments, shown, _unknown_tool(call.name, offered))
    try:
        arguments = rules.coerce(tool.schema, deepcopy(call.arguments))
        return _Prepared(tool, arguments, canonical_json(arguments))
    except (ValueError, RecursionError) as error:
        fault = f"The call cannot be made: {sanitize_line(str(error))}"
        return _Prepared(tool, call.arguments, _shown_arguments(call.arguments), fault)


async def _check(prepared: _Prepared | None, rules: ArgumentRules) -> _Admitted | _Refusal:
    """Check the arguments, in a thread: a schema may make that slow."""
    if prepared is None or prepared.tool is None or prepared.fault:
        return _Refusal(prepared.fault if prepared else CANCELLED)
    tool, arguments = prepared.tool, prepared.arguments
    try:
        faults = await asyncio.to_thread(rules.check, tool.schema, arguments)
    except (ValueError, RecursionError) as error:
        return _Refusal(f"The call cannot be made: {sanitize_line(str(error))}")
    if faults:
        listed = "; ".join(map(sanitize_line, faults[:MAX_FAULTS]))
        return _Refusal(f"The arguments do not fit the tool's schema: {listed}")
    return _Admitted(tool, arguments, prepared.shown)


def _denial(answer: Answer) -> _Refusal:
    """Tell the model of a denial, in the user's words where there are any."""
    text = answer.note.rstrip() or "The user denied this call."
    if not text.endswith(_END_MARKS):
        text += "."
    return _Refusal(
        f"Denied: {text} Do not try to do the same in another way.",
        ToolCallStatus.DENIED,
        shown=sanitize(f"Denied. {answer.note}".rstrip()),
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
