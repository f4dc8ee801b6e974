"""Starts server processes, and finds them and what stands before them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.unit.engine.mcp.support import FOLDER, children, eventually, is_alive
from tui.engine.mcp.transports.stdio.process import Invocation, ServerProcess
from tui.engine.mcp.transports.stdio.zygote import Zygote

READER = "echo 1; read x; exit 0"
"""Runs until its input ends."""


async def started(zygote: Zygote, code: str = READER) -> ServerProcess:
    """Start a server that is written for the shell, which starts much sooner than Python."""
    launch = Invocation(("/bin/sh", "-c", code), {}, Path("/"))
    return await ServerProcess.start(launch, lambda _: None, zygote)


@contextmanager
def host(folder: Path, mark: str, *servers: str) -> Iterator[subprocess.Popen[str]]:
    """Run a gemdeck of its own; give it once its servers are ready."""
    arguments = [sys.executable, str(FOLDER / "host.py"), str(folder), mark, *servers]
    root = str(FOLDER.parents[1])
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": root}
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def pid_of(server: str) -> int:
    """Find the process of a test server by its script and behaviours."""
    [found] = children(lambda child: server in " ".join(child.cmdline()))
    return found.pid


async def gone(*pids: int) -> None:
    """Wait until processes have ended."""
    await eventually(lambda: not any(map(is_alive, pids)))


def reapers() -> list[psutil.Process]:
    """List the living reapers."""
    return children(lambda child: child.name() == "gemdeck-reaper")


def zygotes() -> list[psutil.Process]:
    """List the living zygotes."""
    return children(lambda child: child.name() == "gemdeck-zygote")


def marked(mark: str) -> list[psutil.Process]:
    """Find all processes that carry a mark in their environment, wherever they are."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("GUARDED_BY_TEST") == mark and is_alive(process.pid):
                found.append(process)
        except psutil.Error:
            continue
    return found
