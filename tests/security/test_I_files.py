"""Files with secrets and records: private from the start, no trick of links, and complete."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.writers import ROOT
from tui.engine.files.atomic import write_private
from tui.engine.files.preferences import append_message, save_look
from tui.engine.keys.key_store import CredentialError, FilePlace
from tui.engine.logs.audit import AuditLog
from tui.engine.mcp.manager import Enablement
from tui.ui.crash import write_report

KEY = "a-key-of-no-worth"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def careless_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("careless_umask")
def test_I01_every_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    FilePlace(tmp_path / "credentials.json").set(KEY)
    append_message(tmp_path, "hello")
    save_look(tmp_path, {"theme": "nord"}, print)
    Enablement(tmp_path / "disabled-servers.json").save()
    log = AuditLog(tmp_path / "audit.jsonl", on_problem=pytest.fail)
    log.record_trust("f", "c", decision="trust", source="you")
    log.close(5)
    report = write_report(ValueError("x"), tmp_path / "logs")
    assert report is not None
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 6
    assert {path.name: mode(path) for path in files if mode(path) != 0o600} == {}
    assert mode(tmp_path / "logs") == 0o700


def test_I01_a_key_that_others_could_read_is_not_used_until_the_user_looked(
    tmp_path: Path,
) -> None:
    path = tmp_path / "credentials.json"
    place = FilePlace(path)
    place.set(KEY)
    path.chmod(0o644)
    for action in (place.get, lambda: place.set("another")):
        with pytest.raises(CredentialError, match="others have access") as caught:
            action()
        assert "chmod 600" in caught.value.advice
    path.chmod(0o600)
    assert place.get() == KEY
    path.unlink()
    path.touch(0o600)  # it would keep its permissions if it were only written into
    before = path.stat().st_ino
    place.set(KEY)
    assert (mode(path), path.stat().st_ino != before) == (0o600, True)


def test_I02_planted_links_and_pipes_lead_nowhere(tmp_path: Path) -> None:
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    state.mkdir()
    elsewhere.mkdir()
    canary = elsewhere / "canary"
    canary.write_text("untouched")
    path = state / "credentials.json"
    place = FilePlace(path)
    path.symlink_to(canary)
    with pytest.raises(CredentialError, match="links into another folder"):
        place.set(KEY)
    path.unlink()
    write_private(canary, b'{"version": 1}')
    path.hardlink_to(canary)
    with pytest.raises(CredentialError, match="hard link"):
        place.set(KEY)
    path.unlink()
    os.mkfifo(path)
    assert place.get() is None
    place.set(KEY)
    for name in ("messages.jsonl", "audit.jsonl"):
        (state / name).symlink_to(canary)
    append_message(state, "hello")
    told = list[str]()
    log = AuditLog(state / "audit.jsonl", on_problem=told.append)
    log.record_trust("f", "c", decision="trust", source="you")
    log.close(5)
    assert len(told) == 1
    assert canary.read_bytes() == b'{"version": 1}'
    assert [entry.name for entry in elsewhere.iterdir()] == ["canary"]
    (tmp_path / "credentials.json.lock").symlink_to(tmp_path / "none")
    with pytest.raises(CredentialError, match="cannot be written"):
        FilePlace(tmp_path / "credentials.json").set(KEY)
    assert not (tmp_path / "none").exists()


def test_I09_a_crash_leaves_no_memory_on_the_disk(tmp_path: Path) -> None:
    """The soft limit of the process is 0 when it works, so that no core can be written."""
    script = (
        "import os, resource, signal\n"
        "from tui.engine.logs.log_file import prepare_process\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)\n"
        "prepare_process()\n"
        "print(resource.getrlimit(resource.RLIMIT_CORE)[0], flush=True)\n"
        "os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    crashed = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert crashed.stdout == b"0\n"
    assert crashed.returncode == -signal.SIGSEGV
    assert list(tmp_path.iterdir()) == []
