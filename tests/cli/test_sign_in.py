"""Signing in by commands and in the deck, against a real authorization server."""

import asyncio
import base64
import json
import os
import re
import subprocess
from pathlib import Path

import httpx2
import pytest
from anyio.abc import Process

from tests.cli.running import finish, opened, run, write_settings
from tests.cli.test_shadowing import OPENER, add_program
from tests.servers.authority import GuardedServer, walk_through
from tests.servers.web import free_port
from tests.support import warm
from tests.support.leaks import FIXTURE_SECRET
from tests.support.terminal import Terminal
from tests.unit.engine.sign_in.support import guarded
from tui.cli.output import ExitCode
from tui.engine.sign_in.token_store import GEMINI_TOKENS

pytestmark = pytest.mark.writes_secrets("mcp-oauth-tokens.json", "sign-ins.json")
ADDRESS = re.compile(r"Address: (\S+)")
COPIED = re.compile(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)")
"""What a program puts into the clipboard of the terminal."""


def configure(url: str) -> None:
    back = f"http://localhost:{free_port()}/oauth/callback"
    write_settings({"mcpServers": {"web": {"httpUrl": url, "oauth": {"redirectUri": back}}}})


async def read_address(process: Process) -> str:
    """Read what the command says until it shows the address to open."""
    assert process.stderr is not None
    said = ""
    while (found := ADDRESS.search(said)) is None or "\n" not in said[found.end() :]:
        said += (await process.stderr.receive()).decode()
    return found[1]


@pytest.mark.parametrize("comes_back", [True, False])
async def test_signing_in_and_out(
    comes_back: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal the browser is not opened unasked."""
    add_program(tmp_path / "bin", OPENER, f"touch {tmp_path}/browser")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    async with guarded() as server:
        configure(server.url)
        before = await run("mcp", "show", "web", "--json")
        assert before.json["status"] == "needs sign-in"
        assert before.json["advice"] == "To sign in: gemdeck mcp auth web"

        streams = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": Path.home()}
        async with opened("mcp", "auth", "web", **streams) as process:
            url = await read_address(process)
            answer = await walk_through(url, comes_back=comes_back)
            if not comes_back:
                await paste(process, answer)
            assert await finish(process) == ExitCode.OK

        after = await run("mcp", "show", "web", "--json")
        assert after.json["status"] == "ready"
        out = await run("mcp", "logout", "web")
        assert (out.code, "revoked" in out.stdout) == (ExitCode.OK, True)
        assert server.authority.revoked
        again = await run("mcp", "show", "web", "--json")
        assert again.json["status"] == "needs sign-in"
    assert not (tmp_path / "browser").exists()


async def test_the_scope_that_a_call_lacks_is_named_and_asked_for() -> None:
    async with guarded(call_scope="write") as server:
        configure(server.url)
        assert await sign_in(server) == "read"
        refused = await run("mcp", "call", "web", "echo", "text=hi", "--json")
        words = "refuses this without the scope write (sign in for it with: gemdeck mcp auth web)"
        told = f"The server {words}; the request had no effect."
        assert (refused.code, refused.json["error"]["message"]) == (ExitCode.ERROR, told)
        assert await sign_in(server) == "read write"
        called = await run("mcp", "call", "web", "echo", "text=hi")
        assert (called.code, called.stdout) == (ExitCode.OK, "hi\n")
        assert await sign_in(server) == "", "nothing is lacking any longer"


async def test_the_scope_that_a_call_lacks_is_asked_for_at_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # where no browser is
    async with guarded(call_scope="write") as server:
        configure(server.url)
        await sign_in(server)
        call = [warm.python(), "-m", "tui", "mcp", "call", "web", "echo", "text=hi"]
        with Terminal(call, columns=400, rows=40, cwd=tmp_path) as terminal:
            await asyncio.to_thread(terminal.wait_for, "Requested scopes: read, write.")
            await asyncio.to_thread(terminal.wait_for, "go on? [y/N]")
            terminal.send(b"y\n")
            await asyncio.to_thread(terminal.wait_for, "paste it here")
            found = ADDRESS.search(terminal.raw.decode())
            assert found is not None
            await walk_through(found[1])
            assert await asyncio.to_thread(terminal.wait_for_exit) == 0
            assert terminal.raw.decode().endswith("hi\r\n")


async def sign_in(server: GuardedServer) -> str:
    """Sign in by the command, and give the scopes that it asks for."""
    streams = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": Path.home()}
    async with opened("mcp", "auth", "web", **streams) as process:
        await walk_through(await read_address(process))
        assert await finish(process) == ExitCode.OK
    return server.authority.asked[-1].get("scope", "")


async def paste(process: Process, answer: httpx2.Response) -> None:
    assert process.stdin is not None
    await process.stdin.send(answer.headers["location"].encode() + b"\n")


def copy_the_address(terminal: Terminal) -> str:
    """Begin to sign in where no browser is, and copy the address."""
    terminal.wait_for("needs sign-in")
    terminal.type("/mcp auth web")
    terminal.press("enter")
    terminal.wait_for("Sign in to this server?")
    terminal.press("end")
    terminal.wait_for("^S open browser")
    terminal.send(b"\x19")
    terminal.wait_for("Sent to the terminal")
    terminal.send(b"\x13")
    terminal.wait_for("No browser was opened")
    return base64.b64decode(COPIED.findall(terminal.raw)[-1]).decode()


def paste_the_end(terminal: Terminal, url: str) -> None:
    terminal.send(f"\x1b[200~{url}\x1b[201~".encode())
    terminal.wait_for("code=")
    terminal.press("enter")
    terminal.wait_for("2 ready")
    terminal.press("ctrl+q")
    assert terminal.wait_for_exit() == 0
    assert FIXTURE_SECRET.encode() + b"token" not in terminal.raw


async def test_the_deck_gives_the_address_out_and_takes_another_one_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # where no browser is
    async with guarded() as server:
        configure(server.url)
        with Terminal(warm.deck("--demo"), columns=120, rows=40, cwd=tmp_path) as terminal:
            url = await asyncio.to_thread(copy_the_address, terminal)
            end = (await walk_through(url, comes_back=False)).headers["location"]
            await asyncio.to_thread(paste_the_end, terminal, end)


async def test_gemini_clis_token_is_taken_over() -> None:
    async with guarded() as server:
        configure(server.url)
        server.authority.refreshers["theirs"] = "read"
        none = await run("mcp", "auth", "web", "--gemini-cli", code=ExitCode.ERROR)
        assert "has no sign-in from gemini-cli" in none.stderr
        tokens = Path.home() / GEMINI_TOKENS
        tokens.parent.mkdir(exist_ok=True)
        token = {"accessToken": "old", "refreshToken": "theirs", "tokenType": "Bearer"}
        about = {"clientId": "gemini", "tokenUrl": f"{server.authority.issuer}/token"}
        kept = {"token": {**token, "expiresAt": 1}, **about, "mcpServerUrl": server.url}
        tokens.write_text(json.dumps([kept]))
        taken = await run("mcp", "auth", "web", "--gemini-cli")
        assert (taken.code, "gemini-cli's token" in taken.stdout) == (ExitCode.OK, True)
        assert (await run("mcp", "show", "web", "--json")).json["status"] == "ready"
        assert [one["client_id"] for one in server.authority.refreshes()] == ["gemini"]


async def test_a_server_without_a_sign_in_says_so() -> None:
    write_settings({"mcpServers": {"local": {"command": "gemdeck-unknown-program"}}})
    result = await run("mcp", "auth", "local", "--json", code=ExitCode.ERROR)
    assert "needs no sign-in" in result.json["error"]["message"]
