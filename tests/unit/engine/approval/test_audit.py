"""The audit log: what was decided, what ran, and nothing of what it was about."""

import hashlib
import json
import os
import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import PATIENCE
from tests.unit.engine.chats.support import make_tool
from tui.engine.logs import audit
from tui.engine.logs.audit import AuditLog
from tui.engine.logs.redaction import Redactor
from tui.model.chat import EntryId, ToolCallStatus
from tui.model.events import TaskKept, ToolCallChanged, ToolCallDecided
from tui.model.servers import ServerId

CALL = EntryId("c1")
TOOL = replace(make_tool("read", "files", fingerprint="a1" * 32), definition_hash="c3" * 32)
ARGUMENTS = '{"path": "/etc/passwd", "note": "ü"}'


def decided(decision: str, source: str) -> ToolCallDecided:
    tool = (TOOL.server, TOOL.fingerprint, TOOL.name, TOOL.definition_hash)
    return ToolCallDecided(CALL, *tool, ARGUMENTS, decision, source)


def records(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    assert data.isascii()
    assert not [byte for byte in data if (byte < 0x20 and byte != 0x0A) or byte == 0x7F]
    return [json.loads(line) for line in data.splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / audit.FILE_NAME


def test_a_decision_and_the_call_that_follows_are_recorded(path: Path) -> None:
    times = iter([1_000.5, 999.0])
    log = AuditLog(path, on_problem=pytest.fail, clock=lambda: next(times))
    log.heed(decided("allow", "you: once"))
    log.heed(ToolCallChanged(CALL, ToolCallStatus.RUNNING))
    log.heed(ToolCallChanged(CALL, ToolCallStatus.OK, 0.12345, "data"))
    log.heed(ToolCallChanged(CALL, ToolCallStatus.OK, 0.12345, "data"))
    log.close(PATIENCE)
    first, second = records(path)
    assert len(first["run"]) == 8
    data = ARGUMENTS.encode()
    of_tool = {"server": TOOL.server, "fingerprint": TOOL.fingerprint, "tool": TOOL.name}
    about = {"run": first["run"], "call": "c1", "definition": TOOL.definition_hash, **of_tool}
    about["arguments"] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    decision = {"event": "decision", "decision": "allow", "source": "you: once"}
    ended = {"event": "call", "outcome": "ok", "seconds": 0.123}
    assert first == about | decision | {"time": 1000.5, "number": 1}
    assert second == about | ended | {"time": 999.0, "number": 2}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"passwd" not in path.read_bytes()


def test_a_call_that_did_not_run_has_a_decision_and_no_end(path: Path) -> None:
    log = AuditLog(path, on_problem=pytest.fail)
    for decision in ("deny", "withdrawn"):
        log.heed(decided(decision, "you: deny"))
        log.heed(ToolCallChanged(CALL, ToolCallStatus.OK, 0.1, "of another call with this id"))
    log.heed(decided("allow", "you: once"))
    log.heed(ToolCallChanged(CALL, ToolCallStatus.CANCELLED, None, "Stopped before it began."))
    log.heed(ToolCallChanged(CALL, ToolCallStatus.OK, 0.1, "of another call with this id"))
    log.close(PATIENCE)
    assert [r["event"] for r in records(path)] == ["decision"] * 3


def test_a_call_that_runs_on_as_a_task_ends_later_even_in_another_run(path: Path) -> None:
    log = AuditLog(path, on_problem=pytest.fail)
    kept = TaskKept("k1", CALL, ServerId("git"), "f1", "commit", "task 1", 900.0, 60.0)
    log.heed(decided("allow", "you: once"))
    log.heed(kept)
    log.heed(ToolCallChanged(CALL, ToolCallStatus.RUNS_ON, 0.5, "Runs on."))
    log.heed(replace(kept, task=""))
    log.heed(ToolCallChanged(CALL, ToolCallStatus.OK, 9.5, "done"))
    log.close(PATIENCE)
    again = AuditLog(path, on_problem=pytest.fail)
    again.heed(replace(kept, call=EntryId("r1")))
    again.heed(ToolCallChanged(EntryId("r1"), ToolCallStatus.RUNS_ON, result="Runs on."))
    again.heed(ToolCallChanged(EntryId("r1"), ToolCallStatus.ERROR, 99.5, "gone"))
    again.close(PATIENCE)
    begun, left, ended, later = records(path)
    assert [one["outcome"] for one in (left, ended, later)] == ["runs on", "ok", "error"]
    assert left["arguments"] == ended["arguments"] == begun["arguments"]
    del later["time"], later["run"]
    named = {"call": "r1", "server": "git", "fingerprint": "f1", "tool": "commit"}
    assert later == {"number": 1, "event": "call", "outcome": "error", "seconds": 99.5, **named}


def test_what_was_decided_about_a_folder_is_recorded_where_there_is_a_place(path: Path) -> None:
    for place in (path, None):
        log = AuditLog(place, on_problem=pytest.fail)
        log.record_trust("/home/u/shop", "a1" * 32, decision="trust", source="you")
        log.close(PATIENCE)
    [record] = records(path)
    assert [*path.parent.iterdir()] == [path]
    del record["time"], record["run"]
    about = {"place": "/home/u/shop", "content": "a1" * 32}
    decision = {"event": "trust", "decision": "trust", "source": "you"}
    assert record == {"number": 1, **about, **decision}


def test_names_can_neither_forge_a_record_nor_carry_a_secret(path: Path) -> None:
    redactor = Redactor()
    log = AuditLog(path, on_problem=pytest.fail, redactor=redactor)
    redactor.register("hunter2hunter2")
    hostile = 'x\n{"event": "decision"}\x1b[2J\x9b\x7f\u202e' + "y" * 1_000
    log.record_trust(hostile, hostile, decision="hunter2hunter2", source=hostile)
    log.close(PATIENCE)
    [record] = records(path)
    assert record["decision"] == "***"
    assert max(len(str(value)) for value in record.values()) <= audit.MAX_FIELD


def test_a_full_disk_is_told_once_and_retried(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    done = threading.Semaphore(0)
    log = AuditLog(path, on_problem=told.append)

    def full(_descriptor: int, _data: bytes) -> int:
        done.release()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        for _ in range(3):
            log.record_trust("f", "c", decision="trust", source="you")
        for _ in range(3):
            assert done.acquire(timeout=PATIENCE)
    log.record_trust("f", "c", decision="trust", source="you")
    log.close(PATIENCE)
    kept = "New content stays in memory until it can be."
    assert told == [f"{path} cannot be written: No space left on device. {kept}"]
    assert [record["number"] for record in records(path)] == [1, 2, 3, 4]
