"""Disks that are full, read-only, or not there at all: what was kept stays, and the run goes on."""

import asyncio
import errno
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from tests.cli.running import run
from tests.support.terminal import Terminal
from tests.support.waiting import eventually
from tui.cli.main import main
from tui.engine.engine import Engine, EngineOptions
from tui.engine.files import unwritten
from tui.engine.files.preferences import append_message, load_look, load_messages, save_look
from tui.engine.files.state_file import StateFile
from tui.engine.files.unwritten import write_now
from tui.engine.keys.key_store import CredentialError, FilePlace
from tui.engine.logs.audit import AuditLog
from tui.model.events import Event, NoticeRaised, RequestRaised
from tui.model.requests import TrustRequest
from tui.model.servers import ServerId
from tui.model.trust import TrustAnswer

IS_ROOT: Final = os.geteuid() == 0
NOBODY: Final = 65_534


def setting(name: str, value: object) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda content: {**content, name: value}


needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root can mount")


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """Mount a small disk in memory."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(folder: Path) -> Callable[[], None]:
    """Use up a small disk; give what makes room again."""
    with suppress(OSError):
        for number in range(100):
            (folder / f"filler{number}").write_bytes(b"x" * 4_096)

    def make_room() -> None:
        for path in folder.glob("filler*"):
            path.unlink()

    return make_room


def remount(folder: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", folder], check=True)


def read_only(folder: Path) -> Callable[[], None]:
    remount(folder, "ro")
    return lambda: remount(folder, "rw")


@needs_root
@pytest.mark.parametrize(
    ("options", "make", "reason"),
    [
        ("size=64k", fill, "No space left on device"),
        ("size=4m,nr_inodes=12", fill, "No space left on device"),
        ("size=64k", read_only, "Read-only file system"),
    ],
    ids=["full", "no inodes", "read-only"],
)
def test_J04_on_a_disk_that_takes_nothing_the_old_state_stands_and_the_run_goes_on(
    tmp_path: Path, options: str, make: Callable[[Path], Callable[[], None]], reason: str
) -> None:
    with mounted(tmp_path / "disk", options) as disk:
        check_a_failing_disk(disk, make, reason)


def check_a_failing_disk(
    disk: Path, make: Callable[[Path], Callable[[], None]], reason: str
) -> None:
    """Keep something, let the disk fail, change it twice, mend the disk, change it again."""
    told, path = list[str](), disk / "state.json"
    file = StateFile(path, on_problem=told.append)
    file.update(setting("old", "x" * 3_000))
    save_look(disk, {"theme": "nord"}, print)
    before = path.read_bytes()
    mend = make(disk)
    for number in range(2):
        content = file.update(setting("new", "y" * 9_000 + str(number)))
        assert content["new"] == "y" * 9_000 + str(number)
    assert len(told) == 1
    assert reason in told[0]
    assert "this run only" in told[0]
    assert path.read_bytes() == before
    assert not list(disk.glob(".gemdeck-*"))
    assert load_look(disk) == {"theme": "nord"}
    log = AuditLog(disk / "logs.jsonl", on_problem=told.append)
    for _ in range(50):
        log.record_trust("p" * 200, "c" * 64, decision="trust", source="you")
    log.close(5)
    meets_all = reason != os.strerror(errno.EFBIG)  # every file, so it is said once
    assert [line.partition(":")[0] for line in told[1:]] == (
        [] if meets_all else [f"{disk / 'logs.jsonl'} cannot be written"]
    )
    told.clear()
    mend()
    write_now()
    assert json.loads(path.read_bytes())["new"] == "y" * 9_000 + "1"
    assert len((disk / "logs.jsonl").read_bytes().splitlines()) >= 50
    content = file.update(setting("last", 1))
    assert json.loads(path.read_bytes()) == {"version": 1} | content
    assert told == []


def test_J04_a_limit_on_the_size_of_files_is_met_the_same_way(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(_disk: Path) -> Callable[[], None]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, hard))
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    try:
        check_a_failing_disk(tmp_path, limit, "File too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def nobodys_folder() -> Iterator[Path]:
    """Be a user without privileges, with a folder of theirs: root passes over permissions.

    It lies where such a user may look, which the folders of tests of root do not.
    """
    folder, user = Path(tempfile.mkdtemp(prefix="gemdeck-test-")), os.geteuid()
    if user == 0:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        folder.chmod(0o700)
        os.seteuid(user)
        shutil.rmtree(folder)


def test_J08_a_folder_that_cannot_be_written_can_still_be_read() -> None:
    told = list[str]()
    with nobodys_folder() as folder:
        path, key = folder / "state.json", FilePlace(folder / "credentials.json")
        StateFile(path, on_problem=told.append).update(setting("a", 1))
        key.set("a-key-of-no-worth")
        append_message(folder, "hello")
        save_look(folder, {"theme": "nord"}, print)
        assert told == []
        allow(folder, 0o500, 0o400)
        state = StateFile(path, on_problem=told.append)
        assert state.load() == {"a": 1}
        assert state.update(setting("b", 2)) == {"a": 1, "b": 2}
        assert state.update(setting("c", 3)) == {"a": 1, "b": 2, "c": 3}
        assert json.loads(path.read_bytes()) == {"version": 1, "a": 1}
        [text] = told
        assert "state.json cannot be written: Permission denied." in text
        assert key.get() == "a-key-of-no-worth"
        with pytest.raises(CredentialError, match=r"credentials\.json cannot be written"):
            key.set("another-key")
        save_look(folder, {"theme": "other"}, print)
        assert load_look(folder) == {"theme": "nord"}
        append_message(folder, "later")
        assert list(load_messages(folder)) == ["hello"]
        allow(folder, 0o700, 0o600)
        write_now()
        assert list(load_messages(folder)) == ["hello", "later"]
        assert StateFile(path, on_problem=told.append).load() == {"a": 1, "b": 2, "c": 3}


def allow(folder: Path, mode: int, mode_of_locks: int) -> None:
    folder.chmod(mode)
    for lock in folder.glob("*.lock"):
        lock.chmod(mode_of_locks)


async def test_J06_a_run_leaves_the_users_settings_as_they_are(home: Path, tmp_path: Path) -> None:
    settings = home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('// mine\n{"theme": "x", "unknown": [1,\n 2,], /* here */ }\n')
    before = settings.read_bytes(), settings.stat().st_mtime_ns
    options = EngineOptions(tmp_path, demo=True, follow_settings=False, server_patience=0)
    async with Engine(options, lambda _: None) as engine:
        await engine.start()
    assert (settings.read_bytes(), settings.stat().st_mtime_ns) == before
    assert [path.name for path in settings.parent.iterdir()] == ["settings.json"]


def test_J11_without_a_home_there_is_a_clear_word_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(_uid: int) -> None:
        raise KeyError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    for name in ("HOME", "GEMDECK_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name)
    result = CliRunner().invoke(main, ["-p", "hello", "--demo"])
    assert result.exit_code == 1
    assert "there is no home folder" in result.output
    assert "Set GEMDECK_HOME" in result.output
    assert list(tmp_path.iterdir()) == []


Room = Callable[[], None]


@pytest.fixture(params=["size=64k", "size=4m,nr_inodes=16"], ids=["no bytes", "no files"])
def make_room(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Room]:
    """Keep the state on a full disk; give what makes room on it."""
    with mounted(tmp_path / "disk", request.param) as disk:
        monkeypatch.setenv("GEMDECK_HOME", str(disk / "state"))
        monkeypatch.setattr(unwritten, "_timers", [])  # that of another run may wait for an hour
        yield fill(disk)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that brings a server."""
    made = tmp_path / "shop"
    (made / ".gemini").mkdir(parents=True)
    settings = {"mcpServers": {"shop": {"command": "true"}}}
    (made / ".gemini" / "settings.json").write_text(json.dumps(settings))
    return made


class Run:
    """One run of the engine, in which the user trusts the folder and disables a server."""

    def __init__(self, folder: Path) -> None:
        self.events: list[Event] = []
        options = EngineOptions(
            folder, demo=True, attended=True, follow_settings=False, server_patience=0
        )
        self.engine = Engine(options, self.events.append)

    @property
    def questions(self) -> list[TrustRequest]:
        raised = (event.request for event in self.events if isinstance(event, RequestRaised))
        return [request for request in raised if isinstance(request, TrustRequest)]

    @property
    def notices(self) -> list[str]:
        return [event.notice.text for event in self.events if isinstance(event, NoticeRaised)]

    async def decide(self) -> None:
        await self.engine.start()
        await eventually(lambda: self.questions)
        self.engine.desk.answer(self.questions[0].id, TrustAnswer.TRUST)
        self.engine.servers.set_enabled(ServerId("notes"), enabled=False)


def kept() -> set[str]:
    state = Path(os.environ["GEMDECK_HOME"])
    return {path.name for path in state.glob("*.json*") if path.stat().st_size}


DECIDED = {"salt.json", "trust.json", "disabled-servers.json", "audit.jsonl"}


def told(run: Run) -> list[str]:
    """Give what was told of the full disk, by the true name of a file on it."""
    state = os.path.realpath(os.environ["GEMDECK_HOME"])
    notices = [text for text in run.notices if "No space left on device" in text]
    assert all(text.startswith(state) for text in notices)
    return notices


@needs_root
async def test_J08_a_read_only_state_folder_is_said_once_and_the_run_goes_on(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unwritten, "_timers", [])  # no retry between the lines
    monkeypatch.setattr(unwritten, "RETRY", 3_600.0)
    with mounted(tmp_path / "disk", "size=1m,mode=700") as disk:
        for state in (disk, disk / "absent"):
            monkeypatch.setenv("GEMDECK_HOME", str(state))
            mend = read_only(disk)
            ended = await run("-p", "hello", "--demo", cwd=folder)
            assert (ended.code, "I am the demo" in ended.stdout) == (0, True)
            lines = [line for line in ended.stderr.splitlines() if "cannot be written" in line]
            assert [line.partition(": ")[2].partition(" cannot")[0] for line in lines] == [
                str(state)
            ]
            assert "sessions, grants" in lines[0]
            one = Run(folder)
            async with one.engine:
                await one.decide()
                await one.engine.wait_ready()
                assert [text for text in one.notices if "cannot be written" in text] == [
                    lines[0].removeprefix("gemdeck: ")
                ]
                mend()
                await asyncio.to_thread(write_now)
            assert kept() >= DECIDED


@needs_root
async def test_J04_no_session_is_offered_that_the_disk_did_not_take(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unwritten, "RETRY", 3_600.0)
    with mounted(tmp_path / "disk", "size=64k,mode=700") as disk:
        monkeypatch.setenv("GEMDECK_HOME", str(disk))
        for fail, reason in ((fill, "No space left on device"), (read_only, "Read-only file")):
            monkeypatch.setattr(unwritten, "_timers", [])
            mend = fail(disk)
            ended = await run("-p", "hello", "--demo", "--save", cwd=folder)
            assert (ended.code, "I am the demo" in ended.stdout) == (0, True)
            assert f"The turn was not saved: {reason}" in ended.stderr
            assert "resume with" not in ended.stderr
            mend()
            await asyncio.to_thread(write_now)


def said_on_leaving(
    folder: Path,
    *arguments: str,
    message: str = "hello",
    meanwhile: Room = lambda: None,
) -> str:
    """Send a message to the demo, and give what stands in the terminal after gemdeck."""
    command = [sys.executable, "-m", "tui", "--demo", "--allowed-mcp-server-names", "none"]
    with Terminal([*command, "-i", message, *arguments], cwd=folder) as terminal:
        ended = re.compile(rf"{message[:50]}.*── .*tokens ──", re.DOTALL)
        terminal.wait_for(lambda screen: ended.search(screen) is not None)
        meanwhile()
        terminal.press("ctrl+q")
        assert terminal.wait_for_exit() == 0
        return terminal.raw.decode().rpartition("\x1b[?1049l")[2]


@needs_root
@pytest.mark.parametrize(
    ("fail", "reason"),
    [(fill, "No space left on device"), (read_only, "Read-only file system")],
    ids=["full", "read-only"],
)
def test_J04_leaving_tells_that_the_conversation_is_not_saved(
    tmp_path: Path, fail: Callable[[Path], Room], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work := tmp_path / "work").mkdir()
    with mounted(tmp_path / "disk", "size=256k,mode=700") as disk:
        monkeypatch.setenv("GEMDECK_HOME", str(disk))
        mend = fail(disk)
        told = said_on_leaving(work)
        assert f"The conversation was not saved: {reason}.\r\n" in told
        assert "Resume with" not in told
        mend()
        saved = said_on_leaving(work)
        assert "not saved" not in saved
        assert "Resume with: gemdeck --resume 2" in saved


@needs_root
def test_J04_what_there_is_room_for_before_leaving_is_saved_and_a_part_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work := tmp_path / "work").mkdir()
    with mounted(tmp_path / "disk", "size=256k,mode=700") as disk:
        monkeypatch.setenv("GEMDECK_HOME", str(disk))
        mend = fill(disk)
        first = said_on_leaving(work, meanwhile=mend)
        assert "not saved" not in first
        assert "Resume with: gemdeck --resume 2" in first
        fill(disk)
        part = said_on_leaving(work, "--resume", message="z" * 9_000)
        assert "The conversation was not saved completely: No space left on device." in part
        assert "Resume with: gemdeck --resume 2" in part


@needs_root
def test_J13_gemdeck_ends_with_a_read_only_home_as_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = list[float]()
    (work := tmp_path / "work").mkdir()
    monkeypatch.delenv("GEMDECK_HOME", raising=False)
    with mounted(tmp_path / "disk", "size=4m,mode=700") as home:
        monkeypatch.setenv("HOME", str(home))
        for is_read_only in (False, True):
            if is_read_only:
                read_only(home)
            with Terminal([sys.executable, "-m", "tui", "--demo"], cwd=work) as terminal:
                terminal.wait_for("ready")
                terminal.type("left as a draft")
                terminal.wait_for("left as a draft")
                began = time.monotonic()
                terminal.press("ctrl+q")
                assert terminal.wait_for_exit() == 0
                spent.append(time.monotonic() - began)
    assert spent[1] <= 2 * spent[0] + 1


@needs_root
@pytest.mark.parametrize("leaves", [False, True])
async def test_J04_what_was_decided_on_a_full_disk_is_written_with_room_or_on_leaving(
    make_room: Room, folder: Path, leaves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unwritten, "RETRY", 3_600.0 if leaves else 0.05)
    run = Run(folder)
    async with run.engine:
        await run.decide()
        await eventually(lambda: told(run))
        make_room()
        if not leaves:
            await eventually(lambda: kept() >= DECIDED)
    assert kept() >= DECIDED
    assert len(told(run)) == 1
    again = Run(folder)
    async with again.engine:
        await again.engine.start()
        await again.engine.wait_ready()
    assert again.questions == []
    assert [text for text in again.notices if "cannot be written" in text] == []
