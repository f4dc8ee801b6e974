"""The commands, carried out by the engine once there is one."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from tui.model.chat import Severity
from tui.model.consent import Decision, GrantId, RequestId
from tui.model.servers import ServerId
from tui.model.trust import TrustAnswer
from tui.text import clip, sanitize_line

if TYPE_CHECKING:  # loaded after the first frame, with the engine
    from tui.engine.consent.broker import ConsentBroker
    from tui.engine.engine import Engine
    from tui.model.events import Event
    from tui.model.requests import Reply

MAX_EARLY_MESSAGES: Final = 20
"""Messages kept until the engine works; the screen stands before it."""


class EngineCommands:
    """Implements `tui.store.commands.Commands`.

    Of what is asked before `attach`, the last choice of a model and the messages are kept and
    carried out then; there is nothing yet that the other commands could apply to.

    Args:
        publish: Takes the word on a message that cannot be kept.
    """

    def __init__(self, publish: "Callable[[Event], None]") -> None:
        self._publish = publish
        self._engine: Engine | None = None
        self._broker: ConsentBroker | None = None
        self._early_choice: Callable[[Engine], None] | None = None
        self._early_messages: list[str] = []

    def attach(self, engine: "Engine", broker: "ConsentBroker") -> None:
        """Carry out commands with this engine, those that were asked before first."""
        self._engine = engine
        self._broker = broker
        if self._early_choice is not None:
            self._early_choice(engine)
        for text in self._early_messages:
            engine.send(text)
        self._early_choice = None
        self._early_messages.clear()

    def send(self, text: str) -> None:
        """Send a message to the model; queued while a turn runs."""
        if self._engine is not None:
            self._engine.send(text)
        elif len(self._early_messages) < MAX_EARLY_MESSAGES:
            self._early_messages.append(text)
        else:
            kept = clip(sanitize_line(text), 200)
            words = f"Not sent, because {MAX_EARLY_MESSAGES} messages wait already: {kept}"
            from tui.model.events import Notice, NoticeRaised  # noqa: PLC0415 - hardly ever needed

            self._publish(NoticeRaised(Notice(Severity.WARNING, words)))

    def cancel_turn(self) -> None:
        """Stop the running turn, down to the wire."""
        self._early_messages.clear()
        self._do(lambda engine: engine.cancel_turn())

    def clear_conversation(self) -> None:
        """Begin a new conversation."""
        self._early_messages.clear()
        self._do(lambda engine: engine.clear_conversation())

    def decide(self, request: RequestId, decision: Decision) -> None:
        """Answer a question."""
        if self._broker is not None:
            self._broker.decide(request, decision)

    def answer_trust(self, request: RequestId, answer: TrustAnswer) -> None:
        """Answer whether what a folder or an edited settings file brings may run."""
        self._do(lambda engine: engine.folder.answer(request, answer))

    def answer_tool_change(self, request: RequestId, *, accept: bool) -> None:
        """Answer whether the model may be offered tools that a server changed."""
        self._do(lambda engine: engine.tool_review.answer(request, accept=accept))

    def review_folder(self) -> None:
        """Ask anew about the settings that the opened folder brings."""
        self._do(lambda engine: engine.folder.review())

    def forget_folder(self) -> None:
        """Take back what was said of the opened folder; its servers stop."""
        self._do(lambda engine: engine.folder.forget())

    def review_tools(self, server: ServerId) -> None:
        """Ask anew about tools that a server changed."""
        self._do(lambda engine: engine.tool_review.review(server))

    def explain_tool(self, server: ServerId, tool: str) -> None:
        """Tell how a tool stands; it arrives as `ToolExplained`."""
        self._do(lambda engine: engine.explain_tool(server, tool))

    def revoke_grant(self, grant: GrantId) -> None:
        """Take a rule on tools back; what it covered is asked about again."""
        self._do(lambda engine: engine.policy.revoke(grant))

    def reply(self, request: RequestId, reply: "Reply") -> None:
        """Answer a server's request for input, an address or a generation."""
        self._do(lambda engine: engine.desk.reply(request, reply))

    def send_prompt(self, server: ServerId, prompt: str, arguments: Mapping[str, str]) -> None:
        """Let a server render one of its prompts and send the result to the model."""
        self._do(lambda engine: engine.offerings.send_prompt(server, prompt, arguments))

    def read_resource(self, server: ServerId, uri: str) -> None:
        """Read a resource for the user; it arrives as `ResourceRead`."""
        self._do(lambda engine: engine.offerings.read_resource(server, uri))

    def send_resource(self, server: ServerId, uri: str, text: str) -> None:
        """Send a message to the model with the content of a resource beside it."""
        self._do(lambda engine: engine.offerings.send_resource(server, uri, text))

    def subscribe_resource(self, server: ServerId, uri: str, *, subscribed: bool) -> None:
        """Ask to be told of changes of a resource, or no longer."""
        self._do(lambda engine: engine.offerings.subscribe(server, uri, subscribed=subscribed))

    def complete_argument(
        self,
        token: str,
        server: ServerId,
        target: str,
        argument: str,
        value: str,
        context: Mapping[str, str],
    ) -> None:
        """Ask a server to complete an argument; it arrives as `ArgumentCompleted`."""
        self._do(
            lambda engine: engine.offerings.complete(
                token, server, target, argument, value, context
            )
        )

    def open_link(self, url: str) -> None:
        """Open an address in the browser, to which the user has agreed."""
        self._do(lambda engine: engine.open_link(url))

    def set_log_level(self, server: ServerId, level: str) -> None:
        """Tell a server from which level on to log, ``debug`` to ``emergency``."""
        self._do(lambda engine: engine.offerings.set_log_level(server, level))

    def restart_server(self, server: ServerId) -> None:
        """Stop a server where it runs and start it again."""
        self._do(lambda engine: engine.servers.restart(server))

    def restart_all_servers(self) -> None:
        """Restart every server that is not disabled, untrusted or invalid."""
        self._do(lambda engine: engine.servers.restart_all())

    def start_server(self, server: ServerId) -> None:
        """Start a stopped or failed server."""
        self._do(lambda engine: engine.servers.start(server))

    def stop_server(self, server: ServerId) -> None:
        """Stop a server; it stays stopped."""
        self._do(lambda engine: engine.servers.stop(server))

    def set_server_enabled(self, server: ServerId, *, enabled: bool) -> None:
        """Disable a server, or let it run again."""
        self._do(lambda engine: engine.servers.set_enabled(server, enabled=enabled))

    def use_api_key(self, key: str) -> None:
        """Keep a Gemini key in the keyring and let Gemini answer from now on."""
        self._choose(lambda engine: engine.use_api_key(key))

    def use_vertex(self, project: str, location: str) -> None:
        """Let Vertex answer from now on, with the credentials of the environment."""
        self._choose(lambda engine: engine.use_vertex(project, location))

    def use_demo(self) -> None:
        """Stay with the offline demo model."""
        self._choose(lambda engine: engine.use_demo())

    def _do(self, command: "Callable[[Engine], None]") -> None:
        if self._engine is not None:
            command(self._engine)

    def _choose(self, choice: "Callable[[Engine], None]") -> None:
        if self._engine is None:
            self._early_choice = choice
        else:
            choice(self._engine)
