"""Selectors that several panes share."""

from collections import Counter
from typing import Final

from tui.model.chat import Entry
from tui.model.servers import ServerId, ServerStatus, ServerView
from tui.store.state import AppState

MAX_NAMED: Final = 2
"""Servers that `waiting_text` names; the rest are counted."""

COUNTED: Final = (
    ServerStatus.READY,
    ServerStatus.FAILED,
    ServerStatus.INVALID,
    ServerStatus.RETRYING,
    ServerStatus.NEEDS_SIGN_IN,
    ServerStatus.UNTRUSTED,
    ServerStatus.STOPPED,
    ServerStatus.STOPPING,
    ServerStatus.STARTING,
)
"""The statuses that are counted, in the order of the header."""


def server(state: AppState, server_id: ServerId) -> ServerView | None:
    """Find a server by its id."""
    return next((view for view in state.servers if view.id == server_id), None)


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


def starting_since(state: AppState) -> float:
    """Return since when a server has been starting, in seconds of `time.monotonic`, or 0."""
    starting = (view.since for view in state.servers if view.status is ServerStatus.STARTING)
    return min(filter(None, starting), default=0.0)


def entries(state: AppState) -> tuple[Entry, ...]:
    """Return the whole conversation on the screen, oldest first."""
    transcript = state.conversation.transcript
    return (*transcript.settled, *transcript.live)
