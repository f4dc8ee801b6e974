"""The user's commands. Each returns at once; results arrive as events."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

from tui.model.chat import MAIN, ConversationId, Severity
from tui.model.models import Marks, MarksSet
from tui.text import sanitize_line

if TYPE_CHECKING:  # loaded after the first frame, with the engine
    from tui.engine.engine import Engine
    from tui.engine.model_choice import ModelChoice
    from tui.model.events import Event


_SWITCH: Final = ("mcp disable", "mcp enable")

EQUALS: Final[Mapping[str, Callable[..., tuple[str, ...]]]] = {
    "servers.set_enabled": lambda server, *, enabled: (_SWITCH[enabled], server),
    "exclude_tool": lambda server, tool, *, off: (_SWITCH[not off], f"{server}.{tool}"),
    "sign_ins.begin": lambda server: ("mcp auth", server),
    "sign_ins.end": lambda server: ("mcp logout", server),
    "features.read_resource": lambda server, uri: ("mcp read", server, uri),
    "runs.start": lambda s, t, arguments: (f"mcp call --args {_quote(arguments)}", s, t),
    "features.render_prompt": lambda _, s, p, v: ("mcp prompt", s, p, *map("=".join, v.items())),
    "sessions.resume": lambda session: ("--resume", session),
    "sessions.delete": lambda session: ("sessions delete", session),
    "choice.use_api_key": lambda _: ("key set",),
    "choice.forget_key": lambda: ("key forget",),
    "review_folder": lambda: ("trust show",),
    "forget_folder": lambda: ("trust forget",),
}
"""The command of `gemdeck` that is equal to a method of the engine, if there is one: its words
without any secret, and its arguments."""


def command_line(command: str, *arguments: str) -> str:
    """Write a command of `gemdeck` with arguments as a shell takes them."""
    from shlex import join  # noqa: PLC0415 - not for the first frame

    words = [sanitize_line(one) for one in arguments]  # later, what is dropped could be a quote
    guard = ["--"] if any(one.startswith("-") for one in words) else []
    return sanitize_line(f"gemdeck {command} {join([*guard, *words])}".rstrip())


def _quote(text: str) -> str:
    from shlex import quote  # noqa: PLC0415 - not for the first frame

    return quote(sanitize_line(text))


class AskedEngine:
    """The engine, or a part of it, as the screen asks it: what has a command is told.

    Until there is an engine, what is asked of it does nothing and gives None. What was taken from
    it then, such as the action of a palette that is open, asks the engine once there is one.

    Args:
        commands: Knows the engine, and tells.
        part: The engine or the part; None if there is no engine yet.
        path: The names that lead to the part.
    """

    def __init__(self, commands: "Commands", part: Any = None, path: str = "") -> None:  # noqa: ANN401 - any part
        self._commands, self._part, self._path = commands, part, path

    def __getattr__(self, name: str) -> "AskedEngine":
        if name.startswith("__"):  # what Python asks of any object is not there
            raise AttributeError(name)
        path = f"{self._path}.{name}".lstrip(".")
        found: Any = None if self._part is None else getattr(self._part, name)
        is_told = any(f"{known}.".startswith(f"{path}.") for known in EQUALS)
        is_asked = is_told or self._part is None
        return AskedEngine(self._commands, found, path) if is_asked else found

    def __call__(self, *args: object, **kwargs: object) -> None:
        if (asked := self._part) is not None:
            self._commands.tell(*EQUALS[self._path](*args, **kwargs))
        elif self._commands.is_attached:
            asked = attrgetter(self._path)(self._commands.engine)
        self._commands.has_dropped |= asked is None
        # what it gives is for those who know that there is an engine
        return asked and asked(*args, **kwargs)  # type: ignore[no-any-return]


class Commands:
    """The UI's only way to the engine: its parts, and what can be asked before there is one.

    Until there is a model, the last choice, the session and the messages are kept; what else is
    asked before `attach` has nothing to apply to, and does nothing.

    Args:
        publish: Publishes what becomes of messages until there is a model.

    Attributes:
        is_ready: Whether there is an engine that is ready to chat.
        has_dropped: Whether anything was asked in vain since this was last set.
    """

    def __init__(self, publish: "Callable[[Event], None]") -> None:
        self._publish = publish
        self._engine: Engine | None = None
        self.is_ready = self.has_dropped = False
        self._early: dict[str, Callable[[Engine], object]] = {}
        self._unready: dict[str, Callable[[Engine], object]] = {}
        self._early_messages: dict[ConversationId, tuple[str, ...]] = {}

    @property
    def engine(self) -> "Engine | AskedEngine":
        """The engine, whose parts carry out commands; ask for it anew with each command."""
        return AskedEngine(self, self._engine)

    @property
    def running(self) -> "Engine":
        """The same, for what can only be asked of an engine that has told of it, such as a tool."""
        if self._engine is None:
            raise RuntimeError("there is no engine yet")
        return cast("Engine", self.engine)

    @property
    def is_attached(self) -> bool:
        return self._engine is not None

    def tell(self, command: str, *arguments: str) -> None:
        """Tell in the activity which command of `gemdeck` does what the user has just done."""
        from tui.model.events import Notice, NoticeRaised  # noqa: PLC0415 - not for the first frame

        self._publish(NoticeRaised(Notice(Severity.INFO, command_line(command, *arguments))))

    def attach(self, engine: "Engine", *, is_ready: bool = True) -> None:
        """Run commands with this engine, those that were kept once it `is_ready` to chat."""
        self._engine, self.is_ready = engine, is_ready
        for kept in (self._early, self._unready) if is_ready else (self._early,):
            for ask in kept.values():
                ask(self.running)
            kept.clear()
        if is_ready:
            for conversation, texts in self._early_messages.items():
                self._keep(conversation, ())
                for text in texts:
                    engine.messages.send(text, conversation)

    def send(self, text: str) -> None:
        """Send a message to the model; queued while a turn runs, and until there is a model."""
        if self._engine is not None and self.is_ready:
            self._engine.messages.send(text)
        else:
            here = self._current
            self._keep(here, (*self._early_messages.get(here, ()), text))

    def unqueue(self, text: str, *, give_back: bool) -> None:
        """Take the last waiting message with this text out, and perhaps give it back."""
        texts = self._early_messages.get(self._current, ())
        if text in texts:
            place = len(texts) - 1 - texts[::-1].index(text)
            left = (*texts[:place], *texts[place + 1 :])
            self._keep(self._current, left, text * give_back)
        else:
            self.engine.conversations.current.unqueue(text, give_back=give_back)

    def cancel_turn(self) -> None:
        """Stop the running turn, down to the wire, or give back what waits for gemdeck to start."""
        self._take_early()
        self.engine.conversations.current.cancel()

    def clear_conversation(self) -> None:
        """Start a new conversation; messages that wait come back."""
        self._take_early()
        self.engine.conversations.current.clear()

    def keep_draft(self, text: str) -> None:
        """Save what stands in the composer, so that it outlives the process."""
        self._ask("draft", lambda engine: engine.sessions.recorder.keep_draft(text))

    def mark(self, marks: Marks) -> None:
        """Let these servers and tools be marked for a profile."""
        self._publish(MarksSet(marks))

    def list_sessions(self) -> None:
        """List the sessions of the opened folder, as soon as there is an engine."""
        self._ask("sessions", lambda engine: engine.sessions.list_sessions())

    def choose(self, choice: "Callable[[ModelChoice], None]") -> None:
        """Choose the service that answers, and its key; the last choice wins."""
        self._ask("choice", lambda engine: choice(engine.choice), once_ready=True)

    def resume(self, session: str) -> None:
        """Go on with a session, once there is a model; named as for the engine's command."""
        self._ask("session", lambda engine: engine.sessions.resume(session), once_ready=True)

    def _ask(
        self, what: str, ask: "Callable[[Engine], object]", *, once_ready: bool = False
    ) -> None:
        """Ask the engine, as soon as there is one or a model; until then the last time counts."""
        if self._engine is not None and (self.is_ready or not once_ready):
            ask(self.running)
        else:
            (self._unready if once_ready else self._early)[what] = ask

    @property
    def _current(self) -> ConversationId:
        return self._engine.conversations.current.key if self._engine is not None else MAIN

    def _keep(
        self, conversation: ConversationId, texts: tuple[str, ...], given_back: str = ""
    ) -> None:
        """Keep these messages of a conversation, show them as its queue, and give others back."""
        from tui.model.events import MessageReturned, QueueChanged  # noqa: PLC0415 - not for the first frame

        self._early_messages[conversation] = texts
        self._publish(QueueChanged(texts, conversation=conversation))
        if given_back:
            self._publish(MessageReturned(given_back, conversation=conversation))

    def _take_early(self) -> None:
        """Give the messages of the current conversation back that are kept."""
        if texts := self._early_messages.get(self._current):
            self._keep(self._current, (), "\n\n".join(texts))
