from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.server.mcpserver import MCPServer

from tui.engine.mcp.session import sdk_patches
from tui.engine.mcp.transports.jsonrpc_lines import EXCHANGE_FAILED


def test_any_structured_content_passes_the_sdk_as_it_is() -> None:
    bare: dict[str, Any] = {"content": []}
    assert sdk_patches.read_call_result(bare).structured_content is None
    values: list[object] = [{"rows": [{"a": 1}] * 10}, {}, [1, 2], "text", 0, False]
    for structured in values:
        raw = {"content": [], "structuredContent": structured, "_meta": [structured] * 10}
        assert sdk_patches.read_call_result(raw).structured_content is structured


def test_blocks_keep_what_is_used_of_them() -> None:
    meta = {"a": [0] * 10}
    blocks = [
        {"type": "text", "text": "t", "_meta": meta, "annotations": {"priority": 1}},
        {"type": "image", "data": "AA==", "mimeType": "image/png", "odd": meta},
        {"type": "resource", "resource": {"uri": "a:b", "text": "r", "_meta": meta}},
        {"type": "resource_link", "uri": "a:b", "name": "n", "title": "t", "icons": []},
    ]
    assert sdk_patches.repair_result({"content": blocks})["content"] == [
        {"type": "text", "text": "t"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "a:b", "text": "r"}},
        {"type": "resource_link", "uri": "a:b", "name": "n", "title": "t"},
    ]


def test_another_reply_of_many_values_fails_its_request() -> None:
    light = {"contents": [{"text": "x" * 1_000_000}]}
    assert sdk_patches.check_weight(light) is light
    with pytest.raises(MCPError, match="too complex") as caught:
        sdk_patches.check_weight({"contents": [{"a": [[]] * 100} for _ in range(1_000)]})
    assert caught.value.code == EXCHANGE_FAILED


def test_no_more_blocks_are_judged_than_are_read() -> None:
    most, more = sdk_patches.MAX_BLOCKS, sdk_patches.MAX_BLOCKS + 500
    prompt = sdk_patches.repair_contents({"messages": ["x"] * more}, {})["messages"]
    assert [one["content"]["text"] for one in prompt] == ["x"] * most + [""] * 500
    resource = sdk_patches.repair_contents({"contents": ["x"] * more}, {"uri": "a:b"})["contents"]
    assert [one["text"] for one in resource] == ["x"] * most + [""] * 500


def annotated(name: str, header: object) -> dict[str, Any]:
    """Define a tool whose argument goes into a header."""
    properties = {"region": {"type": "string", "x-mcp-header": header}}
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


async def test_only_tools_with_header_annotations_pass_the_sdk() -> None:
    plain = {"name": "plain", "inputSchema": {"type": "object", "description": "no header"}}
    async with Client(MCPServer("headers"), mode="2026-07-28") as client:
        listed = [plain, annotated("good", "Region"), annotated("bad", "No Token"), {"name": []}]
        assert await sdk_patches.refused_tools(client, listed) == {"bad"}
        assert client.session._x_mcp_header_maps == {"good": {("region",): "Region"}}
        assert await sdk_patches.refused_tools(client, [{**plain, "name": "good"}]) == set()
        assert client.session._x_mcp_header_maps == {"good": {}}
    async with Client(MCPServer("headers"), mode="legacy") as client:
        assert await sdk_patches.refused_tools(client, [annotated("bad", "No Token")]) == set()
