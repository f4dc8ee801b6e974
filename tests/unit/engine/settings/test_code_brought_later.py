"""What comes into a folder later, and would run in place of what was shown, counts as code."""

import importlib.util
import json
import os
import py_compile
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tui.engine.settings.servers import folder_files
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


@pytest.mark.parametrize(
    "line",
    [
        "npx -y @acme/notes",
        "npx @acme/notes@1.2",
        "npx --package=@acme/notes zzz",
        "npx -p @acme/notes@latest zzz",
        "npm exec -- @acme/notes",
        "bunx @acme/notes",
        "sh -c 'npx @acme/notes'",
    ],
)
def test_an_installed_package_is_watched_whatever_its_programs_are_called(
    folder: Path, line: str
) -> None:
    assert names(folder, line) == set()
    home = folder / "node_modules" / "@acme" / "notes"
    write(home / "package.json", json.dumps({"bin": {"zzz": "tool.js"}}))
    write(home / "tool.js")
    (folder / "sub").mkdir()
    places = ("", "/package.json", "/tool.js")
    watched = {f"node_modules/@acme/notes{place}" for place in places}
    assert names(folder, line) == watched
    assert names(folder, f"{line} --prefix sub") == watched
    assert "packages in node_modules" in found(folder, line).unwatched


@pytest.mark.parametrize(
    "spec", ["..", "../own", "@a/../own", "/own", "@a", "a/b", "@acme/..", "@"]
)
def test_what_is_no_name_of_a_package_is_not_sought_among_them(folder: Path, spec: str) -> None:
    write(folder / "node_modules" / "@a" / "x")
    write(folder / "own" / "package.json", "{}")
    write(folder / "node_modules" / "package.json", "{}")
    assert all("node_modules" not in name for name in names(folder, f"npx {spec}"))


@pytest.mark.parametrize("program", ["uv run", "poetry run python", "pdm run", "pipenv run python"])
def test_a_virtual_environment_that_the_folder_brings_is_watched(
    folder: Path, program: str
) -> None:
    line = f"{program} server.py"
    write(folder / "server.py")
    assert names(folder, line) == {"server.py"}
    assert "packages in .venv" in found(folder, line).unwatched
    venv = folder / ".venv"
    write(venv / "pyvenv.cfg")
    write(venv / "bin" / "python", "#!/bin/sh")
    assert names(folder, line) == {"server.py", ".venv/pyvenv.cfg", ".venv/bin"}
    before = found(folder, line)
    write(venv / "bin" / "python", "#!/bin/bash")
    assert found(folder, line).files != before.files
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to("../../own/python")
    write(folder / "own" / "python", "#!/bin/sh")
    assert names(folder, line) == {"server.py", ".venv/pyvenv.cfg", ".venv/bin", "own/python"}


def test_a_virtual_environment_counts_with_the_system_program_it_names(folder: Path) -> None:
    python = folder / ".venv" / "bin" / "python"
    write(python)
    python.unlink()
    python.symlink_to("/bin/sh")
    before = found(folder, "uv run server.py")
    assert names(folder, "uv run server.py") == {".venv/bin"}
    python.unlink()
    python.symlink_to("/bin/cat")
    assert found(folder, "uv run server.py").files != before.files


def test_a_file_that_names_a_virtual_environment_is_watched(folder: Path) -> None:
    write(folder / ".venv", "/elsewhere")
    assert names(folder, "pipenv run x") == {".venv"}


def compile_other(source: Path, mode: py_compile.PycInvalidationMode) -> Path:
    """Compile something else that Python would run for a source."""
    original = source.read_text()
    made = Path(importlib.util.cache_from_source(str(source)))
    source.write_text("print('other')")
    py_compile.compile(str(source), str(made), invalidation_mode=mode)
    source.write_text(original)
    content = bytearray(made.read_bytes())
    content[8:16] = importlib.util.source_hash(original.encode())
    made.write_bytes(content)
    return made


@pytest.mark.parametrize(
    ("line", "source"), [("-m pkg", "pkg/__main__.py"), ("-m mod", "mod.py"), ("pkg", None)]
)
@pytest.mark.parametrize(
    "mode",
    [
        py_compile.PycInvalidationMode.UNCHECKED_HASH,
        py_compile.PycInvalidationMode.CHECKED_HASH,
    ],
)
@pytest.mark.slow
def test_a_compiled_file_that_runs_in_place_of_its_source_is_watched(
    folder: Path, line: str, source: str | None, mode: py_compile.PycInvalidationMode
) -> None:
    path = folder / (source or "pkg/__main__.py")
    write(path, "print('source')")
    line = f"python {line}"
    py_compile.compile(str(path))
    before = found(folder, line)
    made = compile_other(path, mode)
    shown = subprocess.run(
        [sys.executable, *line.split()[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert shown == "other\n"
    after = found(folder, line)
    assert after.files != before.files
    watched = {one.path for file in after.files for one in (file, *file.members)}
    assert str(made) in watched
    made.unlink()
    made.symlink_to("gone")
    assert found(folder, line).files != after.files


def test_compiled_files_that_python_writes_itself_are_not_watched(folder: Path) -> None:
    write(folder / "pkg" / "__main__.py")
    before = found(folder, "python -m pkg")
    py_compile.compile(str(folder / "pkg" / "__main__.py"))
    assert found(folder, "python -m pkg") == before, "nothing to ask again for"


def test_A17_a_pipe_among_compiled_files_does_not_hang(folder: Path) -> None:
    write(folder / "pkg" / "__main__.py")
    (folder / "pkg" / "__pycache__").mkdir()
    os.mkfifo(folder / "pkg" / "__pycache__" / "__main__.cpython-311.pyc")
    assert "pkg" in names(folder, "python -m pkg")


def test_a_large_file_that_is_made_to_look_unwritten_counts_as_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_files, "MAX_HASHED", 3)
    path = folder / "large.sh"
    write(path, "true")
    state = path.stat()
    before = found(folder, "sh large.sh").files
    path.write_text("evil")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    after = found(folder, "sh large.sh").files
    assert [one.content for one in after] != [one.content for one in before]


def test_a_folder_that_is_named_and_not_watched_is_said_to_be(folder: Path) -> None:
    (folder / "__pycache__").mkdir()
    assert "what lies in __pycache__/" in found(folder, "env PYTHONPATH=__pycache__ x").unwatched
