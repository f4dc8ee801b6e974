"""What events about conversations as a whole and models do to the state."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile
from types import MappingProxyType
from typing import Final

from tui.model.chat import ConversationId, Entry, UserMessage
from tui.model.models import (
    ContextMeasured,
    ModelEvents,
    ModelOptionsChanged,
    ModelsListed,
    PricesSet,
)
from tui.model.sessions import (
    ConversationClosed,
    ConversationNamed,
    ConversationOpened,
    ConversationRestored,
    ConversationRewound,
    ConversationSelected,
    SessionEvents,
    SessionPreviewed,
    SessionsListed,
)
from tui.store.state import AppState, ConversationState, TranscriptState
from tui.text import sanitize_line

MAX_TITLE: Final = 60
"""Characters of a message that name its conversation."""


def with_conversation(state: AppState, key: ConversationId, after: ConversationState) -> AppState:
    """Return the state with a conversation, in its place or behind the others."""
    return replace(state, conversations=MappingProxyType({**state.conversations, key: after}))


def reduce_sessions(state: AppState, event: SessionEvents | ModelEvents) -> AppState:
    """Return the state after an event about saved conversations or models."""
    match event:
        case ModelsListed():
            return replace(state, models=event)
        case PricesSet(prices):
            return replace(state, prices=prices)
        case ContextMeasured(parts):
            return replace(state, context_parts=parts)
        case SessionsListed(sessions):
            return replace(state, sessions=sessions)
        case SessionPreviewed():
            return replace(state, preview=event)
        case ConversationOpened(key):
            here = state.conversation
            opened = ConversationState(model=here.model, options=here.options)
            return with_conversation(state, key, opened)
        case ConversationSelected(key):
            if (selected := state.conversations.get(key)) is None:
                return state
            state = with_conversation(state, key, replace(selected, has_news=False))
            return replace(state, current=key, context_parts=())
        case ConversationClosed(key) if key == state.current:
            return state
        case ConversationClosed(key):
            left = {one: kept for one, kept in state.conversations.items() if one != key}
            return replace(state, conversations=MappingProxyType(left))
        case _:
            before = state.conversations.get(event.conversation)
            if before is None:
                return state  # it was closed
            return with_conversation(state, event.conversation, _after(before, event))


def _after(
    before: ConversationState,
    event: ConversationRestored | ConversationRewound | ConversationNamed | ModelOptionsChanged,
) -> ConversationState:
    transcript = before.transcript
    match event:
        case ModelOptionsChanged(options):
            return replace(before, options=options)
        case ConversationNamed(title):
            return replace(before, title=title)
        case ConversationRestored(entries, usage, title=title):
            shown = TranscriptState(settled=entries, epoch=transcript.epoch + 1)
            return replace(
                before,
                title=title or _first_words(entries),
                transcript=shown,
                queued=(),
                usage=usage.cleared(),
                unsent=replace(before.unsent, texts=()),  # what is new is told by its count
            )
        case ConversationRewound(message):
            entries = (*transcript.settled, *transcript.live)
            kept = tuple(takewhile(lambda entry: entry.id != message, entries))
            shown = TranscriptState(settled=kept, epoch=transcript.epoch + 1)
            return replace(before, transcript=shown)


def _first_words(entries: Iterable[Entry]) -> str:
    """Return what the user said first."""
    texts = (entry.text for entry in entries if isinstance(entry, UserMessage))
    return sanitize_line(next(texts, ""), MAX_TITLE)
