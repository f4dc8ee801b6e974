"""What comes into a folder later, and would run in place of what was shown, counts as code."""

import json
import os
import shlex
from pathlib import Path

import pytest

from tui.engine.settings.servers.command_files import CommandFiles, command_files
from tui.engine.settings.servers.folder_files import FolderFiles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = Path(os.path.realpath(tmp_path)) / "clone"
    made.mkdir()
    return made


def write(path: Path, content: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def found(folder: Path, line: str) -> CommandFiles:
    return command_files(shlex.split(line), "", {}, folder, FolderFiles().within([folder]))


def names(folder: Path, line: str) -> set[str]:
    """Name the files and folders that are watched."""
    return {os.path.relpath(one.path, folder) for one in found(folder, line).files}


@pytest.mark.parametrize(
    "line", ["npx -y notes", "npm exec notes", "pnpm dlx notes", "yarn dlx notes", "bunx notes"]
)
@pytest.mark.parametrize(
    ("programs", "watched"),
    [
        ({"bin": {"notes": "tool.js"}}, "tool.js"),
        ({"bin": "tool"}, "tool.js"),
        ({"directories": {"bin": "tools"}}, "tools"),
    ],
)
def test_a_folder_that_passes_for_the_package_is_watched(
    folder: Path, line: str, programs: dict[str, object], watched: str
) -> None:
    write(folder / "tools" / "notes.js")
    write(folder / "tool.js")
    assert names(folder, line) == set()
    write(folder / "package.json", json.dumps({"name": "notes", **programs}))
    assert names(folder, line) == {"package.json", watched}
