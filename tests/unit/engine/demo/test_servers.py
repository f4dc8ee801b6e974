import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import anyio
import mcp_types
import pytest
from mcp import Client, MCPDeprecationWarning, MCPError, StdioServerParameters, stdio_client
from mcp_types import (
    CallToolResult,
    EmbeddedResource,
    LoggingMessageNotificationParams,
    PromptReference,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
)

from tests.conftest import World
from tui.engine.demo.demo_servers import NOTES_DB_VARIABLE, demo_definitions, notes_path
from tui.engine.settings.servers.definitions import ServerDefinition
from tui.model.servers import Origin, Transport

pytestmark = pytest.mark.usefixtures("warm_python")

LIMIT = 15
"""Seconds within which anything a test waits for must have happened."""

Mode = Literal["auto", "legacy"]
Argument = str | int | float | list[str]
BOTH_ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


@dataclass(frozen=True, slots=True)
class StandardError:
    """Where a server process writes what is no protocol."""

    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text()


@dataclass
class Connected:
    """A client of one server process, and what arrived beside the answers."""

    client: Client
    notifications: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self, name: str, **arguments: Argument) -> CallToolResult:
        return await self.client.call_tool(name, arguments)

    async def text(self, name: str, **arguments: Argument) -> str:
        result = await self.call(name, **arguments)
        assert not result.is_error, result
        (block,) = result.content
        assert isinstance(block, TextContent)
        return block.text

    async def wait_for(self, notification: str) -> None:
        while notification not in self.notifications:
            await self.arrived.wait()
            self.arrived.clear()


@asynccontextmanager
async def connect(
    definition: ServerDefinition, stderr: StandardError, mode: Mode = "auto"
) -> AsyncIterator[Connected]:
    """Start a bundled server exactly as its definition says, in a folder that is not ours."""
    parameters = StdioServerParameters(
        command=definition.command,
        args=list(definition.args),
        env=dict(definition.env),
        cwd=stderr.path.parent,
    )

    async def on_message(message: object) -> None:
        connected.notifications.append(type(message).__name__)
        connected.arrived.set()

    async def on_log(params: LoggingMessageNotificationParams) -> None:
        connected.logged.append(str(params.data))

    with anyio.fail_after(LIMIT), stderr.path.open("w") as errlog:
        client = Client(
            stdio_client(parameters, errlog=errlog),
            mode=mode,
            message_handler=on_message,
            logging_callback=on_log,
        )
        connected = Connected(client)
        async with client:
            yield connected


@pytest.fixture
def stderr(tmp_path: Path) -> StandardError:
    return StandardError(tmp_path / "stderr.txt")


@pytest.fixture
def notes(world: World) -> ServerDefinition:
    assert notes_path().is_relative_to(world.state)
    return demo_definitions()[0]


@pytest.fixture
def slow() -> ServerDefinition:
    return demo_definitions()[1]


def test_the_definitions_start_this_python_without_the_current_folder(world: World) -> None:
    notes, slow = demo_definitions()
    assert [notes.id, slow.id] == ["notes", "slow"]
    for definition in (notes, slow):
        assert definition.origin is Origin.DEMO
        assert definition.transport is Transport.STDIO
        assert definition.command == sys.executable
        assert definition.args[0] == "-P"
        assert not definition.trust
    assert dict(notes.env) == {NOTES_DB_VARIABLE: str(world.state / "demo" / "notes.db")}


@BOTH_ERAS
async def test_notes_are_written_read_changed_and_deleted(
    notes: ServerDefinition, stderr: StandardError, mode: Mode
) -> None:
    async with connect(notes, stderr, mode) as server:
        assert await server.text("add_note", text="buy milk") == "Added note 4: buy milk"
        added = await server.call("add_note", text="call mom", tags=["Family"])
        assert added.structured_content is not None
        assert added.structured_content["tags"] == ["family"]
        assert await server.text("search_notes", query="MOM") == "5. call mom #family"
        assert await server.text("update_note", id=4, text="buy oat milk") == (
            "Updated note 4: buy oat milk"
        )
        assert await server.text("list_notes", limit=2) == (
            "5. call mom #family\n4. buy oat milk\n(3 older notes are not shown.)"
        )
        assert await server.text("delete_note", id=4) == "Deleted note 4: buy oat milk"
        assert await server.text("list_notes", tag="family") == "5. call mom #family"
        assert await server.text("list_notes", tag="none") == "There are no such notes."
    assert stderr.text == ""


async def test_tools_say_honestly_what_they_do(
    notes: ServerDefinition, stderr: StandardError
) -> None:
    async with connect(notes, stderr) as server:
        tools = {tool.name: tool for tool in (await server.client.list_tools()).tools}
        assert server.client.instructions
    claims = {name: tool.annotations for name, tool in tools.items()}
    assert {name for name, claim in claims.items() if claim and claim.read_only_hint} == {
        "list_notes",
        "search_notes",
    }
    assert {name for name, claim in claims.items() if claim and claim.destructive_hint} == {
        "update_note",
        "delete_note",
    }
    assert all(tool.title and tool.description and tool.output_schema for tool in tools.values())
    assert tools["add_note"].input_schema["required"] == ["text"]


async def test_a_refusal_is_an_error_in_plain_words(
    notes: ServerDefinition, stderr: StandardError
) -> None:
    async with connect(notes, stderr) as server:
        for arguments in ({"id": 99}, {"id": 10**30}):
            result = await server.call("delete_note", **arguments)
            assert result.is_error
            assert isinstance(result.content[0], TextContent)
            assert result.content[0].text == (
                f"There is no note {arguments['id']}. List the notes to see their numbers."
            )
        assert (await server.call("add_note", text=" ")).is_error
        assert (await server.call("delete_note", id="two")).is_error
        assert (await server.text("list_notes")).count("\n") == 2
    assert stderr.text == ""


async def test_prompts_carry_the_notes_and_their_arguments_are_completed(
    notes: ServerDefinition, stderr: StandardError
) -> None:
    async with connect(notes, stderr) as server:
        client = server.client
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        shape = {
            name: [(argument.name, argument.required) for argument in prompt.arguments or ()]
            for name, prompt in prompts.items()
        }
        assert shape == {
            "summarize_notes": [("tag", False), ("style", False)],
            "plan_day": [("focus", True)],
        }
        request, attached = (
            await client.get_prompt("summarize_notes", {"tag": "home", "style": "haiku"})
        ).messages
        assert isinstance(request.content, TextContent)
        assert "tagged home as a haiku" in request.content.text
        assert isinstance(attached.content, EmbeddedResource)
        assert isinstance(attached.content.resource, TextResourceContents)
        assert "basil" in attached.content.resource.text
        assert "Welcome" not in attached.content.resource.text
        summarize = PromptReference(name="summarize_notes")
        for argument, value, expected in (
            ("tag", "h", ["hello", "home"]),
            ("style", "ha", ["haiku"]),
            ("unknown", "", []),
        ):
            found = await client.complete(summarize, {"name": argument, "value": value})
            assert found.completion.values == expected
        template = ResourceTemplateReference(uri="notes://note/{id}")
        found = await client.complete(template, {"name": "id", "value": ""})
        assert found.completion.values == ["3", "2", "1"]


async def test_notes_are_resources(notes: ServerDefinition, stderr: StandardError) -> None:
    async with connect(notes, stderr) as server:
        client = server.client
        listed = (await client.list_resources()).resources
        assert [(resource.uri, resource.title) for resource in listed[:2]] == [
            ("notes://all", "All notes"),
            ("notes://note/3", "Water the basil on Friday"),
        ]
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "notes://note/{id}"
        for resource in listed:
            (content,) = (await client.read_resource(resource.uri)).contents
            assert isinstance(content, TextResourceContents)
            assert content.mime_type == "text/markdown"
            assert resource.size in {None, len(content.text.encode())}
        for uri in ("notes://note/99", "notes://note/x", "notes://note/" + "9" * 400):
            with pytest.raises(MCPError, match="There is no note"):
                await client.read_resource(uri)
    assert stderr.text == ""


async def test_an_older_client_is_told_that_resources_changed(
    notes: ServerDefinition, stderr: StandardError
) -> None:
    async with connect(notes, stderr, "legacy") as server:
        resources = server.client.server_capabilities.resources
        assert resources is not None
        assert resources.list_changed
        await server.call("add_note", text="x")
        await server.wait_for("ResourceListChangedNotification")


async def test_a_newer_client_that_listens_is_told_that_resources_changed(
    notes: ServerDefinition, stderr: StandardError
) -> None:
    async with (
        connect(notes, stderr) as server,
        server.client.listen(resources_list_changed=True) as changes,
    ):
        await server.call("add_note", text="x")
        async for change in changes:
            assert type(change).__name__ == "ResourcesListChanged"
            break


async def test_notes_survive_a_restart(notes: ServerDefinition, stderr: StandardError) -> None:
    async with connect(notes, stderr) as server:
        await server.call("add_note", text="buy milk")
    async with connect(notes, stderr) as server:
        assert (await server.text("list_notes")).startswith("4. buy milk\n3. ")


async def test_two_instances_write_to_one_notebook_together(
    notes: ServerDefinition, stderr: StandardError
) -> None:
    async with (
        connect(notes, stderr) as one,
        connect(notes, stderr) as two,
        anyio.create_task_group() as group,
    ):
        for number in range(20):
            for server in (one, two):
                group.start_soon(server.client.call_tool, "add_note", {"text": f"note {number}"})
    async with connect(notes, stderr) as server:
        result = await server.call("list_notes", limit=100)
    assert result.structured_content is not None
    ids = [note["id"] for note in result.structured_content["notes"]]
    assert ids == list(range(43, 0, -1))


async def test_a_notebook_that_cannot_be_opened_is_named_on_stderr(
    notes: ServerDefinition, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        notes.command,
        *notes.args,
        env={**os.environ, NOTES_DB_VARIABLE: "/dev/null/notes.db"},
        cwd=tmp_path,
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    with anyio.fail_after(LIMIT):
        _, written = await process.communicate()
    assert process.returncode == 1
    assert written.decode().startswith("The notes file /dev/null/notes.db cannot be used")
    assert "Traceback" not in written.decode()


@BOTH_ERAS
async def test_counting_reports_each_step(
    slow: ServerDefinition, stderr: StandardError, mode: Mode
) -> None:
    steps: list[tuple[float, float | None, str | None]] = []
    complete = asyncio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))
        if len(steps) == 3:
            complete.set()

    async with connect(slow, stderr, mode) as server:
        arguments = {"steps": 3, "seconds_per_step": 0.01}
        result = await server.client.call_tool(
            "count_slowly", arguments, progress_callback=on_progress
        )
        await complete.wait()
    assert sorted(steps) == [(n, 3, f"Counted to {n} of 3") for n in (1, 2, 3)]
    assert result.structured_content == {"result": "Counted to 3, 0.01 seconds a step."}
    assert stderr.text == ""


@BOTH_ERAS
async def test_a_cancelled_call_stops_at_once_and_the_server_goes_on(
    slow: ServerDefinition, stderr: StandardError, mode: Mode
) -> None:
    begun = asyncio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        assert (progress, total, message) >= (1, 100, "Counted to 1 of 100")
        begun.set()

    async with connect(slow, stderr, mode) as server:
        arguments = {"steps": 100, "seconds_per_step": 0.05}
        call = asyncio.create_task(
            server.client.call_tool("count_slowly", arguments, progress_callback=on_progress)
        )
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert "Counted to 1" in await server.text("count_slowly", steps=1, seconds_per_step=0)
    assert stderr.text == "count_slowly was cancelled\n"


async def test_research_goes_through_its_phases_and_admits_that_it_invents(
    slow: ServerDefinition, stderr: StandardError
) -> None:
    phases: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        assert total is not None
        assert progress <= total == 5
        phases.append(message)

    async with connect(slow, stderr) as server:
        result = await server.client.call_tool(
            "research", {"topic": "tea"}, progress_callback=on_progress
        )
    assert "Reading the first source" in phases
    assert isinstance(result.content[0], TextContent)
    assert result.content[0].text.startswith("Report on tea\nThis report is invented")


async def test_the_slow_server_logs_and_says_that_it_does(
    slow: ServerDefinition, stderr: StandardError
) -> None:
    async with connect(slow, stderr, "legacy") as server:
        assert server.client.server_capabilities.logging == mcp_types.LoggingCapability()
        with pytest.warns(MCPDeprecationWarning):
            await server.client.set_logging_level("info")
        await server.call("count_slowly", steps=5, seconds_per_step=0)
        await server.wait_for("LoggingMessageNotification")
    assert server.logged == ["count_slowly is at 5 of 5"]
    assert stderr.text == ""


async def test_bounds_of_the_slow_server_are_kept(
    slow: ServerDefinition, stderr: StandardError
) -> None:
    async with connect(slow, stderr) as server:
        assert (await server.call("count_slowly", steps=101)).is_error
        assert (await server.call("count_slowly", seconds_per_step=11)).is_error
        assert (await server.call("research", topic="")).is_error
