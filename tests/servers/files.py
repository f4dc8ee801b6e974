"""Reads and writes text files of the folder it runs in, byte for byte, over stdio or HTTP."""

import sys
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("files")


@server.tool()
def read_file(name: str) -> str:
    """Read a file."""
    return Path(name).read_bytes().decode("utf-8")


@server.tool()
def write_file(name: str, content: str) -> str:
    """Write a file."""
    Path(name).write_bytes(content.encode("utf-8"))
    return "written"


@server.resource("text://{name}", mime_type="text/plain")
def text(name: str) -> str:
    """Give a file as a resource."""
    return Path(name).read_bytes().decode("utf-8")


match sys.argv[1:]:
    case ["http", port]:
        server.run("streamable-http", port=int(port))
    case _:
        server.run("stdio")
