"""Servers on loopback: any ASGI application over uvicorn, and a raw one that can misbehave."""

import asyncio
import json
import os
import random
import socket
import ssl
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

import uvicorn

Message = dict[str, Any]

START_SECONDS = 20
"""Seconds a server process gets to listen."""

OWN_PORTS = (20_000, 32_000)
"""Ports below those that systems give to who asks for any."""

_CHANCE = random.SystemRandom()  # which nobody seeds, as property tests do with the usual one

LIMIT = 32 * 1024 * 1024
"""Bytes that are read ahead of what a server takes."""

TEXT: Message = {"type": "object", "properties": {"text": {"type": "string"}}}
ECHO: Message = {"name": "echo", "description": "Give back a text.", "inputSchema": TEXT}


@asynccontextmanager
async def serving(application: Any) -> AsyncIterator[str]:  # noqa: ANN401
    """Serve an ASGI application; gives the address without a path."""
    # Named as TCP, so that asyncio switches Nagle's algorithm off for what is accepted.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(application, log_config=None, timeout_graceful_shutdown=0)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve([listener]))
    try:
        while not server.started and not task.done():  # noqa: ASYNC110  # it tells nobody
            await asyncio.sleep(0.001)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listener.close()


@asynccontextmanager
async def process(command: str, *arguments: str) -> AsyncIterator[tuple[str, Process]]:
    """Run a server process that listens on the port ``PORT`` names; gives its address and it.

    Args:
        command: The program.
        arguments: Its arguments; ``{port}`` in them stands for the port.
    """
    port = free_port()
    running = await asyncio.create_subprocess_exec(
        command,
        *(argument.format(port=port) for argument in arguments),
        env={**os.environ, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(START_SECONDS):
            while not await _accepts(port):
                assert running.returncode is None, "the server did not start"
                await asyncio.sleep(0.02)
        yield f"http://127.0.0.1:{port}", running
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()


def free_port() -> int:
    """Find a port that nobody listens on.

    It is none that the system itself gives to a server or a client, which another test may run
    before the port is used, or used again.
    """
    while True:
        port = _CHANCE.randrange(*OWN_PORTS)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


async def _accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


@dataclass(frozen=True)
class Request:
    """What a client sent; names of headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> Message:
        """The body as a JSON-RPC message; empty where there is none."""
        message: Message = json.loads(self.body) if self.body else {}
        return message


class Exchange:
    """A request and the way to answer it."""

    def __init__(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.request = request
        self.reader = reader
        self.writer = writer

    async def begin(self, status: int, **headers: str) -> None:
        """Send the head of an answer whose end is that of the connection."""
        lines = [f"HTTP/1.1 {status} X", "connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.write("\r\n".join(lines).encode() + b"\r\n\r\n")

    async def respond(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Send a whole answer."""
        await self.begin(status, content_length=str(len(body)), **headers)
        await self.write(body)

    async def json(self, content: Message, status: int = 200, **headers: str) -> None:
        """Answer with JSON."""
        body = json.dumps(content).encode()
        await self.respond(status, body, content_type="application/json", **headers)

    async def give(self, message: Message, status: int = 200, **headers: str) -> None:
        """Answer with a JSON-RPC message."""
        await self.json({"jsonrpc": "2.0", **message}, status, **headers)

    async def result(self, result: Message, **headers: str) -> None:
        """Answer a JSON-RPC request."""
        await self.give({"id": self.request.message["id"], "result": result}, 200, **headers)

    async def text(self, words: str) -> None:
        """Answer a call with a text."""
        await self.result({"content": [{"type": "text", "text": words}]})

    async def refuse(self, status: int, code: int, words: str) -> None:
        """Answer with a JSON-RPC error under a status."""
        request_id = self.request.message.get("id")
        await self.give({"id": request_id, "error": {"code": code, "message": words}}, status)

    async def event(self, message: Message | None = None, **fields: str) -> None:
        """Send an event of a stream that was begun."""
        lines = [f"{name}: {value}" for name, value in fields.items()]
        if message is not None:
            lines.append("data: " + json.dumps({"jsonrpc": "2.0", **message}))
        await self.write("\n".join(lines).encode() + b"\n\n")

    async def write(self, data: bytes) -> None:
        """Send bytes; that the client has gone is no matter."""
        with suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()

    async def cut(self) -> None:
        """Break the connection off."""
        self.writer.transport.abort()

    async def hang(self) -> None:
        """Say nothing until the client goes."""
        with suppress(ConnectionError):
            await self.reader.read()


Handler = Callable[[Exchange], Awaitable[None]]


def answer(status: int, body: bytes = b"", **headers: str) -> Handler:
    """Make a handler that answers with a status."""

    async def handle(exchange: Exchange) -> None:
        await exchange.respond(status, body, **headers)

    return handle


class Announcer:
    """The stream on which a server speaks unasked."""

    def __init__(self) -> None:
        self.streams: list[Exchange] = []

    async def __call__(self, exchange: Exchange) -> None:
        """Open it."""
        await exchange.begin(200, content_type="text/event-stream")
        self.streams.append(exchange)
        await exchange.hang()

    async def log(self, words: str, **fields: str) -> None:
        """Send a log message."""
        said = {"method": "notifications/message", "params": {"level": "info", "data": words}}
        await self.streams[-1].event(said, **fields)


@dataclass(kw_only=True)
class HttpServer:
    """Answers one request a connection.

    Attributes:
        handle: How.
        requests: What came in.
        port: Where it listens, also when it comes back; 0 for any.
        tls: How it encrypts, or None.
    """

    handle: Handler = field(default_factory=lambda: answer(404))
    requests: list[Request] = field(default_factory=list)
    port: int = 0
    tls: ssl.SSLContext | None = None
    _server: asyncio.Server | None = field(default=None, init=False)
    _is_stopped: bool = field(default=False, init=False)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set, init=False)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    async def __aenter__(self) -> Self:
        self.port, self._is_stopped = self.port or free_port(), False
        place = ("127.0.0.1", self.port)
        self._server = await asyncio.start_server(self._accept, *place, ssl=self.tls, limit=LIMIT)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def origin(self) -> str:
        """Where it is, without a path."""
        scheme = "https" if self.tls is not None else "http"
        return f"{scheme}://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Stop listening and break all connections off."""
        if self._server is None:
            return
        self._is_stopped = True
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._writers.clear()
        await self._server.wait_closed()
        self._server = None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_stopped:  # it was accepted before
            writer.transport.abort()
            return
        self._writers.add(writer)  # also where its task is cancelled before it begins
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read(reader)
            self.requests.append(request)
            await self._answer(Exchange(request, reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()
            self._writers.discard(writer)  # until then, `stop` breaks off what nobody reads

    async def _answer(self, exchange: Exchange) -> None:
        await self.handle(exchange)


@dataclass
class RawServer(HttpServer):
    """An MCP server of 2025-06-18 over streamable HTTP, without any SDK.

    Attributes:
        on: What to do instead of what it should do, by JSON-RPC method, or by HTTP method for
            requests without a message.
        sessions: The ids of living sessions; None for a server without sessions.
        tools: What it lists.
    """

    on: dict[str, Handler] = field(default_factory=dict)
    sessions: set[str] | None = None
    tools: list[Message] = field(default_factory=lambda: [ECHO])

    @property
    def url(self) -> str:
        """Where its endpoint is."""
        return f"{self.origin}/mcp"

    def forget(self) -> None:
        """Know no session any more."""
        assert self.sessions is not None
        self.sessions.clear()

    def methods(self) -> list[str]:
        """Give the JSON-RPC methods that were asked for, and HTTP methods in capitals."""
        return [r.message.get("method", "answer") if r.body else r.method for r in self.requests]

    def calls(self) -> list[Request]:
        """Give the calls of tools that came in."""
        return [r for r in self.requests if r.body and r.message.get("method") == "tools/call"]

    async def _answer(self, exchange: Exchange) -> None:
        request = exchange.request
        method = request.message.get("method", "answer") if request.body else request.method
        default = {
            "initialize": self._initialize,
            "tools/list": self._list,
            "tools/call": self._call,
            "GET": self._decline,
            "DELETE": self._delete,
        }.get(method, self._ignore)
        if method == "server/discover" and method not in self.on:
            await exchange.refuse(400, -32600, "Bad Request: unsupported protocol version")
        elif method in self.on:
            await self.on[method](exchange)
        elif self._is_unknown(request, method):
            await exchange.refuse(404, -32001, "Session not found")
        else:
            await default(exchange)

    def _is_unknown(self, request: Request, method: str) -> bool:
        if self.sessions is None or method == "initialize":
            return False
        return request.headers.get("mcp-session-id") not in self.sessions

    async def _initialize(self, exchange: Exchange) -> None:
        headers = {}
        if self.sessions is not None:
            session = f"secret-session-{len(self.requests)}-{self.port}"
            self.sessions.add(session)
            headers["mcp_session_id"] = session
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "raw", "version": "0"}}
        await exchange.result({"protocolVersion": "2025-06-18", **about}, **headers)

    async def _list(self, exchange: Exchange) -> None:
        await exchange.result({"tools": self.tools})

    async def _call(self, exchange: Exchange) -> None:
        await exchange.text(exchange.request.message["params"].get("arguments", {}).get("text", ""))

    async def _decline(self, exchange: Exchange) -> None:
        await exchange.respond(405)

    async def _delete(self, exchange: Exchange) -> None:
        if self.sessions is not None:
            self.sessions.discard(exchange.request.headers.get("mcp-session-id", ""))
        await exchange.respond(200)

    async def _ignore(self, exchange: Exchange) -> None:
        await exchange.respond(202)


@dataclass
class SseServer(RawServer):
    """An MCP server of 2024-11-05 over HTTP+SSE, without any SDK.

    Attributes:
        streams: The streams that were opened.
        endpoint: Where it wants messages to go.
    """

    streams: list[Exchange] = field(default_factory=list)
    endpoint: str = "/messages?session=secret-session"

    async def _decline(self, exchange: Exchange) -> None:
        await exchange.begin(200, content_type="text/event-stream")
        await exchange.event(event="endpoint", data=self.endpoint)
        self.streams.append(exchange)
        await exchange.hang()

    async def _initialize(self, exchange: Exchange) -> None:
        if exchange.request.path == "/mcp":
            await exchange.respond(405)
            return
        await super()._initialize(_OnStream(exchange, self))

    async def _list(self, exchange: Exchange) -> None:
        await super()._list(_OnStream(exchange, self))

    async def _call(self, exchange: Exchange) -> None:
        await super()._call(_OnStream(exchange, self))


class _OnStream(Exchange):
    """An exchange whose answer goes to the stream."""

    def __init__(self, exchange: Exchange, server: SseServer) -> None:
        super().__init__(exchange.request, exchange.reader, exchange.writer)
        self._server = server

    async def give(self, message: Message, status: int = 200, **headers: str) -> None:
        """Accept the message and answer on the stream."""
        del status, headers
        await self.respond(202)
        await self._server.streams[-1].event(message)


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        if name:
            headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body)
