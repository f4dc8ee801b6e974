"""The commands on resources, completions and log levels, with a real server."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.unit.engine.mcp.asking import ERAS, Stage, asking
from tests.unit.engine.mcp.support import call, eventually
from tui.engine.commands import feature_commands as module
from tui.engine.commands.feature_commands import FeatureCommands
from tui.model.catalog import ResourceContent
from tui.model.events import (
    ArgumentCompleted,
    LogLevelChanged,
    ResourceRead,
    SubscriptionChanged,
)
from tui.model.servers import ProtocolEra, ServerId

ASKING = ServerId("asking")
NOBODY = ServerId("nobody")
COUNTER = "counter://now"


class Counter:
    """A counter of features with a server behind it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.features = FeatureCommands(stage.manager, stage.context, stage.events.append)

    def reads(self) -> list[ResourceRead]:
        return [event for event in self.stage.events if isinstance(event, ResourceRead)]

    def completions(self) -> list[ArgumentCompleted]:
        return [event for event in self.stage.events if isinstance(event, ArgumentCompleted)]


@asynccontextmanager
async def counter(era: ProtocolEra = ProtocolEra.STATELESS) -> AsyncIterator[Counter]:
    async with asking(era) as stage:
        made = Counter(stage)
        async with made.features:
            yield made


async def test_a_resource_is_read_for_the_user() -> None:
    async with counter() as at:
        at.features.read_resource(ASKING, COUNTER)
        await eventually(at.reads)
        assert at.reads() == [
            ResourceRead(ASKING, COUNTER, ResourceContent("count 0", "text/plain"))
        ]
        at.features.read_resource(ASKING, "nothing://there")
        await eventually(lambda: len(at.reads()) == 2)
        assert "refused" in at.reads()[1].failure


async def test_of_two_readings_the_later_one_counts() -> None:
    async with counter() as at:
        at.features.read_resource(ASKING, COUNTER)
        at.features.read_resource(ASKING, "memo://b")
        await eventually(at.reads)
        await call(at.stage.manager, "counts")
        assert [read.uri for read in at.reads()] == ["memo://b"]


async def test_a_followed_resource_does_not_replace_the_one_opened_since() -> None:
    async with counter() as at:
        at.features.read_resource(ASKING, COUNTER)
        await eventually(at.reads)
        at.stage.context.resource_updated(ASKING, COUNTER)
        await asyncio.sleep(0)  # the second reading is under way
        at.features.read_resource(ASKING, "memo://b")
        await eventually(lambda: len(at.reads()) > 1)
        await call(at.stage.manager, "counts")
        assert [read.uri for read in at.reads()] == [COUNTER, "memo://b"]
        at.stage.context.resource_updated(ASKING, "memo://b")
        await eventually(lambda: len(at.reads()) == 3)
        assert at.reads()[-1].uri == "memo://b"


@pytest.mark.parametrize("era", ERAS)
async def test_the_shown_resource_follows_its_changes(era: ProtocolEra) -> None:
    async with counter(era) as at:
        at.features.read_resource(ASKING, COUNTER)
        at.features.subscribe(ASKING, COUNTER, subscribed=True)
        subscribed = SubscriptionChanged(ASKING, COUNTER, subscribed=True)
        await eventually(lambda: subscribed in at.stage.events and at.reads())
        await call(at.stage.manager, "bump")
        await eventually(lambda: at.reads()[-1].content.text == "count 1")
        at.features.subscribe(ASKING, COUNTER, subscribed=False)
        gone = SubscriptionChanged(ASKING, COUNTER, subscribed=False)
        await eventually(lambda: gone in at.stage.events)
        assert at.stage.context.subscriptions[ASKING] == set()


@pytest.mark.parametrize("era", ERAS)
async def test_of_following_and_not_following_the_last_word_counts(era: ProtocolEra) -> None:
    async with counter(era) as at:
        for subscribed in (True, False, True, False):
            at.features.subscribe(ASKING, COUNTER, subscribed=subscribed)

        def told() -> list[bool]:
            return [e.subscribed for e in at.stage.events if isinstance(e, SubscriptionChanged)]

        await eventually(lambda: len(told()) == 4)
        assert told() == [True, False, True, False]
        assert at.stage.context.subscriptions[ASKING] == set()


async def test_a_storm_of_changes_is_a_few_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REREAD_INTERVAL", 0.05)
    async with counter() as at:
        at.features.read_resource(ASKING, COUNTER)
        await eventually(at.reads)
        began = time.monotonic()
        for _ in range(1_000):
            at.stage.context.resource_updated(ASKING, COUNTER)
            at.stage.context.resource_updated(ASKING, "memo://other")
            await asyncio.sleep(0)
        await eventually(lambda: len(at.reads()) >= 2)
        allowed = 3 + (time.monotonic() - began) / 0.05
        assert len(at.reads()) <= allowed
        assert {read.uri for read in at.reads()} == {COUNTER}


async def test_a_refused_subscription_is_told_and_not_remembered() -> None:
    async with counter(ProtocolEra.HANDSHAKE) as at:
        at.features.subscribe(ASKING, "blob://pixel", subscribed=True)
        await eventually(at.stage.notices)
        assert not any(isinstance(event, SubscriptionChanged) for event in at.stage.events)
        assert at.stage.context.subscriptions[ASKING] == set()


async def test_only_the_last_completion_arrives_and_failures_give_nothing() -> None:
    async with counter() as at:
        at.features.complete("t1", ASKING, "greet", "name", "slow", {})
        await asyncio.sleep(0)
        at.features.complete("t2", ASKING, "greet", "name", "Al", {})
        await eventually(at.completions)
        assert at.completions() == [ArgumentCompleted("t2", ("Alan",))]
        at.features.complete("t3", ASKING, "greet", "name", "boom", {})
        await eventually(lambda: len(at.completions()) == 2)
        at.features.complete("t4", NOBODY, "greet", "name", "A", {})
        await eventually(lambda: len(at.completions()) == 3)
        assert at.completions()[1:] == [ArgumentCompleted("t3", ()), ArgumentCompleted("t4", ())]
        assert at.stage.notices() == []


async def test_a_log_level_is_set_or_the_reason_is_told() -> None:
    async with counter() as at:
        at.features.set_log_level(ASKING, "error")
        await eventually(lambda: LogLevelChanged(ASKING, "error") in at.stage.events)
        at.features.set_log_level(NOBODY, "error")
        await eventually(at.stage.notices)
        assert "was not changed" in at.stage.notices()[0]


async def test_more_requests_than_the_limit_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RUNNING", 2)
    async with counter() as at:
        for level in ("error", "info", "debug"):
            at.features.set_log_level(ASKING, level)
        assert at.stage.notices() == ["2 requests are already running. Try again later."]
        levels = [LogLevelChanged(ASKING, level) for level in ("error", "info")]
        await eventually(lambda: all(level in at.stage.events for level in levels))
