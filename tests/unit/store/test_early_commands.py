"""What is asked before there is an engine."""

from typing import cast

import pytest

from tests.fakes.commands import Call, RecordingEngine
from tui.engine.engine import Engine
from tui.model.chat import MAIN, ConversationId
from tui.model.events import Event, MessageReturned
from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.store.state import Unsent
from tui.store.store import Store


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


def test_early_messages_are_sent_in_order_once_there_is_an_engine(early: Early) -> None:
    early.commands.send("one")
    early.commands.send("two")
    assert early.attached() == [("messages.send", ("one", MAIN)), ("messages.send", ("two", MAIN))]
    assert early.attached() == []


@pytest.mark.parametrize("command", ["cancel_turn", "clear_conversation"])
def test_a_stop_empties_what_waits_and_is_not_repeated(early: Early, command: str) -> None:
    early.commands.send("never")
    getattr(early.commands, command)()
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
    assert early.attached() == [
        ("service.use_vertex", ("p", "l")),
        ("messages.send", ("hello", MAIN)),
    ]


def test_until_the_model_is_open_only_messages_and_choices_wait(early: Early) -> None:
    engine = RecordingEngine()
    early.commands.attach(cast("Engine", engine), is_ready=False)
    early.commands.send("hello")
    early.commands.choose(lambda models: models.use_demo())
    early.commands.engine.review_folder()
    assert engine.calls == [("review_folder", ())]
    assert early.attached() == [("service.use_demo", ()), ("messages.send", ("hello", MAIN))]


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


def test_early_messages_stay_with_the_conversation_that_they_were_sent_in() -> None:
    said: list[Event] = []
    commands, engine, other = Commands(said.append), RecordingEngine(), ConversationId("chat2")
    commands.send("first")
    commands.attach(cast("Engine", engine), is_ready=False)
    engine.conversations.current.key = other
    for text in ("stopped", "and this"):
        commands.send(text)
    commands.cancel_turn()
    assert said == [MessageReturned("stopped\n\nand this", conversation=other)]
    commands.send("dropped")
    commands.clear_conversation()
    commands.send("second")
    engine.calls.clear()
    commands.attach(cast("Engine", engine))
    assert engine.calls == [
        ("messages.send", ("first", MAIN)),
        ("messages.send", ("second", other)),
    ]


def test_what_was_typed_last_before_the_engine_is_saved_by_it(early: Early) -> None:
    early.commands.keep_draft("ha")
    early.commands.keep_draft("half")
    assert early.attached() == [("sessions.recorder.keep_draft", ("half",))]
    assert early.attached() == []
