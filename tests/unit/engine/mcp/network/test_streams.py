"""Streams of events: announcements on one of their own, and answers that are resumed."""

import time

import pytest

from tests.servers.web import Announcer, Exchange, Handler, Message, RawServer, answer
from tests.support.measures import Measure
from tests.unit.engine.mcp.network.support import WEB, answering, connected, stateless
from tests.unit.engine.mcp.support import HASTY, call, eventually, refuses
from tui.engine.mcp.catalog.offered_tool import TextPart
from tui.model.servers import ServerStatus as S

STREAM = "text/event-stream"
HI = (TextPart("hi"),)


async def test_a_dropped_stream_of_announcements_is_opened_again_where_it_broke() -> None:
    announcer = Announcer()
    async with answering({"GET": announcer}, sessions=True) as (server, _, watcher):
        await eventually(lambda: announcer.streams)
        await announcer.log("one", id="7")
        await eventually(lambda: "one" in watcher.log(WEB))
        await announcer.streams[0].cut()
        await eventually(lambda: len(announcer.streams) == 2)
        await announcer.log("two")
        await eventually(lambda: "two" in watcher.log(WEB))
        assert announcer.streams[1].request.headers["last-event-id"] == "7"
        assert watcher.statuses(WEB)[-1] is S.READY
        assert server.methods().count("initialize") == 1


async def test_a_server_that_is_gone_is_noticed_by_its_stream(measure: Measure) -> None:
    announcer = Announcer()
    server = RawServer(on={"GET": announcer}, sessions=set())
    async with server, connected(server.url) as (_, watcher):
        await eventually(lambda: announcer.streams)
        began = time.perf_counter()
        await server.stop()
        await watcher.until(WEB, S.READY, S.RETRYING)
        seconds = time.perf_counter() - began
        measure(f"idle HTTP server gone: noticed after {seconds * 1000:.0f} ms")


async def test_a_session_lost_on_the_stream_is_replaced() -> None:
    announcer = Announcer()
    async with answering({"GET": announcer}, sessions=True, retry=HASTY) as (server, _, watcher):
        await eventually(lambda: announcer.streams)
        del server.on["GET"]
        server.forget()
        await announcer.streams[0].cut()
        await watcher.until(WEB, S.READY, S.RETRYING, S.STARTING, S.READY)
        assert len(server.sessions or ()) == 1


@pytest.mark.parametrize("status", [200, 401, 405, 500])
async def test_a_server_without_a_stream_of_announcements_works(status: int) -> None:
    decline = answer(status, b"<html>", content_type="text/html")
    async with answering({"GET": decline}, sessions=True) as (server, manager, watcher):
        await eventually(lambda: "GET" in server.methods())
        assert (await call(manager, "echo", {"text": "hi"})).parts == HI
        assert watcher.statuses(WEB) == [S.STARTING, S.READY]


async def test_streams_that_end_at_once_are_not_asked_for_without_end() -> None:
    spans = list[tuple[float, float]]()

    async def end(exchange: Exchange) -> None:
        began = time.perf_counter()
        await exchange.begin(200, content_type=STREAM)
        spans.append((began, time.perf_counter()))
        await exchange.write(b"retry: 0\n\n")

    async with answering({"GET": end}, sessions=True):
        await eventually(lambda: len(spans) == 3)
        assert spans[2][0] - spans[1][1] > 0.3


async def test_an_answer_that_cannot_be_resumed_is_reported_and_not_asked_for_again() -> None:
    async def begin(exchange: Exchange) -> None:
        await exchange.begin(200, content_type=STREAM)
        await exchange.event(id="a1", data="")

    async def forget(exchange: Exchange) -> None:
        await exchange.respond(404 if "last-event-id" in exchange.request.headers else 405)

    on: dict[str, Handler] = {"tools/call": begin, "GET": forget}
    async with answering(on, sessions=True, retry=HASTY) as (server, manager, _):
        await refuses(r"no longer knows .* is unknown", manager, "echo")
        assert len(server.calls()) == 1
    on["GET"] = answer(405, b"No resuming.")
    async with answering(on) as (server, manager, _):
        words = r"ended its stream .* did not resume it: .* Response: No resuming.* is unknown"
        await refuses(words, manager, "echo")
        assert len(server.calls()) == 1


async def test_a_result_without_a_type_counts_as_complete() -> None:
    prompts = {"prompts": [{"name": "greet"}], "ttlMs": 0, "cacheScope": "public"}
    message = {"role": "user", "content": {"type": "text", "text": "hello"}}
    results: dict[str, Message] = {
        "tools/call": {"content": [{"type": "text", "text": "untyped"}]},
        "prompts/list": prompts,
        "prompts/get": {"messages": [message]},
    }
    async with answering(stateless(**results)) as (_, manager, _):
        assert (await call(manager, "echo")).parts == (TextPart("untyped"),)
        prompt = await manager.features(WEB).get_prompt("greet", {})
        assert "hello" in prompt.shown
