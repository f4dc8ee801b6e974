"""What `gemdeck -p` prints as JSON, and what it says of consent that is missing."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests import servers
from tests.cli.running import environment, finish, notes_server, opened, run, write_settings
from tests.cli.test_headless import library
from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Action, Call, Say, Stall
from tests.support import warm
from tests.support.waiting import PATIENCE
from tests.unit.engine.sessions.written import turn
from tests.unit.engine.sessions.written import write as write_session
from tui.cli.output import ExitCode
from tui.engine.chats.sessions.library import SessionLibrary
from tui.engine.files.paths import state_dir

RUNS = 50
"""Runs at once in one folder."""


@pytest.fixture
def note(gemini: FakeGemini) -> None:
    """Let the model add a note, with the server for it in the settings."""
    write_settings({"mcpServers": {"notes": notes_server()}})
    gemini.steps = [[Call([("add_note", {"text": "milk"})])], [Say("Done, "), Say("käse.")]]


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.usefixtures("note")
async def test_a_stream_has_a_line_for_each_thing_that_happens(gemini: FakeGemini) -> None:
    command = ("-p", "add it", "-o", "stream-json", "--allowed-tools", "notes.add_note")
    result = await run(*command, gemini=gemini)

    assert (result.code, result.stderr) == (0, "")
    assert result.stdout.isascii()
    init, user, use, done, first, second, end = lines(result.stdout)
    assert init["type"] == "init"
    assert f"/models/{init['model']}:" in gemini.requests[0].path
    assert init["session_id"]
    assert init["timestamp"].endswith("Z")
    assert (user["type"], user["role"], user["content"]) == ("message", "user", "add it")
    assert (use["type"], use["tool_name"], use["server"]) == ("tool_use", "add_note", "notes")
    assert use["parameters"] == {"text": "milk"}
    assert (done["type"], done["status"]) == ("tool_result", "success")
    assert done["tool_id"] == use["tool_id"]
    assert "milk" in done["output"]
    assert [one["content"] for one in (first, second)] == ["Done, ", "käse."]
    assert {one["role"] for one in (first, second)} == {"assistant"}
    assert first["delta"] is True
    assert (end["type"], end["status"], end["outcome"]) == ("result", "success", "completed")
    stats = end["stats"]
    assert stats["tool_calls"] == 1
    assert stats["total_tokens"] >= stats["input_tokens"] + stats["output_tokens"] > 0
    assert stats["models"].keys() == {init["model"]}


@pytest.mark.usefixtures("note")
@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
async def test_consent_that_is_missing_is_said(gemini: FakeGemini, output: str) -> None:
    result = await run("-p", "add it", "-o", output, gemini=gemini)

    assert result.code == 0
    words = "notes.add_note was denied: it needs consent, and nobody can be asked."
    advice = "add --allowed-tools notes.add_note"
    assert words in result.stderr
    assert advice in result.stderr
    if output == "json":
        [warning] = result.json["warnings"]
        assert words in warning
        tools = result.json["stats"]["tools"]
        assert (tools["totalCalls"], tools["totalFail"]) == (1, 1)
        assert tools["byName"]["add_note"]["decisions"]["reject"] == 1
    elif output == "stream-json":
        [warned] = [one for one in lines(result.stdout) if one["type"] == "error"]
        assert (warned["severity"], words in warned["message"]) == ("warning", True)
        [denied] = [one for one in lines(result.stdout) if one["type"] == "tool_result"]
        assert (denied["status"], denied["error"]["type"]) == ("error", "denied")


@pytest.mark.usefixtures("note")
async def test_json_has_what_that_of_gemini_cli_has(gemini: FakeGemini) -> None:
    result = await run("-p", "add it", "-o", "json", "--approval-mode", "yolo", gemini=gemini)

    found = result.json
    assert found["session_id"]
    [(model, counts)] = found["stats"]["models"].items()
    assert model == found["model"]
    assert counts["api"].keys() == {"totalRequests", "totalErrors", "totalLatencyMs"}
    assert (counts["api"]["totalRequests"], counts["api"]["totalErrors"]) == (2, 0)
    assert counts["tokens"]["prompt"] == found["usage"]["prompt_tokens"]
    tools = found["stats"]["tools"]
    assert (tools["totalCalls"], tools["totalSuccess"], tools["totalFail"]) == (1, 1, 0)
    assert tools["byName"]["add_note"]["decisions"]["auto_accept"] == 1
    assert found["error"] is None


async def test_a_stream_without_a_turn_has_its_beginning_and_its_end() -> None:
    result = await run("-p", "hello", "-o", "stream-json")

    assert result.code == ExitCode.NO_KEY
    init, end = lines(result.stdout)
    assert (init["type"], init["model"]) == ("init", "")
    assert (end["type"], end["status"]) == ("result", "error")
    assert end["error"]["type"] == "FatalAuthenticationError"
    assert end["error"]["code"] == ExitCode.NO_KEY


async def test_an_interrupted_stream_ends_with_its_result(gemini: FakeGemini) -> None:
    gemini.steps = [[Say("so "), Stall()]]
    text, streams = b"", {"stdin": subprocess.DEVNULL, "env": environment(gemini)}
    async with opened("-p", "hang", "-o", "stream-json", **streams) as process:
        assert process.stdout is not None
        async for piece in process.stdout:
            text += piece
            if b'"so "' in piece:  # each line is there at once
                process.send_signal(signal.SIGINT)
        assert await finish(process) == ExitCode.CANCELLED
    end = lines(text.decode())[-1]
    assert (end["type"], end["error"]["type"]) == ("result", "FatalCancellationError")


async def test_a_stream_that_nobody_reads_any_more_stops_the_turn_quietly(
    gemini: FakeGemini,
) -> None:
    reading, writing = os.pipe()

    def leave(_request: object) -> Sequence[Action]:
        os.close(reading)
        return (Say("too late"), Stall())

    gemini.steps = [leave]
    command = [sys.executable, "-m", "tui", "-p", "hello", "-o", "stream-json"]
    streams = {"stdin": subprocess.DEVNULL, "stdout": writing, "stderr": subprocess.PIPE}
    with anyio.fail_after(PATIENCE):
        done = await anyio.run_process(
            command,
            check=False,
            env=environment(gemini),
            **streams,  # type: ignore[arg-type]
        )
        await gemini.wait_for_gone(1)
    os.close(writing)
    assert (done.returncode, done.stderr) == (ExitCode.ERROR, b"")


@pytest.mark.usefixtures("note")
async def test_only_named_servers_start_and_all_their_tools_may_run(gemini: FakeGemini) -> None:
    canary = Path.home() / "ran"
    other = {"command": "touch", "args": [str(canary)]}
    write_settings({"mcpServers": {"notes": notes_server(), "other": other}})

    command = ("-p", "add it", "-o", "json", "--allowed-mcp-server-names", "notes, gone")
    result = await run(*command, gemini=gemini)

    assert result.code == 0
    assert [call["status"] for call in result.json["tool_calls"]] == ["ok"]
    assert not canary.exists()
    [warning] = result.json["warnings"]
    assert "there is no server gone; configured are: notes, other" in warning


@pytest.mark.usefixtures("note")
async def test_a_turn_ends_after_as_many_requests_as_it_may_make(gemini: FakeGemini) -> None:
    command = ("-p", "add it", "-o", "json", "--max-turns", "1", "--yolo")
    result = await run(*command, gemini=gemini)

    assert result.code == ExitCode.TURN_LIMIT
    assert len(gemini.requests) == 1
    assert result.json["outcome"] == "too many requests"
    assert result.json["error"]["type"] == "FatalTurnLimitedError"
    assert "--max-turns" in result.json["error"]["advice"]
    assert [call["status"] for call in result.json["tool_calls"]] == ["ok"]


async def test_servers_are_told_of_further_folders_and_what_they_ask_is_declined_with_a_word(
    gemini: FakeGemini, tmp_path: Path
) -> None:
    file = Path(servers.__file__).with_name("asking.py")
    write_settings({"mcpServers": {"asks": {"command": warm.python(), "args": [str(file)]}}})
    more = tmp_path / "more"
    more.mkdir()
    gemini.steps = [[Call([("roots", {}), ("form", {})])], [Say("Fine.")]]

    command = ("-p", "go", "-o", "json", "--yolo", "--include-directories", str(more))
    result = await run(*command, gemini=gemini, cwd=tmp_path)

    roots, form = result.json["tool_calls"]
    assert tmp_path.as_uri() in roots["result"]
    assert more.as_uri() in roots["result"]
    assert "decline" in form["result"]
    assert "asks asked for what only a user can give" in "".join(result.json["warnings"])


async def test_a_mention_is_read_and_sent_along(gemini: FakeGemini, tmp_path: Path) -> None:
    write_settings({"mcpServers": {"lib": library(resources=["memo://today"])}})
    gemini.steps = [[Say("Fine.")]]

    result = await run("-p", "explain @lib:memo://today", gemini=gemini, cwd=tmp_path)

    assert result.code == 0
    sent = json.dumps(gemini.requests[0].contents[-1])
    assert "content of memo://today" in sent


async def test_a_session_goes_on_and_is_kept(gemini: FakeGemini, tmp_path: Path) -> None:
    library = SessionLibrary(state_dir())
    saved = write_session(library, tmp_path, turn(1, "my name is Ada", "Hello, Ada."))
    gemini.steps = [[Say("You are Ada.")], [Say("Still Ada.")]]

    for words in ("who am I?", "and now?"):
        result = await run(
            *("-p", words, "--resume", str(saved.id), "-o", "json"), gemini=gemini, cwd=tmp_path
        )
        assert result.code == 0, result.stderr
        assert result.json["session_id"] == saved.id

    assert result.json["response"] == "Still Ada."
    sent = [part["text"] for one in gemini.requests[1].contents for part in one["parts"]]
    assert sent == ["my name is Ada", "Hello, Ada.", "who am I?", "You are Ada.", "and now?"]


async def test_a_session_that_is_not_there_is_no_turn(gemini: FakeGemini) -> None:
    result = await run("-p", "go on", "--resume", "2000", "-o", "json", gemini=gemini)

    assert result.code == ExitCode.ERROR
    assert "no" in result.json["error"]["message"]
    assert gemini.requests == []


async def test_piped_text_alone_is_a_message(gemini: FakeGemini) -> None:
    gemini.steps = [[Say("Fine.")]]

    result = await run(gemini=gemini, stdin=b"hello\n")

    assert (result.code, result.stdout) == (0, "Fine.\n")
    assert gemini.requests[0].contents[-1]["parts"] == [{"text": "hello"}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-p", "x", "-i", "y"), "give one of them"),
        (("-p", "x", "--yolo", "--approval-mode", "default"), "contradict"),
        (("-p", "x", "--include-directories", "gone"), "there is no folder "),
        (("-p", "x", "--max-turns", "0"), "--max-turns"),
    ],
)
async def test_what_cannot_be_meant_is_refused(words: tuple[str, ...], said: str) -> None:
    result = await run(*words)

    assert (result.code, result.stdout) == (ExitCode.USAGE, "")
    assert said in result.stderr


@pytest.mark.timeout(240)
async def test_many_runs_at_once_in_one_folder_all_end_well(gemini: FakeGemini) -> None:
    gemini.steps = [[Say("Fine.")] for _ in range(RUNS)]
    write_settings({})
    environ = environment(gemini)

    async def one() -> tuple[int | None, bytes, bytes]:
        process = await asyncio.create_subprocess_exec(
            *(warm.python(), "-m", "tui", "-p", "hello"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            cwd=Path.home(),
        )
        stdout, stderr = await process.communicate()
        return process.returncode, stdout, stderr

    ended = await asyncio.gather(*(one() for _ in range(RUNS)))
    assert ended == [(0, b"Fine.\n", b"")] * RUNS
    assert len(gemini.requests) == RUNS
