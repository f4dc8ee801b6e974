"""A well-behaved server, written with the SDK: tools, a prompt, resources and a template."""

import asyncio
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import ImageContent, ToolAnnotations

_HEADER = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADU"
PIXEL = f"{_HEADER}lEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

server = MCPServer("sample", version="1.2.3", instructions="Add numbers with care.")


@server.tool(title="Add two numbers", annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int = 1) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool()
async def count(to: int, ctx: Context, pause: float = 0.0) -> str:
    """Count, and report how far it is."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
        await asyncio.sleep(pause)
    return f"counted to {to}"


@server.tool()
def fail(reason: str) -> str:
    """Fail for a reason."""
    raise ValueError(reason)


@server.tool()
def picture() -> ImageContent:
    """Give a picture of one pixel."""
    return ImageContent(type="image", data=PIXEL, mime_type="image/png")


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def measure() -> dict[str, int]:
    """Give structured content."""
    return {"width": 3}


@server.prompt(title="Greeting")
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


@server.resource("memo://today", mime_type="text/plain")
def today() -> str:
    """What is on today."""
    return "milk"


@server.resource("memo://{day}")
def memo(day: str) -> str:
    """What is on a day."""
    return day


if __name__ == "__main__":
    print("sample is up", file=sys.stderr, flush=True)
    match sys.argv[1:]:
        case ["sse", port]:
            server.run("sse", port=int(port))
        case ["http", port]:
            server.run("streamable-http", port=int(port))
        case _:
            server.run("stdio")
