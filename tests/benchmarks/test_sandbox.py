"""What a sandbox adds to the start of a server and to a call."""

import statistics
import sys
import time
from typing import Final

import pytest

from tests.benchmarks.test_servers import ATTEMPTS, CALLS, PATIENCE, lean
from tests.support.definitions import altered, define_server
from tests.support.measures import Measure
from tests.unit.engine.mcp.support import FOLDER, call, ready, running
from tui.engine.definitions.definition import Sandbox

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a sandbox"),
    pytest.mark.usefixtures("sandboxes"),
]

START_BUDGET: Final = 1.15
"""How much longer a sandboxed server may take to be ready than the same one without; it imports
the SDK, as most do that are written in Python."""

START_LIMIT: Final = 1.3
"""The same, as it fails the test."""

CALL_BUDGET: Final = 1.15
"""How much longer a call of it may take."""

CALL_LIMIT: Final = 1.3
"""The same, as it fails the test."""

BOX: Final = Sandbox(read=(FOLDER.parents[1],))


async def seconds_to_start(box: Sandbox | None) -> float:
    """Give the seconds until a server that imports the SDK is ready."""
    args = (str(FOLDER / "sample.py"),)
    sample = define_server("sample", command=sys.executable, args=args, sandbox=box)
    began = time.perf_counter()
    async with running(sample) as (manager, _):
        await manager.wait_discovered(PATIENCE)
        return time.perf_counter() - began


@pytest.mark.timeout(120)
async def test_a_sandboxed_server_is_ready_nearly_as_soon(measure: Measure) -> None:
    await seconds_to_start(BOX)  # loads what speaks MCP, and looks for bubblewrap
    ratios = []
    for _ in range(ATTEMPTS):
        plain = await seconds_to_start(None)
        sandboxed = await seconds_to_start(BOX)
        ratios.append(sandboxed / plain)
        measure(f"a server ready after {plain:.2f} s, sandboxed after {sandboxed:.2f} s")
    ratio = statistics.median(ratios)
    measure(f"start of a sandboxed server: ratio {ratio:.2f} (budget {START_BUDGET})")
    assert ratio <= START_LIMIT


async def test_a_call_of_a_sandboxed_server_takes_no_longer(measure: Measure) -> None:
    boxed = altered(lean(), sandbox=BOX)
    async with ready(lean()) as (bare, _), ready(boxed) as (sandboxed, _):
        ratios = []
        for _ in range(ATTEMPTS):
            times: tuple[list[float], list[float]] = ([], [])
            for number in range(CALLS):
                for manager, taken in zip((bare, sandboxed), times, strict=True):
                    began = time.perf_counter()
                    await call(manager, "add", {"a": number})
                    taken.append(time.perf_counter() - began)
            plain, ours = map(statistics.median, times)
            ratios.append(ours / plain)
            measure(f"a call: {plain * 1000:.2f} ms, sandboxed {ours * 1000:.2f} ms")
    ratio = statistics.median(ratios)
    measure(f"a call of a sandboxed server: ratio {ratio:.2f} (budget {CALL_BUDGET})")
    assert ratio <= CALL_LIMIT


async def test_nothing_is_added_where_no_sandbox_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.engine.mcp.transports.stdio.sandbox.Sandboxes.sandboxed", None)
    async with ready(lean()) as (manager, _):
        await call(manager, "add", {"a": 1})
