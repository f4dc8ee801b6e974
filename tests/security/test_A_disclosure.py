"""What is said of a server before it runs: all of it, and nothing that can be read two ways."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.security.folders import Reader, reader
from tests.security.opened import place
from tui.engine.definitions.definition import shown_target
from tui.engine.trust.warnings import address_cautions, command_cautions, variable_cautions
from tui.model.input.arguments import spelled
from tui.model.trust import Disclosure
from tui.text import sanitize

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
    shown = disclosed(
        reader,
        command="sh",
        args=args,
        env={"LD_PRELOAD": "/x", "A": "${SECRET:-x}"},
        cwd="~/${DIR}",
    )
    assert shown.args[1] == "a⟨␠\N{MULTIPLICATION SIGN}300⟩b⟨␠\N{MULTIPLICATION SIGN}2⟩c d"
    assert shown.args[2:4] == ("x\\ny", "\\u202egpj.exe")
    assert shown.args[4].startswith("0 1 2 ")
    assert len(shown.args[4]) > 64 * 1024
    assert shown.args[5:] == ('""', "é", "$(id)")
    assert (shown.command, shown.cwd, shown.source) == (
        "sh",
        "~/${DIR}",
        "~/clone/.gemini/settings.json",
    )
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


@given(st.text(), st.text())
def test_A12_two_texts_never_look_alike(one: str, other: str) -> None:
    assert (spelled(one) == spelled(other)) is (one == other)
    assert sanitize(spelled(one)) == spelled(one)
    assert "\n" not in spelled(one)


@given(IMITATIONS, IMITATIONS)
def test_A12_not_even_texts_that_imitate_the_spelling(one: str, other: str) -> None:
    assert (spelled(one) == spelled(other)) is (one == other)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("npx -y x", "Not pinned (x)"),
        ("npx -y @a/b@^1.2.3", "Not pinned"),
        ("/usr/bin/npx -c id", "Runs code"),
        ("uvx mcp-server-git", "Not pinned"),
        ("uvx --from git+https://x/y tool", "Not pinned"),
        ("pipx run tool", "Not pinned"),
        ("bunx tool", "Not pinned"),
        ("uv run --with pkg server.py", "Not pinned (pkg)"),
        ("uv tool run pkg", "Not pinned (pkg)"),
        ("docker run -i img", "Not pinned (img)"),
        ("docker run -i --rm -e A=b reg.example:5000/img:latest", "Not pinned"),
        ("docker run -v /:/host img:1", "folders of this machine: /:/host"),
        ("docker run --mount type=bind,src=/,dst=/h img:1", "machine: type=bind,src=/,dst=/h"),
        ("docker run --mount=type=bind,src=/,dst=/h img:1", "machine: type=bind,src=/,dst=/h"),
        ("podman run --privileged img:1", "not isolated"),
        ("docker run --network=host img:1", "not isolated"),
        ("sh -c id", "Runs a shell (sh)"),
        ("env A=b sh x", "Runs a shell"),
        ("cmd.exe /c dir", "Runs a shell (cmd)"),
        ("powershell -enc x", "Runs a shell (powershell)"),
        ("python -c x", "Runs code"),
        ("python3.12 -Ic x", "Runs code"),
        ("node -e x", "Runs code"),
        ("node --eval=x", "Runs code"),
    ],
)
def test_A15_what_deserves_a_second_look_is_named(line: str, word: str) -> None:
    command, *args = line.split()
    assert any(word in caution for caution in command_cautions(command, args))


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
    assert "Receives variables of yours that look secret: DB_PASSWORD." in shown.warnings
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
