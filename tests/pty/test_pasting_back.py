"""Signing in without a browser: the address goes out, and the one where it ended comes in."""

import asyncio
import base64
import re
from typing import Final

import pytest

from tests.conftest import World
from tests.pty.driving import write_settings
from tests.servers.authority import GuardedServer, walk_through
from tests.servers.web import free_port
from tests.support import warm
from tests.support.leaks import FIXTURE_SECRET
from tests.support.terminal import Terminal
from tests.unit.engine.sign_in.support import guarded

COPIED: Final = re.compile(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)")
"""What a program puts into the clipboard of the terminal."""


def start(world: World, server: GuardedServer) -> Terminal:
    """Start gemdeck with one server that wants a sign-in."""
    back = f"http://localhost:{free_port()}/oauth/callback"
    entry = {"url": server.url, "type": "http", "oauth": {"redirectUri": back}}
    write_settings({"mcpServers": {"events": entry}})
    workspace = world.home / "shop"
    workspace.mkdir(exist_ok=True)
    return Terminal(warm.deck("--demo"), columns=120, rows=40, cwd=workspace)


def ask_for_the_address(terminal: Terminal) -> str:
    """Begin to sign in, and copy the address."""
    terminal.wait_for("needs sign-in")
    terminal.type("/mcp auth events")
    terminal.press("enter")
    terminal.wait_for("Sign in to this server?")
    terminal.press("end")
    terminal.wait_for("^S opens the browser")
    terminal.send(b"\x19")
    terminal.wait_for("Copied the address")
    terminal.send(b"\x13")
    terminal.wait_for("No browser could be opened")
    copied = COPIED.findall(terminal.raw)
    return base64.b64decode(copied[-1]).decode()


def paste(terminal: Terminal, text: str) -> str:
    terminal.send(f"\x1b[200~{text}\x1b[201~".encode())
    terminal.wait_for("code=")
    terminal.press("enter")
    terminal.wait_for("2 ready")
    return terminal.screen


@pytest.mark.writes_secrets("sign-ins.json")
async def test_the_address_goes_out_and_another_one_comes_in(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(world.home))  # where no browser is
    async with guarded() as server:
        terminal = start(world, server)
        try:
            url = await asyncio.to_thread(ask_for_the_address, terminal)
            end = (await walk_through(url, comes_back=False)).headers["location"]
            await asyncio.to_thread(paste, terminal, end)
            terminal.press("ctrl+q")
            assert await asyncio.to_thread(terminal.wait_for_exit) == 0
        finally:
            await asyncio.to_thread(terminal.close)
    assert FIXTURE_SECRET.encode() + b"token" not in terminal.raw
