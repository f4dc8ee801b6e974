"""Processes that write state, and are killed while they do; run as a module of its own.

Prints one JSON object with what was counted. It forks, which the process of the tests, with its
threads, cannot do safely.
"""

import json
import os
import random
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from tui.engine.files.line_file import LineFile
from tui.engine.files.state_file import StateFile

ROOT: Final = Path(__file__).resolve().parents[2]
PAD: Final = 200_000
"""Bytes of a killed writer's file, so that a write takes a while."""

MAX_LIFE: Final = 0.01
"""Longest life of a writer after its first write, in seconds."""

Write = Callable[[Path], None]


def count(*arguments: object) -> dict[str, Any]:
    """Run this module and give what it counted."""
    completed = subprocess.run(
        [sys.executable, "-m", __name__, *map(str, arguments)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=50,
    )
    counted: dict[str, Any] = json.loads(completed.stdout)
    return counted


def atomic(path: Path) -> None:
    """Count one up with `StateFile`."""

    def change(content: dict[str, Any]) -> dict[str, Any]:
        return {"n": content.get("n", 0) + 1, "pad": "x" * PAD}

    StateFile(path, on_problem=_fail).update(change)


def naive(path: Path) -> None:
    """Count one up as one would without thinking: the control that shows what the test sees."""
    content = json.loads(path.read_bytes()) if path.exists() else {"n": 0}
    path.write_text(json.dumps({"version": 1, "n": content["n"] + 1, "pad": "x" * PAD}))


def kill(path: Path, rounds: int, write: Write) -> dict[str, int]:
    """Kill a writer in the midst of its work, again and again, until it left a corrupt file."""
    counted = {"rounds": rounds, "writes": 0, "corrupt": 0, "lost": 0}
    for _ in range(rounds):
        before = _number(path) or 0
        acknowledged = _writer_killed(path, write)
        counted["writes"] += acknowledged
        after = _number(path)
        if after is None:
            counted["corrupt"] += 1
            break
        elif after < before + acknowledged:
            counted["lost"] += 1
    return counted


def _writer_killed(path: Path, write: Write) -> int:
    """Let a process write for a moment; give the number of writes that it saw through."""
    reader, writer = os.pipe()
    child = _fork(lambda: _write_forever(path, write, writer))
    os.close(writer)
    seen = len(os.read(reader, 1))
    life = random.uniform(0, MAX_LIFE)  # when it dies is what varies
    signal.setitimer(signal.ITIMER_REAL, life + 1e-6)
    signal.sigwait([signal.SIGALRM])
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while data := os.read(reader, 65_536):
        seen += len(data)
    os.close(reader)
    return seen


def _write_forever(path: Path, write: Write, done: int) -> None:
    while True:
        write(path)
        os.write(done, b".")


def _number(path: Path) -> int | None:
    """Give the number in the file; 0 where there is none, None where it is corrupt."""
    if not path.exists():
        return 0
    try:
        number: int = json.loads(path.read_bytes())["n"]
    except (ValueError, KeyError):
        return None
    return number


def together(folder: Path, processes: int, times: int) -> dict[str, int]:
    """Let several processes add entries to one state file, and lines to one line file."""
    children = [_fork(partial(_add, folder, number, times)) for number in range(processes)]
    failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    content = StateFile(folder / "state.json", on_problem=_fail).load() or {}
    lines = [
        json.loads(line)["entry"]
        for file in folder.glob("lines.jsonl*")
        if file.suffix != ".lock"
        for line in file.read_bytes().splitlines()
    ]
    return {
        "failed": failed,
        "expected": processes * times,
        "entries": len(content),
        "lines": len(lines),
        "distinct": len(set(lines)),
    }


def _add(folder: Path, process: int, times: int) -> None:
    state = StateFile(folder / "state.json", on_problem=_fail)
    lines = LineFile(folder / "lines.jsonl", 20_000, 50)
    for number in range(times):
        entry = f"{process}-{number}"
        state.update(partial(_with, entry))
        lines.append(json.dumps({"entry": entry, "pad": "x" * 300}).encode())


def _with(entry: str, content: dict[str, Any]) -> dict[str, Any]:
    return {**content, entry: True}


def _fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:  # noqa: BLE001 - nothing may return into the parent's code
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _fail(problem: str) -> None:
    raise AssertionError(problem)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    match sys.argv[1:]:
        case ["kill", name, folder, rounds]:
            way = atomic if name == "atomic" else naive
            print(json.dumps(kill(Path(folder) / "state.json", int(rounds), way)))
        case ["together", folder, processes, times]:
            print(json.dumps(together(Path(folder), int(processes), int(times))))
