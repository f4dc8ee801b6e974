"""State files and files of lines: what is read and refused, and what a full disk costs."""

import json
import os
import resource
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import any_json
from tui.engine.files import preferences, state_file
from tui.engine.files.atomic import locked, write_private
from tui.engine.files.line_file import LineFile
from tui.engine.files.state_file import Change, StateFile, StateFileError
from tui.ui.themes import fitting

Json = dict[str, Any]


class Told(list[str]):
    """Gathers what the user would be told."""

    def take(self) -> str:
        """Give the one thing told since the last time."""
        [text] = self
        self.clear()
        return text


def state(path: Path | None, told: Told, *, fails_closed: bool = False) -> StateFile:
    return StateFile(path, fails_closed=fails_closed, on_problem=told.append, lock_wait=0.05)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def setting(name: str, value: object) -> Change:
    return lambda content: {**content, name: value}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_kept_is_there_in_the_next_run(path: Path, told: Told) -> None:
    assert state(path, told).load() is None
    assert state(path, told).update(setting("a", [1, {"b": "ü"}])) == {"a": [1, {"b": "ü"}]}
    assert state(path, told).load() == {"a": [1, {"b": "ü"}]}
    assert json.loads(path.read_bytes()) == {"version": 1, "a": [1, {"b": "ü"}]}
    assert path.read_bytes().isascii()
    assert mode(path) == 0o600
    path.chmod(0o644)
    assert state(path, told).load() is not None
    assert mode(path) == 0o600, "it is made private again"
    assert told == []


def test_a_change_starts_from_what_the_file_holds_now(path: Path, told: Told) -> None:
    first, second = state(path, told), state(path, told)
    first.load()
    second.load()
    first.update(setting("a", 1))
    assert second.update(setting("b", 2)) == {"a": 1, "b": 2}


def test_without_a_path_it_is_kept_for_this_run(told: Told) -> None:
    file = state(None, told)
    assert file.load() is None
    file.update(setting("a", []))
    content = file.load()
    assert content == {"a": []}
    content["a"].append("mine")
    assert (file.load(), file.save(setting("b", 1))) == ({"a": []}, {"a": [], "b": 1})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        *((b"", "expecting value"), (b'{"version": 1, "a": ', "expecting value")),
        *((b"\xff\xfe\x00", "not UTF-8 text"), (b"[" * 10_000, "nested deeper than 64 levels")),
        (b'{"version": 1, "a": ' + b"[" * 200 + b"]" * 200 + b"}", "nested deeper than 64 levels"),
        *((b"[]", "be an object"), (b"null", "be an object")),
        (b'{"version": 1, "a": 1, "a": 2}', "duplicate key"),
        (b'{"version": 1, "a": {"b": 1, "b": 1}}', "duplicate key"),
        (b'{"version": 1, "a": NaN}', "NaN is not a JSON number"),
        (b'{"version": 1, "a": -Infinity}', "Infinity is not a JSON number"),
        (b'{"version": 1, "a": 1e999}', "a number is out of range"),
        (b'{"version": 1, "a": ' + b"9" * 5_000 + b"}", "a number is out of range"),
        (b'{"version": 1, "a": "\\ud800"}', "lone surrogate"),
        *((b'{"version": 1, "\\udc00": 1}', "lone surrogate"), (b"{}", "another version")),
        *((b'{"version": 2}', "another version"), (b'{"version": true}', "another version")),
        (b'{"version": "1"}', "another version"),
    ],
    ids=lambda value: repr(value)[:24],
)
@pytest.mark.parametrize("fails_closed", [False, True])
def test_what_makes_no_sense_is_set_aside_with_its_bytes(
    path: Path, told: Told, data: bytes, reason: str, fails_closed: bool
) -> None:
    write_private(path, data)
    file = state(path, told, fails_closed=fails_closed)
    assert file.load() is None
    [aside] = path.parent.glob("state.json.corrupt-*")
    assert aside.read_bytes() == data
    assert not path.exists()
    text = told.take()
    assert reason in text
    assert aside.name in text
    assert (file.update(setting("a", 1)), told) == ({"a": 1}, [])
    write_private(path, b"two")
    assert file.load() is None
    kept = [one.read_bytes() for one in path.parent.glob("state.json.corrupt-*")]
    assert sorted(kept) == sorted([data, b"two"]), "a second one does not replace the first"


def test_a_file_that_is_too_large(path: Path, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file, "MAX_STATE_FILE", 2_048)
    file = state(path, told)
    file.update(setting("a", 1))
    assert file.update(setting("pad", "x" * 3_000)) == {"a": 1, "pad": "x" * 3_000}
    assert "File too large" in told.take()
    assert state(path, told).load() == {"a": 1}
    path.write_bytes(b" " * 3_000)
    assert state(path, told).load() is None
    assert "larger than 2 KiB" in told.take()


def test_a_link_within_the_folder_is_the_users_own_business(path: Path, told: Told) -> None:
    write_private(path.with_name("real.json"), b'{"version": 1}')
    path.symlink_to("real.json")
    assert state(path, told, fails_closed=True).update(setting("a", 1)) == {"a": 1}
    assert path.is_symlink()
    assert json.loads(path.with_name("real.json").read_bytes()) == {"version": 1, "a": 1}
    assert told == []


def test_a_pipe_in_its_place_does_not_hang(path: Path, told: Told) -> None:
    os.mkfifo(path)
    assert state(path, told).load() is None
    assert "not a regular file" in told.take()


@contextmanager
def full_disk() -> Iterator[None]:
    """Let nothing reach the disk."""

    def no_space(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as full:
        full.setattr(os, "fsync", no_space)
        yield


def test_what_cannot_be_written_holds_now_and_is_written_later(path: Path, told: Told) -> None:
    file = state(path, told)
    file.update(setting("a", 1))
    with full_disk():
        assert file.update(setting("b", 2)) == {"a": 1, "b": 2}
        assert "No space left on device" in told.take()
        assert (file.update(setting("c", 3)), told) == ({"a": 1, "b": 2, "c": 3}, [])
        assert (file.load(), state(path, told).load()) == ({"a": 1, "b": 2, "c": 3}, {"a": 1})
    other = state(path, told)
    other.update(setting("theirs", 0))
    assert file.load() == {"a": 1, "theirs": 0, "b": 2, "c": 3}
    file.update(setting("d", 4))
    assert other.load() == {"a": 1, "theirs": 0, "b": 2, "c": 3, "d": 4}
    assert sorted(entry.name for entry in path.parent.iterdir()) == [path.name, "state.json.lock"]
    with full_disk():
        file.update(setting("e", 5))
    assert "No space" in told.take()


def test_what_makes_no_sense_and_cannot_be_set_aside_is_not_replaced(
    path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(b"garbage")
    file = state(path, told)

    def refuse(_path: Path, _target: Path) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "rename", refuse)
        assert file.load() is None
        assert "cannot be renamed: Read-only file system" in told.take()
        assert file.update(setting("a", 1)) == {"a": 1}
        assert "this run only" in told.take()
        assert path.read_bytes() == b"garbage"
    assert file.update(setting("b", 2)) == {"a": 1, "b": 2}
    assert "renamed to state.json.corrupt-" in told.take()


def test_who_must_know_that_it_is_kept_hears_that_it_is_not(path: Path, told: Told) -> None:
    file = state(path, told)
    file.save(setting("a", 1))
    with full_disk(), pytest.raises(StateFileError, match="No space"):
        file.save(setting("a", 2))
    assert (file.read(), told) == ({"a": 1}, [])


def test_what_could_not_be_read_again_is_not_written(path: Path, told: Told) -> None:
    file = state(path, told)
    file.save(setting("a", 1))
    with pytest.raises(StateFileError, match="surrogate"):
        file.save(setting("b", "\udcff"))
    assert file.update(setting("b", "\udcff")) == {"a": 1, "b": "\udcff"}
    assert "cannot be written" in told.take()
    assert state(path, told).load() == {"a": 1}


def test_many_changes_become_one(path: Path, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file, "MAX_WAITING", 3)
    file = state(path, told)
    with full_disk():
        for number in range(10):
            content = file.update(setting(str(number), number))
    expected = {str(number): number for number in range(10)}
    assert (content, file.update(lambda content: content)) == (expected, expected)
    assert state(path, told).load() == expected


def test_a_change_that_fails_changes_nothing(path: Path, told: Told) -> None:
    file = state(path, told)

    def failing(_content: Json) -> Json:
        raise KeyError("no")

    with pytest.raises(KeyError):
        file.update(failing)
    with pytest.raises(ValueError, match="Out of range"):
        file.update(setting("a", float("nan")))
    assert (file.load(), file.update(setting("a", 1)), told) == (None, {"a": 1}, [])


def test_threads_of_one_process_lose_nothing(path: Path, told: Told) -> None:
    file = StateFile(path, on_problem=told.append)

    def work(name: str) -> None:
        for number in range(20):
            file.update(setting(f"{name}{number}", number))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(file.load() or {}), told) == (60, [])


@given(data=st.binary(max_size=200))
def test_no_bytes_make_it_fail(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    told = Told()
    path = tmp_path_factory.mktemp("any") / "state.json"
    path.write_bytes(data)
    content = state(path, told).load()
    assert (content is None) == bool(told)
    kept = [file.read_bytes() for file in path.parent.iterdir() if file.suffix != ".lock"]
    assert kept == [data]


@given(content=st.dictionaries(st.text("xyzß", max_size=4), any_json(st.text()), max_size=4))
def test_all_json_comes_back(content: Json, tmp_path_factory: pytest.TempPathFactory) -> None:
    told = Told()
    path = tmp_path_factory.mktemp("any") / "state.json"
    state(path, told).update(lambda _: content)
    assert (state(path, told).load(), told) == (content, [])


def lines(path: Path) -> LineFile:
    return LineFile(path, 100, 3)


def test_lines_follow_each_other_in_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch(0o644)
    for line in (b"one", b"two"):
        lines(path).append(line)
    assert (path.read_bytes(), mode(path)) == (b"one\ntwo\n", 0o600)
    path.write_bytes(b"whole\nhal")
    lines(path).append(b"next")
    assert path.read_bytes() == b"whole\nhal\nnext\n", "it does not continue what a kill cut off"


def test_a_full_file_is_rotated_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for number in range(10):
        lines(path).append(str(number).encode() * 60)
    written = {file.name: file.read_bytes()[:1] for file in tmp_path.iterdir()}
    assert written.pop("log.lock") == b""
    assert written == {"log": b"8", "log.1": b"6", "log.2": b"4", "log.3": b"2"}


def test_what_another_process_rotates_is_not_rotated_twice_and_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 149 + b"\n")
    with locked(path):
        lines(path).append(b"meanwhile")
        assert sorted(file.name for file in tmp_path.iterdir()) == ["log", "log.lock"]
    lines(path).append(b"later")
    assert path.read_bytes() == b"later\n"
    path.write_bytes(b"x" * 200)
    with locked(path), pytest.raises(OSError, match="File too large"):
        lines(path).append(b"more")
    assert path.stat().st_size == 200


def test_a_link_a_second_name_and_a_pipe_are_no_place_for_a_log(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"untouched")
    link, twin, pipe = (tmp_path / name for name in ("link", "twin", "pipe"))
    link.symlink_to(victim)
    os.mkfifo(pipe)
    for path in (link, pipe, tmp_path):
        with pytest.raises(OSError, match=r"symbolic link|not a regular file|directory"):
            lines(path).append(b"line")
    twin.hardlink_to(victim)
    with pytest.raises(OSError, match="not a regular file"):
        lines(twin).append(b"line")
    assert victim.read_bytes() == b"untouched"


def test_a_line_that_does_not_fit_is_an_error_and_the_next_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError, match="No space left"):
            lines(path).append(b"twelve bytes")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    lines(path).append(b"next")
    assert path.read_bytes() == b"twelve byt\nnext\n"


def test_the_only_writer_takes_out_what_a_killed_one_began(tmp_path: Path) -> None:
    for end, kept in [(b'{"half', b""), (b'{"whole": 1}', b'{"whole": 1}\n'), (b"", b"")]:
        path = tmp_path / "log"
        before = b"x" * 100_000 + b"\n"
        path.write_bytes(before + end)
        LineFile(path, 1_000_000, 1, alone=True).append(b"next")
        assert path.read_bytes() == before + kept + b"next\n", end


def test_a_theme_and_a_layout_are_remembered_beside_what_else_is_kept(tmp_path: Path) -> None:
    assert preferences.load_look(tmp_path) == {}
    for look in ({"theme": "nord"}, {"layout": {"alone": True}}):
        preferences.save_look(tmp_path, look, pytest.fail)
    assert preferences.load_look(tmp_path) == {"theme": "nord", "layout": {"alone": True}}
    file = tmp_path / "ui.json"
    file.write_text('{"version": 1, "theme": 5, "other": 1}')
    assert fitting(preferences.load_look(tmp_path)["theme"]) == fitting("")
    preferences.save_look(tmp_path, {"theme": "gemdeck-light"}, pytest.fail)
    assert json.loads(file.read_text()) == {"version": 1, "theme": "gemdeck-light", "other": 1}


def test_messages_come_back_in_order_and_harmless_from_a_folder_made_for_them(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "missing"
    assert preferences.load_messages(folder) == ()
    preferences.save_look(folder, {"theme": "nord"}, print)
    assert preferences.load_look(folder) == {"theme": "nord"}
    folder = tmp_path / "gone"
    for text in ("one\ntwo", "drei \u00fc", "fo\ud800ur"):
        preferences.append_message(folder, text)
    assert preferences.load_messages(folder) == ("one\ntwo", "drei \u00fc", "fo?ur")


def test_messages_are_cut_to_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preferences, "MAX_MESSAGES", 3)
    for number in range(7):
        preferences.append_message(tmp_path, str(number))
    with locked(tmp_path / preferences.MESSAGES):
        assert preferences.load_messages(tmp_path) == ("4", "5", "6")
    assert len((tmp_path / preferences.MESSAGES).read_bytes().splitlines()) == 7
    assert preferences.load_messages(tmp_path) == ("4", "5", "6")
    assert (tmp_path / preferences.MESSAGES).read_bytes() == b'"4"\n"5"\n"6"\n'


def test_what_is_no_file_of_messages_is_moved_away(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / preferences.MESSAGES)
    assert preferences.load_messages(tmp_path) == ()
    assert (tmp_path / "messages.jsonl.old").is_fifo()
    preferences.append_message(tmp_path, "hello")
    assert preferences.load_messages(tmp_path) == ("hello",)


def test_each_opened_folder_has_messages_of_its_own(tmp_path: Path) -> None:
    one, other = (preferences.messages_place(tmp_path, tmp_path / n) for n in ("one", "other"))
    preferences.append_message(one, "hello")
    assert (preferences.load_messages(one), preferences.load_messages(other)) == (("hello",), ())
    assert preferences.messages_place(tmp_path, tmp_path / "one") == one
    for folder in (one, one.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
