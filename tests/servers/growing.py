"""A server written with the SDK whose offer grows, and whose tool asks the user by itself."""

import asyncio

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts import Prompt
from pydantic import BaseModel

server = MCPServer("growing")


class Answer(BaseModel):
    """What `ask` asks for."""

    name: str


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Add a tool and a prompt of this name, and say so."""
    server.add_tool(lambda: name, name=name, description=f"Give {name}.")
    server.add_prompt(Prompt.from_function(lambda: name, name=name))
    await ctx.notify_tools_changed()
    await ctx.notify_prompts_changed()
    return f"there is {name} now"


@server.tool()
async def wait(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"


@server.tool()
async def ask(ctx: Context) -> str:
    """Ask the user, by a request of our own as in the handshake era."""
    answer = await ctx.elicit("Who are you?", Answer)
    return f"asked: {answer.action}"


if __name__ == "__main__":
    server.run("stdio")
