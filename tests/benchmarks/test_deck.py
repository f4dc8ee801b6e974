"""What the way through an open deck adds to a call."""

import statistics
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests.benchmarks.test_servers import ATTEMPTS, CALLS, LEAN, LONG_ATTEMPTS
from tests.cli.running import run_process
from tests.conftest import World
from tests.fakes.gemini import FakeGemini
from tests.security.decks import deck
from tests.support.measures import Measure
from tests.support.node import node_server
from tests.unit.engine.mcp.support import eventually
from tui.cli.output import ExitCode
from tui.engine.serving.deck_socket import Hello, find_deck
from tui.engine.serving.lending import answering_others
from tui.engine.trust.folder_identity import identify
from tui.model.servers import ServerId, ServerStatus

MOST_TO_DIRECT: Final = 1.3
"""How much longer a call through the deck may take than one of gemdeck's own."""


async def test_a_call_through_an_open_deck_costs_little_more_than_gemdecks_own(
    world: World, monkeypatch: pytest.MonkeyPatch, measure: Measure
) -> None:
    settings = {
        "mcpServers": {"lean": {"command": sys.executable, "args": [LEAN]}},
        "gemdeck": {"alwaysAllow": [{"server": "lean", "tool": "add"}]},
    }
    work = Path(world.home) / "work"
    async with (
        FakeGemini() as fake,
        deck(fake, monkeypatch, settings=settings) as running,
        answering_others(running.engine, work),
    ):
        await eventually(lambda: running.status("lean") is ServerStatus.READY)
        link = await find_deck(world.state, identify(work), Hello("a client"))
        assert link is not None
        ratios = []
        for _ in range(ATTEMPTS):
            own, through = [], []
            for number in range(CALLS):
                began = time.perf_counter()
                await running.engine.call_tool(ServerId("lean"), "add", {"a": number})
                between = time.perf_counter()
                await link.request("tools/call", {"name": "add", "arguments": {"a": number}})
                own.append(between - began)
                through.append(time.perf_counter() - between)
            ratios.append(statistics.median(through) / statistics.median(own))
        link.close()
    ratio = statistics.median(ratios)
    measure(f"a call through an open deck: {ratio:.2f} times gemdeck's own ({MOST_TO_DIRECT})")
    assert ratio <= MOST_TO_DIRECT


async def test_a_command_is_done_sooner_with_a_server_of_the_open_deck(
    world: World, monkeypatch: pytest.MonkeyPatch, measure: Measure
) -> None:
    command, arguments = node_server("everything")
    settings = {"mcpServers": {"every": {"command": command, "args": arguments}}}
    work = Path(world.home) / "work"
    async with (
        FakeGemini() as fake,
        deck(fake, monkeypatch, settings=settings) as running,
        answering_others(running.engine, work),
    ):
        await eventually(lambda: running.status("every") is ServerStatus.READY)
        ratios = []
        for _ in range(LONG_ATTEMPTS):
            took = []
            for own in ([], ["--own"]):
                began = time.perf_counter()
                words = ("mcp", "call", "every", "echo", "message=a", *own)
                await run_process(*words, cwd=work, code=ExitCode.OK)
                took.append(time.perf_counter() - began)
            ratios.append(took[0] / took[1])
    ratio = statistics.median(ratios)
    measure(f"a command with a server of the open deck: {ratio:.2f} times one that starts it (< 1)")
    assert ratio < 1
