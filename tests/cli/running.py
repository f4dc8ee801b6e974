"""Runs `gemdeck` in this process or, where it is about one, as a process of its own."""

import asyncio
import gc
import json
import logging
import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import anyio
import anyio.to_thread
import pytest
from anyio.abc import Process
from click.testing import CliRunner

from tests import servers
from tests.fakes.gemini import KEY, FakeGemini
from tests.support import warm
from tests.support.waiting import PATIENCE
from tui.cli.main import main
from tui.engine.demo import notes_server as notes_server_file
from tui.engine.logs.log_file import OWN

LIBRARY: Final = Path(servers.__file__).with_name("library.py")


@dataclass(frozen=True, slots=True)
class Result:
    """What a finished run left; `raw` is standard output, byte for byte."""

    code: int
    raw: bytes
    stderr: str

    @property
    def stdout(self) -> str:
        return self.raw.decode(errors="surrogateescape")

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.raw)
        return value


async def run(
    *arguments: str,
    gemini: FakeGemini | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    code: int | None = None,
) -> Result:
    """Run the command in a thread of this process, to its end, which may have to have a code."""
    environ = environment(gemini) | dict(env or {})
    result = await anyio.to_thread.run_sync(partial(_run_here, arguments, environ, cwd))
    assert code in {None, result.code}, (result.code, result.stderr)
    return result


def _run_here(arguments: Sequence[str], environ: dict[str, str], cwd: Path | None) -> Result:
    with (
        pytest.MonkeyPatch.context() as patched,
        patch.dict(os.environ, environ, clear=True),
        process_as_before(),
    ):
        patched.chdir(cwd or Path.home())
        # Signals reach the main thread alone; tests of them start a process.
        patched.setattr(asyncio.SelectorEventLoop, "add_signal_handler", lambda *_: None)
        result = CliRunner().invoke(main, arguments, prog_name="gemdeck")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Result(result.exit_code, result.stdout_bytes, result.stderr)


@contextmanager
def process_as_before() -> Iterator[None]:
    """Put back at the end what a run sets for its process."""
    root, limits = logging.getLogger(), resource.getrlimit(resource.RLIMIT_CORE)
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.getLogger(OWN).setLevel(logging.NOTSET)
        logging.captureWarnings(capture=False)
        resource.setrlimit(resource.RLIMIT_CORE, limits)
        gc.unfreeze()
        gc.enable()


async def run_process(
    *arguments: str,
    gemini: FakeGemini | None = None,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    code: int | None = None,
) -> Result:
    """Run the command as a process of its own; see `run`."""
    with anyio.fail_after(PATIENCE):
        completed = await anyio.run_process(
            [warm.python(), "-m", "tui", *arguments],
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            check=False,
            env=environment(gemini) | dict(env or {}),
            cwd=cwd or Path.home(),
        )
    result = Result(completed.returncode, completed.stdout, completed.stderr.decode())
    assert code in {None, result.code}, (result.code, result.stderr)
    return result


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


def library(**says: object) -> dict[str, Any]:
    """Make the entry of a server that offers what it is told to, in a file that `file` names."""
    file = Path.home().parent / f"{says.pop('file', 'library')}.json"
    file.write_text(json.dumps(says), encoding="utf-8")
    return {"command": sys.executable, "args": [str(LIBRARY), str(file)]}


async def finish(process: Process) -> int:
    """Read a process to its end."""
    streams: Sequence[Any] = [stream for stream in (process.stdout, process.stderr) if stream]
    for stream in streams:
        async for _ in stream:
            pass
    return await process.wait()
