"""What the user can ask for. Each command returns at once; what comes of it arrives as events."""

from collections.abc import Mapping
from typing import Protocol

from tui.model.consent import Decision, RequestId
from tui.model.requests import Reply
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
        """Answer whether a tool may run."""

    def reply(self, request: RequestId, reply: Reply) -> None:
        """Answer a server's request for input, an address or a generation."""

    def send_prompt(self, server: ServerId, prompt: str, arguments: Mapping[str, str]) -> None:
        """Let a server render one of its prompts and send the result to the model."""

    def read_resource(self, server: ServerId, uri: str) -> None:
        """Read a resource for the user; it arrives as `ResourceRead`."""

    def send_resource(self, server: ServerId, uri: str, text: str) -> None:
        """Send a message to the model with the content of a resource beside it."""

    def subscribe_resource(self, server: ServerId, uri: str, *, subscribed: bool) -> None:
        """Ask to be told of changes of a resource, or no longer."""

    def complete_argument(
        self,
        token: str,
        server: ServerId,
        target: str,
        argument: str,
        value: str,
        context: Mapping[str, str],
    ) -> None:
        """Ask a server to complete an argument; it arrives as `ArgumentCompleted`.

        Args:
            token: Comes back with the answer.
            server: Who is asked.
            target: A prompt's name, or a resource template's URI template.
            argument: The argument's name.
            value: What stands there so far.
            context: The other arguments that are filled in already.
        """

    def set_log_level(self, server: ServerId, level: str) -> None:
        """Tell a server from which level on to log, ``debug`` to ``emergency``."""

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
