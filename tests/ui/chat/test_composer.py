"""Writing and sending: Enter, lines, history, pasting, completion, queueing, Esc."""

import pytest
from textual import events

from tests.fakes.commands import RecordingCommands
from tests.ui.chat.samples import completed, notes
from tests.ui.harness import afresh, chatting, screen_lines, toasts, until
from tui.model import events as e
from tui.model.catalog import PromptArgument, PromptView, ResourceTemplateView, ResourceView
from tui.model.chat import EntryId, TurnId, TurnOutcome, TurnPhase, UserMessage
from tui.model.input.own_commands import OWN_COMMANDS
from tui.model.input.typed import find_prompt
from tui.model.servers import ServerId
from tui.ui.widgets.chat.completion import Completion, CompletionList, value_query
from tui.ui.widgets.chat.composer import MAX_MESSAGE, HistoryStorage


def servers() -> e.ServersConfigured:
    prompts = (PromptView("[/x] poem"), PromptView("poem-writer"))
    resources = (ResourceView("notes://all", "all notes"),)
    return e.ServersConfigured((notes(prompts=prompts, resources=resources),))


async def test_ctrl_j_and_shift_enter_make_lines_and_the_composer_grows_to_ten() -> None:
    async with chatting(size=(80, 30)) as (app, pilot):
        composer = app.chat.composer
        assert composer.size.height == 1
        await pilot.press("a", "ctrl+j", "b", "shift+enter", "c")
        await until(pilot, lambda: composer.size.height == 3)
        assert composer.text == "a\nb\nc"
        await pilot.press(*["ctrl+j"] * 10)
        await until(pilot, lambda: composer.size.height == 10)
        app.chat.transcript.focus()
        await pilot.resize_terminal(40, 12)
        await pilot.resize_terminal(80, 30)
        composer.focus()
        await pilot.press("x", "enter")
        await pilot.pause()
        assert ("messages.send", ("a\nb\nc" + "\n" * 10 + "x",)) in app.commands.calls
        await pilot.press(*"see")
        composer.insert_words("@notes:notes://all")
        assert composer.text == "see @notes:notes://all "


async def test_up_and_down_at_the_edges_walk_the_history_and_keep_the_draft() -> None:
    kept: list[str] = []
    storage = HistoryStorage(load=lambda: ["from before"], append=kept.append)
    async with chatting(history=storage) as (app, pilot):
        composer = app.chat.composer
        await pilot.press(*"one", "ctrl+j", *"two", "enter", *"draft")
        await pilot.press("up")
        assert composer.text == "one\ntwo"
        await pilot.press("up")
        assert composer.text == "one\ntwo", "the cursor moved within the message first"
        await pilot.press("up")
        assert composer.text == "from before"
        await pilot.press("up")
        assert composer.text == "from before"
        await pilot.press("down")
        assert composer.text == "one\ntwo"
        await pilot.press("down")
        assert composer.text == "draft"
        assert kept == ["one\ntwo"]


async def test_what_is_typed_is_completed_and_esc_stops_one_thing_at_a_time() -> None:
    async with chatting() as (app, pilot):
        # Completions open move and are taken with tab.
        await until(pilot, lambda: app.chat.is_filled)
        popup, composer = app.chat.popup, app.chat.composer
        address = "@notes:notes://" + "long/" * 10
        offered = (Completion(end, f"{address}{end}", "words " * 9) for end in ("one", "two"))
        popup.offer(CompletionList(0, tuple(offered)))
        await until(pilot, lambda: popup.size.height == 2)
        for y, end in enumerate(("one", "two")):
            assert f"{address}{end}" in popup.render_line(y).text, "whatever is said of it"
        app.store.dispatch(servers())
        await pilot.pause(0.05)
        await pilot.press("/", "p", "o")
        await until(pilot, lambda: popup.display and len(popup.rows) == 2)
        await pilot.press("down", "down", "tab")
        await until(pilot, lambda: composer.text == "/poem-writer ")
        assert not popup.display
        await pilot.press("@", "n", "tab")
        await until(pilot, lambda: composer.text == "/poem-writer @notes:notes://all ")
        assert {name for name, _ in app.commands.calls} <= {"features.complete_path"}, "not sent"
        # Esc closes the completions before it stops the turn.
        await afresh(app, pilot)
        app.store.dispatch(servers())
        await pilot.press(*"draft", "escape")
        assert app.commands.acts == []
        assert app.chat.composer.text == "draft"
        app.chat.composer.clear()
        app.start_turn()
        await pilot.pause(0.05)
        await pilot.press("/")
        await until(pilot, lambda: app.chat.popup.display)
        await pilot.press("escape")
        await until(pilot, lambda: not app.chat.popup.display)
        assert app.commands.acts == []
        await pilot.press("escape")
        assert app.commands.acts == [("conversations.current.cancel", ())]
        # Messages that come back together are all there whatever starts meanwhile.
        await afresh(app, pilot)
        app.store.dispatch(e.MessageReturned("/hlep"))
        app.store.dispatch(e.MessageReturned("/hlep me"))
        app.start_turn("next")
        await until(pilot, lambda: app.chat.composer.text == "/hlep\n\n/hlep me")
        await pilot.press("escape")
        assert app.commands.acts == [("conversations.current.cancel", ())]
        app.store.dispatch(e.ConversationCleared())
        app.chat.composer.clear()
        app.store.dispatch(e.MessageReturned("/hlep"))
        await until(pilot, lambda: app.chat.composer.text == "/hlep")
        # The working line says what is queued and which server is asked.
        await afresh(app, pilot)

        def words() -> str:
            return str(app.chat.working.render())

        app.start_turn("/slow")
        await until(pilot, lambda: "esc stop" in words())
        await pilot.press(*"next", "enter")
        assert app.commands.acts == [("messages.send", ("next",))]
        assert "queued" not in words()  # the engine may refuse it
        app.store.dispatch(e.QueueChanged(("next",)))
        await until(pilot, lambda: "1 queued" in words())
        phase = e.TurnPhaseChanged(TurnId("t1"), TurnPhase.ASKING, ServerId("lib"))
        app.store.dispatch(phase)
        await until(pilot, lambda: "waiting for lib" in words())
        whole = UserMessage(EntryId("t1-user"), "/slow\n\nwhat it says")
        app.store.dispatch(e.MessageExpanded(whole))
        await until(pilot, lambda: "what it says" in "\n".join(screen_lines(app)))
        app.store.dispatch(e.TurnPhaseChanged(TurnId("t1"), TurnPhase.WAITING))
        await until(pilot, lambda: "waiting for lib" not in words())
        app.store.dispatch(e.TurnFinished(TurnId("t1"), TurnOutcome.COMPLETED))
        app.store.dispatch(e.QueueChanged(()))
        app.start_turn("next", "t2")
        await until(pilot, lambda: "queued" not in words())


@pytest.mark.parametrize(
    "name", ["all", "résumé", "a/b", "fix!", "code review", "x'y", "/x", "*x", "//"]
)
def test_every_prompt_that_is_completed_can_be_sent(name: str) -> None:
    view = notes(prompts=(PromptView(name),))
    found = find_prompt(f"/{name} ", [(view.id, view.catalog)])
    assert (
        (f"/{name} " in completed(f"/{name[0]}", view))
        is (found is not None)
        is (name not in {"/x", "*x", "//"})
    )


def test_the_commands_of_the_screen_come_before_prompts() -> None:
    view = notes(prompts=(PromptView("helper"), PromptView("another help")))
    assert completed("/", view)[: len(OWN_COMMANDS)] == [f"/{name} " for name in OWN_COMMANDS]
    assert completed("/he", view) == ["/help ", "/helper ", "/another help "]
    assert completed("/help", view) == []
    assert completed("see /he", view) == []


async def test_arguments_and_paths_are_completed_and_enter_sends() -> None:
    arguments = tuple(PromptArgument(name, True, f"The {name}.") for name in ("title", "mood"))
    view = notes(prompts=(PromptView("poem", arguments=arguments),), completes=True)
    async with chatting() as (app, pilot):
        # Names and values of arguments are completed.
        app.store.dispatch(e.ServersConfigured((view,)))
        await pilot.pause(0.05)
        await pilot.press(*'/poem --title="x y" --')
        await until(pilot, lambda: app.chat.popup.display)
        assert len(app.chat.popup.rows) == 1
        await pilot.press("tab")
        await until(pilot, lambda: app.chat.composer.text == '/poem --title="x y" --mood=')
        await pilot.press(*'"so')
        asked = app.commands.calls
        await until(pilot, lambda: asked and asked[-1][1][4] == "so")
        name, (token, *rest) = asked[-1]
        assert name == "features.complete"
        assert rest == ["notes", "poem", "mood", "so", {"title": "x y"}]
        app.store.dispatch(e.ArgumentCompleted("of another", ("solemn",)))
        app.store.dispatch(e.ArgumentCompleted(str(token), ("so", 'so "sad" now')))
        await until(pilot, lambda: app.chat.popup.display)
        assert len(app.chat.popup.rows) == 1
        await pilot.press("tab")
        text = '/poem --title="x y" --mood="so \\"sad\\" now" '
        await until(pilot, lambda: app.chat.composer.text == text)
        assert not app.chat.popup.display
        # Paths are completed beside resources.
        await afresh(app, pilot)
        app.store.dispatch(servers())
        await pilot.pause(0.05)
        await pilot.press(*"see @no")
        asked = app.commands.calls
        await until(pilot, lambda: asked and asked[-1][1][1:] == ("no",))
        name, (token, _) = asked[-1]
        assert name == "features.complete_path"
        paths = ("nodes/", "my notes.md")
        app.store.dispatch(e.ArgumentCompleted("of another", ("wrong",)))
        app.store.dispatch(e.ArgumentCompleted(str(token), paths))
        await until(pilot, lambda: len(app.chat.popup.rows) == 3)
        assert "@notes:notes://all" in "\n".join(screen_lines(app))
        await pilot.press("down", "down", "tab")
        await until(pilot, lambda: app.chat.composer.text == 'see @"my notes.md" ')
        await pilot.press(*"@nodes")
        await until(pilot, lambda: asked[-1][1][1] == "nodes")
        app.store.dispatch(e.ArgumentCompleted(str(asked[-1][1][0]), ("nodes/",)))
        await until(pilot, lambda: app.chat.popup.display)
        await pilot.press("tab")
        await until(pilot, lambda: app.chat.composer.text.endswith("@nodes/"))
        await pilot.press(*" @nts")
        await until(pilot, lambda: asked[-1][1][1] == "nts")
        app.store.dispatch(e.ArgumentCompleted(str(asked[-1][1][0]), ("nts.txt",)))
        await until(pilot, lambda: len(app.chat.popup.rows) == 2)
        await pilot.press("tab")
        await until(pilot, lambda: app.chat.composer.text.endswith("@nts.txt "))
        # Enter sends and empties and an empty message is not sent.
        await afresh(app, pilot)
        await pilot.press("enter", *"hello", "enter", "space", "enter")
        await pilot.pause()
        sent = [("messages.send", ("hello",))]
        assert app.commands.acts == sent
        app.chat.composer.clear()
        for key, character in (
            *((letter, letter) for letter in "one"),
            ("ctrl+j", "\n"),
            *((letter, letter) for letter in "two"),
            ("enter", "\r"),
            ("x", "x"),
        ):
            app.post_message(events.Key(key, character))
        await until(pilot, lambda: app.chat.composer.text == "x")
        sent.append(("messages.send", ("one\ntwo",)))
        assert app.commands.acts == sent, "keys of one moment count in their order"
        app.chat.composer.clear()
        app.set_keymap({"composer.send": "ctrl+s", "composer.new-line": "enter"})
        await pilot.press("a", "enter", "b", "ctrl+s")
        await pilot.pause()
        assert app.commands.calls[2:] == [("messages.send", ("a\nb",))], "remapped"


def test_templates_begin_with_what_is_fixed_and_their_values_come_from_the_server() -> None:
    template = ResourceTemplateView("memo://{day}/at/{hour}", "a memo")
    spaced = ResourceView("x://a b", "blank")
    view = notes(resources=(spaced,), templates=(template,), completes=True)
    assert completed("@me", view) == ["@notes:memo://"]
    assert completed("@x:/", view) == ['@notes:"x://a b" ']
    told = RecordingCommands()
    for typed, value, start, written in (
        ("see @notes:memo://mon", "monday", 4, "@notes:memo://monday/at/"),
        ("@notes:memo://monday/at/1", "1 2", 0, "@notes:memo://monday/at/1%202 "),
    ):
        query = value_query(typed, (view,))
        assert query is not None
        query.ask(told, "t")
        found = CompletionList(start, (Completion(written, value),))
        assert query.completions([value, query.typed]) == found
    about = "t", "notes", "memo://{day}/at/{hour}"
    assert told.calls == [
        ("features.complete", (*about, "day", "mon", {})),
        ("features.complete", (*about, "hour", "1", {"day": "monday"})),
    ]
    assert value_query("@notes:other://x", (view,)) is None


@pytest.mark.parametrize(
    "text", ["/poem --other=x", "/nothing --title=x", "--title=x", "a --title=x"]
)
def test_what_is_no_argument_is_not_asked_for(text: str) -> None:
    prompts = (PromptView("poem", arguments=(PromptArgument("title", True),)),)
    view = notes(prompts=prompts, completes=True)
    assert value_query("/poem --title=x", (view,)) is not None
    assert value_query(text, (view,)) is None
    assert value_query("/poem --title=x", (notes(prompts=prompts),)) is None


async def test_undelivered_messages_wait_and_the_enter_of_a_paste_never_sends() -> None:
    async with chatting(notifications=True) as (app, pilot):
        # Undelivered messages wait in the history while another is written.
        app.start_turn("my words")
        await pilot.press(*"new")
        app.store.dispatch(e.TurnFinished(TurnId("t1"), TurnOutcome.FAILED, "my words"))
        await until(pilot, lambda: len(toasts(app)) == 1)
        assert app.chat.composer.text == "new"
        app.store.dispatch(e.MessageReturned("one"))
        app.store.dispatch(e.MessageReturned("two"))
        await until(pilot, lambda: len(toasts(app)) == 2)
        assert toasts(app)[1] == "2 messages were not sent. Press Up to get them back."
        for words in ("two", "one", "my words"):
            await pilot.press("up")
            assert app.chat.composer.text == words
        # A paste is data and the enter at its end never sends.
        await afresh(app, pilot)
        app.post_message(events.Paste("rm -rf\r\n\x1b[31mred\x07\x00\r"))
        app.post_message(events.Key("enter", "\r"))
        await pilot.pause()
        assert app.chat.composer.text.startswith("rm -rf\nred\n")
        assert app.commands.acts == []
        app.chat.composer.clear()
        app.post_message(events.Paste("word " * (MAX_MESSAGE // 4)))
        await until(pilot, lambda: len(app.chat.composer.text) > 0)
        assert len(app.chat.composer.message) == MAX_MESSAGE
        await until(pilot, lambda: any("truncated" in words for words in toasts(app)))
