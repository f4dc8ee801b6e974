"""An open deck's door: what clients get, what gemdeck's own commands borrow, and how they do.

A command has its own settings, trust and rules, and borrows only what it would start. It speaks
MCP with the deck, which forwards its requests to the server.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tui.engine.background import TaskSet, in_daemon_thread
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.fingerprint import digest
from tui.engine.engine import Engine
from tui.engine.files.paths import shown_path, usable_state_dir
from tui.engine.mcp.catalog.offered_tool import JsonObject, ToolCallError
from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.transports.stdio.process import ServerProcess
from tui.engine.serving.callers import CallerBook
from tui.engine.serving.deck_socket import DeckLink, Hello, answering, find_deck
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
from tui.model.events import Event, RequestRaised, ServerLogged
from tui.model.requests import FormRequest, SamplingRequest, UrlRequest
from tui.model.servers import ServerId
from tui.text import sanitize_line

COMMAND: Final = "gemdeck mcp"
"""What commands call themselves."""

_KEPT: Final = re.compile("initialize|(server|subscriptions|logging)/|.*subscribe|tasks/list")
"""Requests about a connection and what runs over it, which are the deck's."""


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
        super().__init__(engine, caller)
        self._server, self._key = ServerId(hello.server), hello.key
        self._made = set[str]()
        self._check()

    def _check(self) -> None:
        servers = self._engine.servers
        definition = servers.registry.definition(self._server)
        is_same = definition is not None and lending_key(definition) == self._key
        if not is_same or self._server not in servers.callable_servers:
            raise RequestRefusedError("The open gemdeck has no such server.", NOT_ANSWERED)

    async def request(
        self, method: str, params: JsonObject, on_progress: OnProgress = lambda _: None
    ) -> JsonObject:
        """Return the server's own result of a request; the deck's rules apply."""
        try:
            self._check()
            features = await self._engine.servers.awake(self._server)
            opening = features.opening()
            if method == ("server/discover" if "supportedVersions" in opening else "initialize"):
                return opening
            is_others = method.startswith("tasks/") and text_in(params, "taskId") not in self._made
            if is_others or _KEPT.match(method):
                raise RequestRefusedError(f"gemdeck does not forward {method}.", NO_SUCH_METHOD)
            if method == "tools/call":
                answer = await self._sent(params, on_progress)
            else:
                answer = await features.request(method, params)
        except (ServerCallError, ToolCallError) as error:
            raise RequestRefusedError(str(error), NOT_ANSWERED, error.reply) from error
        if "result" not in answer:
            raise RequestRefusedError("There was no result.", NOT_ANSWERED, answer.get("error"))
        return as_object(answer["result"])

    async def _sent(self, params: JsonObject, report: OnProgress) -> JsonObject:
        """Call a tool, to which the user of the command consents; return the answer."""
        tool, given = sanitize_line(text_in(params, "name")), as_object(params.get("arguments"))
        ran, _ = await self._run(self._server, tool, given, report, by_user=True, request=params)
        if ran.raw is None:
            raise ToolCallError(ran.display)
        result = as_object(ran.raw.get("result"))
        if task := text_in(as_object(result.get("task", result)), "taskId"):
            self._made.add(task)
        return ran.raw

    def _told(self, event: Event) -> Iterator[JsonObject]:
        """Forward what the server logs, and say when it requests input."""
        told = list[tuple[str, str]]()
        match event:
            case RequestRaised(FormRequest() | UrlRequest() | SamplingRequest() as asked):
                if asked.server == self._server:
                    told = [("notice", "asks for input: answer in the open gemdeck")]
            case ServerLogged(self._server, lines):
                told = [(one.level, one.text) for one in lines if one.source == "log"]
        for level, text in told:
            yield {"method": "notifications/message", "params": {"level": level, "data": text}}


@asynccontextmanager
async def answering_others(engine: Engine, folder: Path) -> AsyncIterator[None]:
    """Let other clients and gemdeck's commands use the servers of an engine within the block.

    Args:
        engine: The engine.
        folder: The opened folder, for which they look.
    """
    state, shown = usable_state_dir(), shown_path(folder, Path.home())
    callers = CallerBook(state, engine.problems)

    async def welcome(hello: Hello) -> SharedServers:
        if hello.server:
            return Lending(engine, Caller(COMMAND, shown), hello)
        if hello.profile not in engine.runs.turns.profiles:
            raise ValueError(f"The open gemdeck has no profile {hello.profile}.")
        caller = await asyncio.to_thread(callers.caller, hello.token, hello.name, shown)
        return SharedServers(engine, caller, hello.profile)

    async with answering(state, await in_daemon_thread(lambda: identify(folder)), welcome):
        yield


class LentServer(ServerProcess):
    """A server of an open deck, to a command a process that speaks MCP.

    Its own requests are answered in the deck, and its standard error stays there.

    Args:
        link: The connection to the deck, which is its own.
    """

    pid = 0
    exit_code = None

    def __init__(self, link: DeckLink) -> None:
        super().__init__(lambda _: None)
        self._link, self._said = link, asyncio.Queue[bytes | None]()
        self._tasks = TaskSet("a server of an open deck could not be used")
        self._asked: dict[object, asyncio.Task[None]] = {}
        self._tasks.start(self._follow())

    async def read_line(self) -> bytes | None:
        return await self._said.get()

    async def write(self, data: bytes) -> None:
        message = json.loads(data)
        key, params = message.get("id"), as_object(message.get("params"))
        if key is not None:
            self._asked[key] = self._tasks.start(self._ask(key, message["method"], params))
        elif (asked := self._asked.get(params.get("requestId"))) is not None:
            asked.cancel()

    async def close(self) -> None:
        self.give_up("was closed")
        await self._tasks.aclose()
        self._link.close()

    def kill(self) -> None:
        """Leave it to the deck."""

    def give_up(self, reason: str) -> None:
        super().give_up(reason)
        self._said.put_nowait(None)

    def _say(self, **message: object) -> None:
        self._said.put_nowait(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def _ask(self, key: int, method: str, params: JsonObject) -> None:
        def report(progress: Progress) -> None:
            token = as_object(params.get("_meta")).get("progressToken")
            told = {"progressToken": token, **asdict(progress)}
            self._say(method="notifications/progress", params=told)

        try:
            self._say(id=key, result=await self._link.request(method, params, report))
        except RequestRefusedError as error:
            self._say(id=key, error=error.reply)
        finally:
            del self._asked[key]

    async def _follow(self) -> None:
        async for told in self._link.changes():
            self._say(**told)
        self.give_up("ended with the open gemdeck")


class Borrowing:
    """Looks for each server in the open deck once, before a command starts it.

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
        link, server = None, definition.id
        if self._folder is not None and server not in self.shared:
            hello = Hello(COMMAND, server=server, key=lending_key(definition))
            with suppress(ValueError):
                link = await find_deck(usable_state_dir(), identify(self._folder), hello)
        self.shared[server] = link is not None
        return LentServer(link) if link is not None else None
