"""Forks a process for each program that a launcher asks for, until standard input ends.

It runs as ``zygote.py LAUNCHER``. What it imports is what the programs would import themselves, and
nothing of gemdeck or of the tests.
"""

import gc
import importlib
import os
import runpy
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

HEAVY = (
    *("mcp.server.mcpserver", "google.genai.types", "anyio._backends._asyncio", "httpcore2"),
    *("uvicorn", "jsonschema", "keyring.core", "regex", "truststore", "platformdirs"),
)


@dataclass
class Program:
    """A program, as the launcher was called with it."""

    folder: str
    arguments: list[str]
    environment: dict[str, str]
    streams: list[int]

    def run(self) -> None:
        """Do in this process what ``python ARGUMENTS`` does in a new one."""
        os.setsid()
        for number, stream in enumerate(self.streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        time.tzset()
        if any(name.startswith("COVERAGE_PROCESS") for name in os.environ):
            importlib.import_module("coverage").process_startup()
        is_safe = self.arguments[0] == "-P"
        sys.argv = self.arguments[is_safe:]
        if sys.argv[0] == "-m":
            del sys.argv[0]
            sys.path[0:1] = [] if is_safe else [self.folder]
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0:1] = [] if is_safe else [str(Path(sys.argv[0]).resolve().parent)]
            runpy.run_path(sys.argv[0], run_name="__main__")


def receive(launcher: socket.socket) -> Program:
    """Read what to run."""
    _, streams, _, _ = socket.recv_fds(launcher, 1, 3)
    with launcher.makefile("rb") as file:
        text = os.fsdecode(file.read(int(file.read(8), 16)))
    folder, count, *words = text.split("\0")
    arguments, variables = words[: int(count)], words[int(count) :]
    return Program(folder, arguments, dict(v.split("=", 1) for v in variables), streams)


def serve(listener: socket.socket) -> Program:
    """Fork for each launcher; returns in the processes that have to become a program."""
    signal.signal(signal.SIGCHLD, reap)
    while True:
        ready, _, _ = select.select([0, listener.fileno()], [], [])
        if 0 in ready:
            sys.exit()
        launcher, _ = listener.accept()
        with launcher:
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return start(launcher)


def start(launcher: socket.socket) -> Program:
    """Fork again, and guard the new process until it ends or its launcher does."""
    program = receive(launcher)
    pid = os.fork()
    if pid == 0:
        return program
    os.closerange(0, 3)
    for stream in program.streams:
        os.close(stream)
    ended = os.pidfd_open(pid)
    ready, _, _ = select.select([launcher.fileno(), ended], [], [])
    if ended not in ready:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with suppress(OSError):
        launcher.sendall(b"%d" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def reap(*_: object) -> None:
    """Take note of guards that ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    for name in HEAVY:
        importlib.import_module(name)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{sys.argv[1]}.socket")
        listener.listen(100)
        print("ready", flush=True)
        program = serve(listener)
    sys.executable = sys.argv[1]
    program.run()
