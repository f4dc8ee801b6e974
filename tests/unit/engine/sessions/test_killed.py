"""kill -9 at ten points of a turn: what comes back makes a request that the service takes."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from tests.fakes.gemini import KEY, FakeGemini, Step
from tests.fakes.gemini_rules import check_request
from tests.fakes.gemini_script import Action, Call, Say, Stall, Think
from tests.security.decks import Turncoat, tool, write_settings
from tests.support import warm
from tests.support.waiting import PATIENCE, eventually
from tui.engine.files.paths import state_dir
from tui.engine.sessions.library import SessionLibrary
from tui.model.chat import ModelText, UserMessage

ENGINE = Path(__file__).with_name("killed_engine.py")
LOOK = Call([("look", {})])
TWICE = Call([("look", {}), ("look", {"text": "2"})])

POINTS: dict[str, Sequence[Sequence[Action]]] = {
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


@pytest.mark.parametrize("point", POINTS)
async def test_what_a_kill_leaves_goes_on(point: str, home: Path, tmp_path: Path) -> None:
    shop = Turncoat("shop", tmp_path)
    shop.offer(tool("look"))
    write_settings({"mcpServers": {"shop": shop.entry}})
    folder = home / "work"
    folder.mkdir()
    steps: list[Step] = [*POINTS[point]]
    async with FakeGemini(steps) as fake:
        env = {**os.environ, "GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": fake.url}
        process = await anyio.open_process(
            [warm.python(), str(ENGINE), str(folder), "tell me"],
            env=env,
            stdin=subprocess.DEVNULL,
            stderr=None,
        )
        try:
            with anyio.fail_after(PATIENCE):
                if point == "after the end":
                    assert process.stdout is not None
                    assert b"idle" in await process.stdout.receive()
                else:
                    await fake.wait_for_requests(len(POINTS[point]))
                    await fake.wait_for_stall()
            said = [a.text for step in POINTS[point] for a in step if isinstance(a, Say)]
            library = SessionLibrary(state_dir())
            await eventually(lambda: _holds(library, folder, said[:1]))
        finally:
            process.send_signal(signal.SIGKILL)
            await process.wait()
            await process.aclose()
        [view] = library.sessions(folder)
        saved = library.read(view)
        assert saved.remarks == []
        asked = [e.text for e in saved.entries if isinstance(e, UserMessage)]
        assert asked == ["tell me"]
        again = {"role": "user", "parts": [{"text": "go on"}]}
        body = {"contents": [*saved.contents, again]}
        check_request(body, fake._signatures, needs_signatures=True)
        assert bool(saved.unsent) is (not saved.contents)


def _holds(library: SessionLibrary, folder: Path, said: Sequence[str]) -> bool:
    """Tell whether the message and the first words of the answer are on the disk."""
    views = library.sessions(folder)
    if not views:
        return False
    entries = library.read(views[0]).entries
    shown = "".join(e.text for e in entries if isinstance(e, ModelText))
    return any(isinstance(e, UserMessage) for e in entries) and all(one in shown for one in said)
