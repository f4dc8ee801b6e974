"""`gemdeck sessions`: saved conversations without a screen."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.engine.sessions.written import turn, write
from tui.cli.output import ExitCode
from tui.engine.chats.sessions.library import SessionLibrary
from tui.engine.files.paths import state_dir
from tui.model.sessions import SessionView


@pytest.fixture
def saved(run: Run, tmp_path: Path) -> SessionView:  # noqa: ARG001 - which enters the folder
    """Save a session of this folder, and one of another."""
    library = SessionLibrary(state_dir())
    write(library, tmp_path / "other", turn(1, "elsewhere", "yes"), id="20260101-000000-aaaaaa")
    here = turn(1, "how are you?", "Fine \u202ethanks.")
    return write(library, Path.cwd(), here, first="how are you?", turns=1, model="m")


def test_sessions_are_listed_by_folder_or_all(run: Run, saved: SessionView) -> None:
    listed = run("sessions", "list")
    assert listed.code == 0
    assert str(saved.id) in listed.stdout
    assert "1 turn  m  how are you?" in listed.stdout
    everywhere = run("sessions", "list", "--all", "--json").json["sessions"]
    assert {one["id"] for one in everywhere} == {saved.id, "20260101-000000-aaaaaa"}


@pytest.mark.usefixtures("saved")
def test_a_session_is_printed_and_written_to_a_new_file(run: Run) -> None:
    shown = run("sessions", "show")
    assert shown.code == 0
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


def test_a_session_is_deleted(run: Run, saved: SessionView) -> None:
    assert run("sessions", "delete", str(saved.id)[:15]).stdout == f"Deleted: {saved.id}.\n"
    assert run("sessions", "list").stdout == "There are no sessions.\n"
    gone = run("sessions", "delete", str(saved.id))
    assert (gone.code, gone.stdout) == (ExitCode.NOT_FOUND, "")


def test_an_empty_id_deletes_nothing(run: Run, saved: SessionView) -> None:
    refused = run("sessions", "delete", "")
    assert (refused.code, "an ID is empty" in refused.stderr) == (2, True)
    assert str(saved.id) in run("sessions", "list").stdout
