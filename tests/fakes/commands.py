"""Commands that only remember what was asked, for tests of the screen without an engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tui.model.consent import Decision, GrantId, RequestId
from tui.model.requests import Reply
from tui.model.servers import ServerId
from tui.model.trust import TrustAnswer


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

    def answer_trust(self, request: RequestId, answer: TrustAnswer) -> None:
        self.calls.append(("answer_trust", (request, answer)))

    def answer_tool_change(self, request: RequestId, *, accept: bool) -> None:
        self.calls.append(("answer_tool_change", (request, accept)))

    def review_folder(self) -> None:
        self.calls.append(("review_folder", ()))

    def forget_folder(self) -> None:
        self.calls.append(("forget_folder", ()))

    def review_tools(self, server: ServerId) -> None:
        self.calls.append(("review_tools", (server,)))

    def explain_tool(self, server: ServerId, tool: str) -> None:
        self.calls.append(("explain_tool", (server, tool)))

    def revoke_grant(self, grant: GrantId) -> None:
        self.calls.append(("revoke_grant", (grant,)))

    def reply(self, request: RequestId, reply: Reply) -> None:
        self.calls.append(("reply", (request, reply)))

    def send_prompt(self, server: ServerId, prompt: str, arguments: Mapping[str, str]) -> None:
        self.calls.append(("send_prompt", (server, prompt, dict(arguments))))

    def read_resource(self, server: ServerId, uri: str) -> None:
        self.calls.append(("read_resource", (server, uri)))

    def send_resource(self, server: ServerId, uri: str, text: str) -> None:
        self.calls.append(("send_resource", (server, uri, text)))

    def subscribe_resource(self, server: ServerId, uri: str, *, subscribed: bool) -> None:
        self.calls.append(("subscribe_resource", (server, uri, subscribed)))

    def complete_argument(
        self,
        token: str,
        server: ServerId,
        target: str,
        argument: str,
        value: str,
        context: Mapping[str, str],
    ) -> None:
        asked = (token, server, target, argument, value, dict(context))
        self.calls.append(("complete_argument", asked))

    def open_link(self, url: str) -> None:
        self.calls.append(("open_link", (url,)))

    def set_log_level(self, server: ServerId, level: str) -> None:
        self.calls.append(("set_log_level", (server, level)))

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
