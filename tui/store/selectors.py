"""Selectors that several panes share."""

from enum import StrEnum
from typing import Final

from tui.model.chat import Entry
from tui.model.servers import SETTLED, ServerId, ServerStatus, ServerView
from tui.store.state import AppState

MAX_NAMED: Final = 2
"""Servers that `waiting_text` names; the rest are counted."""


class Discovery(StrEnum):
    """The state of the first discovery of all servers."""

    NOT_STARTED = "not started"
    IN_PROGRESS = "in progress"
    COMPLETED = "completed"


def discovery(state: AppState) -> Discovery:
    """Return whether any server's first discovery is still running."""
    if not state.configured:
        return Discovery.NOT_STARTED
    if all(view.status in SETTLED for view in state.servers):
        return Discovery.COMPLETED
    return Discovery.IN_PROGRESS


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


def ready_count(state: AppState) -> tuple[int, int]:
    """Count the ready servers and all that should run."""
    meant = [view for view in state.servers if view.status is not ServerStatus.DISABLED]
    return sum(view.status is ServerStatus.READY for view in meant), len(meant)


def entries(state: AppState) -> tuple[Entry, ...]:
    """Return the whole conversation on the screen, oldest first."""
    transcript = state.conversation.transcript
    return (*transcript.settled, *transcript.live)
