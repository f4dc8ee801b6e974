"""Selectors that several panes share."""

from collections import Counter
from typing import TYPE_CHECKING, Final

from tui.model.chat import ConversationId, Entry
from tui.model.servers import ServerId, ServerStatus, ServerView
from tui.store.state import AppState, TranscriptState

if TYPE_CHECKING:  # loaded after the first frame, with the engine
    from tui.model.requests import PendingRequest
    from tui.model.runs import SavedCall
    from tui.model.sessions import LastSessionFound

MAX_NAMED: Final = 2
"""Servers that `waiting_text` names; the rest are counted."""

_S = ServerStatus

COUNTED: Final = (
    *(_S.READY, _S.FAILED, _S.INVALID, _S.RETRYING, _S.NEEDS_SIGN_IN, _S.UNTRUSTED),
    *(_S.ASLEEP, _S.STOPPED, _S.STOPPING, _S.STARTING),
)
"""The statuses that are counted, in the order of the header."""


def server(state: AppState, server_id: ServerId) -> ServerView | None:
    """Find a server by its id."""
    return next((view for view in state.servers if view.id == server_id), None)


def saved_calls(state: AppState, server_id: ServerId, tool: str) -> "list[SavedCall]":
    """List the saved calls of a tool."""
    return [one for one in state.saved_calls if (one.server, one.tool) == (server_id, tool)]


def waiting_text(state: AppState) -> str:
    """Name the servers that start for the first time: ``waiting for a, b, +2``, or nothing."""
    awaited = [
        view.id
        for view in state.servers
        if view.status is ServerStatus.STARTING and view.last_failure is None
    ]
    if not awaited:
        return ""
    named = awaited[:MAX_NAMED]
    more = [f"+{len(awaited) - MAX_NAMED}"] if len(awaited) > MAX_NAMED else []
    return f"waiting for {', '.join([*named, *more])}"


def server_counts(state: AppState) -> tuple[tuple[ServerStatus, int], ...]:
    """Count the servers by status, in the order of `COUNTED`; disabled ones don't count."""
    numbers = Counter(view.status for view in state.servers)
    return tuple((status, numbers[status]) for status in COUNTED if numbers[status])


def last_session(state: AppState) -> "LastSessionFound | None":
    """Return what an earlier run left to go on with, until something is said in this one."""
    said = (one.transcript != TranscriptState() for one in state.conversations.values())
    return None if any(said) else state.last_session


def entries(state: AppState) -> tuple[Entry, ...]:
    """Return the whole conversation on the screen, oldest first."""
    transcript = state.conversation.transcript
    return (*transcript.settled, *transcript.live)


def conversation_of(request: "PendingRequest") -> ConversationId | None:
    """Return the conversation that a question belongs to, or None if it belongs to none."""
    conversation: ConversationId | None = getattr(request, "conversation", None)
    return None if getattr(request, "caller", "") else conversation


def asking(state: AppState) -> tuple[ConversationId, ...]:
    """Return the conversations that wait for an answer, the one that asked first at the front."""
    return tuple(filter(None, dict.fromkeys(map(conversation_of, state.pending))))


def pending_here(state: AppState) -> "tuple[PendingRequest, ...]":
    """Return the questions of the conversation on the screen, and those that belong to none."""
    return tuple(one for one in state.pending if conversation_of(one) in (None, state.current))
