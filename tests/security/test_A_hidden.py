"""What a folder could hide behind its own variables, files and links; and what then is shown."""

import json
import os
from pathlib import Path

import pytest

from tests.security.folders import Reader, reader
from tests.security.opened import place
from tui.engine.mcp.transports.stdio.launch import server_environment
from tui.model.servers import ServerStatus
from tui.model.settings import ToolPattern
from tui.model.trust import Disclosure, FolderTrust
from tui.ui.questions.trust import trust_lines

__all__ = ["place", "reader"]

T = FolderTrust
SHARED = ".mcp.json"


def write(reader: Reader, dotenv: str = "", **servers: object) -> None:
    reader.place.project({"mcpServers": servers}, SHARED)
    reader.place.project(dotenv, ".env")


def shown(reader: Reader) -> dict[str, Disclosure]:
    return {str(server.server): server for server in reader.question().servers}


def tool(reader: Reader, name: str, content: str = "#!/bin/sh\n") -> Path:
    path = reader.place.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)
    return path


def came(reader: Reader) -> list[str]:
    return [line.text for line in reader.question().difference if line.sign == "+"]


def test_A12_what_a_dotenv_fills_in_is_shown_as_it_runs(reader: Reader) -> None:
    write(
        reader,
        "PY=sh\nMODE=-c\nROOT='touch canary'\nAPI=http://evil.example/\n",
        docs={"command": "${PY}", "args": ["${MODE}", "${ROOT}"]},
        api={"type": "http", "url": "${API}"},
    )
    docs, api = shown(reader)["docs"], shown(reader)["api"]
    assert (docs.command, docs.args) == ("sh", ("-c", "touch canary"))
    assert Path(docs.program).name == "sh"
    assert docs.references == ()
    assert any("Runs a shell (sh)" in warning for warning in docs.warnings)
    assert docs.written == ("command ${PY}", "argument 1 ${MODE}", "argument 2 ${ROOT}")
    assert api.url == "http://evil.example/"
    assert any("Not encrypted" in warning for warning in api.warnings)
    assert reader.question().variables == ("PY", "MODE", "ROOT", "API")


def test_A12_a_default_is_shown_where_it_would_be_used(reader: Reader) -> None:
    write(reader, it={"command": "${NOPE:-bash}", "args": ["-c", "${ALSO:-id}"]})
    server = shown(reader)["it"]
    assert (server.command, server.args) == ("bash", ("-c", "id"))
    assert any("Runs a shell (bash)" in warning for warning in server.warnings)
    assert server.references == ()
    reader.environ["ALSO"] = "mine"
    assert shown(reader)["it"].args == ("-c", "${ALSO:-id}")
    assert shown(reader)["it"].references == ("ALSO",)


def test_A15_the_users_variables_count_for_warnings_and_stay_names(reader: Reader) -> None:
    reader.environ |= {"SHELL": "/bin/bash", "GITHUB_TOKEN": "hunter22@x"}
    write(
        reader,
        it={"command": "${SHELL}", "args": ["-c", "${GITHUB_TOKEN}"]},
        net={"command": "npx", "args": ["${GITHUB_TOKEN}"]},
    )
    server, net = shown(reader)["it"], shown(reader)["net"]
    assert (server.command, server.args) == ("${SHELL}", ("-c", "${GITHUB_TOKEN}"))
    assert os.path.realpath(server.program) == os.path.realpath("/bin/bash")
    assert any("Runs a shell (bash)" in warning for warning in server.warnings)
    assert server.references == ("SHELL", "GITHUB_TOKEN")
    assert any("Not pinned" in warning for warning in net.warnings)
    assert "hunter22" not in repr(reader.question())


def test_A12_long_references_do_not_keep_what_runs_from_being_shown(reader: Reader) -> None:
    reader.environ["A"] = "x"
    padding = "${A:-" + "y" * 1_000 + "}"
    write(reader, "ROOT=evil\n", it={"command": "true", "args": [padding * 200 + "${ROOT}"]})
    assert shown(reader)["it"].args[0].endswith("evil")


def test_A20_a_variable_that_comes_to_be_the_users_asks_again(reader: Reader) -> None:
    write(reader, it={"command": "true", "args": ["${GITHUB_TOKEN:-none}"]})
    reader.say_yes()
    reader.environ["GITHUB_TOKEN"] = "hunter22"
    assert reader.trust() is T.CHANGED
    assert "reads your variable GITHUB_TOKEN" in came(reader)
    assert reader.server().withheld is ServerStatus.UNTRUSTED


def test_A20_the_question_names_what_a_server_would_inherit_and_more_asks_again(
    reader: Reader,
) -> None:
    reader.environ |= {"NPM_TOKEN": "hunter22", "OTHER_TOKEN": "hunter23"}
    write(reader, it={"command": "true"}, net={"url": "https://h.example/"})
    assert shown(reader)["it"].inherited == ()
    reader.place.user({"gemdeck": {"environmentAllow": ["npm_token", "HOME"]}})
    assert shown(reader)["it"].inherited == ("NPM_TOKEN",)
    assert shown(reader)["net"].inherited == ()
    reader.say_yes()
    assert reader.trust() is T.TRUSTED
    given = server_environment(reader.server(), reader.environ)
    assert given == {"PATH": reader.environ["PATH"], "NPM_TOKEN": "hunter22"}
    reader.place.user({"gemdeck": {"environmentAllow": ["NPM_TOKEN", "OTHER_TOKEN"]}})
    assert reader.trust() is T.CHANGED
    assert "inherits your variable OTHER_TOKEN" in came(reader)
    assert reader.server().withheld is ServerStatus.UNTRUSTED


def test_A02_a_project_has_no_say_in_what_servers_inherit(reader: Reader) -> None:
    reader.place.user({"mcpServers": {"mine": {"command": "true"}}})
    lists = {"environmentAllow": ["MY_TOKEN"], "environmentBlock": ["HOME"]}
    reader.place.project({"mcpServers": {"it": {"command": "true"}}, "gemdeck": lists})
    reader.say_yes()
    environ = {"HOME": "/h", "MY_TOKEN": "hunter22"}
    for name in ("it", "mine"):
        assert server_environment(reader.server(name), environ) == {"HOME": "/h"}


def test_A09_changed_values_of_the_folder_are_shown_as_text(reader: Reader) -> None:
    token = "ghp_" + "a1" * 18
    entry = {"command": "true", "env": {"A": "${ROOT}", "B": "${X:-one}", "C": "${KEY}"}}
    write(reader, "ROOT=before\n", it=entry)
    reader.say_yes()
    entry["env"] = {"A": "${ROOT}", "B": "${X:-two}", "C": "${KEY}"}
    write(reader, f"ROOT=after\nKEY={token}\n", it=entry)
    lines = came(reader)
    assert ".env variable ROOT = after" in lines
    assert "default of X = two" in lines
    [masked] = [line for line in lines if "KEY" in line]
    assert masked.startswith(".env variable KEY = *** #")


def test_A09_what_a_trusted_folder_forbids_holds_until_its_going_got_a_yes(
    reader: Reader,
) -> None:
    deny = {"alwaysDeny": [{"tool": "rm"}], "maxToolCalls": 3}
    server = {"it": {"command": "true"}}
    reader.place.project({"mcpServers": server, "gemdeck": deny})
    reader.say_yes()
    file = reader.place.project({"mcpServers": server})
    loaded = reader.load()
    assert loaded.verdict.trust is T.CHANGED
    assert loaded.verdict.rules.always_deny == (ToolPattern(tool="rm"),)
    assert loaded.settings.gemdeck.max_tool_calls == 3
    assert reader.server().withheld is None
    file.unlink()
    assert reader.load().verdict.rules.always_deny == (ToolPattern(tool="rm"),)
    assert "The tool rm of * never runs." in [
        line.text for line in reader.question().difference if line.sign == "-"
    ]
    text = " ".join(line.text for line in trust_lines(reader.question()))
    assert "What it denied stays denied until you trust the change." in text
    reader.say_yes()
    assert reader.load().verdict.rules.always_deny == ()
    assert reader.trust() is T.TRUSTED


@pytest.mark.parametrize("name", [".env", ".gemini/.env", SHARED, ".gemini/settings.json"])
def test_J07_a_file_that_is_a_link_out_of_the_folder_is_not_read(reader: Reader, name: str) -> None:
    private = reader.place.home / "private"
    is_dotenv = name.endswith(".env")
    other = {"mcpServers": {"it": {"url": "http://h.example/${TOKEN}"}}}
    private.write_text("TOKEN=hunter22\n" if is_dotenv else json.dumps(other))
    if is_dotenv:
        reader.place.project(other, SHARED)
    path = reader.place.folder / name
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(private)
    [problem] = reader.load().settings.problems
    assert "outside the folder" in problem.message
    assert problem.file == f"~/clone/{name}"
    if is_dotenv:
        assert reader.question().variables == ()
        assert "hunter22" not in repr(reader.question())
    else:
        assert reader.load().settings.servers == ()


def test_A08_a_wrong_name_on_the_command_line_is_told_where_nothing_is_brought(
    reader: Reader,
) -> None:
    reader.load(word=reader.word(None, Path("/elsewhere")))
    assert [problem for problem in reader.problems if "/elsewhere is not this" in problem]


def test_A09_a_question_does_not_say_that_nothing_runs_where_something_does(
    reader: Reader,
) -> None:
    write(reader, it={"command": "true"}, other={"command": "true", "args": ["a"]})
    reader.say_yes()
    write(reader, it={"command": "true"}, other={"command": "true", "args": ["b"]})
    assert reader.question().standing == ("it",)
    text = " ".join(line.text for line in trust_lines(reader.question()))
    assert "What changed does not run until you trust it" in text
    assert "Nothing of it runs" not in text
