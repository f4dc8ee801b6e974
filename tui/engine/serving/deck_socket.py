"""The socket by which an open deck answers other programs of the user, and the way to it.

Each message is a line of JSON. The caller says first who it is; then it sends requests with their
ids, and cancels them. Back come results, errors, progress, and notifications of MCP.
"""

import asyncio
import itertools
import json
import logging
import os
import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from tui.engine.background import TaskSet, wait_within
from tui.engine.files.paths import folder_key
from tui.engine.serving.shared_servers import (
    NOT_ANSWERED,
    OnProgress,
    RequestRefusedError,
    SharedServers,
)
from tui.engine.trust.folder_identity import FolderIdentity
from tui.model.bounded_json import as_object, text_in, value_or_none
from tui.model.chat import Progress
from tui.model.frozen import Frozen
from tui.text import sanitize_line

FOLDER_NAME: Final = "decks"
"""The folder of the sockets, in the state folder."""

MAX_LINE: Final = 32 * 1024 * 1024
"""Longest message, in bytes."""

MAX_REQUEST: Final = 2 * 1024 * 1024
"""Longest message of a caller, in bytes."""

MAX_OPEN: Final = 64
"""Requests of one caller that may be open; with one more it loses its connection."""

MAX_CALLERS: Final = 64
"""Most connections that may be open; further ones are refused."""

HELLO_SECONDS: Final = 5.0
"""Seconds for a caller to introduce itself, and for a deck to accept it."""

MAX_UNREAD: Final = 1_000
"""Notifications that wait for the client; of more, the oldest are dropped."""

TAKEN_SECONDS: Final = 10.0
"""Seconds for a deck to acknowledge a request."""

STUCK_SECONDS: Final = 60.0
"""Seconds after which a caller that reads nothing loses its connection."""

_PEER: Final = struct.Struct("3i")

_log: Final = logging.getLogger(__name__)


class Hello(Frozen):
    """What a caller claims about itself.

    Attributes:
        name: What it calls itself.
        token: Its token, or an empty string.
        profile: The profile that it is for, or an empty string.
        server: The one server that a command of gemdeck wants, or an empty string.
        key: What it knows that server to be; see `lending_key`.
    """

    name: str
    token: str = ""
    profile: str = ""
    server: str = ""
    key: str = ""


Welcome = Callable[[Hello], Awaitable[SharedServers]]
"""Returns what a caller gets; raises `ValueError`, in words, for who gets nothing."""


class _Wire:
    """Lines of JSON, each way, over one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> dict[str, Any] | None:
        """Return the next message; None at the end, and for one that is too long."""
        try:
            line = await self._reader.readline()
        except (OSError, ValueError):
            return None
        return as_object(value_or_none(line)) if line.endswith(b"\n") else None

    def write(self, most: int = MAX_LINE, **message: object) -> None:
        """Send a message without waiting; one that nobody reads any more is dropped.

        Raises:
            RequestRefusedError: If it is longer than `most` bytes.
        """
        line = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        if len(line) > most:
            words = f"The message is longer than {most // 1024**2} MiB and was not sent."
            raise RequestRefusedError(words, NOT_ANSWERED)
        self._writer.write(line)

    async def send(self, most: int = MAX_LINE, **message: object) -> None:
        """Send a message, and wait while the other end is behind with reading; see `write`."""
        self.write(most, **message)
        try:
            async with asyncio.timeout(STUCK_SECONDS):
                await self._writer.drain()
        except OSError:  # a timeout, too
            self._writer.transport.abort()

    def is_behind(self) -> bool:
        """Tell whether the other end is behind with reading."""
        transport = self._writer.transport
        return transport.get_write_buffer_size() > transport.get_write_buffer_limits()[1]

    def is_own(self) -> bool:
        """Tell whether the other end is a program of this user."""
        name = getattr(socket, "SO_PEERCRED", None)
        if name is None:
            return True  # the folder of the sockets is closed to others
        raw = self._writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, name, _PEER.size)
        return bool(_PEER.unpack(raw)[1] == os.getuid())

    def close(self) -> None:
        self._writer.close()


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """Give an address of a socket whose path may be too long for the system.

    Raises:
        OSError: If its folder is a link, or another user's.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.fchmod(folder, 0o700)
        short = Path(f"/proc/self/fd/{folder}")
        yield str((short if short.is_dir() else path.parent) / path.name)
    finally:
        os.close(folder)


def _prefix(folder: FolderIdentity) -> str:
    return f"{folder_key(folder.path)[:16]}-{folder.device:x}-{folder.inode:x}-"


@asynccontextmanager
async def answering(
    state: Path | None, folder: FolderIdentity | None, welcome: Welcome
) -> AsyncIterator[None]:
    """Answer other programs of the user within the block; where no socket can be had, nobody.

    Args:
        state: The folder of gemdeck's own state.
        folder: The opened folder.
        welcome: Says what each caller gets.
    """
    if state is None or folder is None:
        yield
        return
    path = state / FOLDER_NAME / f"{_prefix(folder)}{os.getpid()}.sock"
    tasks = TaskSet("a caller's connection broke down")
    listening = socket.socket(socket.AF_UNIX)

    def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(tasks) < MAX_CALLERS:
            tasks.start(_Answering(_Wire(reader, writer), welcome).run())
        else:
            writer.close()

    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        new = path.with_suffix(".new")  # who finds it before it listens would take it for dead
        new.unlink(missing_ok=True)
        with _address(new) as address:
            listening.bind(address)
        listening.listen()
        new.chmod(0o600)
        new.rename(path)
        # start_unix_server looks for the address, gone by now
        server = await asyncio.start_server(take, sock=listening, limit=MAX_REQUEST)
    except OSError as error:
        _log.warning("other programs cannot use this deck: %s", error)
        listening.close()
        yield
        return
    try:
        yield
    finally:
        server.close()
        await tasks.aclose()
        with suppress(OSError):
            path.unlink()


class _Answering:
    """One caller's connection to an open deck."""

    def __init__(self, wire: _Wire, welcome: Welcome) -> None:
        self._wire, self._welcome = wire, welcome
        self._tasks = TaskSet("a caller's request broke down")
        self._open: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                said = await self._wire.read() if self._wire.is_own() else None
            if said is None:
                return
            hello = Hello(*(text_in(said, one.name) for one in fields(Hello)))
            try:
                servers = await self._welcome(hello)
            except (ValueError, RequestRefusedError) as error:
                await self._wire.send(refused=str(error))
                return
            await self._wire.send(welcome=True)
            self._tasks.start(self._tell_changes(servers))
            while (message := await self._wire.read()) is not None and len(self._open) <= MAX_OPEN:
                self._take(message, servers)
                await asyncio.sleep(0)  # however many have come, others get their turn
        except TimeoutError:
            pass  # who does not introduce itself in time is let go
        finally:
            self._wire.close()
            await self._tasks.aclose()

    def _take(self, message: Mapping[str, Any], servers: SharedServers) -> None:
        key, cancelled = message.get("id"), message.get("cancel")
        if type(cancelled) is int:
            if (task := self._open.get(cancelled)) is not None:
                task.cancel()
        elif type(key) is int and key not in self._open:
            self._wire.write(id=key)
            task = self._open[key] = self._tasks.start(self._answer(key, message, servers))
            task.add_done_callback(lambda _: self._open.pop(key, None))

    async def _answer(self, key: int, message: Mapping[str, Any], servers: SharedServers) -> None:
        def report(progress: Progress) -> None:
            if not self._wire.is_behind():  # else it would wait without end
                said = progress.progress, progress.total, progress.message
                self._wire.write(id=key, progress=said)

        try:
            method, params = text_in(message, "method"), as_object(message.get("params"))
            result = await servers.request(method, params, report)
            await self._wire.send(id=key, result=result)
        except RequestRefusedError as error:
            await self._wire.send(id=key, error=error.reply)
        except Exception as error:  # whatever it is, the caller waits for an answer
            words = f"The request failed ({type(error).__name__})."
            await self._wire.send(id=key, error=RequestRefusedError(words, NOT_ANSWERED).reply)
            raise

    async def _tell_changes(self, servers: SharedServers) -> None:
        async with aclosing(servers.changes()) as changes:
            async for one in changes:
                await self._wire.send(changed=one)


class DeckLink:
    """A connection to an open deck; it offers what `SharedServers` offers."""

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire
        self._numbers = itertools.count(1)
        self._waiting: dict[int, _Asked] = {}
        self._room = asyncio.Semaphore(MAX_OPEN // 2)  # for what is cancelled ends later there
        self._changed: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(MAX_UNREAD)
        self._reading = asyncio.create_task(self._read())

    async def request(
        self, method: str, params: Mapping[str, Any], on_progress: OnProgress = lambda _: None
    ) -> Mapping[str, Any]:
        """Return the result of a request; see `SharedServers.request`."""
        async with self._room:
            if self._reading.done():
                raise RequestRefusedError("The open gemdeck has ended.", NOT_ANSWERED)
            key, asked = next(self._numbers), _Asked(on_progress)
            self._waiting[key] = asked
            try:
                await self._wire.send(MAX_REQUEST, id=key, method=method, params=params)
                if not await wait_within(asked.taken, TAKEN_SECONDS):
                    words = "The open gemdeck does not answer; is it suspended?"
                    raise RequestRefusedError(words, NOT_ANSWERED)
                return await asked.answer
            finally:
                del self._waiting[key]
                if not asked.answer.done() or asked.answer.cancelled():
                    self._wire.write(cancel=key)

    async def changes(self) -> AsyncGenerator[Mapping[str, Any], None]:
        """Give notifications for the client until the deck ends; see `SharedServers`."""
        while (one := await self._changed.get()) is not None:
            yield one

    def close(self) -> None:
        self._wire.close()
        self._reading.cancel()

    async def _read(self) -> None:
        try:
            while (message := await self._wire.read()) is not None:
                if "changed" in message:
                    self._tell(as_object(message["changed"]))
                elif (asked := self._waiting.get(message.get("id", 0))) is not None:
                    asked.take(message)
        finally:
            words = "The open gemdeck ended before it answered."
            for asked in self._waiting.values():
                asked.take({"error": {"message": words}})
            self._tell(None)

    def _tell(self, one: dict[str, Any] | None) -> None:
        if self._changed.full():
            self._changed.get_nowait()
        self._changed.put_nowait(one)


class _Asked:
    """A request to a deck: whether the deck has it, and its answer."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self.taken = asyncio.Event()
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    def take(self, message: Mapping[str, Any]) -> None:
        self.taken.set()
        if "progress" in message:
            self._on_progress(Progress(*message["progress"]))
        elif "error" in message and not self.answer.done():
            error = as_object(message["error"])
            words, code = text_in(error, "message"), error.get("code", NOT_ANSWERED)
            self.answer.set_exception(RequestRefusedError(words, code, error))
        elif "result" in message and not self.answer.done():
            self.answer.set_result(as_object(message["result"]))


def sockets(state: Path | None, folder: FolderIdentity | None) -> list[Path]:
    """Return the sockets of a folder's decks, of which some may be dead."""
    if state is None or folder is None:
        return []
    found = (state / FOLDER_NAME).glob(f"{_prefix(folder)}*.sock")
    return sorted(one for one in found if not one.is_symlink())  # to another program's, say


async def find_deck(
    state: Path | None, folder: FolderIdentity | None, hello: Hello
) -> DeckLink | None:
    """Connect to the open deck of a folder, one of several; None where none is open.

    Raises:
        ValueError: If a deck refuses and none accepts; the message says why.
    """
    refusal: ValueError | None = None
    for path in sockets(state, folder):
        try:
            if (deck := await _greet(path, hello)) is not None:
                return deck
        except ConnectionRefusedError:  # its deck was killed
            with suppress(OSError):
                path.unlink()
        except OSError:
            continue
        except ValueError as error:
            refusal = error
    if refusal is not None:
        raise refusal
    return None


async def _greet(path: Path, hello: Hello) -> DeckLink | None:
    """Connect to the deck with this socket; None where what answers is no deck of the user."""
    async with asyncio.timeout(HELLO_SECONDS):
        with _address(path) as address:
            wire = _Wire(*await asyncio.open_unix_connection(address, limit=MAX_LINE))
        answer: Mapping[str, Any] = {}
        try:
            if wire.is_own():
                await wire.send(**asdict(hello))
                answer = await wire.read() or {}
        finally:
            if "welcome" not in answer:
                wire.close()
    if refused := text_in(answer, "refused"):
        raise ValueError(sanitize_line(refused))
    return DeckLink(wire) if "welcome" in answer else None
