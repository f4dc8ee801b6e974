"""`gemdeck -p` as a process of its own, over the real wire and real servers."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process

from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Call, Fail, Say, Stall
from tests.support.slow_keyring import SLOW_KEYRING
from tests.unit.engine.servers.support import eventually
from tui import __version__
from tui.cli.exit_codes import ExitCode
from tui.cli.headless import json_arguments

PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Result:
    """What a finished run left."""

    code: int
    stdout: str
    stderr: str

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
            [sys.executable, "-m", "tui", *arguments],
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            check=False,
            env=environment(gemini) | (env or {}),
            cwd=cwd,
        )
    return Result(completed.returncode, completed.stdout.decode(), completed.stderr.decode())


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
        "args": ["-P", "-m", "tui.engine.demo.notes_server"],
        "env": {"GEMDECK_NOTES_DB": str(Path.home() / "notes.db")},
    }


@pytest.fixture
async def gemini() -> AsyncIterator[FakeGemini]:
    async with FakeGemini() as fake:
        yield fake


async def test_stdout_holds_the_answer_and_nothing_else(gemini: FakeGemini) -> None:
    gemini.steps = [[Say("Four."), Say(" It is four.")]]

    result = await run("-p", "two and two?", gemini=gemini)

    assert (result.code, result.stdout) == (0, "Four. It is four.\n")
    assert gemini.requests[0].contents[-1]["parts"] == [{"text": "two and two?"}]
    assert gemini.violations == []


async def test_a_tool_that_is_not_allowed_is_denied_and_the_model_is_told(
    gemini: FakeGemini,
) -> None:
    write_settings({"mcpServers": {"notes": notes_server()}})
    gemini.steps = [[Call([("add_note", {"text": "buy milk"})])], [Say("I may not.")]]

    result = await run("-p", "add a note", "-o", "json", gemini=gemini)

    assert result.code == 0
    assert result.json["response"] == "I may not."
    [call] = result.json["tool_calls"]
    assert (call["server"], call["tool"], call["status"]) == ("notes", "add_note", "denied")
    told = gemini.requests[1].contents[-1]["parts"][0]["functionResponse"]["response"]
    assert told["error"].startswith("Denied")
    assert gemini.violations == []


async def test_an_allowed_tool_runs_and_its_result_reaches_the_model(gemini: FakeGemini) -> None:
    write_settings({"mcpServers": {"notes": notes_server()}})
    gemini.steps = [[Call([("add_note", {"text": "buy milk"})])], [Say("Done.")]]

    result = await run(
        "-p", "add a note", "-o", "json", "--allowed-tools", "notes.add_note", gemini=gemini
    )

    [call] = result.json["tool_calls"]
    assert call["status"] == "ok"
    assert call["arguments"] == {"text": "buy milk"}
    assert "buy milk" in call["result"]
    told = gemini.requests[1].contents[-1]["parts"][0]["functionResponse"]["response"]
    assert "buy milk" in told["output"]
    assert result.json["error"] is None


async def test_the_demo_needs_no_key() -> None:
    result = await run(
        "-p", "add a note: buy milk", "--demo", "--allowed-tools", "notes", "-o", "json"
    )

    assert result.code == 0
    assert [call["tool"] for call in result.json["tool_calls"]] == ["add_note"]
    assert result.json["model"] == "demo"


async def test_without_a_key_it_says_what_to_do() -> None:
    result = await run("-p", "hello")

    assert (result.code, result.stdout) == (ExitCode.NO_KEY, "")
    assert "GEMINI_API_KEY" in result.stderr


async def test_settings_that_cannot_be_read_end_the_run_with_their_place() -> None:
    folder = Path.home() / ".gemini"
    folder.mkdir()
    (folder / "settings.json").write_text('{\n  "mcpServers": {\n', encoding="utf-8")

    result = await run("-p", "hello", "--demo")

    assert (result.code, result.stdout) == (ExitCode.BAD_SETTINGS, "")
    assert "settings.json:" in result.stderr


async def test_a_failed_turn_says_why_and_what_to_do(gemini: FakeGemini) -> None:
    gemini.steps = [[Fail(400, "API key not valid.", reason="API_KEY_INVALID")]]

    result = await run("-p", "hello", "-o", "json", gemini=gemini)

    assert result.code == ExitCode.ERROR
    assert result.json["outcome"] == "failed"
    assert "key" in result.json["error"]["message"].lower()
    assert result.json["error"]["advice"]
    assert KEY not in result.stdout + result.stderr


async def test_what_is_piped_in_goes_before_the_prompt(gemini: FakeGemini) -> None:
    gemini.steps = [[Say("A list.")]]

    await run("-p", "what is this?", gemini=gemini, stdin=b"milk\nbread\n")

    [part] = gemini.requests[0].contents[-1]["parts"]
    assert part["text"] == "milk\nbread\n\nwhat is this?"


async def test_an_empty_prompt_is_refused() -> None:
    result = await run("-p", "  ", "--demo")

    assert (result.code, result.stdout) == (ExitCode.NO_INPUT, "")


async def test_without_a_terminal_the_deck_says_how_to_go_on() -> None:
    result = await run("--demo")

    assert result.code == ExitCode.NO_INPUT
    assert "-p" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_stops_the_turn_down_to_the_wire(
    gemini: FakeGemini, number: signal.Signals
) -> None:
    gemini.steps = [[Say("so "), Stall()]]
    process = await anyio.open_process(
        [sys.executable, "-m", "tui", "-p", "hang"],
        stdin=subprocess.DEVNULL,
        env=environment(gemini),
    )
    with anyio.fail_after(PATIENCE):
        async with process:
            await gemini.wait_for_requests(1)
            process.send_signal(number)
            code = await finish(process)

    assert code == ExitCode.CANCELLED
    with anyio.fail_after(5):
        await gemini.wait_for_gone(1)


async def test_json_holds_the_usage_and_what_was_said_on_the_way(gemini: FakeGemini) -> None:
    write_settings({"mcpServers": {"gone": {"command": "/nonexistent/server"}}})
    gemini.steps = [[Fail(503, "Busy.", retry_delay="0s")], [Say("Four.")]]

    result = await run("-p", "two and two?", "-o", "json", gemini=gemini)

    assert (result.code, result.json["response"]) == (0, "Four.")
    assert set(result.json["usage"]) == {
        "prompt_tokens",
        "output_tokens",
        "thought_tokens",
        "cached_tokens",
    }
    assert result.json["usage"]["prompt_tokens"] > 0
    server, retry = result.json["warnings"]
    assert server.startswith("server gone failed")
    assert "Trying again" in retry
    assert result.json["error"] is None
    assert retry in result.stderr


@pytest.mark.parametrize("as_json", [False, True])
async def test_too_many_tool_calls_have_a_code_and_a_way_out(
    gemini: FakeGemini, *, as_json: bool
) -> None:
    write_settings({"mcpServers": {"notes": notes_server()}, "gemdeck": {"maxToolCalls": 1}})
    two: list[tuple[str, dict[str, Any]]] = [("list_notes", {}), ("list_notes", {})]
    gemini.steps = [[Call(two)], [Call(two)], [Call(two)], [Call(two)]]

    options = ["-o", "json"] if as_json else []
    result = await run("-p", "go on", "--allowed-tools", "notes", *options, gemini=gemini)

    assert result.code == ExitCode.TURN_LIMIT
    assert "room for 1 tool calls" in result.stderr
    if as_json:
        assert "tool calls" in result.json["error"]["message"]
        assert "gemdeck.maxToolCalls" in result.json["error"]["advice"]
        assert any("room for 1 tool calls" in warning for warning in result.json["warnings"])


@pytest.mark.parametrize("arguments", [("-o", "yaml"), ("--nonsense",), ("-m", "bad model")])
async def test_wrong_usage_is_refused(arguments: tuple[str, ...]) -> None:
    result = await run("-p", "hello", "--demo", *arguments)

    assert (result.code, result.stdout) == (ExitCode.USAGE, "")
    assert arguments[0] in result.stderr


async def test_the_model_of_the_command_line_is_the_one_that_is_asked(gemini: FakeGemini) -> None:
    gemini.steps = [[Say("Hello.")]]

    result = await run("-p", "hello", "-m", "gemini-2.5-pro", "-o", "json", gemini=gemini)

    assert "/models/gemini-2.5-pro:" in gemini.requests[0].path
    assert result.json["model"] == "gemini-2.5-pro"


async def test_the_version_is_told() -> None:
    result = await run("--version")

    assert (result.code, result.stdout) == (0, f"gemdeck, version {__version__}\n")


@pytest.mark.parametrize(
    ("code", "arguments", "word"),
    [
        (ExitCode.NO_KEY, ("-p", "hello"), "no Gemini key"),
        (ExitCode.NO_INPUT, ("-p", " ", "--demo"), "no prompt"),
        (ExitCode.BAD_SETTINGS, ("-p", "hello", "--demo"), "settings.json"),
    ],
)
async def test_json_is_printed_also_where_no_turn_can_run(
    code: ExitCode, arguments: tuple[str, ...], word: str
) -> None:
    if code is ExitCode.BAD_SETTINGS:
        folder = Path.home() / ".gemini"
        folder.mkdir()
        (folder / "settings.json").write_text("{", encoding="utf-8")

    result = await run(*arguments, "-o", "json")

    assert result.code == code
    assert (result.json["response"], result.json["outcome"]) == ("", None)
    assert word in result.json["error"]["message"]
    assert result.json["error"]["advice"]
    assert result.json["tool_calls"] == []
    assert word in result.stderr


async def test_a_broken_file_of_the_folder_ends_no_run(tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "settings.json").write_text("{", encoding="utf-8")

    result = await run("-p", "hello", "--demo", cwd=tmp_path)

    assert result.code == 0
    assert "settings.json" in result.stderr


@pytest.mark.parametrize(
    ("variable", "value", "word"),
    [
        ("GEMINI_API_KEY", "no key at all", "GEMINI_API_KEY"),
        ("ALL_PROXY", "socks5://user:hunter22@127.0.0.1:9", "ALL_PROXY"),
        ("SSL_CERT_FILE", "/nonexistent/certificates", "SSL_CERT_FILE"),
    ],
)
async def test_credentials_and_variables_that_cannot_be_used_are_named(
    gemini: FakeGemini, variable: str, value: str, word: str
) -> None:
    result = await run("-p", "hello", "-o", "json", gemini=gemini, env={variable: value})

    assert result.code == ExitCode.NO_KEY
    assert word in result.json["error"]["message"]
    assert result.json["error"]["advice"]
    assert "no Gemini key" not in result.stderr
    assert "Traceback" not in result.stderr
    assert "hunter22" not in result.stdout + result.stderr
    assert gemini.requests == []


async def test_a_state_folder_that_cannot_be_used_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    result = await run("-p", "hello", "--demo", env={"GEMDECK_HOME": str(tmp_path / "file" / "x")})

    assert (result.code, result.stdout) == (ExitCode.ERROR, "")
    assert result.stderr.count("\n") == 1
    assert "GEMDECK_HOME" in result.stderr


async def test_a_slow_pipe_is_waited_for_with_a_word(gemini: FakeGemini) -> None:
    gemini.steps = [[Say("A list.")]]
    process = await anyio.open_process(
        [sys.executable, "-m", "tui", "-p", "what is this?"],
        stderr=subprocess.PIPE,
        env=environment(gemini),
    )
    with anyio.fail_after(PATIENCE):
        async with process:
            assert process.stdin is not None
            assert process.stderr is not None
            said = await process.stderr.receive()
            assert b"reading standard input" in said
            await process.stdin.send(b"milk\n")
            await process.stdin.aclose()
            assert await finish(process) == 0

    [part] = gemini.requests[0].contents[-1]["parts"]
    assert part["text"] == "milk\n\nwhat is this?"


async def test_ctrl_c_leaves_a_pipe_that_nobody_closes() -> None:
    process = await anyio.open_process(
        [sys.executable, "-m", "tui", "-p", "hello", "--demo"], stderr=subprocess.PIPE
    )
    with anyio.fail_after(PATIENCE):
        async with process:
            assert process.stderr is not None
            await process.stderr.receive()
            process.send_signal(signal.SIGINT)
            code = await finish(process)

    assert code == ExitCode.CANCELLED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_before_the_turn_ends_the_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.delenv("GEMDECK_HOME")  # it would put a file in the keyring's place
    (tmp_path / "slow_keyring.py").write_text(SLOW_KEYRING)
    env = {"PYTHONPATH": str(tmp_path), "PYTHON_KEYRING_BACKEND": "slow_keyring.Slow"}
    process = await anyio.open_process(
        [sys.executable, "-m", "tui", "-p", "hello"],
        stdin=subprocess.DEVNULL,
        env={**os.environ, **env},
    )
    with anyio.fail_after(8):  # less than the keyring's time
        async with process:
            await eventually((tmp_path / "asked").exists)
            process.send_signal(number)
            code = await finish(process)

    assert code == ExitCode.CANCELLED


async def test_json_is_ascii_whatever_the_model_asks_for(gemini: FakeGemini) -> None:
    hostile = "a\x9b\u202e\x7f\x1b"
    gemini.steps = [[Call([("add_note", {"text": hostile})])], [Say(f"No. {hostile}\ud800")]]

    result = await run("-p", "add a note", "-o", "json", gemini=gemini)

    assert result.stdout.isascii()
    assert not set(result.stdout) & {"\x7f", "\x1b"}
    assert [call["tool"] for call in result.json["tool_calls"]] == ["add_note"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [('{"a": 1}', {"a": 1}), ('{"a": "cut…', '{"a": "cut…'), ("[" * 100_000, "[" * 100_000)],
)
def test_arguments_that_were_cut_are_given_as_text(text: str, shown: object) -> None:
    assert json_arguments(text) == shown


async def finish(process: Process) -> int:
    """Read a process to its end."""
    streams: Sequence[Any] = [stream for stream in (process.stdout, process.stderr) if stream]
    for stream in streams:
        async for _ in stream:
            pass
    return await process.wait()
