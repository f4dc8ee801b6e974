"""The HTTP+SSE transport of the earliest revision, with servers that keep to it and others."""

import pytest

from tests.servers.web import Exchange, RawServer, SseServer, answer
from tests.support.waiting import at_once
from tests.unit.engine.mcp.network.support import WEB, connected, define, reason
from tests.unit.engine.mcp.support import HASTY, call, eventually, ready, refuses
from tui.engine.mcp.catalog.offered_tool import TextPart
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
                assert "another origin, localhost" in words
        assert other.requests == []


async def begin_and_end(exchange: Exchange) -> None:
    await exchange.begin(200, content_type="text/event-stream")


async def be_silent(exchange: Exchange) -> None:
    await begin_and_end(exchange)
    await exchange.hang()


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (SseServer(endpoint="http://["), ""),
        (SseServer(endpoint="x" * 9_000), ""),
        (SseServer(endpoint="file:///etc/passwd"), ""),
        (SseServer(on={"GET": be_silent}), "was not ready within 0.5 s"),
        (SseServer(on={"GET": begin_and_end}), "closed the connection"),
        (SseServer(on={"GET": answer(200, b"<html>", content_type="text/html")}), "web page"),
    ],
    ids=["broken", "long", "file", "silent", "ended", "page"],
)
async def test_a_stream_without_usable_endpoint_is_given_up(server: SseServer, words: str) -> None:
    async with server:
        assert words in await reason(server.url, Transport.SSE, timeout=0.5)
        assert server.methods() == ["GET"]


async def test_a_message_that_is_not_taken_fails_its_call_only() -> None:
    async with SseServer() as server, connected(server.url, Transport.SSE) as (manager, watcher):
        for handler in (answer(500), Exchange.cut):
            server.on["tools/call"] = handler
            await refuses("is unknown", manager, "echo")
        del server.on["tools/call"]
        assert (await call(manager, "echo", {"text": "hi"})).parts == HI
        assert watcher.statuses(WEB)[-1] is S.READY


async def test_a_drop_of_the_stream_is_noticed_at_once() -> None:
    async with SseServer() as server, connected(server.url, Transport.SSE) as (_, watcher):
        await server.streams[0].cut()
        await at_once(lambda: watcher.last(WEB).status is S.RETRYING)
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
