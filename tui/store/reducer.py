"""`reduce`, the pure function from state and event to the next state."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tui.model import events as e
from tui.model.chat import (
    ChatNotice,
    ConversationId,
    Entry,
    EntryId,
    ModelText,
    Severity,
    Thought,
    ToolCall,
    TurnEnd,
    TurnPhase,
    TurnState,
    UserMessage,
)
from tui.model.consent import ToolRuleChanged
from tui.model.events import ContextRead
from tui.model.models import (
    ContextMeasured,
    ModelEvent,
    ModelEvents,
    ModelOptionsChanged,
    ModelsListed,
    PricesSet,
    ProfilesSet,
)
from tui.model.requests import PendingRequest, TerminalSet
from tui.model.runs import PromptRendered, RunEvents, SavedCallsChanged, ToolRun, ToolRunChanged
from tui.model.servers import ATTEMPTED, UNDECIDED, ServerId, ServerStatus, ServerView
from tui.model.sessions import (
    ConversationClosed,
    ConversationNamed,
    ConversationOpened,
    ConversationRestored,
    ConversationRewound,
    ConversationSelected,
    LastSessionFound,
    SessionEvent,
    SessionEvents,
    SessionPreviewed,
    SessionsListed,
)
from tui.model.trust import BranchRead, FoldersOpened
from tui.store.state import (
    MAX_LOG_LINES,
    MAX_NOTICES,
    MAX_RUNS,
    MAX_UNSENT,
    AppState,
    ConversationState,
    TranscriptState,
    Unsent,
)
from tui.text import sanitize_line

if TYPE_CHECKING:
    from tui.model.settings import PriceSettings

MAX_RESULTS: Final = 16 * 1024 * 1024
"""Total characters of results kept whole, of a conversation and of calls by hand."""

MAX_OLD_RESULT: Final = 2_000
"""Characters kept of an older result."""

_NOTICE: Final = 100
"""Longest notice about a cut, in characters; a text within this margin is not cut again."""

_ServerEvent = (
    e.ServerStatusChanged
    | e.CatalogChanged
    | e.ServerLogged
    | e.LogLevelChanged
    | e.InstructionsSent
    | e.FramesNoted
)
_AskedEvent = (
    RunEvents | e.ResourceRead | e.ArgumentCompleted | e.ToolExplained | e.SubscriptionChanged
)
_FolderEvent = e.FolderTrustChanged | BranchRead | ContextRead | FoldersOpened

MAX_TITLE: Final = 60
"""Characters of a message that name its conversation."""


def clip_old_results(transcript: TranscriptState) -> TranscriptState:
    """Clip the results of older calls above the limit; return the same object otherwise."""
    entries = (*transcript.settled, *transcript.live)
    if sum(_size(entry) for entry in entries if isinstance(entry, ToolCall)) <= MAX_RESULTS:
        return transcript
    kept = _clipped(reversed(entries))[::-1]
    count = len(transcript.settled)
    return replace(transcript, settled=tuple(kept[:count]), live=tuple(kept[count:]))


def _clipped(newest_first: Iterable[Entry]) -> list[Entry]:
    room = MAX_RESULTS
    kept: list[Entry] = []
    for entry in newest_first:
        if isinstance(entry, ToolCall):
            room -= _size(entry)
            kept.append(entry if room >= 0 else _cut(entry))
        else:
            kept.append(entry)
    return kept


def _size(call: ToolCall) -> int:
    return len(call.result) + sum(len(picture.data) for picture in call.pictures)


def _cut(call: ToolCall) -> ToolCall:
    call = replace(call, pictures=()) if call.pictures else call
    dropped = len(call.result) - MAX_OLD_RESULT
    if dropped <= _NOTICE:
        return call
    notice = f"… [clipped; {dropped:,} characters were dropped]"
    return replace(call, result=f"{call.result[:MAX_OLD_RESULT]}\n{notice}")


def reduce(state: AppState, event: e.Event) -> AppState:
    """Return the state after `event`; the same object if nothing changed."""
    after = _reduce(state, event)
    return state if after == state else after


def after_fault(state: AppState, event: e.Event, error: Exception) -> AppState:
    """Return the state after an event that could not be applied.

    A notice says so, and a turn that has ended does not seem to run on.
    """
    text = f"Something that happened could not be shown ({type(error).__name__})."
    notice = e.Notice(Severity.ERROR, text, "See the log for details.")
    notices = (*state.notices, notice)[-MAX_NOTICES:]
    state = replace(state, notices=notices, notice_count=state.notice_count + 1)
    if isinstance(event, e.TurnFinished) and event.conversation in state.conversations:
        ended = replace(state.conversations[event.conversation], turn=None)
        state = with_conversation(state, event.conversation, ended)
    return state


def _reduce(state: AppState, event: e.Event) -> AppState:
    if isinstance(event, _ServerEvent):
        return _reduce_server(state, event)
    if isinstance(event, _AskedEvent):
        return _reduce_asked(state, event)
    if isinstance(event, _FolderEvent):
        return _reduce_folder(state, event)
    match event:
        case e.ServersConfigured():
            old = {view.id: view for view in state.servers}
            servers = tuple(_keep_failure(view, old.get(view.id)) for view in event.servers)
            return replace(state, servers=servers, configured=True)
        case e.NoticeRaised(notice):
            notices = (*state.notices, notice)[-MAX_NOTICES:]
            return replace(state, notices=notices, notice_count=state.notice_count + 1)
        case e.RequestRaised() | e.RequestSettled() | e.RequestsQueued():
            return _reduce_requests(state, event)
        case e.ServerTried(tried):
            before = state.trial or AppState()
            return replace(state, trial=None if tried is None else reduce(before, tried))
        case TerminalSet(bell, title, keys):
            return replace(state, bell=bell, title=title, keys=keys)
        case e.GrantsChanged(grants):
            return replace(state, grants=grants)
        case e.ToolCallDecided() | ToolRuleChanged():
            return state  # for the audit log
        case SessionEvent() | ModelEvent():
            return reduce_sessions(state, event)
        case e.ConversationEvent():
            return _reduce_in_conversation(state, event)


def _reduce_asked(state: AppState, event: _AskedEvent) -> AppState:
    """Return the state after an answer to what the user asked of a server, beside any turn."""
    match event:
        case ToolRunChanged(run):
            return replace(state, runs=_with_run(state.runs, run))
        case SavedCallsChanged(calls):
            return replace(state, saved_calls=calls)
        case PromptRendered():
            return replace(state, rendered=event)
        case e.ResourceRead():
            return replace(state, resource=event)
        case e.ArgumentCompleted():
            return replace(state, completion=event)
        case e.ToolExplained(standing):
            return replace(state, standing=standing)
        case e.SubscriptionChanged(server, uri, subscribed):
            one = frozenset({(server, uri)})
            changed = state.subscriptions | one if subscribed else state.subscriptions - one
            return replace(state, subscriptions=changed)


def _with_run(runs: Mapping[EntryId, ToolRun], run: ToolRun) -> Mapping[EntryId, ToolRun]:
    """Put a run in its place, or last; the oldest that have ended go where there are too many."""
    kept = {**runs, run.call.id: run}
    size = sum(one.size for one in kept.values())
    for key, one in [*kept.items()][:-1]:
        if len(kept) <= MAX_RUNS and size <= MAX_RESULTS:
            break
        if one.call.status.is_over and one is not run:
            size -= kept.pop(key).size
    return MappingProxyType(kept)


def _reduce_in_conversation(state: AppState, event: e.ConversationEvents) -> AppState:
    key = event.conversation
    if (before := state.conversations.get(key)) is None:
        return state  # it was closed
    after = _reduce_conversation(before, event, state.prices)
    if isinstance(event, e.TurnFinished) and key != state.current:
        after = replace(after, has_news=True)
    return with_conversation(state, key, after)


def _reduce_folder(state: AppState, event: _FolderEvent) -> AppState:
    match event:
        case e.FolderTrustChanged(trust):
            return replace(state, folder_trust=trust)
        case BranchRead(branch):
            return replace(state, branch=branch)
        case FoldersOpened(folders):
            return replace(state, folders=folders)
        case ContextRead(files):
            return replace(state, context=files)


def _reduce_requests(
    state: AppState, event: e.RequestRaised | e.RequestSettled | e.RequestsQueued
) -> AppState:
    match event:
        case e.RequestRaised(request):
            return replace(state, pending=_with_request(state.pending, request))
        case e.RequestSettled(request_id):
            pending = tuple(r for r in state.pending if r.id != request_id)
            return replace(state, pending=pending)
        case e.RequestsQueued(count):
            return replace(state, queued=count)


def _with_request(
    pending: tuple[PendingRequest, ...], request: PendingRequest
) -> tuple[PendingRequest, ...]:
    if any(other.id == request.id for other in pending):
        return tuple(request if other.id == request.id else other for other in pending)
    return (*pending, request)


def _reduce_server(state: AppState, event: _ServerEvent) -> AppState:
    match event:
        case e.FramesNoted(revision):
            return replace(state, wire_revision=revision)
        case e.LogLevelChanged(server, level):
            return replace(state, log_levels=MappingProxyType({**state.log_levels, server: level}))
        case e.InstructionsSent(texts):
            return replace(state, instructions=MappingProxyType(dict(texts)))
        case e.ServerStatusChanged(server):
            return _with_server(state, server, lambda view: _moved(view, event))
        case e.CatalogChanged(server, catalog):
            return _with_server(state, server, lambda view: replace(view, catalog=catalog))
        case e.ServerLogged(server, lines):
            if not lines or all(view.id != server for view in state.servers):
                return state
            kept = (*state.logs.get(server, ()), *lines)[-MAX_LOG_LINES:]
            state = _with_server(state, server, lambda view: _with_words(view, lines))
            return replace(state, logs=MappingProxyType({**state.logs, server: kept}))


def _moved(view: ServerView, event: e.ServerStatusChanged) -> ServerView:
    after = replace(
        view,
        status=event.status,
        failure=event.failure,
        retry_at=event.retry_at,
        info=event.info,
        since=event.since,
        restarted=event.restarted,
        transport=event.transport or view.transport,
        lacks=event.lacks,
        last_words="",
    )
    return _keep_failure(after, view)


def _with_words(view: ServerView, lines: Sequence[e.LogLine]) -> ServerView:
    """Note the last line that a starting server wrote."""
    words = [line.text for line in lines if line.source != e.OWN_SOURCE and line.text.strip()]
    if view.status is not ServerStatus.STARTING or not words:
        return view
    return replace(view, last_words=words[-1])


def _keep_failure(view: ServerView, before: ServerView | None) -> ServerView:
    """Keep the failure of the last attempt until the next one has ended."""
    if view.status in ATTEMPTED:
        kept = view.failure
    else:
        kept = before.last_failure if before and view.status in UNDECIDED else None
    return replace(view, last_failure=kept)


def _with_server(
    state: AppState, server: ServerId, change: Callable[[ServerView], ServerView]
) -> AppState:
    servers = tuple(change(view) if view.id == server else view for view in state.servers)
    return replace(state, servers=servers)


def _reduce_conversation(
    conversation: ConversationState, event: e.ConversationEvents, prices: "PriceSettings | None"
) -> ConversationState:
    match event:
        case e.ModelSelected(model):
            return replace(conversation, model=model)
        case e.QueueChanged(texts):
            return replace(conversation, queued=texts)
        case e.UsageReported(usage, model):
            cost = prices.cost(model, usage) if prices is not None else None
            return conversation.with_usage(usage, cost)
        case e.MessageReturned(text):
            return _with_unsent(conversation, text)
        case e.TurnStarted() | e.TurnPhaseChanged() | e.TurnFinished() | e.ConversationCleared():
            return _reduce_turn(conversation, event, prices)
        case e.TaskKept(key=key, task=task):
            others = conversation.tasks - {key}
            return replace(conversation, tasks=others | {key} if task else others)
        case _:
            return _reduce_entry(conversation, event)


def _reduce_turn(
    conversation: ConversationState,
    event: e.TurnStarted | e.TurnPhaseChanged | e.TurnFinished | e.ConversationCleared,
    prices: "PriceSettings | None",
) -> ConversationState:
    transcript = conversation.transcript
    match event:
        case e.TurnStarted(turn, message, time):
            settled = _settled(transcript)
            return replace(
                conversation,
                turn=TurnState(turn, TurnPhase.WAITING, time),
                title=conversation.title or sanitize_line(message.text, MAX_TITLE),
                usage=conversation.usage.cleared(),
                turn_cost=0.0,
                transcript=replace(settled, live=(*settled.live, message)),
            )
        case e.TurnPhaseChanged(turn, phase, server, until):
            if conversation.turn is None or conversation.turn.id != turn:
                return conversation
            now = replace(conversation.turn, phase=phase, server=server, until=until)
            return replace(conversation, turn=now)
        case e.TurnFinished(turn, _, text, seconds):
            after = _with_unsent(conversation, text) if text else conversation
            if conversation.turn is None or conversation.turn.id != turn:
                return after
            cost = prices.words(conversation.turn_cost) if prices is not None else ""
            calls = sum(isinstance(entry, ToolCall) for entry in transcript.live)
            tokens = conversation.usage.total
            end = TurnEnd(EntryId(f"{turn}-end"), calls, seconds, tokens, cost)
            lasting = (
                one for one in transcript.live if not (isinstance(one, ChatNotice) and one.passes)
            )
            ended = replace(transcript, live=(*lasting, end))
            return replace(after, turn=None, transcript=_settled(ended))
        case e.ConversationCleared():
            cleared = replace(conversation, title="", turn=None, tasks=frozenset())
            return replace(
                cleared,
                transcript=replace(transcript, settled=(), live=(), epoch=transcript.epoch + 1),
                usage=replace(conversation.usage.cleared(), context=0),
                unsent=replace(conversation.unsent, texts=()),
            )


def _with_unsent(conversation: ConversationState, text: str) -> ConversationState:
    texts, count = conversation.unsent.texts, conversation.unsent.count
    return replace(conversation, unsent=Unsent((*texts, text)[-MAX_UNSENT:], count + 1))


def _settled(transcript: TranscriptState) -> TranscriptState:
    """Settle all entries before the first call that still runs, outside any turn."""
    live = tuple(map(_completed, transcript.live))
    running = (
        place
        for place, entry in enumerate(live)
        if isinstance(entry, ToolCall) and not entry.status.is_over
    )
    count = next(running, len(live))
    settled = (*transcript.settled, *live[:count])
    return replace(transcript, settled=settled, live=live[count:])


def _completed(entry: Entry, seconds: float | None = None) -> Entry:
    match entry:
        case ModelText(complete=False):
            return replace(entry, complete=True)
        case Thought(complete=False):
            return replace(entry, complete=True, seconds=seconds)
        case _:
            return entry


def _reduce_entry(
    conversation: ConversationState,
    event: e.MessageExpanded
    | e.TextStreamed
    | e.ThoughtStreamed
    | e.EntryCompleted
    | e.ToolCallRequested
    | e.ToolCallChanged
    | e.ToolCallProgressed
    | e.ChatNoticeAdded,
) -> ConversationState:
    match event:
        case e.MessageExpanded(message):
            return _with_entry(conversation, message.id, lambda _: message)
        case e.TextStreamed(entry_id, delta):
            return _streamed(conversation, ModelText(entry_id, delta))
        case e.ThoughtStreamed(entry_id, delta):
            return _streamed(conversation, Thought(entry_id, delta))
        case e.EntryCompleted(entry_id, seconds):
            return _with_entry(conversation, entry_id, lambda entry: _completed(entry, seconds))
        case e.ToolCallRequested(call):
            return _appended(conversation, call)
        case e.ChatNoticeAdded(notice):
            return _appended(conversation, notice)
        case e.ToolCallChanged(call_id, result=result):
            changed = _with_entry(conversation, call_id, lambda entry: _moved_on(entry, event))
            if changed is conversation:
                return conversation
            kept = changed.transcript if changed.turn is not None else _settled(changed.transcript)
            return replace(changed, transcript=clip_old_results(kept) if result else kept)
        case e.ToolCallProgressed(call_id, progress):
            return _with_entry(
                conversation,
                call_id,
                lambda entry: (
                    replace(entry, progress=progress) if isinstance(entry, ToolCall) else entry
                ),
            )


def _appended(conversation: ConversationState, entry: Entry) -> ConversationState:
    live = (*conversation.transcript.live, entry)
    return replace(conversation, transcript=replace(conversation.transcript, live=live))


def _moved_on(entry: Entry, event: e.ToolCallChanged) -> Entry:
    """Update the progress of a call."""
    return event.applied(entry) if isinstance(entry, ToolCall) else entry


def _streamed(conversation: ConversationState, piece: ModelText | Thought) -> ConversationState:
    """Append a delta to its entry, or start the entry with it."""
    live = conversation.transcript.live
    for index in reversed(range(len(live))):
        entry = live[index]
        if entry.id != piece.id:
            continue
        if not isinstance(entry, ModelText | Thought):
            return conversation
        grown = replace(entry, text=entry.text + piece.text)
        changed = (*live[:index], grown, *live[index + 1 :])
        return replace(conversation, transcript=replace(conversation.transcript, live=changed))
    return _appended(conversation, piece)


def _with_entry(
    conversation: ConversationState, entry_id: EntryId, change: Callable[[Entry], Entry]
) -> ConversationState:
    shown = conversation.transcript
    is_live = any(entry.id == entry_id for entry in shown.live)
    entries = shown.live if is_live else shown.settled  # a task may outlive its turn
    entries = tuple(change(entry) if entry.id == entry_id else entry for entry in entries)
    after = replace(shown, live=entries) if is_live else replace(shown, settled=entries)
    return replace(conversation, transcript=after)


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
        case ProfilesSet(profiles):
            return replace(state, profiles=profiles)
        case ContextMeasured(parts):
            return replace(state, context_parts=parts)
        case SessionsListed(sessions):
            return replace(state, sessions=sessions)
        case LastSessionFound():
            return replace(state, last_session=event)
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
                tasks=frozenset(),
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
