"""Trust and fingerprints stand for what would run: a change asks again and says what it was."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.security.folders import Reader, reader
from tests.security.opened import place
from tui.engine.definitions.outside import needs_folder
from tui.engine.definitions.programs import find_program, guarded_folders
from tui.engine.mcp.transports.stdio.launch import server_environment
from tui.model.servers import ServerId, ServerStatus
from tui.model.trust import UNWATCHED, FolderTrust
from tui.ui.questions.trust import trust_lines

__all__ = ["place", "reader"]

T = FolderTrust
STDIO: Mapping[str, Any] = {"command": "true", "args": ["a"], "env": {"A": "1"}, "cwd": "sub"}
HTTP: Mapping[str, Any] = {"url": "https://h.example/mcp", "headers": {"A": "1"}}


def write(reader: Reader, **servers: object) -> None:
    reader.place.project({"mcpServers": servers})


def put(reader: Reader, name: str, text: str) -> Path:
    path = reader.place.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("entry", "change"),
    [
        (STDIO, {"command": "false"}),
        (STDIO, {"args": ["b"]}),
        (STDIO, {"args": ["a", ""]}),
        (STDIO, {"env": {"A": "2"}}),
        (STDIO, {"env": {"A": "1", "B": "1"}}),
        (STDIO, {"cwd": "other"}),
        (HTTP, {"url": "https://h.example/mcp2"}),
        (HTTP, {"headers": {"A": "2"}}),
        (HTTP, {"type": "sse"}),
        (HTTP, {"oauth": {"scopes": ["admin"]}}),
    ],
)
def test_A09_each_change_of_what_runs_asks_again_and_going_back_does_not(
    reader: Reader, entry: dict[str, Any], change: dict[str, Any]
) -> None:
    write(reader, it=entry)
    withheld = reader.server()
    reader.say_yes()
    before = reader.server()
    assert before.fingerprint == withheld.fingerprint
    write(reader, it=entry | change)
    assert reader.trust() is T.CHANGED
    changed = reader.server()
    assert changed.withheld is ServerStatus.UNTRUSTED
    assert changed.fingerprint != before.fingerprint
    assert {line.sign for line in reader.question().difference} >= {"+"}
    write(reader, it=entry)
    assert reader.trust() is T.TRUSTED
    assert reader.server() == before
    write(reader, it=entry | change)
    reader.say_yes()
    write(reader, it=entry)
    assert reader.trust() is T.TRUSTED


def test_A09_what_runs_nothing_asks_nothing(reader: Reader) -> None:
    write(reader, it=STDIO)
    reader.say_yes()
    reader.place.project(
        {"mcpServers": {"it": {**STDIO, "description": "x", "trust": True}}, "ui": {"theme": 1}}
    )
    assert reader.trust() is T.TRUSTED
    reader.place.project("UNUSED=1\n", ".env")
    assert reader.trust() is T.TRUSTED


def test_A09_a_server_that_did_not_change_keeps_running_beside_one_that_did(
    reader: Reader,
) -> None:
    write(reader, it=STDIO, other=HTTP)
    reader.say_yes()
    write(reader, it={**STDIO, "args": ["b"]}, more=STDIO)
    assert reader.server("it").withheld is ServerStatus.UNTRUSTED
    changes = {server.server: server.change for server in reader.question().servers}
    assert changes == {"it": "changed", "more": "new", "other": "gone"}
    write(reader, it=STDIO, more=STDIO)
    assert reader.server("it").withheld is None
    assert reader.server("more").withheld is ServerStatus.UNTRUSTED


def test_A09_words_cut_elsewhere_make_another_server(reader: Reader) -> None:
    prints = set()
    for args in (["a b"], ["a", "b"], ["a", " b"], ["a b", ""], ['a","b']):
        write(reader, it={"command": "true", "args": args})
        prints.add(reader.server().fingerprint)
    assert len(prints) == 5


def test_A10_the_same_name_elsewhere_is_another_server(reader: Reader) -> None:
    one = reader.clone(reader.place.home / "one", it={"command": "true", "args": ["one"]})
    two = reader.clone(reader.place.home / "two", it={"command": "true", "args": ["two"]})
    same = reader.clone(reader.place.home / "same", it={"command": "true", "args": ["one"]})
    reader.say_yes(one)
    assert reader.trust(two) is T.UNTRUSTED
    assert reader.trust(same) is T.UNTRUSTED
    prints = {reader.server("it", folder).fingerprint for folder in (one, two, same)}
    assert len(prints) == 3


def test_A10_a_name_is_no_part_of_what_a_server_of_the_user_is(reader: Reader) -> None:
    reader.place.user({"mcpServers": {"it": STDIO, "too": STDIO, "else": HTTP}})
    prints = {str(one.id): one.fingerprint for one in reader.load().settings.servers}
    assert prints["it"] == prints["too"] != prints["else"]
    reader.place.user({"mcpServers": {"it": {**STDIO, "timeout": 5, "includeTools": []}}})
    assert reader.server().fingerprint == prints["it"]


def test_A09_a_value_in_the_users_environment_is_part_of_the_users_server(reader: Reader) -> None:
    reader.place.user({"mcpServers": {"it": {"command": "true", "env": {"A": "$TOKEN"}}}})
    prints = []
    for value in ("one", "two"):
        reader.environ["TOKEN"] = value
        prints.append(reader.server().fingerprint)
    assert prints[0] != prints[1]
    assert len(prints[0]) == 64


@pytest.mark.parametrize("entry", [".", "", "{folder}/bin", "{folder}/../clone/bin", "bin"])
def test_A14_the_opened_folder_puts_no_program_in_the_way(
    reader: Reader, entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = reader.place.folder
    for fake in (folder / "true", folder / "bin" / "true"):
        fake.parent.mkdir(exist_ok=True)
        fake.write_text("#!/bin/sh\n")
        fake.chmod(0o755)
    path = f"{entry.format(folder=folder)}:/usr/bin:/bin"
    reader.environ["PATH"] = path
    monkeypatch.chdir(folder)
    write(reader, it={"command": "true"})
    reader.place.user({"mcpServers": {"mine": {"command": "true"}}})
    reader.say_yes()
    assert os.path.realpath(reader.server().launch.program) == os.path.realpath("/usr/bin/true")
    assert reader.server("mine").launch.program == reader.server().launch.program
    avoid, own = guarded_folders((folder,), reader.place.home), reader.server("mine")
    assert server_environment(own, {"PATH": path}, avoid) == {"PATH": "/usr/bin:/bin"}
    assert server_environment(own, {"PATH": path.partition(":")[0]}, avoid) == {}


def test_A20_a_reference_is_read_only_after_the_yes_and_is_named_before(reader: Reader) -> None:
    reader.environ |= {"GEMINI_API_KEY": "hunter22", "PORT": "1"}
    entry = {"url": "http://127.0.0.1:${PORT}/?k=${GEMINI_API_KEY}", "timeout": "$T"}
    write(reader, it=entry)
    server = reader.server()
    assert server.withheld is ServerStatus.UNTRUSTED
    assert "hunter22" not in server.endpoint.url
    [shown] = reader.question().servers
    assert shown.references == ("PORT", "GEMINI_API_KEY")
    assert shown.url == entry["url"]
    assert any("GEMINI_API_KEY" in warning for warning in shown.warnings)
    reader.environ["T"] = "5000"
    reader.say_yes()
    assert reader.server().endpoint.url == "http://127.0.0.1:1/?k=hunter22"
    assert reader.server().timeout == 5
    reader.environ["GEMINI_API_KEY"] = "${PORT}"
    assert reader.server().endpoint.url == "http://127.0.0.1:1/?k=${PORT}"


def test_A20_a_variable_that_is_not_set_is_reported_and_not_emptied(reader: Reader) -> None:
    write(reader, it={"command": "true", "args": ["${GONE}"]})
    assert reader.load().settings.problems == ()
    reader.say_yes()
    assert reader.server().launch.args == ("${GONE}",)
    assert "GONE is not set" in str(reader.load().settings.problems[0])


def test_A02_a_dotenv_serves_the_folders_own_references_and_nothing_else(reader: Reader) -> None:
    reader.environ["BOTH"] = "own"
    reader.place.user({"mcpServers": {"mine": {"command": "true", "args": ["${TOKEN:-none}"]}}})
    args = ["${TOKEN}", "${BOTH}", "${NESTED}"]
    write(reader, it={"command": "true", "args": args})
    reader.place.project("TOKEN=wrong\n", ".env")
    reader.place.project(
        "TOKEN=brought\nBOTH=brought\nNESTED='${TOKEN}'\nGEMINI_API_KEY=x\n=bad\n", ".gemini/.env"
    )
    (reader.place.home / ".env").write_text("TOKEN=above\n")
    assert reader.question().variables == ("TOKEN", "BOTH", "NESTED")
    assert reader.server().launch.args == tuple(args)
    reader.say_yes()
    assert reader.server().launch.args == ("brought", "own", "${TOKEN}")
    assert reader.server("mine").launch.args == ("none",)
    reader.place.project("TOKEN=other\nBOTH=brought\nNESTED='${TOKEN}'\n", ".gemini/.env")
    assert reader.trust() is T.CHANGED
    changed = {line.text for line in reader.question().difference if line.sign == "+"}
    assert changed == {"argument other", ".env variable TOKEN = other"}


def test_what_was_trusted_is_kept_without_secrets(reader: Reader) -> None:
    token = "ghp_" + "a1" * 18
    args = ["--token", "hunter22", f"--key={token}", "x" * 5_000]
    entry = {"command": "true", "args": args, "env": {"PASSWORD": "hunter23"}}
    write(reader, it=entry, net={"url": "https://u:hunter24@h/?k=hunter25"})
    reader.say_yes()
    kept = (reader.state / "trust.json").read_text()
    for secret in ("hunter2", token):
        assert secret not in kept
    assert len(json.loads(kept)["folders"][0]["content"]["servers"]) == 2
    args[1] = "hunter26"
    write(reader, it=entry)
    lines = [line.text for line in reader.question().difference if line.sign == "+"]
    assert len(lines) == 1
    assert lines[0].startswith("argument *** #")


def test_A09_A14_another_program_under_the_same_command_is_another_server(
    reader: Reader, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        tool = tmp_path / name / "tool"
        tool.parent.mkdir()
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
    reader.place.user({"mcpServers": {"it": {"command": "tool"}}})
    write(reader, brought={"command": "tool"})
    reader.environ["PATH"] = f"{tmp_path}/one:{tmp_path}/two"
    reader.say_yes()
    before = reader.server()
    assert before == reader.server()
    reader.environ["PATH"] = f"{tmp_path}/two:{tmp_path}/one"
    assert reader.server().launch.command == before.launch.command
    assert reader.server().fingerprint != before.fingerprint
    assert reader.trust() is T.CHANGED
    assert reader.question().servers[0].program == f"{tmp_path}/two/tool"


def test_A13_a_search_path_that_reaches_the_folder_through_a_link_finds_nothing_there(
    reader: Reader, tmp_path: Path
) -> None:
    folder = reader.place.folder
    (folder / "bin").mkdir()
    tool = folder / "bin" / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    (tmp_path / "link").symlink_to(folder / "bin")
    reader.place.user({"mcpServers": {"it": {"command": "tool"}}})
    reader.environ["PATH"] = f"{tmp_path}/link:/usr/bin:/bin"
    needs = needs_folder(reader.server(), folder, reader.place.home)
    assert needs == f"its command is {tmp_path}/link/tool"
    avoid = guarded_folders([folder], reader.place.home)
    for entry in ("link", "link/../bin"):
        assert find_program("tool", {"PATH": f"{tmp_path}/{entry}"}, tmp_path, avoid) is None
    # What the folder links to is what the folder chose, wherever it lies.
    (tmp_path / "outside").mkdir()
    tool.rename(tmp_path / "outside" / "tool")
    (folder / "out").symlink_to(tmp_path / "outside")
    assert find_program("tool", {"PATH": str(folder / "out")}, tmp_path, avoid) is None
    found = find_program("tool", {"PATH": f"{tmp_path}/outside"}, tmp_path, avoid)
    assert found == f"{tmp_path}/outside/tool"


def test_A03_a_question_says_that_named_files_are_not_watched(reader: Reader) -> None:
    script = put(reader, "server.py", "")
    write(reader, it={"command": "sh", "args": ["server.py"]})
    assert UNWATCHED in [line.text for line in trust_lines(reader.question())]
    reader.say_yes()
    before = reader.server()
    script.write_text("pulled")
    assert (reader.trust(), reader.server()) == (T.TRUSTED, before)


def test_A09_a_changed_file_for_the_model_waits_alone_until_it_was_seen(reader: Reader) -> None:
    write(reader, it=STDIO)
    reader.place.project("one\ntwo", "GEMINI.md")
    reader.say_yes()
    assert len(reader.load().verdict.context) == 1
    reader.place.project("one\nthree", "GEMINI.md")
    found = reader.load()
    assert (found.verdict.trust, found.verdict.context) == (T.CHANGED, frozenset())
    assert (found.verdict.servers, found.verdict.inside) == (frozenset({ServerId("it")}), True)
    lines = [f"{line.sign}{line.text}" for line in reader.question().difference]
    assert lines[2:] == [" one", "-two", "+three"]
