"""What is said of a server before it runs: all of it, and nothing that can be hidden or misread."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.security.folders import Reader, reader
from tests.security.opened import place
from tui.engine.definitions.definition import shown_target
from tui.engine.mcp.transports.stdio.launch import server_environment
from tui.engine.trust.warnings import address_cautions, command_cautions, variable_cautions
from tui.model.input.arguments import spelled
from tui.model.servers import ServerStatus
from tui.model.settings import ToolPattern
from tui.model.trust import Disclosure, FolderTrust
from tui.text import sanitize
from tui.ui.questions.trust import trust_lines

__all__ = ["place", "reader"]


IMITATIONS = st.text(alphabet=' 3␠⟨⟩\\u"n\n\N{MULTIPLICATION SIGN}', max_size=8)


def disclosed(reader: Reader, **entry: Any) -> Disclosure:  # noqa: ANN401
    reader.place.project({"mcpServers": {"it": entry}})
    [shown] = reader.question().servers
    return shown


def test_A12_every_part_of_a_command_is_shown(reader: Reader) -> None:
    long = "".join(f"{number} " for number in range(14_000))
    args = ["-c", "a" + " " * 300 + "b  c d", "x\ny", "\u202egpj.exe", long, "", "é", "$(id)"]
    reader.environ |= {"SECRET": "hunter22", "DIR": "hunter23"}
    env = {"LD_PRELOAD": "/x", "A": "${SECRET:-x}"}
    shown = disclosed(reader, command="sh", args=args, env=env, cwd="~/${DIR}")
    assert shown.args[1] == "a⟨␠\N{MULTIPLICATION SIGN}300⟩b⟨␠\N{MULTIPLICATION SIGN}2⟩c d"
    assert shown.args[2:4] == ("x\\ny", "\\u202egpj.exe")
    assert shown.args[4].startswith("0 1 2 ")
    assert len(shown.args[4]) > 64 * 1024
    assert shown.args[5:] == ('""', "é", "$(id)")
    assert (shown.command, shown.cwd) == ("sh", "~/${DIR}")
    assert shown.source == "~/clone/.gemini/settings.json"
    assert shown.env == ("LD_PRELOAD", "A")
    assert shown.references == ("SECRET", "DIR")
    assert Path(shown.program).name in {"sh", "dash", "bash"}
    for text in (*shown.args, *shown.warnings):
        assert sanitize(text) == text


def test_A12_the_values_of_variables_are_shown_but_no_secrets(reader: Reader) -> None:
    token = "ghp_" + "a1B2" * 9
    env = {
        "LD_PRELOAD": "./evil\u202e.so",
        "API_KEY": "hunter22",
        "NOTE": token,
        "PLACE": "https://ada:hunter22@db.example/",
        "PORT": 80,
        "OPEN": True,
        "LONG": "y" * 5_000,
        "OWN": "$MINE",
    }
    reader.environ |= {"MINE": "hunter23"}
    shown = disclosed(reader, command="true", env=env)
    assert shown.env == tuple(env)
    assert shown.env_values == (
        "LD_PRELOAD = ./evil\\u202e.so",
        "API_KEY = ***",
        "NOTE = ***",
        "PLACE = https://***@db.example/",
        "PORT = 80",
        "OPEN = true",
        f"LONG = {'y' * 2_000}…",
        "OWN = $MINE",
    )


@pytest.mark.parametrize(
    ("name", "shown_as"),
    [
        ("GitHub", "GitHub"),
        ("g1thub", "g1thub"),
        ("g\u0456thub", "g\u0456thub"),  # Cyrillic
        ("git\u200bhub", "git⟨U+200B⟩hub"),
    ],
)
def test_A12_a_name_like_one_of_the_users_is_asked_about_with_what_it_would_run(
    reader: Reader, name: str, shown_as: str
) -> None:
    reader.place.user({"mcpServers": {"github": {"command": "true"}, "notes": {"command": "a"}}})
    reader.place.project({"mcpServers": {name: {"command": "other"}}})
    [shown] = reader.question().servers
    assert (shown.server, shown.command) == (shown_as, "other")


def test_A12_an_address_is_shown_whole_with_the_names_of_its_headers(reader: Reader) -> None:
    url = "https://safe.example@evil.example/" + "a/" * 2_000 + "?token=${TOKEN}"
    shown = disclosed(reader, url=url, headers={"Authorization": "Bearer hunter22"})
    assert shown.url == url
    assert shown.headers == ("Authorization",)
    assert "hunter22" not in repr(shown)
    assert any("can hide where it leads" in warning for warning in shown.warnings)


@given(st.text() | IMITATIONS, st.text() | IMITATIONS)
def test_A12_two_texts_never_look_alike(one: str, other: str) -> None:
    assert (spelled(one) == spelled(other)) is (one == other)
    assert sanitize(spelled(one)) == spelled(one)
    assert "\n" not in spelled(one)


CAUTIONS = {
    "Not pinned (x)": ("npx -y x",),
    "Not pinned (pkg)": ("uv run --with pkg server.py", "uv tool run pkg"),
    "Not pinned (img)": ("docker run -i img",),
    "Not pinned": (
        *("npx -y @a/b@^1.2.3", "uvx mcp-server-git", "uvx --from git+https://x/y tool"),
        *("pipx run tool", "bunx tool", "docker run -i --rm -e A=b reg.example:5000/img:latest"),
    ),
    "Runs code": (
        *("/usr/bin/npx -c id", "python -c x", "python3.12 -Ic x", "node -e x"),
        "node --eval=x",
    ),
    "folders of this machine: /:/host": ("docker run -v /:/host img:1",),
    "machine: type=bind,src=/,dst=/h": (
        "docker run --mount type=bind,src=/,dst=/h img:1",
        "docker run --mount=type=bind,src=/,dst=/h img:1",
    ),
    "not isolated": ("podman run --privileged img:1", "docker run --network=host img:1"),
    "Runs a shell (sh)": ("sh -c id",),
    "Runs a shell": ("env A=b sh x",),
    "Runs a shell (cmd)": ("cmd.exe /c dir",),
    "Runs a shell (powershell)": ("powershell -enc x",),
}


@pytest.mark.parametrize("word", CAUTIONS)
def test_A15_what_deserves_a_second_look_is_named(word: str) -> None:
    for line in CAUTIONS[word]:
        command, *args = line.split()
        assert any(word in caution for caution in command_cautions(command, args)), line


@pytest.mark.parametrize(
    "line",
    [
        *("npx -y x@1.2.3", "npx -y @a/b@1.2.3-beta.1 --port 3", "uvx --from tool==1.0 tool"),
        *("uv run server.py", "docker run -i --rm img:1.2"),
        "docker run --name rebind --mount type=volume,src=x,dst=/h img:1.2",
        *("docker run img@sha256:0123", "python -m server", "mcp-server-git --repository ."),
    ],
)
def test_A15_what_is_plain_is_not_warned_of(line: str) -> None:
    command, *args = line.split()
    assert list(command_cautions(command, args)) == []


def test_A15_places_are_no_secrets_and_what_is_one_still_is(reader: Reader) -> None:
    home = str(reader.place.home)
    reader.environ |= {"HOME": home, "PWD": home, "OLDPWD": home, "DB_PASSWORD": "hunter22"}
    args = ["run", "-v", "${PWD}:/workspace", "-v", "$OLDPWD:/old", "-w", "$HOME", "img:1.2"]
    shown = disclosed(reader, command="docker", args=args, env={"PWD": "${PWD}"})
    assert not any("look secret" in warning for warning in shown.warnings)
    assert any(f"this machine: {home}:/workspace" in one for one in shown.warnings)
    args = [*args[:-1], "-v", "/x/$DB_PASSWORD:/y", "img:1.2"]
    shown = disclosed(reader, command="docker", args=args)
    assert "Receives environment variables that look secret: DB_PASSWORD." in shown.warnings
    assert any(f" {home}:/workspace, {home}:/old, /x/***:/y." in one for one in shown.warnings)
    entry = {"command": "docker", "args": args, "env": {"PWD": home}}
    reader.place.user({"mcpServers": {"own": entry}})
    own = shown_target(reader.server("own"))
    assert own == f"docker run -v {home}:/workspace -v {home}:/old -w {home} -v /x/***:/y img:1.2"


def test_A15_an_odd_address_is_warned_of_and_one_on_this_machine_may_be_plain() -> None:
    for address, word in (
        ("http://h.example/", "Not encrypted"),
        ("https://xn--exmple-cua.example/", "imitate"),
        ("https://ex\u0430mple.com/", "imitate"),
    ):
        assert any(word in caution for caution in address_cautions(address))
    for address in ("http://localhost:1/", "http://127.0.0.1/", "http://[::1]/", "https://h/"):
        assert list(address_cautions(address)) == []


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "NODE_OPTIONS", "PYTHONPATH", "PATH", "BASH_ENV", "GIT_SSH_COMMAND"),
        *("DYLD_INSERT_LIBRARIES", "npm_config_registry", "Path"),
    ],
)
def test_A21_variables_that_hijack_a_program_are_warned_of_and_count(
    reader: Reader, name: str
) -> None:
    assert any(name in caution for caution in variable_cautions([name], []))
    assert list(variable_cautions(["LOG_LEVEL"], ["HOME"])) == []
    first = disclosed(reader, command="/bin/true", env={name: "a"})
    assert any(name in caution for caution in first.warnings)
    before = reader.server().fingerprint
    disclosed(reader, command="/bin/true", env={name: "b"})
    assert reader.server().fingerprint != before


def test_A22_a_program_that_comes_with_the_folder_is_named(reader: Reader) -> None:
    tool = reader.place.folder / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    shown = disclosed(reader, command="./tool")
    assert shown.program == str(tool)
    assert any("is in this folder" in warning for warning in shown.warnings)


def test_a_disclosure_of_anything_at_all_is_made(reader: Reader) -> None:
    odd: list[Any] = [None, 1, True, [], {}, [[]], {"a": {}}, "x", ["x", None, 2]]
    for key in ("args", "env", "cwd", "headers", "oauth"):
        for value in odd:
            entry = json.loads(json.dumps({"command": "$x", key: value}))
            reader.place.project({"mcpServers": {"it": entry, "ok": {"command": "true"}}})
            assert len(reader.question().servers) == 2


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
    assert "Its denials stay in force until you trust the change." in text
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
    assert "Changes take effect only after you trust them" in text
    assert "None of this runs" not in text
