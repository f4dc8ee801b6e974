"""What servers that flood us cost, against a silent one in the same run."""

import json
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import psutil
import pytest

from tests.support.measures import Measure
from tests.support.rows import row
from tests.support.terminal import Terminal

KEYS = 60
"""Letters typed; the 95th percentile is that of their delays."""

DROPPED = "once you stop typing"
"""What a question says while keys do not count."""

FLOOD_SECONDS = 6.0
"""How long a flood goes on: its first seconds use up the allowance."""

SILENT = "silent"
"""The mode of a server that does not flood."""

MODES = [
    ("requests", "news", "replies"),
    ("requests", "deaf"),
    ("requests", "batches"),
]

PROTOCOL = {"f7": "/ search", "v": "exchanges", "f6": "> message"}
"""Shows what is said with servers beside the chat, and goes on; what each key shows."""

HOSTILE = "\n".join(f"*{'a' * 30}*{'a' * 20}*b*z{number}" for number in range(900)) + "\n*a*a*a*a*b"
"""Patterns that a matcher which tries again never gets done with."""

NO_KEYS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Cost:
    """What one server costs."""

    delay: float
    megabytes: float


def has_any(one: str, other: str, screen: str) -> bool:
    return one in screen or other in screen


def cost(
    folder: Path,
    *modes: str,
    keys: Mapping[str, str] = NO_KEYS,
    script: str = "flooding",
    before: str = " ",
) -> Cost:
    """Run the deck beside a server, which may never get ready, press keys, and type."""
    server = Path(__file__).parent.parent / "servers" / f"{script}.py"
    entry = {"command": sys.executable, "args": [str(server), *modes]}
    (Path.home() / ".gemini").mkdir(exist_ok=True)
    settings = {"mcpServers": {"flooding": entry}}
    (Path.home() / ".gemini" / "settings.json").write_text(json.dumps(settings))
    delays, memory = list[float](), list[float]()
    with Terminal([sys.executable, "-m", "tui", "--demo"], cwd=folder) as terminal:
        terminal.wait_for("1 ready" if script == "flooding" else "2 ready")
        for key, words in keys.items():
            terminal.press(key)
            terminal.wait_for(words)
        terminal.type(before.strip())
        process = psutil.Process(terminal.pid)
        began = time.monotonic()
        seconds = 0.0 if SILENT in modes else FLOOD_SECONDS
        while len(delays) < KEYS or time.monotonic() - began < seconds:
            letter = "qzwk"[len(delays) % 4]  # no word on the screen; a question may take it, too
            pressed = time.monotonic()
            terminal.type(letter)
            terminal.wait_for(partial(has_any, f"{before}{letter} ", DROPPED))
            if DROPPED in terminal.screen:  # a question opened at this very moment
                terminal.wait_gone(DROPPED)
                continue
            delays.append(time.monotonic() - pressed)
            memory.append(process.memory_info().rss / 2**20)
            terminal.press("backspace")
            terminal.wait_gone(f"{before}{letter} ")
        terminal.press("ctrl+q")
        terminal.wait_for_exit()
    return Cost(statistics.quantiles(delays, n=20)[-1], max(memory))


@pytest.mark.timeout(120)
def test_a_flood_leaves_typing_and_memory(tmp_path: Path, measure: Measure) -> None:
    silent = cost(tmp_path, SILENT)
    for modes in MODES:
        with row(modes):
            flooding = cost(tmp_path, *modes)
            measure(
                f"{'+'.join(modes)}: a key takes {flooding.delay * 1000:.0f} ms (silent "
                f"{silent.delay * 1000:.0f}), {flooding.megabytes:.0f} MB ({silent.megabytes:.0f})"
            )
            assert flooding.delay <= max(0.1, 4 * silent.delay)
            assert flooding.megabytes <= silent.megabytes + 60


def test_typing_beside_the_protocol_of_a_flood_stays_at_the_floor(
    tmp_path: Path, measure: Measure
) -> None:
    silent = cost(tmp_path, SILENT, keys=PROTOCOL)
    flooding = cost(tmp_path, "requests", "news", keys=PROTOCOL)
    measure(
        f"beside the protocol a key takes {flooding.delay * 1000:.0f} ms in a flood (silent"
        f" {silent.delay * 1000:.0f}), {flooding.megabytes:.0f} MB ({silent.megabytes:.0f})"
    )
    assert flooding.delay <= max(0.1, 4 * silent.delay)
    assert flooding.megabytes <= silent.megabytes + 60


@pytest.mark.timeout(120)
def test_E42_E43_heavy_messages_leave_typing(tmp_path: Path, measure: Measure) -> None:
    quiet = cost(tmp_path, "quiet", script="heavy")
    for mode in ("tools", "numbers"):
        with row(mode):
            heavy = cost(tmp_path, mode, script="heavy")
            measure(f"{mode}: a key takes {heavy.delay * 1000:.0f} ms ({quiet.delay * 1000:.0f})")
            assert heavy.delay <= max(0.1, 1.5 * quiet.delay)


@pytest.mark.timeout(120)
def test_A26_hostile_ignore_files_leave_typing(tmp_path: Path, measure: Measure) -> None:
    delays = dict[str, float]()
    for kind in ("quiet", "hostile"):
        folder = tmp_path / kind
        folder.mkdir()
        count, text = (9_000, HOSTILE) if kind == "hostile" else (9, "*.log\n")
        (folder / ".gitignore").write_text(text)
        for number in range(count):
            (folder / f"{'a' * 200}{number}").touch()
        delays[kind] = cost(folder, SILENT, before="@").delay
    measure(f"hostile .gitignore: {delays['hostile'] * 1000:.0f} ms ({delays['quiet'] * 1000:.0f})")
    assert delays["hostile"] <= max(0.1, 1.5 * delays["quiet"])
