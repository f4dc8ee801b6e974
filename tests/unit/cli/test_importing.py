"""`gemdeck import`: what is shown, what is written, and that nothing runs."""

import json
from pathlib import Path
from typing import Any

from tests.unit.cli.conftest import Run
from tui.cli.output import ExitCode


def cursor(servers: dict[str, Any]) -> None:
    path = Path.home() / ".cursor" / "mcp.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")


def settings() -> dict[str, Any]:
    path = Path.home() / ".gemini" / "settings.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def test_servers_are_shown_whole_with_their_risks_and_nothing_is_written(run: Run) -> None:
    words = "x" * 3_000
    cursor({"sh": {"command": "bash", "args": ["-c", f"echo {words}"], "env": {"TOKEN": "s3cret"}}})
    result = run("import")
    assert result.code == 0
    assert f"runs       bash -c 'echo {words}'" in result.stdout
    assert "Runs a shell (bash)" in result.stdout
    assert "variables  TOKEN" in result.stdout
    assert "s3cret" not in result.stdout
    assert "Nothing was written." in result.stdout
    assert settings() == {}


def test_only_what_is_chosen_is_written_and_nothing_is_started(run: Run, tmp_path: Path) -> None:
    canary = tmp_path / "ran"
    cursor({"a": {"command": "touch", "args": [str(canary)]}, "b": {"command": "y"}})
    result = run("import", "cursor", "a", "--json")
    assert result.code == 0
    assert result.json["written"] == ["a"]
    states = {one["name"]: one["state"] for one in result.json["files"][0]["servers"]}
    assert states == {"a": "written", "b": "new"}
    assert settings() == {"mcpServers": {"a": {"command": "touch", "args": [str(canary)]}}}
    again = run("import", "cursor", "--all", "--json")
    assert again.json["written"] == ["b"]
    assert not canary.exists()


def test_a_name_that_is_taken_is_left_alone(run: Run) -> None:
    cursor({"a": {"command": "x"}})
    assert run("import", "--all").code == 0
    cursor({"a": {"command": "other"}})
    result = run("import", "--all")
    assert "(name is taken here)" in result.stdout
    assert settings() == {"mcpServers": {"a": {"command": "x"}}}


def test_what_is_not_there_is_said(run: Run, tmp_path: Path) -> None:
    assert run("import").stdout == "No servers of other clients were found.\n"
    missing = run("import", "cursor", "a")
    assert (missing.code, missing.stderr) == (
        ExitCode.NOT_FOUND,
        "gemdeck: There is no server a.\n",
    )
    (tmp_path / "broken.json").write_text("{")
    broken = run("import", "zed", "--file", str(tmp_path / "broken.json"))
    assert broken.code == 0
    assert "line 1" in broken.stdout
    assert run("import", "--file", str(tmp_path / "broken.json")).code == ExitCode.USAGE
