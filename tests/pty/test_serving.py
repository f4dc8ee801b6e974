"""An open deck that other clients use, and how it, they and their servers end."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.cli.running import finish, opened
from tests.conftest import World
from tests.pty.driving import assert_gone
from tests.security.test_L_clients import link, work
from tests.security.test_L_load import raw_servers, received
from tests.support import warm
from tests.support.terminal import Terminal
from tests.support.waiting import eventually
from tui.engine.serving import deck_socket
from tui.engine.serving.deck_socket import DeckLink, Hello, find_deck
from tui.engine.serving.shared_servers import RequestRefusedError
from tui.engine.trust.folder_identity import identify

__all__ = ["work"]

HANG: Final = {"name": "hang", "arguments": {"text": "a"}}
HELLO: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "a client", "version": "1"},
}
OPENING: Final = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": HANG},
)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Write settings with a server that hangs; give the file of what it gets."""
    path, folder = tmp_path / "record", Path.home() / ".gemini"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(raw_servers(path, "slow")), "utf-8")
    return path


@pytest.fixture
def deck(record: Path, work: Path) -> Iterator[Terminal]:  # noqa: ARG001 - it wrote the settings
    """Open gemdeck; wait until it answers others."""
    with Terminal(warm.deck(), cwd=work) as terminal:
        terminal.wait_for("2 ready")
        yield terminal


async def in_flight(deck: DeckLink, record: Path) -> "asyncio.Task[object]":
    """Let a call hang at the server."""
    calling = asyncio.create_task(deck.request("tools/call", HANG))
    await eventually(lambda: received(record)["tools/call"] == 1)
    return calling


async def has_ended(calling: "asyncio.Task[object]") -> None:
    with pytest.raises(RequestRefusedError, match="ended before it answered"):
        await calling


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_L22_a_deck_ends_during_a_call(
    number: signal.Signals, deck: Terminal, record: Path, world: World, work: Path
) -> None:
    servers = deck.descendants()
    async with link(world, work) as connected:
        calling = await in_flight(connected, record)
        deck.send_signal(number)
        await has_ended(calling)
        with pytest.raises(RequestRefusedError, match="has ended"):
            await connected.request("tools/list", {})
    await asyncio.to_thread(deck.wait_for_exit)
    assert_gone(servers)
    left = [*(world.state / "decks").iterdir()]
    assert len(left) == (number is signal.SIGKILL)
    assert await find_deck(world.state, identify(work), Hello("x")) is None
    assert [*(world.state / "decks").iterdir()] == []


async def test_L21_a_deck_is_suspended(
    deck: Terminal, record: Path, world: World, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes goes on without it, who is there is told; and both go on once it does."""
    monkeypatch.setattr(deck_socket, "HELLO_SECONDS", 0.5)
    monkeypatch.setattr(deck_socket, "TAKEN_SECONDS", 0.5)
    async with link(world, work) as connected:
        assert (await connected.request("tools/list", {}))["tools"]
        deck.send_signal(signal.SIGSTOP)
        assert await find_deck(world.state, identify(work), Hello("x")) is None
        with pytest.raises(RequestRefusedError, match="is it suspended"):
            await connected.request("tools/call", HANG)
        monkeypatch.undo()
        deck.send_signal(signal.SIGCONT)
        assert (await connected.request("tools/list", {}))["tools"]
        async with link(world, work) as other:
            assert (await other.request("tools/list", {}))["tools"]
    assert not received(record)["tools/call"], "it was taken back while nobody had it"


@pytest.mark.parametrize(
    ("place", "endings"),
    [("at a deck", (signal.SIGKILL, None)), ("alone", (signal.SIGKILL, signal.SIGTERM))],
    ids=["at a deck", "alone"],
)
async def test_L22_gemdeck_mcp_serve_ends_during_a_call(
    place: str,
    endings: tuple[signal.Signals | None, ...],
    record: Path,
    work: Path,
    request: pytest.FixtureRequest,
) -> None:
    """By a signal, or as its client does; the call is taken back, and nothing runs on."""
    if place == "at a deck":
        request.getfixturevalue("deck")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    for count, ending in enumerate(endings, 1):
        async with opened("mcp", "serve", cwd=work, **pipes) as process:
            assert process.stdin is not None
            await process.stdin.send(b"".join(json.dumps(one).encode() + b"\n" for one in OPENING))
            await eventually(lambda: received(record)["tools/call"] == count)  # noqa: B023
            started = psutil.Process(process.pid).children(recursive=True)
            assert bool(started) is (place == "alone")
            if ending is None:
                await process.stdin.aclose()
            else:
                process.send_signal(ending)
            await finish(process)
        assert_gone(started)
        if place == "at a deck":
            await eventually(lambda: received(record)["notifications/cancelled"] == count)  # noqa: B023
