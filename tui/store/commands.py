"""What the user can ask for. Each command returns at once; what comes of it arrives as events."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from tui.model.consent import Decision, GrantId, RequestId
from tui.model.servers import ServerId
from tui.model.trust import TrustAnswer

if TYPE_CHECKING:  # loaded after the first frame, with the engine
    from tui.model.requests import Reply


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

    def answer_trust(self, request: RequestId, answer: TrustAnswer) -> None:
        """Answer whether what a folder or an edited settings file brings may run."""

    def answer_tool_change(self, request: RequestId, *, accept: bool) -> None:
        """Answer whether the model may be offered tools that a server changed."""

    def review_folder(self) -> None:
        """Ask anew about the settings that the opened folder brings."""

    def forget_folder(self) -> None:
        """Take back what was said of the opened folder; its servers stop."""

    def review_tools(self, server: ServerId) -> None:
        """Ask anew about tools that a server changed."""

    def explain_tool(self, server: ServerId, tool: str) -> None:
        """Tell how a tool stands; it arrives as `ToolExplained`.

        Args:
            server: The tool's server.
            tool: The tool's name as shown.
        """

    def revoke_grant(self, grant: GrantId) -> None:
        """Take a rule on tools back; what it covered is asked about again."""

    def reply(self, request: RequestId, reply: "Reply") -> None:
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

    def open_link(self, url: str) -> None:
        """Open an address in the browser, to which the user has agreed."""

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
