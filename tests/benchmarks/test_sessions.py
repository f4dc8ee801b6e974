"""What sessions cost: opened, typed in, listed and searched, each beside something like it."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Final

import psutil
import pytest

from tests.benchmarks.test_chat import lags
from tests.support.measures import Measure
from tests.ui.harness import running
from tests.ui.shell import decks
from tests.unit.engine.sessions.written import complain, turn, write
from tui.engine.chats.sessions.library import SessionLibrary
from tui.engine.chats.sessions.session_file import Record, SessionFile, header, summary
from tui.engine.logs.redaction import Redactor
from tui.model.chat import ModelText, UserMessage
from tui.model.sessions import ConversationRestored, SessionId, SessionsListed, SessionView
from tui.store.store import Store
from tui.ui.dialogs.sessions import _entry
from tui.ui.widgets.chat.composer import Composer
from tui.ui.widgets.lists.filter_list import matching

MESSAGES: Final = 10_000
SESSIONS: Final = 1_000
RUNS: Final = 5

HUGE: Final = 100_000_000
"""Bytes."""

RESUMED: Final = b'{"t":"resumed"}'


def long_session() -> list[Record]:
    """The records of 10,000 messages, half of them the model's."""
    records: list[Record] = []
    for number in range(MESSAGES // 2):
        records += turn(2 * number, f"question {number}", f"**answer** {number}, " + "words " * 40)
    return records


def seconds(work: Callable[[], object], runs: int = RUNS) -> float:
    times = []
    for _ in range(runs):
        begun = process_time()
        work()
        times.append(process_time() - begun)
    return median(times)


def test_a_long_session_is_read_at_a_few_times_the_cost_of_its_json(
    tmp_path: Path, measure: Measure
) -> None:
    library = SessionLibrary(tmp_path)
    view = write(library, tmp_path, long_session())
    path = library.path_of(view)
    bare = seconds(lambda: [json.loads(line) for line in path.read_bytes().splitlines()])
    ours = seconds(lambda: library.read(view))
    measure(f"10,000 messages read in {ours * 1000:.0f} ms, {ours / bare:.1f} times their JSON")
    assert len(library.read(view).entries) == MESSAGES
    assert ours < 20 * bare


def huge_session(library: SessionLibrary, folder: Path) -> tuple[SessionView, int]:
    """A session of 100 MB with some damage: its view, and the sound messages in it."""
    view = write(library, folder, turn(1, "one?", "1"), is_whole=False)
    others = turn(1, "two?", "words " * 10_000), turn(1, "three?", "\u8a9e" * 10_000)
    sound, damage = [[json.dumps(line).encode() for line in lines] for lines in others], b'{"t":'
    with library.path_of(view).open("ab") as file:
        count = 2
        while file.tell() < HUGE:
            file.write(b"\n".join([RESUMED, *sound[count % 4 // 2], b""]))
            count += 2
        file.write(
            b"\n".join([damage, b"\0" * 4_096, b"[" * 1_000_000, RESUMED, *sound[0][:2], damage])
        )
    return view, count + 1


async def test_a_session_of_100_mb_opens_as_far_as_it_is_sound(
    tmp_path: Path, measure: Measure
) -> None:
    library = SessionLibrary(tmp_path)
    view, messages = huge_session(library, tmp_path)
    process = psutil.Process()
    before, begun = process.memory_info().rss, perf_counter()
    async with lags() as found:
        saved = await asyncio.to_thread(library.read, view)
    took, late = perf_counter() - begun, max(found)
    grown = process.memory_info().rss - before
    measure(
        f"a session of 100 MB read in {took:.1f} s and {grown / 1e6:.0f} MB, with the event loop "
        f"held up for {late * 1000:.0f} ms at most"
    )
    assert saved.remarks == ["3 lines of the session were unreadable."]
    assert sum(isinstance(e, UserMessage | ModelText) for e in saved.entries) == messages
    assert saved.contents[-1]["role"] == "model"
    assert grown < 3 * HUGE
    assert late < took / 4  # a thread reads it, and leaves the loop its turns


async def test_typing_in_a_long_session_is_as_in_an_empty_one(
    tmp_path: Path, measure: Measure
) -> None:
    library = SessionLibrary(tmp_path)
    saved = library.read(write(library, tmp_path, long_session()))
    figures = []
    for entries in ((), tuple(saved.entries)):
        store: Store = decks.full_store()
        async with running(store) as deck:
            begun = perf_counter()
            store.dispatch(ConversationRestored(entries))
            await deck.settle()
            opened = perf_counter() - begun
            keys = []
            deck.one(Composer).replace_all("")
            for key in "the quick brown fox":
                begun = perf_counter()
                await deck.press("space" if key == " " else key)
                keys.append(perf_counter() - begun)
            figures.append((opened, median(keys)))
    (_, floor), (opened, typed) = figures
    measure(
        f"10,000 messages shown in {opened * 1000:.0f} ms; a key {typed * 1000:.1f} ms, in an "
        f"empty conversation {floor * 1000:.1f} ms"
    )
    assert typed < 2 * floor + 0.01


@pytest.mark.quick
def test_a_thousand_sessions_are_listed_at_a_few_times_the_cost_of_opening_them(
    tmp_path: Path, measure: Measure
) -> None:
    library = SessionLibrary(tmp_path / "state")
    for number in range(SESSIONS):
        first = f"message {number} about {'red' if number % 7 else 'blue'} things"
        key, place = SessionId(f"20260101-000000-{number:06x}"), library.place(tmp_path).name
        view = SessionView(key, "", first=first, place=place)
        file = SessionFile(library.path_of(view), Redactor(), complain)
        file.write([header(view), *turn(1, first, "x" * 2_000), summary(view)])
        file.close()
    paths = [library.path_of(view) for view in library.sessions(tmp_path)]

    def touch() -> None:
        for path in paths:
            with path.open("rb") as file:
                file.read(4_096)
                os.fstat(file.fileno())

    bare, ours = seconds(touch), seconds(lambda: library.sessions(tmp_path))
    listed = library.sessions(tmp_path)
    entries = [_entry(view) for view in SessionsListed(listed).sessions]
    searched = seconds(lambda: matching(entries, "blue 98"))
    measure(
        f"1,000 sessions listed in {ours * 1000:.0f} ms (their files opened: {bare * 1000:.0f} ms)"
        f", searched in {searched * 1000:.1f} ms"
    )
    assert len(listed) == SESSIONS
    assert ours < 8 * bare
    assert searched < ours
