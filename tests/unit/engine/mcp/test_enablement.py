"""Which servers are disabled, across runs and between two gemdecks."""

import json
import stat
from pathlib import Path

from tests.support.definitions import altered
from tests.unit.engine.mcp.support import children, eventually, ready, running, script
from tui.engine.mcp.manager import Enablement
from tui.model.events import ServersConfigured
from tui.model.servers import Origin, ServerId
from tui.model.servers import ServerStatus as S

RAW = ServerId("raw")
ODD = ("{}", '[1, {"a": 2}]')


def loaded(path: Path) -> Enablement:
    enablement = Enablement(path)
    enablement.load()
    return enablement


def test_choices_are_kept_in_a_private_file_that_two_gemdecks_share(tmp_path: Path) -> None:
    path = tmp_path / "disabled.json"
    first, second = loaded(path), loaded(path)
    for enablement, name in ((first, "raw"), (second, "sample")):
        enablement.set_enabled(script(name), enabled=False)
        enablement.save()
    third = loaded(path)
    assert not third.is_enabled(script("raw"))
    assert not third.is_enabled(script("sample"))
    assert third.is_enabled(altered(script("raw"), origin=Origin.PROJECT)), "another layer"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    third.set_enabled(script("raw"), enabled=True)
    third.save()
    assert loaded(path).is_enabled(script("raw"))


def test_a_file_without_sense_or_a_place_disables_nothing(tmp_path: Path) -> None:
    path = tmp_path / "disabled.json"
    for content in ("{", "[]", *(f'{{"version": 1, "disabled": {d}}}' for d in ODD)):
        path.write_text(content)
        assert loaded(path).is_enabled(script("raw")), content
    enablement = loaded(tmp_path / "missing" / "disabled.json")
    enablement.set_enabled(script("raw"), enabled=False)
    enablement.save()
    assert not enablement.is_enabled(script("raw"))


async def test_a_disabled_server_stays_so_over_a_restart_of_gemdeck(tmp_path: Path) -> None:
    path = tmp_path / "disabled.json"
    definition = script("raw")
    async with ready(definition, enablement=loaded(path)) as (manager, watcher):
        manager.set_enabled(definition.id, enabled=False)
        await watcher.until("raw", S.DISABLED)
        changed = script("raw", "paging")
        for given in (changed, definition):
            manager.configure([given])
            assert watcher.of(ServersConfigured)[-1].servers[0].status is S.DISABLED
        await manager.wait_discovered(1)
        assert watcher.last("raw").status is S.DISABLED
    assert json.loads(path.read_text())["disabled"] == [{"origin": "user", "server": "raw"}]
    async with running(definition, enablement=loaded(path)) as (manager, watcher):
        [configured] = watcher.of(ServersConfigured)
        assert configured.servers[0].status is S.DISABLED
        await manager.wait_discovered(5)
        manager.start(definition.id)
        manager.restart_all()
        await eventually(lambda: children() == [])  # those of the run before are gone
        assert watcher.statuses("raw") == []
        manager.set_enabled(definition.id, enabled=True)
        await watcher.until("raw", S.STOPPED, S.STARTING, S.READY)
    assert json.loads(path.read_text())["disabled"] == []


async def test_withheld_servers_are_not_chosen_about(tmp_path: Path) -> None:
    path = tmp_path / "disabled.json"
    withheld = script("raw").held(S.UNTRUSTED, "why", "")
    async with running(withheld, enablement=loaded(path)) as (manager, _):
        manager.set_enabled(withheld.id, enabled=False)
    assert not path.exists()


async def test_a_server_that_its_own_entry_disables_can_be_enabled_and_disabled() -> None:
    reason, advice = "Disabled: turned off in its settings entry.", "Enable it here."
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
