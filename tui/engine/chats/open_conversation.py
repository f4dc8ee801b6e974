"""An open conversation: what is said, what writes it down, and how its model answers."""

import asyncio
from dataclasses import asdict, dataclass, field, replace

from tui.engine.bus import Publish
from tui.engine.chats.backends.backend import Asked, ModelBackend
from tui.engine.chats.conversation import Conversation
from tui.engine.chats.message import Message, MessageError, give_back
from tui.engine.chats.sessions.recorder import Recorder
from tui.engine.chats.turn import RetryWait
from tui.model.chat import ConversationId, ModelView, Usage
from tui.model.events import ConversationEvent, Event


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
