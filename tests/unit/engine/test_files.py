import os
import stat
from pathlib import Path

import pytest

from tui.engine.files.atomic import UnfitFileError, locked, read_regular, write_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_written_file_is_private_and_whole(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text("old, and longer than the new")
    file.chmod(0o644)
    write_private(file, b"new")
    assert file.read_bytes() == b"new"
    assert mode(file) == 0o600
    assert names(tmp_path) == ["state.json"]


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "state.json"
    target.write_text("old")
    link = tmp_path / "state.json"
    link.symlink_to(target)
    write_private(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


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
