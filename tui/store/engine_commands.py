"""The commands, carried out by the engine."""

from tui.engine.consent.broker import ConsentBroker
from tui.engine.engine import Engine
from tui.model.consent import Decision, RequestId
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
