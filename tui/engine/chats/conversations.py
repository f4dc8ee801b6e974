"""The open conversations, one of which is the current one."""

import asyncio
import contextlib
import queue
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final

from tui.engine.background import TaskSet
from tui.engine.bus import EventBus
from tui.engine.chats.backends.backend import ModelBackend
from tui.engine.chats.conversation import Conversation
from tui.engine.chats.history import History
from tui.engine.chats.sessions.recorder import CLOSE_PATIENCE, Recorder
from tui.engine.chats.turn import RetryWait, TurnContext, TurnSetup
from tui.model.chat import MAIN, ConversationId, ModelView, Severity
from tui.model.events import (
    ConversationEvent,
    Event,
    ModelSelected,
    Notice,
    NoticeRaised,
)
from tui.model.models import OWN_OPTIONS, ModelOptionsChanged
from tui.model.sessions import (
    ConversationClosed,
    ConversationOpened,
    ConversationSelected,
    SessionId,
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
        setup: What the turns of all go by.
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
        self._tasks = tasks
        self._new_recorder = new_recorder
        self._setup = setup
        self.attended = attended
        self.on_context: Callable[[int], None] = lambda _: None
        self._is_saved = False
        self._keys = count(2)
        self._open: dict[ConversationId, Conversation] = {}
        self._closing: dict[ConversationId, Conversation] = {}
        self._ends = TaskSet("A conversation did not close")
        self.current = self._add(MAIN)
        bus.subscribe(self._record)

    def __iter__(self) -> Iterator[Conversation]:
        return iter(tuple(self._open.values()))

    def __contains__(self, one: Conversation) -> bool:
        return self._open.get(one.key) is one

    def get(self, key: ConversationId | None = None) -> Conversation | None:
        return self.current if key is None else self._open.get(key)

    def with_session(self, session: SessionId) -> Conversation | None:
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

    def answer_with(self, one: Conversation, backend: ModelBackend, view: ModelView) -> None:
        """Let a model answer in a conversation, from its next turn on."""
        one.view = view
        one.publish(ModelSelected(view))
        if one.context is not None:
            one.use_backend(backend)
        else:
            history = History(self._setup.settings.max_result_size)
            one.recorder.follow(history)
            one.context = TurnContext(
                self._setup,
                backend,
                one.publish,
                history,
                one.recorder.save,
                one.asked,
                one.retry,
                one.key,
            )
            one.running = self._tasks.start(one.run(one.context))
        self._tell_context()

    def cancel(self, key: ConversationId | None = None) -> None:
        if (one := self.get(key)) is not None:
            one.cancel()

    def clear(self, key: ConversationId | None = None) -> None:
        if (one := self.get(key)) is not None:
            one.clear()

    async def wait_idle(self, key: ConversationId | None = None) -> None:
        if (one := self.get(key)) is not None:
            await one.wait_idle()

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

    def _add(self, key: ConversationId) -> Conversation:
        retry = RetryWait.watched() if self.attended else RetryWait()
        added = Conversation(key, self._publish, self._new_recorder(), retry, self._is_used)
        added.recorder.is_on = self._is_saved
        self._open[key] = added
        return added

    def _tell_context(self) -> None:
        limits = (one.backend.traits.context_limit for one in self if one.backend is not None)
        self.on_context(min(filter(None, limits), default=0))

    async def _end(self, closed: Conversation) -> None:
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
        return any(one.holds(backend) for one in known)
