"""Each key of gemini-cli's settings is obeyed, named as without effect, or changes nothing here."""

from pathlib import Path

from tests.cli.running import run, write_settings
from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Say
from tests.unit.engine.approval.verdicts import recorded
from tests.unit.engine.settings.conftest import Machine
from tui.cli.output import ExitCode
from tui.engine.settings.prohibitions import key_table
from tui.model.input.own_commands import ALIASES, OWN_COMMANDS

GROUPS = ("obeyed", "nothing", "told", "named")
UNDOCUMENTED = {"mcp.autoAllowInHeadless"}
"""Its code reads it, its schema does not have it."""


def set_at(content: dict[str, object], key: str) -> dict[str, object]:
    *above, last = key.split(".")
    place = content
    for name in above:
        place = place.setdefault(name, {})  # type: ignore[assignment]
    place[last] = [True]
    return content


def test_each_key_of_gemini_cli_has_its_place_in_the_table() -> None:
    placed = [key for group in GROUPS for key in key_table()[group]]
    assert len(placed) == len(set(placed)), "in one group alone"
    known = {key.rstrip(".") for key in recorded("keys")}
    above = {key.rsplit(".", depth)[0] for key in known for depth in range(5)}
    assert len(known) >= 217
    assert set(placed) - above == UNDOCUMENTED
    lost = [
        key for key in known if not {key.rsplit(".", depth)[0] for depth in range(5)} & {*placed}
    ]
    assert lost == []
    assert {*key_table()["project"]} - {"sandbox"} <= {*key_table()["obeyed"]}


def test_a_key_without_effect_is_named_where_it_stands(machine: Machine) -> None:
    for group in ("told", "named"):
        for key in key_table()[group]:
            machine.write("user", set_at({}, key))
            [problem] = machine.load().problems
            assert (problem.key, problem.quiet) == (key, group == "named")
    for key in key_table()["nothing"]:
        machine.write("user", set_at({}, key))
        assert machine.load().problems == (), key
    machine.write("user", {})
    for key in key_table()["project"]:
        machine.write("project", set_at({}, key))
        [problem] = machine.load().problems
        assert (problem.key, problem.message) == (key, "has no effect in a project's file")


async def test_what_harms_nobody_is_named_to_who_asks_and_to_nobody_else() -> None:
    write_settings({"general": {"vimMode": True}, "ui": {"theme": "x"}})
    commands = Path.home() / ".gemini" / "commands" / "git"
    commands.mkdir(parents=True)
    (commands / "commit.toml").write_text('prompt = "x"')
    (Path.home() / ".gemini" / "keybindings.json").write_text("[]")
    names = ("GEMINI_DEFAULT_AUTH_TYPE", "OAUTH_CALLBACK_PORT", "GOOGLE_GENAI_USE_GCA")
    env = {**dict.fromkeys(names, "/x"), "GEMINI_WRITE_SYSTEM_MD": "0"}
    checked = await run("settings", "check", env=env)
    assert checked.code == 0
    lines = checked.stdout.splitlines()
    named = ("general.vimMode", *names, "commands", "keybindings.json")
    assert [name for name in named if name not in checked.stdout] == []
    assert len(lines) == len(named)
    listed = (await run("settings", "check", "--json", env=env)).json["problems"]
    assert {one["quiet"] for one in listed} == {True}
    doctor = await run("doctor", "--offline", "--json", env=env)
    [section] = (one for one in doctor.json["sections"] if one["title"] == "Settings")
    notes = [one["text"] for one in section["findings"] if one["verdict"] == "note"]
    assert [line for line in lines if line not in notes] == []
    async with FakeGemini([[Say("done")]]) as gemini:
        assert (await run("-p", "x", gemini=gemini, env=env)).stderr == ""
    write_settings({"tools": {"allowed": ["x"]}})
    assert (await run("settings", "check")).code == 1


async def test_what_changes_an_answer_is_told_at_each_start() -> None:
    write_settings({"tools": {"discoveryCommand": "find-tools"}})
    names = ("GEMINI_CLI_HOME", "GEMINI_CLI_CUSTOM_HEADERS", "GEMINI_SYSTEM_MD")
    env = dict.fromkeys(names, "/x")
    async with FakeGemini([[Say("done")]]) as gemini:
        told = (await run("-p", "x", gemini=gemini, env=env)).stderr
    checked = await run("settings", "check", env=env)
    for name in (*names, "tools.discoveryCommand"):
        assert f"{name}: " in told
        assert f"{name}: " in checked.stdout
    assert checked.code == 1


async def test_the_settings_say_what_a_run_prints_unless_the_command_line_does() -> None:
    write_settings({"output": {"format": "json"}})
    async with FakeGemini([[Say("one")], [Say("two")]]) as gemini:
        assert (await run("-p", "x", gemini=gemini)).json["response"] == "one"
        assert (await run("-p", "x", "-o", "text", gemini=gemini)).stdout == "two\n"
    write_settings({"output": {"format": "yaml"}})
    assert "output.format: must be text or json" in (await run("settings", "check")).stdout


async def test_what_is_typed_for_gemini_cli_gets_what_serves_here() -> None:
    for name, serving in key_table()["command_line"].items():
        result = await run(name, "x")
        assert result.code == ExitCode.USAGE
        assert f"gemdeck has no {name}: {serving}." in result.stderr
    for typed in ("how are you?", "mcpp"):
        result = await run(typed)
        assert result.code == ExitCode.USAGE
        assert f"There is no command {typed}. To send a message: -p TEXT" in result.stderr
    assert "No such option" in (await run("--nothing")).stderr


def test_each_command_of_gemini_cli_is_none_of_ours() -> None:
    known = {*OWN_COMMANDS, *ALIASES}
    assert not known & {name for name in key_table()["commands"] if " " not in name}
    assert {name.split()[0] for name in key_table()["commands"] if " " in name} <= known
