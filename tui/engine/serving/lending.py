"""The running servers of an open deck, lent to gemdeck's own commands, and how these borrow them.

A command has its own settings, trust and rules, and borrows only what it would start. It speaks
MCP with the deck, which forwards its requests to the server.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
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
from tui.model.consent import Caller
from tui.model.events import RequestRaised, ServerLogged
from tui.model.requests import FormRequest, SamplingRequest, UrlRequest
from tui.model.servers import ServerId
from tui.model.settings import EVERYTHING
from tui.text import sanitize_line

COMMAND: Final = "gemdeck mcp"
"""What commands call themselves."""

_KEPT: Final = frozenset(
    {"initialize", "server/discover", "subscriptions/listen", "logging/setLevel"}
    | {"resources/subscribe", "resources/unsubscribe"}
)
"""Requests about a connection, which stays the deck's."""


def lending_key(one: ServerDefinition) -> str:
    """Hash all that a server gets and may do; gemdecks that disagree on it share no process."""
    launch, endpoint, passed = one.launch, one.endpoint, one.launch.inheritance
    program = launch.program, launch.command, launch.args, str(launch.cwd), repr(launch.sandbox)
    given = [*map(dict, (launch.env, launch.kept, endpoint.headers))], endpoint.url
    names = sorted(passed.allow), sorted(passed.block)
    more = one.transport, one.protocol, one.timeout, one.is_outside
    return digest([program, given, names, more], one.fingerprint.encode())


class Lending(SharedServers):
    """What a command gets: one server that runs or sleeps in the deck, as both know it.

    Args:
        engine: The deck's.
        caller: The command, as records name it.
        hello: Names the server.

    Raises:
        RequestRefusedError: If the deck has no such server.
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
            raise RequestRefusedError("It has no such server.", NOT_ANSWERED)

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
            if method in _KEPT:
                raise RequestRefusedError(f"gemdeck does not forward {method}.", NO_SUCH_METHOD)
            if method == "tools/call":
                answer = await self._sent(params, on_progress)
            else:
                answer = await features.request(method, params)
        except (ServerCallError, ToolCallError) as error:
            raise RequestRefusedError(str(error), NOT_ANSWERED, error.reply) from error
        if "result" not in answer:
            raise RequestRefusedError("It gave no result.", NOT_ANSWERED, answer.get("error"))
        return as_object(answer["result"])

    async def _sent(self, params: JsonObject, on_progress: OnProgress) -> JsonObject:
        """Call a tool, to which the user of the command consents; return the answer."""
        tool, given = sanitize_line(text_in(params, "name")), as_object(params.get("arguments"))
        call = partial(self._engine.runs.call, self._server, tool, by_user=True, request=params)
        result, _ = await self._run(call, self._server, tool, given, on_progress)
        return result.raw or {}

    async def changes(self) -> AsyncIterator[JsonObject]:
        """Tell what the server logs, and that it asks the user, as messages of MCP."""
        async for event in self._engine.events():
            match event:
                case RequestRaised(FormRequest() | UrlRequest() | SamplingRequest() as request):
                    if request.server == self._server:
                        yield _logged("notice", "asks for input: answer in the open gemdeck")
                case ServerLogged(self._server, lines):
                    for one in lines:
                        if one.source == "log":
                            yield _logged(one.level, one.text)


def _logged(level: str, text: str) -> JsonObject:
    return {"method": "notifications/message", "params": {"level": level, "data": text}}


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
        return LentServer(*found) if found is not None else None
