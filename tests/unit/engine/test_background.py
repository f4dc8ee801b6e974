"""Tasks and threads that end with what began them, and do not hold up what ends."""

import asyncio
import logging
import queue
import threading
from functools import partial

import anyio
import pytest

from tui.engine.background import MAX_JOBS, OrderedWorker, TaskSet, in_daemon_thread, within


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


async def test_a_result_and_an_error_come_back_from_the_thread() -> None:
    assert await in_daemon_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await in_daemon_thread(lambda: 1 // 0)


def test_the_loop_ends_before_a_thread_that_hangs(gate: threading.Event) -> None:
    async def give_up() -> None:
        with anyio.move_on_after(0.01):
            await in_daemon_thread(gate.wait)

    asyncio.run(give_up())
    gate.set()


def test_what_takes_too_long_is_given_up(gate: threading.Event) -> None:
    with pytest.raises(TimeoutError):
        within(0.01, lambda: gate.wait(20))
    gate.set()
    assert within(5, lambda: "in time") == "in time"


def test_jobs_are_done_in_order_and_all_of_them_before_it_is_closed() -> None:
    worker, done = OrderedWorker(), list[int]()
    worker.submit(partial(done.remove, 7))  # it fails, and the others are done all the same
    for number in range(50):
        worker.submit(partial(done.append, number))
    worker.close(5)
    assert done == list(range(50))


def test_a_job_that_hangs_does_not_hold_up_the_end(gate: threading.Event) -> None:
    worker = OrderedWorker()
    worker.submit(gate.wait)
    worker.close(0.05)
    gate.set()


def test_a_job_that_was_cancelled_while_it_waited_is_skipped(gate: threading.Event) -> None:
    worker, done = OrderedWorker(), list[int]()
    worker.submit(lambda: gate.wait(20))
    assert worker.submit(partial(done.append, 1)).cancel()
    last = worker.submit(lambda: 2)
    gate.set()
    assert (last.result(5), done) == (2, [])


def test_a_job_that_fails_or_is_rejected_is_told(gate: threading.Event) -> None:
    told: list[Exception] = []
    worker = OrderedWorker(told.append)
    worker.submit(lambda: gate.wait(20))
    for _ in range(MAX_JOBS + 1):
        worker.submit(lambda: None)
    assert {type(error) for error in told} == {queue.Full}
    told.clear()
    gate.set()
    worker.close(5)
    worker = OrderedWorker(told.append)
    worker.submit(lambda: 1 // 0)
    worker.close(5)
    assert [type(error) for error in told] == [ZeroDivisionError]


async def _forever() -> None:
    await asyncio.Event().wait()


async def _fail() -> None:
    raise ValueError("out of luck")


async def test_a_failed_task_is_logged_and_its_owner_told(caplog: pytest.LogCaptureFixture) -> None:
    told: list[BaseException] = []
    tasks = TaskSet("it broke down", told.append)
    tasks.start(_fail())
    with caplog.at_level(logging.ERROR):
        await tasks.wait()
    assert len(tasks) == 0
    assert [str(error) for error in told] == ["out of luck"]
    assert [record.message for record in caplog.records] == ["it broke down"]


async def test_waiting_for_tasks_ends_none_and_closing_ends_all_and_reports_nothing() -> None:
    told: list[BaseException] = []
    tasks = TaskSet("it broke down", told.append)
    running = [tasks.start(_forever(), name) for name in ("one", "two")]
    await tasks.wait(0.01)
    assert not any(task.done() for task in running)
    assert len(tasks) == 2
    await tasks.aclose()
    assert all(task.cancelled() for task in running)
    assert len(tasks) == 0
    assert not told
