"""Runs without a user: what nobody allowed does not run, and what is denied never does."""

from collections.abc import Mapping
from types import MappingProxyType

from tests.cli.running import Result, notes_server, run, write_settings
from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Call, Say
from tui.cli.output import ExitCode

NOTHING: Mapping[str, object] = MappingProxyType({})
ADD_NOTE = [{"server": "notes", "tool": "add_note"}]
DENIED = [{"server": "NOTES", "tool": "ADD_*"}]


async def turn(
    gemini: FakeGemini, *flags: str, more: Mapping[str, object] = NOTHING, **gemdeck: object
) -> Result:
    """Run a turn in which the model adds a note, with rules of the user's."""
    gemini.steps = [[Call([("add_note", {"text": "milk"})])], [Say("done")]]
    write_settings({"mcpServers": {"notes": notes_server()}, "gemdeck": gemdeck, **more})
    return await run("-p", "x", "-o", "json", *flags, gemini=gemini)


def statuses(result: Result) -> list[str]:
    return [call["status"] for call in result.json["tool_calls"]]


async def test_A08_what_the_command_line_or_a_rule_of_the_user_allows_runs_without_a_user(
    gemini: FakeGemini,
) -> None:
    for flags in (("--yolo",), ("--approval-mode", "yolo")):
        assert statuses(await turn(gemini, *flags)) == ["ok"]
    assert statuses(await turn(gemini, alwaysAllow=ADD_NOTE)) == ["ok"]
    assert statuses(await turn(gemini, "--allowed-tools", "", alwaysAllow=[])) == ["denied"]


async def test_A08_a_rule_that_denies_holds_whatever_the_command_line_says(
    gemini: FakeGemini,
) -> None:
    by_name = ("--allowed-tools", "notes.add_note")
    for flags in (("--yolo",), by_name, ("--yolo", "--allowed-tools", "notes")):
        result = await turn(gemini, *flags, alwaysDeny=DENIED, alwaysAllow=ADD_NOTE)
        assert statuses(result) == ["error"]
        assert '"add_note"' not in str(gemini.requests[-2].body.get("tools"))


async def test_A08_what_a_rule_asks_about_is_denied_with_its_reason_whatever_permits_it(
    gemini: FakeGemini,
) -> None:
    asks: dict[str, object] = {"tools": {"confirmationRequired": ["mcp_notes_add_note"]}}
    for flags in (("--yolo",), ("--allowed-tools", "notes.add_note")):
        result = await turn(gemini, *flags, more=asks, alwaysAllow=ADD_NOTE)
        assert statuses(result) == ["denied"]
        where = "tools.confirmationRequired in ~/.gemini/settings.json"
        why = f"It always needs approval: {where} requires it."
        assert result.stderr.endswith(f"nobody can be asked. {why}\n")
        assert "--allowed-tools" not in result.stderr


async def test_A08_where_yolo_is_forbidden_no_run_begins_with_it(gemini: FakeGemini) -> None:
    forbids: dict[str, object] = {"security": {"disableYoloMode": True}}
    words = "--yolo is forbidden by security.disableYoloMode in ~/.gemini/settings.json"
    result = await turn(gemini, "--approval-mode", "yolo", more=forbids)
    assert (result.code, result.json["error"]["type"]) == (52, "FatalConfigError")
    assert words in result.stderr
    assert gemini.requests == []
    screen = await run("-i", "x", "--yolo", gemini=gemini)
    assert (screen.code, screen.stdout, screen.stderr) == (52, "", f"gemdeck: {words}\n")


async def test_A08_a_tool_or_server_that_is_not_there_is_told(gemini: FakeGemini) -> None:
    result = await turn(gemini, "--allowed-tools", "notes.ad_note,notes")
    assert "--allowed-tools: notes has no tool ad_note" in result.stderr
    assert result.stderr.count("--allowed-tools") == 1
    assert statuses(result) == ["ok"]

    result = await turn(gemini, "--allowed-tools", "note.add_note")
    words = "--allowed-tools: note.add_note matches no server; configured: notes"
    assert words in result.stderr
    assert words in result.json["warnings"]
    assert statuses(result) == ["denied"]


async def test_A08_a_word_with_two_meanings_runs_nothing_though_one_server_is_down(
    gemini: FakeGemini,
) -> None:
    down = {"command": "no-such-program"}
    write_settings({"mcpServers": {"notes": notes_server(), "notes.add_note": down}})
    result = await run("-p", "x", "-o", "json", "--allowed-tools", "notes.add_note", gemini=gemini)
    assert result.code == ExitCode.USAGE
    assert "all tools of notes.add_note or the tool add_note of notes" in result.stderr
    assert gemini.requests == []
