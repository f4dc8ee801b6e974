"""Servers of the stateless era that leave out of a result what kind of result it is."""

from tests.servers.web import ECHO, Exchange, Handler, RawServer
from tests.unit.engine.mcp.network.support import WEB, connected
from tests.unit.engine.mcp.support import call
from tui.engine.mcp.catalog.offered_tool import TextPart


async def test_a_result_without_a_type_counts_as_complete() -> None:
    about = {"ttlMs": 0, "cacheScope": "public"}

    async def discover(exchange: Exchange) -> None:
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "prompts": {}}}
        await exchange.result({**result, **about, "resultType": "complete"})

    async def list_tools(exchange: Exchange) -> None:
        await exchange.result({"tools": [ECHO], **about})

    async def list_prompts(exchange: Exchange) -> None:
        await exchange.result({"prompts": [{"name": "greet"}], **about})

    async def get_prompt(exchange: Exchange) -> None:
        message = {"role": "user", "content": {"type": "text", "text": "hello"}}
        await exchange.result({"messages": [message]})

    async def call_tool(exchange: Exchange) -> None:
        await exchange.result({"content": [{"type": "text", "text": "untyped"}]})

    on: dict[str, Handler] = {
        "server/discover": discover,
        "tools/list": list_tools,
        "tools/call": call_tool,
        "prompts/list": list_prompts,
        "prompts/get": get_prompt,
    }
    async with RawServer(on=on) as server, connected(server.url) as (manager, _):
        assert (await call(manager, "echo")).parts == (TextPart("untyped"),)
        prompt = await manager.features(WEB).get_prompt("greet", {})
        assert "hello" in prompt.shown
