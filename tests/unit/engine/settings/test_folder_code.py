"""Which commands would run code of the folder they start in, and how it tells servers apart."""

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.engine.settings.conftest import Machine
from tui.engine.definitions.definition import FolderFile, ServerDefinition
from tui.engine.definitions.fingerprint import server_fingerprint
from tui.engine.definitions.folder_code import changed_code, code_folders, is_database, runs_code_of
from tui.model.servers import Origin, ServerId, Transport


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "clone"
    (made / "node_modules" / ".bin").mkdir(parents=True)
    (made / "server.py").write_text("")
    (made / "data.db").write_text("")
    (tmp_path / "own.py").write_text("")
    return made


RUNS = [
    *("npx -y pkg", "NPX.cmd pkg", "/usr/bin/npx pkg", "npm exec pkg", "pnpm dlx pkg"),
    *("yarn dlx pkg", "bunx pkg", "bun x.js", "uv run pkg", "uvx pkg", "pipx run pkg"),
    *("deno run /abs/x.ts", "make serve", "just serve", "cargo run", "go1.22 run .", "dotnet run"),
    *("gradle run", "python -m pkg", "python3.12 -m pkg", "python3.13t -mpkg"),
    *("python -I -c 'import pkg'", "python", "python server.py", "python -u ./server.py"),
    *("python {folder}/server.py", "python -W ignore server.py", "node server.js"),
    *("node20 server.js", "nodejs -e 1", "node --require ./x.js /abs/x.js", "node -r x /abs/x.js"),
    *("node --import=./x.mjs /abs/x.js", "ruby -rx /abs/x.rb", "perl -Mx /abs/x.pl"),
    *("php -d auto_prepend_file=x /abs/x.php", "java -cp . Main", "java -jar server.jar"),
    *("bash -c 'npx pkg'", "sh run.sh", "./server", "bin/server", "{folder}/server"),
    *("{folder}/node_modules/.bin/server", "env npx pkg", "env A=1 python -m pkg", "env -S npx"),
    *("env NODE_OPTIONS=--require=./x.js node /abs/x.js", "env PATH=./bin:/bin server"),
    *("sudo -u me nice -n 5 npx pkg", "timeout 5 ./server", "nohup python server.py"),
    *("server --plugin=server.py", "docker compose run server", "server --db-path ./data.db"),
    "/lib64/ld-linux-x86-64.so.2 /usr/bin/python3 -m evil",
    "/lib64/ld-linux-x86-64.so.2 --library-path {folder} /usr/bin/server",
    *("find . -exec python3 -m evil ;", "tar cf /dev/null --checkpoint-action=exec=./prog ."),
    *("git -c alias.x=!./prog x", "fnm exec --using=22 npx -y x"),
    *("supergateway --stdio 'npx -y x'", "mcp-proxy npx -y x", "fastmcp run server.py:mcp"),
    *("launch run server.py:mcp", "node /usr/lib/node_modules/npm/bin/npx-cli.js -y x"),
    *("git status", "hg status", "bmake serve", "gdb -x data.db", "vim.basic -u data.db"),
    *("sqlite3 -init data.db", "mawk -f data.db", "mawk -fdata.db", "tool -fdata.db"),
    *("tool @data.db", "perl5.36-x86_64-linux-gnu -Mx /abs/x.pl", "python3-dbg -m pkg"),
    *("php-cli run.php", "php /abs/x.php", "lua /abs/x.lua", "java /abs/X.java"),
    *("groovy /abs/x.groovy", "dotenv -- node /abs/x.js", "bash-static run.sh", "tool -m pkg"),
    *("tool --require x", "tool --import=x /abs/x.js"),
    *("java -Djava.library.path=. -jar /abs/x.jar", "java -Djava.library.path=lib -jar /abs/x.jar"),
    *("java -Dlib={folder} -jar /abs/x.jar", "java -XX:Flags=opts -jar /abs/x.jar"),
    *("python -X pycache_prefix=cache {own}", "bash --norc /abs/x.sh", "perl -w /abs/x.pl"),
]

RUNS_NOTHING = [
    *("python {own}", "python3.12 -u -I {own}", "python -X utf8 {own} server.db"),
    *("node --max-old-space-size=4096 --no-warnings /abs/x.js", "bash /abs/x.sh"),
    *("java -Xmx1g -jar /abs/x.jar", "server", "/usr/bin/server --repository ."),
    "server --root=/srv --name my-server https://host/x",
    *("perl5.36-x86_64-linux-gnu /abs/x.pl", "python3-dbg -u {own}"),
    "java -Djava.library.path=/usr/lib -Dmode=stdio -XX:+UseZGC -jar /abs/x.jar",
    *("docker run -i --rm node:20 node -e 1", "docker run -i --rm mcp/fetch", "nice -n 10 server"),
    *("env A=1 /usr/bin/server", "env python {own}"),
]


def runs(
    folder: Path, command: str, *args: str, program: str = "", env: dict[str, str] | None = None
) -> bool:
    """Tell whether a server that starts in a folder would run code of it."""
    one = ServerDefinition(
        ServerId("it"), Origin.USER, Transport.STDIO, command, args, program=program
    )
    return runs_code_of(folder, folder, one, env or {})


def judged(line: str, folder: Path, env: dict[str, str] | None = None) -> bool:
    line = line.format(folder=folder, own=folder.parent / "own.py")
    words = [word.strip("'") for word in line.split(" ")]
    if "'" in line:  # the quoted part is one word
        head, _, quoted = line.partition(" '")
        words = [*head.split(" "), quoted.rstrip("'")]
    return runs(folder, *words, env=env)


def test_A14_it_would_run_code_of_the_folder_or_not(folder: Path) -> None:
    assert [line for line in (*RUNS, *RUNS_NOTHING) if judged(line, folder)] == RUNS


LOADS = (
    *("PYTHONPATH=src", f"PYTHONPATH=/usr/lib{os.pathsep}", "PYTHONPATH={folder}/pylib"),
    *("NODE_OPTIONS=--require ./x.js", "NODE_OPTIONS=--experimental-loader=ts-node/esm"),
    *("LD_PRELOAD=./x.so", "LD_PRELOAD=lib/evil.so", "LD_LIBRARY_PATH=/usr/lib:"),
    *("BASH_ENV=env.sh", "BASH_ENV={folder}/env.sh", "PATH={folder}/bin:/usr/bin"),
    *("PATH=/usr/bin::/bin", "PERL5OPT=-Ilib -MEvil", "RUBYOPT=-rx", "PERLLIB=lib"),
    *("JAVA_TOOL_OPTIONS=-javaagent:x.jar", "PYTHONUSERBASE=pyub", "PERL_USE_UNSAFE_INC=1"),
    *("PYTHONPYCACHEPREFIX=cache", "OPENSSL_CONF=openssl.cnf", "LUA_PATH=?.lua"),
    *("GEM_HOME=gems", "BUNDLE_GEMFILE=Gemfile", "PHPRC=conf", "PHP_INI_SCAN_DIR=conf"),
    *("DOTNET_STARTUP_HOOKS=x.dll", "TCLLIBPATH=lib"),
)

LOADS_NOTHING = (
    *("PYTHONPATH=/usr/lib", "NODE_OPTIONS=--max-old-space-size=4096", "TOKEN=./x"),
    *("NODE_OPTIONS=--no-warnings --max-old-space-size=99", "DATA=./data.db"),
    *("DATA=/srv:{folder}/data.db", "BASH_ENV=/etc/env.sh", "PATH=/usr/bin:/opt/my tools/bin"),
    *("JAVA_TOOL_OPTIONS=-Xmx1g", "LD_PRELOAD=/usr/lib/x.so", "PYTHONUNBUFFERED=1"),
    "HTTPS_PROXY=http://127.0.0.1:3128",
)


def test_A14_a_variable_may_load_code_of_the_folder(folder: Path) -> None:
    def loads(setting: str) -> bool:
        name, _, value = setting.format(folder=folder).partition("=")
        return judged("server", folder, env={name: value})

    assert [one for one in (*LOADS, *LOADS_NOTHING) if loads(one)] == [*LOADS]


def test_A14_a_program_is_known_by_where_it_leads_to(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "mytool"
    other.symlink_to(sys.executable)
    assert runs(folder, "mytool", "-m", "pkg", program=str(other))
    inside = tmp_path / "inside"
    inside.symlink_to(folder / "server.py")
    assert runs(folder, str(inside), program=str(inside))
    assert runs(folder, sys.executable, str(inside), program=sys.executable)


def reached(folder: Path, line: str) -> bool:
    """Tell whether a server that starts elsewhere would run code of the folder."""
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    command, *args = line.format(folder=folder, own=folder.parent / "own.py").split()
    server = ServerDefinition(
        ServerId("it"), Origin.USER, Transport.STDIO, command, tuple(args), cwd=elsewhere
    )
    return folder in code_folders(server, folder, folder.parent, {})


def test_A14_a_server_elsewhere_runs_what_it_is_given(folder: Path) -> None:
    lines = [
        *("node {folder}", "node ../clone", "python {folder}", "python {folder}/later.py"),
        *("python -m pkg {folder}", "npm --prefix {folder} run serve", "npx {folder}"),
        *("make -C {folder}", "uv --directory {folder} run serve", "git -C {folder} status"),
        *("node --import {folder}/x.mjs {own}", "env PYTHONPATH={folder} python {own}"),
        *("docker compose --project-directory {folder} up", "{folder}/later", "env {folder}/later"),
        *("node {own} {folder}/server.py", "server --db-path {folder}/data.db"),
        *("terraform -chdir={folder} plan", "server --plugin-dir {folder}"),
    ]
    assert [line for line in lines if not reached(folder, line)] == []


def test_A14_a_folder_that_a_program_does_not_run_is_data(folder: Path) -> None:
    (folder / "code").mkdir()
    (folder / "go").mkdir()
    as_data = ["node {own} {folder}", "node {own} {folder}/node_modules", "node {own} ../clone"]
    as_data.append("node {own} {folder}/code {folder}/go")
    lines = [
        *(*as_data, "python -u {own} --root={folder}", "server {folder}"),
        *("docker run -v {folder}:/workspace mcp/fs:1", "server --db-path {folder}/later.db"),
    ]
    assert [line for line in lines if reached(folder, line)] == []
    here = [line.replace("..", str(folder.parent)) for line in as_data]
    assert [line for line in here if judged(line, folder)] == []


def test_a_server_that_touches_no_file_of_a_folder_keeps_its_fingerprint(machine: Machine) -> None:
    it = ServerDefinition(ServerId("it"), Origin.USER, Transport.STDIO, "npx", ("-y", "pkg"))
    program, source = "/usr/bin/npx", "~/.gemini/settings.json"
    known = replace(it, env={"A": "1"}, cwd=Path("/srv"), program=program, source=source)
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
    assert [file.content for file in seen[1].files] == [""]
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


def test_data_that_a_variable_of_the_user_names_asks_nothing_and_code_does(
    machine: Machine,
) -> None:
    def files(name: str, value: str, *args: str) -> list[str]:
        server = machine.server(command="npx", args=["-y", "x", *args], env={name: value})
        return [Path(file.path).name for file in server.files]

    for file in ("m.json", "m.jsonl", "m.js", "m.py"):
        (machine.folder / file).write_text("{}")
    assert files("MEMORY_FILE_PATH", "./m.json") == []
    assert files("DB_PATH", str(machine.folder / "m.jsonl")) == []
    for name, value, args in (
        *(("MEMORY_FILE_PATH", "m.js", ""), ("MEMORY_FILE_PATH", "m.py", "")),
        *(("DATA_CONFIG", "m.json", ""), ("NODE_OPTIONS", "m.json", "")),
        *(("CONFIG_FILE", "m.json", ""), ("MEMORY_FILE_PATH", "m.json", "--config=m.json")),
    ):
        assert files(name, value, *args.split()) == [value], (name, value, args)
    (machine.folder / "m.json").chmod(0o755)
    assert files("MEMORY_FILE_PATH", "m.json") == ["m.json"]
    (machine.folder / "m.json").chmod(0o644)
    entry = {"command": "npx", "args": [], "env": {"MEMORY_FILE_PATH": "m.json"}}
    machine.write("user", {})
    machine.write("project", {"mcpServers": {"it": entry}})
    assert machine.servers()["it"].files[0].content, "a project cannot say so"


@pytest.mark.timeout(30)
def test_A17_a_pipe_in_the_place_of_a_database_is_not_waited_for(tmp_path: Path) -> None:
    database, pipe = tmp_path / "notes.db", tmp_path / "pipe.db"
    database.write_bytes(b"SQLite format 3\0...")
    assert is_database(FolderFile(str(database), ""))
    os.mkfifo(pipe)
    assert not is_database(FolderFile(str(pipe), ""))


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
