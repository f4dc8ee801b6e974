"""Run one turn: the user's message, the model's steps, and the tool calls between them."""

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Self

from tui.engine.approval.gate import Gate
from tui.engine.approval.inquiry import TurnRecord
from tui.engine.bus import Publish
from tui.engine.chats.backends.backend import Asked, ModelBackend, ModelError, ModelRequest
from tui.engine.chats.calls import CallRunner, ResultReviewer, StepCall
from tui.engine.chats.costs import PRICE_ADVICE, CostLimitError, Costs
from tui.engine.chats.history import FunctionResponse, History, drop_media, sign_first_call
from tui.engine.chats.instructions import Instructions, compose
from tui.engine.chats.own_tools import (
    KeptResults,
    ProfiledServers,
    resource_tools,
    task_tool,
    tool_search,
)
from tui.engine.chats.skills import Skills
from tui.engine.chats.step import MalformedCallError, ModelStep
from tui.engine.mcp.catalog.offered_tool import (
    FunctionCall,
    JsonObject,
    MediaPart,
    OfferedTool,
    PromptMessage,
    RenderedPrompt,
    TextPart,
)
from tui.engine.mcp.catalog.skill_entry import OpenSkills
from tui.engine.mcp.manager import ServerManager
from tui.model import events as e
from tui.model.chat import (
    ASKING_PHASES,
    MAIN,
    ChatNotice,
    ConversationId,
    EntryId,
    Severity,
    TurnId,
    TurnOutcome,
    TurnPhase,
    UserMessage,
)
from tui.model.consent import RequestId
from tui.model.frozen import Frozen
from tui.model.servers import ServerId
from tui.model.settings import EVERYTHING, GemdeckSettings, Profile
from tui.text import AdvisedError, counted, noted_for_model, sanitize, sanitize_line

_GO_ON: Final = "Send another message to let the model continue."

MAX_MALFORMED_CALLS: Final = 1
"""How often a step is repeated because its tool call was malformed.

A step that has shown text is not repeated: the user would read it twice.
"""

MAX_REFUSED_TOOLS: Final = 8
"""Tools dropped from one step because the service refused them."""

RefusedTool = tuple[str, str]
"""Tool id and definition hash."""

_log: Final = logging.getLogger(__name__)


class MessageError(AdvisedError):
    """A message cannot be sent."""

    def __init__(self, text: str, advice: str = "") -> None:
        super().__init__(sanitize_line(text), sanitize_line(advice))


class MessageContent(Frozen):
    """What a message says.

    Attributes:
        shown: What the transcript shows; sanitized.
        parts: What the model gets; at least one part.
        servers: The servers whose data the parts contain.
        before: What was said before it, as a server's prompt has it.
        missing: What it names that is not there, as it seems.
    """

    shown: str
    parts: tuple[TextPart | MediaPart | JsonObject, ...]
    servers: tuple[ServerId, ...] = ()
    before: tuple[PromptMessage, ...] = ()
    missing: tuple[str, ...] = ()

    @classmethod
    def of_text(cls, text: str) -> "MessageContent":
        """Return the content of a text of the user, which the model gets as data."""
        return cls(sanitize(text), (TextPart(noted_for_model(text)),))

    @classmethod
    def of_prompt(
        cls, typed: str, server: ServerId, rendered: RenderedPrompt, more: str = ""
    ) -> Self:
        """Return the content of a prompt that a server rendered, with a text after it."""
        added = (TextPart(noted_for_model(more)),) if more else ()
        shown = "\n\n".join(filter(None, (sanitize(typed), rendered.shown, sanitize(more))))
        return cls(shown, (*rendered.parts, *added), (server,), rendered.before)


Ask = Callable[[ServerId], None]

Fetch = Callable[[Ask], Awaitable[MessageContent]]
"""Gets the content of a message; calls its argument with each server before it is asked.

Raises `MessageError` if the message cannot be sent.
"""


class Message(Frozen):
    """The message that starts a turn.

    Attributes:
        text: What was typed; it returns to the user if the model never answers.
        fetch: Gets what servers add to it, once its turn has come, or has it; None if it is the
            text alone.
    """

    text: str
    fetch: Fetch | MessageContent | None = None


def give_back(publish: Publish, text: str, error: MessageError) -> None:
    """Return a message that was not sent to the user, and say why."""
    publish(e.NoticeRaised(e.Notice(Severity.ERROR, str(error), error.advice)))
    publish(e.MessageReturned(text))


@dataclass(slots=True)
class RetryWait:
    """Waits until the service may be asked again, unless the user decides before.

    Attributes:
        attempts: How often one request goes out again.
        patience: Longest wait, in seconds; a request that would have to wait longer fails.
    """

    attempts: int = 1
    patience: float = 10.0
    _decision: "asyncio.Future[bool] | None" = field(default=None, init=False)

    @classmethod
    def watched(cls) -> Self:
        """Return the wait of a user who sees it, and can end it."""
        return cls(attempts=3, patience=120.0)

    async def wait(self, seconds: float) -> bool:
        """Wait, and return whether to ask again."""
        self._decision = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                return await self._decision
        except TimeoutError:
            return True
        finally:
            self._decision = None

    def end(self, *, again: bool) -> None:
        """End the wait, if there is one: ask again now, or never."""
        if self._decision is not None and not self._decision.done():
            self._decision.set_result(again)


@dataclass(slots=True)
class TurnSetup:
    """What the turns of all conversations go by.

    Attributes:
        tools: The servers, whose tools a model may call.
        gate: Decides on each call before it runs.
        skills: The skills of the servers.
        context_files: Reads the files of context, at the start of each turn.
        prepare: Awaited at the start of each turn, for its profile; returns servers to go without.
        reviewer: Shows results to the user before the model gets them.
        max_steps: Most answers of the model in one turn; None for any number.
        max_requests: Most requests of all turns together; below 0 or None for any number.
        requests: Those that were made.
        costs: What requests cost, and how much all may together.
        settings: Say how much a turn may do, and instruct the model.
        profiles: Those that can be chosen, and those in use, by name; "" stands for none.
        numbers: Source of all numbers in ids, so that no id of a conversation is another's.
    """

    tools: ServerManager
    gate: Gate
    skills: Skills
    context_files: Callable[[], Awaitable[Sequence[e.ContextFile]]]
    prepare: Callable[[Profile], Awaitable[Sequence[ServerId]]] | None = None
    reviewer: ResultReviewer | None = None
    max_steps: int | None = None
    max_requests: int | None = None
    requests: int = 0
    costs: Costs = field(default_factory=Costs)
    settings: GemdeckSettings = field(default_factory=GemdeckSettings)
    profiles: dict[str, Profile] = field(default_factory=lambda: {"": EVERYTHING})
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def new_id(self, kind: str) -> EntryId:
        """Return the id of an entry, or of a call outside any turn; its letter says which."""
        return EntryId(f"{kind}{next(self.numbers)}")


@dataclass(slots=True)
class TurnContext:
    """State shared by the turns of a conversation.

    Attributes:
        setup: What it shares with other conversations.
        backend: The model that answers from the next turn on.
        publish: Publishes events.
        history: The conversation so far.
        save: Awaited before each request and call, and at the end: what was said is on disk then.
        asked: How the user wants the model to answer.
        retry: The wait before a request that was refused for now goes out again.
        conversation: Its id, which `publish` puts into its events.
        refused: Tools this model refused.
        without: What this model does not take: ``tools``, ``instructions``.
        kept: The results that were cut for the model.
        instruction: The system instruction, as it was sent last.
        instructions: What servers say about themselves, likewise.
        opened: The skills that were loaded.
        servers: The servers without what its profile leaves out.
    """

    setup: TurnSetup
    backend: ModelBackend
    publish: Publish
    history: History
    save: Callable[[], Awaitable[object]] = field(default=partial(asyncio.sleep, 0))
    asked: Asked = field(default_factory=Asked)
    retry: RetryWait = field(default_factory=RetryWait)
    conversation: ConversationId = MAIN
    refused: set[RefusedTool] = field(default_factory=set)
    without: set[str] = field(default_factory=set)
    kept: KeptResults = field(default_factory=KeptResults)
    instruction: str = ""
    instructions: Instructions = ()
    opened: OpenSkills = field(default_factory=OpenSkills)
    servers: ProfiledServers = field(init=False)

    def __post_init__(self) -> None:
        self.servers = ProfiledServers(self.setup.tools, self.setup.profiles, self.asked)

    def new_entry(self) -> EntryId:
        return self.setup.new_id("e")


class Turn:
    """Runs one turn.

    Afterwards the history is valid for the user's next message: it either contains the turn,
    closed by a note in the model's place if it was interrupted, or no part of the turn if the
    model never answered.

    Args:
        context: State shared with other turns.
        message: The user's message.

    Attributes:
        id: Its id.
        backend: The model that answers; another one that is chosen meanwhile answers the next.
        returned: Messages that waited behind it, which come back at its end.
        has_ended: Whether its end was published.
    """

    def __init__(self, context: TurnContext, message: Message) -> None:
        self._context = context
        self.backend = context.backend
        self._setup = setup = context.setup
        self._publish, self._history = context.publish, context.history
        self._message = message
        self._entry = context.new_entry()
        self._record = TurnRecord(conversation=context.conversation)
        self._calls = CallRunner(
            setup.tools, setup.gate, context.publish, self._record, setup.reviewer, context.kept
        )
        self._calls_left = setup.settings.max_tool_calls
        context.kept.limit = setup.settings.max_result_size
        self._limit_reported = self._has_answer = False
        self._has_counts = True
        self._step = self._new_step()
        self._start = self._accepted = len(self._history.contents)
        self.returned: list[str] = []
        self._files: Sequence[e.ContextFile] = ()
        self.id = TurnId(f"t{next(setup.numbers)}")
        self.has_ended = False
        self._phase, self._asking, self._asked_at = TurnPhase.WAITING, set[RequestId](), 0.0

    def begin(self) -> None:
        """Start the turn. `run` or `abandon` must follow."""
        entry = UserMessage(self._entry, sanitize(self._message.text))
        self._began = time.monotonic()
        self._publish(e.TurnStarted(self.id, entry, self._began))

    def heed(self, event: e.RequestRaised | e.RequestSettled) -> None:
        """Stop the clock while the turn waits for the user."""
        if isinstance(event, e.RequestSettled):
            self._asking.discard(event.request)
        elif getattr(event.request, "conversation", None) in {None, self._context.conversation}:
            self._asking.add(event.request.id)
        self._set_clock()

    def _set_clock(self) -> None:
        is_asking = bool(self._asking) and self._phase in ASKING_PHASES
        if is_asking and not self._asked_at:
            self._asked_at = time.monotonic()
        elif self._asked_at and not is_asking:
            self._began += time.monotonic() - self._asked_at
            self._asked_at = 0.0
            self._publish(e.TurnClockSet(self.id, self._began))

    def abandon(self) -> None:
        """End a cancelled turn. A second call does nothing."""
        if not self.has_ended:
            self._interrupt("The user stopped this turn.")
            self._notify(Severity.INFO, "You stopped this turn.")
            self._finish(TurnOutcome.CANCELLED)

    async def run(self) -> None:
        """Run the turn. A failure ends it and is reported in the conversation.

        Raises:
            asyncio.CancelledError: If the turn was cancelled; it has already been closed.
        """
        outcome = TurnOutcome.FAILED
        try:
            if self._setup.prepare is not None:
                self._set_phase(TurnPhase.SERVERS)
                self._name_missing(await self._setup.prepare(self._context.servers.profile))
            self._files = await self._setup.context_files()
            await self._add_message()
            await self._setup.skills.refresh()
            outcome = await self._run_steps()
        except asyncio.CancelledError:
            self.abandon()
            raise
        except MessageError as error:
            self._notify(Severity.ERROR, str(error), error.advice)
        except ModelError as error:
            if not error.retryable:
                drop_media(self._history.contents, self._accepted)
            self._interrupt("The turn ended here because the model could not continue.")
            self._notify(Severity.ERROR, str(error), error.advice, brief=error.brief)
            outcome = TurnOutcome.TOO_EXPENSIVE if isinstance(error, CostLimitError) else outcome
        except Exception as error:  # noqa: BLE001 - a bug must end only this turn
            _log.exception("A turn failed")
            self._interrupt("The turn ended here because of an internal error.")
            text = f"The turn failed unexpectedly ({type(error).__name__})."
            self._notify(Severity.ERROR, text, "See the log for details. Send the message again.")
        self._finish(outcome)

    async def _add_message(self) -> None:
        """Add the user's message to the history, with what servers add to it."""
        fetch = self._message.fetch
        if fetch is None:
            content = MessageContent.of_text(self._message.text)
        else:
            content = fetch if isinstance(fetch, MessageContent) else await fetch(self._ask)
            typed = sanitize(self._message.text)
            message = UserMessage(self._entry, content.shown, typed, content.servers)
            self._publish(e.MessageExpanded(message))
            if names := sanitize_line(", ".join(content.missing), 200):
                words = f"No such file here: {names}."
                self._notify(Severity.WARNING, words, "The message was sent without it.")
        self._record.read.update(dict.fromkeys(content.servers))
        self._history.add_user(content.parts, content.before)

    def _ask(self, server: ServerId) -> None:
        """Say that the message asks a server for what it names."""
        if words := self._context.servers.left_out(server):
            raise MessageError(words, "Choose another one with /profile.")
        self._set_phase(TurnPhase.ASKING, server)

    async def _run_steps(self) -> TurnOutcome:
        setup = self._setup
        for step in itertools.count():
            if step == setup.max_steps or setup.requests == setup.max_requests:
                break
            if words := await setup.costs.warning(self.backend, has_counts=self._has_counts):
                self._notify(Severity.WARNING, words, PRICE_ADVICE)
            setup.requests += 1
            offered = self._offered()
            await self._run_step(offered)
            self._has_answer = True
            self._has_counts = self._step.usage is not None
            calls = self._step.gathered.calls
            if calls and self.backend.traits.signs_calls:
                sign_first_call(self._step.gathered.parts)
            self._history.add_model(self._step.gathered.parts)
            self._accepted = len(self._history.contents)
            self._step = self._new_step()
            if not calls:
                return TurnOutcome.LIMITED if self._limit_reported else TurnOutcome.COMPLETED
            was_reported = self._limit_reported
            await self._answer_calls(calls, offered)
            if was_reported:
                self._interrupt("The turn ended here: too many tool calls.")
                return TurnOutcome.LIMITED
        self._interrupt("The turn ended here: too many requests.")
        words = f"A turn is limited to {setup.max_steps} requests to the model."
        advice = _GO_ON
        if setup.requests == setup.max_requests:
            limit = counted(setup.requests, "model request")
            words = f"The limit of {limit} per run is reached (model.maxSessionTurns)."
            advice = "Raise it in your settings, or restart gemdeck."
        self._notify(Severity.WARNING, words, advice)
        return TurnOutcome.OUT_OF_REQUESTS

    def _name_missing(self, servers: Sequence[ServerId]) -> None:
        """Say which servers are not there yet."""
        if servers:
            verb = "is" if len(servers) == 1 else "are"
            text = f"Sent without {', '.join(servers)}, which {verb} still starting."
            self._notify(Severity.INFO, text, "Their tools are added as soon as they are ready.")

    def _offered(self) -> dict[str, OfferedTool]:
        """Return the tools that are declared: those the model holds, and gemdeck's own."""
        if not self.backend.traits.tools:
            return {}
        tools, skills, opened = self._context.servers, self._setup.skills, self._context.opened
        own = (
            *filter(None, [tool_search(tools)]),
            *resource_tools(tools, opened),
            *skills.tool(opened, tools),
            *self._context.kept.declared(),
            *task_tool(tools, self._context.conversation),
        )
        return self._not_refused((*tools.held_tools(), *own))

    def _not_refused(self, tools: Iterable[OfferedTool]) -> dict[str, OfferedTool]:
        refused = self._context.refused
        return {tool.id: tool for tool in tools if (tool.id, tool.definition_hash) not in refused}

    def _callable(
        self, calls: Iterable[FunctionCall], offered: Mapping[str, OfferedTool]
    ) -> Mapping[str, OfferedTool]:
        """Add the tools that the model does not hold; it does hold those that it calls."""
        others = self._not_refused(self._context.servers.offered_tools())
        called = [others[call.name] for call in calls if call.name in others.keys() - offered]
        if called:
            self._setup.tools.load_tools(called)
        reading = self._context.kept.tool()
        return {reading.id: reading, **others, **offered}

    async def _run_step(self, offered: dict[str, OfferedTool]) -> None:
        """Complete one step in `_step`; refused tools are removed from `offered`."""
        malformed = refused = waits = 0
        has_dropped = False
        while True:
            self._step = self._new_step()
            self._set_phase(TurnPhase.WAITING)
            await self._context.save()
            self._setup.costs.check()
            try:
                await self._step.run(self.backend, self._request(offered))
                return
            except MalformedCallError as error:
                malformed += 1
                if malformed > MAX_MALFORMED_CALLS or self._step.any_text:
                    raise
                self._notify(Severity.WARNING, str(error), "Trying again.", passes=True)
            except ModelError as error:
                if self._step.any_text:  # it would be shown twice
                    raise
                if error.refused_tool in offered and refused < MAX_REFUSED_TOOLS:
                    refused += 1
                    tool = offered.pop(error.refused_tool)
                    self._context.refused.add((tool.id, tool.definition_hash))
                    brief = f"{tool.server} · {tool.view.name} is not offered"
                    self._notify(Severity.WARNING, f"{brief}: {error}", error.advice, brief=brief)
                elif error.lacks in {"tools", "instructions"} - self._context.without:
                    self._context.without.add(error.lacks)
                    self._notify(Severity.WARNING, str(error), "Continuing without them.")
                elif not has_dropped and (dropped := self._drop_refused(error)):
                    has_dropped = True
                    text = f"{error} Trying again without {' and '.join(sorted(dropped))}."
                    self._notify(Severity.WARNING, sanitize_line(text))
                elif await self._wait_to_retry(error, waits):
                    waits += 1
                else:
                    raise

    async def _wait_to_retry(self, error: ModelError, waits: int) -> bool:
        """Wait until the service may be asked again, after so many waits; return whether to ask."""
        retry, seconds = self._context.retry, error.retry_after
        if seconds is None or not error.retryable or self._step.any_chunk:
            return False
        if waits >= retry.attempts or seconds > retry.patience:
            return False
        if not waits:
            advice = f"Trying again in {seconds:.0f} s."
            self._notify(Severity.WARNING, str(error), advice, brief=error.brief, passes=True)
        self._set_phase(TurnPhase.RETRYING, until=time.monotonic() + seconds)
        return await retry.wait(seconds)

    def _drop_refused(self, error: ModelError) -> set[str]:
        """Take the media out because of which a request was refused, and return their types."""
        words, contents = error.refused_content, self._history.contents
        return {*drop_media(contents, self._accepted, words)} if words else set()

    def _request(self, offered: Mapping[str, OfferedTool]) -> ModelRequest:
        context = self._context
        own, said_now = self._setup.settings.system_instruction, context.servers.instructions()
        told = self._setup.skills.told(context.servers.profile)
        context.instruction, said = compose(own, self._files, said_now, told)
        if "instructions" in context.without:
            context.instruction, said = "", ()
        if said != context.instructions:
            context.instructions = said
            self._publish(e.InstructionsSent(dict(said)))
        held = () if "tools" in context.without else offered.values()
        is_plain = self.backend.traits.plain_schemas
        declared = [tool.plain if is_plain else tool.declaration for tool in held]
        options, contents = context.asked.options, self._history.contents
        return ModelRequest(contents, declared, context.instruction, options=options)

    async def _answer_calls(
        self, calls: Sequence[FunctionCall], offered: Mapping[str, OfferedTool]
    ) -> None:
        """Run the calls within the limit, and add all responses to the history."""
        self._set_phase(TurnPhase.TOOLS)
        offered = self._callable(calls, offered)
        within, beyond = calls[: self._calls_left], calls[self._calls_left :]
        self._calls_left -= len(within)
        step_calls = [StepCall(call, self._context.new_entry()) for call in within]
        most = counted(self._setup.settings.max_tool_calls, "tool call")
        words = f"Not run: a turn is limited to {most}."
        told = f"{words} Call no more tools and answer with what you have."
        limit = FunctionResponse.error(told)
        try:
            await self._calls.announce(step_calls, offered)
            if beyond and not self._limit_reported:
                self._limit_reported = True
                words = f"A turn is limited to {most}; {len(beyond)} more did not run."
                self._notify(Severity.WARNING, words, _GO_ON)
            await self._context.save()
            await self._calls.run(step_calls, offered)
        finally:
            answers = [(step_call.call, step_call.answer) for step_call in step_calls]
            answers += [(call, limit) for call in beyond]
            inline = self.backend.traits.media_in_responses
            self._history.add_responses(answers, inline_media=inline)

    def _interrupt(self, note: str) -> None:
        """Leave a history that is valid for the next message."""
        self._has_answer = self._has_answer or self._step.any_text
        if self._has_answer:
            self._history.close_turn(note, self._step.gathered.parts)
        else:
            del self._history.contents[self._start :]

    def _finish(self, outcome: TurnOutcome) -> None:
        self.has_ended = True
        unsent = [*([] if self._has_answer else [self._message.text]), *self.returned]
        self._asking.clear()
        self._set_clock()
        seconds = time.monotonic() - self._began
        self._publish(e.TurnFinished(self.id, outcome, "\n\n".join(unsent), seconds))

    def _notify(
        self, severity: Severity, text: str, advice: str = "", brief: str = "", passes: bool = False
    ) -> None:
        entry = self._context.new_entry()
        self._publish(e.ChatNoticeAdded(ChatNotice(entry, severity, text, advice, brief, passes)))

    def _set_phase(
        self, phase: TurnPhase, server: ServerId | None = None, *, until: float | None = None
    ) -> None:
        self._phase = phase
        self._set_clock()
        self._publish(e.TurnPhaseChanged(self.id, phase, server, until))

    def _new_step(self) -> ModelStep:
        on_first_chunk = partial(self._set_phase, TurnPhase.STREAMING)
        return ModelStep(self._publish, self._context.new_entry, on_first_chunk)
