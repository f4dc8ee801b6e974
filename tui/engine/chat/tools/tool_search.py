"""The tool with which the model finds tools that it does not hold, and loads them."""

import asyncio
from collections.abc import Sequence
from typing import Final

from tui.engine.chat.tools.own_tools import make_own_tool, text_result
from tui.engine.mcp.catalog.holding import MAX_QUERY, search
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool, OwnTool, ToolResult
from tui.engine.mcp.manager import ServerManager
from tui.model.servers import ServerId
from tui.text import clip, counted

MAX_NAMED: Final = 50
"""Servers that the description names."""

MAX_DESCRIPTION: Final = 300
"""Characters of a description that a search shows."""


def tool_search(servers: ServerManager) -> OwnTool | None:
    """Return the search, if the servers have more tools than the model holds."""
    offered = servers.offered_tools()
    more = len(offered) - len(servers.held_tools())
    if not more:
        return None
    description = (
        f"Find and load tools: {counted(more, 'tool')} of {_named(offered)} are not loaded yet. "
        "Search before you say that something cannot be done. What is found can be called from "
        "the next step on."
    )
    query = {
        "type": "string",
        "maxLength": MAX_QUERY,
        "description": "Words for what the tool does, or its name.",
    }

    async def run(arguments: JsonObject) -> ToolResult:
        tools = servers.offered_tools()
        found = await asyncio.to_thread(search, str(arguments.get("query", "")), tools)
        servers.load_tools(found)
        if not found:
            return text_result("No tool fits. Try other words.")
        return text_result("\n".join(["These tools are loaded now:", *map(_line, found)]))

    return make_own_tool("search_tools", description, {"query": query}, run, "query", is_free=True)


def _named(tools: Sequence[OfferedTool]) -> str:
    """Name the servers of tools."""
    names: list[ServerId] = list(dict.fromkeys(tool.server for tool in tools))
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more servers" if more > 0 else "")


def _line(tool: OfferedTool) -> str:
    words = clip(" ".join(tool.view.description.split()), MAX_DESCRIPTION)
    return f"- {tool.id} (of the server {tool.server}): {words}"
