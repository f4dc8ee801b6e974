"""`gemdeck settings` and `completion`."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.shell_completion import BashComplete

from tests.cli.running import write_settings
from tests.unit.cli.conftest import Run
from tui.cli.main import main
from tui.cli.output import ExitCode
from tui.engine.settings.edits import sample_settings
from tui.engine.settings.sources.document import parse_document


@pytest.fixture
def layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the model in two files, and forbid tools in both."""
    system = tmp_path / "system.json"
    system.write_text('{\n "gemdeck": {"model": "gemini-b", "alwaysDeny": [{"tool": "b"}]}\n}')
    monkeypatch.setenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH", str(system))
    user = Path.home() / ".gemini" / "settings.json"
    user.parent.mkdir()
    user.write_text(
        '{\n "gemdeck": {\n  "model": "gemini-a",\n  "alwaysDeny": [{"tool": "a"}]\n },\n'
        ' "mcpServers": {"s": {"command": "x", "args": ["$GEMDECK_NOT_SET"]}}\n}'
    )


@pytest.mark.usefixtures("layers")
def test_the_value_that_counts_is_shown_with_what_it_wins_over(run: Run, tmp_path: Path) -> None:
    shown = run("settings", "show", "--json", code=0)
    found = {one["key"]: one for one in shown.json["settings"]}
    system, user = f"{tmp_path}/system.json", "~/.gemini/settings.json"
    model = found["gemdeck.model"]
    assert (model["value"], model["places"]) == ("gemini-b", [f"{system}:2", f"{user}:3"])
    assert found["gemdeck.alwaysDeny"]["adds_up"]
    assert len(found["gemdeck.alwaysDeny"]["value"]) == 2
    assert found["gemdeck.maxToolCalls"]["places"] == ["default"]
    assert shown.json["merged"]["gemdeck"].keys() == {"model", "alwaysDeny"}
    [server] = shown.json["servers"]
    assert (server["name"], server["places"]) == ("s", [f"{user}:6"])
    text = run("settings", "show").stdout
    assert f"{system}:2 (overrides {user}:3)" in text


def test_the_names_of_files_of_context_are_shown(run: Run) -> None:
    [*_, named, folders] = run("settings", "show", "--json").json["settings"]
    assert (folders["key"], folders["value"]) == ("context.includeDirectories", [])
    assert (named["key"], named["value"]) == ("context.fileName", ["GEMINI.md", "AGENTS.md"])
    assert named["places"] == ["default"]
    write_settings({"context": {"fileName": "NOTES.md"}})
    shown = run("settings", "show", "--json").json
    assert shown["merged"] == {"context": {"fileName": ["NOTES.md"]}}
    assert shown["settings"][-2]["places"] == ["~/.gemini/settings.json:1"]


@pytest.mark.usefixtures("layers")
def test_the_environment_wins_over_all_files(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_MODEL", "gemini-c")
    found = {one["key"]: one for one in run("settings", "show", "--json").json["settings"]}
    assert found["gemdeck.model"]["value"] == "gemini-c"
    assert found["gemdeck.model"]["places"][0] == "GEMINI_MODEL"


@pytest.mark.usefixtures("layers")
def test_problems_have_a_file_and_a_line(run: Run) -> None:
    checked = run("settings", "check", "--json", code=ExitCode.ERROR)
    [problem] = checked.json["problems"]
    assert (problem["file"], problem["line"]) == ("~/.gemini/settings.json", 6)
    assert "GEMDECK_NOT_SET is not set" in problem["message"]
    (Path.home() / ".gemini" / "settings.json").write_text("{")
    assert run("settings", "check").code == ExitCode.BAD_SETTINGS


def test_without_files_nothing_is_wrong(run: Run) -> None:
    assert run("settings", "check").stdout == "No problems found.\n"
    states = {one["layer"]: one["state"] for one in run("settings", "path", "--json").json["files"]}
    assert states["user"] == "absent"


@pytest.mark.slow
def test_editing_begins_the_file_and_checks_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "true")
    assert run("settings", "edit").stdout == "No problems found.\n"
    assert (Path.home() / ".gemini" / "settings.json").exists()


def schema(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("settings", "schema").stdout)
    jsonschema.Draft202012Validator.check_schema(found)
    return found


def test_the_sample_obeys_the_schema_which_refuses_what_we_refuse(run: Run) -> None:
    rules = schema(run)
    jsonschema.validate(dict(parse_document(sample_settings()).content), rules)
    server = {"command": "x", "args": {"b": 1}}
    wrong: list[dict[str, Any]] = [{"mcpServers": {"a": server}}, {"mcpServers": []}]
    for settings in (*wrong, {"gemdeck": {"maxToolCalls": 0}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(settings, rules)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(run: Run, shell: str) -> None:
    script = run("completion", shell, code=0)
    assert f"_GEMDECK_COMPLETE={shell}_complete" in script.stdout


@pytest.mark.usefixtures("run")
def test_commands_options_and_servers_are_completed() -> None:
    write_settings({"mcpServers": {"notes": {"command": "x"}}})
    shell = BashComplete(main, {}, "gemdeck", "_GEMDECK_COMPLETE")

    def completed(*words: str) -> list[str]:
        return [one.value for one in shell.get_completions(list(words[:-1]), words[-1])]

    assert (completed("do"), completed("mcp", "en")) == (["doctor"], ["enable"])
    assert completed("mcp", "show", "n") == ["notes"]
    assert "--output-format" in completed("--out")
    assert completed("-o", "st") == ["stream-json"]
    assert completed("help", "se") == ["servers", "sessions", "settings", "security"]
