"""What the user can ask for. Each command returns at once; what comes of it arrives as events."""

from typing import Protocol

from tui.model.consent import Decision, RequestId
from tui.model.servers import ServerId


class Commands(Protocol):
    """The UI's only way to the engine. Every command is harmless where it does not apply."""

    def send(self, text: str) -> None:
        """Send a message to the model; queued while a turn runs."""

    def cancel_turn(self) -> None:
        """Stop the running turn, down to the wire."""

    def clear_conversation(self) -> None:
        """Begin a new conversation."""

    def decide(self, request: RequestId, decision: Decision) -> None:
        """Answer a question."""

    def restart_server(self, server: ServerId) -> None:
        """Stop a server where it runs and start it again."""

    def restart_all_servers(self) -> None:
        """Restart every server that is not disabled, untrusted or invalid."""

    def start_server(self, server: ServerId) -> None:
        """Start a stopped or failed server."""

    def stop_server(self, server: ServerId) -> None:
        """Stop a server; it stays stopped."""

    def set_server_enabled(self, server: ServerId, *, enabled: bool) -> None:
        """Disable a server, or let it run again."""

    def use_api_key(self, key: str) -> None:
        """Keep a Gemini key in the keyring and let Gemini answer from now on."""

    def use_vertex(self, project: str, location: str) -> None:
        """Let Vertex answer from now on, with the credentials of the environment."""

    def use_demo(self) -> None:
        """Stay with the offline demo model."""
