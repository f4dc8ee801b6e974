"""Servers of the SDK and from npm over HTTP and SSE: connected, listed and called."""

import pytest

from tests.servers.sample import server as sample
from tests.servers.web import RawServer, answer, process, serving
from tests.support import warm
from tests.unit.engine.mcp.network.support import WEB, connected, reason
from tests.unit.engine.mcp.support import FOLDER, call
from tui.engine.mcp.catalog.offered_tool import TextPart
from tui.model.chat import Progress
from tui.model.events import ServerStatusChanged
from tui.model.servers import ServerStatus as S
from tui.model.servers import Transport


@pytest.mark.parametrize("json_response", [False, True])
async def test_a_server_of_the_sdk_is_connected_listed_and_called(json_response: bool) -> None:
    application = sample.streamable_http_app(json_response=json_response)
    async with serving(application) as base, connected(f"{base}/mcp") as (manager, watcher):
        assert (await watcher.info(WEB, S.READY)).protocol_version == "2026-07-28"
        catalog = watcher.catalog(WEB)
        assert [tool.id for tool in catalog.tools][:2] == ["add", "count"]
        assert [prompt.name for prompt in catalog.prompts] == ["greet"]
        assert (await call(manager, "add", {"a": 2, "b": 3})).parts == (TextPart("5"),)
        assert (await call(manager, "fail", {"reason": "rain"})).is_error


async def test_a_server_of_the_earlier_era_has_a_session_that_is_ended_on_closing() -> None:
    async with RawServer(sessions=set()) as server:
        async with connected(server.url) as (manager, watcher):
            assert (await watcher.info(WEB, S.READY)).protocol_version == "2025-06-18"
            assert (await call(manager, "echo", {"text": "hi"})).parts == (TextPart("hi"),)
        probed = ["server/discover", "initialize", "notifications/initialized"]
        assert server.methods()[:3] == probed
        assert server.methods()[-1] == "DELETE"
        assert server.sessions == set()
        opening = server.requests[1].headers
        assert "mcp-session-id" not in opening
        assert "mcp-protocol-version" not in opening
        later = server.requests[-2].headers
        assert later["mcp-protocol-version"] == "2025-06-18"
        assert later["mcp-session-id"].startswith("secret-session")


async def test_a_bare_url_finds_either_kind_of_server_which_is_listed_and_called() -> None:
    app = sample.streamable_http_app()
    async with serving(app) as base, connected(f"{base}/mcp", sse_fallback=True):
        pass
    arguments = (warm.python(), str(FOLDER / "sample.py"), "sse", "{port}")
    async with process(*arguments) as (base, _):
        for transport, bare in ((Transport.HTTP, True), (Transport.SSE, False)):
            seen: list[Progress] = []
            async with connected(f"{base}/sse", transport, sse_fallback=bare) as (manager, watcher):
                moved = [one for one in watcher.events if isinstance(one, ServerStatusChanged)]
                assert [one.transport for one in moved] == [transport, Transport.SSE]
                result = await call(manager, "count", {"to": 2, "pause": 0.05}, seen.append)
                assert result.parts == (TextPart("counted to 2"),)
                assert Progress(1.0, 2.0, "at 1") in seen


async def test_where_both_kinds_fail_the_first_refusal_is_told() -> None:
    async with RawServer(on={"server/discover": answer(404), "initialize": answer(404)}) as server:
        words = await reason(server.url, sse_fallback=True)
        assert words == "offers nothing at this address (HTTP 404)"
        assert "GET" in server.methods()


async def test_headers_go_with_each_request_and_hidden(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    headers = {"Authorization": "Bearer fixture-token", "X-Team": "deck"}
    async with RawServer(sessions=set()) as server:
        url = f"{server.url}?key=fixture-key"
        async with connected(url, headers=headers) as (manager, watcher):
            await call(manager, "echo", {"text": "hi"})
        for name, value in (headers | {"accept-encoding": "identity"}).items():
            assert {r.headers.get(name.lower()) for r in server.requests} == {value}
    for secret in ("fixture-token", "secret-session"):
        assert secret not in repr(watcher.events)
        assert secret not in caplog.text
    assert "fixture-key" not in caplog.text
