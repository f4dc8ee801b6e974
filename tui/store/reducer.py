"""`reduce`: how each event changes the state. Total and pure."""

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from tui.model import events as e
from tui.model.chat import (
    Entry,
    EntryId,
    ModelText,
    Thought,
    ToolCall,
    TurnPhase,
    TurnState,
    Usage,
)
from tui.model.servers import ServerId, ServerView
from tui.store.retention import forget_old
from tui.store.state import MAX_LOG_LINES, MAX_NOTICES, AppState, Unsent


def reduce(state: AppState, event: e.Event) -> AppState:
    """Give the state after `event`; the same object where the event changes nothing."""
    match event:
        case e.ServersConfigured():
            return replace(state, servers=event.servers, configured=True)
        case e.ServerStatusChanged() | e.CatalogChanged() | e.ServerLogged():
            return _reduce_server(state, event)
        case e.ModelSelected(model):
            return replace(state, model=model) if model != state.model else state
        case e.NoticeRaised(notice):
            notices = (*state.notices, notice)[-MAX_NOTICES:]
            return replace(state, notices=notices, notice_count=state.notice_count + 1)
        case e.RequestRaised() | e.RequestSettled():
            return _reduce_request(state, event)
        case e.ResourceRead() | e.SubscriptionChanged() | e.ArgumentCompleted():
            return _reduce_answer(state, event)
        case e.LogLevelChanged(server, level):
            return replace(state, log_levels=MappingProxyType({**state.log_levels, server: level}))
        case e.FolderTrustChanged() | e.GrantsChanged() | e.ToolExplained():
            return _reduce_consent(state, event)
        case e.UsageReported(usage):
            return replace(state, usage=usage) if usage != state.usage else state
        case e.TurnStarted() | e.TurnPhaseChanged() | e.TurnFinished() | e.ConversationCleared():
            return _reduce_turn(state, event)
        case _:
            return _reduce_entry(state, event)


def _reduce_request(state: AppState, event: e.RequestRaised | e.RequestSettled) -> AppState:
    match event:
        case e.RequestRaised(request):
            if any(other.id == request.id for other in state.pending):
                pending = tuple(request if r.id == request.id else r for r in state.pending)
            else:
                pending = (*state.pending, request)
        case e.RequestSettled(request_id):
            pending = tuple(r for r in state.pending if r.id != request_id)
    return replace(state, pending=pending) if pending != state.pending else state


def _reduce_consent(
    state: AppState, event: e.FolderTrustChanged | e.GrantsChanged | e.ToolExplained
) -> AppState:
    match event:
        case e.FolderTrustChanged(trust):
            return replace(state, folder_trust=trust) if trust != state.folder_trust else state
        case e.GrantsChanged(grants):
            return replace(state, grants=grants) if grants != state.grants else state
        case e.ToolExplained(standing):
            return replace(state, standing=standing)


def _reduce_answer(
    state: AppState, event: e.ResourceRead | e.SubscriptionChanged | e.ArgumentCompleted
) -> AppState:
    match event:
        case e.ResourceRead():
            return replace(state, resource=event)
        case e.ArgumentCompleted():
            return replace(state, completion=event)
        case e.SubscriptionChanged(server, uri, subscribed):
            one = frozenset({(server, uri)})
            changed = state.subscriptions | one if subscribed else state.subscriptions - one
            return replace(state, subscriptions=changed)


def _reduce_server(
    state: AppState, event: e.ServerStatusChanged | e.CatalogChanged | e.ServerLogged
) -> AppState:
    match event:
        case e.ServerStatusChanged(server, status, failure, retry_at, info):
            return _with_server(
                state,
                server,
                lambda view: replace(
                    view, status=status, failure=failure, retry_at=retry_at, info=info
                ),
            )
        case e.CatalogChanged(server, catalog):
            return _with_server(state, server, lambda view: replace(view, catalog=catalog))
        case e.ServerLogged(server, lines):
            if not lines or all(view.id != server for view in state.servers):
                return state
            kept = (*state.logs.get(server, ()), *lines)[-MAX_LOG_LINES:]
            return replace(state, logs=MappingProxyType({**state.logs, server: kept}))


def _with_server(
    state: AppState, server: ServerId, change: Callable[[ServerView], ServerView]
) -> AppState:
    servers = tuple(change(view) if view.id == server else view for view in state.servers)
    return replace(state, servers=servers) if servers != state.servers else state


def _reduce_turn(
    state: AppState,
    event: e.TurnStarted | e.TurnPhaseChanged | e.TurnFinished | e.ConversationCleared,
) -> AppState:
    transcript = state.transcript
    match event:
        case e.TurnStarted(turn, message, time):
            settled = (*transcript.settled, *map(_completed, transcript.live))
            return replace(
                state,
                turn=TurnState(turn, TurnPhase.WAITING, time),
                transcript=replace(transcript, settled=settled, live=(message,)),
                unsent=None,
            )
        case e.TurnPhaseChanged(turn, phase):
            if state.turn is None or state.turn.id != turn or state.turn.phase is phase:
                return state
            return replace(state, turn=replace(state.turn, phase=phase))
        case e.TurnFinished(turn, _, text):
            if state.turn is None or state.turn.id != turn:
                return state
            settled = (*transcript.settled, *map(_completed, transcript.live))
            serial = state.unsent.serial + 1 if state.unsent else len(settled)
            return replace(
                state,
                turn=None,
                transcript=replace(transcript, settled=settled, live=()),
                unsent=Unsent(serial, text) if text else None,
            )
        case e.ConversationCleared():
            cleared = replace(transcript, settled=(), live=(), epoch=transcript.epoch + 1)
            usage = Usage(context_limit=state.usage.context_limit)
            return replace(state, transcript=cleared, turn=None, unsent=None, usage=usage)


def _completed(entry: Entry) -> Entry:
    if isinstance(entry, ModelText | Thought) and not entry.complete:
        return replace(entry, complete=True)
    return entry


def _reduce_entry(
    state: AppState,
    event: e.TextStreamed
    | e.ThoughtStreamed
    | e.EntryCompleted
    | e.ToolCallRequested
    | e.ToolCallChanged
    | e.ToolCallProgressed
    | e.ChatNoticeAdded,
) -> AppState:
    match event:
        case e.TextStreamed(entry_id, delta):
            return _streamed(state, ModelText(entry_id, delta))
        case e.ThoughtStreamed(entry_id, delta):
            return _streamed(state, Thought(entry_id, delta))
        case e.EntryCompleted(entry_id):
            return _with_entry(state, entry_id, _completed)
        case e.ToolCallRequested(call):
            return _appended(state, call)
        case e.ChatNoticeAdded(notice):
            return _appended(state, notice)
        case e.ToolCallChanged(call_id, result=result):
            changed = _with_entry(state, call_id, lambda entry: _moved_on(entry, event))
            kept = forget_old(changed.transcript) if result else changed.transcript
            return changed if kept is changed.transcript else replace(changed, transcript=kept)
        case e.ToolCallProgressed(call_id, progress):
            return _with_entry(
                state,
                call_id,
                lambda entry: (
                    replace(entry, progress=progress) if isinstance(entry, ToolCall) else entry
                ),
            )


def _appended(state: AppState, entry: Entry) -> AppState:
    live = (*state.transcript.live, entry)
    return replace(state, transcript=replace(state.transcript, live=live))


def _moved_on(entry: Entry, event: e.ToolCallChanged) -> Entry:
    """Show how far a call is."""
    if not isinstance(entry, ToolCall):
        return entry
    return replace(
        entry,
        status=event.status,
        seconds=event.seconds,
        result=event.result,
        progress=None,
        arguments=entry.arguments if event.arguments is None else event.arguments,
    )


def _streamed(state: AppState, piece: ModelText | Thought) -> AppState:
    """Add a piece to the entry it belongs to, or begin that entry with it."""
    live = state.transcript.live
    for index in reversed(range(len(live))):
        entry = live[index]
        if entry.id != piece.id:
            continue
        if not isinstance(entry, ModelText | Thought):
            return state
        grown = replace(entry, text=entry.text + piece.text)
        changed = (*live[:index], grown, *live[index + 1 :])
        return replace(state, transcript=replace(state.transcript, live=changed))
    return _appended(state, piece)


def _with_entry(state: AppState, entry_id: EntryId, change: Callable[[Entry], Entry]) -> AppState:
    live = tuple(
        change(entry) if entry.id == entry_id else entry for entry in state.transcript.live
    )
    if live == state.transcript.live:
        return state
    return replace(state, transcript=replace(state.transcript, live=live))
