"""Who hears of what, what panes ask of the state, and what is asked before an engine is."""

import shlex
from typing import cast

import click
import pytest

from tests.fakes.commands import Call, RecordingEngine
from tests.support import samples
from tui.cli.main import main
from tui.engine.engine import Engine
from tui.model import events as e
from tui.model.chat import MAIN, ConversationId, Severity, TurnOutcome
from tui.model.consent import RequestId
from tui.model.events import Event, MessageReturned
from tui.model.servers import ServerId, ServerStatus
from tui.model.sessions import ConversationRestored, SessionId
from tui.store import selectors
from tui.store.commands import EQUALS, Commands, command_line
from tui.store.reducer import reduce
from tui.store.state import AppState, Unsent
from tui.store.store import Store
from tui.text import sanitize_line

READY = e.ServerStatusChanged(samples.SERVER, ServerStatus.READY)


def notice(text: str) -> e.NoticeRaised:
    return e.NoticeRaised(e.Notice(Severity.INFO, text))


def test_a_listener_gets_each_new_snapshot_until_it_unsubscribed() -> None:
    store = Store(samples.populated_state())
    heard: list[AppState] = []
    unsubscribe = store.listen(heard.append)
    for text in ("one", "two"):
        store.dispatch(notice(text))
    assert [len(state.notices) for state in heard] == [1, 2]
    assert heard[-1] is store.state
    store.dispatch(e.RequestSettled(RequestId("unknown")))
    assert len(heard) == 2, "nobody hears of an event that changes nothing"
    unsubscribe()
    unsubscribe()
    store.dispatch(notice("three"))
    assert len(heard) == 2


def test_who_is_unsubscribed_by_another_listener_hears_no_more() -> None:
    store, heard = Store(), list[AppState]()
    store.listen(lambda _: unsubscribe())
    unsubscribe = store.listen(heard.append)
    store.dispatch(notice("one"))
    assert heard == []


def test_a_listener_that_dispatches_does_not_turn_the_order_round() -> None:
    store = Store()
    heard: list[int] = []

    def answer(state: AppState) -> None:
        if len(state.notices) == 1:
            store.dispatch(notice("two"))

    store.listen(answer)
    store.listen(lambda state: heard.append(len(state.notices)))
    store.dispatch(notice("one"))
    assert (heard, heard[-1]) == (sorted(heard), 2)


def test_every_event_can_be_dispatched() -> None:
    for event in samples.one_of_each().values():
        store = Store(samples.populated_state())
        heard: list[AppState] = []
        store.listen(heard.append)
        store.dispatch(event)
        assert heard == ([] if isinstance(event, samples.RECORDED) else [store.state])


_S = ServerStatus


def with_statuses(*statuses: ServerStatus) -> AppState:
    views = tuple(samples.server_view(f"s{n}", status) for n, status in enumerate(statuses))
    return reduce(AppState(), e.ServersConfigured(views))


def test_servers_are_found_by_id() -> None:
    state = samples.populated_state()
    assert selectors.server(state, samples.SERVER) is state.servers[0]
    assert selectors.server(state, ServerId("nobody")) is None


def test_servers_are_counted_by_status_without_the_disabled_ones() -> None:
    state = with_statuses(_S.FAILED, _S.READY, _S.STARTING, _S.READY, _S.DISABLED)
    counts = ((_S.READY, 2), (_S.FAILED, 1), (_S.STARTING, 1))
    assert selectors.server_counts(state) == counts
    assert selectors.server_counts(with_statuses(_S.DISABLED)) == ()

    for status in set(ServerStatus) - {_S.DISABLED}:
        assert selectors.server_counts(with_statuses(status)) == ((status, 1),)


def test_awaited_servers_are_named_or_counted() -> None:
    two = "waiting for s1, s2"
    for count, words in enumerate(("", "waiting for s1", two, f"{two}, +1", f"{two}, +2")):
        state = with_statuses(_S.READY, *[_S.STARTING] * count)
        assert selectors.waiting_text(state) == words


def test_entries_span_settled_and_live_turns() -> None:
    before = samples.populated_state()
    finished = reduce(before, e.TurnFinished(samples.TURN, TurnOutcome.COMPLETED))
    ids = [entry.id for entry in selectors.entries(finished)]
    assert ids == [*(entry.id for entry in selectors.entries(before)), f"{samples.TURN}-end"]
    more = reduce(finished, e.TextStreamed(samples.TEXT, "more"))
    assert [entry.id for entry in selectors.entries(more)] == [*ids, samples.TEXT]


class Early:
    """Commands without an engine, and what they say."""

    def __init__(self) -> None:
        self.said: list[Event] = []
        self.commands = Commands(self.said.append)

    def attached(self) -> list[Call]:
        recorder = RecordingEngine()
        self.commands.attach(cast("Engine", recorder))
        return recorder.calls


@pytest.fixture
def early() -> Early:
    return Early()


def test_early_messages_and_the_list_of_sessions_wait_for_an_engine(early: Early) -> None:
    for text in ("one", "two"):
        early.commands.send(text)
    assert early.attached() == [("messages.send", (text, MAIN)) for text in ("one", "two")]
    assert early.attached() == []
    another = Early()
    another.commands.list_sessions()
    assert (another.attached(), another.attached()) == ([("sessions.list_sessions", ())], [])


def test_a_stop_empties_what_waits_and_is_not_repeated(early: Early) -> None:
    for stop in (early.commands.cancel_turn, early.commands.clear_conversation):
        early.commands.send("never")
        stop()
    early.commands.send("this")
    assert early.attached() == [("messages.send", ("this", MAIN))]


def test_commands_that_apply_to_nothing_yet_are_dropped(early: Early) -> None:
    early.commands.engine.review_folder()
    early.commands.engine.servers.set_enabled(ServerId("a"), enabled=False)
    early.commands.engine.conversations.current.retry.end(again=False)
    assert early.attached() == []


def test_the_last_choice_of_a_model_is_kept_and_comes_first(early: Early) -> None:
    early.commands.send("hello")
    early.commands.choose(lambda models: models.use_api_key("k"))
    early.commands.choose(lambda models: models.use_vertex("p", "l"))
    first = ("choice.use_vertex", ("p", "l"))
    assert early.attached() == [first, ("messages.send", ("hello", MAIN))]


def test_until_the_model_is_open_messages_choices_and_sessions_wait(early: Early) -> None:
    engine = RecordingEngine()
    early.commands.attach(cast("Engine", engine), is_ready=False)
    early.commands.send("hello")
    early.commands.choose(lambda models: models.use_demo())
    early.commands.resume("latest")
    early.commands.engine.review_folder()
    assert engine.calls == [("review_folder", ())]
    asked = [("choice.use_demo", ()), ("sessions.resume", ("latest",))]
    assert early.attached() == [*asked, ("messages.send", ("hello", MAIN))]
    assert early.attached() == []


def test_what_was_taken_early_asks_the_engine_that_came_meanwhile(early: Early) -> None:
    taken, engine = early.commands.engine.servers.restart, RecordingEngine()
    taken(ServerId("a"))
    early.commands.attach(cast("Engine", engine))
    taken(ServerId("b"))
    assert engine.calls == [("servers.restart", ("b",))]


def test_what_was_typed_early_comes_back_when_it_is_stopped() -> None:
    store = Store()
    commands = Commands(store.dispatch)
    commands.send("one")
    commands.send("two")
    commands.cancel_turn()
    assert store.state.conversation.unsent == Unsent(("one\n\ntwo",), 1)
    commands.cancel_turn()
    assert store.state.conversation.unsent.count == 1


def test_what_was_typed_early_is_a_queue_that_shows_and_can_be_taken_back() -> None:
    store = Store()
    commands, engine = Commands(store.dispatch), RecordingEngine()

    def shown() -> tuple[tuple[str, ...], tuple[str, ...]]:
        return store.state.conversation.queued, store.state.conversation.unsent.texts

    for text in ("one", "two", "one"):
        commands.send(text)
    assert shown() == (("one", "two", "one"), ())
    commands.unqueue("one", give_back=True)
    assert shown() == (("one", "two"), ("one",))
    commands.unqueue("two", give_back=False)
    assert shown() == (("one",), ("one",))
    store.dispatch(ConversationRestored(()))
    assert shown() == (("one",), ())
    commands.clear_conversation()
    assert shown() == ((), ("one",))
    commands.send("three")
    commands.attach(cast("Engine", engine))
    assert shown()[0] == (), "the engine says what waits from now on"
    assert engine.calls == [("messages.send", ("three", MAIN))]
    commands.unqueue("three", give_back=True)
    assert engine.calls[1:] == [("conversations.current.unqueue", ("three", True))]


def test_early_messages_stay_with_the_conversation_that_they_were_sent_in() -> None:
    said: list[Event] = []
    commands, engine, other = Commands(said.append), RecordingEngine(), ConversationId("chat2")
    commands.send("first")
    commands.attach(cast("Engine", engine), is_ready=False)
    engine.conversations.current.key = other
    for text in ("stopped", "and this"):
        commands.send(text)
    commands.cancel_turn()
    back = [event for event in said if isinstance(event, MessageReturned)]
    assert back == [MessageReturned("stopped\n\nand this", conversation=other)]
    commands.send("dropped")
    commands.clear_conversation()
    commands.send("second")
    engine.calls.clear()
    commands.attach(cast("Engine", engine))
    sent = (("first", MAIN), ("second", other))
    assert engine.calls == [("messages.send", one) for one in sent]


def test_what_was_typed_last_before_the_engine_is_saved_by_it(early: Early) -> None:
    early.commands.keep_draft("ha")
    early.commands.keep_draft("half")
    assert early.attached() == [("sessions.recorder.keep_draft", ("half",))]
    assert early.attached() == []


def understood(words: list[str]) -> None:
    """Let the command line read a command; what it cannot read raises."""
    name, command, rest = "gemdeck", cast("click.Command", main), words
    context = None
    while isinstance(command, click.Group):
        context = command.make_context(name, list(rest), parent=context)
        if rest[0].startswith("-"):
            return
        found = command.resolve_command(context, list(rest))
        name, command, rest = found[0] or "", found[1] or command, found[2]
    command.make_context(name, list(rest), parent=context)


def test_what_the_user_does_is_told_as_the_command_that_does_it(early: Early) -> None:
    calls, hostile = early.attached(), ServerId("--help; rm '*'")
    engine, told = early.commands.engine, []
    engine.servers.set_enabled(samples.SERVER, enabled=False)
    engine.servers.set_enabled(hostile, enabled=True)
    engine.servers.restart(samples.SERVER)
    engine.sign_ins.begin(samples.SERVER)
    engine.sign_ins.end(samples.SERVER)
    engine.features.read_resource(samples.SERVER, "notes://a b")
    engine.features.render_prompt("1", samples.SERVER, "poem", {"mood": "it's ok"})
    engine.sessions.delete(SessionId("3f9a2c1b"))
    engine.sessions.resume("3f9a2c1b")
    engine.review_folder()
    engine.forget_folder()
    early.commands.choose(lambda service: service.use_api_key("AIza-secret"))
    early.commands.choose(lambda service: service.forget_key())
    engine.runs.start(hostile, "look", '{\n  "a": "it\'s"\n}')
    for event in early.said:
        assert isinstance(event, e.NoticeRaised)
        assert event.notice.severity is Severity.INFO
        told.append(event.notice.text)
        understood(shlex.split(told[-1])[1:])
    assert told == [
        "gemdeck mcp disable notes",
        """gemdeck mcp enable -- '--help; rm '"'"'*'"'"''""",
        "gemdeck mcp auth notes",
        "gemdeck mcp logout notes",
        "gemdeck mcp read notes 'notes://a b'",
        """gemdeck mcp prompt notes poem 'mood=it'"'"'s ok'""",
        "gemdeck sessions delete 3f9a2c1b",
        "gemdeck --resume 3f9a2c1b",
        "gemdeck trust show",
        "gemdeck trust forget",
        "gemdeck key set",
        "gemdeck key forget",
        """gemdeck mcp call --args '{ "a": "it'"'"'s" }' -- '--help; rm '"'"'*'"'"'' look""",
    ]
    assert len(calls) == len(told) + 1, "all is carried out; a restart has no command"


@pytest.mark.parametrize("name", ["x\x1b[", "\x1b]0;", "-x", "a  b\n"])
def test_a_command_that_is_told_holds_what_a_server_named_as_one_word(name: str) -> None:
    told = EQUALS["features.render_prompt"]("", "s", name, {"a": "'; echo #"})
    guard = ["--"] if name.startswith("-") else []
    words = ["gemdeck", "mcp", "prompt", *guard, "s", sanitize_line(name), "a='; echo #"]
    assert shlex.split(command_line(*told)) == words
