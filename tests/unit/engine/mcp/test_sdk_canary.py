"""What we touch below the public surface of the MCP SDK is still there.

When one of these fails after an update of mcp, mend what depends on the name in the module that
is named, and raise the bound of mcp in pyproject.toml.
"""

import inspect
import re
from operator import attrgetter
from pathlib import Path
from typing import Final

import httpx2
import pytest
from mcp import Client
from mcp.client.session import ClientSession
from mcp.server.mcpserver import MCPServer

from tui.engine.mcp.session import sdk_patches
from tui.engine.mcp.transports.http import pacing

SIGNATURES: Final[dict[str, tuple[str, ...]]] = {
    "_dispatcher": (),
    "_dispatcher.send_raw_request": ("method", "params", "opts"),
    "_stamp": ("data", "opts"),
    "_log_level": (),
    "_absorb_tool_listing": ("result", "complete"),
    "_x_mcp_header_maps": (),
    "validate_tool_result": ("name", "result"),
    "adopt": ("result",),
    "discover_result": (),
    "_build_capabilities": ("version",),
}
"""Members of a connected session, each with the parameters that we give."""


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_session_still_has_what_we_touch(mode: str) -> None:
    async with Client(MCPServer("canary"), mode=mode) as client:
        for path, wanted in SIGNATURES.items():
            try:
                found = attrgetter(path)(client.session)
            except AttributeError:
                pytest.fail(f"mcp no longer has ClientSession.{path}, which sdk_patches uses.")
            has = tuple(inspect.signature(found).parameters) if wanted else ()
            assert set(wanted) <= set(has), f"ClientSession.{path} takes {has}, not {wanted}."


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("send_request", "_dispatcher.send_raw_request"),
        ("send_request", "_stamp"),
        ("call_tool", "validate_tool_result"),
        ("adopt", "_log_level"),
        ("initialize", "_build_capabilities"),
        ("list_tools", "_absorb_tool_listing"),
        ("_resolve_param_headers", "_x_mcp_header_maps"),
    ],
)
def test_the_sdk_itself_still_uses_it(method: str, name: str) -> None:
    source = inspect.getsource(getattr(ClientSession, method))
    assert f"self.{name}" in source, f"{method} no longer uses {name}: sdk_patches has no effect."


def test_nothing_else_private_is_touched() -> None:
    folder = Path(sdk_patches.__file__).parent.parent
    touched = {
        name
        for file in folder.rglob("*.py")
        if file.name != "pacing.py"  # its names have the canary below
        for name in re.findall(r"\b(?:session|dispatcher|client)\.(_[a-z]\w*)", file.read_text())
    }
    assert touched <= set(SIGNATURES), "Name every private member of the SDK in SIGNATURES."


def test_every_way_of_an_http_client_is_paced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    client = pacing.pace(httpx2.AsyncClient())
    ways = [client._transport, *filter(None, client._mounts.values())]
    assert len(ways) > 1, "the proxy of the environment"
    for way in ways:
        assert isinstance(way, httpx2.AsyncHTTPTransport)
        assert isinstance(way._pool._network_backend, pacing._PacedBackend)
