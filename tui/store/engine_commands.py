"""The commands, carried out by the engine."""

from collections.abc import Mapping

from tui.engine.consent.broker import ConsentBroker
from tui.engine.engine import Engine
from tui.model.consent import Decision, RequestId
from tui.model.requests import Reply
from tui.model.servers import ServerId


class EngineCommands:
    """Implements `tui.store.commands.Commands`."""

    def __init__(self, engine: Engine, broker: ConsentBroker) -> None:
        self._engine = engine
        self._broker = broker

    def send(self, text: str) -> None:
        """Send a message to the model; queued while a turn runs."""
        self._engine.send(text)

    def cancel_turn(self) -> None:
        """Stop the running turn, down to the wire."""
        self._engine.cancel_turn()

    def clear_conversation(self) -> None:
        """Begin a new conversation."""
        self._engine.clear_conversation()

    def decide(self, request: RequestId, decision: Decision) -> None:
        """Answer a question."""
        self._broker.decide(request, decision)

    def reply(self, request: RequestId, reply: Reply) -> None:
        """Answer a server's request for input, an address or a generation."""
        self._engine.desk.reply(request, reply)

    def send_prompt(self, server: ServerId, prompt: str, arguments: Mapping[str, str]) -> None:
        """Let a server render one of its prompts and send the result to the model."""
        self._engine.offerings.send_prompt(server, prompt, arguments)

    def read_resource(self, server: ServerId, uri: str) -> None:
        """Read a resource for the user; it arrives as `ResourceRead`."""
        self._engine.offerings.read_resource(server, uri)

    def send_resource(self, server: ServerId, uri: str, text: str) -> None:
        """Send a message to the model with the content of a resource beside it."""
        self._engine.offerings.send_resource(server, uri, text)

    def subscribe_resource(self, server: ServerId, uri: str, *, subscribed: bool) -> None:
        """Ask to be told of changes of a resource, or no longer."""
        self._engine.offerings.subscribe(server, uri, subscribed=subscribed)

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
        self._engine.offerings.complete(token, server, target, argument, value, context)

    def set_log_level(self, server: ServerId, level: str) -> None:
        """Tell a server from which level on to log, ``debug`` to ``emergency``."""
        self._engine.offerings.set_log_level(server, level)

    def restart_server(self, server: ServerId) -> None:
        """Stop a server where it runs and start it again."""
        self._engine.servers.restart(server)

    def restart_all_servers(self) -> None:
        """Restart every server that is not disabled, untrusted or invalid."""
        self._engine.servers.restart_all()

    def start_server(self, server: ServerId) -> None:
        """Start a stopped or failed server."""
        self._engine.servers.start(server)

    def stop_server(self, server: ServerId) -> None:
        """Stop a server; it stays stopped."""
        self._engine.servers.stop(server)

    def set_server_enabled(self, server: ServerId, *, enabled: bool) -> None:
        """Disable a server, or let it run again."""
        self._engine.servers.set_enabled(server, enabled=enabled)

    def use_api_key(self, key: str) -> None:
        """Keep a Gemini key in the keyring and let Gemini answer from now on."""
        self._engine.use_api_key(key)

    def use_vertex(self, project: str, location: str) -> None:
        """Let Vertex answer from now on, with the credentials of the environment."""
        self._engine.use_vertex(project, location)

    def use_demo(self) -> None:
        """Stay with the offline demo model."""
        self._engine.use_demo()
