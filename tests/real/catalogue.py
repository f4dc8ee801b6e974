"""The reference servers: how each is started, and what it offers and answers."""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.servers.web import process
from tests.support.definitions import altered, define_server
from tests.support.node import node_server
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.session.features import Features
from tui.model.catalog import Catalog
from tui.model.servers import Origin, ServerId, Transport

HANDSHAKE: Final = "2025-11-25"
STATELESS: Final = "2026-07-28"


@dataclass(frozen=True)
class Call:
    """A call of a tool, by its name on the server, with a pattern of what it gives.

    Its arguments may name files of the workspace.
    """

    tool: str
    gives: str
    arguments: Callable[[Path], Mapping[str, Any]] = lambda _: {}


@dataclass(frozen=True)
class Reference:
    """One reference server over one transport.

    Attributes:
        name: What it is called here.
        package: Its npm name after ``server-``, or its Python command.
        arguments: Its arguments in a workspace.
        counts: How many tools, prompts, resources and templates it lists.
        call: A call.
        protocol: The revision of the protocol that it is expected to speak.
        transport: How it is reached.
        path: The path of its address.
        read: A resource, where it has any, and a pattern of what it holds.
        prompt: A prompt, where it has any, its arguments and a pattern of what it holds.
        complete: A prompt, its argument, how that begins and what is suggested, where it can.
        watch: A resource, where it announces changes, and a call that changes it.
    """

    name: str
    package: str
    counts: tuple[int, int, int, int]
    call: Call
    protocol: str = HANDSHAKE
    arguments: Callable[[Path], list[str]] = lambda _: []
    transport: Transport = Transport.STDIO
    path: str = ""
    read: tuple[str, str] | None = None
    prompt: tuple[str, Mapping[str, str], str] | None = None
    complete: tuple[str, str, str, tuple[str, ...]] | None = None
    watch: tuple[str, Call] | None = None

    @asynccontextmanager
    async def started(self, workspace: Path) -> AsyncIterator[ServerDefinition]:
        """Prepare the workspace, run the server if it is to listen, and give its definition."""
        prepare(workspace)
        server = ServerId(self.name)
        command, arguments = self._command(workspace)
        if self.transport is Transport.STDIO:
            environment = {"MEMORY_FILE_PATH": str(workspace / "memory.jsonl")}
            own = define_server(server, Origin.USER, Transport.STDIO, command=command)
            yield altered(own, args=tuple(arguments), env=environment, cwd=workspace)
            return
        async with process(command, *arguments) as (base, _):
            yield define_server(server, Origin.USER, self.transport, url=base + self.path)

    def _command(self, workspace: Path) -> tuple[str, list[str]]:
        arguments = self.arguments(workspace)
        if self.package.startswith("mcp-server-"):
            return str(Path(sys.executable).with_name(self.package)), arguments
        return node_server(self.package, *arguments)


def counts(found: Catalog) -> tuple[int, ...]:
    """Count what a server offers."""
    return tuple(map(len, (found.tools, found.prompts, found.resources, found.templates)))


async def use(features: Features, reference: Reference) -> list[object]:
    """Read, get and complete what a server has for it; give what came of it."""
    found = list[object]()
    if reference.read is not None:
        uri, pattern = reference.read
        reading = await features.read_resource(uri)
        assert re.search(pattern, reading.content.text), reading.content.text
        found += [reading.content.text, reading.raw]
    if reference.prompt is not None:
        name, given, pattern = reference.prompt
        found.append(prompt := await features.get_prompt(name, dict(given)))
        assert re.search(pattern, prompt.shown), prompt.shown
    if reference.complete is not None:
        name, argument, begun, suggested = reference.complete
        found.append(completed := await features.complete(name, argument, begun, {}))
        assert completed.values == suggested
    return found


def prepare(workspace: Path) -> None:
    """Put into a workspace what the calls below look at: a note, and a repository."""
    (workspace / "notes.txt").write_text("milk and bread\n")
    repository = workspace / "repository"
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True, env=quiet)
    (repository / "untracked.txt").write_text("x")


CHANGING: Final = Call("toggle-subscriber-updates", "Started simulat")
GRAPH: Final = "memory://knowledge-graph"


def _everything(transport: Transport, kind: str, path: str = "") -> Reference:
    return Reference(
        name=f"everything-{transport}",
        package="everything",
        arguments=lambda _: [kind],
        transport=transport,
        path=path,
        counts=(17, 4, 7, 2),
        call=Call("get-sum", r"The sum of 2 and 40 is 42", lambda _: {"a": 2, "b": 40}),
        read=("demo://resource/dynamic/text/7", "Resource 7: This is a plaintext resource"),
        prompt=("args-prompt", {"city": "Kyiv"}, "weather in Kyiv"),
        complete=("completable-prompt", "department", "S", ("Sales", "Support")),
        watch=("demo://resource/dynamic/text/1", CHANGING),
    )


ADA: Final = {"name": "Ada", "entityType": "person", "observations": []}
NOON: Final = {"source_timezone": "Europe/Kyiv", "time": "12:00", "target_timezone": "Asia/Tokyo"}
COUNTS: Final = {"thoughtNumber": 1, "totalThoughts": 3, "nextThoughtNeeded": True}
THOUGHT: Final = {"thought": "Look first.", **COUNTS}

REFERENCES: Final = (
    _everything(Transport.STDIO, "stdio"),
    _everything(Transport.SSE, "sse", "/sse"),
    _everything(Transport.HTTP, "streamableHttp", "/mcp"),
    Reference(
        name="filesystem",
        package="filesystem",
        arguments=lambda workspace: [str(workspace)],
        counts=(14, 0, 0, 0),
        call=Call("read_text_file", "milk and bread", lambda at: {"path": str(at / "notes.txt")}),
    ),
    Reference(
        name="memory",
        package="memory",
        counts=(9, 0, 1, 0),
        call=Call("read_graph", r'"entities": \[\]'),
        read=(GRAPH, r'"relations": \[\]'),
        watch=(GRAPH, Call("create_entities", "Ada", lambda _: {"entities": [ADA]})),
    ),
    Reference(
        name="sequential-thinking",
        package="sequential-thinking",
        counts=(1, 0, 0, 0),
        call=Call("sequentialthinking", r'"totalThoughts": 3', lambda _: THOUGHT),
    ),
    Reference(
        name="git",
        package="mcp-server-git",
        arguments=lambda workspace: ["--repository", str(workspace / "repository")],
        protocol=STATELESS,
        counts=(12, 0, 0, 0),
        call=Call("git_status", "untracked.txt", lambda at: {"repo_path": str(at / "repository")}),
    ),
    Reference(
        name="time",
        package="mcp-server-time",
        protocol=STATELESS,
        counts=(2, 0, 0, 0),
        call=Call("convert_time", r"T1[89]:00:00\+09:00", lambda _: NOON),
    ),
)
"""The table of reference servers."""
