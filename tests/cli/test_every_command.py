"""Every command and option explains itself, and every example works."""

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest

from tests.cli.running import LIBRARY, write_settings
from tests.unit.cli.conftest import Run, run
from tests.unit.engine.sessions.written import turn, write
from tui.cli.main import main
from tui.cli.output import ExitCode
from tui.engine.chats.sessions.library import SessionLibrary
from tui.engine.files.paths import state_dir

__all__ = ["run"]  # the fixture

EXAMPLE: Final = re.compile(r"Example: gemdeck (.+)")
OTHER_CODES: Final = {
    "gemdeck": ExitCode.NO_KEY,
    "gemdeck grants revoke": ExitCode.NOT_FOUND,
    "gemdeck key set": ExitCode.NO_KEY,
    "gemdeck key show": ExitCode.NO_KEY,
    "gemdeck mcp auth": ExitCode.NOT_FOUND,
    "gemdeck mcp logout": ExitCode.NOT_FOUND,
    "gemdeck mcp list": ExitCode.ERROR,
    "gemdeck secret forget": ExitCode.NOT_FOUND,
    "gemdeck secret set": ExitCode.ERROR,
    "gemdeck doctor": ExitCode.ERROR,
}
"""Commands that end otherwise without a key, this rule or server, trust and a network."""


def commands(
    command: click.Command = main, name: str = "gemdeck"
) -> Iterator[tuple[str, click.Command]]:
    """Give each command with its whole name; a group of commands is none."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        for one in command.list_commands(context):
            found = command.get_command(context, one)
            assert found is not None
            yield from commands(found, f"{name} {one}")
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield name, command


COMMANDS: Final = dict(commands())
EXAMPLES: Final = [
    (name, example)
    for name, command in COMMANDS.items()
    for example in EXAMPLE.findall(command.epilog or "")
]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_and_its_options_explain_themselves(name: str) -> None:
    command = COMMANDS[name]
    assert (command.help or "").strip().split("\n\n")[0].strip()[-1] in ".", name
    assert EXAMPLE.search(command.epilog or ""), name
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.help.endswith("."), parameter.name


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set up the servers, files and programs that examples speak of."""
    home, tools = Path.home(), tmp_path / "bin"
    tools.mkdir()
    says = {
        "files": {"tools": {"read_text_file": ["path"]}},
        "docs": {"resources": ["docs://style"]},
        "poems": {"prompts": {"poem": ["mood"]}, "completions": ["reverent", "sad"]},
    }
    entries: dict[str, Any] = {}
    for name, one in says.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(one))
        entries[name] = {"command": sys.executable, "args": ["-S", str(LIBRARY), str(path)]}
    write_settings({"mcpServers": entries})
    (home / ".config" / "Claude").mkdir(parents=True)
    desktop = home / ".config" / "Claude" / "claude_desktop_config.json"
    desktop.write_text(json.dumps({"mcpServers": {**entries, "more": {"command": "x"}}}))
    npx = tools / "npx"
    npx.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{LIBRARY}" "{tmp_path}/files.json"\n')
    npx.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9")
    write(SessionLibrary(state_dir()), Path.cwd(), turn(1, "hello", "Hi."))
    (Path.cwd() / ".mcp.json").write_text(json.dumps({"mcpServers": {"here": {"command": "x"}}}))


@pytest.mark.usefixtures("run", "shelf")
@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_an_example_works(run: Run, name: str, example: str) -> None:
    words = shlex.split(example.partition(" >")[0])
    if name == "gemdeck trust allow":
        words[-1] = run("trust", "show", "--json").json["id"]
    result = run(*words)
    code = ExitCode.OK if "--offline" in words else OTHER_CODES.get(name, ExitCode.OK)
    assert result.code == code, result.stderr
    assert result.stdout or code or name == "gemdeck mcp logs"  # a server may write nothing
