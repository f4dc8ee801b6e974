import asyncio
import math

import pytest

from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.support import eventually
from tui.engine.mcp.session import call_timeout as module
from tui.engine.mcp.session.call_timeout import ProgressReporter
from tui.model.chat import Progress


async def test_reports_are_thinned_out_and_the_latest_comes_through() -> None:
    seen: list[Progress] = []
    with ProgressReporter(seen.append) as report:
        for number in range(1_000):
            await report(float(number), 1_000.0, f"at {number}\x1b[2J")
        await eventually(lambda: len(seen) == 2)
    assert seen == [Progress(0.0, 1_000.0, "at 0"), Progress(999.0, 1_000.0, "at 999")]


async def test_what_is_no_progress_is_dropped() -> None:
    seen: list[Progress] = []
    with ProgressReporter(seen.append) as report:
        await report(math.nan, None, None)
        await report(-1.0, None, None)
        await report(1.0, math.inf, None)
    assert seen == [Progress(1.0, None, "")]


async def test_what_comes_after_the_call_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPORT_INTERVAL", 0.01)
    seen: list[Progress] = []
    with ProgressReporter(seen.append) as report:
        await report(1.0, None, None)
        await report(2.0, None, None)
    await report(3.0, None, None)
    later = asyncio.Event()  # a stray timer would fire before this one
    asyncio.get_running_loop().call_later(module.REPORT_INTERVAL * 2, later.set)
    await asyncio.wait_for(later.wait(), PATIENCE)
    assert [progress.progress for progress in seen] == [1.0]
