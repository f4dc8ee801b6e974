"""Commands that only remember what was asked, for tests of the screen without an engine."""

from dataclasses import dataclass, field

from tui.model.consent import Decision, RequestId
from tui.model.servers import ServerId


@dataclass
class RecordingCommands:
    """Implements `tui.store.commands.Commands`; `calls` holds (name, arguments) in order."""

    calls: list[tuple[str, tuple[object, ...]]] = field(default_factory=list)

    def send(self, text: str) -> None:
        self.calls.append(("send", (text,)))

    def cancel_turn(self) -> None:
        self.calls.append(("cancel_turn", ()))

    def clear_conversation(self) -> None:
        self.calls.append(("clear_conversation", ()))

    def decide(self, request: RequestId, decision: Decision) -> None:
        self.calls.append(("decide", (request, decision)))

    def restart_server(self, server: ServerId) -> None:
        self.calls.append(("restart_server", (server,)))

    def restart_all_servers(self) -> None:
        self.calls.append(("restart_all_servers", ()))

    def start_server(self, server: ServerId) -> None:
        self.calls.append(("start_server", (server,)))

    def stop_server(self, server: ServerId) -> None:
        self.calls.append(("stop_server", (server,)))

    def set_server_enabled(self, server: ServerId, *, enabled: bool) -> None:
        self.calls.append(("set_server_enabled", (server, enabled)))

    def use_api_key(self, key: str) -> None:
        self.calls.append(("use_api_key", (key,)))

    def use_vertex(self, project: str, location: str) -> None:
        self.calls.append(("use_vertex", (project, location)))

    def use_demo(self) -> None:
        self.calls.append(("use_demo", ()))
