"""One turn: the user's message, the steps of the model, the calls between them."""

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tui.engine.chat.arguments import ArgumentRules, load_argument_rules
from tui.engine.chat.backend import ModelBackend, ModelError, ModelRequest
from tui.engine.chat.calls import CallRunner, StepCall
from tui.engine.chat.finish import Finish, malformed_call
from tui.engine.chat.history import FunctionCall, FunctionResponse, History
from tui.engine.chat.message import Message
from tui.engine.chat.models import signs_calls, takes_media_in_responses
from tui.engine.chat.step import ModelStep
from tui.engine.consent.protocol import Consent, TurnRecord
from tui.engine.events import Publish
from tui.engine.tools import OfferedTool, ToolHost
from tui.model.chat import (
    ChatNotice,
    EntryId,
    Severity,
    TurnId,
    TurnOutcome,
    TurnPhase,
    UserMessage,
)
from tui.model.events import ChatNoticeAdded, TurnFinished, TurnPhaseChanged, TurnStarted
from tui.model.limits import DEFAULT_RESULT_SIZE

MAX_MALFORMED_CALLS: Final = 2
"""How often a step is asked for again because its call could not be read.

A step that has shown text is not: the user would read it twice.
"""

MAX_REFUSED_TOOLS: Final = 8
"""How many tools are left out of one step because the service refused them."""

MAX_RETRY_WAIT: Final = 10.0
"""Longest wait, in seconds, after which a refused step is asked for again by itself."""

_log: Final = logging.getLogger(__name__)

RefusedTool = tuple[str, str]
"""A tool's id and the hash of the definition that the service refused."""


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """What one turn has room for.

    Attributes:
        tool_calls: Calls.
        result_size: Characters of text of one result for the model.
    """

    tool_calls: int
    result_size: int = DEFAULT_RESULT_SIZE


@dataclass
class TurnContext:
    """What the turns of a conversation share.

    Attributes:
        backend: The model.
        tools: What it may call.
        consent: Who is asked before a call runs.
        publish: Takes events.
        max_tool_calls: Calls in one turn.
        system_instruction: Standing orders to the model.
        prepare: Awaited at the start of a turn, so that servers may finish starting.
        rules: Checks of arguments; loaded when the first call arrives.
        history: The conversation so far.
        refused: Tools that this model does not take.
        numbers: Where the numbers of turns and entries come from.
    """

    backend: ModelBackend
    tools: ToolHost
    consent: Consent
    publish: Publish
    max_tool_calls: int
    system_instruction: str
    prepare: Callable[[], Awaitable[None]] | None = None
    rules: ArgumentRules | None = None
    history: History = field(default_factory=History)
    refused: set[RefusedTool] = field(default_factory=set)
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def new_entry(self) -> EntryId:
        """Give an id that no other entry has."""
        return EntryId(f"e{next(self.numbers)}")


class Turn:
    """Runs one turn to whatever end it finds.

    Afterwards the history is one that the service accepts with the user's next message:
    either the turn is in it, closed by a text in the model's place where it broke off, or
    nothing of it is, because the model never said anything to it.

    Args:
        context: What the turns share.
        message: The user's message.
    """

    def __init__(self, context: TurnContext, message: Message) -> None:
        self._context = context
        self._publish = context.publish
        self._history = context.history
        self._message = message
        self._id = TurnId(f"t{next(context.numbers)}")
        self._calls = CallRunner(
            context.tools, context.consent, context.publish, TurnRecord.of(message.server)
        )
        self._calls_left = context.max_tool_calls
        self._limit_told = False
        self._heard = False
        self._step = self._new_step()
        self._start = len(self._history.contents)
        self._accepted = self._start
        self._returned: list[str] = []
        self._is_finished = False

    def give_back(self, messages: Sequence[str]) -> None:
        """Let these messages, which waited for this turn, go back to the user at its end."""
        self._returned.extend(messages)

    def begin(self) -> None:
        """Take the message in. Once this was called, `run` or `abandon` has to follow."""
        entry = UserMessage(self._context.new_entry(), self._message.shown)
        self._publish(TurnStarted(self._id, entry, time.monotonic()))
        self._history.add_user(self._message.parts)

    def abandon(self) -> None:
        """End a turn that was cancelled, wherever that was. A second call does nothing."""
        if not self._is_finished:
            self._break_off("The user stopped this turn.")
            self._notify(Severity.INFO, "Stopped.")
            self._finish(TurnOutcome.CANCELLED)

    async def run(self) -> None:
        """Run the turn. Failures end it and are said in the conversation.

        Raises:
            asyncio.CancelledError: If the turn was cancelled; it has ended by then.
        """
        try:
            if self._context.prepare is not None:
                self._set_phase(TurnPhase.SERVERS)
                await self._context.prepare()
            outcome = await self._run_steps()
        except asyncio.CancelledError:
            self.abandon()
            raise
        except ModelError as error:
            if not error.retryable:
                self._history.drop_media(self._accepted)
            self._break_off("The turn ended here because the model could not go on.")
            self._notify(Severity.ERROR, str(error), error.advice)
            self._finish(TurnOutcome.FAILED)
        except Exception as error:  # noqa: BLE001 - a fault of our own ends this turn only
            _log.exception("A turn failed")
            self._break_off("The turn ended here because of a fault.")
            text = f"The turn failed unexpectedly ({type(error).__name__})."
            self._notify(Severity.ERROR, text, "The log tells more. Send the message again.")
            self._finish(TurnOutcome.FAILED)
        else:
            self._finish(outcome)

    async def _run_steps(self) -> TurnOutcome:
        while True:
            offered = self._offered()
            await self._run_step(offered)
            self._heard = True
            calls = self._step.gathered.calls
            if calls and signs_calls(self._context.backend.model):
                self._step.gathered.sign_first_call()
            self._history.add_model(self._step.gathered.parts)
            self._accepted = len(self._history.contents)
            self._step = self._new_step()
            if not calls:
                return TurnOutcome.LIMITED if self._limit_told else TurnOutcome.COMPLETED
            was_told = self._limit_told
            await self._answer_calls(calls, offered)
            if was_told:
                self._break_off("The turn ended here: too many tool calls.")
                return TurnOutcome.LIMITED

    def _offered(self) -> dict[str, OfferedTool]:
        """Take the offer for one step, without the tools that the service refused."""
        return {
            tool.id: tool
            for tool in self._context.tools.offered_tools()
            if (tool.id, tool.definition_hash) not in self._context.refused
        }

    async def _run_step(self, offered: dict[str, OfferedTool]) -> None:
        """Get one whole step into `_step`; `offered` loses the tools that are refused."""
        malformed = refused = 0
        has_waited = False
        while True:
            self._step = self._new_step()
            self._set_phase(TurnPhase.WAITING)
            try:
                if await self._step.run(self._context.backend, self._request(offered)) is (
                    Finish.DONE
                ):
                    return
            except ModelError as error:
                wait = error.retry_after
                if error.refused_tool in offered and refused < MAX_REFUSED_TOOLS:
                    refused += 1
                    self._leave_out(offered.pop(error.refused_tool), error)
                elif self._may_retry(error) and not has_waited and wait is not None:
                    has_waited = True
                    self._notify(Severity.WARNING, str(error), f"Trying again in {wait:.0f} s.")
                    await asyncio.sleep(wait)
                else:
                    raise
                continue
            malformed += 1
            if malformed > MAX_MALFORMED_CALLS or self._step.any_text:
                raise malformed_call(self._step.finish_message)
            text = "The model wrote a tool call that cannot be read; it is asked again."
            self._notify(Severity.WARNING, text)

    def _may_retry(self, error: ModelError) -> bool:
        """Tell whether to ask again unasked: nothing has come yet and the wait is short."""
        return (
            error.retryable
            and not self._step.any_chunk
            and error.retry_after is not None
            and error.retry_after <= MAX_RETRY_WAIT
        )

    def _leave_out(self, tool: OfferedTool, error: ModelError) -> None:
        self._context.refused.add((tool.id, tool.definition_hash))
        text = f"{tool.server} · {tool.view.name} is left out: {error}"
        self._notify(Severity.WARNING, text, error.advice)

    def _request(self, offered: Mapping[str, OfferedTool]) -> ModelRequest:
        return ModelRequest(
            contents=self._history.contents,
            declarations=[tool.declaration for tool in offered.values()],
            system_instruction=self._context.system_instruction,
        )

    async def _answer_calls(
        self, calls: Sequence[FunctionCall], offered: Mapping[str, OfferedTool]
    ) -> None:
        """Run the calls that the turn has room for, and put all answers into the history."""
        self._set_phase(TurnPhase.TOOLS)
        within, beyond = calls[: self._calls_left], calls[self._calls_left :]
        self._calls_left -= len(within)
        step_calls = [StepCall(call, self._context.new_entry()) for call in within]
        limit = FunctionResponse.error(
            f"Not run: a turn has room for {self._context.max_tool_calls} tool calls. "
            "Call no more tools and answer with what you have."
        )
        try:
            await self._run_calls(step_calls, offered, len(beyond))
        finally:
            answers = [(step_call.call, step_call.answer) for step_call in step_calls]
            self._history.add_responses(
                [*answers, *((call, limit) for call in beyond)],
                inline_media=takes_media_in_responses(self._context.backend.model),
            )

    async def _run_calls(
        self, step_calls: Sequence[StepCall], offered: Mapping[str, OfferedTool], left_out: int
    ) -> None:
        """Show the calls once their rules are there, and run them."""
        rules = self._context.rules
        if rules is None and step_calls:
            rules = self._context.rules = await load_argument_rules()
        if rules is not None:
            await self._calls.announce(step_calls, offered, rules)
        if left_out and not self._limit_told:
            self._tell_limit(left_out)
        if rules is not None:
            await self._calls.run(step_calls, offered, rules)

    def _tell_limit(self, left_out: int) -> None:
        self._limit_told = True
        limit = self._context.max_tool_calls
        self._notify(
            Severity.WARNING,
            f"A turn has room for {limit} tool calls; {left_out} more were not run.",
            "Send another message to let the model go on.",
        )

    def _break_off(self, note: str) -> None:
        """Leave a history that the service accepts."""
        self._heard = self._heard or self._step.any_text
        if self._heard:
            self._history.close_turn(note, self._step.gathered.parts)
        else:
            del self._history.contents[self._start :]

    def _finish(self, outcome: TurnOutcome) -> None:
        self._is_finished = True
        unsent = [*([] if self._heard else [self._message.unsent]), *self._returned]
        self._publish(TurnFinished(self._id, outcome, "\n\n".join(unsent)))

    def _notify(self, severity: Severity, text: str, advice: str = "") -> None:
        notice = ChatNotice(self._context.new_entry(), severity, text, advice)
        self._publish(ChatNoticeAdded(notice))

    def _set_phase(self, phase: TurnPhase) -> None:
        self._publish(TurnPhaseChanged(self._id, phase))

    def _new_step(self) -> ModelStep:
        return ModelStep(
            self._publish,
            self._context.new_entry,
            lambda: self._set_phase(TurnPhase.STREAMING),
        )
