"""`reduce` is total, pure and bounded, and what it keeps of results."""

import copy
import re
import time
from collections.abc import Iterable
from dataclasses import fields, replace

import pytest

from tests.support.samples import (
    CALL,
    EVENT_TYPES,
    OTHER,
    RECORDED,
    REQUEST,
    SERVER,
    TEXT,
    THOUGHT,
    TURN,
    confirmation,
    log_line,
    one_of_each,
    populated_state,
    server_view,
    tool_call,
)
from tui.model import events as e
from tui.model import sessions
from tui.model.catalog import Catalog
from tui.model.chat import (
    MAIN,
    ChatNotice,
    ConversationEvent,
    ConversationId,
    EntryId,
    ModelText,
    Picture,
    Progress,
    Severity,
    Thought,
    ToolCall,
    ToolCallStatus,
    TurnEnd,
    TurnId,
    TurnOutcome,
    TurnPhase,
    Usage,
    UserMessage,
)
from tui.model.consent import RequestId
from tui.model.frozen import StateEvent
from tui.model.runs import ToolRun, ToolRunChanged
from tui.model.servers import Failure, ServerId, ServerInfo, ServerStatus
from tui.store import reducer
from tui.store.reducer import reduce
from tui.store.selectors import entries
from tui.store.state import (
    MAX_LOG_LINES,
    MAX_NOTICES,
    AppState,
    ConversationState,
    TranscriptState,
    Unsent,
)

NOBODY = ServerId("nobody")
UNKNOWN = EntryId("unknown")


def after(state: AppState, *history: e.Event) -> AppState:
    for event in history:
        state = reduce(state, event)
    return state


def retrying(failure: Failure) -> e.ServerStatusChanged:
    return e.ServerStatusChanged(SERVER, ServerStatus.RETRYING, failure, 12.5)


def texts(found: Iterable[object]) -> list[str]:
    return [entry.text for entry in found if isinstance(entry, ModelText | Thought | UserMessage)]


def test_there_is_a_sample_of_every_event() -> None:
    assert set(one_of_each()) == set(EVENT_TYPES)


def test_what_an_event_says_of_the_state_has_the_type_that_it_has_there() -> None:
    def types_of(kind: type) -> dict[str, str]:
        found = {one.name: str(one.type) for one in fields(kind) if not one.kw_only}
        short = {key: re.sub(r"<class '|'>|\w+\.(?=\w)", "", one) for key, one in found.items()}
        return {key: one.removesuffix(" | None") for key, one in short.items()}

    saying = [kind for kind in EVENT_TYPES if issubclass(kind, StateEvent)]
    assert len(saying) > 10
    for kind in saying:
        state = ConversationState if issubclass(kind, ConversationEvent) else AppState
        said = {kind.part: kind.__name__} if kind.part else types_of(kind)
        assert said.items() <= types_of(state).items(), kind


def test_every_event_changes_the_state_and_not_the_snapshot_before() -> None:
    before = populated_state()
    mapped = ("logs", "log_levels", "conversations", "instructions", "keys", "runs", "profiles")
    mappings = {name: dict(getattr(before, name)) for name in mapped}
    names = set(AppState.__slots__) - set(mappings)
    kept = {name: copy.deepcopy(getattr(before, name)) for name in names}
    for kind in set(EVENT_TYPES) - set(RECORDED):
        assert reduce(before, one_of_each()[kind]) != before, kind
        assert {name: getattr(before, name) for name in kept} == kept, kind
        assert {name: dict(getattr(before, name)) for name in mappings} == mappings, kind


def test_every_event_is_harmless_at_the_start_and_some_only_for_the_audit_log() -> None:
    assert all(isinstance(reduce(AppState(), one), AppState) for one in one_of_each().values())
    before = populated_state()
    assert all(reduce(before, one_of_each()[kind]) is before for kind in RECORDED)


def test_what_changes_nothing_gives_the_same_object() -> None:
    events: list[e.Event] = [
        *(e.ServerStatusChanged(NOBODY, ServerStatus.READY), e.CatalogChanged(NOBODY, Catalog())),
        *(e.ServerLogged(NOBODY, (log_line(),)), e.ServerLogged(SERVER, ())),
        e.TurnPhaseChanged(TurnId("other"), TurnPhase.TOOLS),
        e.TurnPhaseChanged(TURN, TurnPhase.WAITING),
        *(e.TurnFinished(TurnId("other"), TurnOutcome.COMPLETED), e.EntryCompleted(UNKNOWN)),
        *(e.EntryCompleted(CALL), e.ToolCallChanged(UNKNOWN, ToolCallStatus.OK)),
        *(e.ToolCallChanged(TEXT, ToolCallStatus.OK), e.ToolCallProgressed(UNKNOWN, Progress(1))),
        *(e.ToolCallProgressed(TEXT, Progress(1)), e.TextStreamed(CALL, "not a text")),
        *(e.RequestSettled(RequestId("unknown")), e.UsageReported(Usage())),
        e.ModelSelected(AppState().model),
        e.TextStreamed(TEXT, "closed", conversation=ConversationId("gone")),
        sessions.ConversationSelected(ConversationId("gone")),
        *(sessions.ConversationClosed(one) for one in (ConversationId("gone"), MAIN)),
    ]
    state = populated_state()
    for event in events:
        assert reduce(state, event) is state


def test_a_status_brings_its_reason_and_takes_the_old_one_away() -> None:
    failure = Failure("it ended", stderr_tail=("Traceback",))
    info = ServerInfo("notes", "1", "2026-07-28")
    failed = after(populated_state(), retrying(failure))
    assert (failed.servers[0].failure, failed.servers[0].retry_at) == (failure, 12.5)

    ready = after(failed, e.ServerStatusChanged(SERVER, ServerStatus.READY, info=info))
    assert ready.servers[0] == replace(server_view(), status=ServerStatus.READY, info=info)
    assert ready.servers[1] is failed.servers[1]


def test_a_failure_is_kept_until_the_next_attempt_has_ended() -> None:
    ended, refused = Failure("it ended"), Failure("it refused")

    def kept(*statuses: ServerStatus, failure: Failure | None = None) -> Failure | None:
        changes = (e.ServerStatusChanged(SERVER, status, failure) for status in statuses)
        return after(failed, *changes).servers[0].last_failure

    failed = after(populated_state(), retrying(ended))
    assert failed.servers[0].last_failure == ended
    assert failed.servers[0].is_troubled
    starting = ServerStatus.STARTING
    assert kept(starting) == kept(starting, ServerStatus.STOPPING) == ended
    assert kept(starting, ServerStatus.RETRYING, failure=refused) == refused
    assert kept(starting, ServerStatus.READY) is kept(ServerStatus.STOPPED, starting) is None


def test_new_settings_keep_the_failure_of_a_server_that_is_being_tried_again() -> None:
    ended = Failure("it ended")
    views = tuple(server_view(name, ServerStatus.STARTING) for name in (SERVER, "new"))
    failed = after(populated_state(), retrying(ended), e.ServersConfigured(views))
    assert [view.last_failure for view in failed.servers] == [ended, None]
    broken = replace(server_view(status=ServerStatus.INVALID), failure=Failure("no command"))
    assert after(failed, e.ServersConfigured((broken,))).servers[0].is_troubled


def test_conversations_do_not_touch_each_other() -> None:
    other, before = OTHER, populated_state()
    message = UserMessage(EntryId("u"), "hello")
    started = e.TurnStarted(TURN, message, 1.0, conversation=other)
    said = e.TextStreamed(TEXT, "hi", conversation=other)
    state = after(before, started, said, e.QueueChanged(("a",), conversation=other))
    assert state.conversation is before.conversation
    there = state.conversations[other]
    assert (there.transcript.live, there.queued) == ((message, ModelText(TEXT, "hi")), ("a",))
    assert replace(state, current=other).conversation is state.conversations[other]


def test_a_turn_that_ends_behind_another_conversation_is_news_until_it_is_shown() -> None:
    def has_news(*events: e.Event) -> bool:
        return after(populated_state(), *events).conversations[MAIN].has_news

    ended, shown = e.TurnFinished(TURN, TurnOutcome.COMPLETED), sessions.ConversationSelected(OTHER)
    assert not has_news(ended, shown)
    assert has_news(shown, ended)
    assert not has_news(shown, ended, sessions.ConversationSelected(MAIN))


def test_a_conversation_is_named_by_its_first_words_unless_the_user_names_it() -> None:
    message = UserMessage(EntryId("u"), "buy\nmilk")
    opened = after(AppState(), e.TurnStarted(TURN, message, 1.0))
    assert opened.conversation.title == "buy milk"
    named = after(opened, sessions.ConversationNamed("Shopping"), e.TurnStarted(TURN, message, 2.0))
    assert named.conversation.title == "Shopping"
    assert after(named, e.ConversationCleared()).conversation.title == ""
    waiting = after(opened, e.QueueChanged(("eggs",)))
    restored = after(waiting, sessions.ConversationRestored((replace(message, text="bread"),)))
    assert (restored.conversation.queued, restored.conversation.title) == (("eggs",), "bread")


def test_a_catalog_outlives_the_connection() -> None:
    listed = one_of_each()[e.CatalogChanged]
    assert isinstance(listed, e.CatalogChanged)
    state = after(populated_state(), listed, e.ServerStatusChanged(SERVER, ServerStatus.STOPPED))
    assert state.servers[0].catalog == listed.catalog


def test_the_newest_log_lines_are_kept_per_server() -> None:
    lines = tuple(log_line(str(number)) for number in range(MAX_LOG_LINES + 5))
    state = after(
        populated_state(),
        e.ServerLogged(SERVER, lines[:3]),
        e.ServerLogged(ServerId("other"), (log_line("mine"),)),
        e.ServerLogged(SERVER, lines[3:]),
    )
    assert state.logs[SERVER] == lines[-MAX_LOG_LINES:]
    assert state.logs[ServerId("other")] == (log_line("mine"),)


def test_notices_are_bounded_and_counted() -> None:
    state = AppState()
    for number in range(MAX_NOTICES + 7):
        state = reduce(state, e.NoticeRaised(e.Notice(Severity.INFO, str(number))))
    assert (len(state.notices), state.notices[-1].text) == (MAX_NOTICES, str(MAX_NOTICES + 6))
    assert state.notice_count == MAX_NOTICES + 7


def test_deltas_build_one_entry_up_also_late_ones() -> None:
    new = EntryId("t")
    state = after(populated_state(), e.TextStreamed(new, "a"), e.TextStreamed(new, "b"))
    assert state.conversation.transcript.live[-1] == ModelText(new, "ab")
    state = after(populated_state(), e.TextStreamed(TEXT, " add it."), e.EntryCompleted(TEXT))
    ids = [entry.id for entry in state.conversation.transcript.live]
    assert len(ids) == len(set(ids))
    assert ModelText(TEXT, "I will add it.", complete=True) in state.conversation.transcript.live


def test_thoughts_and_text_are_kept_apart() -> None:
    state = after(populated_state(), e.ThoughtStreamed(EntryId("more"), "and then"))
    assert state.conversation.transcript.live[1] == Thought(THOUGHT, "The user wants")
    assert state.conversation.transcript.live[-1] == Thought(EntryId("more"), "and then")


def test_a_call_keeps_its_progress_until_it_moves_on() -> None:
    progressed = after(populated_state(), e.ToolCallProgressed(CALL, Progress(1, 2)))
    running = replace(tool_call(), progress=Progress(1, 2))
    assert progressed.conversation.transcript.live[-1] == running
    done = after(progressed, e.ToolCallChanged(CALL, ToolCallStatus.OK, 0.5, "added"))
    call = done.conversation.transcript.live[-1]
    assert isinstance(call, ToolCall)
    found = (call.status, call.seconds, call.result, call.progress)
    assert found == (ToolCallStatus.OK, 0.5, "added", None)


def test_a_finished_turn_settles_and_completes_its_entries() -> None:
    before = after(populated_state(), one_of_each()[e.ToolCallChanged])
    state = after(before, e.TurnFinished(TURN, TurnOutcome.COMPLETED, seconds=2.5))
    assert (state.conversation.turn, state.conversation.transcript.live) == (None, ())
    *settled, end = state.conversation.transcript.settled
    lived = [entry.id for entry in before.conversation.transcript.live]
    assert [entry.id for entry in settled] == lived
    tokens = before.conversation.usage.total
    assert end == TurnEnd(EntryId(f"{TURN}-end"), calls=1, seconds=2.5, tokens=tokens)
    assert ModelText(TEXT, "I will", complete=True) in state.conversation.transcript.settled
    assert state.conversation.unsent == Unsent()


def test_a_turn_that_follows_without_an_end_settles_the_one_before() -> None:
    ended = one_of_each()[e.ToolCallChanged]
    state = after(populated_state(), ended, one_of_each()[e.TurnStarted])
    assert state.conversation.turn is not None
    assert state.conversation.turn.id == TurnId("turn-2")
    assert state.conversation.transcript.live == (UserMessage(EntryId("user-2"), "again"),)
    assert ModelText(TEXT, "I will", complete=True) in state.conversation.transcript.settled


def test_text_that_never_arrived_is_kept_with_all_before_and_a_new_turn_drops_none() -> None:
    failed = after(populated_state(), e.TurnFinished(TURN, TurnOutcome.FAILED, "again please"))
    assert failed.conversation.unsent == Unsent(("again please",), 1)
    started = after(failed, e.TurnStarted(TurnId("2"), UserMessage(EntryId("u"), "x"), 1.0))
    assert started.conversation.unsent == failed.conversation.unsent
    again = after(started, e.TurnFinished(TurnId("2"), TurnOutcome.FAILED, "again please"))
    assert again.conversation.unsent == Unsent(("again please", "again please"), 2)
    assert after(again, e.ConversationCleared()).conversation.unsent == Unsent((), 2)


def test_a_message_that_comes_back_leaves_the_running_turn_alone() -> None:
    before = populated_state().conversation
    returned = after(populated_state(), e.MessageReturned("/hlep")).conversation
    assert (returned.turn, returned.transcript) == (before.turn, before.transcript)
    assert returned.unsent == Unsent(("/hlep",), 1)
    other = e.TurnFinished(TurnId("other"), TurnOutcome.FAILED, "late")
    late = after(populated_state(), other).conversation
    assert (late.turn, late.transcript) == (before.turn, before.transcript)
    assert late.unsent.texts == ("late",)


def test_what_servers_add_to_a_message_takes_its_place() -> None:
    expanded = UserMessage(EntryId("user-1"), "/greet and more", "/greet")
    state = after(populated_state(), e.MessageExpanded(expanded))
    assert entries(state)[0] == expanded
    unknown = UserMessage(EntryId("user-9"), "of no entry")
    assert after(state, e.MessageExpanded(unknown)) == state


def test_usage_adds_up_the_requests_of_a_turn() -> None:
    one = e.UsageReported(Usage(10, 2, 1, 4, context=10, context_limit=1_000))
    other = e.UsageReported(Usage(5, 2))  # beside the conversation
    turn = e.TurnStarted(TurnId("2"), UserMessage(EntryId("u"), "x"), 1.0)
    state = after(populated_state(), turn, one, one, other)
    assert state.conversation.usage == Usage(25, 6, 2, 8, context=10, context_limit=1_000)
    state = after(state, e.TurnStarted(TurnId("3"), UserMessage(EntryId("v"), "y"), 1.0))
    assert state.conversation.usage == Usage(context=10, context_limit=1_000)


def test_a_new_conversation_is_empty_and_told_from_the_old_one() -> None:
    before = after(populated_state(), e.UsageReported(Usage(prompt=9, context_limit=1_000)))
    state = after(before, e.ConversationCleared())
    assert (entries(state), state.conversation.turn) == ((), None)
    assert state.conversation.transcript.epoch == before.conversation.transcript.epoch + 1
    assert (state.conversation.usage, state.servers) == (Usage(context_limit=1_000), before.servers)


def test_questions_queue_and_leave_by_their_id() -> None:
    second = confirmation(RequestId("request-2"))
    asked = after(populated_state(), e.RequestRaised(second))
    assert [request.id for request in asked.pending] == [REQUEST, second.id]
    assert after(asked, e.RequestSettled(REQUEST)).pending == (second,)


def test_a_notice_outside_a_turn_joins_the_conversation() -> None:
    notice = ChatNotice(EntryId("n"), Severity.ERROR, "no key", "press F1")
    state = after(AppState(), e.ChatNoticeAdded(notice))
    assert entries(state) == (notice,)
    message = UserMessage(EntryId("u"), "hello")
    assert entries(after(state, e.TurnStarted(TURN, message, 1.0))) == (notice, message)


def test_the_cost_of_a_delta_does_not_grow_with_the_conversation() -> None:
    message = UserMessage(EntryId("u"), "x")
    old = tuple(ModelText(EntryId(str(number)), "old", complete=True) for number in range(1_000))
    state = AppState(conversations={MAIN: ConversationState(TranscriptState(settled=old))})
    state = after(state, e.TurnStarted(TURN, message, 1.0))
    settled = state.conversation.transcript.settled
    assert after(state, e.TextStreamed(TEXT, "a")).conversation.transcript.settled is settled
    assert texts(settled) == ["old"] * 1_000


def called(number: int, result: str) -> tuple[e.Event, ...]:
    """Give the events of one call."""
    entry = EntryId(f"e{number}")
    return (
        e.ToolCallRequested(ToolCall(entry, ServerId("s"), "look", "{}")),
        e.ToolCallChanged(entry, ToolCallStatus.OK, 0.1, result),
    )


def turn(number: int) -> e.TurnStarted:
    return e.TurnStarted(TurnId(f"t{number}"), UserMessage(EntryId(f"u{number}"), "go"), 0.0)


def results(state: AppState) -> list[str]:
    entries = (*state.conversation.transcript.settled, *state.conversation.transcript.live)
    return [entry.result for entry in entries if isinstance(entry, ToolCall)]


def test_old_results_are_cut_across_turns_new_ones_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reducer, "MAX_RESULTS", 20_000)
    state = after(AppState(), turn(1), *called(1, "a" * 9_000), *called(2, "b" * 9_000))
    assert results(state) == ["a" * 9_000, "b" * 9_000]
    finished = e.TurnFinished(TurnId("t1"), TurnOutcome.COMPLETED, "")
    state = after(state, finished, turn(2), *called(3, "c" * 9_000))
    cut = "a" * 2_000 + "\n… [clipped; 7,000 characters were dropped]"
    assert results(state) == [cut, "b" * 9_000, "c" * 9_000]
    transcript = state.conversation.transcript
    assert [len(transcript.settled), len(transcript.live)] == [4, 2]
    state = after(state, *called(4, "d"))
    assert results(state) == [cut, "b" * 9_000, "c" * 9_000, "d"]


def test_what_is_cut_is_not_cut_again_and_old_pictures_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reducer, "MAX_RESULTS", 5_000)
    state = after(AppState(), turn(1), *called(1, "a" * 9_000))
    for number in range(2, 5):
        state = after(state, *called(number, str(number) * 5_000))
    assert results(state)[0] == "a" * 2_000 + "\n… [clipped; 7,000 characters were dropped]"
    assert results(state)[-1] == "4" * 5_000
    monkeypatch.setattr(reducer, "MAX_RESULTS", 1_500)
    state = after(AppState(), turn(1))
    seen = (Picture("image/png", "x" * 1_000, 1, 1),)
    for number in (1, 2):
        begun, ended = called(number, "a")
        assert isinstance(ended, e.ToolCallChanged)
        state = after(state, begun, replace(ended, pictures=seen))
    entries = state.conversation.transcript.live
    assert [one.pictures for one in entries if isinstance(one, ToolCall)] == [(), seen]


def test_a_long_conversation_of_large_results_is_bounded_and_cheap_and_a_short_one_untouched() -> (
    None
):
    call = ToolCall(EntryId("e"), ServerId("s"), "look", "{}", result="x")
    transcript = TranscriptState(settled=(call,) * 10)
    assert reducer.clip_old_results(transcript) is transcript
    calls = (replace(call, id=EntryId(f"e{n}"), result="x" * 9_000) for n in range(5_000))
    transcript = TranscriptState(settled=tuple(calls))
    began = time.process_time()
    kept = reducer.clip_old_results(transcript)
    assert time.process_time() - began < 1
    held = sum(len(entry.result) for entry in kept.settled if isinstance(entry, ToolCall))
    assert held < reducer.MAX_RESULTS + 5_000 * 2_100
    assert [entry.id for entry in kept.settled] == [entry.id for entry in transcript.settled]


def test_calls_outside_a_turn_settle_as_they_end() -> None:
    state = AppState()
    for number in range(3):
        state = after(state, *called(number, "a"))
        transcript = state.conversation.transcript
        assert (len(transcript.settled), transcript.live) == (number + 1, ())


def test_a_call_outside_a_turn_shows_its_end_although_turns_came_and_went() -> None:
    asked, ended = called(1, "a")
    state = after(AppState(), asked, turn(1), *called(2, "b"))
    state = after(state, e.TurnFinished(TurnId("t1"), TurnOutcome.COMPLETED, ""), turn(2))
    assert results(state) == ["", "b"]
    state = after(state, ended, e.TurnFinished(TurnId("t2"), TurnOutcome.COMPLETED, ""))
    assert (results(state), state.conversation.transcript.live) == (["a", "b"], ())
    ids = [entry.id for entry in state.conversation.transcript.settled]
    assert ids == ["e1", "u1", "e2", "t1-end", "u2", "t2-end"]


def run_by_hand(number: int, size: int = 0, status: ToolCallStatus = ToolCallStatus.OK) -> ToolRun:
    call = ToolCall(EntryId(f"c{number}"), SERVER, "look", "{}", status)
    return ToolRun(call, {"content": []}, size=size)


def test_of_calls_by_hand_the_oldest_ended_ones_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reducer, "MAX_RUNS", 3)
    monkeypatch.setattr(reducer, "MAX_RESULTS", 1_000)
    state = AppState()
    running = run_by_hand(0, status=ToolCallStatus.RUNNING)
    for run in (running, *map(run_by_hand, range(1, 5))):
        state = reduce(state, ToolRunChanged(run))
    assert [*state.runs] == ["c0", "c3", "c4"], "what runs stays"
    state = reduce(state, ToolRunChanged(run_by_hand(5, 2_000)))
    assert [*state.runs] == ["c0", "c5"], "however large it is"
    state = reduce(state, ToolRunChanged(run_by_hand(0, 10)))
    assert [*state.runs] == ["c0", "c5"], "what just ended can be looked at"
    state = reduce(state, ToolRunChanged(run_by_hand(6)))
    assert ([*state.runs], state.conversation) == (["c6"], AppState().conversation)
