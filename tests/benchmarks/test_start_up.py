"""What starting and idling costs: the first frame, servers, a turn and commands."""

import asyncio
import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Call, Say
from tests.support.measures import Measure
from tests.support.terminal import Terminal

LEAN: Final = str(Path(__file__).with_name("lean_server.py"))
ROOT: Final = Path(__file__).resolve().parents[2]
RUNS: Final = 3
"""Starts of each kind whose median is taken; the limits are far from what is measured."""

GEMINI: Final = shutil.which("gemini")
COMMANDS: Final = (("--version",), ("mcp", "list"))

READY_BUDGET: Final = 1.3
"""Seconds from the first frame until all servers are ready, less `READY_GRACE`, as a multiple of
the time that the slower of a server's own start and a bare import of the MCP SDK takes."""

READY_GRACE: Final = 0.1
TURN_BUDGET: Final = 1.3
"""Seconds of ``gemdeck -p`` with one call, as a multiple of a bare import of both SDKs."""

LIMIT: Final = 2.0
"""Either, as it fails the test: the rest of the machine disturbs single starts."""


FRAME_BUDGET: Final = 1.1
"""First frame as a multiple of a minimal Textual app."""

FRAME_LIMIT: Final = 2.5
"""The same, as it fails the test: a busy machine disturbs single starts."""

MEMORY_BUDGET: Final = 100
"""Resident megabytes of the app with two servers connected."""

IDLE_BUDGET: Final = 0.5
"""Per cent of a core that an idle app uses."""

IDLE_LIMIT: Final = 2.0
IDLE_SECONDS: Final = 5.0

MINIMAL: Final = """
from textual.app import App
from textual.widgets import Footer, Header, Input

class Minimal(App):
    TITLE = "minimal"

    def compose(self):
        yield Header()
        yield Input()
        yield Footer()

Minimal().run()
"""

DECK: Final = [sys.executable, "-m", "tui", "--demo"]


def home_in(tmp_path: Path, address: str = "http://127.0.0.1:9") -> dict[str, str]:
    """Give the variables of a home with two servers."""
    for name in ("home/.gemini", "home/shop", "state"):
        (tmp_path / name).mkdir(parents=True)
    entry = {"command": sys.executable, "args": ["-S", LEAN], "trust": True}
    settings = {
        "mcpServers": {"one": entry, "two": entry},
        "security": {"folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
    }
    (tmp_path / "home/.gemini/settings.json").write_text(json.dumps(settings))
    return {
        **{"HOME": str(tmp_path / "home"), "GEMDECK_HOME": str(tmp_path / "state")},
        **{"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": address},
        "PYTHONPATH": str(ROOT),
    }


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return home_in(tmp_path)


async def run(env: Mapping[str, str], *command: str) -> tuple[float, str]:
    """Run a program to its end; give the seconds, and what it wrote."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, **env},
        cwd=Path(env["HOME"], "shop"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return time.perf_counter() - began, output.decode()


def deck(env: Mapping[str, str]) -> Terminal:
    return Terminal([sys.executable, "-m", "tui"], env=env, cwd=Path(env["HOME"], "shop"))


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
        bare, _ = await run(env, sys.executable, "-c", "import mcp")
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
            bare, _ = await run(env, sys.executable, "-c", "import mcp, google.genai")
            fake.steps = [[Call([("add", {"a": 1})])], [Say("done")]]
            turn, output = await run(env, sys.executable, "-m", "tui", "-p", "add", "-o", "json")
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


@pytest.mark.skipif(GEMINI is None, reason="gemini-cli is not installed")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
async def test_a_command_takes_less_time_than_that_of_gemini_cli(
    env: dict[str, str], measure: Measure, words: tuple[str, ...]
) -> None:
    ours, theirs = list[float](), list[float]()
    for number in range(1 + RUNS):
        ours.append((await run(env, sys.executable, "-m", "tui", *words))[0])
        if number:  # the first one compiles
            theirs.append((await run(env, str(GEMINI), *words))[0])
    del ours[0]
    ratio = statistics.median(ours) / statistics.median(theirs)
    measure(f"gemdeck {' '.join(words)}: {ratio:.2f} times gemini-cli's time")
    assert ratio < 1


def first_frame(command: list[str], output: bytes) -> float:
    """Measure the seconds from the start of a program until it has drawn `output`."""
    with Terminal(command, cwd=ROOT, draw=False) as terminal:
        return terminal.seconds_until(output)


def test_the_first_frame_comes_soon(tmp_path: Path, measure: Measure) -> None:
    script = tmp_path / "minimal.py"
    script.write_text(MINIMAL)
    minimal, deck = [], []
    for _ in range(1 + RUNS):
        minimal.append(first_frame([sys.executable, str(script)], b"minimal"))
        deck.append(first_frame(DECK, b"gemdeck"))
    del minimal[0], deck[0]  # they may compile
    ratio = statistics.median(deck) / statistics.median(minimal)
    measure(
        f"first frame: {ratio:.2f} times a minimal Textual app (budget {FRAME_BUDGET}); "
        f"{statistics.median(deck):.2f} s against {statistics.median(minimal):.2f} s"
    )
    assert ratio < FRAME_LIMIT


@pytest.mark.timeout(120)
def test_idling_costs_next_to_nothing(measure: Measure) -> None:
    with Terminal(DECK, cwd=ROOT) as terminal:
        terminal.wait_for("1 ready")
        app = psutil.Process(terminal.pid)
        memory = app.memory_info().rss / 1e6
        servers = sum(child.memory_info().rss for child in terminal.descendants()) / 1e6
        settle(app)
        share = app.cpu_percent(interval=IDLE_SECONDS)
    measure(
        f"memory: {memory:.0f} MB resident (budget {MEMORY_BUDGET}); its server {servers:.0f} MB"
    )
    measure(f"idle: {share:.2f} % of a core over {IDLE_SECONDS:.0f} s (budget {IDLE_BUDGET})")
    assert memory <= MEMORY_BUDGET
    assert share < IDLE_LIMIT


def settle(process: psutil.Process) -> None:
    """Wait until start-up is over: until a quarter of a second goes by without work."""
    for _ in range(40):
        if process.cpu_percent(interval=0.25) < IDLE_LIMIT:
            return
    raise AssertionError("The app never came to rest.")
