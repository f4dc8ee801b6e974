"""What a question about a call shows: the difference to a file, and a form that changes nothing."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.support.waiting import eventually
from tests.unit.engine.chats.support import make_inquiry, make_policy, make_tool
from tui.engine.approval.gate import Gate
from tui.engine.approval.inquiry import MAX_FILE, file_change
from tui.engine.desk import Desk
from tui.engine.mcp.catalog.permit import Permit
from tui.model.consent import Choice, Decision
from tui.model.events import Event, RequestRaised
from tui.model.requests import ConfirmationRequest, FileChange

BEFORE = "import os\nprint(1)\nprint(2)\nend\n"
AFTER = "import os\nprint(3)\nend\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "folder"
    (place / "src").mkdir(parents=True)
    (place / "src" / "a.py").write_text(BEFORE)
    (tmp_path / "outside.py").write_text(BEFORE)
    return place


def compared(folder: Path, path: str, content: str = AFTER) -> FileChange | None:
    return file_change(folder, {"path": path, "content": content})


def test_all_lines_of_both_are_there_with_what_becomes_of_the_file(folder: Path) -> None:
    change = compared(folder, "src/a.py")
    assert change is not None
    told = (change.path, change.content, change.summary)
    assert told == ("path", "content", "overwrites · +1 -2")
    assert change.lines == ((" ", ""), ("-", "print(1)"), ("-", "print(2)"), ("+", ""), (" ", ""))
    assert compared(folder, str(folder / "src" / "a.py")) == change
    for content, summary in (
        (BEFORE, "overwrites · unchanged"),
        (BEFORE + "more\n", "overwrites · +1 -0"),
        ("import os\nend\n", "overwrites · +0 -2"),
        ("", "overwrites · +1 -4"),
    ):
        change = compared(folder, "src/a.py", content)
        assert change is not None
        assert change.summary == summary
        count = sum(sign != "-" for sign, _ in change.lines)
        assert count == len(content.removesuffix("\n").split("\n"))
    (folder / "b.txt").write_text("a\u200bb\x1b[2J\n")
    change = compared(folder, "b.txt")
    assert change is not None
    assert change.lines[0] == ("-", "a\\u200bb\\u001b[2J"), "what a file hides is shown"


def test_an_edit_is_compared_with_the_text_that_it_replaces(folder: Path) -> None:
    edits = [
        {"newText": "import sys\n", "oldText": "import os\n"},
        {"newText": "print(3)", "oldText": "print"},  # which is there twice
        {"newText": "", "oldText": "import sys\r\n"},  # which the first edit has written
        {"newText": "x", "oldText": "print(9)"},
        {"note": "no edit"},
    ]
    change = file_change(folder, {"path": "src/a.py", "edits": edits, "dryRun": False})
    assert change is not None
    assert (change.path, change.content, change.summary) == ("path", "", "edits · +3 -4")
    assert [(edit.name, edit.place, edit.first) for edit in change.edits] == [
        ("edits[0]", "line 1", 1),
        ("edits[1]", "2 times in the file", 0),
        ("edits[2]", "line 1", 1),
        ("edits[3]", "not found in the file as written here", 0),
    ]
    assert change.edits[0].lines == (("-", "import os"), ("+", "import sys"), (" ", ""))
    assert all(edit.texts == ("oldText", "newText") for edit in change.edits)


def test_an_edit_of_a_file_elsewhere_is_shown_without_its_place(folder: Path) -> None:
    for path in ("../outside.py", "new.py"):
        asked = {"path": path, "old_str": "a", "new_str": "b", "content": "c"}
        change = file_change(folder, asked)
        assert change is not None
        (edit,) = change.edits
        assert (change.path, edit.name, edit.place) == ("", "", "")
        assert edit.texts == ("old_str", "new_str")
        assert edit.lines == (("-", "a"), ("+", "b"))


def test_only_texts_of_the_folder_are_read(folder: Path) -> None:
    (folder / "link.py").symlink_to(folder.parent / "outside.py")
    (folder / "up").symlink_to(folder.parent)
    (folder / "bytes").write_bytes(b"\xff\xfe\x00")
    (folder / "large").write_text("x" * (MAX_FILE + 1))
    os.mkfifo(folder / "pipe")
    for path in (
        *("../outside.py", str(folder.parent / "outside.py"), "link.py", "up/outside.py"),
        *("bytes", "large", "pipe", "src", ".", "", "new.py", "a\0b", "x" * 5_000),
    ):
        assert compared(folder, path) is None, path


def test_what_holds_no_content_for_one_file_is_not_compared(folder: Path) -> None:
    for other in (
        {"pattern": "a\nb"},
        {"text": "one line is looked for"},
        {"content": 5},
        {"other": "src/a.py", "content": AFTER},
        {"content": AFTER, "contents": AFTER},
    ):
        assert file_change(folder, {"path": "src/a.py", **other}) is None, other
    for named in (5, None, ["src/a.py"], "src/a.py\n"):
        assert file_change(folder, {"path": named, "content": AFTER}) is None, named


async def test_questions_have_the_difference_and_come_in_order(folder: Path) -> None:
    events: list[Event] = []
    desk = Desk(events.append)
    gate = Gate(desk, events.append, make_policy(), folder=folder)
    tool = make_tool("write")
    calls = [{"path": "src/a.py", "content": AFTER}, {"path": "src/a.py"}]
    inquiries = [make_inquiry(tool, arguments=arguments) for arguments in calls]
    tasks = [asyncio.create_task(gate.decide(one)) for one in inquiries]

    def asked() -> list[ConfirmationRequest]:
        found = (event.request for event in events if isinstance(event, RequestRaised))
        return [one for one in found if isinstance(one, ConfirmationRequest)]

    await eventually(lambda: len(asked()) == len(calls))
    assert [request.change is None for request in asked()] == [False, True]
    for request in asked():
        desk.answer(request.id, Decision(Choice.ONCE))
    assert [type(outcome) for outcome in await asyncio.gather(*tasks)] == [Permit, Permit]
