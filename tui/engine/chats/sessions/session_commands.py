"""What the user asks of sessions: to list, open, name, delete and export them.

Each command returns at once; what comes of it arrives as events.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from tui.engine.background import TaskSet, in_daemon_thread
from tui.engine.bus import Publish
from tui.engine.chats.conversations import Conversation, Conversations
from tui.engine.chats.sessions.library import (
    SessionError,
    SessionLibrary,
    export_text,
    write_export,
)
from tui.engine.chats.sessions.recorder import Recorder
from tui.engine.chats.sessions.replay import MAX_TITLE, SavedSession, Wire, has_responses
from tui.engine.chats.sessions.session_file import SessionLock
from tui.engine.chats.turn import Message, MessageContent, TurnContext
from tui.engine.files.atomic import free_path
from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.catalog.offered_tool import PromptMessage
from tui.engine.options import LATEST
from tui.model.chat import ChatNotice, ConversationId, EntryId, Severity, UserMessage
from tui.model.events import MessageReturned, Notice, NoticeRaised
from tui.model.sessions import (
    ConversationNamed,
    ConversationRestored,
    ConversationRewound,
    SessionId,
    SessionPreviewed,
    SessionsListed,
)
from tui.model.settings import SessionSettings
from tui.text import AdvisedError, sanitize_line

MAX_PREVIEW: Final = 40
"""Last entries of a session that a preview shows."""

CLOSED: Final = "The conversation was closed in the meantime."
BUSY: Final = "Stop the running turn first (Esc)."
UNSAVED: Final = "This conversation is not saved, so there is nothing to export."
DROPPED: Final = "This conversation is not saved, so the later messages are lost."
NO_PLACE: Final = "There is no folder for sessions. Set GEMDECK_HOME to a writable one."


@dataclass(eq=False, repr=False)
class SessionCommands:
    """The commands on saved sessions; what is said of a conversation means the current one.

    Attributes:
        library: Where sessions are; None if there is no place for them.
        folder: The opened folder.
        conversations: The open conversations.
        publish: Takes the events.
        tasks: Run what a command takes.
        redactor: Knows the secrets that are masked.
        on_problem: Told from any thread what cannot be written.
        on_restored: Goes by what was kept of how the model answers.
        send: Sends what was typed in a conversation.
    """

    library: SessionLibrary | None
    folder: Path
    conversations: Conversations
    publish: Publish
    tasks: TaskSet
    redactor: Redactor
    on_problem: Callable[[str], None]
    on_restored: Callable[[Conversation, Mapping[str, Any]], Awaitable[None]] = field(init=False)
    send: Callable[[str, ConversationId], None] = field(init=False)
    _wanted: str = field(default="", init=False)

    @property
    def recorder(self) -> Recorder:
        """What writes the current conversation down."""
        return self.conversations.current.recorder

    def configure(self, settings: SessionSettings, *, saves: bool) -> None:
        """Go by the settings; old sessions are deleted in the background."""
        self.conversations.save(is_on=saves and settings.save and self.library is not None)
        if saves and self.library is not None and settings.keep_days:
            delete = partial(self.library.delete_old, settings.keep_days, time.time())
            self.tasks.start(asyncio.to_thread(delete))

    async def find_last(self) -> None:
        """Publish what an earlier run wrote last, if no other gemdeck has it open."""
        library, folder = self.library, self.folder
        if library is not None and (last := await asyncio.to_thread(library.last, folder)):
            self.publish(last)

    def list_sessions(self) -> None:
        """List the sessions of the opened folder; they arrive as `SessionsListed`."""
        self.start(self._list())

    def preview(self, session: SessionId) -> None:
        """Read the end of a session; it arrives as `SessionPreviewed`."""
        self.start(self._preview(session))

    def search(self, words: str) -> None:
        """Search the text of the folder's sessions; it arrives as `SessionsSearched`.

        A later search ends an earlier one, and one for nothing does no more than that.
        """
        self._wanted = words
        if words.strip():
            self.start(self._search(words))

    def resume(self, words: str = LATEST) -> asyncio.Task[None]:
        """Go on with a session, named by the beginning of its id, or with the latest.

        If it is open in another conversation, that one becomes the current one. What is sent
        meanwhile waits.
        """
        one = self.conversations.current

        def go_on(resumed: asyncio.Task[None]) -> None:
            if not resumed.cancelled():
                one.hold(is_held=False)

        one.hold(is_held=True)
        resuming = self.start(self._resume(words, one))
        resuming.add_done_callback(go_on)
        return resuming

    def resume_beside(self, session: SessionId) -> None:
        """Go on with a session in a conversation of its own, or where it is open."""
        if (found := self.conversations.with_session(session)) is not None:
            self.conversations.select(found.key)
            return
        before = self.conversations.current
        self.conversations.open()
        if (opened := self.conversations.current) is not before:  # there are not too many
            self.start(self._resume(session, opened))

    def rename(self, session: SessionId, title: str) -> None:
        self.start(self._rename(session, title))

    def delete(self, session: SessionId) -> None:
        self.start(self._delete(session))

    def export(self, words: str, path: str) -> None:
        """Write a session to a new file: JSON if its name ends so, else Markdown.

        Args:
            words: The session; empty for the one that is open.
            path: The file, within the opened folder unless it is absolute; empty for a new name.
        """
        self.start(self._export(words, path, self.recorder))

    def take_over_drafts(self) -> None:
        """Give back the drafts that earlier runs left without a session."""
        self.start(self._take_over_drafts(self.conversations.current))

    def edit_message(self, message: EntryId, text: str, key: ConversationId | None = None) -> None:
        """Send another text in place of an earlier message; what followed it is kept as a copy.

        The same text is sent with what it named, as it was sent before.
        """
        if (one := self.conversations.get(key)) is not None:
            self.start(self._edit(message, text, one))

    async def _take_over_drafts(self, one: Conversation) -> None:
        if text := await one.recorder.take_over_drafts():
            one.publish(MessageReturned(text))

    async def _resume(self, words: str, one: Conversation) -> None:
        library = self._place()
        await self.conversations.settle()
        view = await asyncio.to_thread(library.find, words, self.folder)
        other = self.conversations.with_session(view.id)
        if other is not None and other is not one:
            self.conversations.select(other.key)
            return
        self._idle_without(view.id, one)
        redactor = self.redactor if one.recorder.is_on else None
        saved, lock = await asyncio.to_thread(library.open, view, redactor)
        try:
            context = self._idle_without(view.id, one)
        except SessionError:
            if lock is not None:
                lock.release()
            raise
        await self._restore(one, context, saved, lock)

    async def _restore(
        self, one: Conversation, context: TurnContext, saved: SavedSession, lock: SessionLock | None
    ) -> None:
        """Put a session in place of a conversation."""
        history, recorder = context.history, one.recorder
        history.contents[:] = saved.contents
        context.kept.clear()
        context.opened.restore(saved.settings.get("skills"))
        context.setup.tools.tasks.let_go(one.key)
        if saved.view.model != context.backend.model:
            history.strip_signatures()
            saved.kept = 0
        recorder.adopt(saved, lock)
        entries = saved.entries
        if remark := " ".join(saved.remarks):
            entries = [*entries, ChatNotice(EntryId("restored"), Severity.WARNING, remark)]
            if not self.conversations.attended:  # nobody sees the entries
                self._say(Severity.WARNING, remark)
        shown, title = tuple(entries), saved.view.title
        one.publish(ConversationRestored(shown, saved.usage, recorder.session, title))
        if saved.unsent:
            one.publish(MessageReturned(saved.unsent))
        context.setup.tools.tasks.restore(saved.tasks.values(), one.key)
        await self.on_restored(one, saved.settings)

    async def _list(self) -> None:
        self.publish(SessionsListed(await asyncio.to_thread(self._place().sessions, self.folder)))

    async def _search(self, words: str) -> None:
        search = partial(self._place().search, words, self.folder, lambda: self._wanted == words)
        found = await in_daemon_thread(search)  # it may take long, and no end waits for it
        if self._wanted == words:
            self.publish(found)

    async def _preview(self, session: SessionId) -> None:
        library = self._place()

        def read() -> SessionPreviewed:
            try:
                saved = library.read(library.find(session, self.folder))
            except SessionError as error:
                return SessionPreviewed(session, failure=str(error))
            return SessionPreviewed(session, tuple(saved.entries[-MAX_PREVIEW:]))

        self.publish(await asyncio.to_thread(read))

    async def _rename(self, session: SessionId, title: str) -> None:
        library = self._place()
        await self.conversations.settle()
        if (one := self.conversations.with_session(session)) is not None:
            one.recorder.rename(title)
            one.publish(ConversationNamed(sanitize_line(title, MAX_TITLE)))
        else:
            view = await asyncio.to_thread(library.find, session, self.folder)
            rename = partial(library.rename, view, title, self.redactor, self.on_problem)
            await asyncio.to_thread(rename)
        await self._list()

    async def _delete(self, session: SessionId) -> None:
        library = self._place()
        await self.conversations.settle()
        if self.conversations.with_session(session) is not None:
            raise SessionError("This session is open in a tab. Close it, or type /clear there.")
        view = await asyncio.to_thread(library.find, session, self.folder)
        await asyncio.to_thread(library.delete, view)
        await self._list()

    async def _export(self, words: str, path: str, recorder: Recorder) -> None:
        library = self._place()
        if not words and recorder.session is None:
            raise SessionError(UNSAVED)
        words = words or str(recorder.session)
        await self.conversations.settle()

        def write() -> Path:
            saved = library.read(library.find(words, self.folder))
            typed = self.folder / os.path.expanduser(path)  # noqa: PTH111 - never fails
            file = typed if path else free_path(self.folder, f"gemdeck-{saved.view.id}", ".md")
            text = export_text(saved, file)
            return write_export(file, self.redactor.redact_known(text)).resolve()

        words = f"Exported to {sanitize_line(str(await asyncio.to_thread(write)))}."
        self.publish(NoticeRaised(Notice(Severity.INFO, words, is_answer=True)))

    async def _edit(self, message: EntryId, text: str, one: Conversation) -> None:
        try:
            again = await self._branch(message, text, one)
        except (SessionError, OSError):
            one.publish(MessageReturned(text))
            raise
        one.recorder.rewind(message)
        one.publish(ConversationRewound(message))
        if one.recorder.view is None:
            self._say(Severity.WARNING, DROPPED)
        if again is not None:
            one.send(again)
        else:
            self.send(text, one.key)

    async def _branch(self, message: EntryId, text: str, one: Conversation) -> Message | None:
        """Cut a conversation before a message; what it was is kept as a copy.

        Only the first of several retries keeps one.

        Returns:
            The message as it was sent, if the text is the same and the history had it.
        """
        contents, recorder = self.idle(one).history.contents, one.recorder
        start, messages = recorder.starts.get(message), [*recorder.messages]
        if start is None:
            raise SessionError("A summary replaced this message, so it cannot be sent again.")
        place, before = messages.index(message), recorder.messages[message]
        after = messages[place + 1 :]
        turn = contents[start : recorder.starts[after[0]] if after else None]
        is_retry, retried = text.strip() == before.typed.strip(), (recorder.session, place)
        if recorder.view is not None and (after or not is_retry or one.retried != retried):
            name = recorder.view.name
            await recorder.keep_copy(f"{name} (before {'retry' if is_retry else 'edit'})")
            self.idle(one)
        one.retried = retried if is_retry else None
        del contents[start:]
        return _resent(before, turn) if is_retry else None

    def _place(self) -> SessionLibrary:
        if self.library is None:
            raise SessionError(NO_PLACE)
        return self.library

    def idle(self, one: Conversation) -> TurnContext:
        """Return what the turns of a conversation share if none runs.

        Raises:
            SessionError: If one does, or there is no model.
        """
        if one not in self.conversations:
            raise SessionError(CLOSED)
        if one.context is None:
            raise SessionError("There is no model yet. Choose one first (F9).")
        if not one.is_idle:
            raise SessionError(BUSY)
        return one.context

    def _idle_without(self, session: SessionId, one: Conversation) -> TurnContext:
        """Do the same where a session is to be opened, which is open nowhere yet."""
        if self.conversations.with_session(session) is not None:
            raise SessionError("This session is already open.")
        return self.idle(one)

    def start(self, command: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Carry out a command in the background, and say why it cannot be done."""
        return self.tasks.start(self._carry_out(command))

    async def _carry_out(self, command: Coroutine[Any, Any, None]) -> None:
        try:
            await command
        except AdvisedError as error:
            self._say(Severity.ERROR, sanitize_line(f"{error} {error.advice}".strip()))
        except OSError as error:
            reason = sanitize_line(error.strerror or type(error).__name__)
            self._say(Severity.ERROR, f"The file could not be written: {reason}.")

    def _say(self, severity: Severity, text: str) -> None:
        self.publish(NoticeRaised(Notice(severity, text, is_answer=True)))


def _resent(message: UserMessage, turn: list[Wire]) -> Message | None:
    """Return a message as it was sent; None if the contents of its turn do not have it."""
    while turn and (turn[-1]["role"] == "model" or has_responses(turn[-1])):
        del turn[-1]
    if not turn:
        return None
    *before, last = (PromptMessage(one["role"], tuple(one["parts"])) for one in turn)
    content = MessageContent(message.text, last.parts, message.servers, tuple(before))
    return Message(message.typed, content)
