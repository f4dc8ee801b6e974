"""The list of sessions, and what leaves and enters it."""

import json
import os
import time
from pathlib import Path

import pytest

from tests.unit.engine.sessions.written import WORK, complain, content, library, turn, write
from tui.engine.chats.sessions.library import SessionError, SessionLibrary, to_json, to_markdown
from tui.engine.chats.sessions.session_file import SessionFile
from tui.engine.logs.redaction import Redactor

__all__ = ["library"]


def test_sessions_are_listed_with_the_latest_first(library: SessionLibrary, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    old = write(library, here, turn(1, "old", "1"), first="old", model="m", tokens=12, turns=1)
    new = write(library, here, turn(1, "new", "1"), first="new")
    write(library, there, turn(1, "else", "1"), first="else")
    os.utime(library.path_of(old), (1, 1))
    assert [view.first for view in library.sessions(here)] == ["new", "old"]
    assert {view.first for view in library.sessions()} == {"new", "old", "else"}
    listed = library.sessions(here)[1]
    assert (listed.model, listed.tokens, listed.turns, listed.changed) == ("m", 12, 1, 1.0)
    assert library.find("latest", here) == new
    assert library.find(old.id[:-1] if old.id[:-1] not in new.id else old.id).id == old.id
    assert library.find(old.id[-6:], here).id == old.id
    with pytest.raises(SessionError, match="no such session"):
        library.find("20000101", here)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("REBASE", "how do I rebase a branch?"),
        ("branch rebase", "how do I rebase a branch?"),
        ("merge \u202e", ""),
        ("merge", "Do not ⟨U+202E⟩merge."),
        ("conflict", "git log {} one conflict"),
        ("trip", "my trip"),
        ("hidden", ""),
        ("rebase merge", ""),
        ("  ", ""),
    ],
)
def test_the_text_of_all_sessions_is_searched(
    library: SessionLibrary, words: str, line: str
) -> None:
    ran = {"t": "call", "id": "e5", "server": "git", "tool": "log", "arguments": "{}"}
    call = ran | {"status": "OK", "seconds": 1, "result": "one conflict"}
    pieces = [{"t": "text", "id": "e7", "text": text} for text in ("Do not \u202eme", "rge.")]
    gone = [*turn(9, "hidden?", "hidden"), {"t": "back", "to": 1}]
    records = [*turn(1, "how do I rebase a branch?", "So."), call, *pieces, *gone]
    found = write(library, WORK, records, title="my trip", redactor=Redactor())
    write(library, WORK, turn(1, "else", "no"))
    write(library, WORK / "other", turn(1, "rebase", "no"))
    searched = library.search(words, WORK)
    assert [(one.view.id, one.line) for one in searched.matches] == [(found.id, line)] * bool(line)
    assert len(library.search("rebase").matches) == 2, "in all folders"


def test_a_search_shows_what_is_around_a_match_and_says_what_it_left(
    library: SessionLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = [write(library, WORK, turn(1, "a\n" * 500 + "x" + " b" * 500, "x")) for _ in range(3)]
    [one, *_] = library.search("x", WORK).matches
    assert (one.line.count("x"), len(one.line) < 200) == (1, True)
    assert (one.line[0], one.line[-1]) == ("…", "…")
    assert library.search("x", WORK, lambda: False).left == 3
    monkeypatch.setattr("tui.engine.chats.sessions.library.MAX_SEARCHED", views[0].size)
    found = library.search("x", WORK)
    assert (len(found.matches), found.left) == (1, 2)


def test_a_killed_session_is_listed_by_its_first_line(library: SessionLibrary) -> None:
    write(library, WORK, turn(1, "hi", "x" * 50_000), first="hi", model="m", is_whole=False)
    [view] = library.sessions(WORK)
    assert (view.first, view.model) == ("hi", "m")


def test_the_last_session_says_if_it_was_cut_off_unless_it_is_open(library: SessionLibrary) -> None:
    assert library.last(WORK) is None
    older = write(library, WORK, turn(1, "older", "1"), first="older")
    os.utime(library.path_of(older), (1, 1))
    view = write(library, WORK, turn(1, "one?", "1"), first="one?")
    asked = {"t": "user", "id": "e9", "text": "x" * 20_000}
    for record, is_cut in (
        *(({"t": "queue", "texts": []}, False), (asked, True)),
        ({"t": "text", "id": "e10", "text": '"user"' * 400_000}, True),
        *(({"t": "resumed"}, False), (asked, True), ({"t": "back", "to": 1}, False), (asked, True)),
        ({"t": "end"}, False),
    ):
        file = SessionFile(library.path_of(view), Redactor(), complain)
        file.write([record])
        file.close()
        library.rename(view, "my trip", Redactor(), complain)
        os.utime(library.path_of(view), (9, 9))
        last = library.last(WORK)
        assert last is not None
        assert (last.view.title, last.is_cut) == ("my trip", is_cut), record["t"]
    lock = library.lock(view)
    assert lock is not None
    assert library.last(WORK) is None
    lock.release()


@pytest.mark.parametrize("size", [0, 3_000_000])
def test_the_last_whole_summary_counts_wherever_it_is(library: SessionLibrary, size: int) -> None:
    evil = {"t": "summary", "title": "not this"}
    view = write(library, WORK, turn(1, "hi", "x" * 50_000), title="my trip", tokens=7)
    with library.path_of(view).open("a") as file:
        for record in (content("model", {"functionCall": {"name": "f", "args": evil}}), "x" * size):
            file.write(json.dumps(record, separators=(",", ":")) + "\n")
        file.write('{"t":"summary","title":"cut')
    [listed] = library.sessions(WORK)
    assert (listed.title, listed.tokens) == ("my trip", 7)


def test_another_title_is_kept_and_the_time_stays(library: SessionLibrary) -> None:
    view = write(library, WORK, turn(1, "hi", "1"), tokens=7)
    os.utime(library.path_of(view), (5, 5))
    library.rename(library.find(view.id), "my\x1b[2J trip", Redactor(), complain)
    [renamed] = library.sessions(WORK)
    assert (renamed.title[:2], "\x1b" in renamed.title) == ("my", False)
    assert (renamed.tokens, renamed.changed) == (7, 5.0)
    assert library.read(renamed).view.title == renamed.title


def test_old_sessions_go_and_open_ones_stay(library: SessionLibrary) -> None:
    old, held, new = (write(library, WORK / n, turn(1, n, "1"), first=n) for n in "abc")
    for view in (old, held):
        os.utime(library.path_of(view), (1, 1))
    lock = library.lock(held)
    assert lock is not None
    assert library.delete_old(30, time.time()) == 1
    lock.release()
    assert {view.first for view in library.sessions()} == {held.first, new.first}


def test_foreign_files_are_no_sessions(library: SessionLibrary) -> None:
    view = write(library, WORK, [])
    place = library.path_of(view).parent
    (place / "notes.jsonl").write_text("{}")
    (place / "20260101-000000-abcdef.jsonl").write_bytes(b"\xff\n[[[[")
    assert {v.first for v in library.sessions(WORK)} == {"hello", ""}


def test_an_export_has_what_was_said_and_no_line_ends_a_fence(library: SessionLibrary) -> None:
    shown = {"t": "call", "id": "e5", "server": "s", "tool": "t", "arguments": "{}"}
    ended = {"status": "OK", "seconds": 1.0, "result": "```\n# not a heading"}
    records = [*turn(1, "one?", "**1**"), {**shown, **ended}]
    said = to_markdown(library.read(write(library, WORK, records, first="one?")))
    assert said.startswith("# one?\n")
    for words in ("## You\n\none?\n", "**1**", "````\n```\n# not a heading\n````"):
        assert words in said
    exported = json.loads(to_json(library.read(library.find("latest", WORK))))
    assert exported["kind"] == "gemdeck session"
    assert [one["text"] for one in exported["entries"] if "text" in one] == ["one?", "**1**"]


def test_what_is_no_file_of_ours_is_not_copied(library: SessionLibrary) -> None:
    view = write(library, WORK, turn(1, "one?", "1"))
    library.path_of(view).unlink()
    os.mkfifo(library.path_of(view))
    with pytest.raises(OSError, match="not a regular file"):
        library.copy(view, "a copy", Redactor())
    assert [*library.place(WORK).iterdir()] == [library.path_of(view)]
