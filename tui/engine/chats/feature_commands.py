"""Commands on the servers' resources, completions, links and log levels."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from tui.engine.background import TaskSet
from tui.engine.browser import open_outside
from tui.engine.bus import Publish
from tui.engine.chats.turn import Message, MessageContent
from tui.engine.files.atomic import temporary_folder
from tui.engine.files.paths import shown_path
from tui.engine.files.saved import write_new, write_picture, write_resource, write_result
from tui.engine.mcp.catalog.offered_tool import CompletionValues
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.manager import ServerManager
from tui.engine.workspace import Workspace, existing_folder, folders_like
from tui.model import events as e
from tui.model.chat import Picture, Severity
from tui.model.input.typed import typed_command
from tui.model.runs import PromptRendered, ToolRun
from tui.model.servers import ServerId
from tui.text import counted, sanitize_line

MAX_RUNNING: Final = 20
"""Most requests at once; further ones are refused."""

MAX_PATHS: Final = 10
"""Paths offered at once."""

EXPORTED_AT_ONCE: Final = 50
"""Frames that are masked for an export before other tasks have a turn."""

REREAD_INTERVAL: Final = 0.5
"""Minimum seconds between two reads of a changing resource."""

logger = logging.getLogger(__name__)


class FeatureCommands:
    """Runs commands on resources, completions, links and log levels.

    Each command returns at once and publishes its result. Use it as an async context manager:
    leaving it cancels running requests.

    Args:
        servers: The servers.
        context: Stores subscriptions and opens addresses.
        publish: Publishes events.

    Attributes:
        workspace: The opened folders.
        rendered: The prompt that was rendered last for the user to look at, as a message, and its
            token.
    """

    def __init__(self, servers: ServerManager, context: ClientContext, publish: Publish) -> None:
        self._servers, self._context, self._publish = servers, context, publish
        self.workspace = Workspace(lambda: context.workspaces)
        self.rendered: tuple[str, Message] | None = None
        self._tasks = TaskSet("a request to a server failed", self._failed)
        self._shown: tuple[ServerId, str] | None = None
        self._latest: dict[str, asyncio.Task[None] | None] = {}
        self._is_stale = False
        self._lent: Path | None = None
        self._stack = ExitStack()
        self._subscribing: defaultdict[ServerId, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._followers: defaultdict[tuple[ServerId, str], set[object]] = defaultdict(set)
        context.resource_updated = self._resource_updated

    async def __aenter__(self) -> "FeatureCommands":
        self.open_folders(())
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._tasks.aclose()
        await asyncio.to_thread(self._stack.close)

    def read_resource(self, server: ServerId, uri: str) -> None:
        """Read a resource for the user; earlier reads are cancelled."""
        self._cancel("reread")  # it rereads the resource shown before
        self._shown = (server, uri)
        self._start_anew("read", self._read(server, uri))

    def render_prompt(
        self, token: str, server: ServerId, prompt: str, values: Mapping[str, str]
    ) -> None:
        """Let a server render a prompt for the user to look at; earlier requests are cancelled.

        It arrives as `PromptRendered`, and is kept to be sent as it is.
        """
        given = dict(values)

        async def render() -> None:
            try:
                rendered = await self._servers.render_prompt(server, prompt, given)
            except ServerCallError as error:
                self._publish(PromptRendered(token, failure=sanitize_line(str(error))))
                return
            typed = typed_command(prompt, given)
            self.rendered = token, Message(typed, MessageContent.of_prompt(typed, server, rendered))
            self._publish(PromptRendered(token, rendered.messages))

        self.rendered = None
        self._start_anew("render", render())

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
        """Complete an argument; it arrives as `ArgumentCompleted`, unless another is asked for.

        Args:
            token: Identifies the request in the event.
            server: The server to ask.
            target: A prompt's name, or a resource template's URI template.
            argument: The argument's name.
            value: The text typed so far.
            context: The other arguments already filled in.
        """
        others = dict(context)

        async def ask() -> CompletionValues:
            try:
                features = await self._servers.awake(server)
                own = self._servers.registry.own_prompt_name(server, target)
                return await features.complete(own, argument, value, others)
            except ServerCallError as error:
                logger.debug("a completion failed: %s", error)
                return CompletionValues()

        self._complete(token, ask)

    def complete_path(self, token: str, typed: str) -> None:
        """Complete a path of the workspace; an earlier completion is cancelled."""
        self._complete(token, partial(_found, self.workspace.complete, typed, MAX_PATHS))

    def complete_folder(self, token: str, typed: str) -> None:
        """Complete the path of a folder anywhere; an earlier completion is cancelled."""
        base = self._context.workspaces[0]
        self._complete(token, partial(_found, folders_like, typed, base, MAX_PATHS))

    def _complete(self, token: str, ask: Callable[[], Awaitable[CompletionValues]]) -> None:
        async def complete() -> None:
            found = await ask()
            self._publish(e.ArgumentCompleted(token, found.values, found.has_more))

        self._start_anew("complete", complete())

    def add_folder(self, typed: str) -> None:
        """Open one more folder until the end of the run, and tell the servers."""
        self._start(self._add_folder(typed))

    async def _add_folder(self, typed: str) -> None:
        folders = self._context.workspaces
        try:
            folder = await asyncio.to_thread(existing_folder, typed, folders[0])
        except ValueError as error:
            self._say(Severity.WARNING, str(error))
            return
        if folder in folders:
            self._say(Severity.INFO, f"{shown_path(folder, Path.home())} is already open.")
            return
        self.open_folders([folder])
        for server in self._servers.catalogs:
            with suppress(ServerCallError):  # it is told when it is ready
                self._tasks.start(self._servers.features(server).tell_roots_changed())
        words = f"{shown_path(folder, Path.home())} was added; the servers were notified."
        self._say(Severity.INFO, words)

    def open_folders(self, further: Iterable[Path]) -> None:
        """Let servers that start from now on have further roots."""
        self._context.workspaces = tuple(dict.fromkeys((*self._context.workspaces, *further)))
        folders = tuple(shown_path(folder, Path.home()) for folder in self._context.workspaces)
        self._publish(e.FoldersOpened(folders))

    def set_log_level(self, server: ServerId, level: str) -> None:
        self._start(self._set_log_level(server, level))

    def open_link(self, url: str) -> None:
        self._start(self._open_link(url))

    def open_picture(self, picture: Picture) -> None:
        """Open a picture in another program, from a file that goes with the end of the run."""
        self._start(self._open_picture(picture))

    async def _open_picture(self, picture: Picture) -> None:
        self._lent = self._lent or self._stack.enter_context(temporary_folder())
        path = await self.write("picture", write_picture, self._lent, picture.data)
        if path is not None and not await open_outside(str(path)):
            self._say(Severity.INFO, "No program to open pictures was found.")

    def save_picture(self, picture: Picture) -> None:
        """Write a picture to a new file in the opened folder."""
        self._start(self.write("picture", write_picture, self._context.workspaces[0], picture.data))

    def save_resource(self, read: e.ResourceRead) -> None:
        """Write a resource as it was read to a new file in the opened folder."""
        what = self._context.workspaces[0], read.uri, read.raw["contents"]
        self._start(self.write("resource", write_resource, *what))

    def save_result(self, run: ToolRun, *, as_json: bool) -> None:
        """Write the result of a call by hand to a new file in the opened folder.

        Args:
            run: The call, which has a result.
            as_json: Whether to write what the server sent as a whole; else the texts in it.
        """
        folder = self._context.workspaces[0]
        self._start(self.write("result", partial(write_result, as_json=as_json), folder, run))

    def export_frames(self, numbers: Sequence[int]) -> None:
        """Write frames to a new file in the opened folder, as a trace holds them."""
        self._tasks.start(self._export_frames(numbers))

    async def _export_frames(self, numbers: Sequence[int]) -> None:
        lines = list[str]()
        for at in range(0, len(numbers), EXPORTED_AT_ONCE):
            lines.append(self._context.wire.export(numbers[at : at + EXPORTED_AT_ONCE]))
            await asyncio.sleep(0)
        raw, what = "\n".join([*lines, ""]).encode(), counted(len(numbers), "frame")
        where = self._context.workspaces[0], "frames", ".jsonl"
        await self.write(f"export of {what}", write_new, *where, raw)

    async def write(self, noun: str, write: Callable[..., Path], *what: object) -> Path | None:
        """Write a file in a thread, and say where it is or why it is not."""
        try:
            path = await asyncio.to_thread(write, *what)
        except (OSError, ValueError) as error:
            words = getattr(error, "strerror", None) or error
            self._say(Severity.ERROR, f"The {noun} could not be saved: {words}.")
            return None
        self._say(Severity.INFO, f"The {noun} was saved to {shown_path(path, Path.home())}.")
        return path

    async def _open_link(self, url: str) -> None:
        if not await self._context.open_url(url):
            self._say(Severity.WARNING, "No program to open links was found.")

    async def _read(self, server: ServerId, uri: str) -> None:
        try:
            reading = await (await self._servers.awake(server)).read_resource(uri)
        except ServerCallError as error:
            self._publish(e.ResourceRead(server, uri, failure=sanitize_line(str(error))))
            return
        shown = reading.content, "", reading.pictures
        self._publish(e.ResourceRead(server, uri, *shown, raw=reading.raw))

    async def follow(self, server: ServerId, uri: str, who: object, *, subscribed: bool) -> None:
        """Subscribe somebody to a resource, or unsubscribe; the server knows one for all of them.

        Raises:
            ServerCallError: If the server does not take it.
        """
        wanted = self._context.subscriptions.setdefault(server, set())
        async with self._subscribing[server]:
            followers = self._followers[server, uri]
            if not subscribed:
                followers.discard(who)
                if followers:
                    return
                wanted.discard(uri)
            features = await self._servers.awake(server)
            if not subscribed:
                await features.unsubscribe(uri)
                return
            await features.subscribe(uri)
            wanted.add(uri)
            followers.add(who)

    async def _subscribe(self, server: ServerId, uri: str, *, subscribed: bool) -> None:
        try:
            await self.follow(server, uri, None, subscribed=subscribed)
        except ServerCallError as error:
            self._say(Severity.ERROR, f"Subscribing to {uri} of {server} failed: {error}")
            if subscribed:
                return
        self._publish(e.SubscriptionChanged(server, uri, subscribed))

    async def _set_log_level(self, server: ServerId, level: str) -> None:
        try:
            await (await self._servers.awake(server)).set_log_level(level)
        except ServerCallError as error:
            self._say(Severity.ERROR, f"The log level of {server} was not changed: {error}")

    def _resource_updated(self, server: ServerId, uri: str) -> None:
        """Reread the shown resource, at most once per `REREAD_INTERVAL`; tell other clients."""
        if self._followers.get((server, uri), set()) - {None}:
            self._publish(e.ResourceUpdated(server, uri))
        if (server, uri) != self._shown:
            return
        self._is_stale = True
        rereading = self._latest.get("reread")
        if rereading is None or rereading.done():
            self._start_anew("reread", self._reread())

    async def _reread(self) -> None:
        while self._is_stale and self._shown is not None:
            self._is_stale = False
            await self._read(*self._shown)
            await asyncio.sleep(REREAD_INTERVAL)

    def _say(self, severity: Severity, words: str) -> None:
        self._publish(e.NoticeRaised(e.Notice(severity, sanitize_line(words), is_answer=True)))

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any] | None:
        if len(self._tasks) >= MAX_RUNNING:
            work.close()
            words = f"{MAX_RUNNING} requests are already running. Try again later."
            self._say(Severity.ERROR, words)
            return None
        return self._tasks.start(work)

    def _start_anew(self, kind: str, work: Coroutine[Any, Any, None]) -> None:
        """Start what takes the place of an earlier request of its kind."""
        self._cancel(kind)
        self._latest[kind] = self._start(work)

    def _cancel(self, kind: str) -> None:
        if (task := self._latest.pop(kind, None)) is not None:
            task.cancel()

    def _failed(self, error: BaseException) -> None:
        self._say(Severity.ERROR, f"A request failed unexpectedly ({type(error).__name__}).")


async def _found(find: Callable[..., Iterable[str]], *about: object) -> CompletionValues:
    """Look for paths in a thread."""
    return CompletionValues(tuple(await asyncio.to_thread(find, *about)))
