"""Saved conversations on the screen: the list, an earlier message sent anew, the search."""

from dataclasses import replace

from tests.ui.harness import NARROW, Running, running
from tests.ui.shell import decks
from tui.model.chat import EntryId, ModelText, TurnId, UserMessage
from tui.model.events import ConversationCleared, MessageReturned, TurnStarted
from tui.model.sessions import (
    ConversationRestored,
    ConversationRewound,
    LastSessionFound,
    SessionId,
    SessionMatch,
    SessionPreviewed,
    SessionsListed,
    SessionsSearched,
    SessionView,
)
from tui.store.store import Store
from tui.ui.dialogs.list_dialog import ListDialog
from tui.ui.dialogs.sessions import SessionsScreen
from tui.ui.panes.chat import EDITING, ChatPane
from tui.ui.widgets.chat.composer import Composer
from tui.ui.widgets.text.plain import moment

ONE = SessionView(
    SessionId("20260102-030405-aaaaaa"),
    "/shop",
    first="list the [b]branches[/b]",
    model="gemini-3.8-flash",
    tokens=12_345,
    changed=decks.EPOCH,
)
TWO = SessionView(
    SessionId("20260102-030405-bbbbbb"), "/shop", title="my trip", parent=ONE.id, changed=5.0
)
TALK = (
    UserMessage(EntryId("r1"), "one?"),
    ModelText(EntryId("r2"), "1", complete=True),
    UserMessage(EntryId("r3"), "two? [all of two]", "two?"),
    ModelText(EntryId("r4"), "2", complete=True),
)


async def test_the_last_conversation_is_offered_and_goes_on_by_the_key_that_is_shown() -> None:
    async with running(decks.new_store(), NARROW) as deck:
        await deck.press("ctrl+l")
        assert deck.asked("sessions.resume") == [("",)], "what it is, is not known yet"
        decks.configure(deck.store)
        await deck.press("ctrl+l")
        assert deck.said.startswith("No session to resume")
        long = replace(ONE, first="a " * 90, changed=1.8e9)
        await deck.happen(LastSessionFound(long))
        [at] = [at for at, line in enumerate(deck.lines) if "^L" in line]
        assert deck.lines[at].rstrip(" │").endswith("resume: " + "a " * 24 + "a…")
        assert deck.lines[at + 1].strip(" │") == moment(1.8e9, "%Y-%m-%d %H:%M", "")
        await deck.press("ctrl+l")
        assert deck.asked("sessions.resume")[1:] == [(ONE.id,)]
        deck.app.set_keymap({"chat.go-on": "ctrl+b"})
        await deck.happen(LastSessionFound(ONE, is_cut=True))
        assert "^B      resume: list the [b]branches[/b]" in deck.text
        assert " · interrupted mid-turn" in deck.text
        await deck.happen(ConversationRestored(TALK))
        await deck.happen(ConversationCleared())
        assert "resume: " not in deck.text, "another one is the last now"
        await deck.press("ctrl+b")
        assert len(deck.asked("sessions.resume")) == 2


async def open_sessions(deck: Running, text: str = "/sessions") -> SessionsScreen:
    await deck.typed(text)
    screen = await deck.come(SessionsScreen)
    await deck.happen(SessionsListed((ONE, TWO)))
    return screen


def store_with_talk() -> Store:
    store = decks.full_store()
    store.dispatch(ConversationRestored(TALK))
    return store


async def test_sessions_are_listed_searched_previewed_and_opened() -> None:
    async with running(decks.full_store(), NARROW) as deck:
        await open_sessions(deck)
        assert deck.asked("sessions.list_sessions") == [()]
        row = next(line for line in deck.lines if "[b]branches[/b]" in line)
        assert "12.3k tokens" in row
        assert "my trip" in deck.text
        await deck.until(lambda: deck.asked("sessions.preview"))
        assert deck.asked("sessions.preview")[-1] == (ONE.id,)
        deck.dispatch(SessionPreviewed(ONE.id, TALK))
        await deck.until(lambda: "two?" in deck.text)
        await deck.press("escape")
        await open_sessions(deck)
        await deck.until(lambda: "two?" in deck.text)
        await deck.happen(SessionsListed((ONE, replace(TWO, title="my trip " * 20))))
        assert "copy" in next(line for line in deck.lines if "my trip" in line)
        await deck.press("/", *"trip", "enter", "enter")
        assert deck.asked("sessions.resume") == [(TWO.id,)]
        assert not deck.on_top(SessionsScreen)


async def test_a_filter_finds_what_only_the_text_of_a_session_has() -> None:
    async with running(decks.full_store(), NARROW) as deck:
        screen = await open_sessions(deck, "/sessions rebase")
        assert screen.listed.current is None
        await deck.until(lambda: deck.asked("sessions.search") == [("rebase",)])
        match = SessionMatch(TWO, "how do I [b]rebase[/b]?")
        await deck.happen(SessionsSearched("rebase", (match,)))
        assert screen.listed.current == TWO
        await deck.happen(SessionPreviewed(TWO.id, TALK))
        assert "how do I [b]rebase[/b]?" in deck.text
        await deck.press("/", "s")
        assert screen.listed.current is None, "that was not searched for yet"
        await deck.until(lambda: deck.asked("sessions.search")[1:] == [("rebases",)])
        await deck.press("escape")
        await deck.until(lambda: deck.asked("sessions.search")[2:] == [("",)])


async def test_a_session_is_renamed_exported_deleted_and_opened_in_a_tab() -> None:
    async with running(decks.full_store()) as deck:
        await deck.typed("/resume 20260102")
        await deck.typed("/export talk.json")
        assert deck.asked("sessions.resume") == [("20260102",)], "a command needs no list"
        assert deck.asked("sessions.export") == [("", "talk.json")]
        screen = await open_sessions(deck)
        await deck.press("n")
        screen.title_line.value = "branches"
        screen.listed.action_move(1)
        await deck.happen(SessionsListed((TWO, ONE)))
        await deck.press("enter")
        assert deck.asked("sessions.rename") == [(ONE.id, "branches")], "the one that was chosen"
        await deck.press("escape")
        await open_sessions(deck, "/resume")
        await deck.press("e", "d")
        assert deck.asked("sessions.export")[1:] == [(TWO.id, "")]
        assert deck.asked("sessions.delete") == []
        await deck.until(lambda: "again to delete" in deck.text)
        await deck.press("d")
        assert deck.asked("sessions.delete") == [(TWO.id,)]
        deck.commands.answers["conversations.with_session"] = object()
        await deck.press("d")
        await deck.until(lambda: "This session is open in a tab." in deck.text)
        await deck.press("d")
        assert deck.asked("sessions.delete") == [(TWO.id,)]
        (await deck.come(SessionsScreen)).say("")
        await deck.until(lambda: "t new tab" in deck.text)
        await deck.press("t")
        await deck.until(lambda: deck.asked("sessions.resume_beside") == [(TWO.id,)])
        assert not deck.on_top(SessionsScreen)


async def test_an_earlier_message_is_edited_in_its_place() -> None:
    async with running(store_with_talk()) as deck:
        await deck.typed("/edit")
        await deck.until(lambda: deck.on_top(ListDialog))
        await deck.press(*"one", "enter")
        composer = deck.one(Composer)
        await deck.until(lambda: composer.text == "one?")
        await deck.until(lambda: EDITING in deck.text)
        composer.replace_all("other?")
        await deck.press("enter")
        assert deck.asked("sessions.edit_message") == [(EntryId("r1"), "other?")]
        assert deck.asked("messages.send") == []
        await deck.until(lambda: EDITING not in deck.text)
        deck.dispatch(ConversationRewound(EntryId("r1")))
        await deck.until(lambda: "two?" not in deck.text)
        await deck.typed("next")
        assert deck.asked("messages.send") == [("next",)]


async def test_editing_is_left_with_escape_and_the_last_message_sent_again() -> None:
    async with running(store_with_talk()) as deck:
        await deck.typed("/edit")
        await deck.until(lambda: deck.on_top(ListDialog))
        await deck.press("enter")
        composer = deck.one(Composer)
        await deck.until(lambda: composer.text == "two?")
        await deck.press("escape")
        assert composer.text == ""
        await deck.typed("new")
        assert deck.asked("sessions.edit_message") == []
        assert deck.asked("messages.send") == [("new",)]
        await deck.typed("/retry")
        assert deck.asked("sessions.edit_message") == [(EntryId("r3"), "two?")]
        await deck.typed("/retry gemini-x")
        assert deck.asked("models.retry") == [(EntryId("r3"), "two?", "gemini-x")]
        deck.dispatch(TurnStarted(TurnId("t1"), UserMessage(EntryId("e1"), "three?"), 0.0))
        await deck.typed("/retry")
        assert deck.said == "A turn is running. Stop it first (Esc)."
        assert len(deck.asked("sessions.edit_message")) == 1


async def test_a_draft_is_kept_once_the_typing_rests() -> None:
    async with running(store_with_talk()) as deck:
        deck.one(Composer).replace_all("half a thou")
        await deck.until(lambda: deck.asked("sessions.recorder.keep_draft"))
        assert deck.asked("sessions.recorder.keep_draft") == [("half a thou",)]
        for text, kept in (("/clear", ""), ("/sum up", "/sum up"), ("/tmp/x", "/tmp/x")):
            deck.one(Composer).replace_all(text)
            await deck.settle()
            deck.one(ChatPane).keep_draft()
            assert deck.asked("sessions.recorder.keep_draft")[-1] == (kept,)


async def test_quitting_by_any_way_saves_what_was_typed_just_now() -> None:
    for quits_by_key in (True, False):
        async with running(store_with_talk()) as deck:
            deck.one(Composer).replace_all("half a thou")
            await deck.settle()
            if quits_by_key:
                await deck.press("ctrl+q")
            else:
                deck.app.exit(None, 143)  # as a signal does
            assert deck.asked("sessions.recorder.keep_draft") == [("half a thou",)]


async def test_what_stands_in_the_composer_is_the_draft_of_the_session_that_comes() -> None:
    async with running(store_with_talk()) as deck:
        composer = deck.one(Composer)
        composer.replace_all("half a thou")
        await deck.until(lambda: len(deck.asked("sessions.recorder.keep_draft")) == 1)
        deck.dispatch(ConversationRestored(TALK))
        await deck.until(lambda: len(deck.asked("sessions.recorder.keep_draft")) == 2)
        deck.dispatch(ConversationCleared())
        kept = [("half a thou",)] * 3
        await deck.until(lambda: deck.asked("sessions.recorder.keep_draft") == kept)
        composer.clear()
        deck.dispatch(MessageReturned("earlier"))
        await deck.until(lambda: composer.text == "earlier")
        composer.clear()
        deck.dispatch(ConversationRestored(TALK))
        deck.dispatch(MessageReturned("my draft"))
        await deck.until(lambda: composer.text == "my draft")
