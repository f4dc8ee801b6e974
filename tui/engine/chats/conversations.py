"""The open conversations, one of which is the current one."""

import asyncio
import contextlib
import itertools
import queue
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from typing import Final

from tui.engine.approval.gate import Gate
from tui.engine.background import TaskSet
from tui.engine.bus import EventBus, Publish
from tui.engine.chats.backends.backend import Asked, ModelBackend
from tui.engine.chats.calls import ResultReviewer
from tui.engine.chats.conversation import Conversation
from tui.engine.chats.history import History
from tui.engine.chats.sessions.recorder import CLOSE_PATIENCE, Recorder
from tui.engine.chats.turn import Message, MessageError, RetryWait, TurnContext, give_back
from tui.engine.mcp.manager import ServerManager
from tui.model.chat import MAIN, ConversationId, EntryId, ModelView, Severity, Usage
from tui.model.events import (
    ContextFile,
    ConversationEvent,
    Event,
    ModelSelected,
    Notice,
    NoticeRaised,
)
from tui.model.models import OWN_OPTIONS, ModelOptionsChanged
from tui.model.servers import ServerId
from tui.model.sessions import (
    ConversationClosed,
    ConversationOpened,
    ConversationSelected,
    SessionId,
)
from tui.model.settings import GemdeckSettings


@dataclass(eq=False, slots=True)
class OpenConversation:
    """A conversation that is open, with or without a model.

    Attributes:
        key: Its id.
        tell: Takes its events, which name it.
        recorder: Writes it down.
        retry: Its wait for another try.
        asked: How the user wants its model to answer.
        model: The name of the model that the user chose for it, or an empty string.
        view: The model that answers, or None.
        conversation: What is said; None until there is a model.
        running: The task of its turns, likewise.
        choosing: The task that opens another model for it, or None.
        usage: The tokens of its last request.
        has_offered: Whether its user was told that the context is nearly full.
        retried: The session, and the number in it, of the message that was sent again last.
    """

    key: ConversationId
    tell: Publish
    recorder: Recorder
    retry: RetryWait
    asked: Asked = field(default_factory=Asked)
    model: str = ""
    view: ModelView | None = None
    conversation: Conversation | None = None
    running: asyncio.Task[None] | None = None
    choosing: asyncio.Task[None] | None = None
    usage: Usage = Usage()
    has_offered: bool = False
    retried: tuple[str | None, int] | None = None

    @property
    def backend(self) -> ModelBackend | None:
        """The model that answers from the next turn on."""
        return self.conversation.backend if self.conversation is not None else None

    @property
    def answering(self) -> tuple[ModelBackend | None, Publish]:
        """The same, and what takes the events about its answers."""
        return self.backend, self.publish

    @property
    def is_unused(self) -> bool:
        """Whether nothing was said in it, nor is typed as far as is known."""
        is_idle = self.conversation is None or self.conversation.is_idle
        return is_idle and not self.recorder.messages and not self.recorder.draft

    def publish(self, event: Event) -> None:
        """Publish an event, as one of this conversation if it is one of any."""
        if isinstance(event, ConversationEvent):
            event = replace(event, conversation=self.key)
        self.tell(event)

    def send(self, message: Message) -> None:
        """Send a message; it comes back without a model."""
        if self.conversation is not None:
            self.conversation.send(message)
        else:
            error = MessageError("Not sent, because there is no model.", "Choose a model first.")
            give_back(self.publish, message.text, error)

    def keep_settings(self) -> None:
        """Save how the model is to answer."""
        self.recorder.keep_settings({"model": self.model, **asdict(self.asked.options)})

    async def end(self) -> None:
        """Stop its turn, down to the wire."""
        if self.choosing is not None:
            self.choosing.cancel()
        if self.running is not None and self.conversation is not None:
            self.running.cancel()
            await self.conversation.wait_idle()


@dataclass
class TurnContexts:
    """Makes the `TurnContext` of each conversation, whose attributes these are.

    Attributes:
        numbers: Source of all numbers in ids, so that no id of a conversation is another's.
        settings: Say how much a turn may do.
    """

    servers: ServerManager
    gate: Gate
    prepare: Callable[[], Awaitable[Sequence[ServerId]]]
    context_files: Callable[[], Awaitable[Sequence[ContextFile]]]
    reviewer: ResultReviewer
    max_steps: int | None
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    settings: GemdeckSettings = field(default_factory=GemdeckSettings)

    def new_call(self) -> EntryId:
        """Return the id of a call outside any turn."""
        return EntryId(f"c{next(self.numbers)}")

    def make(self, one: OpenConversation, backend: ModelBackend) -> TurnContext:
        return TurnContext(
            backend,
            self.servers,
            self.gate,
            one.publish,
            self.settings.max_tool_calls,
            self.settings.system_instruction,
            self.prepare,
            one.recorder.save,
            self.reviewer,
            self.context_files,
            History(self.settings.max_result_size),
            numbers=self.numbers,
            asked=one.asked,
            retry=one.retry,
            max_steps=self.max_steps,
            conversation=one.key,
        )


MAX_OPEN: Final = 20
"""Most conversations that are open at once."""


class Conversations:
    """The open conversations, in the order in which they were opened; there is always one.

    A command without a key means the current one, and on one that is not open does nothing.

    Args:
        bus: Takes the events, and tells what is to be written.
        tasks: Run the turns.
        new_recorder: Makes what writes a conversation down.
        turn_context: Makes what the turns of a conversation share.
        attended: Whether a user sees a wait for another try, and can end it.

    Attributes:
        current: What commands mean.
        attended: The same.
        on_context: Told the smallest context of the models that answer, in tokens; 0 if unknown.
    """

    def __init__(
        self,
        bus: EventBus,
        tasks: TaskSet,
        new_recorder: Callable[[], Recorder],
        turn_context: Callable[[OpenConversation, ModelBackend], TurnContext],
        *,
        attended: bool,
    ) -> None:
        self._publish = bus.publish
        self._tasks = tasks
        self._new_recorder = new_recorder
        self._turn_context = turn_context
        self.attended = attended
        self.on_context: Callable[[int], None] = lambda _: None
        self._is_saved = False
        self._keys = count(2)
        self._open: dict[ConversationId, OpenConversation] = {}
        self._closing: dict[ConversationId, OpenConversation] = {}
        self._ends = TaskSet("A conversation did not close")
        self.current = self._add(MAIN)
        bus.subscribe(self._record)

    def __iter__(self) -> Iterator[OpenConversation]:
        return iter(tuple(self._open.values()))

    def __contains__(self, one: OpenConversation) -> bool:
        return self._open.get(one.key) is one

    def get(self, key: ConversationId | None = None) -> OpenConversation | None:
        return self.current if key is None else self._open.get(key)

    def with_session(self, session: SessionId) -> OpenConversation | None:
        """Return the conversation that a session is open in."""
        return next((one for one in self if one.recorder.session == session), None)

    def save(self, *, is_on: bool) -> None:
        """Say whether conversations are saved."""
        self._is_saved = is_on
        for one in self:
            one.recorder.switch(is_on=is_on)

    def open(self) -> None:
        """Open another conversation beside the current one, and make it the current one.

        It has the same model, which answers in the same way.
        """
        if len(self._open) >= MAX_OPEN:
            words = f"{MAX_OPEN} conversations are open, and there cannot be more."
            self._publish(NoticeRaised(Notice(Severity.WARNING, words, "Close one of them first.")))
            return
        like = self.current
        opened = self._add(ConversationId(f"chat{next(self._keys)}"))
        opened.model, opened.asked.options = like.model, like.asked.options
        self._publish(ConversationOpened(opened.key))
        if like.backend is not None and like.view is not None:
            self.answer_with(opened, like.backend, like.view)
        self._publish(ModelOptionsChanged(opened.asked.options, opened.key))
        if opened.model or opened.asked.options != OWN_OPTIONS:
            opened.keep_settings()
        self.select(opened.key)

    def select(self, key: ConversationId) -> None:
        """Make an open conversation the current one."""
        if key in self._open and self._open[key] is not self.current:
            self.current = self._open[key]
            self._publish(ConversationSelected(key))

    def close(self, key: ConversationId | None = None) -> None:
        """Close a conversation, unless it is the only one; the next one takes its place.

        Its turn is stopped. What is saved stays among the sessions.
        """
        if len(self._open) == 1 or (closed := self.get(key)) is None:
            return
        if closed is self.current:
            keys = [*self._open]
            place = keys.index(closed.key)
            self.select(keys[place + 1] if place + 1 < len(keys) else keys[place - 1])
        self._closing[closed.key] = self._open.pop(closed.key)
        self._tell_context()
        self._ends.start(self._end(closed))

    def answer_with(self, one: OpenConversation, backend: ModelBackend, view: ModelView) -> None:
        """Let a model answer in a conversation, from its next turn on."""
        one.view = view
        one.publish(ModelSelected(view))
        if one.conversation is not None:
            one.conversation.use_backend(backend)
        else:
            context = self._turn_context(one, backend)
            one.conversation = Conversation(context, self._is_used)
            one.recorder.follow(context.history)
            one.running = self._tasks.start(one.conversation.run())
        self._tell_context()

    def cancel(self, key: ConversationId | None = None) -> None:
        if (one := self.get(key)) is not None and one.conversation is not None:
            one.conversation.cancel()

    def clear(self, key: ConversationId | None = None) -> None:
        if (one := self.get(key)) is not None and one.conversation is not None:
            one.conversation.clear()

    def unqueue(self, text: str, *, give_back: bool) -> None:
        """Take a waiting message back; see `Conversation.unqueue`."""
        if self.current.conversation is not None:
            self.current.conversation.unqueue(text, give_back=give_back)

    async def wait_idle(self, key: ConversationId | None = None) -> None:
        if (one := self.get(key)) is not None and one.conversation is not None:
            await one.conversation.wait_idle()

    async def settle(self) -> None:
        """Wait until all is written, and what was left is unlocked, but not long."""
        with contextlib.suppress(TimeoutError, queue.Full):
            async with asyncio.timeout(CLOSE_PATIENCE):
                await asyncio.gather(*(one.recorder.flush() for one in self))
                await self._ends.wait()

    async def aclose(self) -> None:
        """Write what is left; the turns have ended."""
        await asyncio.gather(*(one.recorder.aclose() for one in self))
        await self._ends.wait()

    def _add(self, key: ConversationId) -> OpenConversation:
        retry = RetryWait.watched() if self.attended else RetryWait()
        added = OpenConversation(key, self._publish, self._new_recorder(), retry)
        added.recorder.is_on = self._is_saved
        self._open[key] = added
        return added

    def _tell_context(self) -> None:
        limits = (one.backend.traits.context_limit for one in self if one.backend is not None)
        self.on_context(min(filter(None, limits), default=0))

    async def _end(self, closed: OpenConversation) -> None:
        await closed.end()
        self._publish(ConversationClosed(closed.key))
        await closed.recorder.aclose()
        del self._closing[closed.key]

    def _record(self, event: Event) -> None:
        if isinstance(event, ConversationEvent):
            key = event.conversation
            if (one := self._open.get(key) or self._closing.get(key)) is not None:
                one.recorder.take(event)

    def _is_used(self, backend: ModelBackend) -> bool:
        """Return whether a conversation still needs a backend."""
        known = (*self._open.values(), *self._closing.values())
        return any(one.conversation and one.conversation.holds(backend) for one in known)
