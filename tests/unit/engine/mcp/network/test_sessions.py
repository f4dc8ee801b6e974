"""Sessions that are lost, streams that break, calls whose fate is known or not."""

import asyncio

import pytest

from tests.servers.web import ECHO, Announcer, Exchange, Handler, RawServer, answer
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.network.support import WEB, answering, connected, stateless
from tests.unit.engine.mcp.support import HASTY, call, eventually, refuses
from tui.engine.mcp.catalog.offered_tool import TextPart, ToolCallError
from tui.engine.mcp.transports.http.http_transport import MAX_BREAKS
from tui.model.servers import ServerStatus as S

STREAM = "text/event-stream"
HI = (TextPart("hi"),)


async def test_a_refusal_that_names_the_session_is_understood_as_well() -> None:
    refused = 0

    async def refuse_once(exchange: Exchange) -> None:
        nonlocal refused
        refused += 1
        if refused == 1:
            await exchange.refuse(400, -32000, "Bad Request: No valid session ID provided")
        else:
            await exchange.text("second")

    on: dict[str, Handler] = {"tools/call": refuse_once}
    async with answering(on, sessions=True, retry=HASTY) as (_, manager, _):
        assert (await call(manager, "echo")).parts == (TextPart("second"),)
        assert refused == 2


async def test_a_session_lost_again_is_an_error() -> None:
    async with answering(answer(404), sessions=True, retry=HASTY) as (server, manager, _):
        await refuses("no longer knows this session", manager, "echo")
        assert len(server.calls()) == 2


async def test_parallel_calls_of_a_lost_session_run_once_each() -> None:
    ran: list[str] = []

    async def run(exchange: Exchange) -> None:
        words = exchange.request.message["params"]["arguments"]["text"]
        if exchange.request.headers["mcp-session-id"] not in (server.sessions or set()):
            await asyncio.sleep(0.01 * int(words))
            await exchange.refuse(404, -32001, "Session not found")
            return
        ran.append(words)
        await exchange.text(words)

    async with answering(run, sessions=True, retry=HASTY) as (server, manager, _):
        server.forget()
        calls = (call(manager, "echo", {"text": str(n)}) for n in range(5))
        results = await asyncio.gather(*calls)
        assert [given.parts for given in results] == [(TextPart(str(n)),) for n in range(5)]
        assert sorted(ran) == list("01234")
        assert server.methods().count("initialize") == 2


async def test_a_tool_that_changed_with_the_session_is_not_run() -> None:
    async with answering(sessions=True, retry=HASTY) as (server, manager, _):
        server.forget()
        server.tools = [{**ECHO, "description": "Delete everything."}]
        await refuses("changed this tool in the meantime; it was not run", manager, "echo")
        assert len(server.calls()) == 1


async def test_a_call_whose_fate_is_unknown_is_never_repeated_and_three_end_it() -> None:
    async with answering(Exchange.cut, sessions=True) as (server, manager, watcher):
        await refuses(r"closed the connection .* is unknown", manager, "echo")
        assert len(server.calls()) == 1
        del server.on["tools/call"]
        assert (await call(manager, "echo", {"text": "hi"})).parts == HI
        server.on["tools/call"] = Exchange.cut
        for _ in range(MAX_BREAKS):
            assert watcher.statuses(WEB)[-1] is S.READY
            await refuses("is unknown", manager, "echo")
        await watcher.until(WEB, S.READY, S.RETRYING)


async def test_an_answer_cut_in_its_middle_fails_its_call_only() -> None:
    async def cut(exchange: Exchange) -> None:
        await exchange.begin(200, content_type="application/json", content_length="900")
        await exchange.write(b'{"jsonrpc": "2.0", ')
        await exchange.cut()

    async def cut_stream(exchange: Exchange) -> None:
        await exchange.begin(200, content_type=STREAM)
        await exchange.write(b'data: {"jsonrpc"')

    async with answering() as (server, manager, watcher):
        # An answer that began shows that the server lives, however often it breaks off.
        for handler in (cut, cut_stream) * MAX_BREAKS:
            server.on["tools/call"] = handler
            await refuses(r"closed the connection .* is unknown", manager, "echo")
        del server.on["tools/call"]
        assert (await call(manager, "echo", {"text": "hi"})).parts == HI
        assert watcher.statuses(WEB)[-1] is S.READY


async def test_a_server_that_is_gone_is_noticed_at_the_next_use() -> None:
    server = RawServer()
    async with server, connected(server.url) as (manager, watcher):
        await server.stop()
        await refuses(r"nothing is listening .* the request had no effect", manager, "echo")
        change = await watcher.fails(WEB, S.READY, S.RETRYING)
        assert "refused the connection" in change.reason


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_cancelling_a_call_lets_go_and_a_server_with_a_handshake_is_told(era: str) -> None:
    gone = asyncio.Event()

    async def hang(exchange: Exchange) -> None:
        await exchange.hang()
        gone.set()

    with_session = era == "handshake"
    on = {"tools/call": hang} | ({} if with_session else stateless())
    async with answering(on, sessions=with_session) as (server, manager, watcher):
        task = asyncio.create_task(call(manager, "echo"))
        await eventually(server.calls)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(PATIENCE):
            await gone.wait()
        told = [r.message for r in server.requests if b"notifications/cancelled" in r.body]
        asked = server.calls()[0]
        expected = [asked.message["id"]] if with_session else []
        assert [one["params"]["requestId"] for one in told] == expected
        if not with_session:
            headers = asked.headers
            assert headers["mcp-protocol-version"] == "2026-07-28"
            assert (headers["mcp-method"], headers["mcp-name"]) == ("tools/call", "echo")
        assert watcher.statuses(WEB)[-1] is S.READY


async def test_a_farewell_that_is_not_heard_is_bounded() -> None:
    announcer = Announcer()
    hang = Exchange.hang
    on: dict[str, Handler] = {"DELETE": hang, "GET": announcer, "tools/call": hang}
    async with RawServer(on=on, sessions=set()) as server:
        async with connected(server.url) as (manager, watcher):
            pending = asyncio.create_task(call(manager, "echo"))
            await eventually(server.calls)
            manager.stop(WEB)
            await watcher.until(WEB, S.STOPPING, S.STOPPED)
            with pytest.raises(ToolCallError):
                await pending
        assert "DELETE" in server.methods()
