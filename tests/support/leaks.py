"""Finds what a test leaves behind: processes, tasks, file descriptors and secrets in files."""

import asyncio
import contextlib
import ctypes
import gc
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import psutil

FIXTURE_SECRET: Final = "s3cr3t-fixture-"
"""How every secret in a test begins, so that it can be found where it must not be."""

PROCESS_GRACE: Final = 10.0
"""Seconds a test's processes may take to be gone after it, and its descriptors to be closed."""

TASK_GRACE: Final = 10.0
"""Seconds a test's asyncio tasks may take to end after it."""

FD_TOLERANCE: Final = 4
"""File descriptors that may stay open after a test: what libraries open once and keep."""

MAX_SCANNED_BYTES: Final = 8_000_000
"""Longest part of one file that is searched for a secret."""

KEPT: Final[set[int]] = set()
"""Processes that serve the whole run; what they start for a test has to end with it."""

_DESCRIPTORS: Final = "/proc/self/fd"
_PR_SET_CHILD_SUBREAPER: Final = 36
_POLL: Final = 0.02


def adopt_orphans() -> None:
    """Make this process the parent of orphaned descendants, so that none can hide (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def child_processes() -> set[psutil.Process]:
    """List the living descendants of this process; what only waits to be reaped is dead."""
    if not _may_have_children():
        return set()
    return {
        child
        for child in psutil.Process().children(recursive=True)
        if child.pid not in KEPT and _is_alive(child)
    }


def surviving_processes(before: set[psutil.Process]) -> list[psutil.Process]:
    """Wait, within bounds, until only the processes of `before` are left; list the others."""
    deadline = time.monotonic() + PROCESS_GRACE
    while (left := child_processes() - before) and time.monotonic() < deadline:
        time.sleep(_POLL)
    return sorted(left, key=lambda process: process.pid)


def describe_and_kill(processes: Iterable[psutil.Process]) -> list[str]:
    """Name each process and end it, so that it does not disturb the tests that follow."""
    lines = []
    for process in processes:
        try:
            lines.append(f"{process.pid}: {' '.join(process.cmdline())[:200]}")
            process.kill()
        except psutil.NoSuchProcess:
            continue
    return lines


def open_descriptors() -> dict[int, str]:
    """Map this process's open file descriptors to what they refer to."""
    found = {}
    try:
        names = os.listdir(_DESCRIPTORS)  # noqa: PTH208  # iterdir would hold a descriptor itself
    except FileNotFoundError:
        return dict.fromkeys(range(psutil.Process().num_fds()), "")
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            found[int(name)] = os.readlink(f"{_DESCRIPTORS}/{name}")  # noqa: PTH115  # ten times faster
    return found


def leaked_descriptors(before: dict[int, str]) -> list[str]:
    """Describe what stays open, within bounds, where it is more than the tolerance."""
    deadline = time.monotonic() + PROCESS_GRACE
    while len(after := open_descriptors()) - len(before) > FD_TOLERANCE:
        if time.monotonic() > deadline:
            return [f"{fd} -> {target}" for fd, target in after.items() if before.get(fd) != target]
        gc.collect()
        time.sleep(_POLL)
    return []


def running_tasks() -> set["asyncio.Task[object]"]:
    """List the unfinished tasks of the running event loop."""
    return asyncio.all_tasks()


async def leaked_tasks(before: set["asyncio.Task[object]"]) -> list[str]:
    """Wait, within bounds, until only the tasks of `before` are left; describe the others."""
    own = asyncio.current_task()
    left = {task for task in asyncio.all_tasks() - before if task is not own}
    if left:
        _, left = await asyncio.wait(left, timeout=TASK_GRACE)
    return sorted(repr(task) for task in left)


def files_with_secret(folder: Path) -> list[Path]:
    """List the files under a folder that hold a fixture secret."""
    needle = FIXTURE_SECRET.encode()
    found = []
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if path.is_symlink() or not path.is_file():
                continue
            with path.open("rb") as file:
                if needle in file.read(MAX_SCANNED_BYTES):
                    found.append(path)
    return sorted(found)


def _may_have_children() -> bool:
    """Answer in microseconds where the kernel tells, because it is asked after every test."""
    parents = ["self", *map(str, KEPT)]
    lists = [path for parent in parents for path in Path("/proc", parent).glob("task/*/children")]
    found = {int(pid) for path in lists for pid in _read_or_nothing(path).split()}
    return not lists or any(map(_may_live, found - KEPT))


def _may_live(pid: int) -> bool:
    """Tell dead orphans apart: they wait to be reaped until the run ends."""
    _, _, state = _read_or_nothing(Path("/proc", str(pid), "stat")).rpartition(")")
    return state[1:2] not in {"Z", "X", ""}


def _read_or_nothing(path: Path) -> str:
    """Read a file of a thread, which may just have ended."""
    try:
        return path.read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.NoSuchProcess:
        return False
