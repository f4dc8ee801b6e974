"""Which era a server speaks: found out, remembered across runs, forced, and mended."""

import asyncio
import json
import stat
from dataclasses import replace
from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from tests.support.definitions import altered
from tests.unit.engine.mcp.asking import Stage, stateless
from tests.unit.engine.mcp.support import HASTY, call, eventually, ready, refuses, running, script
from tui.engine.mcp.session.era import LIFETIME, MAX_ENTRIES, SUSPICION, EraCache, target_hash
from tui.engine.mcp.transports.stdio import stdio_transport
from tui.model.servers import ProtocolEra
from tui.model.servers import ServerStatus as S

HANDSHAKE, STATELESS, AUTO = ProtocolEra.HANDSHAKE, ProtocolEra.STATELESS, ProtocolEra.AUTO


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Wait little for the answer to the probe."""
    monkeypatch.setattr(stdio_transport, "PROBE_PATIENCE", 0.3)
    return monkeypatch


class Now:
    """A clock to be set."""

    seconds = 1e9

    def __call__(self) -> float:
        return self.seconds


def test_eras_are_kept_in_a_private_file_that_two_runs_share(tmp_path: Path) -> None:
    path = tmp_path / "eras.json"
    first, second = EraCache(path), EraCache(path)
    assert second.recall(script("raw")) is AUTO
    first.remember(script("raw"), HANDSHAKE)
    second.remember(script("sample"), STATELESS)
    again = EraCache(path)
    assert again.recall(script("raw")) is HANDSHAKE
    assert again.recall(script("sample")) is STATELESS
    assert again.recall(script("raw", "other")) is AUTO
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_key_depends_on_the_target_alone() -> None:
    one = script("raw")
    assert target_hash(one) == target_hash(script("raw", server="x", env={"A": "t"}, trust=True))
    assert target_hash(one) != target_hash(altered(one, args=("other.py",)))
    written = {"args": ["$PWD/a.py"]}
    there = altered(one, cwd=Path("/elsewhere"), args=("/elsewhere/a.py",), written=written)
    assert target_hash(there) == target_hash(altered(there, cwd=None, args=("/here/a.py",)))
    web = altered(one, url="https://example.com/mcp?key=1")
    assert target_hash(web) == target_hash(altered(one, url="https://example.com/mcp?key=2"))


def test_what_is_unchanged_is_not_written_and_goes_after_a_month(tmp_path: Path) -> None:
    path, now = tmp_path / "eras.json", Now()
    eras = EraCache(path, now)
    eras.remember(script("raw"), HANDSHAKE)
    written = path.stat().st_ino
    eras.remember(script("raw"), HANDSHAKE)
    assert path.stat().st_ino == written
    now.seconds += LIFETIME * 0.6
    eras.remember(script("raw"), HANDSHAKE)
    assert path.stat().st_ino == written
    now.seconds += LIFETIME * 0.4
    assert eras.recall(script("raw")) is AUTO
    eras.remember(script("raw"), HANDSHAKE)
    assert path.stat().st_ino != written


def test_a_server_that_only_seems_old_is_taken_for_one_for_a_day() -> None:
    now = Now()
    eras = EraCache(None, now)
    assert [eras.suspect(script("raw")), eras.suspect(script("raw"))] == [True, False]
    assert eras.recall(script("raw")) is HANDSHAKE
    eras.remember(script("raw"), HANDSHAKE)
    now.seconds += SUSPICION - 1
    assert eras.recall(script("raw")) is HANDSHAKE
    now.seconds += 1
    assert eras.recall(script("raw")) is AUTO


def test_the_file_does_not_grow_without_end(tmp_path: Path) -> None:
    path, now = tmp_path / "eras.json", Now()
    entries = {str(n): {"era": "handshake", "time": n} for n in range(MAX_ENTRIES + 50)}
    path.write_text(json.dumps({"version": 1, "eras": entries}))
    EraCache(path, now).remember(script("raw"), HANDSHAKE)
    kept = json.loads(path.read_text())["eras"]
    assert len(kept) == MAX_ENTRIES
    assert target_hash(script("raw")) in kept
    assert "0" not in kept


def test_a_file_that_makes_no_sense_is_no_hindrance(tmp_path: Path) -> None:
    path = tmp_path / "eras.json"
    odd = (f'{{"version": 1, "eras": {eras}}}' for eras in ("5", '{"a": 1, "b": {"era": 2}}'))
    for content in ("{", "[]", *odd):
        path.write_text(content)
        eras = EraCache(path)
        assert eras.recall(script("raw")) is AUTO
        eras.remember(script("raw"), HANDSHAKE)
        assert EraCache(path).recall(script("raw")) is HANDSHAKE


def methods(record: Path) -> list[str]:
    return [json.loads(line).get("method", "") for line in record.read_text().splitlines()]


async def test_a_server_of_the_handshake_era_is_probed_once_ever(tmp_path: Path) -> None:
    record, path = tmp_path / "record", tmp_path / "eras.json"
    definition = script("raw", env={"RAW_RECORD": str(record)})
    async with ready(definition, eras=EraCache(path)):
        await eventually(path.exists)
    assert methods(record)[:2] == ["server/discover", "initialize"]
    record.unlink()
    async with ready(definition, eras=EraCache(path)):
        assert methods(record)[0] == "initialize"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("opening", ["silent", "babbling", "exiting", "deaf", "offended"])
async def test_who_does_not_survive_the_probe_is_old(opening: str, tmp_path: Path) -> None:
    record, path = tmp_path / "record", tmp_path / "eras.json"
    definition = script("raw", opening, env={"RAW_RECORD": str(record)})
    async with running(definition, eras=EraCache(path)) as (_, watcher):
        assert (await watcher.info("raw", S.STARTING, S.READY)).era is HANDSHAKE
        await eventually(path.exists)
    assert methods(record)[0] == "server/discover"
    record.unlink()
    elsewhere = altered(definition, cwd=tmp_path)
    async with ready(elsewhere, eras=EraCache(path), workspace=tmp_path):
        assert methods(record)[0] == "initialize"


@pytest.mark.parametrize("refusal", ["", "modern_only"])
async def test_a_server_that_is_slow_to_start_is_not_taken_for_an_old_one(
    refusal: str, tmp_path: Path, impatient: pytest.MonkeyPatch
) -> None:
    record, eras = tmp_path / "record", EraCache()
    slow = script("raw", "modern", "hesitant", refusal, env={"RAW_RECORD": str(record)})
    async with running(slow, eras=eras) as (manager, watcher):
        first = await watcher.info("raw", S.STARTING, S.READY)
        assert methods(record)[:2] == ["server/discover", "initialize"]
        assert first.era is (STATELESS if refusal else HANDSHAKE)
        assert (await call(manager, "echo", {"text": "a"})).display == "a"
        await eventually(lambda: eras.recall(slow) is STATELESS)
    quick = altered(slow, args=tuple(one for one in slow.launch.args if one != "hesitant"))
    impatient.setattr(eras, "recall", lambda _: STATELESS)
    async with ready(quick, eras=eras) as (_, watcher):
        assert (await watcher.info("raw", S.READY)).era is STATELESS


async def test_a_server_that_fails_either_way_is_tried_both_ways_at_once_but_once() -> None:
    definition = script("raw", "exit")
    async with running(definition, eras=EraCache()) as (manager, watcher):
        await watcher.fails("raw", S.STARTING, S.RETRYING)
        starts = watcher.log("raw").count("giving up")
        assert starts == 2
        manager.restart(definition.id)
        await watcher.fails("raw", S.STARTING, S.RETRYING, S.STARTING, S.RETRYING)
        assert watcher.log("raw").count("giving up") == 3


@pytest.mark.usefixtures("impatient")
async def test_who_hangs_on_the_probe_is_greeted_as_old_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "eras.json"
    definition = replace(script("raw", "hung"), timeout=1.0)
    async with running(definition, eras=EraCache(path)) as (manager, watcher):
        await watcher.until("raw", S.STARTING, S.RETRYING)
        assert EraCache(path).recall(definition) is HANDSHAKE, "another run knows it too"
        manager.configure([replace(definition, timeout=60.0)])  # which a start may need
        await watcher.until("raw", S.RETRYING, S.STARTING, S.READY)


async def test_an_error_of_no_request_answers_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio_transport, "PROBE_PATIENCE", 3_600.0)
    nameless = replace(script("raw", "nameless"), timeout=8.0)  # the SDK waits for longer
    async with ready(nameless) as (_, watcher):
        assert (await watcher.info("raw", S.READY)).era is HANDSHAKE


@pytest.mark.usefixtures("impatient")
async def test_only_its_own_answer_ends_the_patience_with_the_probe() -> None:
    for answered, is_overdue in ((99, True), (7, False)):
        probe = stdio_transport.Probe()
        send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](1)
        with send, receive:
            waiting = asyncio.create_task(probe.wait(7, send))
            await asyncio.sleep(0)
            probe.take(types.JSONRPCResponse(jsonrpc="2.0", id=answered, result={}))
            await waiting
            assert receive.statistics().current_buffer_used == is_overdue


async def test_the_attempt_with_the_probe_counts_as_a_failure() -> None:
    async with running(script("raw", "exit"), eras=EraCache(), retry=HASTY) as (_, watcher):
        await eventually(lambda: S.FAILED in watcher.statuses("raw"))
        assert watcher.log("raw").count("giving up") == HASTY.max_failures


async def test_a_wrong_memory_mends_itself(tmp_path: Path) -> None:
    record, eras = tmp_path / "record", EraCache()
    definition = script("raw", "modern_only", env={"RAW_RECORD": str(record)})
    eras.remember(definition, HANDSHAKE)
    async with running(definition, eras=eras) as (manager, watcher):
        await watcher.until("raw", S.STARTING, S.RETRYING)
        assert methods(record) == ["initialize"]
        manager.restart(definition.id)
        await eventually(lambda: "server/discover" in methods(record))


async def test_a_server_that_cannot_do_what_the_settings_demand_says_so() -> None:
    async with running(replace(script("raw"), protocol=STATELESS)) as (_, watcher):
        failed = await watcher.fails("raw", S.STARTING, S.FAILED)
        assert failed.reason.startswith("uses revision 2025-06-18, but the settings")


async def test_a_server_that_asks_back_is_old_and_remembered_so(tmp_path: Path) -> None:
    path = tmp_path / "eras.json"
    definition, asking = script("asking"), {"seconds": 0}
    async with running(definition, eras=EraCache(path)) as (manager, watcher):
        assert (await watcher.info("asking", S.READY)).era is STATELESS
        slow = asyncio.create_task(call(manager, "wait", {"seconds": 1.5}))
        await asyncio.sleep(0)
        words = "reconnecting with that one: repeat the call"
        await refuses(words, manager, "ask_in_vain", asking)
        assert watcher.last("asking").status is S.READY
        assert (await slow).display == "waited", "other calls are not broken off"
        changed = (S.STOPPING, S.STOPPED, S.STARTING, S.READY)
        assert (await watcher.info("asking", *changed)).era is HANDSHAKE
        await call(manager, "ask_in_vain", asking)
    assert EraCache(path).recall(definition) is HANDSHAKE


@stateless
async def test_a_forced_era_is_not_changed_behind_the_users_back(stage: Stage) -> None:
    words = r"Set the server to auto or handshake in gemdeck\.protocols"
    await refuses(words, stage.manager, "ask_in_vain", {"seconds": 0})
    assert stage.watcher.statuses("asking") == [S.READY]
