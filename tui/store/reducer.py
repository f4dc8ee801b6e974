"""`reduce`, the pure function from state and event to the next state."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from tui.model import events as e
from tui.model.chat import (
    ChatNotice,
    ConversationEvent,
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
from tui.model.frozen import StateEvent
from tui.model.runs import ToolRun, ToolRunChanged
from tui.model.servers import (
    ATTEMPTED,
    UNDECIDED,
    AccessRefused,
    ServerId,
    ServerStatus,
    ServerView,
)
from tui.model.sessions import (
    ConversationClosed,
    ConversationOpened,
    ConversationRestored,
    ConversationRewound,
    ConversationSelected,
)
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
from tui.text import clip_end, sanitize_line

if TYPE_CHECKING:
    from tui.model.settings import PriceSettings

MAX_RESULTS: Final = 16 * 1024 * 1024
"""Total characters of results kept whole, of a conversation and of calls by hand."""

MAX_OLD_RESULT: Final = 2_000
"""Characters kept of an older result."""

MAX_TITLE: Final = 60
"""Characters of a message that name its conversation."""


def clip_old_results(transcript: TranscriptState) -> TranscriptState:
    """Clip the results of older calls above the limit; return the same object otherwise."""
    entries = (*transcript.settled, *transcript.live)
    if sum(_size(entry) for entry in entries if isinstance(entry, ToolCall)) <= MAX_RESULTS:
        return transcript
    kept = [*_clipped(reversed(entries))][::-1]
    count = len(transcript.settled)
    return replace(transcript, settled=tuple(kept[:count]), live=tuple(kept[count:]))


def _clipped(newest_first: Iterable[Entry]) -> Iterator[Entry]:
    room = MAX_RESULTS
    for entry in newest_first:
        room -= _size(entry) if isinstance(entry, ToolCall) else 0
        if isinstance(entry, ToolCall) and room < 0:
            entry = replace(entry, pictures=(), result=clip_end(entry.result, MAX_OLD_RESULT))  # noqa: PLW2901
        yield entry


def _size(call: ToolCall) -> int:
    return len(call.result) + sum(len(picture.data) for picture in call.pictures)


def reduce(state: AppState, event: e.Event) -> AppState:
    """Return the state after `event`; the same object if nothing changed."""
    after = _reduce(state, event)
    return state if after == state else after


def after_fault(state: AppState, event: e.Event, error: Exception) -> AppState:
    """Return the state after an event that could not be applied.

    A notice says so, and a turn that has ended does not seem to run on.
    """
    text = f"An event could not be shown ({type(error).__name__})."
    notice = e.Notice(Severity.ERROR, text, "See the log for details.")
    state = _reduce(state, e.NoticeRaised(notice))
    if isinstance(event, e.TurnFinished) and event.conversation in state.conversations:
        ended = replace(state.conversations[event.conversation], turn=None)
        state = _with_conversation(state, event.conversation, ended)
    return state


def _reduce(state: AppState, event: e.Event) -> AppState:
    match event:
        case ConversationEvent():
            return _reduce_in_conversation(state, event)
        case StateEvent():
            return replace(state, **event.parts())
        case e.ServersConfigured(views):
            old = {view.id: view for view in state.servers}
            servers = tuple(_keep_failure(view, old.get(view.id)) for view in views)
            return replace(state, servers=servers, configured=True)
        case e.NoticeRaised(notice):
            notices = (*state.notices, notice)[-MAX_NOTICES:]
            return replace(state, notices=notices, notice_count=state.notice_count + 1)
        case e.RequestRaised(request):
            pending = {one.id: one for one in state.pending} | {request.id: request}
            return replace(state, pending=tuple(pending.values()))
        case e.RequestSettled(request_id):
            left = tuple(one for one in state.pending if one.id != request_id)
            return replace(state, pending=left)
        case e.ServerTried(tried):
            before = state.trial or AppState()
            return replace(state, trial=None if tried is None else reduce(before, tried))
        case ConversationOpened() | ConversationSelected() | ConversationClosed():
            return _reduce_tabs(state, event)
        case ToolRunChanged(run):
            return replace(state, runs=_with_run(state.runs, run))
    return _reduce_server(state, event)


def _with_run(runs: Mapping[EntryId, ToolRun], run: ToolRun) -> Mapping[EntryId, ToolRun]:
    """Put a run in its place, or last; the oldest that have ended go where there are too many."""
    kept = {**runs, run.call.id: run}
    size = sum(one.size for one in kept.values())
    for key, one in [*kept.items()][:-1]:
        if len(kept) <= MAX_RUNS and size <= MAX_RESULTS:
            break
        if one.call.status.is_over and one is not run:
            size -= kept.pop(key).size
    return kept


def _reduce_in_conversation(state: AppState, event: ConversationEvent) -> AppState:
    key = event.conversation
    if (before := state.conversations.get(key)) is None:
        return state  # it was closed
    after = _reduce_conversation(before, event, state.prices)
    if isinstance(event, e.TurnFinished) and key != state.current:
        after = replace(after, has_news=True)
    return _with_conversation(state, key, after)


def _reduce_server(state: AppState, event: e.Event) -> AppState:
    match event:
        case e.SubscriptionChanged(server, uri, subscribed):
            one = frozenset({(server, uri)})
            changed = state.subscriptions | one if subscribed else state.subscriptions - one
            return replace(state, subscriptions=changed)
        case e.LogLevelChanged(server, level):
            return replace(state, log_levels={**state.log_levels, server: level})
        case e.ServerStatusChanged(server):
            return _with_server(state, server, lambda view: _moved(view, event))
        case AccessRefused(server, refused):
            return _with_server(state, server, lambda view: replace(view, refused=refused))
        case e.CatalogChanged(server, catalog):
            return _with_server(state, server, lambda view: replace(view, catalog=catalog))
        case e.ServerLogged(server, lines):
            if not lines or all(view.id != server for view in state.servers):
                return state
            kept = (*state.logs.get(server, ()), *lines)[-MAX_LOG_LINES:]
            state = _with_server(state, server, lambda view: _with_words(view, lines))
            return replace(state, logs={**state.logs, server: kept})
    return state


def _moved(view: ServerView, event: e.ServerStatusChanged) -> ServerView:
    now = {**event.said(), "transport": event.transport or view.transport}
    del now["server"]
    return _keep_failure(replace(view, **now, last_words=""), view)


def _with_words(view: ServerView, lines: Sequence[e.LogLine]) -> ServerView:
    """Note the last line that a starting server wrote, or that we warn of."""
    own = (e.OWN_SOURCE, Severity.INFO)
    words = [
        line.text for line in lines if (line.source, line.severity) != own and line.text.strip()
    ]
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
    conversation: ConversationState, event: ConversationEvent, prices: "PriceSettings | None"
) -> ConversationState:
    match event:
        case StateEvent():
            return replace(conversation, **event.parts())
        case e.UsageReported(usage, model, listed):
            cost = prices.cost(model, usage, listed) if prices is not None else None
            return conversation.with_usage(usage, cost)
        case e.MessageReturned(text):
            return _with_unsent(conversation, text)
        case e.TurnClockSet(id_, time) if conversation.turn and conversation.turn.id == id_:
            return replace(conversation, turn=replace(conversation.turn, started_at=time))
        case e.TurnStarted() | e.TurnPhaseChanged() | e.TurnFinished() | e.ConversationCleared():
            return _reduce_turn(conversation, event, prices)
        case ConversationRestored(entries, usage, title=title):
            return replace(
                conversation,
                title=title or _first_words(entries),
                transcript=_anew(conversation, entries),
                usage=usage.cleared(),
                tasks={},
                unsent=replace(conversation.unsent, texts=()),  # what is new is told by its count
            )
        case ConversationRewound(message):
            shown = (*conversation.transcript.settled, *conversation.transcript.live)
            kept = tuple(takewhile(lambda entry: entry.id != message, shown))
            return replace(conversation, transcript=_anew(conversation, kept))
    return _reduce_entry(conversation, event)


def _anew(conversation: ConversationState, entries: tuple[Entry, ...]) -> TranscriptState:
    """Return a transcript of these entries in place of a conversation's."""
    return TranscriptState(settled=entries, epoch=conversation.transcript.epoch + 1)


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
            end = TurnEnd(EntryId(f"{turn}-end"), calls, seconds, conversation.usage.total, cost)
            lasting = (
                one for one in transcript.live if not (isinstance(one, ChatNotice) and one.passes)
            )
            ended = replace(transcript, live=(*lasting, end))
            return replace(after, turn=None, transcript=_settled(ended))
        case e.ConversationCleared():
            return replace(
                conversation,
                title="",
                turn=None,
                tasks={},
                transcript=_anew(conversation, ()),
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


def _reduce_entry(conversation: ConversationState, event: ConversationEvent) -> ConversationState:
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
        case e.ToolCallChanged(result=result):
            changed = _with_call(conversation, event)
            kept = changed.transcript if changed.turn is not None else _settled(changed.transcript)
            return replace(changed, transcript=clip_old_results(kept) if result else kept)
        case e.ToolCallProgressed():
            return _with_call(conversation, event)
    return conversation


def _appended(conversation: ConversationState, entry: Entry) -> ConversationState:
    live = (*conversation.transcript.live, entry)
    return replace(conversation, transcript=replace(conversation.transcript, live=live))


def _streamed(conversation: ConversationState, piece: ModelText | Thought) -> ConversationState:
    """Append a delta to its entry, or start the entry with it."""

    def grown(entry: Entry) -> Entry:
        if isinstance(entry, ModelText | Thought):
            return replace(entry, text=entry.text + piece.text)
        return entry

    if any(entry.id == piece.id for entry in conversation.transcript.live):
        return _with_entry(conversation, piece.id, grown)
    return _appended(conversation, piece)


def _with_call(
    conversation: ConversationState, event: e.ToolCallChanged | e.ToolCallProgressed
) -> ConversationState:
    """Update a call, which runs as a task or no longer."""
    tasks = {**conversation.tasks}

    def change(entry: Entry) -> Entry:
        if isinstance(entry, ToolCall):
            entry = tasks[entry.id] = event.applied(entry)
        return entry

    if event.call in tasks:
        change(tasks[event.call])  # its entry may be gone
    after = _with_entry(conversation, event.call, change)
    return replace(after, tasks={key: one for key, one in tasks.items() if one.task_keys})


def _with_entry(
    conversation: ConversationState, entry_id: EntryId, change: Callable[[Entry], Entry]
) -> ConversationState:
    shown = conversation.transcript
    is_live = any(entry.id == entry_id for entry in shown.live)
    entries = shown.live if is_live else shown.settled  # a task may outlive its turn
    entries = tuple(change(entry) if entry.id == entry_id else entry for entry in entries)
    after = replace(shown, live=entries) if is_live else replace(shown, settled=entries)
    return replace(conversation, transcript=after)


def _with_conversation(state: AppState, key: ConversationId, after: ConversationState) -> AppState:
    """Return the state with a conversation, in its place or behind the others."""
    return replace(state, conversations={**state.conversations, key: after})


def _reduce_tabs(
    state: AppState, event: ConversationOpened | ConversationSelected | ConversationClosed
) -> AppState:
    match event:
        case ConversationOpened(key):
            here = state.conversation
            opened = ConversationState(model=here.model, options=here.options)
            return _with_conversation(state, key, opened)
        case ConversationSelected(key):
            if (selected := state.conversations.get(key)) is None:
                return state
            state = _with_conversation(state, key, replace(selected, has_news=False))
            return replace(state, current=key, context_parts=())
        case ConversationClosed(key) if key == state.current:
            return state
        case ConversationClosed(key):
            left = {one: kept for one, kept in state.conversations.items() if one != key}
            return replace(state, conversations=left)


def _first_words(entries: Iterable[Entry]) -> str:
    """Return what the user said first."""
    texts = (entry.text for entry in entries if isinstance(entry, UserMessage))
    return sanitize_line(next(texts, ""), MAX_TITLE)
