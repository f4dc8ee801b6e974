"""Folders are listed as they are typed."""

from pathlib import Path

import pytest

from tui.engine.workspace import folders_like


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("shop/docs", "shop/data", "shop/.hidden", "shop/du\x1bck", "notes"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "shop" / "dune.txt").touch()
    (tmp_path / "shop" / "down").symlink_to("docs")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        *(("", ["data/", "docs/", "down/"]), ("do", ["docs/", "down/"]), (".h", [".hidden/"])),
        *(("../n", ["../notes/"]), ("~/sh", ["~/shop/"]), ("docs/", []), ("none/x", [])),
        *(("~nobody-at-all/x", []), ("a\0b/", [])),
    ],
)
def test_folders_continue_what_was_typed(place: Path, typed: str, found: list[str]) -> None:
    assert folders_like(typed, place / "shop", 10) == found


def test_no_more_are_listed_than_are_shown(place: Path) -> None:
    assert folders_like("", place / "shop", 1) == ["data/"]
    assert folders_like(f"{place}/", place / "shop", 9) == [f"{place}/notes/", f"{place}/shop/"]
