"""How long two servers and one turn take from the start of the command, beside bare imports."""

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Call, Say
from tests.support.measures import Measure
from tests.support.terminal import Terminal

LEAN: Final = str(Path(__file__).with_name("lean_server.py"))
ROOT: Final = Path(__file__).resolve().parents[2]
RUNS: Final = 5

READY_BUDGET: Final = 1.3
"""Seconds from the first frame until all servers are ready, less `READY_GRACE`, as a multiple of
the time that the slower of a server's own start and a bare import of the MCP SDK takes."""

READY_GRACE: Final = 0.1
TURN_BUDGET: Final = 1.3
"""Seconds of ``gemdeck -p`` with one call, as a multiple of a bare import of both SDKs."""

LIMIT: Final = 2.0
"""Either, as it fails the test: the rest of the machine disturbs single starts."""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Give the variables of a home with two servers, and of compiled modules as if installed."""
    for name in ("home/.gemini", "state"):
        (tmp_path / name).mkdir(parents=True)
    entry = {"command": sys.executable, "args": ["-S", LEAN], "trust": True}
    settings = {"mcpServers": {"one": entry, "two": entry}}
    (tmp_path / "home/.gemini/settings.json").write_text(json.dumps(settings))
    return {
        **{"HOME": str(tmp_path / "home"), "GEMDECK_HOME": str(tmp_path / "state")},
        **{"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9"},
        **{"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")},
        "PYTHONPATH": str(ROOT),
    }


async def run(env: Mapping[str, str], *arguments: str) -> tuple[float, str]:
    """Run a Python program to its end; give the seconds, and what it wrote."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        env={**os.environ, **env},
        cwd=env["HOME"],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    return time.perf_counter() - began, output.decode()


def deck(env: Mapping[str, str]) -> Terminal:
    return Terminal([sys.executable, "-m", "tui"], env=env, cwd=Path(env["HOME"]))


def ready_after_frame(env: Mapping[str, str]) -> float:
    with deck(env) as terminal:
        frame = terminal.seconds_until(b"gemdeck")
        terminal.wait_for("2 ready")
        return time.monotonic() - terminal.started_at - frame


@pytest.mark.timeout(300)
async def test_servers_are_ready_soon_after_the_first_frame(
    env: dict[str, str], measure: Measure
) -> None:
    ratios, times = [], []
    for number in range(1 + RUNS):
        bare, _ = await run(env, "-c", "import mcp")
        ready = await asyncio.to_thread(ready_after_frame, env)
        if number:  # the first ones compile
            ratios.append((ready - READY_GRACE) / bare)
            times.append((ready, bare))
    ready, bare = map(statistics.median, zip(*times, strict=True))
    measure(
        f"two servers ready {ready:.2f} s after the first frame, a bare import of the MCP SDK "
        f"{bare:.2f} s: ratio {statistics.median(ratios):.2f} (budget {READY_BUDGET})"
    )
    assert statistics.median(ratios) < LIMIT


@pytest.mark.timeout(300)
async def test_a_turn_without_a_screen_costs_little_more_than_the_imports(
    env: dict[str, str], measure: Measure
) -> None:
    ratios, times = [], []
    async with FakeGemini() as fake:
        env["GOOGLE_GEMINI_BASE_URL"] = fake.url
        for number in range(1 + RUNS):
            bare, _ = await run(env, "-c", "import mcp, google.genai")
            fake.steps = [[Call([("add", {"a": 1})])], [Say("done")]]
            turn, output = await run(env, "-m", "tui", "-p", "add", "-o", "json")
            assert [call["status"] for call in json.loads(output)["tool_calls"]] == ["ok"]
            if number:  # the first ones compile
                ratios.append(turn / bare)
                times.append((turn, bare))
    turn, bare = map(statistics.median, zip(*times, strict=True))
    measure(
        f"-p with a call on two servers {turn:.2f} s, a bare import of both SDKs {bare:.2f} s: "
        f"ratio {statistics.median(ratios):.2f} (budget {TURN_BUDGET})"
    )
    assert statistics.median(ratios) < LIMIT
