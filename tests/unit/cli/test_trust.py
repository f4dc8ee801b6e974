"""`gemdeck trust`: the folder's content in full, and a word on exactly that."""

import json
from pathlib import Path

import pytest

from tests.cli.running import write_settings
from tests.unit.cli.conftest import Run
from tui.cli.output import ExitCode


@pytest.fixture
def entry(run: Run) -> Path:  # noqa: ARG001 - which enters the folder
    """Let the folder bring a server."""
    path = Path.cwd() / ".gemini" / "settings.json"
    path.parent.mkdir()
    write(path, "one")
    return path


def write(path: Path, argument: str) -> None:
    entry = {"command": "bash", "args": ["-c", argument]}
    path.write_text(json.dumps({"mcpServers": {"here": entry}}))


@pytest.mark.usefixtures("entry")
def test_what_is_shown_is_what_is_trusted(run: Run) -> None:
    shown = run("trust", "show")
    assert shown.code == 0
    assert "This folder: untrusted." in shown.stdout
    assert "Runs a shell (bash)" in shown.stdout
    name = shown.stdout.split()[-1]
    allowed = run("trust", "allow", name)
    assert (allowed.code, allowed.stdout) == (0, "This folder: trusted.\n")
    assert run("trust", "show", "--json").json["trust"] == "trusted"
    assert run("trust", "forget").stdout == "This folder: untrusted.\n"


def test_other_content_than_was_shown_is_not_trusted(run: Run, entry: Path) -> None:
    name = run("trust", "show", "--json").json["id"]
    write(entry, "two")
    refused = run("trust", "allow", name)
    assert (refused.code, refused.stdout) == (ExitCode.NOT_FOUND, "")
    assert "other content now" in refused.stderr
    assert run("trust", "allow", "").code == ExitCode.NOT_FOUND
    assert run("trust", "show", "--json").json["trust"] == "untrusted"


@pytest.mark.usefixtures("entry")
def test_a_folder_that_is_never_trusted_can_be_forgotten(run: Run) -> None:
    assert run("trust", "never", "--json").json["trust"] == "never trusted"
    assert run("trust", "show", "--json").json["trust"] == "never trusted"
    assert run("trust", "forget", "--json").json["trust"] == "untrusted"


def test_your_own_servers_that_wait_here_are_shown(run: Run) -> None:
    (Path.cwd() / "server.py").write_text("")
    waiting = {"command": "python3", "args": ["server.py"]}
    servers = {"mine": waiting, "elsewhere": {"command": "true"}}
    write_settings({"mcpServers": servers})
    shown = run("trust", "show", "--json").json
    assert [one["server"] for one in shown["waiting"]] == ["mine"]
    words = run("trust", "show").stdout
    assert "Your own servers that wait for a yes to this folder" in words
    assert "server.py" in words
    assert "elsewhere" not in words


def test_a_folder_that_brings_nothing(run: Run) -> None:
    assert run("trust", "show").stdout == "This folder: no project settings.\n"
    assert run("trust", "allow", "0" * 12).code == ExitCode.ERROR


def test_an_entry_that_runs_nothing_is_shown_too(run: Run, entry: Path) -> None:
    entry.write_text('{"mcpServers": {"empty": {}, "wrong": 5, "here": {"command": "bash"}}}')
    shown = run("trust", "show")
    assert (shown.code, "empty in " in shown.stdout, "wrong in " in shown.stdout) == (0, True, True)
