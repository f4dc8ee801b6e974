"""What starting and idling costs, in a real terminal."""

import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.support.measures import Measure
from tests.support.terminal import Terminal

RUNS: Final = 5
FRAME_BUDGET: Final = 1.1
"""First frame as a multiple of a minimal Textual app."""

FRAME_LIMIT: Final = 2.5
"""The same, as it fails the test: a busy machine disturbs single starts."""

MEMORY_BUDGET: Final = 100
"""Resident megabytes of the app with two servers connected."""

IDLE_BUDGET: Final = 0.5
"""Per cent of a core that an idle app uses."""

IDLE_LIMIT: Final = 2.0
IDLE_SECONDS: Final = 8.0

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
ROOT: Final = Path(__file__).resolve().parents[2]


def first_frame(command: list[str], output: bytes, env: Mapping[str, str]) -> float:
    """Measure the seconds from the start of a program until it has drawn `output`."""
    with Terminal(command, cwd=ROOT, env=env, draw=False) as terminal:
        return terminal.seconds_until(output)


def test_the_first_frame_comes_soon(tmp_path: Path, measure: Measure) -> None:
    script = tmp_path / "minimal.py"
    script.write_text(MINIMAL)
    # Both run from compiled modules, as installed programs do, whatever the machine's settings.
    env = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}
    minimal, deck = [], []
    for _ in range(1 + RUNS):
        minimal.append(first_frame([sys.executable, str(script)], b"minimal", env))
        deck.append(first_frame(DECK, b"gemdeck", env))
    del minimal[0], deck[0]
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
