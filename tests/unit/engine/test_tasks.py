"""A set of background tasks."""

import asyncio
import logging

import pytest

from tui.engine.background import TaskSet


async def _forever() -> None:
    await asyncio.Event().wait()


async def _fail() -> None:
    raise ValueError("out of luck")


async def test_a_failed_task_is_logged_and_its_owner_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[BaseException] = []
    tasks = TaskSet("it broke down", told.append)
    tasks.start(_fail())
    with caplog.at_level(logging.ERROR):
        await tasks.wait()
    assert len(tasks) == 0
    assert [str(error) for error in told] == ["out of luck"]
    assert [record.message for record in caplog.records] == ["it broke down"]


async def test_closing_cancels_what_runs_and_reports_nothing() -> None:
    told: list[BaseException] = []
    tasks = TaskSet("it broke down", told.append)
    running = [tasks.start(_forever(), name) for name in ("one", "two")]
    await asyncio.sleep(0)
    assert len(tasks) == 2
    await tasks.aclose()
    assert all(task.cancelled() for task in running)
    assert len(tasks) == 0
    assert not told


async def test_waiting_has_an_end_and_ends_nothing() -> None:
    tasks = TaskSet("it broke down")
    task = tasks.start(_forever())
    await tasks.wait(0.01)
    assert not task.done()
    await tasks.aclose()
