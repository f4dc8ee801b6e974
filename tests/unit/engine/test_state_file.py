"""State files: what is read, what is refused, what is kept while the disk will not have it."""

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.engine.files import state_file
from tui.engine.files.atomic import write_private
from tui.engine.files.state_file import Change, StateFile, StateFileError

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
    assert file.load() == {"a": []}
    assert file.save(setting("b", 1)) == {"a": [], "b": 1}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "expecting value"),
        (b'{"version": 1, "a": ', "expecting value"),
        (b"\xff\xfe\x00", "not UTF-8 text"),
        (b"[" * 10_000, "nested deeper than 64 levels"),
        (b'{"version": 1, "a": ' + b"[" * 200 + b"]" * 200 + b"}", "nested deeper than 64 levels"),
        (b"[]", "be an object"),
        (b"null", "be an object"),
        (b'{"version": 1, "a": 1, "a": 2}', "duplicate key"),
        (b'{"version": 1, "a": {"b": 1, "b": 1}}', "duplicate key"),
        (b'{"version": 1, "a": NaN}', "NaN is not a JSON number"),
        (b'{"version": 1, "a": -Infinity}', "Infinity is not a JSON number"),
        (b'{"version": 1, "a": 1e999}', "a number is out of range"),
        (b'{"version": 1, "a": ' + b"9" * 5_000 + b"}", "a number is out of range"),
        (b'{"version": 1, "a": "\\ud800"}', "lone surrogate"),
        (b'{"version": 1, "\\udc00": 1}', "lone surrogate"),
        (b"{}", "another version"),
        (b'{"version": 2}', "another version"),
        (b'{"version": true}', "another version"),
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
    assert file.update(setting("a", 1)) == {"a": 1}
    assert told == []


def test_a_second_corrupt_file_does_not_replace_the_first(path: Path, told: Told) -> None:
    for data in (b"one", b"two"):
        write_private(path, data)
        assert state(path, told).update(setting("a", 1)) == {"a": 1}
    kept = path.parent.glob("state.json.corrupt-*")
    assert sorted(aside.read_bytes() for aside in kept) == [b"one", b"two"]


def test_a_file_that_is_too_large_is_neither_used_nor_written(
    path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_file, "MAX_STATE_FILE", 2_048)
    file = state(path, told)
    file.update(setting("a", 1))
    assert file.update(setting("pad", "x" * 3_000)) == {"a": 1, "pad": "x" * 3_000}
    assert "File too large" in told.take()
    assert state(path, told).load() == {"a": 1}
    path.write_bytes(b" " * 3_000)
    assert state(path, told).load() is None
    assert "larger than 2 KiB" in told.take()


def test_a_file_that_others_can_read_is_made_private_again(path: Path, told: Told) -> None:
    write_private(path, b'{"version": 1}')
    path.chmod(0o644)
    assert state(path, told).load() == {}
    assert mode(path) == 0o600
    assert told == []


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


def test_what_cannot_be_written_holds_for_this_run_and_is_written_later(
    path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = state(path, told)
    file.update(setting("a", 1))
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", no_space)
        assert file.update(setting("b", 2)) == {"a": 1, "b": 2}
        assert "No space left on device" in told.take()
        assert file.update(setting("c", 3)) == {"a": 1, "b": 2, "c": 3}
        assert told == []
        assert file.load() == {"a": 1, "b": 2, "c": 3}
        assert state(path, told).load() == {"a": 1}
    other = state(path, told)
    other.update(setting("theirs", 0))
    assert file.load() == {"a": 1, "theirs": 0, "b": 2, "c": 3}
    file.update(setting("d", 4))
    assert other.load() == {"a": 1, "theirs": 0, "b": 2, "c": 3, "d": 4}
    assert sorted(entry.name for entry in path.parent.iterdir()) == [path.name, "state.json.lock"]
    monkeypatch.setattr(os, "fsync", no_space)
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


def no_space(_descriptor: int) -> None:
    raise OSError(28, "No space left on device")


def test_who_must_know_that_it_is_kept_hears_that_it_is_not(
    path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = state(path, told)
    file.save(setting("a", 1))
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", no_space)
        with pytest.raises(StateFileError, match="No space"):
            file.save(setting("a", 2))
    assert file.read() == {"a": 1}
    assert told == []


def test_what_could_not_be_read_again_is_not_written(path: Path, told: Told) -> None:
    file = state(path, told)
    file.save(setting("a", 1))
    with pytest.raises(StateFileError, match="surrogate"):
        file.save(setting("b", "\udcff"))
    assert file.update(setting("b", "\udcff")) == {"a": 1, "b": "\udcff"}
    assert "cannot be written" in told.take()
    assert state(path, told).load() == {"a": 1}


def test_many_waiting_changes_become_one(
    path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_file, "MAX_WAITING", 3)
    file = state(path, told)
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", no_space)
        for number in range(10):
            content = file.update(setting(str(number), number))
    expected = {str(number): number for number in range(10)}
    assert content == expected
    assert file.update(lambda content: content) == expected
    assert state(path, told).load() == expected


def test_a_change_that_fails_changes_nothing(path: Path, told: Told) -> None:
    file = state(path, told)

    def failing(_content: Json) -> Json:
        raise KeyError("no")

    with pytest.raises(KeyError):
        file.update(failing)
    with pytest.raises(ValueError, match="Out of range"):
        file.update(setting("a", float("nan")))
    assert file.load() is None
    assert file.update(setting("a", 1)) == {"a": 1}
    assert told == []


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
    assert len(file.load() or {}) == 60
    assert told == []


@given(data=st.binary(max_size=200))
def test_no_bytes_make_it_fail(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    told = Told()
    path = tmp_path_factory.mktemp("any") / "state.json"
    path.write_bytes(data)
    content = state(path, told).load()
    assert (content is None) == bool(told)
    kept = [file.read_bytes() for file in path.parent.iterdir() if file.suffix != ".lock"]
    assert kept == [data]


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abü", max_size=3), inner),
    max_leaves=12,
)


@given(content=st.dictionaries(st.text("xyzß", max_size=4), values, max_size=4))
def test_all_that_json_can_say_comes_back_as_it_was(
    content: Json, tmp_path_factory: pytest.TempPathFactory
) -> None:
    told = Told()
    path = tmp_path_factory.mktemp("any") / "state.json"
    state(path, told).update(lambda _: content)
    assert state(path, told).load() == content
    assert told == []
