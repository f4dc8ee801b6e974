"""Runs without a user: what nobody allowed does not run, and what is denied never does."""

from collections.abc import AsyncIterator

import pytest

from tests.cli.running import notes_server, run, write_settings
from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Call, Say
from tui.cli.output import ExitCode


@pytest.fixture
async def gemini() -> AsyncIterator[FakeGemini]:
    async with FakeGemini([[Call([("add_note", {"text": "milk"})])], [Say("done")]]) as fake:
        yield fake


def rules(**gemdeck: object) -> dict[str, object]:
    return {"mcpServers": {"notes": notes_server()}, "gemdeck": gemdeck}


ADD_NOTE = [{"server": "notes", "tool": "add_note"}]


async def test_A08_yolo_runs_what_no_rule_denies(gemini: FakeGemini) -> None:
    write_settings(rules())
    result = await run("-p", "x", "-o", "json", "--yolo", gemini=gemini)
    assert [call["status"] for call in result.json["tool_calls"]] == ["ok"]


@pytest.mark.parametrize(
    "flags",
    [
        ("--yolo",),
        ("--allowed-tools", "notes.add_note"),
        ("--yolo", "--allowed-tools", "notes"),
    ],
)
async def test_A08_a_rule_that_denies_holds_whatever_the_command_line_says(
    gemini: FakeGemini, flags: tuple[str, ...]
) -> None:
    settings = rules(alwaysDeny=[{"server": "NOTES", "tool": "ADD_*"}], alwaysAllow=ADD_NOTE)
    write_settings(settings)
    result = await run("-p", "x", "-o", "json", *flags, gemini=gemini)
    assert [call["status"] for call in result.json["tool_calls"]] == ["error"]
    assert '"add_note"' not in str(gemini.requests[0].body.get("tools"))


async def test_A08_a_rule_of_the_users_settings_allows_without_a_user(gemini: FakeGemini) -> None:
    write_settings(rules(alwaysAllow=ADD_NOTE))
    result = await run("-p", "x", "-o", "json", gemini=gemini)
    assert [call["status"] for call in result.json["tool_calls"]] == ["ok"]


async def test_A08_an_empty_list_allows_nothing(gemini: FakeGemini) -> None:
    write_settings(rules(alwaysAllow=[]))
    result = await run("-p", "x", "-o", "json", "--allowed-tools", "", gemini=gemini)
    assert [call["status"] for call in result.json["tool_calls"]] == ["denied"]


async def test_A08_a_tool_that_its_server_does_not_have_is_told(gemini: FakeGemini) -> None:
    write_settings(rules())
    result = await run(
        "-p", "x", "-o", "json", "--allowed-tools", "notes.ad_note,notes", gemini=gemini
    )
    assert "--allowed-tools: notes has no tool ad_note" in result.stderr
    assert result.stderr.count("--allowed-tools") == 1
    assert [call["status"] for call in result.json["tool_calls"]] == ["ok"]


async def test_A08_a_server_that_is_not_configured_is_told(gemini: FakeGemini) -> None:
    write_settings(rules())
    result = await run("-p", "x", "-o", "json", "--allowed-tools", "note.add_note", gemini=gemini)
    words = "--allowed-tools: note.add_note names no server; configured are: notes"
    assert words in result.stderr
    assert words in result.json["warnings"]
    assert [call["status"] for call in result.json["tool_calls"]] == ["denied"]


async def test_A08_a_word_with_two_meanings_runs_nothing_though_one_server_is_down(
    gemini: FakeGemini,
) -> None:
    down = {"command": "no-such-program"}
    write_settings({"mcpServers": {"notes": notes_server(), "notes.add_note": down}})
    result = await run("-p", "x", "-o", "json", "--allowed-tools", "notes.add_note", gemini=gemini)
    assert result.code == ExitCode.USAGE
    assert "all tools of notes.add_note or the tool add_note of notes" in result.stderr
    assert gemini.requests == []
