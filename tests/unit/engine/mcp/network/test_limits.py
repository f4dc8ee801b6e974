"""What a hostile server on the network can send without costing more than its own call."""

import asyncio
import gzip
import itertools
import json

import pytest

from tests.servers.web import Exchange, Handler, RawServer, SseServer, answer
from tests.support.measures import Measure
from tests.support.stalls import HANG_SECONDS, LoopWatch
from tests.unit.engine.mcp.network.support import WEB, answering, connected, reason
from tests.unit.engine.mcp.support import call, eventually, refuses
from tui.engine.mcp.catalog.offered_tool import TextPart
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.transports import jsonrpc_lines
from tui.model.servers import ServerStatus as S
from tui.model.servers import Transport

MIB = 2**20
JSON = "application/json"
STREAM = "text/event-stream"


def result(request_id: object, words: str) -> bytes:
    """Make the answer to a call."""
    content = [{"type": "text", "text": words}]
    message = {"jsonrpc": "2.0", "id": request_id, "result": {"content": content}}
    return json.dumps(message).encode()


async def lives(manager: ServerManager, server: RawServer) -> None:
    """Check that the connection still works."""
    server.on.pop("tools/call", None)
    assert (await call(manager, "echo", {"text": "hi"})).parts == (TextPart("hi"),)


async def test_an_event_that_is_too_complex_fails_its_call(loop_watch: LoopWatch) -> None:
    rows = "[" + "[]," * 1_000_000 + "0]"

    async def nest(exchange: Exchange) -> None:
        request_id = exchange.request.message["id"]
        await exchange.begin(200, content_type=STREAM)
        await exchange.event(
            data=f'{{"jsonrpc":"2.0","id":{request_id},"result":{{"structuredContent":{rows}}}}}'
        )

    async with answering(nest) as (server, manager, _):
        loop_watch.clear()
        await refuses("too complex to be read", manager, "echo")
        loop_watch.assert_smooth(HANG_SECONDS)
        await lives(manager, server)


async def test_a_stream_of_nothing_but_comments_is_slowed_down_and_stopped(
    monkeypatch: pytest.MonkeyPatch, measure: Measure, loop_watch: LoopWatch
) -> None:
    monkeypatch.setattr(jsonrpc_lines, "MAX_EXCESS", 1.0)
    sent = 0

    async def chat(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.begin(200, content_type=STREAM)
        while not exchange.writer.is_closing():
            await exchange.write(b":\n" * 2**15)
            sent += 2**15

    async with answering(chat) as (_, manager, watcher):
        loop_watch.clear()
        await refuses("sent more than 1,000 messages", manager, "echo")
        await watcher.until(WEB, S.READY, S.FAILED)
        loop_watch.assert_smooth()
    measure(f"an event stream of comments: stopped after {sent:,} lines")
    assert sent < 10_000_000


def pouring(head: bytes, piece: bytes, **headers: str) -> Handler:
    """Make a handler whose answer never ends."""

    async def pour(exchange: Exchange) -> None:
        await exchange.begin(200, content_type=JSON, **headers)
        await exchange.write(head)
        while not exchange.writer.is_closing():
            await exchange.write(piece)
            await asyncio.sleep(0)

    return pour


def announcing(length: str) -> Handler:
    """Make a handler that announces so many bytes and sends none."""

    async def announce(exchange: Exchange) -> None:
        await exchange.begin(200, content_type=JSON, content_length=length)
        await exchange.hang()

    return announce


async def test_what_is_packed_or_sized_amiss_fails_its_call_only() -> None:
    amiss: list[tuple[Handler, str]] = [
        (pouring(b"", b" " * MIB), "larger than 16 MiB"),
        (announcing(str(17 * MIB)), "larger than 16 MiB"),
        (announcing("9" * 30), "larger than 16 MiB|not valid HTTP"),
    ]
    packed = gzip.compress(result(0, "x"))
    for encoding, kind in itertools.product(
        ("br", "gzip, br", "ZSTD", "x\x1b[31m"), (JSON, STREAM)
    ):
        refused = answer(200, packed, content_type=kind, content_encoding=encoding)
        words = "a compressed response .*, which gemdeck did not accept"
        unknown = "does not answer the request" if kind == JSON else "closed the connection"
        amiss.append((refused, unknown if encoding[0] == "x" else words))
    failed = answer(503, packed, content_type=JSON, content_encoding="gzip")
    amiss.append((failed, "failed with HTTP 503"))
    async with answering() as (server, manager, watcher):
        for handler, words in amiss:
            server.on["tools/call"] = handler
            await refuses(words, manager, "echo")
            await lives(manager, server)
        assert watcher.statuses(WEB) == [S.STARTING, S.READY]


async def test_large_answers_arrive_and_a_giant_fails_its_call_only(loop_watch: LoopWatch) -> None:
    async def large(exchange: Exchange) -> None:
        body = result(exchange.request.message["id"], "x" * size)
        if kind == STREAM:
            body = b"data: " + body + b"\n\n"
        await exchange.respond(200, body, content_type=kind)

    size = 3 * MIB
    async with answering(large) as (server, manager, _):
        for kind in (JSON, STREAM):  # noqa: B007 - the server sends it
            assert "x" * 1_000 in (await call(manager, "echo")).display
        size = 20 * MIB
        loop_watch.clear()
        await refuses("an event larger than 16 MiB", manager, "echo")
        loop_watch.assert_smooth(HANG_SECONDS)  # the server itself takes long to send it
        await lives(manager, server)


async def test_an_sse_stream_carries_large_events_and_ends_at_a_giant() -> None:
    size = 3 * MIB

    async def take(exchange: Exchange) -> None:
        await exchange.respond(202)
        body = result(exchange.request.message["id"], "x" * size)
        await server.streams[-1].write(b"data: " + body + b"\n\n")

    server = SseServer(on={"tools/call": take})
    async with server, connected(server.url, Transport.SSE) as (manager, watcher):
        assert "x" * 1_000 in (await call(manager, "echo")).display
        size = 20 * MIB
        await refuses("an event larger than 16 MiB during the call", manager, "echo")
        await watcher.until(WEB, S.READY, S.RETRYING)


async def test_an_odd_session_id_is_refused() -> None:
    async def give(exchange: Exchange) -> None:
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}}
        await exchange.result(result, mcp_session_id=session)

    async with RawServer(on={"initialize": give}) as server:
        for session in ("x" * 1_025, "a\x1b[2J", "a b", "é"):  # noqa: B007 - the server gives it
            words = await reason(server.url)
            assert "an invalid session id" in words or "closed the connection" in words


async def test_slow_heads_hold_up_nobody_else() -> None:
    async def drip(exchange: Exchange) -> None:
        for byte in b"HTTP/1.1 200 OK\r\nx-slow: " + b"y" * 100:
            await exchange.write(bytes([byte]))
            await asyncio.sleep(0.05)

    # In so many seconds the server also has to be ready and to answer a call.
    async with answering(drip, timeout=3) as (server, manager, watcher):
        await refuses(r"no result within 3 s", manager, "echo")
        await eventually(lambda: "notifications/cancelled" in server.methods())
        await lives(manager, server)
        assert watcher.statuses(WEB)[-1] is S.READY
