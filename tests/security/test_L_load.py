"""Many clients at an open deck, greedy ones, and those that read nothing."""

import asyncio
import json
import os
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast
from unittest.mock import AsyncMock

import pytest

from tests.cli.test_serve import client
from tests.cli.test_serve import text as text_of
from tests.conftest import World
from tests.security.decks import READY, Turncoat, shop
from tests.security.test_L_clients import asked, call, link, open_deck, work
from tests.support.waiting import PATIENCE, at_once, eventually, whole_lines
from tests.unit.engine.mcp.support import FOLDER
from tui.engine.desk import MAX_OF_CLIENT
from tui.engine.serving import deck_socket
from tui.engine.serving.deck_socket import MAX_OPEN, DeckLink, Hello, answering, find_deck
from tui.engine.serving.shared_servers import OnProgress, RequestRefusedError, SharedServers
from tui.engine.trust.folder_identity import identify
from tui.model.chat import Progress
from tui.model.consent import Choice

__all__ = ["shop", "work"]

LINKS: Final = 9
CLIENTS: Final = 1
CALLS: Final = 100
"""Of each of the ten."""

LONG: Final = 150
"""Seconds that a thousand calls may take on a busy machine."""

REST: Final = "Denied. The user denied all further calls of this turn. Answer with what you have."

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def raw_servers(record: Path, *names: str) -> dict[str, Any]:
    """Make settings with servers of `raw.py`; the last one records what it gets."""
    servers: dict[str, dict[str, Any]]
    servers = {one: {"command": sys.executable, "args": [str(FOLDER / "raw.py")]} for one in names}
    servers[names[-1]]["env"] = {"RAW_RECORD": str(record)}
    allowed = [{"server": one} for one in names]
    return {"mcpServers": servers, "gemdeck": {"alwaysAllow": allowed}}


def received(record: Path) -> Counter[str]:
    """Count the messages that a server got, by their methods."""
    return Counter(json.loads(line).get("method") for line in whole_lines(record))


@asynccontextmanager
async def raw_link(world: World, **said: object) -> AsyncIterator[Streams]:
    """Connect to the one open deck without a client, and be let in."""
    [place] = (world.state / "decks").iterdir()
    folder = os.open(place.parent, os.O_RDONLY)
    ends = await asyncio.open_unix_connection(f"/proc/self/fd/{folder}/{place.name}")
    os.close(folder)
    ends[1].write(json.dumps({"name": "raw", **said}).encode() + b"\n")
    assert await ends[0].readline() == b'{"welcome": true}\n'
    try:
        yield ends
    finally:
        ends[1].close()


@asynccontextmanager
async def open_socket(
    world: World, work: Path, answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]
) -> AsyncIterator[Path]:
    """Listen where a deck of the folder would, before all others; give the path."""
    place = identify(work)
    assert place is not None
    path = world.state / "decks" / f"{deck_socket._prefix(place)}0.sock"
    path.parent.mkdir(parents=True, exist_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    with deck_socket._address(path) as address:
        listening.bind(address)
    async with await asyncio.start_server(answer, sock=listening):
        yield path
    path.unlink()


async def named(deck: DeckLink, name: str) -> list[str]:
    """List the tools that have this name at their servers, in the order of these."""
    return [
        one["name"]
        for one in (await deck.request("tools/list", {}))["tools"]
        if one["name"] == name or one["name"].endswith(f"_{name}")
    ]


@pytest.mark.timeout(LONG)
async def test_L18_ten_clients_get_their_own_answers_beside_a_slow_server(
    shop: Turncoat, world: World, work: Path, tmp_path: Path
) -> None:
    record, done = tmp_path / "slow", Counter[str]()
    least = CALLS

    def count(caller: str) -> None:
        """Note how far the slowest link was once the first one was through."""
        nonlocal least
        done[caller] += 1
        if done[caller] == CALLS and least == CALLS:
            least = min(done[f"link {number}"] for number in range(LINKS))

    async with AsyncExitStack() as stack:
        settings = raw_servers(record, "quick", "other", "slow")
        deck = open_deck(shop, work, settings=settings, ready=False)
        running = await stack.enter_async_context(deck)
        await eventually(lambda: {running.status(n) for n in settings["mcpServers"]} == {READY})
        links = [await stack.enter_async_context(link(world, work)) for _ in range(LINKS)]
        opening = [client(cwd=work, patience=LONG) for _ in range(CLIENTS)]
        clients = [await stack.enter_async_context(one) for one in opening]
        waiting = await stack.enter_async_context(link(world, work))
        [hang] = [one for one in await named(waiting, "hang") if "slow" in one]
        quick = [one for one in await named(waiting, "echo") if "slow" not in one]
        slow = [asyncio.create_task(call(waiting, name=hang)) for _ in range(3)]
        await eventually(lambda: received(record)["tools/call"] == 3)

        async def by_link(caller: str, deck: DeckLink, number: int) -> None:
            words = f"{caller}: {number}"
            assert await call(deck, name=quick[number % 2], arguments={"text": words}) == words
            count(caller)

        async def by_client(caller: str, connected: Any, number: int) -> None:  # noqa: ANN401
            words = f"{caller}: {number}"
            result = await connected.call_tool(quick[number % 2], {"text": words})
            assert text_of(result) == words
            count(caller)

        numbers = range(CALLS)
        await asyncio.gather(
            *(by_link(f"link {n}", one, k) for n, one in enumerate(links) for k in numbers),
            *(by_client(f"client {n}", one, k) for n, one in enumerate(clients) for k in numbers),
        )
        assert set(done.values()) == {CALLS}
        assert least > CALLS // 2
        assert not any(one.done() for one in slow)
        for one in slow:
            one.cancel()
        await asyncio.wait(slow)
        await eventually(lambda: received(record)["notifications/cancelled"] == 3)


async def test_L05_who_floods_loses_its_connection_and_nobody_else(
    shop: Turncoat, world: World, work: Path, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    settings = raw_servers(record, "slow")
    hang = {"method": "tools/call", "params": {"name": "hang"}}
    async with (
        open_deck(shop, work, settings=settings, ready=False) as running,
        link(world, work) as quiet,
    ):
        await eventually(lambda: running.status("slow") is READY)
        async with raw_link(world) as (reader, writer):
            lines = (json.dumps({"id": n, **hang}) + "\n" for n in range(MAX_OPEN + 1))
            writer.write("".join(lines).encode())
            await eventually(lambda: received(record)["tools/call"] == MAX_OPEN + 1)
            writer.write(b"{}\n")
            assert [line async for line in reader][MAX_OPEN + 1 :] == []
        await eventually(lambda: received(record)["notifications/cancelled"] == MAX_OPEN + 1)
        assert await call(quiet, name="echo") == "a"


async def test_L05_only_so_many_connections_are_let_in(
    shop: Turncoat, world: World, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deck_socket, "MAX_CALLERS", 1)
    async with open_deck(shop, work) as running:
        async with link(world, work) as first:
            assert await find_deck(world.state, identify(work), Hello("second")) is None
            await asked(running, first, Choice.ONCE)
        while (second := await find_deck(world.state, identify(work), Hello("second"))) is None:
            pass  # the first one is not yet gone there
        await asked(running, second, Choice.ONCE)
        second.close()


async def test_L19_a_client_cannot_fill_the_deck_with_questions(
    shop: Turncoat, world: World, work: Path
) -> None:
    async with (
        open_deck(shop, work) as running,
        link(world, work, name="greedy") as greedy,
        link(world, work, name="greedy") as again,
        link(world, work, name="other") as other,
    ):
        calls = [asyncio.create_task(call(greedy)) for _ in range(MAX_OF_CLIENT)]
        await eventually(lambda: len(running.store.state.pending) == MAX_OF_CLIENT)
        assert "Too many calls" in await call(again)
        calls += [asyncio.create_task(call(other))]
        await eventually(lambda: len(running.store.state.pending) == MAX_OF_CLIENT + 1)
        await running.decide(Choice.DENY_REST_OF_TURN)
        await eventually(lambda: len(running.store.state.pending) == 1)
        assert {await one for one in calls[:-1]} == {REST}
        assert (await running.decide(Choice.ONCE)).caller.startswith("other")
        await calls[-1]
        await asked(running, again, Choice.ONCE)


class Talkative:
    """Servers that report more than anybody reads."""

    REPORTS: Final = 50_000

    def __init__(self) -> None:
        self.has_ended = False

    async def request(
        self, method: str, params: Mapping[str, Any], on_progress: OnProgress
    ) -> Mapping[str, Any]:
        """Report progress, all at once."""
        for number in range(self.REPORTS):
            on_progress(Progress(number, None, "x" * 50))
        return {"said": params["text"], "method": method}

    async def changes(self) -> AsyncIterator[None]:
        """Change for ever once there is somebody."""
        try:
            while True:
                await asyncio.sleep(0)
                yield
        finally:
            self.has_ended = True


async def test_L20_what_nobody_reads_does_not_pile_up(
    world: World, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress is left out; who reads nothing of all that changes loses its connection."""
    served = Talkative()
    shared = cast("SharedServers", served)
    world.state.mkdir()
    async with (
        answering(world.state, identify(work), AsyncMock(return_value=shared)),
        raw_link(world) as (reader, writer),
    ):
        writer.write(b'{"id": 1, "method": "m", "params": {"text": "a"}}\n')
        reported = 0
        while b'"result"' not in (line := await reader.readline()):
            reported += b'"progress"' in line
        assert 0 < reported < Talkative.REPORTS
        assert not served.has_ended
        monkeypatch.setattr(deck_socket, "STUCK_SECONDS", 0.1)
        await eventually(lambda: served.has_ended)


async def test_L21_a_deck_that_takes_nothing_holds_nobody_up(
    world: World, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is suspended, say: neither a request, nor a huge one, nor a cancellation waits for it."""
    monkeypatch.setattr(deck_socket, "TAKEN_SECONDS", 0.1)
    held = asyncio.Event()

    async def suspended(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b'{"welcome": true}\n')
        await held.wait()
        writer.close()

    async with open_socket(world, work, suspended), link(world, work) as deck:
        with pytest.raises(RequestRefusedError, match="is it suspended"):
            await deck.request("tools/list", {})
        large = asyncio.create_task(deck.request("m", {"text": "x" * 2_000_000}))
        await at_once(lambda: deck._waiting)
        large.cancel()
        await asyncio.wait([large])
        monkeypatch.setattr(deck_socket, "TAKEN_SECONDS", PATIENCE)
        monkeypatch.setattr(deck_socket, "STUCK_SECONDS", 0.1)
        with pytest.raises(RequestRefusedError, match="ended before"):
            await deck.request("m", {"text": "x" * 2_000_000})
        with pytest.raises(RequestRefusedError, match="has ended"):
            await deck.request("tools/list", {})
        held.set()
