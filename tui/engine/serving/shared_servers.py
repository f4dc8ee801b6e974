"""What other clients get of an engine's servers: their lists, and answers to requests.

Requests and answers are MCP's, as JSON. Lists have gemdeck's names; all else is as the servers
wrote it, without control characters in texts and with secrets masked.
"""

import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from tui.engine.engine import Engine
from tui.engine.mcp.catalog.offered_tool import JsonObject, TextPart, ToolCallError
from tui.engine.mcp.errors import ServerCallError
from tui.model.bounded_json import as_list, as_object, mapped, text_in, writable
from tui.model.catalog import Catalog
from tui.model.chat import Progress, Severity
from tui.model.consent import Caller
from tui.model.events import (
    OWN_SOURCE,
    CatalogChanged,
    Event,
    LogLine,
    ServerLogged,
    ToolCallChanged,
    ToolCallProgressed,
)
from tui.model.frozen import Frozen
from tui.model.runs import BY_HAND
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
"""Seconds that a request waits for servers that start for the first time."""

_READING: Final = "read_mcp_resource"
"""What rules call it when the model reads a resource."""

_TOOLS: Final = "tools/list"
_PROMPTS: Final = "prompts/list"
_RESOURCES: Final = "resources/list"
_TEMPLATES: Final = "resources/templates/list"
_LISTS: Final[Mapping[str, tuple[str, str, str, str]]] = {
    _TOOLS: ("tools", "tools", "name", "id"),
    _PROMPTS: ("prompts", "prompts", "name", "name"),
    _RESOURCES: ("resources", "resources", "uri", "uri"),
    _TEMPLATES: ("resourceTemplates", "templates", "uriTemplate", "uri_template"),
}
"""The key of each list in its result and in a catalog, and of its items' names on both sides."""

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
        await self._engine.wait_ready(PATIENCE)
        if method in _LISTS:
            listed = self._tools() if method == _TOOLS else self._listed(method)
            return {_LISTS[method][0]: [one.item for one in listed]}
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
        offered = self._engine.servers.offered_tools(self._profile)
        kept = {one: self._by_key(one, "tools", "name") for one in {t.server for t in offered}}
        for tool in offered:
            raw = {**kept[tool.server][tool.name], "name": tool.id}
            yield Listed(tool.server, tool.view.name, _cleaned(raw))

    def _listed(self, method: str) -> Iterator[Listed]:
        """Give prompts, resources or templates; of several with one name or address the first."""
        _, kind, key, shown = _LISTS[method]
        seen = set[str]()
        for server, catalog in self._catalogs():
            if kind != "prompts" and self._is_unreadable(server):
                continue
            raw = self._by_key(server, kind, key)
            for view in getattr(catalog, kind):
                name = getattr(view, shown)
                own = raw.get(getattr(view, "own_name", "") or name)
                if own is not None and not view.problem and name not in seen:
                    seen.add(name)
                    yield Listed(server, name, _cleaned({**own, key: name}))

    def _catalogs(self) -> Iterator[tuple[ServerId, Catalog]]:
        """Give the catalogs of the servers that the profile has."""
        servers = self._engine.servers
        shared = (one for one in servers.callable_servers if self._profile.includes(one))
        return ((one, servers.registry.catalog(one)) for one in shared)

    def _is_unreadable(self, server: ServerId) -> bool:
        """Return whether a rule denies the resources of a server to the model."""
        definition = self._engine.servers.registry.definition(server)
        hidden = self._engine.access.policy.hidden
        return definition is None or bool(hidden(definition, [(_READING, "")]))

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
            match event:
                case ToolCallProgressed(progress=Progress() as progress):
                    on_progress(progress)
                case ToolCallChanged(status=status):
                    publish(replace(event, conversation=BY_HAND))
                    if status.is_over:
                        words = f"{tool.view.name} for {self._caller.words}: {status.value}"
                        line = LogLine(time.time(), OWN_SOURCE, Severity.INFO, words)
                        publish(ServerLogged(tool.server, (line,)))

        publish, call = self._engine.runs.publish, self._engine.runs.call
        try:
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
        found = _find(self._listed(_PROMPTS), name, "prompt")
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
        for one in self._listed(_RESOURCES):
            if one.name == uri:
                return one.server
        fitting = [
            one for one in self._listed(_TEMPLATES) if uri.startswith(one.name.partition("{")[0])
        ]
        if not fitting:
            shown = sanitize(uri)
            about = {"data": {"uri": shown}}
            raise RequestRefusedError(f"There is no resource {shown}.", BAD_PARAMS, about)
        return max(fitting, key=lambda one: len(one.name.partition("{")[0])).server

    async def _complete(self, params: JsonObject, _: OnProgress) -> JsonObject:
        ref, argument = as_object(params.get("ref")), as_object(params.get("argument"))
        if target := text_in(ref, "name"):
            server = _find(self._listed(_PROMPTS), target, "prompt").server
            target = self._engine.servers.registry.own_prompt_name(server, target)
        else:
            target = text_in(ref, "uri")
            server = _find(self._listed(_TEMPLATES), target, "resource template").server
        context = as_object(as_object(params.get("context")).get("arguments"))
        features = await self._engine.servers.awake(server)
        given = {key: str(value) for key, value in context.items()}
        name, value = text_in(argument, "name"), text_in(argument, "value")
        found = await features.complete(target, name, value, given)
        total = {} if found.total is None else {"total": found.total}
        return {"completion": {"values": list(found.values), "hasMore": found.has_more, **total}}


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
