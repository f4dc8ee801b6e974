"""What other clients get of an engine's servers: their lists, and answers to requests.

Requests and answers are MCP's, as JSON. Lists have gemdeck's names; all else is as the servers
wrote it, without control characters in texts and with secrets masked.
"""

import asyncio
import secrets
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from tui.engine.chats.calls import told_changes
from tui.engine.chats.own_tools import make_own_tool, of_server
from tui.engine.engine import Engine
from tui.engine.mcp.catalog.offered_tool import (
    JsonObject,
    OwnTool,
    TextPart,
    ToolCallError,
    ToolResult,
)
from tui.engine.mcp.catalog.skill_entry import OpenSkills
from tui.engine.mcp.context import FORM_TAKER
from tui.engine.mcp.errors import ServerCallError
from tui.model.bounded_json import as_list, as_object, mapped, text_in, whole_numbers, writable
from tui.model.chat import Progress, Severity, ToolCallStatus
from tui.model.consent import Caller
from tui.model.events import (
    OWN_SOURCE,
    CatalogChanged,
    Event,
    LogLine,
    ResourceUpdated,
    ServerLogged,
    ToolCallChanged,
    ToolCallDecided,
    ToolCallProgressed,
)
from tui.model.frozen import Frozen
from tui.model.input.arguments import read_arguments
from tui.model.models import ProfilesSet
from tui.model.runs import BY_HAND
from tui.model.servers import ServerId
from tui.model.settings import NOTHING, Profile
from tui.text import AdvisedError, sanitize, sanitize_line

NO_SUCH_METHOD: Final = -32601
"""JSON-RPC: the method does not exist."""

BAD_PARAMS: Final = -32602
"""JSON-RPC: the parameters cannot be used."""

NOT_ANSWERED: Final = -32000
"""A server gave no answer, or refused without a code of its own."""

PATIENCE: Final = 10.0
"""Seconds that a request waits for servers that start for the first time."""

MAX_FOLLOWED: Final = 20
"""Most resources that one client may follow."""

MAX_HELD: Final = 8
"""Calls of one client that wait for it to fill in a form; of more, the oldest is cancelled."""

FORM_SECONDS: Final = 600.0
"""Seconds that a client has for a form."""

MAX_LOGGED: Final = 20
"""Messages of a server's log that a client gets at once, twenty times a second; the newest."""

LEAVE_SECONDS: Final = 2.0
"""Seconds that the end of a client waits for servers to end its subscriptions."""

CANCELLED: Final = "notifications/cancelled"
"""With its `requestState`, cancels a call that waits for its client to fill in a form."""

_READING: Final = "read_mcp_resource"
"""What rules call it when the model or a client reads a resource."""

_PROMPTING: Final = "get_mcp_prompt"
"""What rules call it when a client gets a prompt."""

_ANSWERING: Final = "answer_form"
"""What rules call it when a client answers a form of a server."""

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

CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
"""Where a stateless request declares the capabilities of its client."""

_FORM: Final = "form"

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


_Answer = asyncio.Future[JsonObject]


class _Call:
    """A call of a client, over several of its requests if it fills in forms.

    Attributes:
        work: Ends with the result.
        report: Takes progress.
        forms: What the client is to fill in, and where its answer goes; None at the end.
        one_by_one: Held while it fills in a form.
    """

    work: asyncio.Task[JsonObject]
    report: OnProgress

    def __init__(self) -> None:
        self.forms = asyncio.Queue[tuple[JsonObject, _Answer] | None]()
        self.one_by_one = asyncio.Lock()


class SharedServers:
    """The servers of an engine, for one other client.

    Args:
        engine: The engine.
        caller: The client.
        profile: The name of the profile of what it gets, as the settings have it by then.
    """

    def __init__(self, engine: Engine, caller: Caller, profile: str = "") -> None:
        self._engine, self._caller, self._named = engine, caller, profile
        self._answers: Mapping[str, _Answerer] = {
            "tools/call": self._call,
            "prompts/get": self._prompt,
            "resources/read": self._read,
            "completion/complete": self._complete,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            CANCELLED: self._drop,
        }
        self._keeps_forms, self._held = set[ServerId](), dict[str, tuple[_Call, _Answer]]()
        self._used, self._followed = set[ServerId](), set[tuple[ServerId, str]]()
        self._following = asyncio.Lock()

    @property
    def _profile(self) -> Profile:
        return self._engine.runs.turns.profiles.get(self._named, NOTHING)

    async def request(
        self, method: str, params: JsonObject, on_progress: OnProgress = lambda _: None
    ) -> JsonObject:
        """Return the result of a request. Canceling it cancels it on its server.

        Where the user lets a client that declares it answer the forms of a server, the result of
        a call may want one filled in, as in the stateless era of MCP. What else a server wants
        of the user during a call, an address opened or text of the model, is asked in the deck;
        without one it is declined.

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

    async def _call(self, params: JsonObject, on_progress: OnProgress) -> JsonObject:
        """Call a tool, or go on with a call for which the client was to fill in a form."""
        if state := text_in(params, "requestState"):
            if (held := self._held.pop(state, None)) is None:
                raise RequestRefusedError("This call is over.", BAD_PARAMS)
            call, answer = held
            if not answer.done():
                answer.set_result(as_object(as_object(params.get("inputResponses")).get(_FORM)))
        else:
            call = _Call()
            call.work = asyncio.create_task(self._call_tool(params, call))
            call.work.add_done_callback(lambda _: call.forms.put_nowait(None))
        call.report = on_progress
        try:
            if (asked := await call.forms.get()) is None:
                return await call.work
            form, answer = asked
            call.report = lambda _: None  # no request waits while the client fills it in
            if len(self._held) >= MAX_HELD:
                self._held.pop(next(iter(self._held)))[0].work.cancel()
            self._held[state := secrets.token_hex(8)] = call, answer
            wanted = {_FORM: {"method": "elicitation/create", "params": form}}
            return {"resultType": "input_required", "inputRequests": wanted, "requestState": state}
        finally:
            if all(held is not call for held, _ in self._held.values()):
                call.work.cancel()
                await asyncio.wait({call.work})

    async def _drop(self, params: JsonObject, _: OnProgress) -> JsonObject:
        """Cancel a call that waits for its client to fill in a form."""
        if (held := self._held.pop(text_in(params, "requestState"), None)) is not None:
            held[0].work.cancel()
        return {}

    async def _hand_on(
        self, call: "_Call", server: ServerId, form: JsonObject
    ) -> JsonObject | None:
        """Let the client answer a form; None if the user should, who decides that once."""

        async def hand_on(given: JsonObject) -> ToolResult:
            try:
                async with call.one_by_one, asyncio.timeout(FORM_SECONDS):
                    answer: _Answer = asyncio.get_running_loop().create_future()
                    call.forms.put_nowait((_cleaned(given), answer))
                    return ToolResult((), "", raw=await answer)
            except TimeoutError as error:
                raise ToolCallError("The client did not answer.") from error

        if server in self._keeps_forms:
            return None
        own = {"trusted": False, "is_reviewed": False}
        words = f"Let {self._caller.name} answer this form of the server. Deny to answer it here."
        try:
            result, _ = await self._run_own(server, _ANSWERING, words, form, hand_on, **own)
        except AdvisedError:
            self._keeps_forms.add(server)
            return None
        return result.raw

    async def changes(self) -> AsyncGenerator[JsonObject, None]:
        """Give notifications for the client, as in MCP.

        Lists that change, resources that it follows, and what servers log that it has used.
        """
        try:
            with closing(self._engine.events()) as events:
                async for event in events:
                    for one in self._told(event):
                        yield one
        finally:
            for call, _ in self._held.values():
                call.work.cancel()
            follow = partial(self._engine.features.follow, subscribed=False)
            leaving = [follow(*one, self) for one in self._followed]
            with suppress(TimeoutError):
                ended = asyncio.gather(*leaving, return_exceptions=True)
                await asyncio.wait_for(ended, LEAVE_SECONDS)

    def _told(self, event: Event) -> Iterator[JsonObject]:
        match event:
            case CatalogChanged() | ProfilesSet():
                for kind in ("tools", "prompts", "resources"):
                    yield {"method": f"notifications/{kind}/list_changed"}
            case ResourceUpdated(server, uri) if (server, uri) in self._followed:
                if not self._is_denied(server, _READING):
                    yield {"method": "notifications/resources/updated", "params": {"uri": uri}}
            case ServerLogged(server, lines) if server in self._used:
                has_it = self._profile.includes(server)
                logged = [line for line in lines if has_it and line.source == "log"]
                for line in logged[-MAX_LOGGED:]:
                    said = {"level": line.level, "logger": server, "data": line.text}
                    yield {"method": "notifications/message", "params": said}

    def _tools(self) -> Iterator[Listed]:
        offered = self._engine.servers.offered_tools(self._profile)
        kept = {one: self._by_key(one, "tools", "name") for one in {t.server for t in offered}}
        for tool in offered:
            raw = {**kept[tool.server][tool.name], "name": tool.id}
            if tool.is_reviewed:  # what the user trims is no longer structured
                raw.pop("outputSchema", None)
            yield Listed(tool.server, tool.view.name, _cleaned(raw))

    def _listed(self, method: str) -> Iterator[Listed]:
        """Give prompts, resources or templates; of several with one name or address the first."""
        _, kind, key, shown = _LISTS[method]
        seen = set[str]()
        servers = self._engine.servers
        for server in servers.callable_servers:
            if self._is_denied(server, _PROMPTING if kind == "prompts" else _READING):
                continue
            raw = self._by_key(server, kind, key)
            for view in getattr(servers.registry.catalog(server), kind):
                name = getattr(view, shown)
                own = raw.get(getattr(view, "own_name", "") or name)
                if own is not None and not view.problem and name not in seen:
                    seen.add(name)
                    yield Listed(server, name, _cleaned({**own, key: name}))

    def _is_denied(self, server: ServerId, name: str) -> bool:
        """Return whether the profile or a rule leaves out resources or prompts of a server."""
        definition = self._engine.servers.registry.definition(server)
        if definition is None or not self._profile.includes(server):
            return True
        return bool(self._engine.access.policy.hidden(definition, [(name, "")]))

    def _by_key(self, server: ServerId, kind: str, key: str) -> Mapping[str, JsonObject]:
        listed = as_list(getattr(self._engine.servers.registry.listed(server), kind))
        return {text_in(one, key): one for one in map(as_object, reversed(listed))}

    async def _call_tool(self, params: JsonObject, call: "_Call") -> JsonObject:
        """Call a tool; if it did not run, the result says why, for the client's model."""
        name, arguments = text_in(params, "name"), params.get("arguments") or {}
        offered = self._engine.servers.offered_tools(self._profile)
        if (tool := next((one for one in offered if one.id == name), None)) is None:
            raise RequestRefusedError(f"There is no tool {sanitize(name)}.", BAD_PARAMS)
        if _fills_in_forms(params):
            FORM_TAKER.set(partial(self._hand_on, call))

        def report(one: Progress) -> None:
            call.report(one)  # to the request that waits by then

        try:
            result, edit = await self._run(tool.server, tool.view.name, arguments, report)
        except ToolCallError as error:
            return _result(str(error), is_error=True)
        if result.raw is None:
            return _result(*edit, *_texts(result), is_error=result.is_error)
        content = [*map(_text, edit), *as_list(result.raw.get("content"))]
        return _cleaned({**result.raw, "content": content})

    async def _run(
        self,
        server: ServerId,
        tool: str | OwnTool,
        arguments: JsonObject,
        report: OnProgress = lambda _: None,
        **more: Any,  # noqa: ANN401 - of `ToolRuns.call`
    ) -> tuple[ToolResult, list[str]]:
        """Run a request of the client; return also how the user changed it, in words.

        Raises:
            ToolCallError: If it did not run; the text says why.
        """
        publish, edit = self._engine.runs.publish, list[str]()

        def heed(event: Event) -> None:
            match event:
                case ToolCallProgressed(progress=Progress() as progress):
                    report(progress)
                case ToolCallDecided():
                    publish(event)
                case ToolCallChanged(status=status, arguments=edited):
                    if edited is not None:
                        changes = whole_numbers(arguments), read_arguments(edited)
                        edit.append(told_changes(*changes))
                    publish(replace(event, conversation=BY_HAND))
                    if status is ToolCallStatus.RUNNING:
                        self._used.add(server)
                    if status.is_over:
                        name = tool.name if isinstance(tool, OwnTool) else tool
                        words = f"{name} for {self._caller.words}: {status.value}"
                        line = LogLine(time.time(), OWN_SOURCE, Severity.INFO, words)
                        publish(ServerLogged(server, (line,)))

        run = partial(self._engine.runs.call, heed=heed, caller=self._caller)
        result = await run(server, tool, arguments, **more)
        # a result that wants input is ours alone to give
        raw = {key: one for key, one in (result.raw or {}).items() if key != "resultType"}
        return replace(result, raw=result.raw and raw), edit

    async def _run_own(
        self,
        server: ServerId,
        name: str,
        words: str,
        arguments: JsonObject,
        run: Callable[[JsonObject], Awaitable[ToolResult]],
        **more: Any,  # noqa: ANN401 - of `OwnTool`
    ) -> tuple[ToolResult, list[str]]:
        """Run what is no tool of a server as one of its tools, by the same rules and on record.

        Raises:
            RequestRefusedError: If it failed.
            ToolCallError: If it did not run; the text says why.
        """
        definition = self._engine.servers.registry.definition(server)
        if definition is None:
            raise ToolCallError(f"There is no server {server}.")
        made = make_own_tool(name, words, {}, run, is_free=False)
        tool = replace(of_server(made, definition, OpenSkills()), trusted=definition.trust)
        result, edit = await self._run(server, replace(tool, **more), arguments)
        if result.is_error:
            raise RequestRefusedError("\n".join(_texts(result)), NOT_ANSWERED, result.reply)
        return result, edit

    async def _prompt(self, params: JsonObject, _: OnProgress) -> JsonObject:
        name = text_in(params, "name")
        server = _find(self._listed(_PROMPTS), name, "prompt").server

        async def render(given: JsonObject) -> ToolResult:
            values = {key: str(one) for key, one in as_object(given.get("arguments")).items()}
            prompt = text_in(given, "name")
            rendered = await self._engine.servers.render_prompt(server, prompt, values)
            return ToolResult((), rendered.shown, raw=rendered.raw)

        words = "Get a prompt of an MCP server."
        asked = {"name": name, "arguments": as_object(params.get("arguments"))}
        own = {"basis": "a client's user chooses its prompts", "is_reviewed": False}
        result, edit = await self._run_own(server, _PROMPTING, words, asked, render, **own)
        raw, told = result.raw or {}, [{"role": "user", "content": _text(one)} for one in edit]
        return _cleaned({**raw, "messages": [*told, *as_list(raw.get("messages"))]})

    async def _read(self, params: JsonObject, _: OnProgress) -> JsonObject:
        uri = text_in(params, "uri")
        server, servers = self._server_of(uri), self._engine.servers

        async def read(given: JsonObject) -> ToolResult:
            wanted = text_in(given, "uri")
            if self._server_of(wanted) != server:
                raise ToolCallError(f"{server} has no resource {sanitize_line(wanted)}.")
            if OpenSkills().around(server, wanted, servers.registry.skills(server)):
                raise ToolCallError("It belongs to a skill, which only gemdeck's own chat loads.")
            reading = await (await servers.awake(server)).read_resource(wanted)
            return replace(reading.as_result(), raw=reading.raw)

        words, asked = "Read a resource of an MCP server.", {"server": server, "uri": uri}
        result, edit = await self._run_own(server, _READING, words, asked, read)
        raw = result.raw or {}
        texts = edit if result.raw is not None else [*edit, *_texts(result)]
        contents = [{"uri": uri, "text": one} for one in texts]
        return _cleaned({**raw, "contents": [*contents, *as_list(raw.get("contents"))]})

    async def _subscribe(self, params: JsonObject, _: OnProgress) -> JsonObject:
        """Follow a resource; only a listed one, as another address needs the user's approval."""
        uri = text_in(params, "uri")
        server = _find(self._listed(_RESOURCES), uri, "resource").server
        async with self._following:
            if len(self._followed) >= MAX_FOLLOWED:
                words = f"There are already {MAX_FOLLOWED} subscriptions."
                raise RequestRefusedError(words, NOT_ANSWERED)
            await self._engine.features.follow(server, uri, self, subscribed=True)
            self._followed.add((server, uri))
        return {}

    async def _unsubscribe(self, params: JsonObject, _: OnProgress) -> JsonObject:
        for server, uri in [one for one in self._followed if one[1] == text_in(params, "uri")]:
            self._followed.discard((server, uri))
            await self._engine.features.follow(server, uri, self, subscribed=False)
        return {}

    def _server_of(self, uri: str) -> ServerId:
        """Return who lists a resource, or who has a template of its beginning."""
        for one in self._listed(_RESOURCES):
            if one.name == uri:
                return one.server
        heads = [(one.name.partition("{")[0], one.server) for one in self._listed(_TEMPLATES)]
        fitting = [one for one in heads if uri.startswith(one[0])]
        if not fitting:
            shown = sanitize(uri)
            about = {"data": {"uri": shown}}
            raise RequestRefusedError(f"There is no resource {shown}.", BAD_PARAMS, about)
        return max(fitting, key=lambda one: len(one[0]))[1]

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


def _fills_in_forms(params: JsonObject) -> bool:
    """Tell whether the client of a request declares that it answers forms."""
    declared = as_object(as_object(params.get("_meta")).get(CAPABILITIES))
    forms = declared.get("elicitation")
    return isinstance(forms, dict) and ("form" in forms or "url" not in forms)


def _result(*texts: str, is_error: bool) -> JsonObject:
    return {"content": [*map(_text, texts)], "isError": is_error}


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _texts(result: ToolResult) -> list[str]:
    return [part.text for part in result.parts if isinstance(part, TextPart)]


def _cleaned(value: JsonObject) -> dict[str, Any]:
    """Return JSON without control characters in its texts; names of members are unchanged."""
    return as_object(mapped(writable(value), str, partial(sanitize, limit=sys.maxsize)))
