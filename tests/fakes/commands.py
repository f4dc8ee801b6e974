"""Commands that only remember what was asked, for tests of the screen without an engine."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from tui.model.chat import MAIN, ConversationId
from tui.model.events import Event
from tui.model.runs import ToolForm
from tui.store.commands import Commands

if TYPE_CHECKING:
    from tui.engine.engine import Engine

Call = tuple[str, tuple[object, ...]]


@dataclass
class RecordingEngine:
    """Stands for the engine or a part of it; `calls` holds ("part.method", arguments).

    A method says nothing, unless `replies` has a function by that name.
    """

    calls: list[Call] = field(default_factory=list)
    replies: dict[str, Callable[..., object]] = field(default_factory=dict)
    path: str = ""
    key: ConversationId = MAIN
    """The id of the conversation on the screen, whatever is asked."""

    def __getattr__(self, name: str) -> "RecordingEngine":
        if name.startswith("__"):  # what Python asks of any object is not there
            raise AttributeError(name)
        part = RecordingEngine(self.calls, self.replies, f"{self.path}.{name}".lstrip("."))
        setattr(self, name, part)
        return part

    def __call__(self, *args: object, **kwargs: object) -> object:
        self.calls.append((self.path, (*args, *kwargs.values())))
        reply = self.replies.get(self.path)
        return reply(*args, **kwargs) if reply is not None else None


class RecordingCommands(Commands):
    """Carries nothing out; `calls` holds what the engine would be asked, `said` what is told."""

    def __init__(self) -> None:
        self.said: list[Event] = []
        super().__init__(self.said.append)
        engine = RecordingEngine()
        engine.replies["runs.form"] = lambda _, __, given, ___: ToolForm((), given or "{}")
        self.calls, self.replies = engine.calls, engine.replies
        self.attach(cast("Engine", engine))
