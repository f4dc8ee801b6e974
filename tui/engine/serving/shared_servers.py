"""What other clients get of an engine's servers: their lists, and answers to requests.

Requests and answers are MCP's, as JSON. Lists have gemdeck's names; all else is as the servers
wrote it, without control characters in texts and with secrets masked.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from tui.engine.engine import Engine
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool, TextPart, ToolCallError
from tui.engine.mcp.errors import ServerCallError
from tui.model.bounded_json import as_list, as_object, mapped, text_in, writable
from tui.model.catalog import Catalog
from tui.model.chat import Progress
from tui.model.consent import Caller
from tui.model.events import CatalogChanged, Event, ToolCallProgressed
from tui.model.frozen import Frozen
from tui.model.servers import ServerId
from tui.model.settings import EVERYTHING, Profile
from tui.text import AdvisedError, sanitize

NO_SUCH_METHOD: Final = -32601
"""JSON-RPC: the method does not exist."""

BAD_PARAMS: Final = -32602
"""JSON-RPC: the parameters cannot be used."""

NOT_ANSWERED: Final = -32000
"""A server gave no answer, or refused without a code of its own."""

PATIENCE: Final = 10.0
"""Seconds that the first list waits for servers that start."""

OnProgress = Callable[[Progress], None]

_Answerer = Callable[[JsonObject, OnProgress], Awaitable[JsonObject]]


class RequestRefusedError(AdvisedError):
    """A request has no result; `reply` is the error of JSON-RPC."""

    def __init__(self, text: str, code: int, reply: JsonObject | None = None) -> None:
        super().__init__(text)
        self.reply = {"code": code, "message": text, **(reply or {})}


class Listed(Frozen):
    """An item of a list as a client gets it, and where it comes from.

    Attributes:
        server: Its server.
        name: Its name or address there, as shown.
        item: The item, under the name that it has here.
    """

    server: ServerId
    name: str
    item: JsonObject


class SharedServers:
    """The servers of an engine, for one other client.

    Args:
        engine: The engine.
        caller: The client.
        profile: What it gets of them.
    """

    def __init__(self, engine: Engine, caller: Caller, profile: Profile = EVERYTHING) -> None:
        self._engine, self._caller, self._profile = engine, caller, profile
        self._answers: Mapping[str, _Answerer] = {
            "tools/call": self._call,
            "prompts/get": self._prompt,
            "resources/read": self._read,
            "completion/complete": self._complete,
        }
        self._lists: Mapping[str, tuple[str, Callable[[], Iterable[Listed]]]] = {
            "tools/list": ("tools", self._tools),
            "prompts/list": ("prompts", self._prompts),
            "resources/list": ("resources", self._resources),
            "resources/templates/list": ("resourceTemplates", self._templates),
        }

    async def request(
        self, method: str, params: JsonObject, on_progress: OnProgress = lambda _: None
    ) -> JsonObject:
        """Return the result of a request. Canceling it cancels it on its server.

        Args:
            method: One of MCP that lists or uses what servers offer.
            params: Its parameters; nothing of them is trusted.
            on_progress: Takes the progress of a call.

        Raises:
            RequestRefusedError: If there is no result.
        """
        if method in self._lists:
            await self._engine.wait_ready(PATIENCE)
            key, listed = self._lists[method]
            return {key: [one.item for one in listed()]}
        if method not in self._answers:
            raise RequestRefusedError(f"There is no method {method}.", NO_SUCH_METHOD)
        try:
            return await self._answers[method](params, on_progress)
        except (ServerCallError, ToolCallError) as error:
            raise RequestRefusedError(str(error), NOT_ANSWERED, error.reply) from error

    async def changes(self) -> AsyncIterator[None]:
        """Tell each time that the lists of a server have changed."""
        async for event in self._engine.events():
            if isinstance(event, CatalogChanged):
                yield

    def _tools(self) -> Iterator[Listed]:
        for tool, raw in self._raw_tools():
            yield Listed(tool.server, tool.view.name, _cleaned({**raw, "name": tool.id}))

    def _raw_tools(self) -> Iterator[tuple[OfferedTool, JsonObject]]:
        raw = dict[tuple[ServerId, str], JsonObject]()
        for tool in self._engine.servers.offered_tools(self._profile):
            if (tool.server, tool.name) not in raw:
                listed = map(as_object, self._engine.servers.registry.listed(tool.server).tools)
                raw |= {(tool.server, text_in(one, "name")): one for one in listed}
            yield tool, raw[tool.server, tool.name]

    def _prompts(self) -> Iterator[Listed]:
        for server, catalog in self._catalogs():
            raw = self._by_key(server, "prompts", "name")
            for prompt in catalog.prompts:
                if not prompt.problem and (one := raw.get(prompt.own_name or prompt.name)):
                    yield Listed(server, prompt.name, _cleaned({**one, "name": prompt.name}))

    def _resources(self) -> Iterator[Listed]:
        seen = set[str]()
        for server, catalog in self._catalogs():
            raw = self._by_key(server, "resources", "uri")
            for resource in catalog.resources:
                one = None if resource.problem else raw.get(resource.uri)
                if one is not None and resource.uri not in seen:
                    seen.add(resource.uri)
                    yield Listed(server, resource.uri, _cleaned(one))

    def _templates(self) -> Iterator[Listed]:
        seen = set[str]()
        for server, catalog in self._catalogs():
            raw = self._by_key(server, "templates", "uriTemplate")
            for template in catalog.templates:
                one = None if template.problem else raw.get(template.uri_template)
                if one is not None and template.uri_template not in seen:
                    seen.add(template.uri_template)
                    yield Listed(server, template.uri_template, _cleaned(one))

    def _catalogs(self) -> Iterator[tuple[ServerId, Catalog]]:
        """Give the catalogs of the servers that the profile has."""
        servers = self._engine.servers
        shared = (one for one in servers.callable_servers if self._profile.includes(one))
        return ((one, servers.registry.catalog(one)) for one in shared)

    def _by_key(self, server: ServerId, kind: str, key: str) -> Mapping[str, JsonObject]:
        listed = as_list(getattr(self._engine.servers.registry.listed(server), kind))
        return {text_in(one, key): one for one in map(as_object, reversed(listed))}

    async def _call(self, params: JsonObject, on_progress: OnProgress) -> JsonObject:
        """Call a tool. Why it did not run is a result that says so: the model is to know."""
        name, arguments = text_in(params, "name"), params.get("arguments") or {}
        offered = self._engine.servers.offered_tools(self._profile)
        if (tool := next((one for one in offered if one.id == name), None)) is None:
            raise RequestRefusedError(f"There is no tool {sanitize(name)}.", BAD_PARAMS)

        def heed(event: Event) -> None:
            if isinstance(event, ToolCallProgressed) and isinstance(event.progress, Progress):
                on_progress(event.progress)

        try:
            call = self._engine.runs.call
            result = await call(
                tool.server, tool.view.name, arguments, heed=heed, caller=self._caller
            )
        except ToolCallError as error:
            return _result(str(error), is_error=True)
        if result.raw is not None:
            return _cleaned(result.raw)
        texts = [part.text for part in result.parts if isinstance(part, TextPart)]
        return _result(*texts, is_error=result.is_error)

    async def _prompt(self, params: JsonObject, _: OnProgress) -> JsonObject:
        name = text_in(params, "name")
        found = _find(self._prompts(), name, "prompt")
        given = {key: str(value) for key, value in as_object(params.get("arguments")).items()}
        rendered = await self._engine.servers.render_prompt(found.server, name, given)
        return _cleaned(rendered.raw)

    async def _read(self, params: JsonObject, _: OnProgress) -> JsonObject:
        uri = text_in(params, "uri")
        server = self._server_of(uri)
        features = await self._engine.servers.awake(server)
        return _cleaned((await features.read_resource(uri)).raw)

    def _server_of(self, uri: str) -> ServerId:
        """Return who lists a resource, or who has a template of its beginning."""
        for one in self._resources():
            if one.name == uri:
                return one.server
        fitting = [one for one in self._templates() if uri.startswith(one.name.partition("{")[0])]
        if not fitting:
            raise RequestRefusedError(f"There is no resource {sanitize(uri)}.", BAD_PARAMS)
        return max(fitting, key=lambda one: len(one.name.partition("{")[0])).server

    async def _complete(self, params: JsonObject, _: OnProgress) -> JsonObject:
        ref, argument = as_object(params.get("ref")), as_object(params.get("argument"))
        if target := text_in(ref, "name"):
            server = _find(self._prompts(), target, "prompt").server
            target = self._engine.servers.registry.own_prompt_name(server, target)
        else:
            target = text_in(ref, "uri")
            server = _find(self._templates(), target, "resource template").server
        context = as_object(as_object(params.get("context")).get("arguments"))
        features = await self._engine.servers.awake(server)
        given = {key: str(value) for key, value in context.items()}
        name, value = text_in(argument, "name"), text_in(argument, "value")
        found = await features.complete(target, name, value, given)
        return {"completion": {"values": list(found.values), "hasMore": found.has_more}}


def _find(listed: Iterable[Listed], name: str, kind: str) -> Listed:
    for one in listed:
        if one.name == name:
            return one
    raise RequestRefusedError(f"There is no {kind} {sanitize(name)}.", BAD_PARAMS)


def _result(*texts: str, is_error: bool) -> JsonObject:
    return {"content": [{"type": "text", "text": one} for one in texts], "isError": is_error}


def _cleaned(value: JsonObject) -> dict[str, Any]:
    """Return JSON whose texts hold no control characters; names of members stay."""
    clean = partial(sanitize, limit=sys.maxsize)
    texts = mapped(writable(value), lambda one: clean(one) if isinstance(one, str) else one)
    return as_object(texts)
