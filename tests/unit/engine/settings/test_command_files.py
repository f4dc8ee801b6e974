"""Which files of a folder an entry names, and that nothing of it makes the search hang."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.node import node_executable
from tui.engine.definitions import folder_code
from tui.engine.definitions.definition import FolderFile

NODE = node_executable()
PACKAGE = "package.json"
FILES = {
    PACKAGE: json.dumps({"main": "lib/main", "scripts": {"start": "node dist"}}),
    "pyproject.toml": "",
    "compose.yaml": "",
    "Makefile": "",
    "uv.lock": "",
    ".npmrc": "",
    "server.py": "print(__file__)",
    "mod.py": "print(__file__)",
    "mod/__main__.py": "",
    "pkg/__main__.py": "print(__file__)",
    "pkg/sub/mod.py": "print(__file__)",
    "app/__main__.py": "print(__file__)",
    "src/tool/cli.py": "",
    "lib/main.js": "console.log(__filename)",
    "dist/index.js": "console.log(__filename)",
    "hook.js": "console.log(__filename)",
    "go.sh": 'echo "$PWD/go.sh"',
    "data.csv": "",
    "extra.so": "",
    "part/package.json": "{}",
    "part/Makefile": "",
    "node_modules/.bin/tool": "",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = Path(os.path.realpath(tmp_path)) / "clone"
    for name, content in FILES.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (tmp_path / "own.py").write_text("")
    return made


def found(folder: Path, line: str, **env: str) -> tuple[FolderFile, ...]:
    return folder_code.named_files(
        shlex.split(line), "", env, folder, folder_code.FolderFiles().within([folder])
    )


def names(folder: Path, line: str, **env: str) -> set[str]:
    return {os.path.relpath(one.path, folder) for one in found(folder, line, **env)}


NPM = f".npmrc {PACKAGE}"
UV = "pyproject.toml uv.lock"


def test_an_entry_is_known_by_the_files_that_it_names(folder: Path) -> None:
    for line, watched in (
        *(("python server.py", "server.py"), ("python3.12 -u ./server.py", "server.py")),
        ("python {folder}/server.py --db=data.csv", "server.py data.csv"),
        *(("python -m mod", "mod.py mod/__main__.py"), ("python -Impkg.sub.mod", "pkg/sub/mod.py")),
        *(("python app", "app/__main__.py"), ("python -m no.such", ""), ("python -m ..pkg", "")),
        *(("python {own}", ""), ("node .", f"{PACKAGE} lib/main.js")),
        *(("node lib/main", "lib/main.js"), ("node dist", "dist/index.js")),
        *(("node -r ./hook {own}", "hook.js"), ("tsx watch lib/main", "lib/main.js")),
        *(("npm start", NPM), ("npx -y tool", NPM), ("env npx -y tool", NPM)),
        ("node /usr/lib/npm-cli.js start", NPM),
        ("npm --prefix part start", f"{NPM} part/{PACKAGE}"),
        *(("npm --prefix=part start", f"{NPM} part/{PACKAGE}"), ("make serve", "Makefile")),
        *(("make -C part", "Makefile part/Makefile"), ("uv run server.py", f"server.py {UV}")),
        *(("uvx --from . tool", UV), ("make -C{folder}/part", "Makefile part/Makefile")),
        ("npx file:{folder}/part", f"{NPM} part/package.json"),
        ("uv run -m pkg", f"{UV} pkg/__main__.py"),
        ("uv --directory pkg run __main__.py", f"{UV} pkg/__main__.py"),
        ("uv --directory src run -m tool.cli", f"{UV} src/tool/cli.py"),
        *(("uvx git-server --repository .", ""), ("sh -c './go.sh'", "go.sh")),
        *(("docker run -i node:20 npm start", ""), ("docker compose run it", "compose.yaml")),
        ("npx -y tool docker", f"{NPM} compose.yaml"),
        *(("fastmcp run server.py:mcp", "server.py"), ("tool -fdata.csv", "data.csv")),
        *(("tool @data.csv", "data.csv"), ("server --root . part src", "")),
        ("/usr/bin/server /etc/passwd ../own.py", ""),
    ):
        whole = line.format(own=folder.parent / "own.py", folder=folder)
        assert names(folder, whole) == set(watched.split()), line


def test_a_variable_is_known_by_the_files_that_it_names(folder: Path) -> None:
    for name, value, watched in [
        ("NODE_OPTIONS", "--no-warnings --require ./hook", "hook.js"),
        ("PYTHONSTARTUP", "server.py", "server.py"),
        ("LD_PRELOAD", "/usr/lib/x.so ./extra.so", "extra.so"),
        ("CONFIG", "{folder}/data.csv", "data.csv"),
        ("FILES", f"go.sh{os.pathsep}lib/main.js", "go.sh lib/main.js"),
        ("PYTHONPATH", "src", ""),
        ("PATH", "go.sh", ""),
    ]:
        assert names(folder, "server", **{name: value.format(folder=folder)}) == set(
            watched.split()
        )


def test_a_module_is_also_sought_where_a_variable_says(folder: Path) -> None:
    assert names(folder, "python -m tool.cli", PYTHONPATH="src") == {"src/tool/cli.py"}


@pytest.mark.slow
def test_what_real_programs_begin_with_is_watched(folder: Path) -> None:
    for line in [
        *(f"{sys.executable} server.py", f"{sys.executable} -m mod"),
        *(f"{sys.executable} -m pkg.sub.mod", f"{sys.executable} app", f"{NODE} ."),
        *(f"{NODE} lib/main", f"{NODE} dist", "sh go.sh"),
    ]:
        command = shlex.split(line)
        run = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True, timeout=60
        )
        [shown] = run.stdout.split()
        assert shown in {one.path for one in found(folder, line)}


@pytest.mark.timeout(30)
def test_A17_no_folder_makes_the_search_hang_or_fail(folder: Path) -> None:
    (folder / "mod.py").unlink()
    os.mkfifo(folder / "mod.py")
    (folder / "loop.py").symlink_to("loop.py")
    odd = ("[" * 10_000, '{"main": "' + "x" * 10_000_000 + '"}', json.dumps({"main": "\0/../../x"}))
    for manifest in (FILES[PACKAGE], *odd):
        (folder / PACKAGE).write_text(manifest)
        line = "node -m mod . loop.py 'a\0b'"
        files = found(folder, line, NODE_OPTIONS="--require ./a\0b", X="\0")
        assert {os.path.relpath(one.path, folder) for one in files} >= {PACKAGE, "mod/__main__.py"}


def test_A17_of_many_names_the_first_are_looked_at(folder: Path) -> None:
    many = [f"{number}.txt" for number in range(folder_code.MAX_FILES + 6)]
    for name in many:
        (folder / name).write_text("")
    assert len(found(folder, " ".join(["server", *many]))) == folder_code.MAX_FILES
    words = ["x", *map(str, range(folder_code.MAX_NAMES - 2))]
    assert names(folder, " ".join(["server", *words, "go.sh", "server.py"])) == {"go.sh"}


def test_A22_a_large_file_that_is_made_to_look_unwritten_counts_as_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_code, "MAX_HASHED", 3)
    path = folder / "large.sh"
    path.write_text("true")
    state = path.stat()
    [before] = found(folder, "sh large.sh")
    path.write_text("evil")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    [after] = found(folder, "sh large.sh")
    assert after.content != before.content


def test_A05_a_link_counts_with_what_it_leads_to(folder: Path) -> None:
    link = folder / "link.py"
    link.symlink_to(folder.parent / "own.py")
    [before] = found(folder, "python link.py")
    link.unlink()
    link.symlink_to("server.py")
    [after] = found(folder, "python link.py")
    assert (before.path, after.path) == (str(link), str(link))
    assert after.content != before.content
    (folder.parent / "back.py").symlink_to(folder / "server.py")
    assert [one.content for one in found(folder, "python ../back.py")] == [after.content]
