"""Secrets of a definition, which a real server writes wherever it can."""

from collections.abc import Sequence

import pytest

from tests.unit.engine.mcp.support import Watcher, call, eventually, ready, running, script
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.catalog.offered_tool import ToolCallError
from tui.model.servers import ServerStatus as S

TOKEN = "hunter22-token"


def leaky(*behaviours: str) -> ServerDefinition:
    env = {"RAW_TOKEN": TOKEN}
    return script("raw", "leaky", *behaviours, env=env, secrets=frozenset({TOKEN}))


def assert_masked(watcher: Watcher, *texts: Sequence[str]) -> None:
    assert TOKEN not in str(watcher.events)
    assert TOKEN not in str(texts)


async def test_a_secret_is_masked_in_the_log_and_in_errors_of_calls() -> None:
    async with ready(leaky()) as (manager, watcher):
        with pytest.raises(ToolCallError) as refused:
            await call(manager, "leak")
        assert "refused the call: *** is not accepted" in str(refused.value)
        with pytest.raises(ToolCallError) as ended:
            await call(manager, "die")
        assert "starting with ***\ndying now" in str(ended.value)
        failed = await watcher.fails("raw", S.RETRYING)
        assert failed.stderr_tail == ("starting with ***", "dying now")
        await eventually(lambda: {"starting with ***", "logged ***"} <= set(watcher.log("raw")))
        assert_masked(watcher, str(refused.value), str(ended.value))


@pytest.mark.parametrize("behaviour", ["exit", "unlistable"])
async def test_a_secret_is_masked_in_why_a_server_did_not_start(behaviour: str) -> None:
    async with running(leaky(behaviour)) as (_, watcher):
        failed = await watcher.fails("raw", S.STARTING, S.RETRYING)
        assert "starting with ***" in failed.stderr_tail
        assert ("***" in failed.reason) is (behaviour == "unlistable")
        assert_masked(watcher)
