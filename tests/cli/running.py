"""Runs `gemdeck -p` as a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process

from tests.fakes.gemini import KEY, FakeGemini
from tests.support import warm
from tests.support.waiting import PATIENCE
from tui.engine.demo import notes_server as notes_server_file


@dataclass(frozen=True, slots=True)
class Result:
    """What a finished run left."""

    code: int
    stdout: str
    stderr: str

    @property
    def raw(self) -> bytes:
        """Standard output, byte for byte."""
        return self.stdout.encode("utf-8", "surrogateescape")

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.stdout)
        return value


async def run(
    *arguments: str,
    gemini: FakeGemini | None = None,
    stdin: bytes | None = None,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> Result:
    """Run the command to its end."""
    with anyio.fail_after(PATIENCE):
        completed = await anyio.run_process(
            [warm.python(), "-m", "tui", *arguments],
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            check=False,
            env=environment(gemini) | (env or {}),
            cwd=cwd or Path.home(),
        )
    return Result(
        completed.returncode,
        completed.stdout.decode(errors="surrogateescape"),
        completed.stderr.decode(),
    )


@asynccontextmanager
async def opened(
    *arguments: str,
    **more: Any,  # noqa: ANN401
) -> AsyncIterator[Process]:
    """Start the command as a process that takes signals; it has to end in time."""
    command = [sys.executable, "-m", "tui", *arguments]
    with anyio.fail_after(PATIENCE):
        async with await anyio.open_process(command, **more) as process:
            yield process


def environment(gemini: FakeGemini | None) -> dict[str, str]:
    if gemini is None:
        return dict(os.environ)
    return {**os.environ, "GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": gemini.url}


def write_settings(settings: dict[str, Any]) -> None:
    folder = Path.home() / ".gemini"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


def notes_server() -> dict[str, Any]:
    return {
        "command": sys.executable,
        "args": ["-I", "-S", notes_server_file.__file__],
        "env": {"GEMDECK_NOTES_DB": str(Path.home() / "notes.db")},
    }


async def finish(process: Process) -> int:
    """Read a process to its end."""
    streams: Sequence[Any] = [stream for stream in (process.stdout, process.stderr) if stream]
    for stream in streams:
        async for _ in stream:
            pass
    return await process.wait()
