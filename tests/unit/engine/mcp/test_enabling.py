"""Letting a server run that the settings disable."""

import pytest

from tests.unit.engine.mcp.support import running, script
from tui.model.servers import ServerId, ServerStatus

S = ServerStatus
RAW = ServerId("raw")


async def test_a_server_that_its_own_entry_disables_can_be_enabled_and_disabled() -> None:
    reason, advice = "Disabled: the entry says so.", "Enable it here."
    raw = script("raw").held(S.DISABLED, reason, advice, may_enable=True)
    async with running(raw) as (manager, watcher):
        manager.start(RAW)
        assert watcher.statuses("raw") == []
        manager.set_enabled(RAW, enabled=True)
        ready = await watcher.until("raw", S.STOPPED, S.STARTING, S.READY)
        assert ready.failure is None
        assert [tool.name for tool in manager.offered_tools()]
        manager.set_enabled(RAW, enabled=False)
        await watcher.until("raw", S.STOPPING, S.STOPPED, S.DISABLED)
        assert not manager.offered_tools()


@pytest.mark.parametrize("rule", ["listed in mcp.excluded", "not listed in mcp.allowed"])
async def test_a_server_that_a_rule_disables_stays_so(rule: str) -> None:
    raw = script("raw").held(S.DISABLED, f"Disabled: {rule}.", "Change the rule.")
    async with running(raw) as (manager, watcher):
        manager.set_enabled(RAW, enabled=True)
        manager.restart(RAW)
        assert watcher.statuses("raw") == []
