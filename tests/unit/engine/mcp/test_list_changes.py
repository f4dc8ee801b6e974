"""Changes that servers announce, in both eras, one at a time and by the thousand."""

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.measures import Measure
from tests.support.stalls import LoopWatch
from tests.unit.engine.mcp.support import call, eventually, find_tool, ready, running, script
from tui.engine.mcp.catalog.offer import RawOffer
from tui.engine.mcp.session import listing
from tui.engine.mcp.session.listing import ListKind, StaleLists
from tui.model.servers import ServerStatus as S
from tui.model.wire.frames import FrameKind


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Shorten the waits."""
    monkeypatch.setattr(listing, "DEBOUNCE", 0.05)
    monkeypatch.setattr(listing, "INTERVAL", 0.2)
    return iter(())


class World:
    """A clock for `StaleLists` that goes on while something sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.changes = StaleLists(lambda: self.now, self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


async def test_announcements_share_a_refresh_of_what_they_name() -> None:
    world = World()
    for _ in range(1_000):
        world.changes.add([ListKind.TOOLS])
    world.changes.add([ListKind.PROMPTS])
    assert set(await world.changes.next()) == {ListKind.TOOLS, ListKind.PROMPTS}
    assert world.now == pytest.approx(listing.DEBOUNCE)
    waiting = asyncio.create_task(world.changes.next())
    await asyncio.wait({waiting}, timeout=0.01)
    assert not waiting.done()
    waiting.cancel()


async def test_a_storm_without_end_is_rationed() -> None:
    world = World()
    moments = []
    while world.now < 60:
        world.changes.add([ListKind.TOOLS])
        await world.changes.next()
        moments.append(world.now)
    assert moments[0] == pytest.approx(listing.DEBOUNCE)
    pauses = [after - before for before, after in pairwise(moments)]
    assert pauses == pytest.approx([listing.INTERVAL] * len(pauses))
    world.now += 60
    world.changes.add([ListKind.TOOLS])
    await world.changes.next()
    assert world.now - moments[-1] == pytest.approx(60 + listing.DEBOUNCE)


async def test_E42_long_lists_are_read_again_the_later_the_longer_they_are() -> None:
    for items, pause in ((0, listing.INTERVAL), (100, 2.8), (10_000, 32.5)):
        world, moments = World(), list[float]()
        for _ in range(3):
            world.changes.add([ListKind.TOOLS])
            await world.changes.next()
            moments.append(world.now)
            world.changes.rest(RawOffer(tools=[{}] * items))
        assert [late - soon for soon, late in pairwise(moments)] == [pytest.approx(pause)] * 2


@pytest.mark.usefixtures("quick")
async def test_a_changed_list_is_listed_anew_and_named_uniquely(tmp_path: Path) -> None:
    record = tmp_path / "record"
    stormy = script("raw", "stormy", env={"RAW_RECORD": str(record)})
    async with ready(stormy, script("raw", "stormy", server="other")) as (manager, watcher):
        await call(manager, "storm")
        await eventually(lambda: "after_0" in watcher.tools("raw"))
        await eventually(lambda: watcher.catalog("raw").prompts)
        await call(manager, "other__storm")
        await eventually(lambda: "other__after_0" in watcher.tools("other"))
        assert find_tool(manager, "after_0") is not None
        ids = [tool.id for tool in manager.offered_tools()]
        assert len(ids) == len(set(ids)) == 6
        assert record.read_text().count('"initialize"') == 1


@pytest.mark.usefixtures("quick")
async def test_a_list_that_breaks_leaves_the_old_one(tmp_path: Path) -> None:
    async with ready(script("raw", "stormy", cwd=tmp_path)) as (manager, watcher):
        await call(manager, "break_lists")
        words = "its tools changed, but could not list its tools: the list is broken"
        await eventually(lambda: any(line.startswith(words) for line in watcher.log("raw")))
        assert watcher.last("raw").status is S.READY
        assert find_tool(manager, "storm") is not None


@pytest.mark.usefixtures("quick")
async def test_changes_arrive_over_a_stateless_connection() -> None:
    async with running(script("asking")) as (manager, watcher):
        ready = await watcher.info("asking", S.READY)
        assert ready.is_stateless
        await call(manager, "grow", {"name": "first"})
        await call(manager, "grow", {"name": "second"})
        await eventually(lambda: {"first", "second"} <= set(watcher.tools("asking")))
        await eventually(lambda: len(watcher.catalog("asking").prompts) == 3)
        assert (await call(manager, "first")).display == "first"
        await eventually(lambda: "list reloaded" in "".join(watcher.log("asking")))
        told = [line for line in watcher.log("asking") if "list reloaded" in line]
        assert not [line for line in told if "resources" in line], "what did not change"
        asked = [frame.method for frame in manager.wire.frames() if frame.kind is FrameKind.REQUEST]
        assert asked.count("resources/list") == 1
        assert watcher.statuses("asking") == [S.STARTING, S.READY]


async def test_ten_thousand_tools_hold_nothing_up(measure: Measure, loop_watch: LoopWatch) -> None:
    async with running(script("raw", "huge"), script("raw", server="good")) as (manager, watcher):
        await watcher.until("good", S.READY)
        loop_watch.clear()
        await watcher.until("raw", S.READY)
        tools = watcher.catalog("raw").tools
        assert len(tools) == 10_000
        assert len(manager.held_tools()) == 64
        assert (await call(manager, "echo", {"text": "hi"})).display == "hi"
        longest = max((stall.cpu_seconds for stall in loop_watch.stalls), default=0.0)
        measure(f"10,000 tools listed: the loop held for {longest * 1000:.0f} ms, if over 100")
        loop_watch.assert_smooth(0.3)  # names are chosen in one step, so that none clash
