"""What servers that flood us cost, against a silent one in the same run."""

import json
import os
import statistics
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
import pytest

from tests.benchmarks import forty
from tests.cli.running import write_settings
from tests.servers import deluge, web
from tests.support.measures import Measure
from tests.support.rows import row
from tests.support.terminal import Terminal

SERVERS = Path(deluge.__file__).parent

KEYS = 60
"""Letters typed; the 95th percentile is that of their delays."""

DROPPED = "when you stop typing"
"""What a question says while keys do not count."""

FLOOD_SECONDS = 6.0
"""How long a flood goes on: its first seconds use up the allowance."""

SILENT = "silent"
"""The mode of a server that does not flood."""

MODES = [("requests", "news", "replies"), ("requests", "deaf"), ("requests", "batches")]

PROTOCOL = {"f7": "/ search", "v": "exchanges", "f6": "> message"}
"""Shows what is said with servers beside the chat, and goes on; what each key shows."""

HOSTILE = "\n".join(f"*{'a' * 30}*{'a' * 20}*b*z{number}" for number in range(900)) + "\n*a*a*a*a*b"
"""Patterns that a matcher which tries again never gets done with."""

MANY: int = 100
"""Servers that die as soon as they start."""

BESIDE_SECONDS = 15.0
"""How long keys are pressed in two decks in turn."""

BESIDE_BUDGET = 1.5
"""How much longer a key may take in the deck with the servers than in the quiet one beside it."""

BESIDE_LIMIT = 4.0
"""The same, as it fails the test: what else the machine does hits a deck that works the most."""

LETTERS: str = "жщфяцэ"
"""What is typed: letters that nothing else on the screen has."""

NO_KEYS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Cost:
    """What one server costs."""

    delay: float
    megabytes: float


def entry(script: str, *modes: str) -> dict[str, Any]:
    """Make the entry of a server with a secret, so that what it says is searched."""
    args, env = [str(SERVERS / f"{script}.py"), *modes], {"A_TOKEN": "Zq7kR9tYw3mX"}
    return {"command": sys.executable, "args": args, "env": env}


def has_any(one: str, other: str, screen: str) -> bool:
    return one in screen or other in screen


def cost(
    folder: Path,
    *modes: str,
    keys: Mapping[str, str] = NO_KEYS,
) -> Cost:
    """Run the deck beside a server, which may never get ready, press keys, and type."""
    write_settings({"mcpServers": {"flooding": entry("flooding", *modes)}})
    delays, memory = list[float](), list[float]()
    with Terminal([sys.executable, "-m", "tui", "--demo"], cwd=folder) as terminal:
        terminal.wait_for("1 ready")
        for key, words in keys.items():
            terminal.press(key)
            terminal.wait_for(words)
        process = psutil.Process(terminal.pid)
        began = time.monotonic()
        seconds = 0.0 if SILENT in modes else FLOOD_SECONDS
        while len(delays) < KEYS or time.monotonic() - began < seconds:
            letter = "qzwk"[len(delays) % 4]  # no word on the screen; a question may take it, too
            pressed = time.monotonic()
            terminal.type(letter)
            terminal.wait_for(partial(has_any, f" {letter} ", DROPPED))
            delays.append(time.monotonic() - pressed)
            memory.append(process.memory_info().rss / 2**20)
            if DROPPED in terminal.screen:  # a question is open, and says so of each key
                terminal.wait_gone(DROPPED)
                continue
            terminal.press("backspace")
            terminal.wait_gone(f" {letter} ")
        terminal.press("ctrl+q")
        terminal.wait_for_exit()
    return Cost(statistics.quantiles(delays, n=20)[-1], max(memory))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("keys", [NO_KEYS, PROTOCOL], ids=["the chat", "the protocol"])
def test_a_flood_leaves_typing_and_memory(
    tmp_path: Path, measure: Measure, keys: Mapping[str, str]
) -> None:
    silent = cost(tmp_path, SILENT, keys=keys)
    for modes in MODES[:1] if keys else MODES:
        with row(modes):
            flooding = cost(tmp_path, *modes, keys=keys)
            measure(
                f"{'+'.join(modes)}: a key takes {flooding.delay * 1000:.0f} ms (silent "
                f"{silent.delay * 1000:.0f}), {flooding.megabytes:.0f} MB ({silent.megabytes:.0f})"
            )
            assert flooding.delay <= max(0.1, 4 * silent.delay)
            assert flooding.megabytes <= silent.megabytes + 60


def slow_down(
    folder: Path, servers: Mapping[str, Mapping[str, Any]], ready: int = 1, before: str = ""
) -> tuple[float, float]:
    """Press keys in a quiet deck and in one with these servers; give the 95th percentiles.

    Args:
        folder: Where both run; the busy one opens ``busy/opened`` in it.
        servers: The servers of the busy one.
        ready: How many servers it waits for.
        before: What is typed before all keys.
    """
    delays = list[float](), list[float]()
    with ExitStack() as stack:
        decks = list[Terminal]()
        for name, entries in (("quiet", {}), ("busy", servers)):
            home = folder / name
            (home / ".gemini").mkdir(parents=True)
            (home / "opened").mkdir(exist_ok=True)
            (home / ".gemini" / "settings.json").write_text(json.dumps({"mcpServers": entries}))
            env = {**os.environ, "HOME": str(home), "GEMDECK_HOME": str(home / "own")}
            command = [sys.executable, "-m", "tui", "--demo"]
            decks.append(stack.enter_context(Terminal(command, cwd=home / "opened", env=env)))
        for terminal, count in zip(decks, (1, ready), strict=True):
            terminal.wait_for(f"{count} ready", 60.0)
            terminal.type(before)
            terminal.draws = False  # which would take longer the more a deck writes
        began = time.monotonic()
        while time.monotonic() - began < BESIDE_SECONDS or len(delays[0]) < KEYS // 2:
            letter = LETTERS[len(delays[0]) % len(LETTERS)]
            for terminal, taken in zip(decks, delays, strict=True):
                terminal.forget()
                pressed = time.monotonic()
                terminal.type(letter)
                taken.append(
                    terminal.seconds_until(letter.encode()) + terminal.started_at - pressed
                )
                terminal.press("backspace")
        for terminal in decks:
            terminal.press("ctrl+q")
            terminal.wait_for_exit()
    quiet, busy = (statistics.quantiles(taken, n=20)[-1] for taken in delays)
    return quiet, busy


def judge(measure: Measure, what: str, quiet: float, busy: float) -> None:
    """Tell how much longer a key takes, and fail where that is far too long."""
    measure(
        f"{what}: a key takes {busy * 1000:.0f} ms, in a quiet deck beside it {quiet * 1000:.0f},"
        f" ratio {busy / quiet:.2f} (budget {BESIDE_BUDGET})"
    )
    assert busy <= BESIDE_LIMIT * quiet


@pytest.mark.timeout(300)
def test_E41_forty_servers_that_start_leave_typing(tmp_path: Path, measure: Measure) -> None:
    heavy = {"command": sys.executable, "args": ["-c", forty.HEAVY]}
    servers = {f"heavy{number}": heavy for number in range(forty.MANY)}
    judge(measure, f"{forty.MANY} servers that start", *slow_down(tmp_path, servers))


@pytest.mark.timeout(300)
def test_E41_a_hundred_servers_that_die_in_loops_leave_typing(
    tmp_path: Path, measure: Measure
) -> None:
    dying = {"command": sys.executable, "args": [str(SERVERS / "raw.py"), "exit"]}
    servers = {f"dying{number}": dying for number in range(MANY)}
    judge(measure, f"{MANY} servers that die", *slow_down(tmp_path, servers))


@pytest.mark.timeout(240)
async def test_E40_what_never_ends_over_http_leaves_typing(
    tmp_path: Path, measure: Measure
) -> None:
    async with web.process(sys.executable, deluge.__file__, "{port}") as (url, _):
        for kind in ("continue", "crumbs", "comments"):
            with row(kind):
                servers = {"endless": {"httpUrl": f"{url}/{kind}"}}
                judge(measure, kind, *slow_down(tmp_path / kind, servers))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["tools", "numbers"])
def test_E42_E43_heavy_messages_leave_typing(tmp_path: Path, measure: Measure, mode: str) -> None:
    judge(measure, f"heavy {mode}", *slow_down(tmp_path, {"heavy": entry("heavy", mode)}, ready=2))


@pytest.mark.timeout(300)
def test_A26_hostile_ignore_files_leave_typing(tmp_path: Path, measure: Measure) -> None:
    for kind, count in (("quiet", 9), ("busy", 9_000)):
        opened = tmp_path / kind / "opened"
        opened.mkdir(parents=True)
        (opened / ".gitignore").write_text(HOSTILE if kind == "busy" else "*.log\n")
        for number in range(count):
            (opened / f"{'a' * 200}{number}").touch()
    judge(measure, "a hostile .gitignore", *slow_down(tmp_path, {}, before="@"))
