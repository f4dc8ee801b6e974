"""Check the tool calls of one step, ask for consent, and run them concurrently."""

import asyncio
import difflib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tui.engine.approval.gate import Gate
from tui.engine.approval.inquiry import (
    Denial,
    Edit,
    Inquiry,
    TurnRecord,
    UnusableEditError,
    decided,
)
from tui.engine.bus import Publish
from tui.engine.chats.history import FunctionResponse
from tui.engine.chats.own_tools import KeptResults
from tui.engine.desk import Desk, WithdrawnError
from tui.engine.mcp.catalog.marks import marks_of
from tui.engine.mcp.catalog.offered_tool import (
    CallStoppedError,
    FunctionCall,
    JsonObject,
    MediaPart,
    OfferedTool,
    OwnTool,
    TextPart,
    ToolCallError,
    ToolResult,
    without_model_prefix,
)
from tui.engine.mcp.catalog.permit import Permit
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.wire.tap import caused_by
from tui.model.bounded_json import whole_numbers
from tui.model.chat import EntryId, Picture, Progress, ToolCall, ToolCallStatus
from tui.model.events import ToolCallChanged, ToolCallProgressed, ToolCallRequested
from tui.model.frozen import Frozen
from tui.model.input.arguments import canonical_json, read_arguments
from tui.model.requests import ResultReview
from tui.model.servers import ServerId
from tui.text import AdvisedError, clip, counted, noted_for_model, sanitize, sanitize_line

MAX_EDIT: Final = 1_000_000
"""Longest edited arguments, in characters of JSON with indentation."""

MAX_EDIT_FAULTS: Final = 5
"""Errors in edited arguments shown at once."""

MAX_TOLD: Final = 1_000
"""Characters of one changed value reported to the model."""

MAX_TOLD_CHANGES: Final = 20
"""Changed arguments reported to the model one by one."""

_log: Final = logging.getLogger(__name__)

WITHHELD: Final = "The user read the result and withheld it. Go on without it."
"""What the model gets in place of a result that the user withholds."""

_UNSEEN: Final = (
    "The result is withheld: this server's results are reviewed first, and nobody is there."
)

MAX_FAULTS: Final = 10
"""Most argument errors reported to the model at once."""

MAX_SUGGESTIONS: Final = 3
"""Most similar names told for an unknown tool."""

MAX_NAME: Final = 128
"""Longest name of an unknown tool shown, in characters."""

MAX_ASKED: Final = 32
"""Most calls of a step waiting for consent; further ones are asked about later."""


async def read_edit(text: str, schema: JsonObject) -> Edit:
    """Read edited arguments in a thread, because checking a schema may be slow.

    Args:
        text: The arguments as JSON.
        schema: The tool's input schema.

    Raises:
        UnusableEditError: If they cannot be sent; the message says why.
    """
    return await asyncio.to_thread(_read, text, schema)


def told_changes(before: JsonObject, after: JsonObject) -> str:
    """Describe to the model how the user changed the arguments of its call."""
    was, now = ({_text(k): _text(v) for k, v in some.items()} for some in (before, after))
    changes = [f"{clip(name, MAX_TOLD)} was removed" for name in was if name not in now]
    changes += [
        f"{clip(name, MAX_TOLD)} is now {clip(text, MAX_TOLD)}"
        for name, text in now.items()
        if was.get(name) != text
    ]
    more = len(changes) - MAX_TOLD_CHANGES
    listed = "; ".join(changes[:MAX_TOLD_CHANGES]) + (f"; and {more} more" if more > 0 else "")
    return f"The user changed the arguments before the call: {listed}."


def _read(text: str, schema: JsonObject) -> Edit:
    if len(text) > MAX_EDIT:
        raise UnusableEditError(f"the arguments are longer than {MAX_EDIT} characters")
    try:
        arguments = read_arguments(text)
        shown = canonical_json(arguments)
        faults = faults_of(schema, arguments)
    except (ValueError, RecursionError) as error:
        raise UnusableEditError(sanitize_line(str(error)) or "nested too deeply") from error
    if faults:
        raise UnusableEditError("; ".join(map(sanitize_line, faults[:MAX_EDIT_FAULTS])))
    return Edit(arguments, shown)


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


SWITCHED_OFF: Final = "The user switched this tool off."
"""The response to a call of a tool that is off."""

CANCELLED: Final = "The user stopped this call."
"""The response to a call that was stopped."""


class ResultReviewer(Frozen):
    """Shows results to the user, who passes, trims or withholds them."""

    desk: Desk

    async def review(
        self, call: EntryId, tool: OfferedTool, result: ToolResult, turn: TurnRecord
    ) -> ToolResult:
        """Return what the model gets of a result. Canceling the task withdraws the question."""
        text = "\n".join(part.text for part in result.parts if isinstance(part, TextPart))
        media = tuple(part for part in result.parts if isinstance(part, MediaPart))
        shown = sanitize(text)
        sizes = (counted(len(part.data) * 3 // 4, "byte") for part in media)
        listed = tuple(f"{part.mime_type}, {size}" for part, size in zip(media, sizes, strict=True))
        marks = await asyncio.to_thread(marks_of, text)
        named = call, tool.server, tool.view.name, shown, listed, marks
        asker = turn.conversation, turn.caller_words
        request = ResultReview(self.desk.new_id(), *named, *asker)
        try:
            reply = await self.desk.ask(request)
        except WithdrawnError:
            return ToolResult((TextPart(_UNSEEN),), _UNSEEN, is_error=True)
        if not reply.allows:
            display = f"[Withheld from the model.]\n{result.display}"
            return ToolResult((TextPart(WITHHELD),), display, is_error=True)
        if reply.text in {None, shown}:
            return result
        kept = noted_for_model(reply.text or "")
        note = TextPart("[The user changed this result.]")
        display = sanitize(f"{note.text}\n{kept}")
        return ToolResult((note, TextPart(kept), *media), display, result.is_error)


class _Prepared(Frozen):
    """A call as it is shown and sent.

    Attributes:
        tool: The offered tool, or None if the name is unknown.
        arguments: The arguments to send.
        shown: The same arguments as JSON.
        fault: Why the call cannot be made, or an empty string.
    """

    tool: OfferedTool | None
    arguments: JsonObject
    shown: str
    fault: str = ""


_UNANNOUNCED: Final = _Prepared(None, {}, "", CANCELLED)


@dataclass
class StepCall:
    """One call and its response, which says that it was stopped until there is another.

    Attributes:
        call: The requested call.
        entry: Its row in the transcript.
        prepared: The call as shown, once it is announced.
        answer: The response for the model.
        settled: Whether the row shows the end of the call.
        by_user: Whether the user composed this call.
        result: Its result, or None if it did not run.
        refusal: Why it did not run, for the user.
    """

    call: FunctionCall
    entry: EntryId
    prepared: _Prepared = _UNANNOUNCED
    answer: FunctionResponse = field(default_factory=lambda: FunctionResponse.error(CANCELLED))
    settled: bool = False
    by_user: bool = False
    result: ToolResult | None = None
    refusal: str = ""


@dataclass(eq=False, repr=False)
class CallRunner:
    """Runs the calls of one turn.

    Attributes:
        tools: Runs tools.
        gate: Decides on each call.
        publish: Publishes the events of the transcript rows.
        turn: The record of this turn for consent.
        reviewer: Shows results to the user where their server's settings say so.
        kept: Cuts long results for the model; None leaves them whole.
        request: See `Permit`; the server judges its arguments.
    """

    tools: ServerManager
    gate: Gate
    publish: Publish
    turn: TurnRecord
    reviewer: ResultReviewer | None = None
    kept: KeptResults | None = None
    request: JsonObject | None = None

    def __post_init__(self) -> None:
        self._asking = asyncio.Semaphore(MAX_ASKED)

    async def announce(
        self, step_calls: Sequence[StepCall], offered: Mapping[str, OfferedTool]
    ) -> None:
        """Add a row for each call to the transcript, with the arguments to send.

        Canceling it leaves either all rows or none.
        """
        every = await asyncio.to_thread(lambda: [_prepare(one.call, offered) for one in step_calls])
        for step_call, prepared in zip(step_calls, every, strict=True):
            step_call.prepared = prepared
            tool = prepared.tool
            server = tool.server if tool else ServerId("")
            name = tool.view.name if tool else sanitize_line(step_call.call.name, MAX_NAME)
            self.publish(ToolCallRequested(ToolCall(step_call.entry, server, name, prepared.shown)))

    async def run(self, step_calls: Sequence[StepCall], offered: Mapping[str, OfferedTool]) -> None:
        """Ask about all announced calls in order, and run each once it is allowed.

        However this ends, each call has a response afterwards and each row shows an end.
        Canceling cancels running calls on their servers and withdraws open questions.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for step_call in step_calls:
                    tool, call = step_call.prepared.tool, step_call.call
                    fault = await self._fault(step_call.prepared)
                    if tool is None or fault:
                        off = self.record_withheld(step_call.entry, call.name, call.arguments)
                        self._refuse(step_call, off or fault, off or fault)
                    else:
                        group.create_task(self._decide(step_call, tool, offered))
        finally:
            for step_call in step_calls:
                self._end(step_call, ToolCallStatus.CANCELLED, "")

    async def run_alone(
        self, tool: OfferedTool, arguments: JsonObject, entry: EntryId, *, by_user: bool
    ) -> ToolResult:
        """Run one call outside any turn, with the same checks and consent.

        Raises:
            ToolCallError: If it did not run; the message says why, for the user.
        """
        step_call = StepCall(FunctionCall(tool.id, dict(arguments)), entry, by_user=by_user)
        key = self.turn.caller.key if self.turn.caller is not None else None
        offered: dict[str, OfferedTool] = {
            one.id: replace(one, caller=key) if key is not None else one
            for one in (*self.tools.offered_tools(), tool)  # which may be off
        }
        await self.announce([step_call], offered)
        await self.run([step_call], offered)
        if step_call.result is None:
            raise ToolCallError(step_call.refusal)
        return step_call.result

    def record_withheld(self, entry: EntryId, name: str, arguments: JsonObject) -> str:
        """Record that a call was refused since its tool is withheld; others leave no record.

        Returns:
            What the model is told if the tool is off, or an empty string.
        """
        find = self.tools.registry.withheld_tool
        if (held := find(name) or find(without_model_prefix(name))) is None:
            return ""
        (tool, reason), caller = held, self.turn.caller_words
        self.publish(decided(entry, tool, _shown_arguments(arguments), "deny", reason, caller))
        return SWITCHED_OFF if self.tools.registry.is_off(tool) else ""

    async def _fault(self, prepared: _Prepared) -> str:
        """Return why a call cannot be made, or an empty string; a schema may make that slow."""
        if prepared.tool is None or prepared.fault:
            return prepared.fault
        try:
            return await asyncio.to_thread(self._misfit, prepared.tool, prepared.arguments)
        except (ValueError, RecursionError) as error:
            return f"The call cannot be made: {sanitize_line(str(error))}"

    def _misfit(self, tool: OfferedTool, arguments: JsonObject) -> str:
        faults = faults_of(tool.schema, arguments) if self.request is None else []
        listed = "; ".join(map(sanitize_line, faults[:MAX_FAULTS]))
        words = f"The arguments do not match the tool's schema: {listed}" if faults else ""
        return words or self.tools.why_masked(tool, arguments)

    async def _decide(
        self, step_call: StepCall, tool: OfferedTool, offered: Mapping[str, OfferedTool]
    ) -> None:
        """Ask for consent, and run the call or refuse it."""
        prepared = step_call.prepared
        inquiry = Inquiry(
            call=step_call.entry,
            tool=tool,
            arguments=prepared.arguments,
            shown=prepared.shown,
            offered=[*offered.values()],
            turn=self.turn,
            number=self.turn.count(tool, prepared.shown),
            read_edit=lambda text: read_edit(text, tool.schema),
            by_user=step_call.by_user,
        )
        outcome: Permit | Denial | str
        try:
            async with self._asking:
                outcome = await self.gate.decide(inquiry)
        except WithdrawnError as error:
            outcome = f"Not run: {sanitize_line(str(error))}"
        except Exception as error:  # noqa: BLE001 - the other calls of the step go on
            _log.exception("the question about a call failed")
            outcome = f"Not run: the question failed ({type(error).__name__})."
        if not step_call.by_user and self.tools.registry.is_off(tool):  # since the step began
            outcome = SWITCHED_OFF
        if isinstance(outcome, Permit):
            await self._execute(step_call, inquiry, outcome)
        elif isinstance(outcome, Denial):
            self._refuse(step_call, outcome.told, outcome.shown, ToolCallStatus.DENIED)
        else:
            self._refuse(step_call, outcome, outcome)

    def _refuse(
        self,
        step_call: StepCall,
        told: str,
        shown: str,
        status: ToolCallStatus = ToolCallStatus.ERROR,
    ) -> None:
        """End a call that does not run: the model is told why, and the screen shows it."""
        step_call.answer, step_call.refusal = FunctionResponse.error(told), shown
        self._end(step_call, status, shown)

    async def _execute(self, step_call: StepCall, inquiry: Inquiry, permit: Permit) -> None:
        is_edited = permit.arguments is not inquiry.arguments
        shown = permit.shown if is_edited else None
        self.publish(ToolCallChanged(step_call.entry, ToolCallStatus.RUNNING, arguments=shown))
        permit.request = self.request
        started = time.monotonic()

        def on_progress(progress: Progress) -> None:
            if not step_call.settled:
                self.publish(ToolCallProgressed(step_call.entry, progress))

        try:
            with caused_by(self.turn.conversation, step_call.entry):
                result = await self.tools.call_tool(permit, on_progress)
        except asyncio.CancelledError:
            self._end(step_call, ToolCallStatus.CANCELLED, "", time.monotonic() - started)
            raise
        except CallStoppedError:
            self._end(step_call, ToolCallStatus.CANCELLED, "", time.monotonic() - started)
            return
        except AdvisedError as error:
            result = _failed(error)
        except Exception as error:  # noqa: BLE001 - one broken call must not end the turn
            _log.exception("a call failed")
            words = f"The call failed unexpectedly ({type(error).__name__})."
            result = _failed(AdvisedError(words))
        seconds = time.monotonic() - started
        if self.kept is not None:
            result = self.kept.cut(permit.tool, result)
        if self.reviewer is not None and permit.tool.is_reviewed and not result.runs_on:
            self.publish(ToolCallChanged(step_call.entry, ToolCallStatus.ASKING))
            result = await self.reviewer.review(step_call.entry, permit.tool, result, self.turn)
        step_call.result = result
        self.turn.read[permit.tool.server] = None
        parts = result.parts
        if is_edited:
            parts = (TextPart(told_changes(inquiry.arguments, permit.arguments)), *parts)
        step_call.answer = FunctionResponse(parts, result.is_error)
        self.tools.wire.gave(self.turn.conversation, step_call.entry, parts)
        status = ToolCallStatus.ERROR if result.is_error else ToolCallStatus.OK
        status = ToolCallStatus.RUNS_ON if result.runs_on else status
        self._end(step_call, status, result.display, seconds, result.pictures)

    def _end(
        self,
        step_call: StepCall,
        status: ToolCallStatus,
        result: str,
        seconds: float | None = None,
        pictures: tuple[Picture, ...] = (),
    ) -> None:
        """Show the end of a call, once; `seconds` is set if it ran."""
        if not step_call.settled:
            step_call.settled = True
            changed = ToolCallChanged(step_call.entry, status, seconds, result, pictures=pictures)
            self.publish(changed)


def _prepare(call: FunctionCall, offered: Mapping[str, OfferedTool]) -> _Prepared:
    """Look up the tool of a call; models write ``3.0`` for ``3``."""
    tool = offered.get(call.name) or offered.get(without_model_prefix(call.name))
    if tool is None:
        shown = _shown_arguments(call.arguments)
        return _Prepared(None, call.arguments, shown, _unknown_tool(call.name, offered))
    try:
        arguments = whole_numbers(call.arguments)
        if isinstance(tool, OwnTool) and tool.bind is not None:
            tool = tool.bind(arguments)
        return _Prepared(tool, arguments, canonical_json(arguments))
    except (ValueError, RecursionError, ToolCallError) as error:
        fault = f"The call cannot be made: {sanitize_line(str(error))}"
        return _Prepared(tool, call.arguments, _shown_arguments(call.arguments), fault)


def faults_of(schema: JsonObject, arguments: JsonObject) -> list[str]:
    """Return what is wrong with arguments by a tool's schema. Slow at first; for threads only."""
    from tui.engine.mcp.schema import validate  # noqa: PLC0415 - slow, and we are in a thread

    return validate.check_arguments(schema, arguments)


def _failed(error: AdvisedError) -> ToolResult:
    """Return what comes of a call without a result; advice is for the user alone."""
    text, advice = sanitize(str(error)), sanitize(error.advice)
    shown = f"{text} {advice}".strip()
    return ToolResult((TextPart(text),), shown, is_error=True, reply=error.reply)


def _shown_arguments(arguments: JsonObject) -> str:
    """Return arguments as a row shows them, even if they are invalid."""
    try:
        return canonical_json(arguments)
    except ValueError as error:
        return json.dumps({"not shown": sanitize_line(str(error))}, indent=2)


def _unknown_tool(name: str, offered: Mapping[str, OfferedTool]) -> str:
    """Return the error for an unknown tool, with similar names."""
    short = clip(name, MAX_NAME)
    near = difflib.get_close_matches(short, offered.keys(), MAX_SUGGESTIONS)
    question = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"Tool {sanitize_line(short)} not found.{question}"
