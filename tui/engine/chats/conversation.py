"""The conversation: queues messages and runs one turn at a time."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from tui.engine.chats.backends.backend import ModelBackend
from tui.engine.chats.history import History
from tui.engine.chats.turn import Message, MessageError, Turn, TurnContext, give_back
from tui.model.chat import Severity, TurnOutcome
from tui.model.events import (
    ConversationCleared,
    MessageReturned,
    Notice,
    NoticeRaised,
    QueueChanged,
    TurnFinished,
)

MAX_QUEUED: Final = 20
"""Most messages queued behind the running turn."""

_log: Final = logging.getLogger(__name__)

CLOSE_PATIENCE: Final = 5.0
"""Seconds a backend may take to close."""


class Conversation:
    """A conversation with one model at a time.

    Call all methods on the event loop of `run`.

    Args:
        context: What its turns share; the backend is closed when it is replaced or `run` ends.
        is_used: Whether another conversation still needs a backend; then that one closes it.
    """

    def __init__(
        self, context: TurnContext, is_used: Callable[[ModelBackend], bool] = lambda _: False
    ) -> None:
        self._context = context
        self._is_used = is_used
        self._publish = context.publish
        self._queue: deque[Message] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._turn: Turn | None = None
        self._turn_task: asyncio.Task[None] | None = None
        self._is_cancelled = False
        self._is_clear_due = False
        self._is_running = False
        self._next_backend: ModelBackend | None = None
        self._retired: list[ModelBackend] = []

    @property
    def backend(self) -> ModelBackend:
        return self._next_backend or self._context.backend

    @property
    def context(self) -> TurnContext:
        return self._context

    @property
    def history(self) -> History:
        return self._context.history

    @property
    def is_idle(self) -> bool:
        """Whether no turn runs and none waits, so that the history may be changed."""
        return self._idle.is_set()

    def holds(self, backend: ModelBackend) -> bool:
        """Return whether its turns go to a backend, now or next."""
        return self._is_running and (
            backend is self._context.backend or backend is self._next_backend
        )

    async def run(self) -> None:
        """Run a turn for each message until cancelled.

        Canceling ends the running turn and closes the backend.
        """
        self._is_running = True
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self._take_over()
                while self._queue:
                    message = self._queue.popleft()
                    self._publish_queue()
                    try:
                        await self._run_turn(message)
                    except Exception as error:  # noqa: BLE001 - the next message may go well
                        self._end_broken(message, error)
                    await self._take_over()
                self._idle.set()
        finally:
            self._is_running = False
            self._idle.set()
            self._retired.append(self._context.backend)
            if self._next_backend is not None:
                self._retired.append(self._next_backend)
            await self._close_retired()

    def send(self, message: Message) -> None:
        """Send a message. While a turn runs, up to `MAX_QUEUED` messages wait."""
        if len(self._queue) >= MAX_QUEUED:
            words = f"Not sent, because {MAX_QUEUED} messages are already waiting."
            give_back(self._publish, message.text, MessageError(words))
            return
        if self._turn_task is not None:
            text = "The message waits until the running turn ends."
            self._publish(NoticeRaised(Notice(Severity.INFO, text)))
        self._queue.append(message)
        self._publish_queue()
        self._idle.clear()
        self._wake.set()

    def cancel(self) -> None:
        """Stop the running turn at once: its request, its calls on the servers, its questions.

        Waiting messages are not sent; they return to the user together with the turn's unsent
        text, so that nothing is lost and nothing runs after a stop.
        """
        waiting = [message.text for message in self._queue]
        self._queue.clear()
        self._publish_queue()
        if self._turn is None or self._turn.has_ended:
            for text in waiting:
                self._publish(MessageReturned(text))
            return
        self._turn.add_unsent(waiting)
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
            self._publish(MessageReturned(text))

    def clear(self) -> None:
        """Start a new conversation; a running turn is cancelled first."""
        self._queue.clear()
        self._publish_queue()
        if self._turn_task is None:
            self._clear_now()
        else:
            self._is_clear_due = True
            self.cancel()

    def use_backend(self, backend: ModelBackend) -> None:
        """Switch to another model from the next turn on; the old one is closed."""
        if self._next_backend is not None:
            self._retired.append(self._next_backend)
        self._next_backend = backend
        self._wake.set()

    async def wait_idle(self) -> None:
        await self._idle.wait()

    async def _run_turn(self, message: Message) -> None:
        self._turn = Turn(self._context, message)
        self._turn.begin()
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
                self._clear_now()
        await self._context.save()

    def _end_broken(self, message: Message, error: Exception) -> None:
        """End a turn that broke down outside its steps, and give its message back."""
        _log.exception("a turn broke down")
        words = f"The turn failed unexpectedly ({type(error).__name__})."
        advice = "See the log for details. Send the message again."
        give_back(self._publish, message.text, MessageError(words, advice))
        if self._turn is not None:
            self._publish(TurnFinished(self._turn.id, TurnOutcome.FAILED))
        self._turn_task = self._turn = None

    def _publish_queue(self) -> None:
        self._publish(QueueChanged(tuple(message.text for message in self._queue)))

    def _clear_now(self) -> None:
        self._is_clear_due = False
        self._context.history.contents.clear()
        self._publish(ConversationCleared())

    async def _take_over(self) -> None:
        """Switch to the next backend, if there is one."""
        if self._next_backend is not None:
            if self._next_backend is not self._context.backend:
                self._retired.append(self._context.backend)
            self._context.backend, self._next_backend = self._next_backend, None
            self._context.history.strip_signatures()
            self._context.refused.clear()
        await self._close_retired()

    async def _close_retired(self) -> None:
        while self._retired:
            backend = self._retired.pop()
            if self._is_used(backend):
                continue
            with contextlib.suppress(Exception):  # no longer used
                async with asyncio.timeout(CLOSE_PATIENCE):
                    await backend.aclose()
