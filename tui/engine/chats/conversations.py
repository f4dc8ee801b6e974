"""The open conversations, one of which is the current one; each runs one turn at a time."""

import asyncio
import contextlib
import logging
import queue
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from typing import Final

from tui.engine.background import TaskSet
from tui.engine.bus import EventBus, Publish
from tui.engine.chats.backends.backend import Asked, ModelBackend
from tui.engine.chats.history import History
from tui.engine.chats.sessions.recorder import CLOSE_PATIENCE, Recorder
from tui.engine.chats.turn import (
    Message,
    MessageError,
    RetryWait,
    Turn,
    TurnContext,
    TurnSetup,
    give_back,
)
from tui.model import events as e
from tui.model.chat import (
    MAIN,
    ConversationEvent,
    ConversationId,
    ModelView,
    Severity,
    TurnOutcome,
    Usage,
)
from tui.model.models import OWN_OPTIONS, ModelOptionsChanged
from tui.model.sessions import (
    ConversationClosed,
    ConversationOpened,
    ConversationSelected,
    SessionId,
)
from tui.model.settings import NOTHING, Profile

MAX_QUEUED: Final = 20
"""Most messages queued behind the running turn."""

_log: Final = logging.getLogger(__name__)

BACKEND_PATIENCE: Final = 5.0
"""Seconds a backend may take to close."""

MAX_OPEN: Final = 20
"""Most conversations that are open at once."""


@dataclass(eq=False, slots=True)
class Conversation:
    """A conversation that is open, with one model at a time or without any yet.

    All methods belong to one event loop.

    Attributes:
        key: Its id.
        tell: Takes its events, which name it.
        recorder: Writes it down.
        retry: Its wait for another try.
        tasks: Run its turns.
        asked: How the user wants its model to answer.
        model: The name of the model that the user chose for it, or an empty string.
        view: The model that answers, or None.
        context: What its turns share; None until there is a model.
        running: The task of its turns, if there were any.
        choosing: The task that opens another model for it, or None.
        usage: The tokens of its last request.
        has_offered: Whether its user was told that the context is nearly full.
        retried: The session, and the number in it, of the message that was sent again last.
    """

    key: ConversationId
    tell: Publish
    recorder: Recorder
    retry: RetryWait
    tasks: TaskSet
    asked: Asked = field(default_factory=Asked)
    model: str = ""
    view: ModelView | None = None
    context: TurnContext | None = None
    running: asyncio.Task[None] | None = None
    choosing: asyncio.Task[None] | None = None
    usage: Usage = Usage()
    has_offered: bool = False
    retried: tuple[str | None, int] | None = None
    _queue: deque[Message] = field(default_factory=deque)
    _idle: asyncio.Event = field(default_factory=asyncio.Event)
    _turn: Turn | None = None
    _turn_task: asyncio.Task[None] | None = None
    _is_cancelled: bool = False
    _is_clear_due: bool = False
    _is_switch_due: bool = False
    _goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    _left: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._idle.set()
        self._goes_on.set()

    @property
    def backend(self) -> ModelBackend | None:
        """The model that answers from the next turn on."""
        return self.context.backend if self.context is not None else None

    @property
    def is_idle(self) -> bool:
        """Whether no turn runs and none waits, so that the history may be changed."""
        return self._idle.is_set()

    def holds(self, backend: ModelBackend) -> bool:
        """Return whether its turns go to a backend, now or next."""
        turn = self._turn
        is_asked = turn is not None and not turn.has_ended and backend is turn.backend
        return is_asked or backend is self.backend

    def publish(self, event: e.Event) -> None:
        """Publish an event, as one of this conversation if it is one of any."""
        if isinstance(event, ConversationEvent):
            event = replace(event, conversation=self.key)
        self.tell(event)

    def keep_settings(self) -> None:
        """Save how the model is to answer, and which skills are loaded."""
        skills = [*self.context.opened] if self.context is not None else []
        kept = {"model": self.model, **asdict(self.asked.options), "skills": skills}
        del kept["profile"]  # it belongs to the tab
        self.recorder.keep_settings(kept)

    async def _run(self, context: TurnContext) -> None:
        """Run a turn for each message that waits. Canceling ends the running turn."""
        try:
            while self._queue:
                message = self._queue.popleft()
                try:
                    await self._run_turn(context, message)
                except Exception as error:  # noqa: BLE001 - the next message may go well
                    self._end_broken(message, error)
        finally:  # not when the task is done: a message may come in between
            self._idle.set()

    def send(self, message: Message) -> None:
        """Send a message; it comes back without a model.

        While a turn runs, up to `MAX_QUEUED` messages wait.
        """
        if self.context is None:
            error = MessageError("Not sent, because there is no model.", "Choose a model first.")
            give_back(self.publish, message.text, error)
            return
        if len(self._queue) >= MAX_QUEUED:
            words = f"Not sent, because {MAX_QUEUED} messages are already waiting."
            give_back(self.publish, message.text, MessageError(words))
            return
        self._queue.append(message)
        self._publish_queue()
        self.hold(is_held=not self._goes_on.is_set())

    def hold(self, *, is_held: bool) -> None:
        """Let messages wait from now on, or begin with those that do."""
        if is_held:
            self._goes_on.clear()
            return
        self._goes_on.set()
        if self.context is not None and self._queue and self.is_idle:
            self._idle.clear()
            self.running = self.tasks.start(self._run(self.context))

    def cancel(self) -> None:
        """Stop the running turn at once: its request, its calls on the servers, its questions.

        Waiting messages are not sent; they return to the user together with the turn's unsent
        text, so that nothing is lost and nothing runs after a stop.
        """
        waiting = self._take_queue()
        if self._turn is None or self._turn.has_ended:
            for text in waiting:
                self.publish(e.MessageReturned(text))
            return
        self._turn.returned += waiting
        if self._turn_task is not None and not self._is_cancelled:
            self._is_cancelled = True
            self._turn_task.cancel()

    def unqueue(self, text: str, *, give_back: bool) -> None:
        """Take the last waiting message with this text out, and perhaps give it back."""
        waiting = [index for index, message in enumerate(self._queue) if message.text == text]
        if not waiting:
            return
        del self._queue[waiting[-1]]
        self._publish_queue()
        if give_back:
            self.publish(e.MessageReturned(text))

    def clear(self) -> None:
        """Start a new conversation; a turn is cancelled first, and messages that wait come back."""
        if self.context is None:
            return
        self._left += self._take_queue()
        if self._turn_task is None:
            self._clear_now(self.context)
        else:
            self._is_clear_due = True
            self.cancel()

    def use_backend(self, context: TurnContext, backend: ModelBackend) -> None:
        """Let another model answer from the next turn on."""
        if backend is not context.backend:
            context.backend, self._is_switch_due = backend, True
            if self._turn is None:
                self._switch(context)

    def heed(self, event: e.Event) -> None:
        """Let the running turn know when the user is asked."""
        if self._turn is not None and isinstance(event, e.RequestRaised | e.RequestSettled):
            self._turn.heed(event)

    async def wait_idle(self) -> None:
        """Wait until no turn runs, and none is held."""
        await self._goes_on.wait()
        await self._idle.wait()

    async def end(self) -> None:
        """Stop its turn, down to the wire."""
        if self.choosing is not None:
            self.choosing.cancel()
        if self.running is not None:
            self.running.cancel()  # perhaps before it has begun
            await asyncio.wait({self.running})

    async def _run_turn(self, context: TurnContext, message: Message) -> None:
        before = set(context.opened)
        self._turn = Turn(context, message)
        self._turn.begin()
        self._publish_queue()  # only now: until its turn is on record it counts as waiting
        self._is_cancelled = False
        self._turn_task = task = asyncio.create_task(self._turn.run())
        try:
            await asyncio.wait({task})
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
            self._turn.abandon()  # it may have been cancelled before its first step
            self._turn_task = self._turn = None
            if self._is_clear_due:
                self._clear_now(context)
            if self._is_switch_due:
                self._switch(context)
        if context.opened.keys() != before:
            self.keep_settings()
        await context.save()

    def _end_broken(self, message: Message, error: Exception) -> None:
        """End a turn that broke down outside its steps, and give its message back."""
        _log.exception("a turn broke down")
        words = f"The turn failed unexpectedly ({type(error).__name__})."
        advice = "See the log for details. Send the message again."
        give_back(self.publish, message.text, MessageError(words, advice))
        if self._turn is not None:
            self.publish(e.TurnFinished(self._turn.id, TurnOutcome.FAILED))
        self._turn_task = self._turn = None

    def _take_queue(self) -> list[str]:
        """Take out the messages that wait."""
        waiting = [message.text for message in self._queue]
        self._queue.clear()
        self._publish_queue()
        return waiting

    def _publish_queue(self) -> None:
        self.publish(e.QueueChanged(tuple(message.text for message in self._queue)))

    def _clear_now(self, context: TurnContext) -> None:
        self._is_clear_due = False
        had_skills = bool(context.opened)
        context.history.contents.clear()
        context.kept.clear()
        context.opened.clear()
        context.setup.tools.tasks.let_go(self.key)
        self.publish(e.ConversationCleared())
        if self._left:
            self.publish(e.MessageReturned("\n\n".join(self._left)))
            self._left = []
        if had_skills:  # only now: the session that has just ended keeps them
            self.keep_settings()

    def _switch(self, context: TurnContext) -> None:
        """Forget what only the model before knows."""
        self._is_switch_due = False
        context.history.strip_signatures()
        context.refused.clear()
        context.without.clear()


class Conversations:
    """The open conversations, in the order in which they were opened; there is always one.

    A command without a key means the current one, and on one that is not open does nothing.

    Args:
        bus: Takes the events, and tells what is to be written.
        tasks: Run the turns.
        new_recorder: Makes what writes a conversation down.
        setup: What the turns of all go by; the same attribute.
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
        setup: TurnSetup,
        *,
        attended: bool,
    ) -> None:
        self._publish = bus.publish
        self._tasks, self._new_recorder = tasks, new_recorder
        self.setup, self.attended = setup, attended
        self.on_context: Callable[[int], None] = lambda _: None
        self._is_saved = False
        self._keys = count(2)
        self._open: dict[ConversationId, Conversation] = {}
        self._closing: dict[ConversationId, Conversation] = {}
        self._opened = set[ModelBackend]()
        self._ends = TaskSet("A conversation or a model did not close")
        self.current = self._add(MAIN)
        bus.subscribe(self._record)

    def __iter__(self) -> Iterator[Conversation]:
        return iter(tuple(self._open.values()))

    def get(self, key: ConversationId | None = None) -> Conversation | None:
        return self.current if key is None else self._open.get(key)

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """The profiles that they go by, by name."""
        names = sorted({one.asked.options.profile for one in self})
        return {name: self.setup.profiles.get(name, NOTHING) for name in names}

    def with_session(self, session: SessionId) -> Conversation | None:
        """Return the conversation that a session is open in."""
        return next((one for one in self if one.recorder.session == session), None)

    def save(self, *, is_on: bool) -> None:
        """Say whether conversations are saved."""
        self._is_saved = is_on
        for one in self:
            one.recorder.switch(is_on=is_on)

    def open(self) -> ConversationId | None:
        """Open another conversation beside the current one, and make it the current one.

        It has the same model, which answers in the same way.

        Returns:
            Its id, or None if there are too many.
        """
        if len(self._open) >= MAX_OPEN:
            words = f"{MAX_OPEN} conversations are open, which is the maximum."
            notice = e.Notice(Severity.WARNING, words, "Close one of them first.")
            self._publish(e.NoticeRaised(notice))
            return None
        like = self.current
        opened = self._add(ConversationId(f"chat{next(self._keys)}"))
        opened.model, opened.asked.options = like.model, like.asked.options
        self._publish(ConversationOpened(opened.key))
        if like.backend is not None and like.view is not None:
            self.answer_with(opened, like.backend, like.view)
        opened.publish(ModelOptionsChanged(opened.asked.options))
        if opened.model or opened.asked.options != OWN_OPTIONS:
            opened.keep_settings()
        self.select(opened.key)
        return opened.key

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

    def answer_with(self, one: Conversation, backend: ModelBackend, view: ModelView) -> None:
        """Let a model answer in a conversation, from its next turn on."""
        one.view = view
        self._opened.add(backend)
        if one.context is not None:
            one.use_backend(one.context, backend)
            self._close_unused()
        else:
            history = History()
            one.recorder.follow(history)
            own = one.recorder.save, one.asked, one.retry, one.key
            one.context = TurnContext(self.setup, backend, one.publish, history, *own)
        one.publish(e.ModelSelected(view))
        self._tell_context()

    async def settle(self) -> None:
        """Wait until all is written, and what was left is unlocked, but not long."""
        with contextlib.suppress(TimeoutError, queue.Full):
            async with asyncio.timeout(CLOSE_PATIENCE):
                await asyncio.gather(*(one.recorder.flush() for one in self))
                await self._ends.wait()

    async def aclose(self) -> None:
        """Write what is left, and close the models; the turns have ended."""
        await asyncio.gather(*(one.recorder.aclose() for one in self), *map(_close, self._opened))
        await self._ends.wait()

    def _add(self, key: ConversationId) -> Conversation:
        retry = RetryWait.watched() if self.attended else RetryWait()
        added = Conversation(key, self._publish, self._new_recorder(), retry, self._tasks)
        added.recorder.is_on = self._is_saved
        self._open[key] = added
        return added

    def _tell_context(self) -> None:
        limits = (one.backend.traits.context_limit for one in self if one.backend is not None)
        self.on_context(min(filter(None, limits), default=0))

    async def _end(self, closed: Conversation) -> None:
        await closed.end()
        self.setup.tools.tasks.let_go(closed.key)
        self._publish(ConversationClosed(closed.key))
        await closed.recorder.aclose()
        del self._closing[closed.key]
        self._close_unused()

    def _record(self, event: e.Event) -> None:
        if isinstance(event, ConversationEvent):
            key = event.conversation
            if (one := self._open.get(key) or self._closing.get(key)) is not None:
                one.recorder.take(event)
        if isinstance(event, e.TurnFinished):
            self._close_unused()
        if isinstance(event, e.RequestRaised | e.RequestSettled):
            for one in self:
                one.heed(event)

    def _close_unused(self) -> None:
        """Close the models that no conversation needs any more."""
        known = (*self._open.values(), *self._closing.values())
        for backend in [b for b in self._opened if not any(one.holds(b) for one in known)]:
            self._opened.remove(backend)
            self._ends.start(_close(backend))


async def _close(backend: ModelBackend) -> None:
    with contextlib.suppress(Exception):  # no longer used
        async with asyncio.timeout(BACKEND_PATIENCE):
            await backend.aclose()
