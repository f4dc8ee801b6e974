"""Where state is kept, how folders are listed, and which branch of git one has."""

import os
import stat
from pathlib import Path

import pytest

from tui.engine.files.git_branch import MAX_BRANCH, MAX_HEAD, branch_of
from tui.engine.files.paths import log_dir, state_dir
from tui.engine.workspace import folders_like


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_usual_place_is_the_users_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (mode(state_dir()), mode(log_dir())) == (0o700, 0o700)
    monkeypatch.delenv("GEMDECK_HOME")
    place = home / ".local" / "state" / "gemdeck"
    (place / "logs").mkdir(parents=True)
    for folder in (place, place / "logs"):
        folder.chmod(0o775)
    assert state_dir() == place
    assert (mode(log_dir()), mode(place)) == (0o700, 0o700)


def test_a_chosen_place_may_be_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "chosen"
    place.mkdir()
    place.chmod(0o777)
    monkeypatch.setenv("GEMDECK_HOME", str(place))
    assert (state_dir(), mode(place)) == (place, 0o755)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("shop/docs", "shop/data", "shop/.hidden", "shop/du\x1bck", "notes"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "shop" / "dune.txt").touch()
    (tmp_path / "shop" / "down").symlink_to("docs")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_folders_continue_what_was_typed(place: Path) -> None:
    for typed, found in [
        *(("", ["data/", "docs/", "down/"]), ("do", ["docs/", "down/"]), (".h", [".hidden/"])),
        *(("../n", ["../notes/"]), ("~/sh", ["~/shop/"]), ("docs/", []), ("none/x", [])),
        *(("~nobody-at-all/x", []), ("a\0b/", [])),
    ]:
        assert folders_like(typed, place / "shop", 10) == found
    assert folders_like("", place / "shop", 1) == ["data/"]
    assert folders_like(f"{place}/", place / "shop", 9) == [f"{place}/notes/", f"{place}/shop/"]


def repository(folder: Path, head: str = "ref: refs/heads/main\n") -> Path:
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    (folder / ".git" / "HEAD").write_text(head)
    return folder


def test_the_branch_is_what_head_says(tmp_path: Path) -> None:
    (inner := tmp_path / "src" / "deep").mkdir(parents=True)
    for head, branch in [
        *(("ref: refs/heads/main\n", "main"), ("ref: refs/heads/topic/a-b\n", "topic/a-b")),
        *(("0123456789abcdef0123456789abcdef01234567\n", "0123456"), ("ref: refs/remotes/x\n", "")),
        *(("", ""), ("rm -rf", ""), ("ref: refs/heads/" + "x" * MAX_HEAD, "")),
    ]:
        assert branch_of(repository(tmp_path, head)) == branch
        assert branch_of(inner) == branch, head
    shown = branch_of(repository(tmp_path, "ref: refs/heads/\x1b[2Jevil\u202e\n" + "y" * 300))
    assert shown.startswith("evil⟨U+202E⟩ y"), "a hostile name is harmless and short"
    assert len(shown) <= MAX_BRANCH
    (tmp_path / ".git" / "HEAD").unlink()
    assert branch_of(tmp_path) == ""
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert branch_of(tmp_path) == "", "what is no regular file is not read"


def test_a_submodule_and_an_inner_worktree_have_their_branch(tmp_path: Path) -> None:
    repository(tmp_path)
    for kind, name in (("modules", "lib"), ("worktrees", "next")):
        inner, own = tmp_path / name, tmp_path / ".git" / kind / name
        inner.mkdir()
        own.mkdir(parents=True)
        (own / "HEAD").write_text(f"ref: refs/heads/{name}-branch\n")
        for place in (f"../.git/{kind}/{name}", own):
            (inner / ".git").write_text(f"gitdir: {place}\n")
            assert branch_of(inner) == f"{name}-branch"


def test_a_folder_that_points_out_of_its_repository_has_no_branch(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "HEAD").write_text("ref: refs/heads/secret\n")
    inner = repository(tmp_path / "project") / "inner"
    inner.mkdir()
    for target in ("{out}", "../.git/modules/../../out", "../.git", "", "//h/x"):
        (inner / ".git").write_text(f"gitdir: {target.format(out=out)}\n")
        assert branch_of(inner) == "", target
