from dataclasses import replace
from pathlib import Path

import pytest

from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.transports.stdio.environment import (
    own_program,
    resolve_folder,
    resolve_program,
    server_environment,
)
from tui.engine.settings.servers.definitions import ServerDefinition
from tui.model.servers import Origin, ServerId, Transport


def program(path: Path, mode: int = 0o755) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def test_a_server_inherits_only_what_every_program_needs() -> None:
    base = {
        "HOME": "/h",
        "PATH": "/p",
        "LC_ALL": "C",
        "LANG": "C",
        "GEMINI_API_KEY": "secret",
        "GOOGLE_API_KEY": "secret",
        "HTTPS_PROXY": "http://u:p@proxy",
        "USER": "() { :; }; evil",
    }
    assert server_environment({"TOKEN": "t", "HOME": "/other"}, base) == {
        "HOME": "/other",
        "PATH": "/p",
        "LC_ALL": "C",
        "LANG": "C",
        "TOKEN": "t",
    }


def test_a_program_is_looked_up_in_the_servers_own_path(tmp_path: Path) -> None:
    tool = program(tmp_path / "tool")
    assert resolve_program("tool", {"PATH": str(tmp_path)}, Path("/")) == str(tool)


def test_a_relative_path_starts_from_the_servers_folder(tmp_path: Path) -> None:
    tool = program(tmp_path / "tool")
    assert resolve_program("./tool", {"PATH": ""}, tmp_path) == str(tool)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("missing-program", "command not found: missing-program"),
        ("./missing", "command not found: ./missing"),
        ("./plain", "its command is not executable: ./plain"),
        ("./folder", "its command is a folder: ./folder"),
    ],
)
def test_a_program_that_cannot_run_is_explained(tmp_path: Path, command: str, reason: str) -> None:
    program(tmp_path / "plain", 0o644)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ServerError) as caught:
        resolve_program(command, {"PATH": str(tmp_path)}, tmp_path)
    assert caught.value.reason == reason
    assert caught.value.advice


def test_a_folder_that_does_not_exist_is_explained(tmp_path: Path) -> None:
    assert resolve_folder(tmp_path) == tmp_path
    with pytest.raises(ServerError, match="its working folder does not exist"):
        resolve_folder(tmp_path / "gone")


def test_the_users_program_is_the_one_that_its_grants_are_for(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    path = {"PATH": f"{first}:{second}"}
    known = program(second / "tool")
    server = ServerDefinition(
        ServerId("s"), Origin.USER, Transport.STDIO, command="tool", program=str(known)
    )
    other = program(first / "tool")
    assert own_program(server, path, tmp_path) == str(known)
    known.unlink()
    with pytest.raises(ServerError, match=f"now there is {other}"):
        own_program(server, path, tmp_path)
    assert own_program(replace(server, program=""), path, tmp_path) == str(other)
