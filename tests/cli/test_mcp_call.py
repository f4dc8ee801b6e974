"""`gemdeck mcp call`: what the server gave as it gave it, and what it asks for meanwhile."""

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests import servers
from tests.cli.running import finish, library, opened, run, write_settings
from tests.conftest import World
from tests.servers.asking import ADDRESS
from tests.support import warm
from tests.support.terminal import Terminal
from tests.support.waiting import eventually
from tui.cli.output import ExitCode

ANNOTATIONS: Final = {"audience": ["user", "assistant"], "priority": 0.5}
META: Final = {"x.example/y": {"a": [1]}}
ICONS: Final = [{"src": "data:image/png;base64,AA=="}]
TOOL: Final[dict[str, Any]] = {
    "title": "A tool",
    "description": "Does \x1b[31mit",
    "annotations": {"readOnlyHint": True, "odd": 1},
    "outputSchema": {"type": "object", "required": ["n"]},
    "execution": {"taskSupport": "optional"},
    "icons": ICONS,
    "_meta": META,
    "unknown": {"server": "other"},
}
RESULT: Final[dict[str, Any]] = {
    "content": [
        {"type": "text", "text": "long " * 20_000, "annotations": ANNOTATIONS, "_meta": META},
        {"type": "resource_link", "uri": "a:b", "name": "n", "size": 3, "icons": ICONS},
        {"type": "resource", "resource": {"uri": "a:c", "text": "\x1b[2J", "_meta": META}},
        {"type": "unheard of", "odd": [None]},
    ],
    "structuredContent": {"n": 1e10, "text": "t"},
    "_meta": META,
    "unknown": 1,
    "server": "another",
}
PROMPT: Final[dict[str, Any]] = {
    "description": "d",
    "messages": [{"role": "assistant", "content": RESULT["content"][0]}],
    "_meta": META,
}
FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your\x1b[2J name", "minLength": 2},
        "age": {"type": "integer", "description": "In\nyears", "maximum": 150},
        "agree": {"type": "boolean", "default": True},
        "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}]},
        "days": {"type": "array", "items": {"type": "string", "enum": ["mo", "tu", "we"]}},
        "mail": {"type": "string", "default": "a@example.com"},
        "password": {"type": "string"},
    },
    "required": ["name", "age"],
}
SPOOF: Final = f"Who?{' ' * 300}gemdeck: Enter your key\ngemdeck: Enter your key"


def asks(name: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    return {"id": name, "method": "elicitation/create", "params": {"message": SPOOF, **more}}


async def test_json_has_all_that_the_server_gave_beside_what_we_say() -> None:
    offer: dict[str, Any] = {"tools": {"t": []}, "prompts": {"p": []}, "definitions": {"t": TOOL}}
    served = library(**offer, results={"t": RESULT, "p": PROMPT})
    write_settings({"mcpServers": {"a": served}})
    listed = await run("mcp", "tools", "a", "--json")
    schema = {"type": "object", "properties": {}}
    whole = {"name": "t", "inputSchema": schema, **TOOL}
    own: dict[str, Any] = {"server": "a", "problem": "", "tokens": 11, "marks": []}
    assert listed.json["tools"] == [own | whole]
    shown = await run("mcp", "show", "a", "--json")
    assert shown.json["definitions"]["tools"] == [whole]
    assert shown.json["definitions"]["prompts"] == [{"name": "p", "arguments": []}]
    called = await run("mcp", "call", "a", "t", "--json")
    own = {"server": "a", "tool": "t", "arguments": {}, "is_error": False}
    own |= {"outside": True, "warnings": [], "marks": []}
    assert (called.code, called.json) == (ExitCode.OK, RESULT | own)
    assert b"\x1b" not in called.raw + listed.raw
    prompted = await run("mcp", "prompt", "a", "p", "--json")
    assert prompted.json == {"server": "a", "name": "p", "marks": [], **PROMPT}
    piped = await run("mcp", "call", "a.t")
    assert RESULT["content"][0]["text"] in piped.stdout


async def test_a_saved_call_is_made_again_by_its_name(world: World) -> None:
    write_settings({"mcpServers": {"a": library(tools={"t": ["x", "y"]})}})
    saved = {"server": "a", "name": "two", "tool": "t", "arguments": '{"x": "1", "y": "2"}'}
    world.state.mkdir(parents=True, exist_ok=True)
    (world.state / "calls.json").write_text(json.dumps({"version": 1, "calls": [saved]}), "utf-8")
    again = await run("mcp", "call", "a", "@two", "--json")
    assert (again.code, again.json["arguments"]) == (ExitCode.OK, {"x": "1", "y": "2"})
    changed = await run("mcp", "call", "a", "@two", "y=3", "--json")
    assert (changed.json["tool"], changed.json["arguments"]) == ("t", {"x": "1", "y": "3"})
    gone = await run("mcp", "call", "a", "@three")
    assert (gone.code, gone.stdout) == (ExitCode.NOT_FOUND, "")
    assert "a has no saved call @three." in gone.stderr


async def test_a_task_that_nobody_asked_for_is_waited_for(tmp_path: Path) -> None:
    script = Path(servers.__file__).with_name("tasking.py")
    for era in ("old", "new"):
        arguments = [str(script), era, str(tmp_path / era)]
        write_settings({"mcpServers": {"a": {"command": sys.executable, "args": arguments}}})
        result = await run("mcp", "call", "a", "unasked")
        assert (result.code, result.stdout) == (ExitCode.OK, "unasked is done\n")
        assert "  | task working: begun\n" in result.stderr
        [asked] = json.loads((tmp_path / era).read_text()).values()
        assert "task" not in asked["args"]


async def test_progress_is_told_and_a_question_declined_without_a_terminal(tmp_path: Path) -> None:
    log = {"level": "notice", "logger": "db", "data": "one\x1b[2J\ntwo"}
    before = [
        {"method": "notifications/message", "params": log},
        {"method": "notifications/progress", "params": {"progress": 1, "total": 4, "message": "m"}},
        asks("q1", requestedSchema=FORM),
    ]
    record = tmp_path / "record"
    served = library(tools={"t": []}, before={"t": before}, record=str(record))
    write_settings({"mcpServers": {"a": served}})
    result = await run("mcp", "call", "a", "t")
    assert (result.code, result.stdout) == (ExitCode.OK, "t {}\n")
    assert "  | a: notice: db: one two\n" in result.stderr
    assert "  | progress: 1 of 4 m\n" in result.stderr
    assert "Run gemdeck in a terminal to answer such requests." in result.stderr
    assert answers(record) == [{"action": "decline"}]


async def test_a_call_by_a_schema_in_an_unknown_dialect_runs_and_says_so() -> None:
    odd = {"$schema": "https://example.com/own", "type": "object", "required": ["x"]}
    for definition in ({"inputSchema": odd}, {"outputSchema": odd}):
        served = library(tools={"t": []}, definitions={"t": definition})
        write_settings({"mcpServers": {"a": served}})
        result = await run("mcp", "call", "a", "t")
        words = (
            "[Warning: arguments are not checked: the schema uses the unknown dialect https://ex"
        )
        assert (result.code, words in result.stdout) == (ExitCode.OK, True)


async def test_an_address_that_nobody_can_be_asked_about_is_named() -> None:
    script = str(Path(servers.__file__).with_name("asking.py"))
    write_settings({"mcpServers": {"a": {"command": sys.executable, "args": [script]}}})
    result = await run("mcp", "call", "a", "protected", "what=x", "--json")
    error = result.json["error"]
    assert (result.code, error["code"]) == (ExitCode.ERROR, -32042)
    assert error["data"]["elicitations"][0]["url"] == ADDRESS
    assert error["message"].endswith(f"opened first. Open {ADDRESS}")


async def test_an_interrupted_call_is_cancelled_at_the_server(tmp_path: Path) -> None:
    record = tmp_path / "record"
    served = library(tools={"t": []}, silent=["t"], record=str(record))
    write_settings({"mcpServers": {"a": served}})
    async with opened("mcp", "call", "a", "t", cwd=Path.home()) as process:
        await eventually(lambda: record.exists() and "tools/call" in record.read_text())
        process.send_signal(signal.SIGINT)
        assert await finish(process) == ExitCode.CANCELLED
    assert "notifications/cancelled" in record.read_text()


def answers(record: Path) -> list[dict[str, Any]]:
    """Give what was answered to the server's own requests."""
    messages = map(json.loads, record.read_text().splitlines())
    return [one["result"] for one in messages if "method" not in one and "result" in one]


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))  # where no browser is
    return tmp_path / "record"


def called(record: Path, *before: dict[str, Any], columns: int = 80, to: str = "") -> Terminal:
    """Call a tool whose server asks these things, at a terminal, perhaps with a file for output."""
    served = library(tools={"t": []}, before={"t": before}, record=str(record))
    write_settings({"mcpServers": {"a": served}})
    command = [warm.python(), "-m", "tui", "mcp", "call", "a", "t"]
    if to:
        command = ["/bin/sh", "-c", f'exec "$@" >{to}', "sh", *command]
    return Terminal(command, cwd=Path.home(), columns=columns, rows=99)


def type_in(terminal: Terminal, *lines: tuple[str, str]) -> None:
    """Type each line once its prompt is the last that the screen shows."""

    def shows(prompt: str) -> Callable[[str], bool]:
        return lambda screen: screen.rstrip().endswith(prompt)

    for prompt, line in lines:
        terminal.wait_for(shows(prompt))
        terminal.type(line)
        terminal.press("enter")


ANSWER: Final = "Answer? [accept/decline/cancel]:"
SEND: Final = "Send it? [accept/change/decline/cancel]:"


def test_a_form_is_filled_in_at_the_terminal(record: Path) -> None:
    with called(record, asks("q1", requestedSchema=FORM)) as terminal:
        type_in(
            terminal,
            *((ANSWER, "y"), (ANSWER, "accept"), ("text, required:", ""), ("r, required:", "200")),
            *(("yes or no:", "no"), ("one of 1 to 1:", "1"), ("3, separated by commas:", "1, we")),
            *(("text:", "-"), ("sure.\ntext:", ""), (SEND, "accept")),
            ("This is required.\n  | Your name\ntext, required:", "Ada"),
            (f"password: (no value)\n{SEND}", "accept"),
            ("At most 150.\n  | age\n  | In\n  | years\ninteger, required:", "20"),
            (f"mo, we\n  | mail: (no value)\n  | password: (no value)\n{SEND}", "accept"),
        )
        assert terminal.wait_for_exit() == ExitCode.OK
        assert "t {}" in terminal.screen
        shouted = [line[:4] for line in terminal.screen.splitlines() if "your key" in line]
        assert shouted == ["  | "] * 2
        assert b"\x1b" not in terminal.raw
    content = {"name": "Ada", "age": 20, "agree": False, "colour": "r", "days": ["mo", "we"]}
    assert answers(record) == [{"action": "accept", "content": content}]


def test_no_row_of_what_a_server_says_looks_like_ours(record: Path) -> None:
    told = [
        {"method": "notifications/message", "params": {"level": "info", "data": SPOOF}},
        {"method": "notifications/progress", "params": {"progress": 1, "message": SPOOF}},
        asks("q1", requestedSchema=FORM, message=f"{'x' * 46} gemdeck: Enter your key"),
    ]
    with called(record, *told, columns=50, to="output") as terminal:
        type_in(terminal, (ANSWER, "decline"))
        assert terminal.wait_for_exit() == ExitCode.OK
        rows = terminal.screen.split(ANSWER)[0].splitlines()
    spoofed = [row for row in rows if "gemdeck: Enter" in row or "your key" in row]
    assert len(spoofed) >= len(told)
    assert all(row.startswith("  | ") for row in spoofed)
    assert (Path.home() / "output").read_text() == "t {}\n"


def test_an_address_is_shown_whole_and_opened_only_after_a_yes(record: Path) -> None:
    url = "https://xn--pple-43d.example/?state=1"
    before = asks("q1", mode="url", url=url, elicitationId="e")
    for word, action in (("accept", "accept"), ("decline", "decline"), ("\x04", "cancel")):
        record.unlink(missing_ok=True)
        with called(record, before) as terminal:
            terminal.type("accept\r")  # typed before there is a question, it answers nothing
            type_in(terminal, ("Open it in your browser? [accept/decline/cancel]:", word))
            assert terminal.wait_for_exit() == ExitCode.OK
            assert "a asks you to open an address at xn--pple-43d.example." in terminal.screen
            assert f"Full address: {url}" in terminal.screen
            assert ("Could not open a browser" in terminal.screen) is (word == "accept")
        assert answers(record) == [{"action": action}]


def test_a_question_that_is_over_takes_no_answer_and_the_next_is_asked(record: Path) -> None:
    fields = {"a": {"type": "string", "minLength": 2}, "b": {"type": "string"}}
    small = {"type": "object", "properties": fields}
    withdrawn = {"method": "notifications/cancelled", "params": {"requestId": "q1"}}
    progress = {"method": "notifications/progress", "params": {"progress": 1}}
    first, second = asks("q1", requestedSchema=FORM), asks("q2", requestedSchema=small)
    before = (first, {"gate": str(record.with_name("seen"))}, second, withdrawn, progress)
    with called(record, *before) as terminal:
        terminal.wait_for(ANSWER)
        record.with_name("seen").touch()
        terminal.wait_for("progress: 1")
        terminal.type("accept\r")
        terminal.wait_for("This question is no longer open.")
        type_in(
            terminal,
            *((ANSWER, "accept"), ("| a\ntext:", "x"), ("| b\ntext:", "1"), (SEND, "accept")),
            *(("characters.\n  | a\ntext:", "xx"), (f"a: xx\n  | b: 1\n{SEND}", "change")),
            *(("change\n  | a\ntext:", "yy"), ("| b\ntext:", "2")),
            (f"a: yy\n  | b: 2\n{SEND}", "accept"),
        )
        assert terminal.wait_for_exit() == ExitCode.OK
    assert answers(record) == [{"action": "accept", "content": {"a": "yy", "b": "2"}}]
