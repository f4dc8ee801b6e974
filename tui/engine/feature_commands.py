"""Commands on the servers' prompts, resources, completions, links and log levels."""

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final

from tui.engine.bus import Publish
from tui.engine.chat.turn import Message
from tui.engine.mcp.catalog.offered_tool import Completion, JsonObject, MediaPart, TextPart
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.manager import ServerManager
from tui.engine.tasks import TaskSet
from tui.model.chat import Severity
from tui.model.events import (
    ArgumentCompleted,
    Notice,
    NoticeRaised,
    ResourceRead,
    SubscriptionChanged,
)
from tui.model.servers import ServerId
from tui.text import clip, for_model, sanitize, sanitize_line

MAX_RUNNING: Final = 20
"""Most requests at once; further ones are refused."""

REREAD_INTERVAL: Final = 0.5
"""Minimum seconds between two reads of a changing resource."""

MAX_KEPT: Final = 500
"""Characters of an unsent message that a notice repeats."""

logger = logging.getLogger(__name__)


class FeatureCommands:
    """Runs commands on prompts, resources, completions, links and log levels.

    Each command returns at once and publishes its result. Use it as an async context manager:
    leaving it cancels running requests.

    Args:
        servers: The servers.
        context: Stores subscriptions and opens addresses.
        publish: Publishes events.
        send: Sends a message to the model.
    """

    def __init__(
        self,
        servers: ServerManager,
        context: ClientContext,
        publish: Publish,
        send: Callable[[Message], None],
    ) -> None:
        self._servers = servers
        self._context = context
        self._publish = publish
        self._send = send
        self._tasks = TaskSet("a request to a server failed", self._failed)
        self._shown: tuple[ServerId, str] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._rereading: asyncio.Task[None] | None = None
        self._completing: asyncio.Task[None] | None = None
        self._is_stale = False
        self._subscribing: defaultdict[ServerId, asyncio.Lock] = defaultdict(asyncio.Lock)
        context.resource_updated = self._resource_updated

    async def __aenter__(self) -> "FeatureCommands":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._tasks.aclose()

    def send_prompt(self, server: ServerId, prompt: str, arguments: Mapping[str, str]) -> None:
        self._start(_carry_out(partial(self.deliver_prompt, server, prompt, arguments)))

    def read_resource(self, server: ServerId, uri: str) -> None:
        """Read a resource for the user; earlier reads are cancelled."""
        _cancel(self._reading)
        _cancel(self._rereading)  # it rereads the resource shown before
        self._rereading = None
        self._shown = (server, uri)
        self._reading = self._start(self._read(server, uri))

    def send_resource(self, server: ServerId, uri: str, text: str) -> None:
        self._start(_carry_out(partial(self.deliver_resources, [(server, uri)], text)))

    def subscribe(self, server: ServerId, uri: str, *, subscribed: bool) -> None:
        """Subscribe to a resource or unsubscribe from it; the last request wins."""
        self._start(self._subscribe(server, uri, subscribed=subscribed))

    def complete(
        self,
        token: str,
        server: ServerId,
        target: str,
        argument: str,
        value: str,
        context: Mapping[str, str],
    ) -> None:
        """Complete an argument; an earlier completion is cancelled."""
        _cancel(self._completing)
        work = self._complete(token, server, target, argument, value, dict(context))
        self._completing = self._start(work)

    def set_log_level(self, server: ServerId, level: str) -> None:
        self._start(self._set_log_level(server, level))

    def open_link(self, url: str) -> None:
        self._start(self._open_link(url))

    async def _open_link(self, url: str) -> None:
        if not await self._context.open_url(url):
            words = "No program to open links was found."
            self._publish(NoticeRaised(Notice(Severity.WARNING, words)))

    async def deliver_prompt(
        self, server: ServerId, prompt: str, arguments: Mapping[str, str]
    ) -> bool:
        """Render a prompt and send it; return whether it was sent."""
        command = _shown_command(prompt, arguments)
        try:
            own = self._servers.own_prompt_name(server, prompt)
            rendered = await self._servers.features(server).get_prompt(own, dict(arguments))
        except ServerCallError as error:
            self._report_error(f"{command} of {server} was not sent: {error}")
            return False
        shown = f"{command}\n\n{rendered.shown}"
        self._send(Message(shown, rendered.parts, command, (server,), rendered.before))
        return True

    async def _read(self, server: ServerId, uri: str) -> None:
        try:
            reading = await self._servers.features(server).read_resource(uri)
        except ServerCallError as error:
            self._publish(ResourceRead(server, uri, failure=sanitize_line(str(error))))
            return
        self._publish(ResourceRead(server, uri, reading.content))

    async def deliver_resources(self, wanted: Sequence[tuple[ServerId, str]], text: str) -> bool:
        """Read resources and send them with a text; return whether they were sent."""
        words = sanitize(text).strip()
        shown: list[str] = [words] if words else []
        parts: list[TextPart | MediaPart | JsonObject] = []
        if words:
            parts.append(TextPart(for_model(text.strip())[0]))
        for server, uri in wanted:
            try:
                reading = await self._servers.features(server).read_resource(uri)
            except ServerCallError as error:
                kept = f": {clip(words, MAX_KEPT)}" if words else ""
                self._report_error(f"{uri} of {server} could not be read ({error}). Not sent{kept}")
                return False
            size = f"{len(reading.content.text):,} characters" if reading.content.text else ""
            what = ", ".join(part for part in (size, *reading.content.blobs) if part) or "empty"
            shown.append(f"[{sanitize_line(uri)} of {server}: {what}] {reading.remark}".strip())
            parts += reading.parts
        servers = tuple(dict.fromkeys(server for server, _ in wanted))
        self._send(Message("\n\n".join(shown), tuple(parts), words, servers))
        return True

    async def _subscribe(self, server: ServerId, uri: str, *, subscribed: bool) -> None:
        async with self._subscribing[server]:
            wanted = self._context.subscriptions.setdefault(server, set())
            try:
                features = self._servers.features(server)
                if subscribed:
                    await features.subscribe(uri)
                    wanted.add(uri)
                else:
                    wanted.discard(uri)
                    await features.unsubscribe(uri)
            except ServerCallError as error:
                self._report_error(f"Subscribing to {uri} of {server} failed: {error}")
                if subscribed:
                    return
            self._publish(SubscriptionChanged(server, uri, subscribed))

    async def _complete(
        self,
        token: str,
        server: ServerId,
        target: str,
        argument: str,
        value: str,
        context: dict[str, str],
    ) -> None:
        try:
            features = self._servers.features(server)
            own = self._servers.own_prompt_name(server, target)
            completion = await features.complete(own, argument, value, context)
        except ServerCallError as error:
            logger.debug("a completion failed: %s", error)
            completion = Completion()
        self._publish(ArgumentCompleted(token, completion.values, completion.has_more))

    async def _set_log_level(self, server: ServerId, level: str) -> None:
        try:
            await self._servers.features(server).set_log_level(level)
        except ServerCallError as error:
            self._report_error(f"The log level of {server} was not changed: {error}")

    def _resource_updated(self, server: ServerId, uri: str) -> None:
        """Reread the shown resource, at most once per `REREAD_INTERVAL`."""
        if (server, uri) != self._shown:
            return
        self._is_stale = True
        if self._rereading is None or self._rereading.done():
            self._rereading = self._start(self._reread())

    async def _reread(self) -> None:
        while self._is_stale and self._shown is not None:
            self._is_stale = False
            await self._read(*self._shown)
            await asyncio.sleep(REREAD_INTERVAL)

    def _report_error(self, text: str) -> None:
        self._publish(NoticeRaised(Notice(Severity.ERROR, sanitize_line(text))))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        if len(self._tasks) >= MAX_RUNNING:
            work.close()
            self._report_error(f"{MAX_RUNNING} requests are already running. Try again later.")
            return None
        return self._tasks.start(work)

    def _failed(self, error: BaseException) -> None:
        self._report_error(f"A request failed unexpectedly ({type(error).__name__}).")


async def _carry_out(work: Callable[[], Coroutine[Any, Any, bool]]) -> None:
    await work()


def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()


def _shown_command(prompt: str, arguments: Mapping[str, str]) -> str:
    """Return the slash command that sends a prompt."""
    words = [f"/{prompt}"]
    words += [
        f"--{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items()
    ]
    return sanitize_line(" ".join(words))
