"""Drafts that have no session yet."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.leaks import FIXTURE_SECRET
from tests.support.waiting import PATIENCE
from tui.engine.chats.sessions.library import DAY, SessionLibrary
from tui.engine.chats.sessions.recorder import DraftFile, Recorder
from tui.engine.logs.redaction import Redactor
from tui.model.chat import EntryId, TurnId, UserMessage
from tui.model.events import TurnStarted


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return SessionLibrary(tmp_path).place(tmp_path)


def make(place: Path) -> DraftFile:
    return DraftFile(place, Redactor())


def files(place: Path) -> list[str]:
    return [path.read_text() for path in place.iterdir()]


def test_a_draft_that_nobody_holds_is_taken_over_once(place: Path) -> None:
    first, second, third = make(place), make(place), make(place)
    assert first.take_over() == ""
    first.keep("one")
    first.keep("one and\na half \ud800")
    assert second.take_over() == ""
    second.keep("two")
    first.let_go()
    assert (third.take_over(), second.take_over()) == ("one and\na half \ufffd", "")
    assert len(files(place)) == 2
    third.keep("three")
    second.keep(" ")
    assert files(place) == ['"three"']


def test_a_draft_is_private_and_has_no_secret(place: Path) -> None:
    redactor, secret = Redactor(), f"{FIXTURE_SECRET}draft-0123"
    redactor.register(secret)
    DraftFile(place, redactor).keep(f"use {secret}")
    [file] = place.iterdir()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ('"use ***"', 0o600)
    assert {one.stat().st_mode & 0o777 for one in (place, place.parent)} == {0o700}


def test_a_draft_stays_if_none_can_be_kept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError

    draft = make(place)
    draft.keep("one")
    monkeypatch.setattr("tui.engine.chats.sessions.recorder.write_private", fail)
    draft.keep("two")
    draft.let_go()
    assert make(place).take_over() == "one"


def test_what_is_no_draft_is_left_alone(place: Path) -> None:
    make(place).keep("one")
    for junk in (b"", b"[]", b"\xff", b"{" * 1_000_000):
        (place / "20260101-000000-abcdef.draft").write_bytes(junk)
        assert make(place).take_over() in {"", "one"}


def test_old_drafts_go_and_held_ones_stay(tmp_path: Path, place: Path) -> None:
    old, held = make(place), make(place)
    old.keep("old")
    held.keep("held")
    old.let_go()
    [file] = [path for path in place.iterdir() if "held" in path.read_text()]
    now = file.stat().st_mtime + 31 * DAY
    assert (SessionLibrary(tmp_path).delete_old(30, now), files(place)) == (1, ['"held"'])


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(SessionLibrary(tmp_path), tmp_path, Redactor(), lambda _: None)


def leave_draft(place: Path, text: str) -> None:
    left = make(place)
    left.keep(text)
    left.let_go()


@asynccontextmanager
async def taking_over(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[asyncio.Task[str]]:
    """Take the drafts over, from a slow disk, while the block runs; it ends with it."""
    take_over, gate = DraftFile.take_over, threading.Event()

    def take_slowly(draft: DraftFile) -> str:
        assert gate.wait(PATIENCE)
        return take_over(draft)

    monkeypatch.setattr(DraftFile, "take_over", take_slowly)
    recorder.is_on = True
    task = asyncio.create_task(recorder.take_over_drafts())
    await asyncio.sleep(0)
    yield task
    gate.set()
    await task


async def test_a_private_run_takes_no_draft_over(recorder: Recorder, place: Path) -> None:
    leave_draft(place, "half a thought")
    assert await recorder.take_over_drafts() == ""
    await recorder.aclose()
    assert make(place).take_over() == "half a thought"


async def test_a_draft_taken_over_late_moves_into_the_session_that_began(
    recorder: Recorder, tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_draft(place, "half a thought")
    async with taking_over(recorder, monkeypatch) as task:
        recorder.take(TurnStarted(TurnId("t1"), UserMessage(EntryId("e1"), "one?"), 0.0))
    assert task.result() == "half a thought"
    await recorder.aclose()
    assert make(place).take_over() == ""
    [view] = SessionLibrary(tmp_path).sessions(tmp_path)
    assert "half a thought" in SessionLibrary(tmp_path).read(view).unsent


async def test_a_draft_taken_over_as_its_conversation_closed_is_left_to_the_next_run(
    recorder: Recorder, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_draft(place, "half a thought")
    async with taking_over(recorder, monkeypatch):
        closing = asyncio.create_task(recorder.aclose())
        await asyncio.sleep(0)
    await closing
    assert make(place).take_over() == "half a thought"


async def test_an_early_draft_is_saved_once_drafts_are(recorder: Recorder, place: Path) -> None:
    leave_draft(place, "old")
    recorder.keep_draft("early")
    assert len(files(place)) == 1
    recorder.switch(is_on=True)
    assert await recorder.take_over_drafts() == "old"
    assert sorted(files(place)) == ['"early"', '"old"']
    recorder.keep_draft("")
    await recorder.aclose()
    assert files(place) == []
