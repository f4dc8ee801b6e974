"""`gemdeck grants`: rules on tools, and taking them back."""

import asyncio

import pytest

from tests.cli.running import write_settings
from tests.unit.cli.conftest import Run
from tui.cli.output import ExitCode
from tui.engine.approval.grants import FILE_NAME, Grant, GrantBook, GrantNote
from tui.engine.files.paths import state_dir
from tui.engine.files.state_file import private_file
from tui.model.consent import Effect, GrantScope


@pytest.fixture
def grant() -> Grant:
    """Save a rule."""
    scope = GrantScope.EVERYWHERE
    grant = Grant(Effect.ALLOW, "f" * 64, "add_note", "d" * 64, scope, "", ())

    async def save() -> None:
        book = GrantBook(private_file(state_dir(), FILE_NAME, print))
        await book.refresh()
        book.add({grant: GrantNote("notes", "add_note", "always this tool")})
        await book.aclose()

    asyncio.run(save())
    return grant


def test_rules_are_listed_and_taken_back(run: Run, grant: Grant) -> None:
    [listed] = run("grants", "list", "--json").json["grants"]
    assert (listed["server"], listed["tool"], listed["effect"]) == ("notes", "add_note", "allow")
    assert listed["id"] == grant.id
    assert f"{grant.id[:8]}  allow  notes.add_note" in run("grants", "list").stdout
    assert run("grants", "revoke", "").code == ExitCode.USAGE
    taken = run("grants", "revoke", grant.id[:8])
    assert (taken.code, taken.stdout) == (0, "Taken back: notes.add_note.\n")
    assert run("grants", "list").stdout == "There are no rules on tools.\n"


def test_rules_of_the_settings_stay(run: Run) -> None:
    entry = {"command": "x", "trust": True}
    deny = {"alwaysDeny": [{"server": "a", "tool": "b"}]}
    write_settings({"gemdeck": deny, "mcpServers": {"a": entry}})
    listed = run("grants", "list", "--json").json["grants"]
    assert {one["effect"] for one in listed} == {"deny", "allow"}
    refused = run("grants", "revoke", listed[0]["id"])
    assert refused.code == ExitCode.ERROR
    assert "Remove it where it stands" in refused.stderr
    assert run("grants", "revoke", "none").code == ExitCode.NOT_FOUND
