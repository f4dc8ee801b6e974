"""The conversations of a run."""

from tui.engine.bus import Publish
from tui.engine.chat.backends.backend import ModelBackend
from tui.engine.chat.conversation import Conversation
from tui.engine.chat.message import Message, MessageError, give_back
from tui.engine.chat.retry import RetryWait
from tui.model.chat import MAIN, ConversationId


class Conversations:
    """The conversations of a run, by id. A command on one that is not there does nothing.

    Args:
        publish: Takes messages that come back for want of a model.
        attended: Whether a user sees a wait for another try, and can end it.

    Attributes:
        retry: That wait, which their turns share.
    """

    def __init__(self, publish: Publish, *, attended: bool) -> None:
        self._publish = publish
        self._all: dict[ConversationId, Conversation] = {}
        self.retry = RetryWait.watched() if attended else RetryWait()

    def __bool__(self) -> bool:
        return bool(self._all)

    @property
    def backend(self) -> ModelBackend | None:
        """The model that answers now."""
        return self.main.backend if self.main is not None else None

    @property
    def main(self) -> Conversation | None:
        return self._all.get(MAIN)

    def add(self, conversation: Conversation, key: ConversationId = MAIN) -> None:
        self._all[key] = conversation

    def open(self) -> None:
        """Open another conversation beside the current one, and make it the current one."""

    def select(self, key: ConversationId) -> None:
        """Make an open conversation the current one."""

    def close(self) -> None:
        """Close the current conversation, unless it is the only one."""

    def use_backend(self, backend: ModelBackend) -> None:
        for conversation in self._all.values():
            conversation.use_backend(backend)

    def send(self, message: Message) -> None:
        if (found := self._all.get(MAIN)) is not None:
            found.send(message)
        else:
            error = MessageError("Not sent, because there is no model.", "Choose a model first.")
            give_back(self._publish, message.text, error)

    def cancel(self, key: ConversationId) -> None:
        if (found := self._all.get(key)) is not None:
            found.cancel()

    def clear(self, key: ConversationId) -> None:
        if (found := self._all.get(key)) is not None:
            found.clear()

    def unqueue(self, text: str, *, give_back: bool) -> None:
        """Take a waiting message back; see `Conversation.unqueue`."""
        if (found := self._all.get(MAIN)) is not None:
            found.unqueue(text, give_back=give_back)

    async def wait_idle(self, key: ConversationId) -> None:
        if (found := self._all.get(key)) is not None:
            await found.wait_idle()
