"""`gemdeck -p` as a process of its own, over the real wire and real servers."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests import servers
from tests.cli.running import environment, finish, notes_server, opened, run, write_settings
from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Call, Fail, Say, Stall
from tests.security.listener import listening
from tests.support.waiting import PATIENCE
from tui.cli.output import ExitCode
from tui.engine.files.paths import LOG_NAME, log_dir


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


async def test_without_a_terminal_the_deck_says_how_to_go_on() -> None:
    result = await run("--demo")

    assert result.code == ExitCode.NO_INPUT
    assert "-p" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_stops_the_turn_down_to_the_wire(
    gemini: FakeGemini, number: signal.Signals
) -> None:
    gemini.steps = [[Say("so "), Stall()]]
    streams = {"stdin": subprocess.DEVNULL, "env": environment(gemini)}
    async with opened("-p", "hang", **streams) as process:
        await gemini.wait_for_requests(1)
        process.send_signal(number)
        assert await finish(process) == ExitCode.CANCELLED
    with anyio.fail_after(PATIENCE):
        await gemini.wait_for_gone(1)


async def test_json_holds_the_usage_and_what_was_said_on_the_way(gemini: FakeGemini) -> None:
    prices = {"currency": "EUR", "models": {"*": {"input": 1000, "output": 100_000}}}
    gone = {"command": str(Path.home().parent / "gone")}
    write_settings({"mcpServers": {"gone": gone}, "gemdeck": {"prices": prices}})
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
    assert result.json["cost"] == {"amount": pytest.approx(0.307), "currency": "EUR"}
    server, retry = result.json["warnings"]
    assert server.startswith("without server gone: failed: command not found")
    assert "Trying again" in retry
    assert result.json["error"] is None
    assert retry in result.stderr


def program(name: str, text: str) -> dict[str, Any]:
    """Write a program that is no server, outside the opened folder."""
    file = Path.home().parent / f"{name}.py"
    file.write_text(text)
    return {"command": sys.executable, "args": ["-P", str(file)]}


async def test_every_server_that_a_turn_goes_out_without_is_named_with_its_reason(
    gemini: FakeGemini,
) -> None:
    servers = {
        "notes": notes_server(),
        "gone": {"command": str(Path.home().parent / "gone")},
        "dies": program("dies", "raise SystemExit(3)"),
        "web": {"httpUrl": "http://127.0.0.1:9/mcp"},
        "bad": {"command": "x", "includeTools": [{}]},
        "off": {"command": "x", "disabled": True},
        "slow": {**program("slow", "import time; time.sleep(60)"), "timeout": 1000},
    }
    write_settings({"mcpServers": servers})
    gemini.steps = [[Say("Hello.")]]

    result = await run("-p", "hello", "-o", "json", gemini=gemini)

    assert result.code == 0
    said = [words for words in result.json["warnings"] if words.startswith("without server ")]
    reasons = dict(words.removeprefix("without server ").split(": ", 1) for words in said)
    assert reasons.keys() == servers.keys() - {"notes"}
    assert "command not found" in reasons["gone"]
    assert "exited with code 3" in reasons["dies"]
    again = ("retrying", "failed", "still starting")  # the next attempt may have begun
    assert reasons["web"].startswith(again)
    assert "includeTools" in reasons["bad"]
    assert reasons["off"] == "disabled: Disabled: the entry says so."
    assert "was not ready within 1 s" in reasons["slow"]
    assert all(words in result.stderr for words in said)


@pytest.mark.writes_secrets(".env")
async def test_a_key_in_the_users_env_file_counts_and_an_address_there_does_not(
    gemini: FakeGemini,
) -> None:
    gemini.steps = [[Say("Hello.")]]
    write_settings({})
    file = Path.home() / ".gemini" / ".env"
    file.write_text(f"GEMINI_API_KEY={KEY}\nGOOGLE_GEMINI_BASE_URL={gemini.url}\n")

    async with listening() as proxy:
        refused = await run("-p", "hello", env={"HTTPS_PROXY": proxy.url})
    result = await run("-p", "hello", env={"GOOGLE_GEMINI_BASE_URL": gemini.url})

    assert refused.code != 0
    assert proxy.requests[0].startswith(b"CONNECT generativelanguage.googleapis.com:443 ")
    assert (result.code, result.stdout) == (0, "Hello.\n")
    assert [request.headers["x-goog-api-key"] for request in gemini.requests] == [KEY]


async def test_a_tool_that_gemini_cli_denies_is_not_offered_and_a_server_it_turned_off_not_started(
    gemini: FakeGemini,
) -> None:
    servers = {"notes": notes_server(), "more": notes_server()}
    write_settings({"mcpServers": servers, "tools": {"exclude": ["mcp_notes_add_note"]}})
    home = Path.home() / ".gemini"
    (home / "policies").mkdir()
    rule = '[[rule]]\ndecision = "deny"\nmcpName = "notes"\ntoolName = "delete_note"\n'
    (home / "policies" / "mine.toml").write_text(rule)
    (home / "mcp-server-enablement.json").write_text('{"more": {"enabled": false}}')
    gemini.steps = [[Say("Hello.")]]

    result = await run("-p", "hello", "--yolo", "-o", "json", gemini=gemini)

    tools = gemini.requests[0].body["tools"]
    offered = {one["name"] for tool in tools for one in tool["functionDeclarations"]}
    assert "list_notes" in offered
    assert not offered & {"add_note", "delete_note", "more__list_notes"}
    assert (
        "without server more: disabled: Disabled: turned off in gemini-cli."
        in (result.json["warnings"])
    )


async def test_a_server_really_gets_the_users_environment_without_secrets(
    gemini: FakeGemini,
) -> None:
    names = Path.home().parent / "names.json"
    text = f"import json, os; json.dump(dict(os.environ), open({str(names)!r}, 'w'))"
    write_settings({"mcpServers": {"dumps": {**program("dumps", text), "env": {"OWN_KEY": "k"}}}})
    gemini.steps = [[Say("Hello.")]]
    environ = {"HTTPS_PROXY": "http://proxy.example:1", "KUBECONFIG": "/k", "MY_TOKEN": "t0ken123"}

    await run("-p", "hello", gemini=gemini, env={**environ, "NO_PROXY": "127.0.0.1"})

    given = json.loads(names.read_text())
    assert given.items() >= {"KUBECONFIG": "/k", "OWN_KEY": "k", "NO_PROXY": "127.0.0.1"}.items()
    assert given["HTTPS_PROXY"] == "http://proxy.example:1"
    assert not given.keys() & {"MY_TOKEN", "GEMINI_API_KEY", "GEMDECK_HOME"}


async def test_debug_logs_handshakes_and_servers_output_and_says_where(
    gemini: FakeGemini,
) -> None:
    talks = program("talks", "import sys; print('cannot open the disk', file=sys.stderr)")
    write_settings({"mcpServers": {"notes": notes_server(), "talks": talks}})
    gemini.steps = [[Say("Hello.")]]

    result = await run("-p", "hello", "--debug", gemini=gemini)

    log = log_dir() / LOG_NAME
    assert f"gemdeck: the log is {log}\n" in result.stderr
    records = [json.loads(line) for line in log.read_text().splitlines()]
    said = "\n".join(record["message"] for record in records)
    assert "notes: connecting to " in said
    assert re.search(r"notes: \S+ \S+ speaks 20\d\d-.*declares .*tools", said)
    assert re.search(r"notes: offers \d+ tools", said)
    assert "talks · stderr: cannot open the disk" in said
    assert {record["logger"].partition(".")[0] for record in records} == {"tui"}


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
    assert "limited to 1 tool calls" in result.stderr
    if as_json:
        assert "tool calls" in result.json["error"]["message"]
        assert "gemdeck.maxToolCalls" in result.json["error"]["advice"]
        assert any("limited to 1 tool calls" in warning for warning in result.json["warnings"])


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


async def test_a_run_waits_for_servers_as_long_as_it_is_told_and_names_those_it_goes_without(
    gemini: FakeGemini, tmp_path: Path
) -> None:
    server = str(Path(servers.__file__).with_name("raw.py"))
    entry = {"command": sys.executable, "args": [server, "gated"], "cwd": str(tmp_path)}
    write_settings({"mcpServers": {"late": entry}})
    gemini.steps = [[Say("Hi.")]]

    result = await run("-p", "hello", "--wait", "0.1", "-o", "json", gemini=gemini)

    assert result.code == 0
    assert "tools" not in gemini.requests[0].body
    [warning] = result.json["warnings"]
    assert warning.startswith("without server late: ")
    assert warning in result.stderr


async def test_a_prompt_is_sent_with_standard_input_after_it(
    gemini: FakeGemini, tmp_path: Path
) -> None:
    write_settings({"mcpServers": {"lib": library()}})
    gemini.steps = [[Say("Fine.")]]

    piped = b"/nothing @lib:memo://today\n"
    result = await run("-p", "/a/b", gemini=gemini, stdin=piped, cwd=tmp_path)

    assert (result.code, result.stdout) == (0, "Fine.\n")
    texts = [part["text"] for part in gemini.requests[0].contents[-1]["parts"]]
    assert texts == ["a/b {}", "/nothing @lib:memo://today"]


async def test_a_prompt_waits_no_longer_for_its_server_than_it_is_told(
    gemini: FakeGemini, tmp_path: Path
) -> None:
    write_settings({"mcpServers": {"lib": library(gate=str(tmp_path / "never-open"))}})

    command = ("-p", "/review", "--wait", "0.1", "-o", "json")
    result = await run(*command, gemini=gemini, cwd=tmp_path)

    assert result.code == ExitCode.ERROR
    assert result.json["error"] == {
        "type": "Error",
        "message": "There is no command /review.",
        "advice": "Prompts of lib come once it is ready.",
        "code": ExitCode.ERROR,
    }
    assert gemini.requests == []


def library(**more: str | list[str]) -> dict[str, Any]:
    """Make the entry of a server with a prompt."""
    says = Path.home() / "library.json"
    says.write_text(json.dumps({"prompts": {"a/b": []}, **more}), encoding="utf-8")
    server = Path(servers.__file__).with_name("library.py")
    return {"command": sys.executable, "args": [str(server), str(says)]}


async def test_a_command_without_a_prompt_of_that_name_is_no_message(gemini: FakeGemini) -> None:
    write_settings({"mcpServers": {"notes": notes_server()}})

    result = await run("-p", "/nothing here", "-o", "json", gemini=gemini)

    assert result.code == ExitCode.ERROR
    error = result.json["error"]
    assert error["message"] == "There is no command /nothing."
    assert error["advice"] == "gemdeck mcp show SERVER lists the prompts of a server."
    assert gemini.requests == []
