import asyncio
import io
import json
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp_types import CallToolResult, EmbeddedResource, TextContent, TextResourceContents, Tool

from tests.conftest import World
from tests.support.waiting import PATIENCE
from tui.engine.demo.model import NOTES_DB_VARIABLE, demo_server
from tui.engine.demo.notes_server import (
    FILE_VERSION,
    MAX_NOTES,
    MAX_TEXT,
    Notebook,
    RequestError,
    Server,
)
from tui.model.servers import Origin, Transport

HEAVY = ("mcp", "mcp_types", "google", "textual", "jsonschema", "httpx2")
SEEDED = (
    "3. Water the basil on Friday #home\n"
    "2. Try: add a note: buy milk #hello #ideas\n"
    "1. Welcome! These notes live in a small file on this computer. #hello"
)


@pytest.fixture
def stderr(tmp_path: Path) -> Path:
    return tmp_path / "stderr.txt"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "private" / "notes.db"


@asynccontextmanager
async def connect(stderr: Path) -> AsyncIterator[Client]:
    """Start the server as its definition says, and give a client."""
    server = demo_server()
    with anyio.fail_after(PATIENCE), stderr.open("w") as errors:
        said = {
            "args": list(server.launch.args),
            "env": dict(server.launch.env),
            "cwd": stderr.parent,
        }
        parameters = StdioServerParameters(command=server.launch.command, **said)
        async with Client(stdio_client(parameters, errlog=errors)) as client:
            yield client


def written(stderr: Path) -> str:
    return stderr.read_text()


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def call(client: Client, name: str, **arguments: str | float | list[str]) -> str:
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result
    return text_of(result)


def exchange(path: Path, *lines: bytes | dict[str, Any]) -> list[dict[str, Any]]:
    """Give what a server in this process writes for these lines."""
    output = io.BytesIO()
    sent = (line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    Server(Notebook(path), output).serve(sent)
    return [json.loads(line) for line in output.getvalue().splitlines()]


def request(method: str, version: str = "2026-07-28", **params: str) -> dict[str, Any]:
    meta = {"io.modelcontextprotocol/protocolVersion": version}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta, **params}}


def test_the_definition_starts_this_python_alone(world: World) -> None:
    server = demo_server()
    assert (server.id, server.entry.origin, server.transport) == (
        "notes",
        Origin.DEMO,
        Transport.STDIO,
    )
    found = (server.launch.command, server.launch.args[:2], server.trust)
    assert found == (sys.executable, ("-I", "-S"), False)
    assert dict(server.launch.env) == {NOTES_DB_VARIABLE: str(world.state / "demo" / "notes.db")}


def test_the_demo_loads_nothing_heavy() -> None:
    code = "import sys, tui.engine.demo.model; print(*(m.split('.')[0] for m in sys.modules))"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert "tui" in loaded
    assert set(HEAVY).isdisjoint(loaded)


def are_honest(tools: dict[str, Tool]) -> None:
    """Check what the tools say that they do."""
    claims = {name: tool.annotations for name, tool in tools.items()}
    reading = {name for name, claim in claims.items() if claim and claim.read_only_hint}
    assert reading == {"list_notes", "search_notes", "count_slowly"}
    destroying = [name for name, claim in claims.items() if claim and claim.destructive_hint]
    assert destroying == ["delete_note"]
    assert all(tool.title and tool.description for tool in tools.values())
    assert tools["add_note"].input_schema["required"] == ["text"]


async def test_notes_are_written_found_and_deleted(world: World, stderr: Path) -> None:
    async with connect(stderr) as client:
        assert client.protocol_version == "2026-07-28"
        assert client.instructions
        are_honest({tool.name: tool for tool in (await client.list_tools()).tools})
        assert await call(client, "list_notes") == SEEDED
        assert await call(client, "add_note", text=" buy milk ") == "Added note 4: buy milk"
        added = await call(client, "add_note", text="Äpfel", tags=["#Markt", "b c", "markt"])
        assert added == "Added note 5: Äpfel #b-c #markt"
        assert await call(client, "search_notes", query="MARKT äPFEL") == "5. Äpfel #b-c #markt"
        none = "No notes found."
        assert await call(client, "search_notes", query="milk nothing") == none
        assert await call(client, "delete_note", id=4.0) == "Deleted note 4: buy milk"
        assert await call(client, "list_notes", tag="#Markt") == "5. Äpfel #b-c #markt"
        assert await call(client, "list_notes", tag="mark") == none
    async with connect(stderr) as client:
        assert await call(client, "add_note", text="kept") == "Added note 6: kept"
        assert (await call(client, "list_notes")).startswith("6. kept\n5. Äpfel")
    files = [*(world.state / "demo").iterdir()]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((world.state / "demo").stat().st_mode) == 0o700
    assert written(stderr) == ""


async def test_what_cannot_be_done_is_said_plainly(stderr: Path) -> None:
    async with connect(stderr) as client:
        for name, arguments, words in (
            ("delete_note", {"id": 99}, "There is no note 99. List the notes to see"),
            ("delete_note", {"id": 10**30}, "id must be: integer, 1 to 1000000000."),
            ("delete_note", {"id": "two"}, "id must be: integer, 1 to 1000000000."),
            ("delete_note", {"id": True}, "id must be: integer, 1 to 1000000000."),
            ("add_note", {}, f"text must be: string, 0 to {MAX_TEXT}."),
            ("add_note", {"text": "x" * (MAX_TEXT + 1)}, "text must be: string, 0 to 4000."),
            ("add_note", {"text": " "}, "A note needs some text."),
            ("count_slowly", {"steps": 101}, "steps must be: integer, 1 to 100."),
            ("count_slowly", {"seconds_per_step": 11}, "seconds_per_step must be: number"),
        ):
            result = await client.call_tool(name, arguments)
            assert result.is_error
            assert words in text_of(result)
        for method in (
            client.call_tool("nothing"),
            client.get_prompt("nothing"),
            client.get_prompt("plan_day"),
            client.read_resource("notes://note/99"),
            client.read_resource("notes://note/x"),
        ):
            with pytest.raises(MCPError, match=r"There is no|Missing") as failed:
                await method
            assert failed.value.code == -32602
        assert await call(client, "list_notes") == SEEDED
    assert written(stderr) == ""


async def test_notes_are_resources_and_a_prompt_carries_them(stderr: Path) -> None:
    async with connect(stderr) as client:
        listed = (await client.list_resources()).resources
        assert [(one.uri, one.title) for one in listed[:2]] == [
            ("notes://all", "All notes"),
            ("notes://note/3", "Water the basil on Friday"),
        ]
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "notes://note/{id}"
        for one in listed:
            (content,) = (await client.read_resource(one.uri)).contents
            assert isinstance(content, TextResourceContents)
            assert content.mime_type == one.mime_type == "text/markdown"
            assert ("basil" in content.text) is (one.uri in {"notes://all", "notes://note/3"})
        (prompt,) = (await client.list_prompts()).prompts
        assert [(one.name, one.required) for one in prompt.arguments or ()] == [("focus", True)]
        asked, attached = (await client.get_prompt("plan_day", {"focus": "rest"})).messages
        assert isinstance(asked.content, TextContent)
        assert "a focus on rest" in asked.content.text
        assert isinstance(attached.content, EmbeddedResource)
        assert isinstance(attached.content.resource, TextResourceContents)
        assert "basil" in attached.content.resource.text
        async with client.listen(resources_list_changed=True) as told:
            await call(client, "add_note", text="x")
            async for change in told:
                assert type(change).__name__ == "ResourcesListChanged"
                break


async def test_two_instances_write_to_one_notebook_together(stderr: Path) -> None:
    async with connect(stderr) as one, connect(stderr) as two, anyio.create_task_group() as group:
        for number in range(20):
            for client in (one, two):
                group.start_soon(client.call_tool, "add_note", {"text": f"note {number}"})
    async with connect(stderr) as client:
        assert (await call(client, "add_note", text="last")) == "Added note 44: last"
        assert (await call(client, "list_notes")).endswith("\n(24 older notes are not shown.)")


async def test_counting_reports_each_step_and_stops_while_the_server_goes_on(stderr: Path) -> None:
    steps = asyncio.Queue[tuple[float, float | None, str | None]]()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.put_nowait((progress, total, message))

    async def count(number: int, pace: float) -> CallToolResult:
        arguments = {"steps": number, "seconds_per_step": pace}
        return await client.call_tool("count_slowly", arguments, progress_callback=note)

    async with connect(stderr) as client:
        result = await count(3, 0.01)
        reported = [await steps.get() for _ in range(3)]
        assert sorted(reported) == [(n, 3, f"Counted to {n} of 3") for n in (1, 2, 3)]
        assert text_of(result) == "Counted to 3, 0.01 seconds a step."
        counting = asyncio.create_task(count(100, 0.05))
        assert await steps.get() == (1, 100, "Counted to 1 of 100")
        assert await call(client, "list_notes") == SEEDED
        counting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await counting
        assert "Counted to 1" in await call(client, "count_slowly", steps=1, seconds_per_step=0.1)
    assert written(stderr) == "count_slowly was cancelled\n"


def test_what_is_no_request_of_a_known_revision_is_refused(path: Path) -> None:
    told = {"jsonrpc": "2.0", "method": "notifications/nothing"}
    old, unknown = request("tools/list", "1999-01-01"), request("nothing")
    answers = exchange(path, b"{\n", b"[]\n", told, old, unknown)
    errors = [answer.get("error", {}) for answer in answers]
    assert [error.get("code") for error in errors] == [-32700, -32022, -32601]
    assert errors[1]["data"] == {"supported": ["2026-07-28"], "requested": "1999-01-01"}


def test_results_are_complete_and_not_to_be_kept(path: Path) -> None:
    listed, called = exchange(path, request("tools/list"), request("tools/call", name="list_notes"))
    assert (listed["result"]["ttlMs"], listed["result"]["cacheScope"]) == (0, "private")
    assert "ttlMs" not in called["result"]
    for answer in (listed, called):
        assert answer["result"]["resultType"] == "complete"
        assert answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]


def test_a_full_notebook_takes_no_more(path: Path) -> None:
    notebook = Notebook(path)
    with sqlite3.connect(path) as other:
        more = [("x", "")] * (MAX_NOTES - 4)
        other.executemany("INSERT INTO notes (text, tags) VALUES (?, ?)", more)
    other.close()
    assert notebook.add("the last", []).number == MAX_NOTES
    for tags in ([], ["x" * MAX_TEXT]):
        with pytest.raises(RequestError, match="is full"):
            notebook.add("one too many", tags)
    assert len(notebook.notes()) == MAX_NOTES


@pytest.mark.parametrize("version", [None, 1, FILE_VERSION + 1])
def test_a_file_that_cannot_be_read_is_set_aside_and_named(
    path: Path, capsys: pytest.CaptureFixture[str], version: int | None
) -> None:
    path.parent.mkdir()
    if version is None:
        path.write_bytes(b"precious, but not SQLite" * 100)
    else:
        with sqlite3.connect(path) as other:
            other.execute(f"PRAGMA user_version = {version}")
        other.close()
    before = path.read_bytes()
    assert len(Notebook(path).notes()) == 3
    (aside,) = path.parent.glob("notes.db.corrupt-*")
    assert aside.read_bytes() == before
    assert f"it is now {aside.name}" in capsys.readouterr().err


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    server, place = demo_server(), tmp_path / "file" / "notes.db"
    (tmp_path / "file").touch()
    options = {"env": {**os.environ, NOTES_DB_VARIABLE: str(place)}, "cwd": tmp_path, "input": b""}
    command = [server.launch.command, *server.launch.args]
    done = subprocess.run(command, capture_output=True, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 1
    assert done.stderr.startswith(f"The notes file {place} cannot be used".encode())
    assert b"Traceback" not in done.stderr
