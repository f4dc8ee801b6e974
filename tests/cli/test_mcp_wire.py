"""The wire without a screen: one request as it is, a trace, and a trace that is played again."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests import servers
from tests.cli.running import library, opened, run, run_process, write_settings
from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Call, Say
from tui.cli.output import ExitCode
from tui.engine.mcp.wire import trace
from tui.engine.mcp.wire.recording import UNKNOWN_METHOD, UNKNOWN_PARAMS

RAW: Final = str(Path(servers.__file__).with_name("raw.py"))


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("ascii").splitlines()]


def raw_server(*behaviours: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [RAW, *behaviours]}


async def test_a_request_is_answered_as_the_server_wrote_it() -> None:
    write_settings({"mcpServers": {"raw": raw_server()}})
    listed = await run("mcp", "request", "raw", "tools/list")
    assert (listed.code, listed.json["result"]["tools"][0]["name"]) == (ExitCode.OK, "echo")
    arguments = json.dumps({"name": "echo", "arguments": {"text": "hi"}})
    called = await run("mcp", "request", "raw", "tools/call", "--params", arguments)
    assert called.json == {"result": {"content": [{"type": "text", "text": "hi"}]}}
    refused = await run("mcp", "request", "raw", "no/such")
    assert (refused.code, refused.json["error"]["code"]) == (ExitCode.ERROR, -32601)
    wrong = await run("mcp", "request", "raw", "no/such", "--params", "[1]")
    assert (wrong.code, "--params" in wrong.stderr) == (ExitCode.USAGE, True)
    odd = await run("mcp", "request", "raw", "tools/list", "--params", '{"_meta": 5}')
    assert (odd.code, "_meta must be" in odd.stderr) == (ExitCode.ERROR, True)


async def test_a_rule_that_denies_a_tool_holds_for_a_request() -> None:
    rules = {"raw": {**raw_server(), "excludeTools": ["hang"]}}
    denies = {"alwaysDeny": [{"server": "raw", "tool": "echo"}]}
    write_settings({"mcpServers": rules, "gemdeck": denies})
    for tool in ("echo", "hang", "nothing"):
        params = json.dumps({"name": tool})
        denied = await run("mcp", "request", "raw", "tools/call", "--params", params)
        assert denied.code == ExitCode.ERROR
        assert "result" not in denied.stdout
        assert denied.stderr.startswith("gemdeck: ")


async def test_a_call_goes_as_it_is_and_an_error_has_its_code_and_data(tmp_path: Path) -> None:
    record = tmp_path / "record"
    write_settings({"mcpServers": {"raw": raw_server() | {"env": {"RAW_RECORD": str(record)}}}})
    own = {"text": json.dumps({"data": {"row": 7}})}
    error = {"code": -32000, "message": "no such row", "data": {"row": 7}}
    members = {"task": {"ttl": 5}, "requestState": "\u00e9", "inputResponses": {"a": {}}}
    params = {"name": "own_error", "arguments": own, "_meta": {"x/y": 1}, **members}
    sent = await run("mcp", "request", "raw", "tools/call", "--params", json.dumps(params))
    assert (sent.code, sent.json) == (ExitCode.ERROR, {"error": error})
    call = json.loads(record.read_text().splitlines()[-1])
    assert call["params"] == params
    odd = json.dumps({"name": "echo", "arguments": {"text": 5}, "_meta": 5})
    refused = await run("mcp", "request", "raw", "tools/call", "--params", odd)
    assert (refused.code, "_meta must be" in refused.stderr) == (ExitCode.ERROR, True)
    called = await run("mcp", "call", "raw", "own_error", f"text={own['text']}", "--json")
    told = called.json["error"]
    words = 'The server refused the call: no such row (error -32000); its data: {"row": 7}'
    assert (called.code, told) == (ExitCode.ERROR, error | {"message": words})


@pytest.mark.parametrize("is_before", [True, False])
async def test_a_trace_is_private_and_played_again(tmp_path: Path, is_before: bool) -> None:
    file = tmp_path / "trace.jsonl"
    option = ["--trace", str(file)]
    again = {"command": sys.executable, "args": ["-m", "tui", "mcp", "replay", str(file)]}
    write_settings({"mcpServers": {"raw": raw_server("bad_utf8"), "again": again}})
    call = ["mcp", "call", "raw", "echo", "text=h\u00eb"]
    first = await run("--debug", *(option if is_before else ()), *call, *option[2 * is_before :])
    assert first.code == ExitCode.OK
    assert f"gemdeck: trace file: {file}" in first.stderr.splitlines()
    assert file.stat().st_mode & 0o777 == 0o600
    head, *frames = lines_of(file)
    assert "gemdeck" in head
    assert [one["number"] for one in frames] == [*range(1, len(frames) + 1)]
    asked = next(one for one in frames if one.get("method") == "tools/call")
    assert (asked["call"], asked["conversation"]) == ("c1", "main")
    trusts = ("--trust-folder", str(Path.home().resolve()))
    replayed = await run("mcp", "call", "again", "echo", "text=h\u00eb", *trusts)
    assert (replayed.code, replayed.stdout) == (ExitCode.OK, first.stdout), replayed.stderr
    params = '{"name": "echo"}'
    other = await run("mcp", "request", "again", "tools/call", "--params", params, *trusts)
    assert "not in the trace: tools/call" in other.stdout
    assert str(UNKNOWN_PARAMS) in other.stdout


async def test_a_turn_is_traced_to_its_call(gemini: FakeGemini, tmp_path: Path) -> None:
    write_settings({"mcpServers": {"lib": library(tools={"look": ["found"]})}})
    gemini.steps = [[Call([("look", {})])], [Say("Done.")]]
    file = tmp_path / "trace.jsonl"
    options = ("--trace", str(file), "--allowed-tools", "lib")
    await run("-p", "look", "-o", "json", *options, gemini=gemini, code=ExitCode.OK)
    calls = [one for one in lines_of(file) if one.get("method") == "tools/call"]
    assert [one["kind"] for one in calls] == ["request", "answer"]
    assert calls[0]["call"] == calls[1]["call"] != ""


async def test_a_file_that_is_no_trace_stays_as_it_is(tmp_path: Path) -> None:
    write_settings({"mcpServers": {"raw": raw_server()}})
    file = tmp_path / "notes.txt"
    file.write_text("mine\n")
    file.chmod(0o644)
    link, other = tmp_path / "link.jsonl", tmp_path / "other.jsonl"
    link.symlink_to(other)
    (tmp_path / "named.jsonl").touch()
    (twice := tmp_path / "twice.jsonl").hardlink_to(tmp_path / "named.jsonl")
    for option in (file, tmp_path, tmp_path / "nowhere" / "trace.jsonl", link, twice):
        refused = await run("mcp", "list", "--trace", str(option))
        assert (refused.code, "--trace" in refused.stderr) == (ExitCode.USAGE, True)
    assert not other.exists()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("mine\n", 0o644)
    for words in ((str(file),), (str(tmp_path / "nothing"),)):
        assert (await run("mcp", "replay", *words)).code == ExitCode.ERROR


async def test_a_rotated_trace_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MAX_TRACE_BYTES", 3_000)
    write_settings({"mcpServers": {"raw": raw_server()}})
    file = tmp_path / "trace.jsonl"
    assert (await run("mcp", "tools", "raw", "--trace", str(file))).code == ExitCode.OK
    parts = trace.parts_of(file)
    assert len(parts) > 1
    assert {part.stat().st_mode & 0o777 for part in parts} == {0o600}
    with file.open("a") as newest:
        newest.write("rubbish\n" * 3)
    numbers = [json.loads(line).get("number", 0) for line in trace.read_trace(file)]
    assert numbers == [*range(len(numbers))]


async def test_one_of_several_recorded_servers_has_to_be_named(tmp_path: Path) -> None:
    write_settings({"mcpServers": {"a": raw_server(), "b": raw_server()}})
    file = tmp_path / "trace.jsonl"
    assert (await run("mcp", "list", "--trace", str(file))).code == ExitCode.OK
    either = await run("mcp", "replay", str(file))
    assert (either.code, "trace: a, b\n" in either.stderr) == (ExitCode.ERROR, True)
    asked = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "x"}},
        {"method": "notifications/initialized"},
        {"id": "two", "method": "tools/list"},
        {"id": 3, "method": "no/such"},
    ]
    fed = b"no JSON\n" + b"".join(json.dumps(one).encode() + b"\n" for one in asked)
    said = await run_process("mcp", "replay", str(file), "--server", "b", stdin=fed)
    first, second, third = map(json.loads, said.stdout.splitlines())
    assert (first["id"], first["result"]["serverInfo"]["version"]) == (1, "0")
    assert (second["id"], second["result"]["tools"][0]["name"]) == ("two", "echo")
    assert (third["id"], third["error"]["code"]) == (3, UNKNOWN_METHOD)
    options = ("--server", "a")
    async with opened("mcp", "replay", str(file), *options, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdin.send(json.dumps(asked[0]).encode() + b"\n")
        await process.stdout.receive()
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == ExitCode.CANCELLED, "while it waits for a request"
