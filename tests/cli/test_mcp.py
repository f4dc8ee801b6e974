"""`gemdeck mcp`: servers without a screen, a key or a model."""

import hashlib
import json
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import keyring
import pytest
from keyring.backend import KeyringBackend, SchemeSelectable

from tests.cli.running import LIBRARY, finish, library, notes_server, opened, run, write_settings
from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Call, Say
from tests.support.terminal import Terminal
from tests.support.waiting import eventually
from tui.cli.output import ExitCode
from tui.engine.files.paths import LOG_NAME, log_dir
from tui.engine.keys import key_store
from tui.engine.mcp.schema.to_gemini import typed_value
from tui.engine.mcp.transports.stdio import stdio_transport

HANGING: Final = {"command": "sleep", "args": ["600"]}
NOTE: Final = "notes://note/"


@pytest.fixture
def notes() -> None:
    write_settings({"mcpServers": {"notes": notes_server()}})


def outcomes(listed: dict[str, Any]) -> dict[str, str]:
    return {server["name"]: server["status"] for server in listed["servers"]}


async def test_every_server_is_listed_with_its_status_and_why() -> None:
    empty = await run("mcp", "list")
    assert (empty.code, empty.stdout) == (ExitCode.OK, "No servers are configured.\n")
    ready = {f"notes{number}": notes_server() for number in range(2)}
    off, wrong = {"command": "x", "disabled": True}, {"args": list[str]()}
    hang = {"hanging": HANGING, "patient": {**HANGING, "timeout": 600_000}}
    others = {"missing": {"command": "no-such-program"}, "off": off, "wrong": wrong}
    write_settings({"mcpServers": {**ready, **hang, **others}})
    result = await run("mcp", "list", "--json", "--timeout", "8", code=ExitCode.ERROR)
    assert outcomes(result.json) == {
        **dict.fromkeys(ready, "ready"),
        **dict.fromkeys(hang, "starting"),
        **{"missing": "failed", "off": "disabled", "wrong": "invalid"},
    }
    reasons = {server["name"]: server["reason"] for server in result.json["servers"]}
    assert "no-such-program" in reasons["missing"]
    assert reasons["hanging"].startswith("no response within ")
    assert reasons["hanging"] == reasons["patient"]
    found = next(one for one in result.json["servers"] if one["name"] == "notes0")
    assert (found["tools"], found["transport"], found["reason"]) == (5, "stdio", "")


async def test_a_server_that_knows_no_probe_is_known_later(tmp_path: Path) -> None:
    record = tmp_path / "record"
    raw = str(LIBRARY.with_name("raw.py"))
    entry = {"command": sys.executable, "args": [raw, "silent"], "env": {"RAW_RECORD": str(record)}}
    write_settings({"mcpServers": {"raw": entry}})
    listed = await run("mcp", "list", "--json")
    assert outcomes(listed.json) == {"raw": "ready"}, listed.stderr
    assert "server/discover" in record.read_text()
    record.unlink()
    (tmp_path / "opened").mkdir()
    called = await run("mcp", "call", "raw", "echo", "text=a", cwd=tmp_path / "opened")
    assert (called.code, called.stdout) == (ExitCode.OK, "a\n"), called.stderr
    assert "server/discover" not in record.read_text()


NOTHING: Final = "The tool returned nothing."


@pytest.mark.parametrize(
    ("result", "code", "words"),
    [
        *(({}, ExitCode.OK, NOTHING), ({"content": None}, ExitCode.OK, NOTHING)),
        ({"resultType": "hologram"}, ExitCode.ERROR, "a result of the unknown kind “hologram”"),
        ({"resultType": ["x"]}, ExitCode.ERROR, "sent a result of the unknown kind"),
    ],
)
@pytest.mark.parametrize("era", ["modern", "silent"])
async def test_an_empty_result_is_one_and_one_of_an_unknown_kind_is_none(
    era: str, result: dict[str, Any], code: ExitCode, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio_transport, "PROBE_PATIENCE", 0.3)
    args = [str(LIBRARY.with_name("raw.py")), era, "measuring_freely"]
    write_settings({"mcpServers": {"raw": {"command": sys.executable, "args": args}}})
    called = await run("mcp", "call", "raw", "measure", f"text={json.dumps(result)}", code=code)
    assert words in (called.stdout if code == ExitCode.OK else called.stderr)


async def test_the_last_words_of_a_server_are_listed(gemini: FakeGemini, tmp_path: Path) -> None:
    dies = tmp_path / "dies.py"
    dies.write_text("import sys; sys.exit('one\\ntwo\\nthree\\nFATAL: no TOKEN')")
    write_settings({"mcpServers": {"dies": {"command": sys.executable, "args": [str(dies)]}}})
    listed = await run("mcp", "list")
    line, *said = listed.stdout.splitlines()
    assert line.split()[0] == "dies"
    assert line.endswith("exited with code 1 during startup: FATAL: no TOKEN")
    assert said == ["    two", "    three", "    FATAL: no TOKEN"]
    one = await run("-p", "hi", gemini=gemini)
    assert "during startup: FATAL: no TOKEN. See its log for the last output." in one.stderr
    added = await run("mcp", "add", "-s", "user", "too", sys.executable, str(dies))
    assert "during startup: FATAL: no TOKEN" in added.stdout


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("echo Starting on stdio; echo more; exec sleep 99", "Starting on stdio"),
        (r"printf '10%%\r50%%'; exec sleep 99", "10%"),
        ("echo usage: x --token TOKEN; exit 2", "usage: x --token TOKEN"),
    ],
    ids=["a banner", "progress", "an end"],
)
async def test_a_program_that_prints_text_is_told_as_that(
    program: str, said: str, gemini: FakeGemini
) -> None:
    entry = {"command": "sh", "args": ["-c", program], "timeout": 1500}
    write_settings({"mcpServers": {"prints": entry}})
    told = f"its first line was not a message: {said}"
    assert told in (await run("mcp", "list")).stdout
    assert told in (await run("doctor", "--offline", "prints")).stdout
    assert told in (await run("-p", "hi", "--wait", "9", gemini=gemini)).stderr
    write_settings({"mcpServers": {}})
    add = ("mcp", "add", "-s", "user", "--timeout", "1500", "prints", "sh", "-c", program)
    added = await run(*add)
    assert told in added.stdout or said == "10%"  # it may still print


async def test_a_long_name_of_a_tool_widens_no_list() -> None:
    write_settings({"mcpServers": {"a": library(tools={"t" * 200: [], "short": []})}})
    lines = (await run("mcp", "tools", "a")).stdout.splitlines()
    assert [len(line.split()[1]) for line in lines] == [64, len("short")]
    assert lines[0].split()[1].endswith("…")
    listed = await run("mcp", "tools", "a", "--json")
    assert listed.json["tools"][0]["name"] == "t" * 200


async def test_what_a_server_shouts_is_on_neither_stream(tmp_path: Path) -> None:
    notes, script = notes_server(), tmp_path / "loud.sh"
    shout = "for i in 1 2 3 4 5 6 7 8 9; do echo SHOUT >&2; done\n"
    script.write_text(shout + shlex.join(["exec", notes["command"], *notes["args"]]))
    loud = {**notes, "command": "sh", "args": [str(script)]}
    write_settings({"mcpServers": {"loud": loud}})
    result = await run("mcp", "tools", "loud", "--json")
    assert (result.code, len(result.json["tools"])) == (ExitCode.OK, 5)
    assert "SHOUT" not in result.stdout + result.stderr
    logs = await run("mcp", "logs", "loud")
    assert logs.stdout.count("SHOUT") == 9


@pytest.mark.usefixtures("notes")
async def test_a_server_is_shown_with_what_it_offers_and_lists_have_a_line_for_each() -> None:
    listed = await run("mcp", "list", code=ExitCode.OK)
    command = shlex.join([notes_server()["command"], *notes_server()["args"]])
    assert listed.stdout == f"notes  ready  stdio  {command}  5 tools, 1 prompt, 4 resources\n"
    result = await run("mcp", "show", "notes", "--json", code=ExitCode.OK)
    found, own = result.json, "io.modelcontextprotocol/"
    for kind, one in (
        ("tools", "add_note"),
        ("prompts", "plan_day"),
        ("templates", f"{NOTE}{{id}}"),
    ):
        assert one in found[kind]
    assert found["settings"].endswith("settings.json, line 1")
    assert found["capabilities"][-2:] == ["resources", "tools"]
    assert found["announced"] == ["elicitation", "roots", f"{own}skills", f"{own}tasks"]
    assert (found["connect_ms"] > 0, found["lists_ms"] > 0, found["processes"]) == (True, True, 1)
    assert 1 < found["memory_mb"] < 500
    shown = await run("--debug", "mcp", "show", "notes")
    assert "status        ready" in shown.stdout.splitlines()
    log = log_dir() / LOG_NAME
    assert f"gemdeck: log file: {log}\n" in shown.stderr
    assert "notes: offers 5 tools" in log.read_text()


async def test_only_the_named_server_is_started(tmp_path: Path) -> None:
    canary = tmp_path / "ran"
    other = {"command": "touch", "args": [str(canary)]}
    write_settings({"mcpServers": {"notes": notes_server(), "other": other}})
    result = await run("mcp", "tools", "notes", code=ExitCode.OK)
    assert "notes  add_note      Add a note to the notebook." in result.stdout.splitlines()
    assert not canary.exists()


@pytest.mark.usefixtures("notes")
async def test_a_call_runs_with_exactly_these_arguments_and_its_error_is_its_answer() -> None:
    added = await run("mcp", "call", "notes", "add_note", "text=a=b c", "--json")
    assert (added.code, added.json["arguments"]) == (ExitCode.OK, {"text": "a=b c"})
    number = int(added.json["content"][0]["text"].split()[2].rstrip(":"))
    gone = await run("mcp", "call", "notes", "delete_note", f"id={number}", code=ExitCode.OK)
    assert f"Deleted note {number}" in gone.stdout
    raw = json.dumps({"text": "x", "tags": ["home"]})
    tagged = await run("mcp", "call", "notes", "add_note", "--args", raw, "--json")
    assert tagged.json["arguments"] == {"text": "x", "tags": ["home"]}
    failed = await run("mcp", "call", "notes", "delete_note", "id=999", "--json")
    assert (failed.code, failed.json["is_error"]) == (ExitCode.ERROR, True)
    assert "999" in failed.json["content"][0]["text"]


@pytest.mark.parametrize(
    ("schema", "word", "value"),
    [
        ({"type": "integer"}, "5", 5),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5", 5),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "5", "5"),
        ({"$ref": "#/$defs/n"}, "5", 5),
        ({"oneOf": [{"type": ["array", "null"]}]}, "[1]", [1]),
        ({"type": ["string", "integer"]}, "5", "5"),
        ({"type": "integer"}, "five", "five"),
        ({}, "5", "5"),
        (True, "5", "5"),
    ],
)
def test_a_value_is_read_as_its_parameter_wants(schema: object, word: str, value: object) -> None:
    whole = {"properties": {"p": schema}, "$defs": {"n": {"type": "number"}}}
    assert typed_value(whole, "p", word) == value


async def test_a_rule_that_denies_beats_the_call() -> None:
    rules = [{"server": "notes", "tool": "add_note"}]
    write_settings({"mcpServers": {"notes": notes_server()}, "gemdeck": {"alwaysDeny": rules}})
    result = await run("mcp", "call", "notes", "add_note", "text=x", "--json", code=ExitCode.ERROR)
    assert "alwaysDeny" in result.json["error"]["message"]
    assert "gemdeck.alwaysDeny" in result.stderr


@pytest.mark.usefixtures("notes")
async def test_what_cannot_be_done_is_said_on_standard_error() -> None:
    for words, code, said in (
        ("show nots", ExitCode.NOT_FOUND, "There is no server nots. Did you mean notes?"),
        ("call notes add", ExitCode.NOT_FOUND, "There is no tool add."),
        ("prompt notes plan", ExitCode.NOT_FOUND, "There is no prompt plan."),
        ("enable nots", ExitCode.NOT_FOUND, "There is no server nots."),
        ("read notes notes://none", ExitCode.ERROR, "notes"),
        ("prompt notes plan_day", ExitCode.USAGE, "Missing arguments: focus."),
        ("prompt notes plan_day fokus=x", ExitCode.NOT_FOUND, "Did you mean focus?"),
        ("call notes add_note text", ExitCode.USAGE, "KEY=VALUE"),
        ("call notes add_note --args [1]", ExitCode.USAGE, "a JSON object"),
        ("call notes add_note --args {", ExitCode.USAGE, "not JSON"),
        ("call notes add_note", ExitCode.ERROR, "'text' is a required property"),
        ("call notes.add_note more=x", ExitCode.ERROR, "'text' is a required property"),
        ("call nots.add_note", ExitCode.NOT_FOUND, "There is no server nots.add_note."),
        ("call notes", ExitCode.USAGE, "Missing argument 'TOOL'"),
    ):
        result = await run("mcp", *words.split())
        assert (result.code, result.stdout) == (code, ""), words
        assert said in result.stderr, words
    before = await run("--trust-folder", "/x", "mcp", "list", code=ExitCode.USAGE)
    assert "--trust-folder has no effect before mcp" in before.stderr


@pytest.mark.usefixtures("notes")
async def test_prompts_are_printed() -> None:
    rendered = await run("mcp", "prompt", "notes", "plan_day", "focus=rest", "--json")
    assert (rendered.code, rendered.json["messages"][-1]["role"]) == (ExitCode.OK, "user")


@pytest.mark.usefixtures("notes")
async def test_a_server_is_disabled_and_enabled_for_later_runs() -> None:
    disabled = await run("mcp", "disable", "notes")
    assert (disabled.code, disabled.stdout) == (ExitCode.OK, "notes is disabled.\n")
    assert outcomes((await run("mcp", "list", "--json")).json) == {"notes": "disabled"}
    await run("mcp", "enable", "notes")
    assert outcomes((await run("mcp", "list", "--json")).json) == {"notes": "ready"}


async def test_a_tool_is_disabled_and_enabled_in_the_users_settings(tmp_path: Path) -> None:
    file = Path.home() / ".gemini" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    servers = json.dumps({"notes": notes_server(), "a": {"command": "x"}, "a.b": {"command": "x"}})
    file.write_text(f'{{ // mine\n  "mcpServers": {servers} }}')
    for _ in range(2):  # a second time changes nothing
        off = await run("mcp", "disable", "notes.add_note", "--json")
        told = {"server": "notes", "tool": "add_note", "enabled": False, "file": str(file)}
        assert (off.code, off.json) == (ExitCode.OK, told)
    assert "// mine" in file.read_text()
    assert file.read_text().count('"add_note"') == 1
    shown = (await run("mcp", "show", "notes", "--json")).json
    assert shown["tools_off"] == ["add_note"]
    assert " tools, 1 off, " in (await run("mcp", "list")).stdout
    assert shown["tokens"] > 0
    assert shown["context"].endswith("tokens, estimated")
    listed = (await run("mcp", "tools", "notes", "--json")).json["tools"]
    [one] = [tool for tool in listed if tool["name"] == "add_note"]
    assert one["problem"] == "off in settings"
    assert one["tokens"] > 0
    refused = await run("mcp", "call", "notes", "add_note", "text=x")
    assert "off in settings" in refused.stderr
    on = await run("mcp", "enable", "notes.add_note")
    assert on.stdout == "add_note of notes is on: ~/.gemini/settings.json\n"
    assert (await run("mcp", "show", "notes", "--json")).json["tools_off"] == []
    (tmp_path / ".gemini").mkdir()
    theirs = json.dumps({"mcpServers": {"theirs": notes_server()}})
    (tmp_path / ".gemini" / "settings.json").write_text(theirs)
    for word, code, said in (
        ("nots.add", ExitCode.NOT_FOUND, "There is no server nots.add."),
        ("a.b.c", ExitCode.USAGE, "a.b.c is ambiguous: b.c of a or c of a.b."),
        ("theirs.x", ExitCode.ERROR, "theirs is defined in "),
        ("notes.$HOME", ExitCode.ERROR, "$ and ( in the name have another meaning"),
    ):
        result = await run("mcp", "disable", word, cwd=tmp_path)
        assert (result.code, result.stdout) == (code, ""), word
        assert said in result.stderr, word
    assert "theirs" not in file.read_text()
    assert json.loads((tmp_path / ".gemini" / "settings.json").read_text()) == json.loads(theirs)


async def test_a_folders_servers_need_trust(tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    settings = {"mcpServers": {"notes": notes_server()}}
    (tmp_path / ".gemini" / "settings.json").write_text(json.dumps(settings))
    closed = await run("mcp", "list", "--json", cwd=tmp_path)
    assert outcomes(closed.json) == {"notes": "untrusted"}
    assert "not trusted" in "".join(closed.json["warnings"])
    opened = await run("mcp", "list", "--json", "--trust-folder", str(tmp_path), cwd=tmp_path)
    assert outcomes(opened.json) == {"notes": "ready"}


async def test_settings_that_cannot_be_read_end_a_command() -> None:
    write_settings({})
    (Path.home() / ".gemini" / "settings.json").write_text("{")
    result = await run("mcp", "list", "--json", code=ExitCode.BAD_SETTINGS)
    assert "settings.json" in result.json["error"]["message"]


async def test_a_signal_ends_the_servers_too(tmp_path: Path) -> None:
    began = tmp_path / "began"
    script = tmp_path / "slow.sh"
    script.write_text(f"touch '{began}'; sleep 600")
    write_settings({"mcpServers": {"slow": {"command": "sh", "args": [str(script)]}}})
    async with opened("mcp", "list", "--timeout", "60", cwd=Path.home()) as process:
        await eventually(began.exists)
        process.send_signal(signal.SIGINT)
        assert await finish(process) == ExitCode.CANCELLED


class SecretService(SchemeSelectable, KeyringBackend):
    """A keyring that finds what has the attributes asked for, as that of Linux does."""

    priority = 5

    def __init__(self) -> None:
        self.items: list[tuple[dict[str, str], str]] = []
        self.answer = threading.Event()
        self.answer.set()

    def get_password(self, service: str, username: str) -> str | None:
        self.answer.wait(20)
        query = self._query(service, username)
        found = (value for item, value in self.items if query.items() <= item.items())
        return next(found, None)

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Iterator[SecretService]:
    """Put a keyring in place of the user's, and the state where it usually is."""
    monkeypatch.delenv("GEMDECK_HOME")
    before, made = keyring.get_keyring(), SecretService()
    keyring.set_keyring(made)
    yield made
    made.answer.set()
    keyring.set_keyring(before)


async def test_a_secret_of_an_extension_comes_from_the_keyring_or_is_said_to_be_missing(
    ring: SecretService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, told = Path.home() / ".gemini" / "extensions" / "sky", tmp_path / "told"
    place.mkdir(parents=True)
    notes = notes_server()
    script = 'echo "$API_KEY|$1" > "$0"; shift; exec "$@"'
    args = ["-c", script, str(told), "${API_KEY}", notes["command"], *notes["args"]]
    entry = {"command": "sh", "args": args, "cwd": "${extensionPath}", "env": notes["env"]}
    manifest = {"name": "sky", "mcpServers": {"sky": entry}}
    secret = {"name": "Key", "envVar": "API_KEY", "sensitive": True}
    (place / "gemini-extension.json").write_text(json.dumps({**manifest, "settings": [secret]}))
    missing = await run("mcp", "list", "--json")
    [sky] = missing.json["servers"]
    assert (missing.code, sky["status"]) == (ExitCode.OK, "ready")
    assert "Without API_KEY: the keyring has no value. Set it: gemini extensions" in sky["reason"]
    assert "warning  sky  ready: Without API_KEY" in (await run("doctor", "--offline")).stdout
    write_settings({"mcpServers": {"sky": {"env": {"API_KEY": "own"}}}})
    own = await run("mcp", "list", "--json")
    assert (own.json["servers"][0]["reason"], told.read_text()) == ("", "own|${API_KEY}\n")
    write_settings({})
    ring.answer.clear()
    with monkeypatch.context() as hurried:
        hurried.setattr(key_store, "KEYRING_LIMIT", 0.05)
        hanging = await run("mcp", "list")
    assert "Without API_KEY: the keyring did not answer" in hanging.stdout
    ring.answer.set()
    service = f"Gemini CLI Extensions sky {hashlib.sha256(b'sky').hexdigest()}"
    ring.items.append(({"service": service, "account": "__secret__API_KEY"}, "hunter22"))
    last = SecretService()
    last.items.append(({"service": service, "account": "__secret__API_KEY"}, "of another ring"))
    monkeypatch.setattr(ring, "backends", [ring, last], raising=False)
    found = await run("mcp", "list", "--json")
    assert (found.json["servers"][0]["reason"], told.read_text()) == ("", "hunter22|hunter22\n")
    told.unlink()
    assert "hunter22" not in (await run("mcp", "logs", "sky")).stdout


def added(folder: Path) -> dict[str, Any]:
    path = folder / ".gemini" / "settings.json"
    entries: dict[str, Any] = json.loads(path.read_text("utf-8"))["mcpServers"]
    return entries


async def test_a_server_is_added_to_the_users_settings_and_tried(tmp_path: Path) -> None:
    notes = notes_server()
    database = notes["env"]["GEMDECK_NOTES_DB"]
    result = await run(
        *("mcp", "add", "-s", "user", "-e", f"GEMDECK_NOTES_DB={database}", "-e", "K=a=b"),
        *("notes", "--description", "My notes", notes["command"], *notes["args"]),
    )
    assert (result.code, result.stderr) == (ExitCode.OK, "")
    assert result.stdout == "Saved notes to ~/.gemini/settings.json. Now ready: 5 tools\n"
    assert added(Path.home())["notes"] == {
        **notes,
        "env": {"GEMDECK_NOTES_DB": database, "K": "a=b"},
        "description": "My notes",
    }
    (uvx := tmp_path / "uvx").write_text('#!/bin/sh\nexec "$@"\n')
    uvx.chmod(0o755)
    slow = await run(
        "mcp", "add", "-y", "-s", "user", "notes", *(str(uvx), notes["command"], *notes["args"])
    )
    assert "uvx may have to download the server: waiting up to 120 s" in slow.stderr
    failing = await run("mcp", "add", "-s", "user", "a", "no-such-program", code=ExitCode.ERROR)
    assert "Now failed: command not found: no-such-program. Install it" in failing.stdout
    (Path.home() / "elsewhere").mkdir()
    other = await run("mcp", "remove", "notes", cwd=Path.home() / "elsewhere")
    assert other.code == ExitCode.NOT_FOUND
    assert "is defined in ~/.gemini/settings.json: gemdeck mcp remove -s user notes" in other.stderr
    for name in ("notes", "a"):
        await run("mcp", "remove", "-s", "user", name, "--json", code=ExitCode.OK)
    assert added(Path.home()) == {}


async def test_all_behind_a_command_is_the_servers_and_the_first_two_dashes_separate() -> None:
    args = {
        "npx -y pkg -s user -e A=b --json": ["-y", "pkg", "-s", "user", "-e", "A=b", "--json"],
        "npx -- -y pkg": ["-y", "pkg"],
        "npx -y pkg -- --help": ["-y", "pkg", "--help"],
        "-- npx -y -- pkg": ["-y", "--", "pkg"],
        "-y -- npx": None,
    }
    for words, wanted in args.items():
        adding = ("mcp", "add", "-s", "user", "--no-check", "-y", "-e", "C=d", "a")
        await run(*adding, *words.split(), code=ExitCode.OK)
        entry = {"command": "npx", "args": wanted, "env": {"C": "d"}}
        kept = {key: value for key, value in entry.items() if value is not None}
        assert added(Path.home()) == {"a": kept}, words
    behind = ("http://127.0.0.1:9/mcp", "-s", "user", "--no-check", "-H", "X: y", "-t", "sse")
    assert (await run("mcp", "add", "web", *behind)).code == ExitCode.OK
    web = {"url": "http://127.0.0.1:9/mcp", "type": "sse", "headers": {"X": "y"}}
    assert added(Path.home())["web"] == web


async def test_a_server_that_is_there_is_changed_once_the_difference_was_seen() -> None:
    (Path.home() / ".gemini").mkdir()
    file = Path.home() / ".gemini" / "settings.json"
    file.write_text('{"mcpServers": {\r\n  // mine\r\n  "a": {"command": "x"},\r\n  "b": {}}}')
    adding = ("mcp", "add", "-s", "user", "--no-check")
    refused = await run(*adding, "-e", "A_TOKEN=hunter22", "a", "x", "-y")
    assert (refused.code, refused.stdout) == (ExitCode.USAGE, "")
    assert "a was not changed. To change it, add --yes." in refused.stderr
    said = [line.removeprefix("gemdeck: ") for line in refused.stderr.splitlines()]
    assert '-   "command": "x"' in said
    assert '+     "-y"' in said
    assert "hunter22" not in refused.stderr
    before = file.read_bytes()
    assert (await run(*adding, "--yes", "-e", "A_TOKEN=hunter22", "a", "x")).code == ExitCode.OK
    again = await run(*adding, "--yes", "-e", "A_TOKEN=hunter33", "a", "x")
    assert again.stderr.count("***") == 2, "another secret is a difference"
    changed = {"command": "x", "env": {"A_TOKEN": "hunter33"}}
    text = json.dumps(changed, indent=2).replace("\n", "\r\n    ")
    assert file.read_bytes() == before.replace(b'{"command": "x"}', text.encode())
    long = await run(*adding, "a", "x", *["word"] * 1_000, "another")
    assert '+     "another"' in long.stderr, "what is long is shown to its end"
    same = await run(*adding, "-e", "A_TOKEN=hunter33", "a", "x")
    assert (same.code, same.stderr) == (ExitCode.OK, "")


def test_at_a_terminal_a_change_is_asked_about() -> None:
    adding = (sys.executable, "-m", "tui", "mcp", "add", "-s", "user", "--no-check", "a", "y")
    for answer, code, command in ((b"n", ExitCode.ERROR, "x"), (b"y", ExitCode.OK, "y")):
        write_settings({"mcpServers": {"a": {"command": "x"}}})
        with Terminal(adding, cwd=Path.home()) as terminal:
            terminal.wait_for("apply the changes? [y/N]")
            terminal.send(answer + b"\n")
            assert terminal.wait_for_exit() == code
        assert added(Path.home()) == {"a": {"command": command}}


async def test_what_an_added_server_waits_for_is_said(tmp_path: Path) -> None:
    write_settings({"mcpServers": {"taken": HANGING}, "mcp": {"excluded": ["barred"]}})
    canary = tmp_path / "ran"
    folder = tmp_path / "opened"
    folder.mkdir()
    (folder / "canary.sh").write_text(f"touch {canary}")
    trust = "To review what it would run: gemdeck trust show"
    await run("mcp", "add", "-s", "user", "--no-check", "off", "touch", str(canary), cwd=folder)
    await run("mcp", "disable", "off", cwd=folder)
    for words, said in (
        (
            "a touch",
            f"Now untrusted: Not started: it is defined by an untrusted folder. {trust}",
        ),
        ("-s user b sh canary.sh", f"argument 1 is canary.sh. {trust}. To allow it, open"),
        ("-s user off touch", "Now disabled: To enable it: gemdeck mcp enable off"),
        ("-s user barred touch", "Remove it from mcp.excluded in ~/.gemini/settings.json."),
        ("taken touch", "It does not start: ~/.gemini/settings.json overrides it."),
    ):
        result = await run("mcp", "add", "--yes", *words.split(), str(canary), cwd=folder)
        assert (result.code, said in result.stdout) == (ExitCode.OK, True), result
    await run("trust", "never", cwd=folder)
    closed = await run("mcp", "add", "c", "touch", str(canary), cwd=folder)
    assert "this folder is never trusted. To be asked again: gemdeck trust forget" in closed.stdout
    assert not canary.exists()


@pytest.mark.usefixtures("notes")
async def test_what_cannot_be_added_or_removed_is_said() -> None:
    missing = await run("mcp", "remove", "-s", "user", "note", code=ExitCode.NOT_FOUND)
    assert "Did you mean notes?" in missing.stderr
    for words, said in (
        *((("notes", "x"), "Changes to notes:"), (("-q", "a", "x"), "No such option")),
        *((("a",), "Missing argument"), (("-t", "sse", "a", "x"), "sse needs an address")),
        (("-t", "stdio", "a", "http://h/"), "stdio needs a command"),
        (("-e", "x", "a", "x"), "A variable must have the form KEY=VALUE"),
        (("-H", "A: b", "a", "x"), "Headers need an address"),
        (("-e", "A=b", "a", "C=d", "--", "x"), "not a command: a variable needs -e"),
        (("a", '{"command": "x"}'), "is not a command"),
        (("a", "localhost:80/mcp"), "an address https://"),
        *((("--timeout", "0", "a", "x"), "greater than 0"), (("", "x"), "A name has")),
        *((("my  server", "x"), "A name has"), (("a", "http://"), "must be an address")),
        (("-s", "project", "--trust", "a", "x"), "cannot trust a server"),
    ):
        adding = ("mcp", "add", "-s", "user", "--no-check")
        result = await run(*adding, *words, code=ExitCode.USAGE)
        assert said in result.stderr, words


async def test_a_link_of_a_folder_leads_no_entry_into_the_users_settings(tmp_path: Path) -> None:
    (Path.home() / ".gemini").mkdir()
    (tmp_path / ".gemini").symlink_to(Path.home() / ".gemini")
    result = await run("mcp", "add", "--no-check", "a", "x", cwd=tmp_path, code=ExitCode.ERROR)
    assert "links outside this folder" in result.stderr
    for words in ("add --no-check a x", "remove a"):
        at_home = await run("mcp", *words.split(), cwd=Path.home())
        assert (at_home.code, "use the scope user" in at_home.stderr) == (ExitCode.ERROR, True)
    assert not (Path.home() / ".gemini" / "settings.json").exists()


@pytest.mark.slow
async def test_a_command_wakes_only_servers_it_needs(gemini: FakeGemini, tmp_path: Path) -> None:
    records = {name: tmp_path / name for name in ("one", "two")}
    entries = {}
    for name, record in records.items():
        says = tmp_path / f"{name}.json"
        offered: dict[str, Any] = {"tools": {f"tool_{name}": []}, "prompts": {f"say_{name}": []}}
        says.write_text(json.dumps({**offered, "resources": ["memo://a"], "record": str(record)}))
        entry = library()
        entries[name] = {**entry, "args": [entry["args"][0], str(says)], "start": "lazy"}
    write_settings({"mcpServers": entries})

    def woken() -> set[str]:
        found = {name for name, record in records.items() if record.exists()}
        for record in records.values():
            record.unlink(missing_ok=True)
        return found

    first = await run("mcp", "list", "--json")
    assert (outcomes(first.json), woken()) == ({"one": "ready", "two": "ready"}, {"one", "two"})
    listed = await run("mcp", "list", code=ExitCode.OK)
    rows = [line.split()[:2] for line in listed.stdout.splitlines()]
    assert rows == [["one", "asleep"], ["two", "asleep"]]
    assert "1 tool, 1 prompt, 1 resource" in listed.stdout
    tools = await run("mcp", "tools")
    assert all(name in tools.stdout for name in ("tool_one", "tool_two"))
    assert woken() == set()
    for command in (
        *("call one tool_one", "prompt one say_one", "read one memo://a"),
        *("request one tools/list", "show one", "logs one"),
    ):
        result = await run("mcp", *command.split())
        assert (result.code, woken()) == (ExitCode.OK, {"one"}), (command, result)
    gemini.steps = [[Call([("tool_two", {})])], [Say("done")]]
    said = await run("-p", "go", "--allowed-tools", "two", gemini=gemini)
    assert (said.code, said.stderr) == (ExitCode.OK, "")
    assert woken() == {"two"}
    looked = await run("doctor", "--offline")
    assert (looked.code, woken()) == (ExitCode.OK, {"one", "two"})


async def test_a_changed_tool_runs_by_hand_with_a_warning_until_it_is_accepted() -> None:
    def offer(words: str) -> None:
        more = {"look": {"description": words}, "turn": {"description": words}}
        entry = library(tools={"look": [], "turn": []}, definitions=more)
        write_settings({"mcpServers": {"shop": entry}})

    offer("Looks around.")
    assert "No tool of shop" in (await run("mcp", "accept", "shop")).stdout
    offer("Looks elsewhere.")
    called = await run("mcp", "call", "shop", "look")
    assert called.code == ExitCode.OK
    assert "look of shop has changed since you accepted it" in called.stderr
    one = await run("mcp", "accept", "shop.look", "--json")
    [accepted] = one.json["accepted"]
    assert (one.json["server"], accepted["tool"]) == ("shop", "look")
    assert {"-   Looks around.", "+   Looks elsewhere."} <= set(accepted["difference"])
    assert "look of shop" not in (await run("mcp", "call", "shop", "look")).stderr
    assert "turn of shop has changed" in (await run("mcp", "call", "shop", "turn")).stderr
    rest = await run("mcp", "accept", "shop")
    assert rest.stdout.startswith("turn:\n")
    assert "No tool of shop" in (await run("mcp", "accept", "shop")).stdout
    assert (await run("mcp", "accept", "nothere")).code == ExitCode.NOT_FOUND


async def test_any_wording_of_a_tool_is_accepted_and_nothing_else_of_it() -> None:
    def offer(words: str, **more: object) -> None:
        told = {"look": {"description": words, **more}}
        write_settings({"mcpServers": {"shop": library(tools={"look": []}, definitions=told)}})

    async def is_changed() -> bool:
        return "has changed" in (await run("mcp", "call", "shop", "look", code=ExitCode.OK)).stderr

    offer("Runs cat, ls.")
    every = await run("mcp", "accept", "shop", "--any-wording")
    unknown = await run("mcp", "accept", "shop.nothing", "--any-wording")
    assert (every.code, unknown.code) == (ExitCode.USAGE, ExitCode.NOT_FOUND)
    any_wording = await run("mcp", "accept", "shop.look", "--any-wording")
    assert any_wording.stdout.endswith("Any description of look is accepted from now on.\n")
    offer("Runs ls, cat.")
    assert not await is_changed()
    offer("Runs ls, cat.", title="Another")
    assert await is_changed()
    offer("Runs cat, ls, and rm.")
    assert not await is_changed()
    [grant] = (await run("grants", "list", "--json")).json["grants"]
    shown = grant["effect"], grant["server"], grant["tool"], grant["scope"], grant["origin"]
    assert shown == ("reword", "shop", "look", "saved everywhere", "you: any wording")
    await run("grants", "revoke", grant["id"][:8], code=ExitCode.OK)
    assert await is_changed()
