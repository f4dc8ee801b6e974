"""Two gemdecks in one folder, each a process of its own: nothing is lost, and nothing mixed."""

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fakes.gemini import KEY, FakeGemini, Request, Step
from tests.fakes.gemini_script import Action, Say
from tests.support import warm
from tests.support.waiting import PATIENCE, eventually
from tests.unit.engine.sessions.test_resuming import library, told_in
from tests.unit.engine.sessions.written import turn, write
from tui.engine.options import LATEST

INSTANCE = Path(__file__).with_name("instance.py")


class Instance:
    """One of them."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def order(self, *command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")

    async def told(self, key: str) -> Any:  # noqa: ANN401 - any JSON
        """Wait until it tells of something."""
        assert self._process.stdout is not None
        with anyio.fail_after(PATIENCE):
            while line := await self._process.stdout.readline():
                if key in (facts := json.loads(line)):
                    return facts[key]
        raise AssertionError(f"it ended before it told of {key}")

    async def ask(self, text: str) -> str:
        """Send a message; give the session after its turn."""
        self.order("send", text)
        session: str = await self.told("session")
        return session


def answer(request: Request) -> list[Action]:
    """Say which message was answered, and how many came before."""
    asked = request.contents[-1]["parts"][-1]["text"]
    return [Say(f"{asked}! ({len(request.contents)})")]


@pytest.fixture
async def fake(home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeGemini]:
    (home / "work").mkdir()
    steps: list[Step] = [answer] * 40
    async with FakeGemini(steps) as fake:
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", fake.url)
        yield fake
    assert fake.violations == []


@asynccontextmanager
async def instance(home: Path, *more: str) -> AsyncIterator[Instance]:
    process = await asyncio.create_subprocess_exec(
        warm.python(), str(INSTANCE), str(home / "work"), *more, stdin=PIPE, stdout=PIPE
    )
    try:
        yield Instance(process)
        assert process.stdin is not None
        process.stdin.close()
        with anyio.fail_after(PATIENCE):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def two(home: Path, *more: str) -> AsyncIterator[tuple[Instance, Instance]]:
    """Start both at the same moment."""
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(instance(home, *more))
        other = await stack.enter_async_context(instance(home, *more))
        yield one, other


@pytest.mark.usefixtures("fake")
async def test_both_write_at_the_same_time_and_each_its_own(home: Path) -> None:
    numbers = range(5)
    async with two(home) as instances:
        await asyncio.gather(*(one.told("ready") for one in instances))
        for number in numbers:
            names = zip("ab", instances, strict=True)
            await asyncio.gather(*(one.ask(f"{name}{number}") for name, one in names))
    sessions = library().sessions(home / "work")
    told = sorted(told_in(view) for view in sessions)
    assert told == [[f"{name}{number}" for number in numbers] for name in "ab"]
    for view in sessions:
        saved = library().read(view)
        answers = [c["parts"][0]["text"] for c in saved.contents if c["role"] == "model"]
        asked = [f"{view.first[0]}{number}" for number in numbers]
        assert answers == [f"{a}! ({2 * n + 1})" for n, a in enumerate(asked)]
        assert saved.remarks == []


@pytest.mark.usefixtures("fake")
async def test_both_resume_and_one_goes_on_in_a_copy(home: Path) -> None:
    view = write(library(), home / "work", turn(1, "one?", "1"), first="one?")
    async with two(home, LATEST) as instances:
        remarks = [await one.told("remarks") for one in instances]
        await asyncio.gather(*(one.told("ready") for one in instances))
        names = zip("ab", instances, strict=True)
        sessions = await asyncio.gather(*(one.ask(name) for name, one in names))
    assert sorted("it is read-only here" in remark for remark in remarks) == [False, True]
    owner = remarks.index("")
    assert sessions[owner] == view.id
    told = {v.id: told_in(v) for v in library().sessions(home / "work")}
    assert told == {sessions[n]: ["one?", name] for n, name in enumerate("ab")}


@pytest.mark.usefixtures("fake")
async def test_what_one_has_open_the_other_neither_names_nor_deletes(home: Path) -> None:
    unused = library().path_of(write(library(), home / "work", turn(1, "old", "1")))
    async with two(home) as (one, other):
        await one.told("ready")
        mine = await one.ask("mine")
        path = library().path_of(library().find(mine))
        await other.told("ready")
        for command in (["rename", mine, "yours"], ["delete", mine]):
            other.order(*command)
            assert "open in another gemdeck" in await other.told("notice")
        for file in (path, unused):
            os.utime(file, (1.0, 1.0))
        async with instance(home) as third:  # which deletes old sessions as it starts
            await eventually(lambda: not unused.exists())
            await third.told("ready")
            await third.ask("third")
        assert path.exists()
        await one.ask("again")
        theirs = await other.ask("theirs")
        one.order("rename", mine, "my title")
        await one.told("listed")
    assert {view.name: told_in(view) for view in library().sessions(home / "work")} == {
        "my title": ["mine", "again"],
        "theirs": ["theirs"],
        "third": ["third"],
    }
    assert library().find(theirs).title == ""
