"""The running servers of an open deck, lent to gemdeck's own commands, and how these borrow them.

A command has its own settings, trust and rules, and borrows only what it would start. It speaks
MCP with the deck, which forwards its requests to the server.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.fingerprint import digest
from tui.engine.engine import Engine
from tui.engine.files.paths import usable_state_dir
from tui.engine.mcp.catalog.offered_tool import JsonObject, ToolCallError
from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.transports.lent import LentServer
from tui.engine.serving.deck_socket import Hello, connect_to_deck
from tui.engine.serving.shared_servers import (
    NO_SUCH_METHOD,
    NOT_ANSWERED,
    OnProgress,
    RequestRefusedError,
    SharedServers,
)
from tui.engine.trust.folder_identity import identify
from tui.model.bounded_json import as_object, text_in
from tui.model.chat import Progress
from tui.model.consent import Caller
from tui.model.events import (
    Event,
    RequestRaised,
    ServerLogged,
    ToolCallChanged,
    ToolCallProgressed,
)
from tui.model.requests import FormRequest, SamplingRequest, SamplingReview, UrlRequest
from tui.model.runs import BY_HAND
from tui.model.servers import ServerId
from tui.model.settings import EVERYTHING
from tui.text import sanitize_line

COMMAND: Final = "gemdeck mcp"
"""What commands call themselves."""

_LENT: Final = frozenset(
    {"tools/list", "prompts/list", "resources/list", "resources/templates/list", "skills/list"}
    | {"tools/call", "prompts/get", "resources/read", "skills/get", "completion/complete"}
    | {"tasks/get", "tasks/result", "tasks/cancel", "tasks/update"}
)
"""Requests that change nothing of a connection, which others use as well."""

_ASKS: Final = "asks for input: answer in the open gemdeck"


def lending_key(one: ServerDefinition) -> str:
    """Hash all that a server gets and may do; gemdecks that disagree on it share no process."""
    launch, endpoint, box = one.launch, one.endpoint, one.launch.sandbox
    content = [
        [one.transport.value, one.is_outside, one.timeout, one.protocol.value, str(launch.cwd)],
        [launch.program, launch.command, *launch.args],
        [dict(launch.env), dict(launch.kept)],
        [sorted(launch.inheritance.allow), sorted(launch.inheritance.block)],
        [endpoint.url, dict(endpoint.headers)],
        box and [[*map(str, box.read)], [*map(str, box.write)], box.network, box.env],
    ]
    return digest(content, one.fingerprint.encode())


class Lending(SharedServers):
    """What a command gets: one server that runs or sleeps in the deck, as both know it.

    Args:
        engine: The deck's.
        caller: The command, as records name it.
        hello: Names the server.

    Raises:
        ValueError: If the deck has no such server.
    """

    def __init__(self, engine: Engine, caller: Caller, hello: Hello) -> None:
        super().__init__(engine, caller, EVERYTHING)
        self._server, self._key = ServerId(hello.server), hello.key
        self._check()

    def _check(self) -> None:
        servers = self._engine.servers
        definition = servers.registry.definition(self._server)
        is_same = definition is not None and lending_key(definition) == self._key
        if not is_same or self._server not in servers.callable_servers:
            raise ValueError("The open gemdeck has no such server.")

    async def request(
        self, method: str, params: JsonObject, on_progress: OnProgress = lambda _: None
    ) -> JsonObject:
        """Return the server's own result of a request; the deck's rules hold."""
        try:
            self._check()
            features = await self._engine.servers.awake(self._server)
            opening = features.opening()
            if method == ("server/discover" if "supportedVersions" in opening else "initialize"):
                return opening
            if method not in _LENT:
                raise RequestRefusedError(f"gemdeck does not forward {method}.", NO_SUCH_METHOD)
            if method == "tools/call":
                answer = await self._sent(params, on_progress)
            else:
                answer = await features.request(method, params)
        except (ServerCallError, ToolCallError) as error:
            raise RequestRefusedError(str(error), NOT_ANSWERED, error.reply) from error
        except ValueError as error:
            raise RequestRefusedError(str(error), NOT_ANSWERED) from error
        if "result" not in answer:
            raise RequestRefusedError("It gave no result.", NOT_ANSWERED, answer.get("error"))
        return as_object(answer["result"])

    async def _sent(self, params: JsonObject, on_progress: OnProgress) -> JsonObject:
        """Call a tool with the command's consent; return the answer."""
        publish, call = self._engine.runs.publish, self._engine.runs.call

        def heed(event: Event) -> None:
            match event:
                case ToolCallProgressed(progress=Progress() as progress):
                    on_progress(progress)
                case ToolCallChanged():
                    publish(replace(event, conversation=BY_HAND))

        tool, told = sanitize_line(text_in(params, "name")), {"heed": heed, "caller": self._caller}
        given = as_object(params.get("arguments"))
        result = await call(self._server, tool, given, by_user=True, request=params, **told)
        return result.raw or {}

    async def changes(self) -> AsyncIterator[JsonObject]:
        """Tell what the server logs, and that it asks the user, as messages of MCP."""
        async for event in self._engine.events():
            told = list[JsonObject]()
            match event:
                case RequestRaised(
                    FormRequest() | UrlRequest() | SamplingRequest() | SamplingReview() as asked
                ) if asked.server == self._server:
                    told = [{"level": "notice", "data": _ASKS}]
                case ServerLogged(self._server, lines):
                    logged = [one for one in lines if one.source == "log"]
                    told = [{"level": one.level, "data": one.text} for one in logged]
            for params in told:
                yield {"method": "notifications/message", "params": params}


class Borrowing:
    """Asks the open deck for each server once, before a command starts it.

    Args:
        folder: The opened folder; None for asking no deck.

    Attributes:
        shared: Which servers are the deck's.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.shared: dict[ServerId, bool] = {}

    async def __call__(self, definition: ServerDefinition) -> LentServer | None:
        """Return a server of the deck; None if it is to be started here."""
        found, server = None, definition.id
        if self._folder is not None and server not in self.shared:
            hello = Hello(COMMAND, server=server, key=lending_key(definition))
            with suppress(ValueError):
                found = await connect_to_deck(usable_state_dir(), identify(self._folder), hello)
        self.shared[server] = found is not None
        return LentServer(found.reader, found.writer) if found is not None else None
