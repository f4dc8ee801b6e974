"""Folders and streams that are not what they should be: words, a code, and no tool that ran."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from tests.cli.running import notes_server, write_settings
from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Action, Call, Say
from tests.support.terminal import Terminal
from tui.cli.output import ExitCode

ROOT: Final = Path(__file__).parents[2]
COMMAND: Final = (sys.executable, "-m", "tui", "-p", "add it", "--allowed-tools", "notes")


@pytest.fixture
def run(gemini: FakeGemini) -> Callable[..., Any]:
    """Run a turn in which the model adds a note, with streams and a folder of the test."""
    gemini.steps += [(Call([("add_note", {"text": "milk"})]),), (Say("käse 漢 \U0001f600"),)]
    write_settings({"mcpServers": {"notes": notes_server()}})

    async def run_it(*more: str, **options: Any) -> "subprocess.CompletedProcess[bytes]":  # noqa: ANN401
        environment = {
            **os.environ,
            "GEMINI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": gemini.url,
            "PYTHONPATH": str(ROOT),
            **options.pop("env", {}),
        }
        streams = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, **options}
        return await anyio.to_thread.run_sync(
            lambda: subprocess.run(
                [*COMMAND, *more], env=environment, timeout=60, check=False, **streams
            )
        )

    return run_it


def said(result: "subprocess.CompletedProcess[bytes]") -> str:
    words = result.stderr.decode()
    assert "Traceback" not in words
    assert "Exception ignored" not in words
    return words


def nothing_ran(gemini: FakeGemini) -> bool:
    return not gemini.requests and not (Path.home() / "notes.db").exists()


@pytest.mark.usefixtures("run")
async def test_a_folder_that_is_gone(gemini: FakeGemini, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    shell = f"rmdir '{gone}' && exec " + " ".join(f"'{word}'" for word in COMMAND)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(  # noqa: ASYNC221 - it ends at once
        ["sh", "-c", shell], cwd=gone, env=environment, capture_output=True, timeout=60, check=False
    )
    assert result.returncode == ExitCode.ERROR
    assert "the folder you are in cannot be opened: No such file or directory" in said(result)
    assert nothing_ran(gemini)


@pytest.mark.parametrize("more", [(), ("-o", "json")], ids=["text", "json"])
async def test_an_output_that_is_full(
    run: Callable[..., Any], gemini: FakeGemini, more: tuple[str, ...]
) -> None:
    with open("/dev/full", "wb") as full:  # noqa: ASYNC230, PTH123
        result = await run(*more, stdout=full)
    assert result.returncode == ExitCode.ERROR
    assert "no space is left on the device, so nothing was run" in said(result)
    assert nothing_ran(gemini)


async def test_an_output_that_can_only_be_read(run: Callable[..., Any], gemini: FakeGemini) -> None:
    with open(os.devnull, "rb") as readable:  # noqa: ASYNC230, PTH123
        result = await run(stdout=readable)
    assert result.returncode == ExitCode.ERROR
    assert "standard output can only be read, so nothing was run" in said(result)
    assert nothing_ran(gemini)


async def test_an_output_that_is_closed(run: Callable[..., Any], gemini: FakeGemini) -> None:
    result = await run(preexec_fn=lambda: os.close(1))
    assert result.returncode == ExitCode.ERROR
    assert "standard output is closed, so nothing was run" in said(result)
    assert nothing_ran(gemini)


async def test_without_standard_error_nothing_else_is_on_standard_output(
    run: Callable[..., Any],
) -> None:
    result = await run(
        *("-o", "json", "--wait", "0"),
        stdout=subprocess.PIPE,
        stderr=None,
        preexec_fn=lambda: os.close(2),
    )
    assert json.loads(result.stdout)["warnings"]  # which standard error would have had, too


async def test_an_output_that_nobody_reads(run: Callable[..., Any], gemini: FakeGemini) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = await run(stdout=writing)
    os.close(writing)
    assert result.returncode == ExitCode.ERROR
    assert "nobody reads standard output, so nothing was run" in said(result)
    assert nothing_ran(gemini)


async def test_an_output_that_is_closed_meanwhile(
    run: Callable[..., Any], gemini: FakeGemini
) -> None:
    reading, writing = os.pipe()

    def leave(_request: object) -> Sequence[Action]:
        os.close(reading)
        return (Say("too late"),)

    gemini.steps[1] = leave
    result = await run(stdout=writing)
    os.close(writing)
    assert result.returncode == ExitCode.ERROR
    assert "could not be written" not in said(result)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
async def test_an_output_that_takes_few_characters(run: Callable[..., Any], encoding: str) -> None:
    result = await run(stdout=subprocess.PIPE, env={"PYTHONIOENCODING": encoding})
    assert result.returncode == ExitCode.OK
    assert "other characters are escaped" in said(result)
    expected = "käse 漢 \U0001f600\n".encode(encoding, "backslashreplace")
    assert result.stdout == expected


async def test_an_input_that_is_a_folder(run: Callable[..., Any], gemini: FakeGemini) -> None:
    folder = os.open(Path.home(), os.O_RDONLY)
    try:
        result = await run(stdin=folder, stdout=subprocess.PIPE)
    finally:
        os.close(folder)
    assert result.returncode != 0
    assert "is a directory" in said(result)  # Python's own words: it does not start
    assert nothing_ran(gemini)


async def test_errors_that_nobody_can_read_change_nothing(run: Callable[..., Any]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: ASYNC230, PTH123
        result = await run("--debug", stdout=subprocess.PIPE, stderr=full)
    assert result.returncode == ExitCode.OK
    assert result.stdout.decode() == "käse 漢 \U0001f600\n"


@pytest.mark.parametrize(
    ("closed", "code", "words"),
    [
        (0, ExitCode.NO_INPUT, "needs a terminal"),
        (1, ExitCode.ERROR, "standard output is closed"),
    ],
)
def test_a_screen_without_streams_is_refused(closed: int, code: ExitCode, words: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tui", "--demo"],
        cwd=ROOT,
        preexec_fn=lambda: os.close(closed),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == code
    assert words in said(result)


def test_what_says_something_at_once_is_refused_as_well() -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [sys.executable, "-m", "tui", "--version"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert result.returncode == ExitCode.ERROR
    assert "standard output takes nothing" in said(result)


def test_the_screen_comes_up_where_only_ascii_is_expected(tmp_path: Path) -> None:
    env = {"PYTHONIOENCODING": "ascii"}
    with Terminal([sys.executable, "-m", "tui", "--demo"], cwd=tmp_path, env=env) as terminal:
        terminal.wait_for("1 ready")
        terminal.press("ctrl+q")
        assert terminal.wait_for_exit() == 0
