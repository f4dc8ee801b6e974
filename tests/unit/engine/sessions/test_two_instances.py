"""Two gemdecks in one folder, each a process of its own: nothing is lost, and nothing mixed."""

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from tests.fakes.gemini import KEY, FakeGemini, Request, Step
from tests.fakes.gemini_script import Action, Say
from tests.support import warm
from tests.support.waiting import PATIENCE, eventually
from tests.unit.engine.sessions.test_resuming import library, told_in
from tests.unit.engine.sessions.written import turn, write
from tui.model.sessions import SessionView

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


@asynccontextmanager
async def instance(
    folder: Path, fake: FakeGemini, *, is_killed: bool = False
) -> AsyncIterator[Instance]:
    """Run one in a folder until the block ends, and then kill it or let it end."""
    env = {**os.environ, "GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": fake.url}
    process = await asyncio.create_subprocess_exec(
        warm.python(), str(INSTANCE), str(folder), stdin=PIPE, stdout=PIPE, env=env
    )
    try:
        made = Instance(process)
        await made.told("ready")
        yield made
        if not is_killed:
            assert process.stdin is not None
            process.stdin.close()
            with anyio.fail_after(PATIENCE):
                assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_each_writes_its_own_and_touches_nothing_another_has_open(tmp_path: Path) -> None:
    view, old = (write(library(), tmp_path, turn(1, t, "1"), first=t) for t in ("one?", "old"))
    unused = library().path_of(old)
    steps: list[Step] = [answer] * 40
    async with (
        FakeGemini(steps) as fake,
        instance(tmp_path, fake) as one,
        instance(tmp_path, fake) as other,
    ):
        mine = await write_at_the_same_time(one, other)
        await resume_the_same(one, other, view)
        path = library().path_of(library().find(mine))
        one.order("resume", mine)
        await one.told("restored")
        for command in (["rename", mine, "yours"], ["delete", mine]):
            other.order(*command)
            assert "open in another gemdeck" in await other.told("notice")
        for file in (path, unused):
            os.utime(file, (1.0, 1.0))
        async with instance(tmp_path, fake) as third:  # which deletes old sessions as it starts
            await eventually(lambda: not unused.exists())
            await third.ask("third")
        assert path.exists()
        await one.ask("again")
        one.order("rename", mine, "my title")
        await one.told("listed")
    assert fake.violations == []
    named = {told_in(view)[-1]: view.title for view in library().sessions(tmp_path)}
    assert named == {"again": "my title", "b4": "", "a": "", "b": "", "third": ""}


async def write_at_the_same_time(*instances: Instance) -> str:
    """Let both answer messages beside each other; give the first one's session."""
    numbers = range(5)
    for number in numbers:
        names = zip("ab", instances, strict=True)
        mine, _ = await asyncio.gather(*(one.ask(f"{name}{number}") for name, one in names))
    found = {view.first: view for view in library().sessions()}
    for name in "ab":
        asked = [f"{name}{number}" for number in numbers]
        assert told_in(found[asked[0]]) == asked
        saved = library().read(found[asked[0]])
        answers = [c["parts"][0]["text"] for c in saved.contents if c["role"] == "model"]
        assert answers == [f"{a}! ({2 * n + 1})" for n, a in enumerate(asked)]
        assert saved.remarks == []
    return mine


async def resume_the_same(one: Instance, other: Instance, view: SessionView) -> None:
    """Let both go on with a session: one of them goes on in a copy."""
    for instance in (one, other):
        instance.order("resume", view.id)
    remarks = [await instance.told("remarks") for instance in (one, other)]
    assert sorted("you continue in a copy" in remark for remark in remarks) == [False, True]
    sessions = await asyncio.gather(one.ask("a"), other.ask("b"))
    assert sessions[remarks.index("")] == view.id
    told = [told_in(library().find(session)) for session in sessions]
    assert told == [["one?", "a"], ["one?", "b"]]
