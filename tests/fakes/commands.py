"""Commands that only remember what was asked, for tests of the screen without an engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from tui.engine.by_hand.tool_runs import ToolRuns
from tui.engine.mcp.wire.wire import Wire
from tui.model.chat import MAIN, ConversationId
from tui.model.events import Event
from tui.model.servers import ServerId, ServerUsage
from tui.store.commands import Commands

if TYPE_CHECKING:
    from tui.engine.engine import Engine

Call = tuple[str, tuple[object, ...]]


class OneTool(ToolRuns):
    """Makes the forms of a tool with this input schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._only = schema

    def _schema(self, server: ServerId, tool: str) -> Mapping[str, Any]:  # noqa: ARG002
        return self._only


@dataclass
class RecordingEngine:
    """Stands for the engine or a part of it; `calls` holds ("part.method", arguments)."""

    calls: list[Call] = field(default_factory=list)
    path: str = ""
    answers: dict[str, object] = field(default_factory=dict)
    """What is answered to a question for something, which is no command, by its path; what can be
    called is called with the arguments."""
    key: ConversationId = MAIN
    """The id of the conversation on the screen, whatever is asked."""

    def __getattr__(self, name: str) -> "RecordingEngine":
        if name.startswith("__"):  # what Python asks of any object is not there
            raise AttributeError(name)
        part = RecordingEngine(self.calls, f"{self.path}.{name}".lstrip("."), self.answers)
        setattr(self, name, part)
        return part

    def __call__(self, *args: object, **kwargs: object) -> object:
        if self.path in self.answers:
            answer = self.answers[self.path]
            return answer(*args, **kwargs) if callable(answer) else answer
        self.calls.append((self.path, (*args, *kwargs.values())))
        return None


class RecordingCommands(Commands):
    """Carries nothing out; `calls` holds what the engine would be asked, `said` what is told."""

    def __init__(self) -> None:
        self.said: list[Event] = []
        super().__init__(self.said.append)
        answers: dict[str, object] = {"servers.usage": ServerUsage()}
        answers |= dict.fromkeys(("models.context_part", "tool_standing"))
        engine = RecordingEngine(answers=answers)
        self.calls, self.answers = engine.calls, engine.answers
        self.offer({})
        self.wire = Wire()
        setattr(engine, "wire", self.wire)  # noqa: B010 - what was said is there without servers
        self.attach(cast("Engine", engine))

    @property
    def acts(self) -> list[Call]:
        """`calls` but for drafts, which are kept some time after a message was changed."""
        return [one for one in self.calls if one[0] != "sessions.recorder.keep_draft"]

    def offer(self, schema: Mapping[str, Any]) -> None:
        """Let every tool have this input schema."""
        tool = OneTool(schema)
        self.answers |= {"runs.form": tool.form, "runs.merge": tool.merge}
