"""Servers of the SDK and from npm over HTTP and SSE: connected, listed and called."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from tests.servers.sample import server as sample
from tests.servers.web import RawServer, answer, free_port, process, serving
from tests.support import warm
from tests.support.node import node_server
from tests.unit.engine.mcp.network.support import WEB, connected, define, outcome
from tests.unit.engine.mcp.support import FOLDER, HASTY, call, eventually, running
from tui.engine.mcp.catalog.offered_tool import TextPart
from tui.model.chat import Progress
from tui.model.servers import ProtocolEra, Transport
from tui.model.servers import ServerStatus as S


@asynccontextmanager
async def sample_process(kind: str) -> AsyncIterator[str]:
    """Run the sample server in a process of its own, over ``http`` or ``sse``."""
    async with process(warm.python(), str(FOLDER / "sample.py"), kind, "{port}") as (base, _):
        yield base


@pytest.mark.parametrize("json_response", [False, True])
async def test_a_server_of_the_sdk_is_connected_listed_and_called(json_response: bool) -> None:
    application = sample.streamable_http_app(json_response=json_response)
    async with serving(application) as base, connected(f"{base}/mcp") as (manager, watcher):
        info = watcher.last(WEB).info
        assert info is not None
        assert info.protocol_version == "2026-07-28"
        catalog = watcher.catalog(WEB)
        assert [tool.id for tool in catalog.tools][:2] == ["add", "count"]
        assert [prompt.name for prompt in catalog.prompts] == ["greet"]
        assert (await call(manager, "add", {"a": 2, "b": 3})).parts == (TextPart("5"),)
        assert (await call(manager, "fail", {"reason": "rain"})).is_error


async def test_a_server_of_the_earlier_era_has_a_session_that_is_ended_on_closing() -> None:
    async with RawServer(sessions=set()) as server:
        async with connected(server.url) as (manager, watcher):
            info = watcher.last(WEB).info
            assert info is not None
            assert info.protocol_version == "2025-06-18"
            assert (await call(manager, "echo", {"text": "hi"})).parts == (TextPart("hi"),)
        assert server.methods()[:3] == [
            "server/discover",
            "initialize",
            "notifications/initialized",
        ]
        assert server.methods()[-1] == "DELETE"
        assert server.sessions == set()
        opening = server.requests[1].headers
        assert "mcp-session-id" not in opening
        assert "mcp-protocol-version" not in opening
        later = server.requests[-2].headers
        assert later["mcp-protocol-version"] == "2025-06-18"
        assert later["mcp-session-id"].startswith("secret-session")


async def test_calls_run_in_parallel_and_report_progress() -> None:
    async with (
        sample_process("http") as base,
        connected(f"{base}/mcp", protocol=ProtocolEra.HANDSHAKE) as (manager, watcher),
    ):
        info = watcher.last(WEB).info
        assert info is not None
        assert info.protocol_version == "2025-11-25"
        seen: list[Progress] = []
        began = time.monotonic()
        calls = (call(manager, "count", {"to": 3, "pause": 0.1}, seen.append) for _ in range(5))
        await asyncio.gather(*calls)
        assert time.monotonic() - began < 1.2
        assert Progress(2.0, 3.0, "at 2") in seen


async def test_an_sse_server_is_connected_listed_and_called() -> None:
    async with (
        sample_process("sse") as base,
        connected(f"{base}/sse", Transport.SSE) as (manager, _),
    ):
        seen: list[Progress] = []
        result = await call(manager, "count", {"to": 2, "pause": 0.05}, seen.append)
        assert result.parts == (TextPart("counted to 2"),)
        assert Progress(1.0, 2.0, "at 1") in seen


async def test_a_bare_url_finds_either_kind_of_server() -> None:
    async with serving(sample.streamable_http_app()) as base:
        change = await outcome(f"{base}/mcp", sse_fallback=True)
        assert change.status is S.READY
    async with (
        sample_process("sse") as base,
        connected(f"{base}/sse", sse_fallback=True) as (manager, _),
    ):
        assert (await call(manager, "add", {"a": 1})).parts == (TextPart("2"),)


async def test_where_both_kinds_fail_the_first_refusal_is_told() -> None:
    async with RawServer(on={"server/discover": answer(404), "initialize": answer(404)}) as server:
        change = await outcome(server.url, sse_fallback=True)
        assert change.failure is not None
        assert change.failure.reason == "offers nothing at this address (HTTP 404)"
        assert "GET" in server.methods()


async def test_headers_are_sent_with_every_request_and_nowhere_seen() -> None:
    headers = {"Authorization": "Bearer fixture-token", "X-Team": "deck"}
    async with RawServer(sessions=set()) as server:
        async with connected(server.url, headers=headers) as (manager, watcher):
            await call(manager, "echo", {"text": "hi"})
        assert {r.headers.get("authorization") for r in server.requests} == {"Bearer fixture-token"}
        assert {r.headers.get("x-team") for r in server.requests} == {"deck"}
        assert {r.headers["accept-encoding"] for r in server.requests} == {"identity"}
        shown = repr(watcher.events)
        assert "fixture-token" not in shown
        assert "secret-session" not in shown


async def test_neither_session_ids_nor_headers_reach_the_log_of_the_process(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    headers = {"Authorization": "Bearer fixture-token"}
    async with (
        RawServer(sessions=set()) as server,
        connected(f"{server.url}?key=fixture-key", headers=headers) as (manager, _),
    ):
        await call(manager, "echo", {"text": "hi"})
    for secret in ("fixture-token", "fixture-key", "secret-session"):
        assert secret not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "path", "transport", "sse_fallback"),
    [
        ("streamableHttp", "/mcp", Transport.HTTP, False),
        ("streamableHttp", "/mcp", Transport.HTTP, True),
        ("sse", "/sse", Transport.SSE, False),
        ("sse", "/sse", Transport.HTTP, True),
    ],
)
async def test_the_reference_server_works_over_the_network(
    kind: str, path: str, transport: Transport, sse_fallback: bool
) -> None:
    command, arguments = node_server("everything", kind)
    async with (
        process(command, *arguments) as (base, _),
        connected(base + path, transport, sse_fallback=sse_fallback) as (manager, watcher),
    ):
        info = watcher.last(WEB).info
        assert info is not None
        assert info.protocol_version == "2025-11-25"
        assert len(watcher.catalog(WEB).tools) >= 10
        assert len(watcher.catalog(WEB).prompts) == 4
        assert (await call(manager, "echo", {"message": "hi"})).parts == (TextPart("Echo: hi"),)
        seen: list[Progress] = []
        duration = {"duration": 0.2, "steps": 2}
        await call(manager, "trigger-long-running-operation", duration, seen.append)
        await eventually(lambda: [step.progress for step in seen][:1] == [1.0])


@pytest.mark.slow
async def test_the_reference_server_may_be_restarted_under_a_session() -> None:
    command, arguments = node_server("everything", "streamableHttp")
    port = free_port()
    async with AsyncExitStack() as stack:
        base, server = await stack.enter_async_context(process(command, *arguments, port=port))
        definition = define(f"{base}/mcp")
        manager, watcher = await stack.enter_async_context(running(definition, retry=HASTY))
        await watcher.until(WEB, S.READY)
        server.kill()
        await server.wait()
        await watcher.until(WEB, S.READY, S.RETRYING)
        failure = watcher.last(WEB).failure
        assert failure is not None
        assert "refused the connection" in failure.reason
        await stack.enter_async_context(process(command, *arguments, port=port))
        if watcher.last(WEB).status is S.FAILED:
            manager.start(WEB)
        await watcher.until(WEB, S.STARTING, S.READY)
        assert (await call(manager, "echo", {"message": "hi"})).parts == (TextPart("Echo: hi"),)
