import os
import stat
from pathlib import Path

import pytest

from tui.engine.files.atomic import UnfitFileError, locked, read_regular, write_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_written_file_is_private_and_whole(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text("old, and longer than the new")
    file.chmod(0o644)
    write_private(file, b"new")
    assert (file.read_bytes(), mode(file)) == (b"new", 0o600)
    link = tmp_path / "link"
    link.symlink_to(file)
    write_private(link, b"newer")
    assert (link.is_symlink(), file.read_bytes()) == (True, b"newer"), "a link stays"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "state.json"]


def test_only_regular_files_within_the_limit_are_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 2048)
    assert len(read_regular(file, 2048)) == 2048
    with pytest.raises(UnfitFileError, match="larger than 1 KiB"):
        read_regular(file, 1024)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(UnfitFileError, match="not a regular file"):
            read_regular(path, 10)


def test_a_lock_is_let_go_when_the_work_fails(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    with pytest.raises(KeyError), locked(file):
        raise KeyError
    with locked(file, 0):
        assert mode(tmp_path / "state.json.lock") == 0o600
