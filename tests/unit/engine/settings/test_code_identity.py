"""What the code of folders has to do with which server it is."""

import os
import shlex
from pathlib import Path

import pytest

from tests.unit.engine.settings.conftest import Machine
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.fingerprint import server_fingerprint
from tui.engine.definitions.folder_code import changed_code, file_head
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
    assert [file.content for file in seen[0].files] == [""]
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


def test_a_file_that_comes_later_and_is_named_is_a_change(machine: Machine) -> None:
    (machine.folder / "tool").mkdir()
    (machine.folder / "tool" / "__main__.py").write_text("")
    server = machine.server(command="python3", args=["-m", "tool"])

    def changed() -> list[str]:
        return list(changed_code(server, machine.environ, machine.folder, machine.home))

    assert changed() == []
    (machine.folder / "tool" / "other.py").write_text("")
    assert changed() == [], "what the files load is not watched"
    (machine.folder / "tool.py").write_text("")
    assert changed() == [str(machine.folder / "tool.py")]


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


def test_a_runner_is_known_by_the_manifests_where_it_runs(machine: Machine) -> None:
    folder = machine.home / "work" / "clone"
    (folder / "sub").mkdir(parents=True)
    args = ["--prefix", "sub", "start"]
    machine.write("user", {"mcpServers": {"it": {"command": "npm", "args": args}}})
    seen = [machine.load_folder(folder).servers[0]]
    for content in ("{}", "[]"):
        (folder / "package.json").write_text("{}")
        (folder / "sub" / "package.json").write_text(content)
        (folder.parent / "package.json").write_text(content)
        seen.append(machine.load_folder(folder).servers[0])
    assert len({server.fingerprint for server in seen}) == 3
    places = {str(Path(file.path).relative_to(folder)) for file in seen[-1].files}
    assert places == {"package.json", "sub/package.json"}


def test_what_waits_for_no_yes_is_bound_to_no_file(machine: Machine) -> None:
    (machine.folder / "package.json").write_text("{}")
    own = machine.home / "own.js"
    own.write_text("")
    for args in ([str(own), str(machine.folder)], [str(own), "."]):
        assert machine.server(command="node", args=args).files == ()
    assert machine.server(command="docker", args=["run", "-i", "x", "npm", "start"]).files == ()
