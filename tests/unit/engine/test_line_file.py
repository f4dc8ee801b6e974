"""Files that grow line by line, shared by several processes, and rotated."""

import os
import resource
import stat
from pathlib import Path

import pytest

from tui.engine.files.atomic import locked
from tui.engine.files.line_file import LineFile


def lines(path: Path) -> LineFile:
    return LineFile(path, 100, 3)


def test_lines_follow_each_other_in_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    path.chmod(0o644)
    lines(path).append(b"one")
    lines(path).append(b"two")
    assert path.read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_line_does_not_continue_what_a_killed_process_began(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"whole\nhal")
    lines(path).append(b"next")
    assert path.read_bytes() == b"whole\nhal\nnext\n"


def test_a_full_file_is_rotated_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for number in range(10):
        lines(path).append(str(number).encode() * 60)
    written = {file.name: file.read_bytes()[:1] for file in tmp_path.iterdir()}
    assert written.pop("log.lock") == b""
    assert written == {"log": b"8", "log.1": b"6", "log.2": b"4", "log.3": b"2"}


def test_what_another_process_rotates_is_not_rotated_twice(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 149 + b"\n")
    with locked(path):
        lines(path).append(b"meanwhile")
        assert sorted(file.name for file in tmp_path.iterdir()) == ["log", "log.lock"]
    lines(path).append(b"later")
    assert path.read_bytes() == b"later\n"


def test_a_file_that_cannot_be_rotated_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
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


def test_a_line_that_does_not_fit_on_the_disk_is_an_error_and_the_next_one_is_whole(
    tmp_path: Path,
) -> None:
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


@pytest.mark.parametrize(
    ("end", "kept"), [(b'{"half', b""), (b'{"whole": 1}', b'{"whole": 1}\n'), (b"", b"")]
)
def test_the_only_writer_takes_out_what_a_killed_one_began(
    tmp_path: Path, end: bytes, kept: bytes
) -> None:
    path = tmp_path / "log"
    before = b"x" * 100_000 + b"\n"
    path.write_bytes(before + end)
    LineFile(path, 1_000_000, 1, alone=True).append(b"next")
    assert path.read_bytes() == before + kept + b"next\n"
