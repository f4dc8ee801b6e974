"""Backoff under a clock and a chance that the test holds, and the table of statuses."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

import pytest

from tests.support.rows import row
from tests.unit.engine.mcp.support import eventually
from tui.engine.mcp import backoff as limits
from tui.engine.mcp.backoff import AT_ONCE, LISTENING, Backoff, RetryPolicy, StartQueue
from tui.model.servers import TRANSITIONS, ServerStatus, advance


@dataclass
class World:
    """A clock to be set, and a chance that stands still."""

    policy: RetryPolicy = field(default_factory=RetryPolicy)
    now: float = 1_000.0
    chance: float = 0.5

    def __post_init__(self) -> None:
        self.backoff = Backoff(self.policy, lambda: self.now, lambda: self.chance)

    def fail(self, *, take: float = 0.0) -> float:
        """Let an attempt fail after some time; give the wait, and wait it out."""
        self.now += take
        wait = self.backoff.failed() - self.now
        self.now += wait
        return round(wait, 6)


def test_the_first_retry_is_quick_and_each_further_wait_doubles_up_to_a_minute() -> None:
    world = World()
    waits = [world.fail(take=30) for _ in range(10)]
    assert waits == [0.25, 1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert world.backoff.seconds_until(world.now + 2.5) == 2.5
    assert world.backoff.seconds_until(3.0) == 0.0, "a moment that has passed"


def test_streams_that_a_proxy_ends_are_opened_again_after_a_second_each_time() -> None:
    world = World(LISTENING)
    waits = []
    for _ in range(10):
        world.backoff.succeeded()
        waits.append(world.fail(take=30))
    assert waits == [1] * 10


def test_waits_vary_by_a_fifth_and_never_exceed_the_longest() -> None:
    for chance, factor in [(0.0, 0.8), (0.999999, 1.2)]:
        with row(chance):
            world = World(chance=chance)
            world.fail()
            assert world.fail() == pytest.approx(factor, abs=1e-5)
            for _ in range(10):
                assert world.fail() <= 60


def test_half_a_minute_of_being_ready_makes_failures_forgotten_and_a_short_time_does_not() -> None:
    for ready in (30.1, 5):
        world = World()
        for _ in range(4):
            world.fail()
            world.backoff.succeeded()
        assert (world.fail(take=ready) == 0.25) is (ready > 30)
        assert world.backoff.is_exhausted is (ready < 30)


def test_five_failures_in_a_row_are_enough_and_a_reset_begins_anew() -> None:
    world = World()
    exhausted = []
    for _ in range(5):
        world.fail()
        exhausted.append(world.backoff.is_exhausted)
    assert exhausted == [False] * 4 + [True]
    assert world.now < 1_030
    world.backoff.reset()
    assert not world.backoff.is_exhausted
    assert world.fail() == 0.25


def test_G40_what_is_away_on_the_network_is_tried_up_to_a_minute_apart_without_end() -> None:
    backoff = Backoff(clock=lambda: 0.0, rng=lambda: 0.5, gives_up=False)
    waits = [backoff.failed() for _ in range(1_000)]
    assert (waits[:8], set(waits[7:])) == ([0.25, 1, 2, 4, 8, 16, 32, 60], {60})
    assert not backoff.is_exhausted


@pytest.mark.parametrize(
    ("late", "idle", "room"),
    [(60.0, 1.0, AT_ONCE), (-60.0, -1.0, 2 * AT_ONCE), (-60.0, 1.0, 3 * AT_ONCE)],
    ids=["late", "busy", "idle"],
)
async def test_E41_a_few_start_at_a_time_and_more_where_the_machine_keeps_up(
    monkeypatch: pytest.MonkeyPatch, late: float, idle: float, room: int
) -> None:
    """A loop that wakes late lets no more start; busy processors let more start up to a limit."""
    monkeypatch.setattr(limits, "LATE", -late)
    monkeypatch.setattr(limits, "MOST_BUSY", 2 * AT_ONCE)
    seconds = itertools.count(0.0, idle)
    monkeypatch.setattr(limits, "_idle_seconds", lambda: next(seconds))
    monkeypatch.setattr(limits, "NAP", 0.0)
    queue, begun, ends = StartQueue(), list[int](), list[Callable[[], None]]()

    async def start(number: int) -> None:
        ends.append(await queue.turn())
        begun.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(3 * AT_ONCE):
            group.create_task(start(number))
        await eventually(lambda: len(begun) == room)
        for at in range(3 * AT_ONCE - room):
            ends[at](), ends[at]()  # which frees no more than one place
            await eventually(lambda: len(begun) > room + at)  # noqa: B023 - called at once
            assert len(begun) == room + at + 1
    assert begun == list(range(3 * AT_ONCE))


async def test_E41_what_takes_long_to_start_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LONGEST_TURN", 0.0)
    monkeypatch.setattr(limits, "LATE", -60.0)
    queue = StartQueue()
    for _ in range(2 * AT_ONCE):
        await queue.turn()


def test_a_server_moves_only_along_the_table() -> None:
    assert set(TRANSITIONS) == set(ServerStatus)
    for current, following in product(ServerStatus, repeat=2):
        if following in TRANSITIONS[current]:
            assert advance(current, following) is following
        else:
            with pytest.raises(RuntimeError):
                advance(current, following)
