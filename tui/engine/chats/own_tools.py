"""gemdeck's own tools: the model finds other tools with them, reads resources and long results."""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final

from tui.engine.chats.backends.backend import Asked
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.catalog.offered_tool import (
    MAX_STRUCTURED,
    JsonObject,
    MediaPart,
    OfferedTool,
    OwnTool,
    TextPart,
    ToolCallError,
    ToolResult,
    declaration,
)
from tui.engine.mcp.catalog.registry import MAX_QUERY, search
from tui.engine.mcp.catalog.skill_entry import OpenSkills
from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.tasks import RemoteTask
from tui.model.catalog import Catalog, ToolId, ToolView
from tui.model.chat import ConversationId
from tui.model.input.fuzzy import best
from tui.model.input.mentions import find_resource
from tui.model.servers import ServerId
from tui.model.settings import NOTHING, Profile
from tui.model.settings_rules import DEFAULT_RESULT_SIZE
from tui.text import clip, counted, noted_for_model, sanitize, sanitize_line

if TYPE_CHECKING:
    from tui.engine.mcp.session.features import Features

GEMDECK: Final = ServerId("gemdeck")
"""What stands for a server where a tool is gemdeck's own."""

MAX_NAMED: Final = 50
"""Servers that the description names."""

MAX_TOOL_DESCRIPTION: Final = 300
"""Characters of a description that a search shows."""

MAX_LISTED: Final = 100
"""Resources that one call lists."""

MAX_DESCRIPTION: Final = 200
"""Characters of a description that are listed."""

MAX_KEPT: Final = 16 * 1024 * 1024
"""Bytes that the long results of one conversation take; the newest stays whatever it takes."""

LOOK_PATIENCE: Final = 5.0
"""Seconds that a look at a task waits for its end."""

GONE: Final = (
    "There is no result with this id: the oldest are dropped first, and all when gemdeck ends. "
    "Repeat the call."
)


class ProfiledServers:
    """The servers as one conversation may use them: without what its profile leaves out.

    Another profile counts from the next question on.

    Args:
        every: All servers; the same attribute.
        profiles: The profiles by name; they may change.
        asked: Names the profile of the conversation; likewise.
    """

    def __init__(self, every: ServerManager, profiles: Mapping[str, Profile], asked: Asked) -> None:
        self.every, self._profiles, self._asked = every, profiles, asked

    @property
    def profile(self) -> Profile:
        return self._profiles.get(self._asked.options.profile, NOTHING)

    def offered_tools(self) -> Sequence[OfferedTool]:
        return self.every.offered_tools(self.profile)

    def held_tools(self) -> Sequence[OfferedTool]:
        return self.every.held_tools(self.profile)

    def instructions(self) -> Sequence[tuple[ServerId, str]]:
        return [one for one in self.every.instructions() if self.profile.includes(one[0])]

    async def awake(self, server: ServerId) -> "Features":
        """Return the prompts and resources of a server, which wakes if it sleeps.

        Raises:
            ServerCallError: If it is left out or cannot be asked.
        """
        if words := self.left_out(server):
            raise ServerCallError(words)
        return await self.every.awake(server)

    def left_out(self, server: ServerId) -> str:
        """Return why a server cannot be used; empty if it can."""
        words = f"The server {server} is not in the profile {self._asked.options.profile}."
        return "" if self.profile.includes(server) else words


def make_own_tool(
    name: str,
    description: str,
    properties: dict[str, Any],
    run: Callable[[JsonObject], Awaitable[ToolResult]],
    *required: str,
    is_free: bool,
) -> OwnTool:
    """Make a tool whose arguments are these properties; see `OwnTool`."""
    schema = {"type": "object", "properties": properties}
    schema |= {"required": [*required]} if required else {}
    definition = json.dumps([name, description, schema], sort_keys=True)
    return OwnTool(
        id=ToolId(name),
        server=GEMDECK,
        name=name,
        view=ToolView(ToolId(name), name, description=description),
        declaration=declaration(name, description, schema),
        schema=schema,
        definition_hash=hashlib.sha256(definition.encode()).hexdigest(),
        run=run,
        is_free=is_free,
    )


def of_server(tool: OwnTool, definition: ServerDefinition, opened: OpenSkills) -> OwnTool:
    """Return a tool as it is shown, asked about and recorded where a call asks a server."""
    return replace(
        tool,
        server=definition.id,
        fingerprint=definition.fingerprint,
        is_reviewed=definition.review_results,
        caution=opened.caution(definition.id),
    )


def text_result(text: str) -> ToolResult:
    """Return a text for the model, and the same for the screen."""
    return ToolResult((TextPart(noted_for_model(text)),), sanitize(text))


def tool_search(servers: ProfiledServers) -> OwnTool | None:
    """Return the search, if the servers have more tools than the model holds."""
    offered = servers.offered_tools()
    more = len(offered) - len(servers.held_tools())
    if not more:
        return None
    description = (
        f"Find and load tools: {counted(more, 'tool')} of {_named(offered)} are not loaded yet. "
        "Search before you say that something cannot be done. What is found can be called from "
        "the next step on."
    )
    words = "Words for what the tool does, or its name."
    query = {"type": "string", "maxLength": MAX_QUERY, "description": words}

    async def run(arguments: JsonObject) -> ToolResult:
        tools = servers.offered_tools()
        found = await asyncio.to_thread(search, str(arguments.get("query", "")), tools)
        servers.every.load_tools(found)
        if not found:
            return text_result("No tool fits. Try other words.")
        return text_result("\n".join(["These tools are loaded now:", *map(_line, found)]))

    return make_own_tool("search_tools", description, {"query": query}, run, "query", is_free=True)


def _named(tools: Sequence[OfferedTool]) -> str:
    """Name the servers of tools."""
    names: list[ServerId] = list(dict.fromkeys(tool.server for tool in tools))
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more servers" if more > 0 else "")


def _line(tool: OfferedTool) -> str:
    words = clip(" ".join(tool.view.description.split()), MAX_TOOL_DESCRIPTION)
    return f"- {tool.id} (of the server {tool.server}): {words}"


_SERVER: Final = {"type": "string", "description": "The name of the server."}
_QUERY: Final = {"type": "string", "description": "Lists only what contains these letters."}
_URI: Final = {"type": "string", "description": "The URI, or a template filled in."}


def resource_tools(servers: ProfiledServers, opened: OpenSkills) -> Iterator[OwnTool]:
    """Yield the tools, if a server that can be asked has resources."""
    if not _asked(servers):
        return
    what = "List the resources of the MCP servers, and templates of further ones"
    words, run = f"{what}: server, URI, name and description.", partial(_list, servers)
    given = {"server": _SERVER, "query": _QUERY}
    yield make_own_tool("list_mcp_resources", words, given, run, is_free=True)
    words, given = "Read a resource of an MCP server.", {"server": _SERVER, "uri": _URI}
    read = partial(_read, servers, opened, "")
    reading = make_own_tool("read_mcp_resource", words, given, read, *given, is_free=False)
    yield replace(reading, bind=partial(_bind, servers, opened, reading))


def _asked(servers: ProfiledServers) -> dict[ServerId, Catalog]:
    """Return the catalogs of the servers with resources that can be asked."""
    return {
        server: catalog
        for server, catalog in servers.every.catalogs.copy().items()
        if (catalog.resources or catalog.templates)
        and not (servers.left_out(server) or servers.every.away_words(server))
    }


async def _list(servers: ProfiledServers, arguments: JsonObject) -> ToolResult:
    named, query = arguments.get("server"), str(arguments.get("query", ""))
    asked = ((s, catalog) for s, catalog in _asked(servers).items() if named in {None, "", s})
    lines = [line for server, catalog in asked for line in _lines(server, catalog)]
    shown = best(query, lines, MAX_LISTED) if query else lines[:MAX_LISTED]
    if len(lines) > len(shown):
        shown.append(f"… {len(shown)} of {len(lines)}. Name a server or a query for others.")
    return text_result("\n".join(shown) or "There are no such resources.")


def _lines(server: ServerId, catalog: Catalog) -> Iterator[str]:
    for one in catalog.resources:
        if not one.problem:
            yield _resource_line(server, one.uri, one.title or one.name, one.description)
    for template in catalog.templates:
        if not template.problem:
            name, words = template.title or template.name, template.description
            yield _resource_line(server, f"{template.uri_template} (template)", name, words)


def _resource_line(*parts: str) -> str:
    return "- " + " | ".join(clip(sanitize_line(part), MAX_DESCRIPTION) for part in parts if part)


def _bind(
    servers: ProfiledServers, opened: OpenSkills, tool: OwnTool, arguments: JsonObject
) -> OwnTool:
    """Let a reading be shown, asked about and allowed as one of the server that is read from."""
    server = ServerId(str(arguments.get("server", "")))
    definition = servers.every.registry.definition(server)
    if definition is None or server not in _asked(servers):
        names = ", ".join(_asked(servers)) or "none"
        raise ToolCallError(f"{sanitize_line(server)} has no resources. These have: {names}.")
    run = partial(_read, servers, opened, server)
    return replace(of_server(tool, definition, opened), trusted=definition.trust, run=run)


async def _read(
    servers: ProfiledServers, opened: OpenSkills, allowed: str, arguments: JsonObject
) -> ToolResult:
    """Read a resource; what lies in the folder of a skill is read by ``load_skill`` alone."""
    server, typed = ServerId(str(arguments["server"])), str(arguments["uri"])
    if server != allowed:
        raise ToolCallError("Another server was approved; the resource was not read.")
    try:
        uri = find_resource(typed, servers.every.catalogs[server])
        if not uri:
            raise ToolCallError(f"{server} has no resource {sanitize_line(typed)}.")
        if skill := opened.around(server, uri, servers.every.registry.skills(server)):
            words = f"belongs to the skill {server}:{skill.view.name}. Read it with load_skill;"
            raise ToolCallError(f"{skill.address(uri)} {words} the user sees it first.")
        reading = await (await servers.awake(server)).read_resource(uri)
    except (ServerCallError, KeyError) as error:
        raise ToolCallError(f"It could not be read: {error}") from error
    return reading.as_result()


@dataclass(slots=True)
class KeptResults:
    """The results of a conversation that were too long for the model, whole.

    An offset counts characters as the model gets them.

    Attributes:
        limit: Characters of one result that the model gets at once.
    """

    limit: int = DEFAULT_RESULT_SIZE
    _kept: dict[str, tuple[OfferedTool, str]] = field(default_factory=dict)

    def clear(self) -> None:
        self._kept.clear()

    def cut(self, tool: OfferedTool, result: ToolResult) -> ToolResult:
        """Return what the model gets of a result: of a long text both ends, and where to read on.

        What stands beside the tool's own text takes nothing from it: it has `MAX_STRUCTURED`
        characters, and those that the text leaves.
        """
        texts = [part.text for part in result.parts if isinstance(part, TextPart)]
        own = len(texts) - result.beside
        said, beside, whole = ("\n".join(part) for part in (texts[:own], texts[own:], texts))
        room = max(MAX_STRUCTURED, self.limit - len(said))
        if len(said) <= self.limit and len(beside) <= room:
            return result
        key = self._keep(tool, whole)

        def ends(text: str, limit: int, place: int) -> str:
            if len(text) <= limit:
                return text
            head, end = limit // 2, len(text) - limit // 2
            gap = f"characters {place + head + 1:,} to {place + end:,} of {len(whole):,}"
            rest = _rest(key, place + head)
            return f"{text[:head]}\n… [{gap} are left out: {rest}] …\n{text[end:]}"

        parts = ends(said, self.limit, 0), ends(beside, room, len(whole) - len(beside))
        media = (part for part in result.parts if isinstance(part, MediaPart))
        got = min(len(said), self.limit) + min(len(beside), room)
        note = f"[The model gets {got:,} of {len(whole):,} characters, and can read the rest.]"
        kept: tuple[TextPart | MediaPart, ...] = (*map(TextPart, filter(None, parts)), *media)
        return replace(result, parts=kept, display=f"{result.display}\n{note}")

    def _keep(self, tool: OfferedTool, whole: str) -> str:
        """Keep a result, in place of the oldest if there are too many, and return its id."""
        self._kept[key := secrets.token_hex(4)] = tool, whole
        size = sum(getsizeof(text) for _, text in self._kept.values())
        while size > MAX_KEPT and len(self._kept) > 1:
            size -= getsizeof(self._kept.pop(next(iter(self._kept)))[1])
        return key

    def tool(self) -> OwnTool:
        """Return the tool to read on; a call counts as one of the server that gave the result."""
        place = {"id": {"type": "string"}, "offset": {"type": "integer", "minimum": 0}}
        words = "Read more of a long result, with the id and the offset given where it was cut."
        made = make_own_tool("read_result", words, place, self._read, *place, is_free=True)
        return replace(made, bind=partial(self._bind, made))

    def declared(self) -> Iterator[OwnTool]:
        """Yield the tool if there is something to read."""
        if self._kept:
            yield self.tool()

    def _bind(self, tool: OwnTool, arguments: JsonObject) -> OwnTool:
        read, _ = self._find(arguments)
        source = (read.source if isinstance(read, OwnTool) else None) or read  # rules are about it
        return replace(tool, server=read.server, is_reviewed=read.is_reviewed, source=source)

    def _find(self, arguments: JsonObject) -> tuple[OfferedTool, str]:
        if (found := self._kept.get(str(arguments.get("id")))) is None:
            raise ToolCallError(GONE)
        return found

    async def _read(self, arguments: JsonObject) -> ToolResult:
        _, whole = self._find(arguments)
        start = int(arguments["offset"])
        end = min(start + self.limit, len(whole))
        if start >= len(whole):
            raise ToolCallError(f"The result has {len(whole)} characters: the offset is too large.")
        rest = "the end" if end == len(whole) else _rest(str(arguments["id"]), end)
        note = f"[Characters {start + 1:,} to {end:,} of {len(whole):,}: {rest}]"
        text = whole[start:end]
        display = await asyncio.to_thread(sanitize, f"{text}\n{note}")
        return ToolResult((TextPart(text), TextPart(note)), display, beside=1)


def task_tool(servers: ProfiledServers, conversation: ConversationId) -> Iterator[OwnTool]:
    """Yield the tool to look at tasks, if the conversation goes on without some.

    A call counts as one of the server that runs the task.
    """
    tasks = servers.every.tasks

    def left() -> dict[str, RemoteTask]:
        known = tasks.left_in(conversation)
        return {one.kept.key: one for one in known if not servers.left_out(one.tool.server)}

    def find(arguments: JsonObject) -> RemoteTask:
        if (task := left().get(str(arguments["id"]))) is None:
            raise ToolCallError("There is no such task.")
        return task

    async def look(arguments: JsonObject) -> ToolResult:
        task = find(arguments)
        try:
            return await tasks.result(task, LOOK_PATIENCE)
        except TimeoutError:
            return text_result(f"No result yet. Its server reports: {task.state.words}.")

    def bind(arguments: JsonObject) -> OwnTool:
        source = find(arguments).tool
        definition = servers.every.registry.definition(source.server)
        reviews = source.is_reviewed or definition is None or definition.review_results
        return replace(made, server=source.server, is_reviewed=reviews, source=source)

    listed = "; ".join(f"{key} ({task.tool.id})" for key, task in left().items())
    words = f"Check calls that run on as tasks: their state, or their results: {listed}."
    made = make_own_tool("check_task", words, {"id": {"type": "string"}}, look, "id", is_free=True)
    if listed:
        yield replace(made, bind=bind)


def _rest(key: str, offset: int) -> str:
    return f'call read_result(id="{key}", offset={offset}) for the rest'
