"""The git branch of a folder: what its files may say, and that git is never run."""

import os
from pathlib import Path

import pytest

from tui.engine.files.git_branch import MAX_BRANCH, MAX_HEAD, branch_of


def repository(folder: Path, head: str = "ref: refs/heads/main\n") -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(head)
    return folder


@pytest.mark.parametrize(
    ("head", "branch"),
    [
        *(("ref: refs/heads/main\n", "main"), ("ref: refs/heads/topic/a-b\n", "topic/a-b")),
        *(("0123456789abcdef0123456789abcdef01234567\n", "0123456"), ("ref: refs/remotes/x\n", "")),
        *(("", ""), ("rm -rf", ""), ("ref: refs/heads/" + "x" * MAX_HEAD, "")),
    ],
)
def test_the_branch_is_what_head_says(tmp_path: Path, head: str, branch: str) -> None:
    assert branch_of(repository(tmp_path, head)) == branch
    inner = tmp_path / "src" / "deep"
    inner.mkdir(parents=True)
    assert branch_of(inner) == branch


def test_a_hostile_name_is_harmless_and_short(tmp_path: Path) -> None:
    shown = branch_of(repository(tmp_path, "ref: refs/heads/\x1b[2Jevil\u202e\n" + "y" * 300))
    assert shown.startswith("evil⟨U+202E⟩ y")
    assert len(shown) <= MAX_BRANCH


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert branch_of(tmp_path) == ""
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert branch_of(tmp_path) == ""


def test_a_submodule_and_an_inner_worktree_have_their_branch(tmp_path: Path) -> None:
    repository(tmp_path)
    for kind, name in (("modules", "lib"), ("worktrees", "next")):
        inner, own = tmp_path / name, tmp_path / ".git" / kind / name
        inner.mkdir()
        own.mkdir(parents=True)
        (own / "HEAD").write_text(f"ref: refs/heads/{name}-branch\n")
        (inner / ".git").write_text(f"gitdir: ../.git/{kind}/{name}\n")
        assert branch_of(inner) == f"{name}-branch"
        (inner / ".git").write_text(f"gitdir: {own}\n")
        assert branch_of(inner) == f"{name}-branch"


@pytest.mark.parametrize("target", ["{out}", "../.git/modules/../../out", "../.git", "", "//h/x"])
def test_a_folder_that_points_out_of_its_repository_has_no_branch(
    tmp_path: Path, target: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "HEAD").write_text("ref: refs/heads/secret\n")
    inner = repository(tmp_path / "project") / "inner"
    inner.mkdir()
    (inner / ".git").write_text(f"gitdir: {target.format(out=out)}\n")
    assert branch_of(inner) == ""
