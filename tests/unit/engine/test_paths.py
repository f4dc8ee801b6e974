"""Where state is kept, and who may look into it."""

import stat
from pathlib import Path

import pytest

from tui.engine.files.paths import log_dir, state_dir


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_new_folders_are_the_users_alone() -> None:
    assert mode(state_dir()) == 0o700
    assert mode(log_dir()) == 0o700


def test_the_usual_place_is_closed_to_others(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMDECK_HOME")
    place = home / ".local" / "state" / "gemdeck"
    (place / "logs").mkdir(parents=True)
    for folder in (place, place / "logs"):
        folder.chmod(0o775)
    assert state_dir() == place
    assert mode(log_dir()) == 0o700
    assert mode(place) == 0o700


def test_a_chosen_place_may_be_read_by_others_but_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "chosen"
    place.mkdir()
    place.chmod(0o777)
    monkeypatch.setenv("GEMDECK_HOME", str(place))
    assert state_dir() == place
    assert mode(place) == 0o755


def test_a_relative_place_is_one_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEMDECK_HOME", "mine")
    assert state_dir() == tmp_path / "mine"
