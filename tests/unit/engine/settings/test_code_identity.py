"""What the code of folders has to do with which server it is."""

import json
import os
import shlex
from pathlib import Path

import pytest

from tests.unit.engine.settings.conftest import Machine
from tui.engine.settings.servers import code_search, folder_files
from tui.engine.settings.servers.definitions import ServerDefinition
from tui.engine.settings.servers.fingerprint import server_fingerprint
from tui.engine.settings.servers.folder_files import file_head
from tui.engine.settings.servers.server_code import changed_code
from tui.model.servers import Origin, ServerId, Transport


def test_a_server_that_touches_no_file_of_a_folder_keeps_its_fingerprint(machine: Machine) -> None:
    known = ServerDefinition(
        ServerId("it"),
        Origin.USER,
        Transport.STDIO,
        command="npx",
        args=("-y", "pkg"),
        env={"A": "1"},
        cwd=Path("/srv"),
        program="/usr/bin/npx",
        source="~/.gemini/settings.json",
    )
    before = "57bb3b7b598816e8d2fbbadb7d70678fb3e123ea642e116b4e7e51c306556a3a"
    assert server_fingerprint(known, b"salt") == before, "what was allowed before stays allowed"
    machine.environ["PATH"] = os.environ["PATH"]
    for line in ("npx -y pkg .", "uvx pkg --repository .", "docker run -i x", "sh -c 'echo 1'"):
        command, *args = shlex.split(line)
        assert machine.server(command=command, args=args).files == ()


def test_the_code_of_a_folder_is_part_of_what_a_server_of_the_user_is(machine: Machine) -> None:
    entry = {"command": "python3", "args": ["server.py"]}
    script = machine.folder / "server.py"
    prints = {machine.server(**entry).fingerprint}
    for content in ("one", "two"):
        script.write_text(content)
        prints.add(machine.server(**entry).fingerprint)
    assert len(prints) == 3
    other = machine.home / "other"
    other.mkdir()
    (other / "server.py").write_text("two")
    [server] = machine.load_folder(other).servers
    assert server.fingerprint not in prints, "the same file elsewhere may import something else"
    started = machine.server(command="python3", args=["server.py"], cwd=str(other))
    assert [file.path for file in started.files] == [str(other / "server.py")]


def test_a_server_that_the_user_develops_is_its_entry(machine: Machine) -> None:
    entry = {"command": "python3", "args": ["server.py"]}
    settings = {"mcpServers": {"it": entry}, "gemdeck": {"developedServers": ["it"]}}
    machine.write("user", settings)
    script = machine.folder / "server.py"
    seen = []
    for content in ("one", "two"):
        script.write_text(content)
        seen.append(machine.servers()["it"])
    assert seen[0].fingerprint == seen[1].fingerprint
    assert [(file.content, file.state) for file in seen[1].files] == [("", None)]
    assert "its code, because you develop it (gemdeck.developedServers)" in seen[1].unwatched
    machine.write("user", {})
    machine.write("project", settings)
    assert machine.servers()["it"].files[0].content, "a project cannot say so"
    machine.write("user", {"gemdeck": {"developedServers": ["it"]}})
    assert machine.servers()["it"].files[0].content, "nor is its server meant"


def test_a_database_that_a_server_of_the_user_writes_asks_nothing(machine: Machine) -> None:
    database = machine.folder / "notes.db"
    seen = []
    for content in (b"1", b"2"):
        database.write_bytes(b"SQLite format 3\0" + content)
        seen.append(machine.server(command="true", args=["--db", "notes.db"]))
    assert seen[0].fingerprint == seen[1].fingerprint
    assert seen[0].unwatched == ("the database notes.db",)
    script = machine.folder / "notes.sh"
    database.rename(script)
    assert machine.server(command="sh", args=["notes.sh"]).files[0].content
    script.rename(database)
    machine.write("user", {})
    machine.write("project", {"mcpServers": {"it": {"command": "true", "args": ["notes.db"]}}})
    assert machine.servers()["it"].files[0].content


@pytest.mark.timeout(30)
def test_A17_a_pipe_in_the_place_of_a_database_is_not_waited_for(tmp_path: Path) -> None:
    database, pipe = tmp_path / "notes.db", tmp_path / "pipe.db"
    database.write_bytes(b"SQLite format 3\0...")
    assert file_head(str(database), 6) == b"SQLite"
    os.mkfifo(pipe)
    assert file_head(str(pipe), 6) == b""
    assert file_head(str(tmp_path), 6) == b""


def test_a_new_package_is_a_change_and_one_that_was_too_much_to_watch_is_not(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed() -> list[str]:
        return list(changed_code(server, machine.environ, machine.folder, machine.home))

    (machine.folder / "server.py").write_text("")
    package = machine.folder / "lib"
    entry = {"command": "python3", "args": ["server.py"], "env": {"PYTHONPATH": "lib"}}
    server = machine.server(**entry)
    assert changed() == []
    package.mkdir()
    server = machine.server(**entry)
    assert changed() == [], "an empty folder holds no code"
    (package / "json.py").write_text("")
    assert changed() == [str(package)]
    other = machine.folder / "other" / "lib"
    other.mkdir(parents=True)
    entry["env"] = {"PYTHONPATH": f"other/lib{os.pathsep}lib"}
    monkeypatch.setattr(folder_files, "ALWAYS_READ", 1)
    monkeypatch.setattr(folder_files, "MAX_PACKAGE_TIME", 0)
    server = machine.server(**entry)
    assert "what lies in lib/, which takes too long to read" in server.unwatched
    assert changed() == []
    (other / "json.py").write_text("")
    assert changed() == [str(other)], "another folder of that name is new code"
    monkeypatch.undo()
    monkeypatch.setattr(code_search, "MAX_PACKAGE_FILES", 1)
    server = machine.server(**entry)
    assert "what lies in lib/, which is too much beside the rest" in server.unwatched
    assert changed() == []
    (other / "json.py").unlink()
    assert changed() == [str(other / "json.py")], "there is room for the other one now"


def test_programs_in_the_home_are_the_users_own(machine: Machine) -> None:
    program = machine.home / "bin" / "tool"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    machine.environ["PATH"] = str(program.parent)
    machine.write("user", {"mcpServers": {"it": {"command": "tool"}}})
    [server] = machine.load_folder(machine.home).servers
    assert (server.program, server.files) == (str(program), ())
    machine.write("user", {"mcpServers": {"it": {"command": "./bin/tool"}}})
    [server] = machine.load_folder(machine.home).servers
    assert [file.path for file in server.files] == [str(program)]
    assert server.unwatched == ("what tool loads",)


def test_what_runners_find_above_a_folder_is_part_of_what_a_server_is(machine: Machine) -> None:
    folder = machine.home / "work" / "clone" / "sub"
    folder.mkdir(parents=True)
    machine.write("user", {"mcpServers": {"it": {"command": "npm", "args": ["start"]}}})
    seen = [machine.load_folder(folder).servers[0]]
    manifest, script = folder.parent / "package.json", folder.parent / "run.js"
    for content in ("one", "two"):
        manifest.write_text(json.dumps({"scripts": {"start": "node run.js"}}))
        script.write_text(content)
        seen.append(machine.load_folder(folder).servers[0])
    assert len({server.fingerprint for server in seen}) == 3
    assert {file.path for file in seen[-1].files} == {str(manifest), str(script)}


def test_the_home_and_what_lies_above_it_is_no_project(machine: Machine) -> None:
    folder = machine.home / "clone" / "sub"
    folder.mkdir(parents=True)
    (machine.home / "package.json").write_text("{}")
    (machine.home.parent / ".git").mkdir()
    machine.write("user", {"mcpServers": {"it": {"command": "npm", "args": ["start"]}}})
    assert machine.load_folder(folder).servers[0].files == ()
