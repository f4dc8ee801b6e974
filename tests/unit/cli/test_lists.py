"""`gemdeck grants`, `trust`, `sessions` and `import`: what is shown, taken back and written."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import write_settings
from tests.unit.cli.conftest import Run
from tests.unit.engine.sessions.written import turn, write
from tui.cli.output import ExitCode
from tui.engine.approval.grants import FILE_NAME, Grant, GrantBook, GrantNote
from tui.engine.chats.sessions.library import SessionLibrary
from tui.engine.files.paths import state_dir
from tui.engine.files.state_file import private_file
from tui.model.consent import Effect, GrantScope
from tui.model.sessions import SessionView


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
    assert (taken.code, taken.stdout) == (0, "Revoked: notes.add_note.\n")
    assert run("grants", "list").stdout == "There are no grants.\n"


def test_rules_of_the_settings_stay(run: Run) -> None:
    entry = {"command": "x", "trust": True}
    deny = {"alwaysDeny": [{"server": "a", "tool": "b"}]}
    write_settings({"gemdeck": deny, "mcpServers": {"a": entry}})
    listed = run("grants", "list", "--json").json["grants"]
    assert {one["effect"] for one in listed} == {"deny", "allow"}
    refused = run("grants", "revoke", listed[0]["id"], code=ExitCode.ERROR)
    assert "Remove it at its source" in refused.stderr
    assert run("grants", "revoke", "none").code == ExitCode.NOT_FOUND


@pytest.fixture
def entry(run: Run) -> Path:  # noqa: ARG001 - which enters the folder
    """Let the folder bring a server."""
    path = Path.cwd() / ".gemini" / "settings.json"
    path.parent.mkdir()
    bring(path, "one")
    return path


def bring(path: Path, argument: str) -> None:
    entry = {"command": "bash", "args": ["-c", argument]}
    path.write_text(json.dumps({"mcpServers": {"here": entry}}))


@pytest.mark.usefixtures("entry")
def test_what_is_shown_is_what_is_trusted(run: Run) -> None:
    shown = run("trust", "show", code=0)
    assert "This folder: untrusted." in shown.stdout
    assert "Runs a shell (bash)" in shown.stdout
    name = shown.stdout.split()[-1]
    allowed = run("trust", "allow", name)
    assert (allowed.code, allowed.stdout) == (0, "This folder: trusted.\n")
    assert run("trust", "show", "--json").json["trust"] == "trusted"
    assert run("trust", "forget").stdout == "This folder: untrusted.\n"


def test_other_content_than_was_shown_is_not_trusted(run: Run, entry: Path) -> None:
    name = run("trust", "show", "--json").json["id"]
    bring(entry, "two")
    refused = run("trust", "allow", name)
    assert (refused.code, refused.stdout) == (ExitCode.NOT_FOUND, "")
    assert "content has changed" in refused.stderr
    assert run("trust", "allow", "").code == ExitCode.NOT_FOUND
    assert run("trust", "show", "--json").json["trust"] == "untrusted"


@pytest.mark.usefixtures("entry")
def test_a_folder_that_is_never_trusted_can_be_forgotten(run: Run) -> None:
    rows = (("never", "never trusted"), ("show", "never trusted"), ("forget", "untrusted"))
    for word, trust in rows:
        assert run("trust", word, "--json").json["trust"] == trust


def test_your_own_servers_that_wait_here_are_shown(run: Run) -> None:
    (Path.cwd() / "server.py").write_text("")
    waiting = {"command": "python3", "args": ["server.py"]}
    servers = {"mine": waiting, "elsewhere": {"command": "true"}}
    write_settings({"mcpServers": servers})
    shown = run("trust", "show", "--json").json
    assert [one["server"] for one in shown["waiting"]] == ["mine"]
    words = run("trust", "show").stdout
    assert "Your own servers that load code from this folder and wait for your approval:" in words
    assert "server.py" in words
    assert "elsewhere" not in words


def test_a_folder_and_an_entry_that_bring_nothing_are_shown_too(run: Run) -> None:
    known, trust = run("trust", "show").stdout.splitlines()
    assert known == "This folder: no project settings."
    assert trust.startswith("To trust exactly this: gemdeck trust allow ")
    assert run("trust", "allow", "0" * 12).code == ExitCode.NOT_FOUND
    entry = Path.cwd() / ".gemini" / "settings.json"
    entry.parent.mkdir()
    entry.write_text('{"mcpServers": {"empty": {}, "wrong": 5, "here": {"command": "bash"}}}')
    shown = run("trust", "show")
    assert (shown.code, "empty in " in shown.stdout, "wrong in " in shown.stdout) == (0, True, True)


@pytest.fixture
def saved(run: Run, tmp_path: Path) -> SessionView:  # noqa: ARG001 - which enters the folder
    """Save a session of this folder, and one of another."""
    library = SessionLibrary(state_dir())
    write(library, tmp_path / "other", turn(1, "elsewhere", "yes"), id="20260101-000000-aaaaaa")
    here = turn(1, "how are you?", "Fine \u202ethanks.")
    return write(library, Path.cwd(), here, first="how are you?", turns=1, model="m")


def test_sessions_are_listed_by_folder_or_all(run: Run, saved: SessionView) -> None:
    listed = run("sessions", "list", code=0)
    assert str(saved.id) in listed.stdout
    assert "1 turn  m  how are you?" in listed.stdout
    everywhere = run("sessions", "list", "--all", "--json").json["sessions"]
    assert {one["id"] for one in everywhere} == {saved.id, "20260101-000000-aaaaaa"}


def test_sessions_are_searched_by_their_text(run: Run, saved: SessionView) -> None:
    found = run("sessions", "search", "fine", "THANKS", code=0).stdout
    assert str(saved.id) in found
    assert "Fine ⟨U+202E⟩thanks." in found
    assert run("sessions", "search", "elsewhere").stdout == "No session has these words.\n"
    everywhere = run("sessions", "search", "elsewhere", "--all", "--json").json
    [one] = everywhere["sessions"]
    assert (one["id"], one["line"]) == ("20260101-000000-aaaaaa", "elsewhere")
    assert everywhere["not_searched"] == 0
    assert run("sessions", "search").code == ExitCode.USAGE


@pytest.mark.usefixtures("saved")
def test_a_session_is_printed_and_written_to_a_new_file(run: Run) -> None:
    shown = run("sessions", "show", code=0)
    assert "how are you?" in shown.stdout
    assert "\u202e" not in shown.stdout
    assert run("sessions", "show", "latest", "--json").json["kind"] == "gemdeck session"
    assert run("sessions", "export", "latest", "s.json").code == 0
    assert json.loads(Path("s.json").read_text())["entries"]
    assert Path("s.json").stat().st_mode & 0o077 == 0
    again = run("sessions", "export", "latest", "s.json")
    assert (again.code, "File exists" in again.stderr) == (ExitCode.ERROR, True)


def test_a_time_beyond_the_calendar_is_shown_all_the_same(run: Run, saved: SessionView) -> None:
    path = SessionLibrary(state_dir()).path_of(saved)
    first, rest = path.read_text().split("\n", 1)
    path.write_text(json.dumps(json.loads(first) | {"started": 9e15}) + "\n" + rest)
    shown = run("sessions", "show")
    assert (shown.code, "- began: 9999-12-3" in shown.stdout) == (0, True)


def test_a_session_is_deleted_and_an_empty_id_deletes_nothing(run: Run, saved: SessionView) -> None:
    refused = run("sessions", "delete", "")
    assert (refused.code, "an ID must not be empty" in refused.stderr) == (2, True)
    assert str(saved.id) in run("sessions", "list").stdout
    assert run("sessions", "delete", str(saved.id)[:15]).stdout == f"Deleted: {saved.id}.\n"
    assert run("sessions", "list").stdout == "There are no sessions.\n"
    gone = run("sessions", "delete", str(saved.id))
    assert (gone.code, gone.stdout) == (ExitCode.NOT_FOUND, "")


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
    result = run("import", code=0)
    assert f"command    bash -c 'echo {words}'" in result.stdout
    assert "Runs a shell (bash)" in result.stdout
    assert "variables  TOKEN" in result.stdout
    assert "s3cret" not in result.stdout
    assert "Nothing was imported." in result.stdout
    assert settings() == {}


def test_only_what_is_chosen_is_written_and_nothing_is_started(run: Run, tmp_path: Path) -> None:
    canary = tmp_path / "ran"
    cursor({"a": {"command": "touch", "args": [str(canary)]}, "b": {"command": "y"}})
    result = run("import", "cursor", "a", "--json")
    assert (result.code, result.json["written"]) == (0, ["a"])
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


def test_what_was_not_given_can_be_given_later_and_who_gives_in_vain_is_told(run: Run) -> None:
    env = {"GH_TOKEN": "${env:GH_TOKEN}", "TOK": "${input:tok}"}
    cursor({"gh": {"command": "x", "env": env}, "odd": {"command": "${CMD}"}})
    first = run("import", "cursor", "gh", "--give", "NOPE")
    assert (first.code, first.stderr) == (0, "gemdeck: No server asks for NOPE.\n")
    asks = "Not passed: TOK, which the client prompts for. Import with --give TOK and set"
    assert (asks in first.stdout, first.stdout.count("TOK,")) == (True, 1)
    assert "Its command needs CMD: import it with --give CMD." in first.stdout
    assert run("import", "cursor", "gh").code == 0, "it is there, as it was to be"
    again = run("import", "cursor", "gh", "--give", "GH_TOKEN")
    why = "Nothing was imported: gh is already in your settings. Remove it first"
    how = """(gemdeck mcp remove -s user gh), or add "GH_TOKEN": "${GH_TOKEN}" to its entry."""
    assert (again.code, again.stdout.splitlines()[-1]) == (1, f"{why} {how}")
    odd = run("import", "cursor", "odd")
    assert (odd.code, odd.stdout.splitlines()[-1]) == (1, "Nothing was imported.")
    assert run("import", "cursor", "odd", "--give", "CMD").code == 0


def test_what_is_not_there_is_said(run: Run, tmp_path: Path) -> None:
    assert run("import").stdout == "No servers of other clients were found.\n"
    missing = run("import", "cursor", "a", code=ExitCode.NOT_FOUND)
    assert missing.stderr == "gemdeck: There is no server a.\n"
    (tmp_path / "broken.json").write_text("{")
    broken = run("import", "zed", "--file", str(tmp_path / "broken.json"), code=0)
    assert "line 1" in broken.stdout
    assert run("import", "--file", str(tmp_path / "broken.json")).code == ExitCode.USAGE
