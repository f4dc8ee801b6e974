"""Saved conversations, and the events about them."""

from typing import NewType

from tui.model.chat import ConversationEvent, ConversationId, Entry, EntryId, Usage
from tui.model.frozen import Event, Frozen, StateEvent

SessionId = NewType("SessionId", str)
"""Names a saved conversation: its start as ``YYYYmmdd-HHMMSS`` (UTC), a hyphen, six hex digits."""


class SessionView(Frozen):
    """What a list of sessions shows of one; all text is sanitized.

    Attributes:
        id: Its id.
        folder: The folder it was held in.
        title: The name the user gave it, or an empty string.
        first: The first words of the user.
        model: The model that answered last.
        tokens: Tokens of all its requests.
        turns: Number of turns.
        started: When it began, in seconds since the epoch.
        changed: When it was written last, likewise.
        size: Size of its file in bytes.
        parent: The session that it is a copy of, or None.
        place: The name of the folder that its file lies in.
    """

    id: SessionId
    folder: str
    title: str = ""
    first: str = ""
    model: str = ""
    tokens: int = 0
    turns: int = 0
    started: float = 0.0
    changed: float = 0.0
    size: int = 0
    parent: SessionId | None = None
    place: str = ""

    @property
    def name(self) -> str:
        return self.title or self.first or self.id


class ConversationRestored(ConversationEvent):
    """A saved conversation is on the screen again, or an earlier part of this one.

    Attributes:
        entries: All that it shows.
        usage: The tokens of its last turn.
        session: The session that is continued; None for one that is not saved.
        title: The title that the user gave it, or an empty string.
    """

    entries: tuple[Entry, ...]
    usage: Usage = Usage()
    session: SessionId | None = None
    title: str = ""


class ConversationRewound(ConversationEvent):
    """A message of the user's and all that came after it were taken off the screen."""

    message: EntryId


class SessionsListed(StateEvent):
    """The sessions of the opened folder, newest first."""

    sessions: tuple[SessionView, ...]


class LastSessionFound(StateEvent):
    """The session of the opened folder that an earlier run wrote last.

    `is_cut` says that gemdeck ended while a turn of it was running.
    """

    part = "last_session"
    view: SessionView
    is_cut: bool = False


class SessionPreviewed(StateEvent):
    """The last entries of a session; `failure` says why there are none."""

    part = "preview"
    session: SessionId
    entries: tuple[Entry, ...] = ()
    failure: str = ""


class SessionMatch(Frozen):
    """A session whose text has the words that were searched for.

    Attributes:
        view: The session.
        line: The text around the first match, in one line.
    """

    view: SessionView
    line: str


class SessionsSearched(StateEvent):
    """The sessions of a search, newest first; `left` is how many were not read any more."""

    part = "searched"
    words: str
    matches: tuple[SessionMatch, ...]
    left: int = 0


class ConversationOpened(Event):
    """A new conversation stands beside the others; it answers as the one on the screen does."""

    conversation: ConversationId


class ConversationSelected(Event):
    """Another conversation is on the screen."""

    conversation: ConversationId


class ConversationNamed(ConversationEvent, StateEvent):
    """The user gave a conversation another title."""

    title: str


class ConversationClosed(Event):
    """A conversation is no longer open; it was not the one on the screen."""

    conversation: ConversationId
