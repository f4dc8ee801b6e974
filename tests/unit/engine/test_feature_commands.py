"""The commands on resources, completions and log levels, with a real server."""

import asyncio
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.pictures import picture
from tests.unit.engine.mcp.asking import ERAS, Stage, asking
from tests.unit.engine.mcp.support import call, eventually
from tui.engine.chats import feature_commands as module
from tui.engine.chats.feature_commands import FeatureCommands
from tui.engine.files.atomic import STALE_AFTER, remove_stale
from tui.model import events as e
from tui.model.catalog import ResourceContent
from tui.model.servers import ProtocolEra, ServerId

ASKING = ServerId("asking")
NOBODY = ServerId("nobody")
COUNTER = "counter://now"


class Counter:
    """A counter of features with a server behind it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.features = FeatureCommands(stage.manager, stage.context, stage.events.append)

    def reads(self) -> list[e.ResourceRead]:
        return [event for event in self.stage.events if isinstance(event, e.ResourceRead)]

    def completions(self) -> list[e.ArgumentCompleted]:
        return [event for event in self.stage.events if isinstance(event, e.ArgumentCompleted)]

    def told(self) -> list[bool]:
        """Tell whether a resource was followed, after each change of that."""
        found = (one for one in self.stage.events if isinstance(one, e.SubscriptionChanged))
        return [event.subscribed for event in found]


# Both are connected while the first test is set up, and its filters of warnings end with it.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture(scope="module")
async def counters() -> AsyncIterator[Mapping[ProtocolEra, Stage]]:
    """A server for each era, for all tests: it takes a second to start."""
    async with AsyncExitStack() as stack:
        yield {era: await stack.enter_async_context(asking(era)) for era in ERAS}


@pytest.fixture
async def at(
    counters: Mapping[ProtocolEra, Stage], request: pytest.FixtureRequest
) -> AsyncIterator[Counter]:
    """Give commands of a test's own in the stateless era, or in the one it names."""
    stage = counters[getattr(request, "param", ProtocolEra.STATELESS)]
    stage.events.clear()
    made = Counter(stage)
    async with made.features:
        yield made


in_both_eras = pytest.mark.parametrize("at", ERAS, indirect=True)


async def test_a_resource_is_read_and_of_two_readings_the_later_counts(at: Counter) -> None:
    at.features.read_resource(ASKING, COUNTER)
    await eventually(at.reads)
    [read] = at.reads()
    assert (read.server, read.uri, read.content.mime_type) == (ASKING, COUNTER, "text/plain")
    assert read.content == ResourceContent(read.content.text, "text/plain")
    assert read.content.text.startswith("count ")
    at.features.read_resource(ASKING, "nothing://there")
    await eventually(lambda: len(at.reads()) == 2)
    assert "refused" in at.reads()[1].failure
    at.features.read_resource(ASKING, COUNTER)
    at.features.read_resource(ASKING, "memo://b")
    await eventually(lambda: len(at.reads()) > 2)
    await call(at.stage.manager, "counts")
    assert [read.uri for read in at.reads()[2:]] == ["memo://b"]


async def test_a_followed_resource_does_not_replace_the_one_opened_since(at: Counter) -> None:
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


@in_both_eras
async def test_the_shown_resource_follows_its_changes_as_was_said_last(at: Counter) -> None:
    at.features.read_resource(ASKING, COUNTER)
    at.features.subscribe(ASKING, COUNTER, subscribed=True)
    subscribed = e.SubscriptionChanged(ASKING, COUNTER, subscribed=True)
    await eventually(lambda: subscribed in at.stage.events and at.reads())
    count = int(at.reads()[-1].content.text.removeprefix("count "))
    await call(at.stage.manager, "bump")
    await eventually(lambda: at.reads()[-1].content.text == f"count {count + 1}")
    for is_followed in (False, True, False):
        at.features.subscribe(ASKING, COUNTER, subscribed=is_followed)
    await eventually(lambda: len(at.told()) == 4)
    assert at.told() == [True, False, True, False]
    assert at.stage.context.subscriptions[ASKING] == set()


async def test_many_changes_are_few_reads(at: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REREAD_INTERVAL", 0.05)
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


@pytest.mark.parametrize("at", [ProtocolEra.HANDSHAKE], indirect=True)
async def test_a_refused_subscription_is_told_and_not_remembered(at: Counter) -> None:
    at.features.subscribe(ASKING, "blob://pixel", subscribed=True)
    await eventually(at.stage.notices)
    assert (at.told(), at.stage.context.subscriptions[ASKING]) == ([], set())


async def test_only_the_last_completion_arrives_and_failures_give_nothing(at: Counter) -> None:
    at.features.complete("t1", ASKING, "greet", "name", "slow", {})
    await asyncio.sleep(0)
    at.features.complete("t2", ASKING, "greet", "name", "Al", {})
    await eventually(at.completions)
    assert at.completions() == [e.ArgumentCompleted("t2", ("Alan",))]
    at.features.complete("t3", ASKING, "greet", "name", "boom", {})
    await eventually(lambda: len(at.completions()) == 2)
    at.features.complete("t4", NOBODY, "greet", "name", "A", {})
    await eventually(lambda: len(at.completions()) == 3)
    assert at.completions()[1:] == [e.ArgumentCompleted("t3", ()), e.ArgumentCompleted("t4", ())]
    assert at.stage.notices() == []


async def test_log_levels_are_set_or_refused(at: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    at.features.set_log_level(NOBODY, "error")
    await eventually(at.stage.notices)
    assert "was not changed" in at.stage.notices()[0]
    monkeypatch.setattr(module, "MAX_RUNNING", 2)
    for level in ("error", "info", "debug"):
        at.features.set_log_level(ASKING, level)
    assert at.stage.notices()[1:] == ["2 requests are already running. Try again later."]
    levels = [e.LogLevelChanged(ASKING, level) for level in ("error", "info")]
    await eventually(lambda: all(level in at.stage.events for level in levels))


async def test_a_picture_is_saved_beside_others_and_lent_until_the_end(
    at: Counter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = list[Path]()

    async def open_outside(what: str) -> bool:
        opened.append(Path(what))
        return True

    monkeypatch.setattr(module, "open_outside", open_outside)
    monkeypatch.setattr(at.stage.context, "workspaces", (tmp_path,))
    monkeypatch.setenv("GEMDECK_HOME", str(tmp_path / "home"))
    made = picture(kind="JPEG")
    told: list[str] = []

    def says(words: str) -> bool:
        told[:] = [one.notice.text for one in at.stage.events if isinstance(one, e.NoticeRaised)]
        return any(words in one for one in told)

    for number in (1, 2):
        at.features.save_picture(made)
        await eventually(lambda: says(f"picture-{number}.jpg"))  # noqa: B023 - awaited at once
        assert (tmp_path / f"picture-{number}.jpg").read_bytes() == b64decode(made.data)
    at.features.open_picture(made)
    await eventually(lambda: opened)
    assert opened[0].stat().st_mode & 0o777 == 0o600
    assert opened[0].parent.stat().st_mode & 0o777 == 0o700
    assert opened[0].is_relative_to(tmp_path / "home")
    assert remove_stale(tmp_path / "home", time.time() + STALE_AFTER + 60) == 0
    at.features.open_picture(replace(made, data=b64encode(b"#!/bin/sh").decode()))
    await eventually(lambda: says("format is unknown"))
    await at.features.__aexit__()
    assert len(opened) == 1
    assert not opened[0].exists()
