"""`gemdeck -p` over the real wire and real servers: what is sent, and what it says of it."""

import json
import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from tests import servers
from tests.cli.running import library, notes_server, run, write_settings
from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Call, Fail, Finish, Say
from tests.support import warm
from tests.unit.engine.sessions.written import turn
from tests.unit.engine.sessions.written import write as write_session
from tui import __version__
from tui.cli.output import ExitCode
from tui.engine.chats.sessions.library import SessionLibrary
from tui.engine.files.paths import LOG_NAME, log_dir, state_dir
from tui.model.bounded_json import json_or_text

SERVERS = Path(servers.__file__).parent


@pytest.fixture
def note(gemini: FakeGemini) -> None:
    """Let the model add a note, with the server for it in the settings."""
    write_settings({"mcpServers": {"notes": notes_server()}})
    gemini.steps = adding()


def adding() -> list[Any]:
    return [[Call([("add_note", {"text": "milk"})])], [Say("Done, "), Say("käse.")]]


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def program(name: str, text: str) -> dict[str, Any]:
    """Write a program that is no server, outside the opened folder."""
    file = Path.home().parent / f"{name}.py"
    file.write_text(text)
    return {"command": sys.executable, "args": ["-P", str(file)]}


@pytest.mark.usefixtures("note")
async def test_an_allowed_tool_runs_and_its_result_reaches_the_model(gemini: FakeGemini) -> None:
    command = ("-p", "add it", "-o", "json", "--allowed-tools", "notes.add_note")
    result = await run(*command, gemini=gemini)

    found = result.json
    assert (result.code, found["response"], found["error"]) == (0, "Done, käse.", None)
    [call] = found["tool_calls"]
    assert (call["server"], call["tool"], call["status"]) == ("notes", "add_note", "ok")
    assert call["arguments"] == {"text": "milk"}
    told = gemini.requests[1].contents[-1]["parts"][0]["functionResponse"]["response"]
    assert ["milk" in one for one in (call["result"], told["output"])] == [True, True]
    assert gemini.violations == []
    assert found["session_id"]
    [(model, counts)] = found["stats"]["models"].items()
    assert model == found["model"]
    requests = {"totalRequests": 2, "totalErrors": 0, "totalLatencyMs": ANY}
    assert counts["api"] == {**requests, "errorsByType": {}}
    assert counts["roles"] == {"main": {**requests, "tokens": counts["tokens"]}}
    assert found["stats"]["files"] == {"totalLinesAdded": 0, "totalLinesRemoved": 0}
    assert counts["tokens"]["prompt"] == found["usage"]["prompt_tokens"]
    tools = found["stats"]["tools"]
    assert (tools["totalCalls"], tools["totalSuccess"], tools["totalFail"]) == (1, 1, 0)
    assert tools["byName"]["add_note"]["decisions"]["auto_accept"] == 1


@pytest.mark.usefixtures("note")
async def test_a_stream_has_a_line_for_each_thing_that_happens(gemini: FakeGemini) -> None:
    result = await run("-p", "add it", "-o", "stream-json", "--yolo", gemini=gemini)

    assert result.code == 0
    assert result.stderr.startswith("gemdeck: running outside this folder: notes. ")
    assert result.stderr.count("\n") == 1
    assert result.stdout.isascii()
    init, user, use, done, first, second, end = lines(result.stdout)
    assert init["type"] == "init"
    assert f"/models/{init['model']}:" in gemini.requests[0].path
    assert init["session_id"]
    assert init["timestamp"].endswith("Z")
    assert (user["type"], user["role"], user["content"]) == ("message", "user", "add it")
    assert (use["type"], use["tool_name"], use["server"]) == ("tool_use", "add_note", "notes")
    assert use["parameters"] == {"text": "milk"}
    found = (done["type"], done["status"], done["tool_id"], "milk" in done["output"])
    assert found == ("tool_result", "success", use["tool_id"], True)
    assert [one["content"] for one in (first, second)] == ["Done, ", "käse."]
    assert {one["role"] for one in (first, second)} == {"assistant"}
    assert first["delta"] is True
    assert (end["type"], end["status"], end["outcome"]) == ("result", "success", "completed")
    stats = end["stats"]
    assert stats["tool_calls"] == 1
    assert stats["total_tokens"] >= stats["input_tokens"] + stats["output_tokens"] > 0
    assert stats["models"].keys() == {init["model"]}


@pytest.mark.usefixtures("note")
async def test_missing_consent_is_said_to_the_user_and_the_model(gemini: FakeGemini) -> None:
    words = "notes.add_note was denied: it needs approval, and nobody can be asked."
    results = {}
    for output in ("text", "json", "stream-json"):
        gemini.steps = adding()
        results[output] = await run("-p", "add it", "-o", output, gemini=gemini)
        assert results[output].code == 0
        assert words in results[output].stderr
        assert "add --allowed-tools notes.add_note" in results[output].stderr
        told = gemini.requests[-1].contents[-1]["parts"][0]["functionResponse"]["response"]
        assert told["error"].startswith("Denied")
    assert results["text"].stdout == "Done, käse.\n"
    found = results["json"].json
    [call], [warning] = found["tool_calls"], found["warnings"]
    assert (call["tool"], call["status"], words in warning) == ("add_note", "denied", True)
    tools = found["stats"]["tools"]
    assert (tools["totalCalls"], tools["totalFail"]) == (1, 1)
    assert tools["byName"]["add_note"]["decisions"]["reject"] == 1
    said = lines(results["stream-json"].stdout)
    [warned] = [one for one in said if one["type"] == "error"]
    assert (warned["severity"], words in warned["message"]) == ("warning", True)
    [denied] = [one for one in said if one["type"] == "tool_result"]
    assert (denied["status"], denied["error"]["type"]) == ("error", "denied")


async def test_json_holds_the_usage_and_what_was_said_on_the_way(gemini: FakeGemini) -> None:
    prices = {"currency": "EUR", "models": {"*": {"input": 1000, "output": 100_000}}}
    write_settings({"gemdeck": {"prices": prices}})
    gemini.steps = [[Fail(503, "Busy.", retry_delay="0s")], [Say("Four.")]]

    result = await run("-p", "two and two?", "-m", "gemini-2.5-pro", "-o", "json", gemini=gemini)

    assert (result.code, result.json["response"], result.json["error"]) == (0, "Four.", None)
    kinds = ("prompt", "output", "thought", "cached")
    assert result.json["usage"].keys() == {f"{kind}_tokens" for kind in kinds}
    assert result.json["usage"]["prompt_tokens"] > 0
    assert result.json["cost"] == {"amount": pytest.approx(0.307), "currency": "EUR"}
    [counts] = result.json["stats"]["models"].values()
    assert (counts["api"]["errorsByType"], counts["api"]["totalErrors"]) == ({"UNKNOWN": 1}, 1)
    [retry] = result.json["warnings"]
    assert ("Trying again" in retry, retry in result.stderr) == (True, True)
    assert (result.json["model"], gemini.requests[0].model) == ("gemini-2.5-pro",) * 2


async def test_a_failed_turn_says_why_and_what_to_do(gemini: FakeGemini) -> None:
    gemini.steps = [[Fail(400, "API key not valid.", reason="API_KEY_INVALID")]]
    result = await run("-p", "hello", "-o", "json", gemini=gemini)
    assert (result.code, result.json["outcome"]) == (ExitCode.ERROR, "failed")
    assert "key" in result.json["error"]["message"].lower()
    assert result.json["error"]["advice"]
    assert KEY not in result.stdout + result.stderr


async def test_every_server_that_is_missing_is_named_with_its_reason(gemini: FakeGemini) -> None:
    entries = {
        "notes": notes_server(),
        "gone": {"command": str(Path.home().parent / "gone")},
        "dies": program("dies", "raise SystemExit(3)"),
        "web": {"httpUrl": "http://127.0.0.1:9/mcp"},
        "bad": {"command": "x", "includeTools": [{}]},
        "off": {"command": "x", "disabled": True},
        "slow": {**program("slow", "import time; time.sleep(60)"), "timeout": 500},
    }
    write_settings({"mcpServers": entries})
    gemini.steps = [[Say("Hello.")]]

    result = await run("-p", "hello", "-o", "json", gemini=gemini, code=0)
    start = "running without server "
    said = [words for words in result.json["warnings"] if words.startswith(start)]
    reasons = dict(words.removeprefix(start).split(": ", 1) for words in said)
    assert reasons.keys() == entries.keys() - {"notes"}
    assert reasons["gone"].startswith("failed: command not found")
    assert "exited with code 3" in reasons["dies"]
    again = ("retrying", "failed", "starting")  # the next attempt may have begun
    assert reasons["web"].startswith(again)
    assert "includeTools" in reasons["bad"]
    assert reasons["off"].startswith("disabled: turned off in its settings entry.")
    assert "was not ready within 0.5 s" in reasons["slow"]
    assert all(words in result.stderr for words in said)


async def test_a_run_waits_for_a_server_as_long_as_told(gemini: FakeGemini, tmp_path: Path) -> None:
    write_settings({"mcpServers": {"late": library(prompts=[], gate=str(tmp_path / "never"))}})
    gemini.steps = [[Say("Hi.")]]
    waiting = ("--wait", "0.1", "-o", "json")
    result = await run("-p", "hello", *waiting, gemini=gemini, cwd=tmp_path, code=0)
    assert "tools" not in gemini.requests[0].body
    [warning] = result.json["warnings"]
    assert warning.startswith("running without server late: starting: no response within ")
    assert warning in result.stderr

    result = await run("-p", "/review", *waiting, gemini=gemini, cwd=tmp_path, code=ExitCode.ERROR)
    words = {"message": "There is no command /review.", "type": "Error"}
    advice = "Prompts of late appear once it is ready."
    assert result.json["error"] == {**words, "advice": advice, "code": ExitCode.ERROR}
    assert len(gemini.requests) == 1


async def test_a_mention_goes_along_and_no_wrong_prompt(gemini: FakeGemini, tmp_path: Path) -> None:
    write_settings({"mcpServers": {"lib": library(resources=["memo://today"])}})
    gemini.steps = [[Say("Fine.")]]
    result = await run("-p", "explain @lib:memo://today", gemini=gemini, cwd=tmp_path, code=0)
    assert "content of memo://today" in json.dumps(gemini.requests[0].contents[-1])

    result = await run("-p", "/nothing here", "-o", "json", gemini=gemini, cwd=tmp_path)
    assert result.code == ExitCode.ERROR
    error, advice = result.json["error"], "gemdeck mcp show SERVER lists the prompts of a server."
    assert (error["message"], error["advice"]) == ("There is no command /nothing.", advice)
    assert len(gemini.requests) == 1

    gemini.steps += [[Say("Fine.")]]
    written = r"!important: fix \@param"
    result = await run("-p", written, gemini=gemini, cwd=tmp_path, code=0)
    assert gemini.requests[-1].contents[-1]["parts"][0]["text"] == written


async def test_debug_logs_handshakes_and_output_of_servers(gemini: FakeGemini) -> None:
    talks = program("talks", "import sys; print('cannot open the disk', file=sys.stderr)")
    write_settings({"mcpServers": {"notes": notes_server(), "talks": talks}})
    gemini.steps = [[Say("Hello.")]]

    result = await run("-p", "hello", "--debug", gemini=gemini)

    log = log_dir() / LOG_NAME
    assert f"gemdeck: log file: {log}\n" in result.stderr
    records = lines(log.read_text())
    said = "\n".join(record["message"] for record in records)
    assert "notes: connecting to " in said
    assert re.search(r"notes: \S+ \S+ speaks 20\d\d-.*declares .*tools", said)
    assert re.search(r"notes: offers \d+ tools", said)
    assert "talks · stderr: cannot open the disk" in said
    assert {record["logger"].partition(".")[0] for record in records} == {"tui"}


@pytest.mark.parametrize("reason", ["UNEXPECTED_TOOL_CALL", "MAX_TOKENS", "SAFETY"])
async def test_an_answer_that_breaks_off_is_no_completed_one(
    reason: str, gemini: FakeGemini
) -> None:
    gemini.steps = [[Say("I will look."), Finish(reason, "web_search")]]
    result = await run("-p", "what is new?", "-o", "json", gemini=gemini, code=ExitCode.ERROR)
    assert (result.json["outcome"], result.json["response"]) == ("failed", "I will look.")
    assert result.json["error"]["message"]


async def test_too_many_calls_or_requests_have_a_code_and_a_way_out(gemini: FakeGemini) -> None:
    write_settings({"mcpServers": {"notes": notes_server()}, "gemdeck": {"maxToolCalls": 1}})
    two: list[tuple[str, dict[str, Any]]] = [("list_notes", {}), ("list_notes", {})]
    limited = "limited to 1 tool call;"
    for output in ("text", "json"):
        gemini.steps = [[Call(two)] for _ in range(4)]
        result = await run("-p", "go on", "--yolo", "-o", output, gemini=gemini)
        assert result.code == ExitCode.TURN_LIMIT
        assert limited in result.stderr
    assert "tool calls" in result.json["error"]["message"]
    assert "gemdeck.maxToolCalls" in result.json["error"]["advice"]
    assert any(limited in warning for warning in result.json["warnings"])

    before, gemini.steps = len(gemini.requests), adding()
    command = ("-p", "add it", "-o", "json", "--max-turns", "1", "--yolo")
    result = await run(*command, gemini=gemini)
    assert (result.code, len(gemini.requests)) == (ExitCode.TURN_LIMIT, before + 1)
    assert result.json["outcome"] == "too many requests"
    assert result.json["error"]["type"] == "FatalTurnLimitedError"
    assert "--max-turns" in result.json["error"]["advice"]
    assert [call["status"] for call in result.json["tool_calls"]] == ["ok"]


@pytest.mark.usefixtures("note")
async def test_a_run_ends_before_the_request_that_its_cost_limit_does_not_allow(
    gemini: FakeGemini,
) -> None:
    write_settings(
        {
            "gemdeck": {"prices": {"models": {"*": {"input": 1, "output": 1}}}, "maxCost": 1},
            "mcpServers": {"notes": notes_server()},
        }
    )
    gemini.steps = adding()
    command = ("-p", "add it", "-o", "json", "--yolo")
    assert (await run(*command, gemini=gemini)).json["response"] == "Done, käse."

    before, gemini.steps = len(gemini.requests), adding()
    result = await run(*command, "--max-cost", "0.000001", gemini=gemini)
    assert (result.code, len(gemini.requests)) == (ExitCode.TURN_LIMIT, before + 1)
    assert result.json["outcome"] == "cost limit reached"
    assert result.json["error"]["type"] == "FatalTurnLimitedError"
    assert "--max-cost" in result.json["error"]["advice"]
    assert [call["status"] for call in result.json["tool_calls"]] == ["ok"]

    write_settings({"gemdeck": {"maxCost": 5}})
    result = await run("-p", "x", "-o", "json", gemini=gemini)
    assert (result.code, len(gemini.requests)) == (ExitCode.ERROR, before + 1)
    assert "no known price" in result.json["error"]["message"]
    assert "gemdeck.prices" in result.json["error"]["advice"]
    assert (await run("-p", "x", "--demo")).code == ExitCode.OK


@pytest.mark.usefixtures("note")
async def test_only_named_servers_start_and_all_their_tools_may_run(gemini: FakeGemini) -> None:
    canary = Path.home() / "ran"
    other = {"command": "touch", "args": [str(canary)]}
    write_settings({"mcpServers": {"notes": notes_server(), "other": other}})

    command = ("-p", "add it", "-o", "json", "--allowed-mcp-server-names", "notes, gone")
    result = await run(*command, gemini=gemini, code=0)
    assert [call["status"] for call in result.json["tool_calls"]] == ["ok"]
    assert not canary.exists()
    [warning] = result.json["warnings"]
    assert "there is no server gone; configured: notes, other" in warning


@pytest.mark.usefixtures("note")
async def test_only_the_servers_and_tools_of_a_profile_are_there(gemini: FakeGemini) -> None:
    canary = Path.home() / "ran"
    other = {"command": "touch", "args": [str(canary)]}
    profiles = {"brief": {"servers": ["notes"], "tools": [{"tool": "add_*"}]}, "bro\x1b[2Jken": {}}
    servers = {"notes": notes_server(), "other": other}
    write_settings({"mcpServers": servers, "gemdeck": {"profiles": {**profiles, "other": {}}}})
    refused = await run("-p", "add it", "--profile", "brief", gemini=gemini, code=ExitCode.USAGE)
    assert "\x1b" not in refused.stderr
    del profiles["bro\x1b[2Jken"]
    write_settings({"mcpServers": servers, "gemdeck": {"profiles": {**profiles, "other": {}}}})
    for words in (("-p", "x"), ()):
        unknown = await run(*words, "--profile", "gone\x1b[2J", gemini=gemini)
        assert (unknown.code, unknown.stdout) == (ExitCode.USAGE, "")
        assert "there is no profile gone; your settings have: brief, other." in unknown.stderr
        assert "\x1b" not in unknown.stderr

    command = ("-p", "add it", "-o", "json", "--profile", "brief", "--allowed-tools", "notes")
    result = await run(*command, gemini=gemini)
    assert (result.code, result.json["warnings"]) == (0, [])
    assert [call["status"] for call in result.json["tool_calls"]] == ["ok"]
    assert gemini.requests[0].declared == ["add_note", "list_mcp_resources", "read_mcp_resource"]

    assert not canary.exists()

    (Path.home() / ".gemini" / "settings.json").write_text("{")
    await run("-p", "x", "--profile", "brief", gemini=gemini, code=ExitCode.BAD_SETTINGS)


async def test_servers_are_told_of_further_folders_and_what_they_ask_is_declined_with_a_word(
    gemini: FakeGemini, tmp_path: Path
) -> None:
    asks = {"command": warm.python(), "args": [str(SERVERS / "asking.py")]}
    write_settings({"mcpServers": {"asks": asks}})
    more = tmp_path / "more"
    more.mkdir()
    gemini.steps = [[Call([("roots", {}), ("form", {})])], [Say("Fine.")]]

    command = ("-p", "go", "-o", "json", "--yolo", "--include-directories", str(more))
    trusting = ("--trust-folder", str(tmp_path))
    result = await run(*command, *trusting, gemini=gemini, cwd=tmp_path)

    assert result.json["outside"] == []
    roots, form = result.json["tool_calls"]
    assert all(folder.as_uri() in roots["result"] for folder in (tmp_path, more))
    assert "decline" in form["result"]
    assert "asks requested what only a user can give" in "".join(result.json["warnings"])


async def test_a_session_goes_on_and_a_missing_one_not(gemini: FakeGemini, tmp_path: Path) -> None:
    records = turn(1, "my name is Ada", "Hello, Ada.")
    saved = write_session(SessionLibrary(state_dir()), tmp_path, records)
    gemini.steps = [[Say("You are Ada.")], [Say("Still Ada.")]]

    for words in ("who am I?", "and now?"):
        command = ("-p", words, "--resume", str(saved.id), "-o", "json")
        result = await run(*command, gemini=gemini, cwd=tmp_path, code=0)
        assert result.json["session_id"] == saved.id
    assert result.json["response"] == "Still Ada."
    sent = [part["text"] for one in gemini.requests[1].contents for part in one["parts"]]
    assert sent == ["my name is Ada", "Hello, Ada.", "who am I?", "You are Ada.", "and now?"]

    with SessionLibrary(state_dir()).path_of(saved).open("a") as file:
        file.write("<<<<<<< HEAD\n")
    gemini.steps = [[Say("Yes.")]]
    damaged = await run("-p", "really?", "--resume", gemini=gemini, cwd=tmp_path, code=0)
    assert damaged.stderr == "gemdeck: 1 line of the session was unreadable.\n"

    missing = await run("-p", "go on", "--resume", "2000", "-o", "json", gemini=gemini)
    assert missing.code == ExitCode.ERROR
    assert "no" in missing.json["error"]["message"]
    assert len(gemini.requests) == 3


async def test_a_turn_is_saved_where_that_is_asked_for(gemini: FakeGemini, tmp_path: Path) -> None:
    gemini.steps = [[Say(f"Answer {number}.")] for number in range(5)]
    first = await run("-p", "one", "--save", "-o", "json", gemini=gemini, cwd=tmp_path, code=0)
    session = first.json["session_id"]
    resumed = ("-p", "two", "--resume", session, "-o", "stream-json")
    second = await run(*resumed, gemini=gemini, cwd=tmp_path, code=0)
    assert lines(second.stdout)[0]["session_id"] == session
    sent = [part["text"] for one in gemini.requests[1].contents for part in one["parts"]]
    assert sent == ["one", "Answer 0.", "two"]
    told = await run("-p", "other", "--save", gemini=gemini, cwd=tmp_path, code=0)
    [another] = re.findall(r"resume with: gemdeck -p TEXT --resume (\S+)", told.stderr)
    assert another != session
    streamed = ("-p", "x", "--save", "-o", "stream-json")
    begun = lines((await run(*streamed, gemini=gemini, cwd=tmp_path, code=0)).stdout)[0]
    await run("-p", "two", "--resume", begun["session_id"], gemini=gemini, cwd=tmp_path, code=0)

    write_settings({"gemdeck": {"sessions": {"save": False}}})
    gemini.steps = [[Say("Fine.")]]
    unsaved = await run("-p", "x", "--save", "-o", "json", gemini=gemini, cwd=tmp_path, code=0)
    assert "gemdeck.sessions.save" in "".join(unsaved.json["warnings"])


async def test_json_is_ascii_whatever_the_model_asks_for(gemini: FakeGemini) -> None:
    hostile = "a\x9b\u202e\x7f\x1b"
    gemini.steps = [[Call([("add_note", {"text": hostile})])], [Say(f"No. {hostile}\ud800")]]
    result = await run("-p", "add a note", "-o", "json", gemini=gemini)
    assert result.stdout.isascii()
    assert not set(result.stdout) & {"\x7f", "\x1b"}
    assert [call["tool"] for call in result.json["tool_calls"]] == ["add_note"]
    for text in ('{"a": "cut…', "[" * 100_000):
        assert json_or_text(text) == text, "arguments that were cut are given as text"
    assert json_or_text('{"a": 1}') == {"a": 1}


async def test_the_version_is_told_and_what_cannot_be_meant_is_refused() -> None:
    result = await run("--version")
    assert (result.code, result.stdout) == (0, f"gemdeck, version {__version__}\n")
    demo = ("-p", "hello", "--demo")
    for words, said in (
        ((*demo, "-o", "yaml"), "-o"),
        ((*demo, "--nonsense"), "--nonsense"),
        ((*demo, "-m", "bad model"), "-m"),
        (("-p", "x", "-i", "y"), "use one of them"),
        (("-p", "x", "-p", "y"), "only one text can be sent"),
        (("-i", "x", "-i", ""), "only one text can be sent"),
        (("-p", "x", "--resume="), "an ID must not be empty"),
        (("-p", "x", "--save", "--private"), "cannot be combined"),
        (("-p", "x", "--yolo", "--approval-mode", "default"), "cannot be combined"),
        (("-p", "x", "--include-directories", "gone"), "there is no folder "),
        (("-p", "x", "--max-turns", "0"), "--max-turns"),
        (("-p", "x", "--max-cost", "0"), "--max-cost"),
    ):
        result = await run(*words)
        assert (result.code, result.stdout) == (ExitCode.USAGE, ""), words
        assert said in result.stderr, words


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
        write_settings({})
        (Path.home() / ".gemini" / "settings.json").write_text('{\n  "mcpServers": {\n')

    told, result = await run("-p", *prompt), await run("-p", *prompt, "-o", "json")

    assert (told.code, told.stdout, result.code) == (code, "", code)
    assert (result.json["response"], result.json["outcome"]) == ("", None)
    assert words in result.json["error"]["message"]
    assert result.json["error"]["advice"]
    assert result.json["tool_calls"] == []
    for stderr in (told.stderr, result.stderr):
        assert words in stderr
        assert said in stderr
    streamed = await run("-p", *prompt, "-o", "stream-json")
    end = lines(streamed.stdout)[-1]
    assert (streamed.code, end["type"], end["status"]) == (code, "result", "error")
    assert end["error"]["code"] == code
    if code is ExitCode.NO_KEY:
        init, end = lines(streamed.stdout)
        assert (init["type"], init["model"]) == ("init", "")
        assert end["error"]["type"] == "FatalAuthenticationError"


async def test_a_folders_broken_file_ends_no_run_and_no_state_folder_does(tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "settings.json").write_text("{", encoding="utf-8")
    result = await run("-p", "hello", "--demo", cwd=tmp_path, code=0)
    assert "settings.json" in result.stderr

    (tmp_path / "file").write_text("")
    result = await run("-p", "hello", "--demo", env={"GEMDECK_HOME": str(tmp_path / "file" / "x")})
    said = (result.stderr.count("\n"), "GEMDECK_HOME" in result.stderr)
    assert (result.code, result.stdout, *said) == (ExitCode.ERROR, "", 1, True)


async def test_credentials_and_variables_that_cannot_be_used_are_named(gemini: FakeGemini) -> None:
    elsewhere = {"GOOGLE_GEMINI_BASE_URL": "https://nowhere.invalid"}  # here needs no proxy
    for variable, value, more in (
        ("GEMINI_API_KEY", "no key at all", {}),
        ("ALL_PROXY", "odd://user:hunter22@127.0.0.1:9", elsewhere),
        ("SSL_CERT_FILE", "gone", {}),
    ):
        environ = {variable: value, **more}
        result = await run("-p", "hello", "-o", "json", gemini=gemini, env=environ)
        assert result.code == ExitCode.NO_KEY
        assert variable in result.json["error"]["message"]
        assert result.json["error"]["advice"]
        for words in ("No Gemini API key", "Traceback", "hunter22"):
            assert words not in result.stdout + result.stderr
    assert gemini.requests == []
