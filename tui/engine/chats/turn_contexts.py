"""What the turns of all conversations share."""

import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from tui.engine.approval.gate import Gate
from tui.engine.chats.backends.backend import ModelBackend
from tui.engine.chats.calls import ResultReviewer
from tui.engine.chats.history import History
from tui.engine.chats.open_conversation import OpenConversation
from tui.engine.chats.turn import TurnContext
from tui.engine.mcp.manager import ServerManager
from tui.model.chat import EntryId
from tui.model.events import ContextFile
from tui.model.servers import ServerId
from tui.model.settings import GemdeckSettings


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
