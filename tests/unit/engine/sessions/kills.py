"""Chats that are killed at a point of their turn, and go on in the same session, again and again.

``python3 -m tests.unit.engine.sessions.kills ROUNDS`` prints as JSON what was counted; 30 rounds
take about a minute of processor time. It forks, which the process of the tests, with its threads,
cannot do safely.
"""

import asyncio
import gc
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Action, Call, Say, Stall, Think
from tests.unit.engine.chats.support import Chat, chatting, make_tool
from tests.unit.engine.sessions.test_recording import Desk
from tui.engine.chats.sessions.recorder import Recorder
from tui.engine.chats.sessions.replay import SavedSession
from tui.model.chat import UserMessage

LOOK: Final = Call([("look", {})])
TWICE: Final = Call([("look", {}), ("look", {"text": "2"})])

POINTS: Final[dict[str, Sequence[Sequence[Action]]]] = {
    "before anything came": [(Stall(),)],
    "in a thought": [(Think("hm"), Stall())],
    "in the first words": [(Say("Once "), Stall())],
    "after some words": [(Say("Once "), Say("upon "), Say("a time"), Stall())],
    "as a call came": [(Say("I look."), LOOK, Stall())],
    "before the second answer": [(LOOK,), (Stall(),)],
    "in the second answer": [(LOOK,), (Say("It is "), Stall())],
    "after two calls beside each other": [(TWICE,), (Say("Both "), Stall())],
    "as a further call came": [(LOOK,), (TWICE, Stall())],
    "after the end": [(LOOK,), (Say("done"),)],
}

MAX_LIFE: Final = 0.03
"""Longest life of a chat after it came to its point, in seconds; when it dies is what varies."""

PATIENCE: Final = 30.0

Json = dict[str, Any]


@dataclass
class Chain:
    """One session, killed at one point.

    Attributes:
        point: The point.
        folder: Where it is kept.
        signatures: The thought signatures that its model has issued so far.
        asked: The messages sent so far.
        wrong: What was found wrong.
    """

    point: str
    folder: Path
    signatures: Json = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def kill(self) -> None:
        """Let a process go on with the session, and kill it a moment after it came to its point."""
        self.asked.append(f"tell me {len(self.asked)}")
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            try:
                asyncio.run(self._chat(writer))
            except BaseException:  # noqa: BLE001 - nothing may return into the parent's code
                traceback.print_exc()
            os._exit(1)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            line = pipe.readline()
            time.sleep(random.uniform(0, MAX_LIFE))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        if not line:
            self.wrong.append("it broke down")
            return
        told = json.loads(line)
        self.signatures = told["signatures"]
        self.wrong += told["violations"]
        library = Desk(self.folder).library
        self._check(library.read(library.find("", self.folder)), told["history"])

    def _check(self, saved: SavedSession, history: list[Json]) -> None:
        """Compare what was saved with what had been said."""
        self.wrong += saved.remarks
        asked = [entry.text for entry in saved.entries if isinstance(entry, UserMessage)]
        if asked != self.asked:
            self.wrong.append(f"messages {asked}")
        kept = saved.contents[: len(history)]
        if kept != history and (kept != history[:-1] or saved.unsent != self.asked[-1]):
            self.wrong.append(f"of {history[-4:]} only {kept[-4:]}")

    async def _chat(self, ready: int) -> None:
        desk, steps = Desk(self.folder), POINTS[self.point]
        async with FakeGemini(steps) as fake, chatting(fake, make_tool("look")) as chat:
            fake.signatures.update(self.signatures)
            async with desk.recording(chat) as recorder:
                chat.context.save = recorder.save
                if len(self.asked) > 1:
                    _resume(desk, chat, recorder)
                chat.send(self.asked[-1])
                if self.point == "after the end":
                    await chat.conversation.wait_idle()
                else:
                    await fake.wait_for_requests(len(steps))
                    await fake.wait_for_stall()
                told = {
                    "history": chat.context.history.contents,
                    "signatures": fake.signatures,
                    "violations": [*fake.violations, *desk.problems],
                }
                os.write(ready, json.dumps(told).encode() + b"\n")
                await asyncio.sleep(PATIENCE)


def _resume(desk: Desk, chat: Chat, recorder: Recorder) -> None:
    """Go on with the session as the engine does."""
    saved, lock = desk.library.open(desk.library.find("", desk.folder), desk.redactor)
    assert lock is not None, saved.remarks
    chat.context.history.contents[:] = saved.contents
    recorder.adopt(saved, lock)


def count(folder: Path, rounds: int) -> Json:
    """Kill each chat so many times; give how many kills there were, and what was wrong."""
    chains = [Chain(point, folder / str(number)) for number, point in enumerate(POINTS)]
    for _ in range(rounds):
        for chain in chains:
            chain.kill()
    wrong = {chain.point: chain.wrong for chain in chains if chain.wrong}
    return {"kills": rounds * len(chains), "wrong": wrong}


async def warm_up() -> None:
    """Import here what each process would import."""
    async with FakeGemini([[Say("hello")]]) as fake, chatting(fake) as chat:
        await chat.say("hello")


if __name__ == "__main__":
    asyncio.run(warm_up())
    gc.freeze()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(count(Path(folder), int(sys.argv[1]))))
