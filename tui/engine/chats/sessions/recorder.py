"""Writes a conversation to its session file as it goes.

What the bus tells of the screen becomes records at once; the history for the model is compared
with what was written whenever the bus tells of a step. A thread masks and writes them.
"""

import asyncio
import contextlib
import json
import logging
import queue
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from tui.engine.background import OrderedWorker
from tui.engine.chats.history import History, without_surrogates
from tui.engine.chats.sessions import session_file
from tui.engine.chats.sessions.library import DRAFT, SessionLibrary, new_id
from tui.engine.chats.sessions.replay import MAX_TITLE, SavedSession
from tui.engine.chats.sessions.session_file import MAX_FIRST, Record, SessionFile, SessionLock
from tui.engine.files.atomic import read_own, write_private
from tui.engine.files.unwritten import make_folder
from tui.engine.logs.redaction import Redactor
from tui.model import events as e
from tui.model.chat import EntryId, ToolCall, ToolCallStatus, TurnEnd, UserMessage
from tui.model.sessions import SessionId, SessionView
from tui.text import sanitize, sanitize_line

MAX_DRAFT: Final = 32 * 1024 * 1024
"""Largest draft that is read, in bytes."""

MAX_TAKEN: Final = 20
"""Most drafts that are taken over at once."""

_log: Final = logging.getLogger(__name__)

DELTA_EVERY: Final = 0.2
"""Most seconds that a streamed text waits to be written; what a kill may lose."""

MAX_EARLY: Final = 1_000
"""Records kept before there is a message; the oldest go first."""

SAVE_PATIENCE: Final = 0.5
"""Seconds that a turn waits for a slow disk before each request."""

CLOSE_PATIENCE: Final = 2.0
"""Seconds that the last records get to be written at the end."""

_USES: Final = {"user", "queue", "draft", "back", "compressed", "summary"}
"""Records of what a user does with a session; looking at it writes others."""


class DraftFile:
    """Keeps the draft of one conversation; all methods block and belong to one thread.

    Args:
        place: The folder of its file.
        redactor: Knows the secrets that are masked.
    """

    def __init__(self, place: Path, redactor: Redactor) -> None:
        self._place, self._redactor = place, redactor
        self._held: dict[Path, SessionLock] = {}

    def take_over(self) -> str:
        """Return the drafts that other runs left; they stay until another is kept."""
        found = []
        for path in sorted(self._place.glob(f"*{DRAFT}"))[-MAX_TAKEN:]:
            with contextlib.suppress(OSError, ValueError):
                if (lock := SessionLock.take(path)) is not None:
                    self._held[path] = lock
                    text = json.loads(read_own(path, MAX_DRAFT, alone=False))
                    found += [without_surrogates(text)] if isinstance(text, str) else []
        return "\n\n".join(found)

    def keep(self, text: str) -> None:
        """Put a draft in place of the one before, which stays if this one cannot be written."""
        before = dict(self._held)
        try:
            if text.strip():
                self._write(text)
            for path, lock in before.items():
                path.unlink(missing_ok=True)
                lock.release()
                del self._held[path]
        except OSError as error:
            _log.warning("a draft could not be kept: %s", error)

    def _write(self, text: str) -> None:
        path = self._place / f"{new_id(time.time())}{DRAFT}"
        make_folder(path)
        write_private(path, json.dumps(self._redactor.redact_known(text)).encode())
        if (lock := SessionLock.take(path)) is not None:
            self._held[path] = lock

    def let_go(self) -> None:
        """Leave the draft to another run."""
        for lock in self._held.values():
            lock.release()
        self._held.clear()


class Recorder:
    """Records one conversation at a time. Belongs to the event loop.

    Args:
        library: Where sessions are; None if there is no place for them.
        folder: The opened folder.
        redactor: Knows the secrets that are masked.
        on_problem: Told what goes wrong, from any thread.

    Attributes:
        is_on: Whether new conversations are saved.
        view: What a list shows of the session that is written, or None.
        messages: The user's messages on the screen, oldest first.
        draft: What stands in the composer, as far as it is known.
        starts: The number of contents before each of them that can be sent again.
    """

    def __init__(
        self,
        library: SessionLibrary | None,
        folder: Path,
        redactor: Redactor,
        on_problem: Callable[[str], None],
    ) -> None:
        self._library, self._folder = library, folder
        self._redactor, self._on_problem = redactor, on_problem
        self._worker = OrderedWorker(self._say_failed)
        self._file: SessionFile | None = None
        self._is_unused_copy = self._has_failed = self.is_on = False
        self._waiting: list[Record] = []
        self._writing: Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._history = History()
        self._seen: list[list[Any]] = []
        self._calls: dict[EntryId, ToolCall] = {}
        self._tokens_before = self._calls_before = 0
        self._model = self.draft = ""
        place = library.place(folder) if library is not None else None
        self._drafts = DraftFile(place, redactor) if place is not None else None
        self._settings: Record = {}
        self.view: SessionView | None = None
        self.messages: dict[EntryId, UserMessage] = {}
        self.starts: dict[EntryId, int] = {}

    @property
    def session(self) -> SessionId | None:
        return self.view.id if self.view is not None else None

    @property
    def unsaved(self) -> str:
        """Why the session is not in its file, or not to its end; else an empty string."""
        return self._file.lines.problem if self._file is not None else ""

    @property
    def way_back(self) -> SessionId | None:
        """The session to come back to: what a copy was made of that nobody used, as that goes."""
        view = self.view
        if self.unsaved and self._file is not None and self._file.is_empty:
            return None
        return view.parent if view is not None and self._is_unused_copy else self.session

    def switch(self, *, is_on: bool) -> None:
        """Save what comes from now on, and the draft that stands already, or nothing."""
        self.is_on = is_on
        if is_on and self.draft:
            self._put_draft()

    def follow(self, history: History) -> None:
        """Record this history from now on."""
        self._history, self._seen = history, []

    def adopt(self, saved: SavedSession, lock: SessionLock | None) -> None:
        """Go on with a session, whose contents are already the history's.

        Args:
            saved: What was read of it.
            lock: The right to write its file; without it the next message begins another.
        """
        self.leave()
        self._show(saved)
        if self._library is not None and lock is not None:
            path = self._library.path_of(saved.view)
            self._file = SessionFile(path, self._redactor, self._on_problem, lock)
            self.view = saved.view
            self._put({"t": "resumed"}, {"t": "cut", "at": saved.kept})
            self._seen = [content["parts"] for content in self._history.contents[: saved.kept]]
            self._sync()  # what was cut would be lost if nothing more is said
            self._is_unused_copy = saved.is_new_copy

    def _show(self, saved: SavedSession) -> None:
        run_on = {task.call for task in saved.tasks.values()}
        calls = (one for one in saved.entries if isinstance(one, ToolCall))
        self._calls = {one.id: one for one in calls if one.id in run_on}
        self.messages = {one.id: one for one in saved.entries if isinstance(one, UserMessage)}
        self.starts = dict(saved.starts)
        self._settings = {**saved.settings} or self._settings

    def leave(self) -> None:
        """End the session; the next message begins another."""
        if self.draft and self.view is None:
            self._keep_apart("")
        if self._file is not None:
            self._flush(now=True)
            if self._is_unused_copy:
                self._worker.submit(self._file.path.unlink)
            self._worker.submit(self._file.close)
        self._file = self.view = None
        self._is_unused_copy = False
        self._waiting, self._seen, self.draft = [], [], ""
        self.messages, self.starts, self._calls = {}, {}, {}

    def rewind(self, message: EntryId) -> None:
        """Forget a message of the user's and all that came after it; the history is cut already."""
        place = [*self.messages].index(message)
        for gone in [*self.messages][place:]:
            self.starts.pop(gone, None)
            del self.messages[gone]
        self._put({"t": "back", "to": place})
        self._sync()

    def rename(self, title: str) -> None:
        """Give the session another title."""
        if self.view is not None:
            self.view = replace(self.view, title=sanitize_line(title, MAX_TITLE))
            self._put(session_file.summary(self.view))

    async def flush(self) -> None:
        """Wait until all that happened so far is written."""
        self._flush(now=True)
        await asyncio.wrap_future(self._worker.submit(lambda: None))

    async def save(self) -> None:
        """Wait until all that happened so far is written, but only so long."""
        if self._file is not None:
            with contextlib.suppress(TimeoutError, queue.Full):
                async with asyncio.timeout(SAVE_PATIENCE):
                    await self.flush()

    def compressed(self) -> None:
        """Note that a summary took the place of the history; no earlier message can be edited."""
        self.starts.clear()
        self._put({"t": "compressed"})
        self._sync()

    async def keep_copy(self, title: str) -> None:
        """Keep the session as it is now, if it is saved, under another id."""
        self._flush(now=True)
        view, library = self.view, self._library
        if view is not None and library is not None:
            copy = partial(library.copy, view, title, self._redactor)
            await asyncio.wrap_future(self._worker.submit(copy))

    def keep_draft(self, text: str) -> None:
        """Save what stands in the composer, without a session in a file of its own."""
        if text != self.draft:
            self.draft = text
            self._put_draft()

    def _put_draft(self) -> None:
        if self.view is not None:
            self._put({"t": "draft", "text": self.draft})
        elif self.is_on:
            self._keep_apart(self.draft)

    async def take_over_drafts(self) -> str:
        """Return the drafts that runs left which have ended; they are this conversation's now."""
        if self._drafts is None or not self.is_on or self.view is not None:
            return ""
        text = await asyncio.wrap_future(self._worker.submit(self._drafts.take_over))
        if text:
            self.draft = self.draft or text
            if self._file is not None:  # the session has begun meanwhile
                self._put_draft()
                self._keep_apart("")
        return text

    def _keep_apart(self, text: str) -> None:
        if self._drafts is not None:
            self._worker.submit(partial(self._drafts.keep, text))

    def keep_settings(self, settings: Record) -> None:
        """Save how the model is to answer in this conversation."""
        self._settings = {"t": "settings", **settings}
        if self.view is not None:
            self._put(self._settings)

    async def aclose(self) -> None:
        """Write what is left, but wait only so long; a draft stays."""
        if self._drafts is not None:
            self._worker.submit(self._drafts.let_go)
        self.draft = ""
        self.leave()
        await asyncio.to_thread(self._worker.close, CLOSE_PATIENCE)

    def take(self, event: e.Event) -> None:
        """Record what an event tells."""
        match event:
            case e.ModelSelected(model):
                self._model = model.name
            case e.TurnStarted(_, message):
                self._begin_turn(message)
            case e.MessageExpanded(message):
                self.messages[message.id] = message
                self._put(session_file.entry(message))
            case e.TextStreamed(entry, delta):
                self._put_delta("text", entry, delta)
            case e.ThoughtStreamed(entry, delta):
                self._put_delta("thought", entry, delta)
            case e.EntryCompleted(entry):
                self._put({"t": "done", "id": entry})
            case e.ToolCallRequested() | e.ToolCallChanged():
                self._put_call(event)
            case e.TaskKept():
                self._put({"t": "task", **asdict(event)})
            case e.ChatNoticeAdded(notice) if not notice.passes:
                self._put(session_file.entry(notice))
            case e.QueueChanged(texts):
                self._put({"t": "queue", "texts": [*texts]})
            case e.TurnPhaseChanged():
                self._sync()
            case e.UsageReported(usage):
                self._put({"t": "usage", **asdict(usage)})
                self._change(tokens=self._tokens() + usage.total)
            case e.TurnFinished(turn, seconds=seconds):
                self._end_turn(EntryId(f"{turn}-end"), seconds)
            case e.ConversationCleared():
                self.leave()

    def _begin_turn(self, message: UserMessage) -> None:
        is_first = self._file is None and self.is_on
        if is_first and self._library is not None:
            self._begin_file(self._library, message)
        self._sync()
        self._forget_calls()
        self._tokens_before = self._tokens()
        self.messages[message.id] = message
        self.starts[message.id] = len(self._history.contents)
        self._put(session_file.entry(message))
        if is_first and self.draft:
            self._move_draft(message.text)

    def _move_draft(self, sent: str) -> None:
        """Keep the draft in the session that has begun, unless it was what was sent."""
        if sanitize(self.draft).strip() == sent:
            self.draft = ""
        else:
            self._put_draft()
        self._keep_apart("")

    def _begin_file(self, library: SessionLibrary, message: UserMessage) -> None:
        now, first = time.time(), sanitize_line(message.text, MAX_FIRST)
        place = library.place(self._folder).name
        view = SessionView(new_id(now), str(self._folder), first=first, started=now, place=place)
        self.view = view = replace(view, model=self._model)
        self._file = SessionFile(library.path_of(view), self._redactor, self._on_problem)
        self._waiting = [session_file.header(view), *self._waiting]
        if self._settings:
            self._put(self._settings)

    def _end_turn(self, end: EntryId, seconds: float) -> None:
        self._sync()
        tokens = self._tokens() - self._tokens_before
        calls = len(self._calls) - self._calls_before
        self._put(session_file.entry(TurnEnd(end, calls, seconds, tokens)))
        self._forget_calls()
        if self.view is not None:
            self._change(turns=self.view.turns + 1, model=self._model)
            self._put({"t": "end"}, session_file.summary(self.view))

    def _forget_calls(self) -> None:
        """Forget the calls of an earlier turn, but for those that run on as tasks."""
        runs_on = ToolCallStatus.RUNS_ON
        self._calls = {key: one for key, one in self._calls.items() if one.status is runs_on}
        self._calls_before = len(self._calls)

    def _put_call(self, event: e.ToolCallRequested | e.ToolCallChanged) -> None:
        match event:
            case e.ToolCallRequested(call):
                self._calls[call.id] = call
            case e.ToolCallChanged(call_id, _, seconds, result, arguments):
                if (before := self._calls.get(call_id)) is None:
                    return
                call = event.applied(before)
                self._calls[call_id] = replace(call, result="", pictures=())
                if seconds is None and not result and arguments is None:
                    return  # it asks or runs: not worth a line
        self._put(session_file.entry(call))

    def _change(self, **facts: Any) -> None:  # noqa: ANN401 - of a view
        if self.view is not None:
            self.view = replace(self.view, **facts)

    def _tokens(self) -> int:
        return self.view.tokens if self.view is not None else 0

    def _sync(self) -> None:
        """Record how the history differs from what was recorded of it."""
        if self.is_on:
            self._put(*session_file.changes(self._history.contents, self._seen))

    def _put(self, *lines: Record) -> None:
        """Record something, and write it soon."""
        if not self.is_on:
            return
        self._waiting += lines
        if any(line["t"] in _USES for line in lines):
            self._is_unused_copy = False
        if self._file is None:
            del self._waiting[:-MAX_EARLY]
        elif lines:
            self._flush()

    def _put_delta(self, kind: str, entry: EntryId, delta: str) -> None:
        if self._file is None:
            return
        last = self._waiting[-1] if self._waiting else {}
        if (last.get("t"), last.get("id")) == (kind, entry):
            last["text"] += delta
        else:
            self._waiting.append({"t": kind, "id": entry, "text": delta})
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELTA_EVERY, self._flush)

    def _flush(self, *, now: bool = False) -> None:
        """Let the thread write what waits; while it is still at it only if it must be now.

        It goes on with the rest by itself, so that no more than one job waits.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._file is None or not self._waiting:
            return
        if not now and self._writing is not None and not self._writing.done():
            return
        lines, self._waiting = self._waiting, []
        self._writing = self._worker.submit(partial(self._file.write, lines))
        self._writing.add_done_callback(partial(self._go_on, asyncio.get_running_loop()))

    def _go_on(self, loop: asyncio.AbstractEventLoop, _: "Future[None]") -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._flush)

    def _say_failed(self, error: Exception) -> None:
        if not self._has_failed:
            self._has_failed = True
            words = f"The conversation could not be saved ({type(error).__name__})."
            self._on_problem(f"{words} See the log for details.")
