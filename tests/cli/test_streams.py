"""What only a process has: streams that may be odd, signals, and others beside it."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from tests.cli.running import (
    Result,
    environment,
    finish,
    library,
    notes_server,
    opened,
    run_process,
    write_settings,
)
from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Action, Call, Say, Stall
from tests.support import warm
from tests.support.slow_keyring import SLOW_KEYRING
from tests.support.terminal import Terminal
from tests.support.waiting import PATIENCE, eventually
from tui.cli import headless
from tui.cli.output import ExitCode

GEMDECK: Final = (sys.executable, "-m", "tui")
ADDING: Final = ("-p", "add it", "--allowed-tools", "notes")
RUNS: Final = 4
"""Runs at once in one folder."""

RunIt = Callable[..., Awaitable["subprocess.CompletedProcess[bytes]"]]


@pytest.fixture
def turn(gemini: FakeGemini) -> RunIt:
    """Run a turn in which the model adds a note, with streams of the test."""
    gemini.steps += [(Call([("add_note", {"text": "milk"})]),), (Say("käse 漢 \U0001f600"),)]
    write_settings({"mcpServers": {"notes": notes_server()}})

    async def run_it(*more: str, **options: Any) -> "subprocess.CompletedProcess[bytes]":  # noqa: ANN401
        environ = environment(gemini) | options.pop("env", {})
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        with anyio.fail_after(PATIENCE):
            return await anyio.to_thread.run_sync(
                lambda: subprocess.run(
                    [*GEMDECK, *ADDING, *more],
                    check=False,
                    **{"cwd": Path.home(), "env": environ, **streams, **options},
                )
            )

    return run_it


def said(result: "subprocess.CompletedProcess[bytes]") -> str:
    words = result.stderr.decode()
    assert not [one for one in ("Traceback", "Exception ignored") if one in words]
    return words


def nothing_ran(gemini: FakeGemini) -> bool:
    return not gemini.requests and not (Path.home() / "notes.db").exists()


async def test_standard_input_is_a_message_or_goes_before_the_prompt(gemini: FakeGemini) -> None:
    gemini.steps = [[Say("A list."), Say(" Of food.")], [Say("Fine.")]]
    result = await run_process("-p", "what is this?", gemini=gemini, stdin=b"milk\nbread\n")
    assert (result.code, result.stdout) == (0, "A list. Of food.\n")
    write_settings({"mcpServers": {"slow": {"command": "sleep", "args": ["600"]}}})
    options = ("-o", "stream-json", "--wait", "0.2")
    assert result.stderr == ""
    alone = await run_process(*options, gemini=gemini, stdin=b"hell\xf6\n")
    assert "standard input: [Not UTF-8: the characters shown as \ufffd are lost.]" in alone.stderr
    said = [json.loads(line) for line in alone.stdout.splitlines()]
    assert [one["content"] for one in said if one["type"] == "message"] == ["hell\ufffd", "Fine."]
    sent = [request.contents[-1]["parts"] for request in gemini.requests]
    assert sent == [[{"text": "milk\nbread\n\nwhat is this?"}], [{"text": "hell\ufffd"}]]
    assert gemini.violations == []


async def test_a_servers_prompt_is_sent_with_standard_input_after_it(gemini: FakeGemini) -> None:
    write_settings({"mcpServers": {"lib": library(prompts={"a/b": []})}})
    gemini.steps = [[Say("Fine.")]]
    piped = b"/nothing @lib:memo://today\n"
    result = await run_process("-p", "/a/b", gemini=gemini, stdin=piped)
    assert (result.code, result.stdout) == (0, "Fine.\n")
    texts = [part["text"] for part in gemini.requests[0].contents[-1]["parts"]]
    assert texts == ["a/b {}", "/nothing @lib:memo://today"]


@pytest.mark.writes_secrets("credentials.json")
async def test_a_key_from_standard_input_is_checked_kept_and_used(gemini: FakeGemini) -> None:
    gemini.steps = [[Say("hello")]]
    setting = ("key", "set", "--address", gemini.url)
    wrong = await run_process(*setting, stdin=b"wrong\n", code=ExitCode.ERROR)
    assert "The API key was not accepted" in wrong.stderr
    right = await run_process(*setting, stdin=f"{KEY}\n".encode(), code=0)
    assert "accepted the key" in right.stdout
    answer = await run_process("-p", "hi")
    assert answer.stdout == "hello\n", answer.stderr
    assert {one.headers["x-goog-api-key"] for one in gemini.requests} == {KEY}
    assert KEY not in "".join((wrong.stderr, right.stdout, right.stderr))


def read_from(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[str]]:
    warnings: list[str] = []
    with path.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        return headless.read_piped_input(warnings.append), warnings


def test_a_file_is_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headless, "MAX_INPUT", 1024 * 1024)
    path = tmp_path / "list"
    path.write_text(" milk\n")
    assert read_from(path, monkeypatch) == ("milk", [])
    path.write_bytes(b"x" * (1024 * 1024))
    assert read_from(path, monkeypatch) == ("x" * 1024 * 1024, [])
    path.write_bytes(b"x" * (1024 * 1024 + 1))
    text, (warning,) = read_from(path, monkeypatch)
    assert text == "x" * 1024 * 1024
    assert "truncated at 1 MiB" in warning
    assert read_from(Path(os.devnull), monkeypatch) == ("", [])
    assert headless.read_piped_input(print) == ""  # the file is closed by now
    monkeypatch.setattr(sys, "stdin", None)
    assert headless.read_piped_input(print) == ""


def test_a_pipe_that_does_not_block_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.write(writing, b"milk")

    def write_the_rest() -> None:
        while not os.get_blocking(reading):
            time.sleep(0.001)
        os.write(writing, b" bread")
        os.close(writing)

    threading.Thread(target=write_the_rest, daemon=True).start()
    with os.fdopen(reading) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        assert headless.read_piped_input(print) == "milk bread"


async def test_a_slow_pipe_is_awaited_with_a_word_and_ctrl_c_leaves_it(gemini: FakeGemini) -> None:
    gemini.steps = [[Say("A list.")]]
    for is_closed, code in ((True, 0), (False, ExitCode.CANCELLED)):
        streams = {"stderr": subprocess.PIPE, "env": environment(gemini)}
        async with opened("-p", "what is this?", **streams) as process:
            assert process.stdin is not None
            assert process.stderr is not None
            assert b"reading standard input" in await process.stderr.receive()
            await process.stdin.send(b"milk\n")
            if is_closed:
                await process.stdin.aclose()
            else:
                process.send_signal(signal.SIGINT)
            assert await finish(process) == code
    [request] = gemini.requests
    assert request.contents[-1]["parts"] == [{"text": "milk\n\nwhat is this?"}]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_a_stream_in_order(gemini: FakeGemini, number: signal.Signals) -> None:
    gemini.steps = [[Say("so "), Stall()]]
    text, streams = b"", {"stdin": subprocess.DEVNULL, "env": environment(gemini)}
    async with opened("-p", "hang", "-o", "stream-json", **streams) as process:
        assert process.stdout is not None
        async for piece in process.stdout:
            text += piece
            if b'"so "' in piece:  # each line is there at once
                process.send_signal(number)
        assert await finish(process) == ExitCode.CANCELLED
    end = json.loads(text.splitlines()[-1])
    assert (end["type"], end["error"]["type"]) == ("result", "FatalCancellationError")
    assert end["error"]["message"] == "The turn was cancelled."
    with anyio.fail_after(PATIENCE):
        await gemini.wait_for_gone(1)


SIGNALLED: Final = """
import os, signal, sys

if ignored := os.environ.get("IGNORED"):  # as nohup does
    signal.signal(int(ignored), signal.SIG_IGN)

class Finder:
    def find_spec(self, name, *_):
        if name == os.environ["AT"] and (number := int(os.environ.pop("SIGNAL", 0))):
            os.kill(os.getpid(), number)

sys.meta_path.insert(0, Finder())
"""
"""Makes a process get a signal when it imports a module."""


@pytest.mark.parametrize(
    ("module", "number", "ignored"),
    [
        ("tui.cli", signal.SIGINT, False),
        ("click", signal.SIGTERM, False),
        ("tui.model.frozen", signal.SIGINT, False),
        ("tui.cli.headless", signal.SIGHUP, False),
        ("pydantic", signal.SIGINT, False),
        ("google.genai", signal.SIGTERM, False),
        ("google.genai", signal.SIGHUP, True),
    ],
)
async def test_a_signal_at_any_import_gives_one_result(
    gemini: FakeGemini, tmp_path: Path, module: str, number: signal.Signals, ignored: bool
) -> None:
    gemini.steps = [[Say("hello")]]
    (tmp_path / "sitecustomize.py").write_text(SIGNALLED)
    env = {"PYTHONPATH": str(tmp_path), "AT": module, "SIGNAL": str(int(number))}
    env |= {"IGNORED": str(int(number))} if ignored else {}
    result = await run_process("-p", "hi", "-o", "json", gemini=gemini, env=env)
    assert "Traceback" not in result.stderr
    if ignored:
        assert (result.code, result.json["response"]) == (0, "hello")
    else:
        assert (result.code, result.json["error"]["code"]) == (ExitCode.CANCELLED,) * 2
        assert not gemini.requests


async def test_a_signal_after_the_result_adds_no_other(gemini: FakeGemini) -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, print); time.sleep(60)"
    write_settings({"mcpServers": {"s": {"command": sys.executable, "args": ["-c", stubborn]}}})
    streams, text = {"stdin": subprocess.DEVNULL, "env": environment(gemini)}, b""
    async with opened("-p", "x", "--resume", "2000", "-o", "json", **streams) as process:
        assert process.stdout is not None
        async for piece in process.stdout:
            process.send_signal(signal.SIGTERM)
            text += piece
        assert await finish(process) == ExitCode.ERROR
    assert json.loads(text)["error"]["code"] == ExitCode.ERROR


async def test_ctrl_c_while_a_command_is_imported_ends_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SIGNALLED)
    for module in ("tui.cli", "tui.cli.servers.mcp"):
        env = {"PYTHONPATH": str(tmp_path), "AT": module, "SIGNAL": str(int(signal.SIGINT))}
        result = await run_process("mcp", "list", env=env, code=ExitCode.CANCELLED)
        assert (result.stdout, result.stderr) == ("", "")


async def test_a_socket_is_standard_input_as_a_pipe_is(gemini: FakeGemini) -> None:
    ours, theirs = socket.socketpair()  # as Node starts its children
    ours.sendall(b"say hi")
    ours.shutdown(socket.SHUT_WR)
    gemini.steps = [[Say("hi")]]
    command = [*GEMDECK, "-o", "json"]
    with ours, theirs, anyio.fail_after(PATIENCE):
        done = await anyio.run_process(command, stdin=theirs.fileno(), env=environment(gemini))
    assert json.loads(done.stdout)["response"] == "hi"


async def test_a_signal_before_the_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMDECK_HOME")  # it would put a file in the keyring's place
    (tmp_path / "slow_keyring.py").write_text(SLOW_KEYRING)
    env = {"PYTHONPATH": str(tmp_path), "PYTHON_KEYRING_BACKEND": "slow_keyring.Slow"}
    streams = {"stdin": subprocess.DEVNULL, "env": {**os.environ, **env}}
    async with opened("-p", "hello", **streams) as process:
        await eventually((tmp_path / "asked").exists)
        process.send_signal(signal.SIGTERM)
        with anyio.fail_after(20):  # less than the keyring's time
            assert await finish(process) == ExitCode.CANCELLED


@pytest.mark.parametrize("output", ["text", "stream-json"])
async def test_a_reader_that_goes_stops_it(turn: RunIt, gemini: FakeGemini, output: str) -> None:
    reading, writing = os.pipe()

    def leave(_request: object) -> Sequence[Action]:
        os.close(reading)
        return (Say("too late"), *([Stall()] if output == "stream-json" else []))

    gemini.steps[1] = leave
    result = await turn("-o", output, stdout=writing)
    os.close(writing)
    assert result.returncode == ExitCode.ERROR
    assert said(result).startswith("gemdeck: running outside this folder: notes. ")
    assert said(result).count("\n") == 1
    if output == "stream-json":
        with anyio.fail_after(PATIENCE):
            await gemini.wait_for_gone(1)


async def test_a_folder_that_is_gone(gemini: FakeGemini, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    shell = f"rmdir '{gone}' && exec " + " ".join(f"'{word}'" for word in (*GEMDECK, *ADDING))
    result = await anyio.run_process(["sh", "-c", shell], cwd=gone, check=False)
    assert result.returncode == ExitCode.ERROR
    assert "cannot open the current folder: No such file or directory" in said(result)
    assert nothing_ran(gemini)


async def test_an_output_that_takes_nothing_is_told_first(turn: RunIt, gemini: FakeGemini) -> None:
    full, readable = os.open("/dev/full", os.O_WRONLY), os.open(os.devnull, os.O_RDONLY)
    reading, unread = os.pipe()
    os.close(reading)
    for streams, words in (
        ({"stdout": full}, "no space left on the device"),
        ({"stdout": readable}, "standard output is read-only"),
        ({"stdout": unread}, "nothing reads standard output"),
        ({"preexec_fn": lambda: os.close(1)}, "standard output is closed"),
    ):
        result = await turn(**streams)
        assert result.returncode == ExitCode.ERROR
        assert f"{words}, so nothing was run" in said(result)
    for descriptor in (full, readable, unread):
        os.close(descriptor)
    assert nothing_ran(gemini)


async def test_without_standard_error_nothing_else_is_on_standard_output(turn: RunIt) -> None:
    closed = {"stderr": None, "preexec_fn": lambda: os.close(2)}
    words = ("-o", "json", "--allowed-tools", "gone")
    result = await turn(*words, stdout=subprocess.PIPE, **closed)
    assert json.loads(result.stdout)["warnings"]  # which standard error would have had, too


async def test_an_output_that_takes_few_characters(turn: RunIt) -> None:
    result = await turn(stdout=subprocess.PIPE, env={"PYTHONIOENCODING": "latin-1"})
    assert result.returncode == ExitCode.OK
    assert "other characters are escaped" in said(result)
    assert result.stdout == "käse 漢 \U0001f600\n".encode("latin-1", "backslashreplace")


async def test_errors_that_nobody_can_read_change_nothing(turn: RunIt) -> None:
    with open("/dev/full", "wb") as full:  # noqa: ASYNC230, PTH123
        buffered = {"PYTHONUNBUFFERED": ""}
        result = await turn("--debug", stdout=subprocess.PIPE, stderr=full, env=buffered)
    assert (result.returncode, result.stdout.decode()) == (ExitCode.OK, "käse 漢 \U0001f600\n")


async def test_an_input_that_is_a_folder(turn: RunIt, gemini: FakeGemini) -> None:
    folder = os.open(Path.home(), os.O_RDONLY)
    try:
        result = await turn(stdin=folder, stdout=subprocess.PIPE)
    finally:
        os.close(folder)
    assert result.returncode != 0
    assert "is a directory" in said(result)  # Python's own words: it does not start
    assert nothing_ran(gemini)


def test_a_screen_without_streams_is_refused() -> None:
    rows: tuple[tuple[dict[str, Any], ExitCode, str], ...] = (
        ({"stdin": subprocess.DEVNULL}, ExitCode.NO_INPUT, "needs a terminal; use -p TEXT"),
        ({"preexec_fn": lambda: os.close(0)}, ExitCode.NO_INPUT, "needs a terminal"),
        ({"preexec_fn": lambda: os.close(1)}, ExitCode.ERROR, "standard output is closed"),
    )
    for options, code, words in rows:
        command = [*GEMDECK, "--demo"]
        result = subprocess.run(command, capture_output=True, timeout=60, check=False, **options)
        assert (result.returncode, words in said(result)) == (code, True)


def test_a_screen_that_would_be_drawn_into_a_file_is_refused(tmp_path: Path) -> None:
    command = f"{shlex.join([*GEMDECK, '--demo'])} 2>/dev/null"
    with Terminal(["/bin/sh", "-c", command], cwd=tmp_path) as terminal:
        terminal.wait_for("start it without redirecting stderr")
        assert terminal.wait_for_exit() == ExitCode.NO_INPUT


def test_what_says_something_at_once_is_refused_as_well() -> None:
    with Path("/dev/full").open("wb") as full:
        command = [*GEMDECK, "--version"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.returncode == ExitCode.ERROR
    assert "standard output cannot be written" in said(result)


def test_the_screen_comes_up_where_only_ascii_is_expected(tmp_path: Path) -> None:
    with Terminal(warm.deck("--demo"), cwd=tmp_path, env={"PYTHONIOENCODING": "ascii"}) as terminal:
        terminal.wait_for("1 ready")
        terminal.press("ctrl+q")
        assert terminal.wait_for_exit() == 0


async def test_many_runs_at_once_in_one_folder_all_end_well(gemini: FakeGemini) -> None:
    gemini.steps = [[Say("Fine.")] for _ in range(RUNS)]
    ended = list[Result]()

    async def one() -> None:
        ended.append(await run_process("-p", "hello", gemini=gemini))

    async with anyio.create_task_group() as group:
        for _ in range(RUNS):
            group.start_soon(one)
    assert ended == [Result(0, b"Fine.\n", "")] * RUNS
    assert len(gemini.requests) == RUNS
