"""How `gemdeck -p` is called, and how it ends where something is in the way."""

import os
import signal
import subprocess
from pathlib import Path

import anyio
import pytest

from tests.cli.running import environment, finish, opened, run
from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Call, Say
from tests.support.slow_keyring import SLOW_KEYRING
from tests.unit.engine.mcp.support import eventually
from tui import __version__
from tui.cli.output import ExitCode, json_or_text


async def test_the_version_is_told() -> None:
    result = await run("--version")

    assert (result.code, result.stdout) == (0, f"gemdeck, version {__version__}\n")


@pytest.mark.parametrize(
    ("code", "prompt", "words", "said"),
    [
        (ExitCode.NO_KEY, ("hello",), "No Gemini API key", "Set GEMINI_API_KEY"),
        (ExitCode.NO_INPUT, (" ", "--demo"), "No prompt", "Use -p TEXT"),
        (ExitCode.BAD_SETTINGS, ("hello", "--demo"), "settings.json:", "not valid JSON"),
    ],
)
async def test_where_no_turn_can_run_it_says_why_and_what_to_do(
    code: ExitCode, prompt: tuple[str, ...], words: str, said: str
) -> None:
    if code is ExitCode.BAD_SETTINGS:
        folder = Path.home() / ".gemini"
        folder.mkdir()
        (folder / "settings.json").write_text('{\n  "mcpServers": {\n', encoding="utf-8")

    told, result = await run("-p", *prompt), await run("-p", *prompt, "-o", "json")

    assert (told.code, told.stdout, result.code) == (code, "", code)
    assert (result.json["response"], result.json["outcome"]) == ("", None)
    assert words in result.json["error"]["message"]
    assert result.json["error"]["advice"]
    assert result.json["tool_calls"] == []
    for stderr in (told.stderr, result.stderr):
        assert words in stderr
        assert said in stderr


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
        ("SSL_CERT_FILE", "gone", "SSL_CERT_FILE"),
    ],
)
async def test_credentials_and_variables_that_cannot_be_used_are_named(
    gemini: FakeGemini, variable: str, value: str, word: str
) -> None:
    result = await run("-p", "hello", "-o", "json", gemini=gemini, env={variable: value})

    assert result.code == ExitCode.NO_KEY
    assert word in result.json["error"]["message"]
    assert result.json["error"]["advice"]
    assert "No Gemini API key" not in result.stderr
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
    streams = {"stderr": subprocess.PIPE, "env": environment(gemini)}
    async with opened("-p", "what is this?", **streams) as process:
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
    async with opened("-p", "hello", "--demo", stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        await process.stderr.receive()
        process.send_signal(signal.SIGINT)
        assert await finish(process) == ExitCode.CANCELLED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_before_the_turn_ends_the_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.delenv("GEMDECK_HOME")  # it would put a file in the keyring's place
    (tmp_path / "slow_keyring.py").write_text(SLOW_KEYRING)
    env = {"PYTHONPATH": str(tmp_path), "PYTHON_KEYRING_BACKEND": "slow_keyring.Slow"}
    streams = {"stdin": subprocess.DEVNULL, "env": {**os.environ, **env}}
    with anyio.fail_after(8):  # less than the keyring's time
        async with opened("-p", "hello", **streams) as process:
            await eventually((tmp_path / "asked").exists)
            process.send_signal(number)
            assert await finish(process) == ExitCode.CANCELLED


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
    assert json_or_text(text) == shown
