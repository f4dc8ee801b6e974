"""State survives processes that are killed, that write together, and files that make no sense."""

import itertools
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests.security.writers import ROOT, count
from tests.support.measures import Measure
from tui.engine.files.atomic import (
    STALE_AFTER,
    locked,
    remove_stale,
    set_aside,
    temporary_folder,
    write_private,
)
from tui.engine.files.preferences import append_message, load_messages
from tui.engine.files.state_file import StateFile
from tui.engine.logs.audit import AuditLog

ROUNDS: Final = 60
KEY: Final = "a-key-of-no-worth"


def test_J01_a_killed_writer_leaves_a_whole_file_and_what_is_removed_after_an_hour(
    tmp_path: Path, measure: Measure
) -> None:
    counted = count("kill", "atomic", tmp_path, ROUNDS)
    measure(
        f"kill -9 in a write loop: {counted['corrupt']} corrupt, {counted['lost']} lost in "
        f"{counted['rounds']} rounds, {counted['writes']} writes"
    )
    assert counted["writes"] >= ROUNDS
    assert (counted["corrupt"], counted["lost"]) == (0, 0)
    left = {path.name for path in tmp_path.glob(".gemdeck-*.tmp")}
    (tmp_path / "user.tmp").write_text("not ours")
    now = time.time()
    assert remove_stale(tmp_path, now) == 0
    assert remove_stale(tmp_path, now + STALE_AFTER + 60) == len(left)
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["state.json", "state.json.lock", "user.tmp"]


def test_J01_the_same_harness_catches_a_writer_that_takes_no_care(tmp_path: Path) -> None:
    assert count("kill", "naive", tmp_path, 2 * ROUNDS)["corrupt"] > 0


def test_J02_processes_that_write_together_lose_nothing(tmp_path: Path, measure: Measure) -> None:
    counted = count("together", tmp_path, 6, 60)
    measure(
        f"six processes writing together: {counted['entries']} of {counted['expected']} changes "
        f"and {counted['distinct']} of {counted['expected']} lines kept"
    )
    assert counted["failed"] == 0
    assert {counted[key] for key in ("expected", "entries", "lines", "distinct")} == {360}


HOLDER: Final = """
import sys
from pathlib import Path
from tui.engine.files.atomic import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_J03_a_lock_is_waited_for_within_bounds_and_dies_with_its_holder(tmp_path: Path) -> None:
    path, told = tmp_path / "state.json", list[str]()
    file = StateFile(path, on_problem=told.append, lock_wait=0.1)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert file.update(lambda _: {"a": 1}) == {"a": 1}
        assert not path.exists()
        [text] = told
        assert "another process holds the lock" in text
        assert "this run only" in text
        holder.send_signal(signal.SIGKILL)
        holder.wait(10)
    assert (tmp_path / "state.json.lock").exists()
    file.update(lambda content: {**content, "b": 2})
    assert json.loads(path.read_bytes()) == {"version": 1, "a": 1, "b": 2}


LENDER: Final = """
import sys
from pathlib import Path
from tui.engine.files.atomic import temporary_folder
with temporary_folder() as folder:
    (folder / "picture-1.png").write_bytes(b"private")
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_J03_a_folder_of_a_killed_process_goes_once_it_is_old_and_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMDECK_HOME", str(tmp_path))
    later = time.time() + STALE_AFTER + 60
    command = [sys.executable, "-c", LENDER]
    with (
        temporary_folder() as own,
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as lender,
    ):
        assert lender.stdout is not None
        left = Path(lender.stdout.readline().strip())
        assert remove_stale(tmp_path, later) == 0
        lender.send_signal(signal.SIGKILL)
        lender.wait(10)
        assert (left / "picture-1.png").exists()
        assert remove_stale(tmp_path, time.time()) == 0
        assert remove_stale(tmp_path, later) == 1
        assert not left.exists()
        assert own.exists()
    assert list(tmp_path.iterdir()) == []


def test_J05_messages_cut_off_at_any_byte_lose_no_more_than_the_last(tmp_path: Path) -> None:
    append_message(tmp_path, "first")
    append_message(tmp_path, "zwölf")
    path = tmp_path / "messages.jsonl"
    whole = path.read_bytes()
    first = whole.index(b"\n")
    for length in range(len(whole)):
        write_private(path, whole[:length])
        assert list(load_messages(tmp_path)) == ["first"] * (length >= first) + ["zwölf"] * (
            length == len(whole) - 1
        )


def test_J12_a_clock_that_goes_back_changes_no_order_and_replaces_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = itertools.count(2_000_000_000, -86_400)
    log = AuditLog(tmp_path / "audit.jsonl", on_problem=pytest.fail, clock=lambda: next(times))
    for number in range(5):
        log.record_trust(str(number), "", decision="trust", source="you")
    log.close(5)
    records = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_bytes().splitlines()]
    assert [record["number"] for record in records] == [1, 2, 3, 4, 5]
    assert [record["place"] for record in records] == ["0", "1", "2", "3", "4"]
    monkeypatch.setattr(time, "gmtime", lambda: time.struct_time((2001, 1, 1, 0, 0, 0, 0, 1, 0)))
    asides = set[Path | None]()
    for number in range(3):
        path = tmp_path / "state.json"
        path.write_text(str(number))
        with locked(path):
            asides.add(set_aside(path))
    assert sorted(aside.read_text() for aside in asides if aside) == ["0", "1", "2"]
