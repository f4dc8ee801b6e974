"""Problems with files become notices, whichever thread met them."""

import asyncio
import threading

from tests.support.waiting import PATIENCE
from tui.engine.logs.problems import MAX_NOTICES, Problems
from tui.engine.logs.redaction import Redactor
from tui.model.chat import Severity
from tui.model.events import Event, Notice, NoticeRaised


async def test_a_problem_met_in_a_thread_is_told_on_the_loop() -> None:
    heard: asyncio.Queue[tuple[Event, int]] = asyncio.Queue()
    redactor = Redactor()
    redactor.register("hunter2hunter2")
    problems = Problems(lambda event: heard.put_nowait((event, threading.get_ident())), redactor)
    problems("before \x1b[2J")
    assert heard.empty()
    problems.attach()
    await asyncio.to_thread(problems, "during hunter2hunter2")
    async with asyncio.timeout(PATIENCE):
        told = [await heard.get(), await heard.get()]
    texts = ["before", "during ***"]
    notices = [NoticeRaised(Notice(Severity.WARNING, text)) for text in texts]
    assert told == [(notice, threading.get_ident()) for notice in notices]


async def test_many_problems_are_one_fault() -> None:
    events: list[Event] = []
    problems = Problems(events.append, Redactor())
    for number in range(100):
        problems(f"file {number} cannot be written.")
    problems.attach()
    assert len(events) == MAX_NOTICES
    assert "Further problems are in the log" in str(events[-1])
    assert "Further" not in str(events[:-1])


def test_after_the_end_nobody_is_told() -> None:
    events: list[Event] = []
    problems = Problems(events.append, Redactor())

    async def attach() -> None:
        problems.attach()

    asyncio.run(attach())
    problems("too late")
    assert events == []
