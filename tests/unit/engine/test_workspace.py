"""Files and folders of the workspace: which word means which, and what goes into a message."""

import gc
import os
from collections.abc import Mapping
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from tui.engine import workspace as workspace_module
from tui.engine.mcp.catalog.offered_tool import MediaPart, TextPart
from tui.engine.workspace import (
    MAX_FILES,
    OutsideError,
    PathReader,
    PathReading,
    UnreadablePathError,
    Workspace,
)

PNG = bytes.fromhex("89504e470d0a1a0a") + b"\0" * 32


Files = Mapping[str, str | bytes]


def write(root: Path, files: Files) -> None:
    """Write files below a folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    rules = {".gitignore": "*.log\nbuild/\n!keep.log\n", "src/.gitignore": "/secret.txt\n"}
    source: Files = {"src/app.py": "print(1)\n", "src/picture.png": PNG, "src/tool.bin": b"\0\1\2"}
    hidden = {
        ".git/config": "",
        "src/secret.txt": "hush",
        "build/out.txt": "built",
        "run.log": "ran",
    }
    shown = {"README.md": "read me", "a b.txt": "blank", "keep.log": "kept"}
    write(folder, {**rules, **source, **hidden, **shown})
    return folder


def opened(*roots: Path) -> Workspace:
    return Workspace(lambda: roots)


def read(workspace: Workspace, typed: str) -> PathReading:
    """Read what a word means."""
    found = workspace.find(typed)
    assert found is not None
    return PathReader(workspace).read(found)


def texts(workspace: Workspace, typed: str) -> list[str]:
    """Read what a word means, and return its texts."""
    return [part.text for part in read(workspace, typed).parts if isinstance(part, TextPart)]


def test_a_file_is_named_from_the_root_and_a_word_that_is_no_path_means_nothing(root: Path) -> None:
    for typed in ("README.md", "./README.md", "src/../README.md", str(root / "README.md")):
        assert texts(opened(root), typed) == ["[File README.md]", "read me", "[End of README.md]"]
    for typed in ("nothing.md", "todo", "a\0b", "..", "~nobody", "/", "x" * 5_000):
        assert opened(root).find(typed) is None, typed


def test_a_picture_of_the_clipboard_is_named_by_its_path_until_the_workspace_ends(
    root: Path,
) -> None:
    workspace = opened(root)
    first, second = workspace.keep_picture(PNG), workspace.keep_picture(PNG)
    assert first != second
    assert read(workspace, first).shown.startswith("[picture.png: image/png")
    with pytest.raises(OutsideError):
        opened(root).find(first)
    folder = Path(first).parent
    with pytest.raises(OutsideError):
        workspace.find(str(folder.parent))
    assert workspace.complete("picture", 9) == ["src/picture.png"]
    del workspace
    gc.collect()
    assert not folder.exists()


def test_what_lies_outside_is_refused_also_behind_a_link(root: Path, tmp_path: Path) -> None:
    write(tmp_path, {"other.txt": "not yours", "work-2/x": "a prefix is no folder"})
    (root / "link.txt").symlink_to(tmp_path / "other.txt")
    (root / "up").symlink_to(tmp_path, target_is_directory=True)
    (root / "alias.md").symlink_to(root / "README.md")
    for typed in ("link.txt", "up/other.txt", "../other.txt", "../work-2/x", "/etc/passwd"):
        with pytest.raises(OutsideError, match="outside the opened folders"):
            opened(root).find(typed)
    assert texts(opened(root), "alias.md")[1] == "read me"
    listed = opened(root).complete("", 100)
    assert "alias.md" in listed
    assert not {"link.txt", "up", "up/"} & set(listed)


def test_what_git_ignores_is_neither_read_nor_listed_nor_in_a_folder(root: Path) -> None:
    for typed in ("run.log", "build/out.txt", "build", "src/secret.txt", ".git/config"):
        with pytest.raises(OutsideError, match=r"ignored by \.gitignore"):
            opened(root).find(typed)
    (root / ".geminiignore").write_text("keep.log\n")
    with pytest.raises(OutsideError, match=r"ignored by \.geminiignore"):
        opened(root).find("keep.log")
    (root / ".geminiignore").unlink()
    listed = opened(root).complete("", 100)
    assert set(listed) == {
        *(".gitignore", "README.md", "a b.txt", "keep.log", "src/"),
        *("src/.gitignore", "src/app.py", "src/picture.png", "src/tool.bin"),
    }
    assert "hush" not in "".join(texts(opened(root), "src"))
    # The rules of the repository around an opened folder hold in it.
    write(root, {"src/deep/x.log": "", "src/deep/y.txt": ""})
    assert opened(root / "src" / "deep").complete("", 10) == ["y.txt"]


def test_a_folder_brings_its_files_and_names_those_that_cannot_go(root: Path) -> None:
    found = read(opened(root), "src/")
    first = found.parts[0]
    assert isinstance(first, TextPart)
    assert first.text.splitlines() == [
        *("[Folder src]", "src/.gitignore", "src/app.py", "src/picture.png"),
        "src/tool.bin (not read)",
    ]
    assert TextPart("print(1)\n") in found.parts
    assert [part.mime_type for part in found.parts if isinstance(part, MediaPart)] == ["image/png"]
    assert found.shown == "[src/: 3 of 4 files]"


def test_a_folder_brings_no_secrets_and_a_name_does(root: Path) -> None:
    secret = ("sub/.env", "sub/.env.local", "sub/id_ed25519", "sub/server.PEM", "sub/.netrc")
    write(root, {**dict.fromkeys(secret, "hush"), "sub/.env.example": "", "sub/identity.py": ""})
    found = read(opened(root), "sub")
    assert "hush" not in "".join(part.text for part in found.parts if isinstance(part, TextPart))
    assert found.shown.startswith("[sub/: 2 of 7 files; not sub/.env, sub/.env.local, ")
    assert "sub/.env (not read: it may contain secrets)" in texts(opened(root), "sub")[0]
    assert texts(opened(root), "sub/.env")[1] == "hush"


def test_what_is_not_utf_8_is_said_to_the_user_and_to_the_model(root: Path) -> None:
    write(root, {"latin.txt": "café".encode("latin-1"), "own.txt": "caf\ufffd"})
    found = read(opened(root), "latin.txt")
    note = "[Not UTF-8: the characters shown as \ufffd are lost.]"
    assert found.shown == f"[latin.txt: 4 characters {note}]"
    assert TextPart(note) in found.parts
    assert read(opened(root), "own.txt").shown == "[own.txt: 4 characters]"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_a_text_with_a_mark_of_its_encoding_is_read(root: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    write(root, {"of-powershell.txt": f"{mark}café".encode(encoding)})
    found = read(opened(root), "of-powershell.txt")
    assert found.shown == "[of-powershell.txt: 4 characters]"
    assert TextPart("café") in found.parts


def test_what_is_too_large_or_unfit_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, {"big.txt": "x" * 3_000, "many/a": "x" * 1_500, "many/b": "x" * 1_500})
    monkeypatch.setattr(workspace_module, "MAX_TEXT_BYTES", 2_000)
    os.mkfifo(root / "pipe")
    workspace = opened(root)
    for typed, words in (
        ("big.txt", "3,000 bytes, and only 2,000 more fit into the message"),
        ("many", "too large in total"),
        ("src/tool.bin", "not text, an image or a PDF"),
        ("pipe", "not a regular file"),
    ):
        with pytest.raises(UnreadablePathError, match=words):
            read(workspace, typed)
    write(root, {f"lot/{number}": "" for number in range(MAX_FILES + 1)})
    with pytest.raises(UnreadablePathError, match="more than 200 files"):
        read(workspace, "lot")


def test_several_roots_have_their_own_paths(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write(other, {"README.md": "the other", "only.md": "here"})
    workspace = opened(root, other)
    assert (texts(workspace, "only.md")[1], texts(workspace, "README.md")[1]) == ("here", "read me")
    assert texts(workspace, str(other / "README.md"))[1] == "the other"
    assert {"only.md", str(other / "README.md")} <= set(workspace.complete("", 100))


def test_A26_a_walk_in_a_folder_ends_in_time(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root / "many", {f"{number}.txt": "" for number in range(60)})
    clock = SimpleNamespace(monotonic=count(step=0.1).__next__)
    monkeypatch.setattr(workspace_module, "time", clock)
    walk = opened(root).walk(root, root / "many")
    seen = list(islice(walk, 10))
    with pytest.raises(UnreadablePathError, match="too many"):
        seen += walk  # what comes before the error stays
    assert 10 <= len(seen) < 30
