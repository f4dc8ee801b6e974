"""What events about saved conversations and models do to the state."""

from dataclasses import replace
from itertools import takewhile
from types import MappingProxyType

from tui.model.answering.models import (
    ContextMeasured,
    ModelEvents,
    ModelOptionsChanged,
    ModelsListed,
)
from tui.model.sessions import (
    ConversationRestored,
    ConversationRewound,
    SessionEvents,
    SessionPreviewed,
    SessionsListed,
)
from tui.store.state import AppState, ConversationState, Transcript


def reduce_sessions(state: AppState, event: SessionEvents | ModelEvents) -> AppState:
    """Return the state after an event about saved conversations or models."""
    match event:
        case ModelsListed():
            return replace(state, models=event)
        case ModelOptionsChanged(options):
            return replace(state, options=options)
        case ContextMeasured(parts):
            return replace(state, context_parts=parts)
        case SessionsListed(sessions):
            return replace(state, sessions=sessions)
        case SessionPreviewed():
            return replace(state, preview=event)
        case ConversationRestored() | ConversationRewound():
            before = state.conversations.get(event.conversation, ConversationState())
            conversations = {**state.conversations, event.conversation: _after(before, event)}
            return replace(state, conversations=MappingProxyType(conversations))


def _after(
    before: ConversationState, event: ConversationRestored | ConversationRewound
) -> ConversationState:
    transcript = before.transcript
    match event:
        case ConversationRestored(entries, usage):
            shown = Transcript(settled=entries, epoch=transcript.epoch + 1)
            return replace(
                before,
                transcript=shown,
                queued=(),
                usage=usage.cleared(),
                unsent=replace(before.unsent, texts=()),  # what is new is told by its count
            )
        case ConversationRewound(message):
            entries = (*transcript.settled, *transcript.live)
            kept = tuple(takewhile(lambda entry: entry.id != message, entries))
            shown = Transcript(settled=kept, epoch=transcript.epoch + 1)
            return replace(before, transcript=shown)
