"""A gemdeck without a screen for the conformance suite: it does once all that a server offers.

Run it as ``python -m tests.conformance.client URL``. It connects by the same engine as the app,
calls every tool, reads every resource and gets every prompt, and says yes to whatever it is
asked. It knows nothing of single scenarios. Where ``MCP_CONFORMANCE_CONTEXT`` names
``toolCalls``, exactly those calls are made instead of made-up ones.

It ends with 0 if the server was ready and the engine did its work; what the server refused is
printed and is no failure.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.conformance.stubs import STUB, fill_in, stub_arguments
from tui.engine.desk import Desk
from tui.engine.late import import_connection
from tui.engine.mcp.backoff import RetryPolicy
from tui.engine.mcp.catalog.offered_tool import OfferedTool, ToolCallError, ToolResult
from tui.engine.mcp.context import ClientContext, Generation, Generator, Prompt
from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.session.features import Features
from tui.engine.settings.servers.definitions import ServerDefinition
from tui.model.catalog import Catalog
from tui.model.events import (
    CatalogChanged,
    Event,
    RequestRaised,
    ServerLogged,
    ServerStatusChanged,
)
from tui.model.requests import FormRequest, PendingRequest, Reply, ReplyAction
from tui.model.servers import Origin, ServerId, ServerStatus, Transport

CONTEXT: Final = "MCP_CONFORMANCE_CONTEXT"
"""The environment variable in which the suite describes a scenario, as JSON."""

SERVER: Final = ServerId("conformance")

SCHEMA: Final = "schema"
"""The parameter in which a tool takes a schema."""

READY_SECONDS: Final = 60.0
"""Longest time for the server to be ready."""

ONE_ATTEMPT: Final = RetryPolicy(first_delay=60.0)
"""A server that fails is not tried again while it is looked at."""


def willing_reply(request: PendingRequest) -> Reply:
    """Accept everything, forms with their defaults unless those did not pass the check."""
    if not isinstance(request, FormRequest):
        return Reply(ReplyAction.ACCEPT)
    if request.problem:
        print(f"a form could not be filled in: {request.problem}")
        return Reply(ReplyAction.DECLINE)
    return Reply(ReplyAction.ACCEPT, {field.key: fill_in(field) for field in request.fields})


async def stub_answer(_prompt: Prompt) -> Generation:
    """Answer every prompt alike."""
    return Generation(STUB, (), STUB)


class Visit:
    """One visit to a server: everything it offers, once."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._status = ServerStatus.STOPPED
        self._reason = ""
        self._catalog = Catalog()
        self._desk = Desk(self._hear)

    async def run(self) -> bool:
        """Tell whether the server was ready."""
        context = ClientContext(
            self._hear,
            self._desk,
            generator=Generator(lambda: STUB, stub_answer),
            takes_call=lambda _tool, _args: True,
            client_version="0",
        )
        definition = ServerDefinition(SERVER, Origin.USER, Transport.HTTP, url=self._url)
        with tempfile.TemporaryDirectory() as folder:
            context.workspaces = (Path(folder),)
            manager = ServerManager(
                self._hear, context, import_connect=import_connection, retry=ONE_ATTEMPT
            )
            async with manager:
                manager.configure([definition])
                await manager.wait_discovered(READY_SECONDS)
                if self._status is not ServerStatus.READY:
                    print(f"{self._status}: {self._reason}")
                    return False
                await self._call_tools(manager)
                await self._use_features(manager.features(SERVER))
        return True

    def _hear(self, event: Event) -> None:
        match event:
            case RequestRaised(request):
                self._desk.answer(request.id, willing_reply(request))
            case ServerStatusChanged(status=status, failure=failure):
                self._status = status
                self._reason = failure.reason if failure is not None else ""
            case CatalogChanged(catalog=catalog):
                self._catalog = catalog
            case ServerLogged(lines=lines):
                for line in lines:
                    print(f"{line.source}: {line.text}")

    async def _call_tools(self, manager: ServerManager) -> None:
        for tool, arguments in planned_calls(manager):
            await tell(tool.id, manager.call_tool(tool, arguments, lambda _: None))

    async def _use_features(self, features: Features) -> None:
        for resource in self._catalog.resources:
            await tell(resource.uri, features.read_resource(resource.uri))
        for prompt in self._catalog.prompts:
            arguments = {argument.name: STUB for argument in prompt.arguments}
            await tell(prompt.name, features.get_prompt(prompt.name, arguments))


def planned_calls(manager: ServerManager) -> Iterator[tuple[OfferedTool, dict[str, Any]]]:
    """Give the calls to make: those that the suite names, or one of each tool."""
    tools = list(manager.offered_tools())
    named = json.loads(os.environ.get(CONTEXT) or "{}").get("toolCalls")
    if named is None:
        yield from ((tool, made_up_arguments(tool, tools)) for tool in tools)
        return
    by_name = {tool.name: tool for tool in tools}
    for call in named:
        if (tool := by_name.get(call["name"])) is not None:
            yield tool, call.get("arguments") or {}


def made_up_arguments(tool: OfferedTool, tools: Sequence[OfferedTool]) -> dict[str, Any]:
    """Make arguments for a tool; one that takes a schema is given that of another tool.

    Suites ask for a schema to see whether it came through unharmed.
    """
    arguments = stub_arguments(tool.schema)
    others = [other.schema for other in tools if other is not tool]
    if others and isinstance(arguments.get(SCHEMA), dict):
        arguments[SCHEMA] = dict(others[0])
    return arguments


async def tell(what: str, doing: Awaitable[object]) -> None:
    """Print what came of something; a refusal is an answer too."""
    try:
        result = await doing
    except (ToolCallError, ServerCallError) as error:
        print(f"{what}: {error}")
        return
    print(f"{what}: {result.display if isinstance(result, ToolResult) else result}")


async def main(url: str) -> int:
    """Visit a server; give the exit code."""
    return 0 if await Visit(url).run() else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
