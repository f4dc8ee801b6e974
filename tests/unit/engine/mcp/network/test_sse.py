"""The HTTP+SSE transport of the earliest revision, with servers that keep to it and others."""

import json

import httpx2
import pytest

from tests.servers.web import Exchange, RawServer, SseServer, answer
from tests.unit.engine.mcp.network.support import WEB, connected, define, reason
from tests.unit.engine.mcp.support import HASTY, call, eventually, ready, refuses
from tui.engine.mcp.catalog.offered_tool import TextPart
from tui.engine.mcp.transports.http import http_client
from tui.engine.mcp.transports.http.channels import _resolve
from tui.engine.mcp.transports.http.http_errors import ExchangeError
from tui.model.servers import ServerStatus as S
from tui.model.servers import Transport

HI = (TextPart("hi"),)


@pytest.mark.parametrize("bare", [False, True])
async def test_messages_go_to_the_endpoint_and_answers_come_with_the_stream(bare: bool) -> None:
    transport = Transport.HTTP if bare else Transport.SSE
    headers = {"Authorization": "Bearer fixture-token"}
    async with (
        SseServer() as server,
        connected(server.url, transport, sse_fallback=bare, headers=headers) as (manager, watcher),
    ):
        assert (await call(manager, "echo", {"text": "hi"})).parts == HI
        [request] = server.calls()
        assert request.path == "/messages?session=secret-session"
        assert {r.headers["authorization"] for r in server.requests} == {"Bearer fixture-token"}
        assert "secret-session" not in repr(watcher.events)


async def test_an_endpoint_elsewhere_is_refused_and_nothing_is_sent_there() -> None:
    async with RawServer() as other:
        for place in (f"http://localhost:{other.port}/m", f"//localhost:{other.port}/m"):
            async with SseServer(endpoint=place) as server:
                words = await reason(server.url, Transport.SSE)
                assert f"another origin, http://localhost:{other.port}," in words
        assert other.requests == []


async def begin_and_end(exchange: Exchange) -> None:
    await exchange.begin(200, content_type="text/event-stream")


async def be_silent(exchange: Exchange) -> None:
    await begin_and_end(exchange)
    await exchange.hang()


def test_an_endpoint_behind_a_proxy_that_speaks_tls_is_within_the_origin() -> None:
    for base in ("https://h.test/sse", "https://h.test:8443/sse"):
        named = httpx2.URL(base).copy_with(scheme="http", path="/m", query=b"s=1")
        assert str(_resolve(str(named), httpx2.URL(base))) == base.replace("sse", "m?s=1")
    for place in ("http://h.test:80/m", "http://h.test:8443/m", "http://other.test/m"):
        with pytest.raises(ExchangeError, match=r"another origin, http://.*"):
            _resolve(place, httpx2.URL("https://h.test:9/sse"))
    with pytest.raises(ExchangeError, match=r"another origin, https://h\.test,"):
        _resolve("https://h.test/m", httpx2.URL("http://h.test/sse"))


@pytest.mark.parametrize(
    "early",
    [b"retry: 9\n\nevent: ping\ndata: 1\n\n", b'data: {"jsonrpc": "2.0", "method": "x"}\n\n'],
)
@pytest.mark.parametrize("named", [b"", b"event: mcp\n"])
async def test_a_stream_may_begin_oddly_and_name_its_events(early: bytes, named: bytes) -> None:
    async def begin(exchange: Exchange) -> None:
        await begin_and_end(exchange)
        await exchange.write(early + b"event: endpoint\ndata: /messages\n\n")
        server.streams.append(exchange)
        await exchange.hang()

    async def reply(exchange: Exchange) -> None:
        await exchange.respond(202)
        content = [{"type": "text", "text": "hi"}]
        message = {"jsonrpc": "2.0", "id": exchange.request.message["id"]}
        data = json.dumps({**message, "result": {"content": content}}).encode()
        await server.streams[0].write(named + b"data: " + data + b"\n\n")

    async with (
        SseServer(on={"GET": begin, "tools/call": reply}) as server,
        connected(server.url, Transport.SSE) as (manager, watcher),
    ):
        assert (await call(manager, "echo")).parts == HI
        ignored = "ignored an event before the address for messages"
        await eventually(lambda: b"jsonrpc" not in early or watcher.log(WEB))
        assert any(ignored in line for line in watcher.log(WEB)) is (b"jsonrpc" in early)


async def test_a_response_in_place_of_an_acceptance_is_taken() -> None:
    async def reply(exchange: Exchange) -> None:
        await exchange.text("hi" * 9_000)

    async with (
        SseServer(on={"tools/call": reply}) as server,
        connected(server.url, Transport.SSE) as (manager, watcher),
    ):
        assert (await call(manager, "echo")).parts == (TextPart("hi" * 9_000),)
        for body in (b'{"status": "ok"}', b"{"):
            server.on["tools/call"] = answer(500, body, content_type="application/json")
            await refuses("HTTP 500", manager, "echo")
        assert watcher.statuses(WEB)[-1] is S.READY


async def test_nobody_waits_for_the_end_of_what_accepts_a_notice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_client, "WORDS_TIMEOUT", 0.1)

    async def accept(exchange: Exchange) -> None:
        await exchange.begin(202, content_type="application/json")
        await exchange.write(b'{"status":')
        await exchange.hang()

    async with (
        SseServer(on={"notifications/initialized": accept}) as server,
        connected(server.url, Transport.SSE) as (manager, watcher),
    ):
        assert (await call(manager, "echo", {"text": "hi"})).parts == HI
        assert watcher.log(WEB) == []


async def test_the_words_of_a_server_that_does_not_begin_are_shown() -> None:
    async def complain(exchange: Exchange) -> None:
        await begin_and_end(exchange)
        await exchange.write(b"event: error\ndata: Too many clients.\n\n")

    missing = SseServer(endpoint="/lost?session=secret-session")
    missing.on |= dict.fromkeys(("server/discover", "initialize"), answer(404, b"No route."))
    said = b'{"detail": "Use POST."}'
    for server, words in (
        (SseServer(on={"GET": complain}), "was complete. Response: Too many clients."),
        (SseServer(on={"GET": answer(200, said, content_type="application/json")}), "Use POST."),
        (missing, "/lost, where nothing is (HTTP 404). Response: No route."),
    ):
        async with server:
            found = await reason(server.url, Transport.SSE)
            assert words in found
            assert "secret-session" not in found


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (SseServer(endpoint="http://["), ""),
        (SseServer(endpoint="x" * 9_000), ""),
        (SseServer(endpoint="file:///etc/passwd"), ""),
        (SseServer(on={"GET": be_silent}), "was not ready within 1 s"),
        (SseServer(on={"GET": begin_and_end}), "closed the connection"),
        (SseServer(on={"GET": answer(200, b"<html>", content_type="text/html")}), "web page"),
    ],
    ids=["broken", "long", "file", "silent", "ended", "page"],
)
async def test_a_stream_without_usable_endpoint_is_given_up(server: SseServer, words: str) -> None:
    more = {"timeout": 1} if "not ready" in words else {}
    async with server:
        assert words in await reason(server.url, Transport.SSE, **more)
        assert server.methods() == ["GET"]


async def test_a_message_that_is_not_taken_fails_its_call_only() -> None:
    async with SseServer() as server, connected(server.url, Transport.SSE) as (manager, watcher):
        for handler in (answer(500), Exchange.cut):
            server.on["tools/call"] = handler
            await refuses("is unknown", manager, "echo")
        del server.on["tools/call"]
        assert (await call(manager, "echo", {"text": "hi"})).parts == HI
        assert watcher.statuses(WEB)[-1] is S.READY


async def test_a_drop_of_the_stream_is_noticed() -> None:
    async with SseServer() as server, connected(server.url, Transport.SSE) as (_, watcher):
        await server.streams[0].cut()
        assert (await watcher.fails(WEB, S.RETRYING)).reason == "closed its event stream"


async def test_a_drop_during_a_call_leaves_its_fate_unknown() -> None:
    async def take(exchange: Exchange) -> None:
        await exchange.respond(202)
        await server.streams[0].cut()

    async with (
        SseServer(on={"tools/call": take}) as server,
        ready(define(server.url, Transport.SSE), retry=HASTY) as (manager, watcher),
    ):
        await refuses(r"event stream during the call; .* is unknown", manager, "echo")
        await eventually(lambda: watcher.statuses(WEB)[-2:] == [S.STARTING, S.READY])
        assert len(server.calls()) == 1


async def test_a_call_of_a_lost_session_is_repeated_once() -> None:
    async def forget(exchange: Exchange) -> None:
        del server.on["tools/call"]
        await exchange.respond(404)

    async with (
        SseServer(on={"tools/call": forget}) as server,
        ready(define(server.url, Transport.SSE), retry=HASTY) as (manager, _),
    ):
        assert (await call(manager, "echo", {"text": "hi"})).parts == HI
        assert len(server.calls()) == 2
        assert len(server.streams) == 2


async def test_noise_on_the_stream_is_noted_and_does_no_harm() -> None:
    async with SseServer() as server, connected(server.url, Transport.SSE) as (manager, watcher):
        await server.streams[0].write(b"data: \xff\xfe not json\n\nevent: odd\ndata: x\n\n:\n\n")
        assert (await call(manager, "echo", {"text": "hi"})).parts == HI
        await eventually(lambda: any("not a message" in line for line in watcher.log(WEB)))
