"""Help, palette and the welcome."""

import re
from dataclasses import replace
from time import monotonic
from typing import Any

import pytest
from textual import events
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, OptionList

from tests.architecture.sources import SOURCES, text
from tests.architecture.test_shape import PUBLIC_CLASS
from tests.fakes.commands import RecordingCommands
from tests.support.samples import confirmation
from tests.ui.harness import NARROW, WIDE, Running, running, until
from tests.ui.shell import decks
from tui.manual import TOPICS, parts_of
from tui.model.catalog import PromptArgument, PromptView
from tui.model.chat import BackendKind, EntryId, ModelView, Severity, TurnId, TurnPhase, UserMessage
from tui.model.events import ModelSelected, Notice, NoticeRaised, RequestRaised, TurnStarted
from tui.model.models import ModelOffer, ModelsListed
from tui.model.servers import ServerId
from tui.model.sessions import ConversationRestored, SessionId, SessionsListed, SessionView
from tui.ui import keymap
from tui.ui.app import GemdeckApp
from tui.ui.commands.palette import DeckPalette, palette_actions
from tui.ui.dialogs.choices import ThemeScreen
from tui.ui.dialogs.fetched import ResourceScreen
from tui.ui.dialogs.grants import GrantsScreen
from tui.ui.dialogs.help import PAGES, HelpScreen, HelpSection
from tui.ui.dialogs.list_dialog import DetailsScreen, Dialog
from tui.ui.dialogs.model_setup import ModelScreen, ModelsScreen
from tui.ui.dialogs.prompt_arguments import ArgumentsScreen
from tui.ui.dialogs.server_form import ServerScreen
from tui.ui.dialogs.server_page import ServerPage
from tui.ui.dialogs.tool_run import ToolFormScreen
from tui.ui.dialogs.viewer import ViewerScreen
from tui.ui.main import MainScreen
from tui.ui.messages import EditServer, FillPrompt, PaneName
from tui.ui.panes.browser import ToolsPane
from tui.ui.panes.servers_tree import ServersTree
from tui.ui.panes.side import SidePane
from tui.ui.questions.address import LinkScreen
from tui.ui.questions.confirmation import ConfirmationQuestion
from tui.ui.questions.kinds import answer_keys
from tui.ui.questions.own_keys import check_keys
from tui.ui.themes import UiPreferences
from tui.ui.widgets.chat.composer import Composer
from tui.ui.widgets.chat.transcript import Transcript
from tui.ui.widgets.lists.filter_list import FilterList
from tui.ui.widgets.lists.log_view import LogView
from tui.ui.widgets.lists.row_list import RowList
from tui.ui.widgets.text.folded_text import FoldedText


async def run_from_palette(deck: Running, query: str) -> None:
    """Open the palette, type, and take the first hit."""
    await deck.pilot.press("ctrl+p")
    palette = await deck.come(DeckPalette)
    await deck.until(lambda: bool(palette.listed.shown))
    palette.listed.line.value = query
    await deck.until(lambda: query in palette.listed.shown[0].label)
    await deck.press("enter")
    await deck.until(lambda: deck.app.screen is not palette)
    await deck.settle()


async def test_what_is_typed_while_an_early_palette_opens_is_looked_for() -> None:
    app = GemdeckApp(decks.full_store(), RecordingCommands(), preferences=UiPreferences())
    async with app.run_test() as pilot:
        for key in ("ctrl+p", *"theme"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: isinstance(app.screen, DeckPalette) and app.screen.query(Input))
        line = app.screen.query_one(Input)
        await until(pilot, lambda: line.value == "theme")


def told(deck: Running) -> list[str]:
    """Give the parts of the help, whole."""
    parts = deck.app.screen.query(HelpSection)
    return ["\n".join(line.plain for line in part.lines(120)) for part in parts]


async def test_help_begins_with_the_place_and_pane_keys_rest_in_a_dialog() -> None:
    async with running(decks.full_store()) as deck:
        # Help begins with the keys of the place and leaves a dialog open.
        await deck.press("f2", "f1")
        assert deck.on_top(HelpScreen)
        here, *pages = told(deck)
        assert "Restart the server" in here
        assert "Insert it into your message" not in here
        assert any(page.startswith("Servers\n") for page in pages), "it fits the place"
        assert not any("<!--" in page for page in pages)
        await deck.press("escape", "f6", "f1")
        here, *pages = told(deck)
        assert "Send the message" in here
        assert pages[0].startswith("Chat\n")
        await deck.press("f1")
        assert deck.on_top(MainScreen)
        await deck.press("f2", "g", "f1")
        assert deck.on_top(HelpScreen)
        assert "forget" in deck.text.lower()
        await deck.press("f1")
        assert deck.on_top(GrantsScreen)
        await deck.press("escape", "f9", "f1")
        assert deck.on_top(HelpScreen)
        await deck.press("f1")
        assert deck.on_top(ModelScreen)
        await deck.press("escape")
        summarise = PromptView("summarise", arguments=(PromptArgument("what", required=True),))
        deck.app.deck.post_message(FillPrompt(ServerId("git"), summarise))
        await deck.until(lambda: deck.on_top(ArgumentsScreen))
        await deck.press("f1")
        assert deck.on_top(HelpScreen)
        # Pane keys rest while a dialog is open.
        await deck.afresh()
        await deck.press("f3", "enter")
        await deck.press("f2", "r")
        assert deck.on_top(ToolFormScreen)
        await deck.press("escape")
        assert deck.one(ToolsPane).has_focus_within
        assert deck.asked("servers.restart") == []


def sample_page(topic: str) -> str:
    """Give a page of a manual with links and a long part."""
    long = "\n".join(f"- item {number} of {topic}" for number in range(60))
    return (
        f"# The {topic}\n\n<!-- made -->\nSee [the end](keys.md#the-end), [this](#b), "
        f"[a sample](../../settings.sample.json) and [the web](https://example.com/x).\n\n"
        f"## B\n\n```sh\n# no heading\n```\n{long}\n\n## The end\n\nNeedle of `{topic}`.\n"
    )


async def test_all_pages_are_found_by_words_and_links_lead_there_and_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui.manual.page", sample_page)
    async with running(decks.full_store()) as deck:
        await deck.press("f1")
        manual = await deck.come(HelpScreen)
        assert "<!--" not in deck.text

        async def shows(topic: str, words: str) -> None:
            await deck.until(lambda: deck.app.screen is manual)
            await deck.until(lambda: f"Needle of {topic}." in "".join(told(deck)[-1:]))
            await deck.until(lambda: words in deck.text)

        await deck.press("slash")
        lines = [one.row.label.strip() for one in deck.app.screen.query_one(FilterList).shown]
        assert lines[:4] == ["The start", "B", "The end", "The servers"]
        assert "no heading" not in lines
        await deck.press(*"needle settings")
        await deck.until(lambda: any("The settings · The end" in line for line in deck.lines))
        await deck.press("enter")
        await shows("settings", "Needle of settings.")
        await deck.press("slash", *"item 55 of chat")
        index, late = deck.app.screen, list[tuple[Any, ...]]()
        with monkeypatch.context() as busy:
            busy.setattr(deck.app, "call_later", lambda *given: late.append(given))
            await deck.press("enter")
            await deck.until(lambda: not index.is_attached)
        for use, *given in late:
            deck.app.call_later(use, *given)
        await shows("chat", "item 55 of chat")
        await deck.press("g", "enter")
        await deck.until(lambda: "The keys · The end" in deck.text)
        assert "The chat · B" in deck.text
        await deck.press("enter")
        await shows("keys", "Needle of keys.")
        await deck.press("backspace")
        await shows("chat", "See the end, this, a sample and the web.")
        line = next(y for y, text in enumerate(deck.lines) if "See the end" in text)
        await deck.click(None, deck.lines[line].index("the end") + 2, line)
        await shows("keys", "Needle of keys.")
        await deck.press("g", "enter", "down", "down", "enter")
        await deck.until(lambda: deck.on_top(ViewerScreen))
        await deck.press("escape", "enter", "down", "down", "down", "enter")
        await deck.until(lambda: "https://example.com/x" in deck.text)
        assert deck.asked("features.open_link") == [], "it asks before"
        question = await deck.come(LinkScreen)
        await deck.until(lambda: question.armed)
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is manual)
        await deck.press("backspace", "backspace", "backspace", "backspace")
        await deck.until(lambda: "Send the message" in "".join(told(deck)[:1]))
        await deck.press("slash", "f1")
        assert deck.app.screen is manual
        await deck.press("f1")
        assert deck.on_top(MainScreen)


def test_each_place_has_a_page() -> None:
    classes = {name for path in SOURCES for name in PUBLIC_CLASS.findall(text(path))}
    assert PAGES.keys() <= classes
    headings = {part.at for topic in TOPICS for part in parts_of(topic)}
    assert set(PAGES.values()) <= headings | set(TOPICS)


async def test_help_says_first_how_to_get_to_whole_texts_and_scrolls_where_it_does_not_fit() -> (
    None
):
    async with running(decks.full_store(), NARROW) as deck:
        await deck.press("f1")
        words = "Browse the conversation: ↑ ↓ select, v full text"
        assert any("Shift+Tab" in line and words in line for line in deck.lines)
        assert "Write messages" not in deck.lines[8]
        last = told(deck)[-1].rsplit(maxsplit=1)[1]
        assert last not in deck.text
        await deck.press("G")
        await deck.until(lambda: last in deck.text)


async def test_help_over_a_question_lists_its_answers_and_comes_back_to_it() -> None:
    store = decks.full_store()
    async with running(store) as deck:
        store.dispatch(RequestRaised(confirmation()))
        question = await deck.come(ConfirmationQuestion)
        await deck.until(lambda: question.armed)
        armed: list[bool] = []

        def heard(now: bool) -> None:
            armed.append(now)

        question.watch(question, "armed", heard, init=False)
        await deck.press("f1")
        here = told(deck)[0]
        for words in (
            "allow this call",
            "always allow this tool",
            "deny this call",
            "stop the turn",
        ):
            assert words in here, words
        await deck.press("f1")
        await deck.until(lambda: armed == [False, True])
        assert deck.app.screen is question
        await deck.press("o")
        await deck.until(lambda: deck.commands.calls)
        assert [name for name, _ in deck.commands.calls] == ["desk.answer"]


async def test_a_question_mark_opens_the_help_where_no_text_is_typed() -> None:
    store = decks.full_store()
    async with running(store) as deck:
        await deck.press("question_mark")
        assert deck.one(Composer).text == "?"
        await deck.press("f3", "slash", "question_mark")
        assert deck.one(FilterList).line.value == "?"
        for place in ("f2", "f3", "f7"):
            await deck.press("f6", place, "question_mark")
            assert deck.on_top(HelpScreen), place
            await deck.press("question_mark")
            assert deck.on_top(MainScreen)
        await deck.press("f2", "g", "question_mark")
        assert deck.on_top(HelpScreen)
        await deck.press("escape", "escape", "f6")
        store.dispatch(RequestRaised(confirmation()))
        question = await deck.come(ConfirmationQuestion)
        await deck.until(lambda: question.armed)
        await deck.press("question_mark")
        assert deck.on_top(HelpScreen)
        await deck.press("escape")
        assert deck.app.screen is question
        assert deck.asked("desk.answer") == []


async def test_letters_move_in_the_tree_lists_transcript_log_and_texts() -> None:
    store = decks.full_store()
    entries = [UserMessage(EntryId(f"u{n}"), "word " * 40) for n in range(30)]
    store.dispatch(ConversationRestored(tuple(entries)))
    decks.log(store, decks.GIT, *(f"line {n}" for n in range(200)))
    async with running(store, (120, 24)) as deck:
        await deck.press("f2", "home", "j")
        tree = deck.one(ServersTree)
        assert tree.cursor == 1
        await deck.press("k")
        assert tree.cursor == 0
        await deck.press("G")
        assert tree.cursor == len(tree.rows) - 1
        await deck.press("f3", "home", "j", "j")
        rows = deck.one(SidePane).query_one(RowList)
        first = rows.cursor
        await deck.press("k")
        assert rows.cursor == first - 1
        await deck.press("G")
        assert rows.cursor == len(rows.rows) - 1
        for keys, view in ((("f6", "shift+tab"), Transcript), (("f7",), LogView)):
            await deck.press(*keys)
            shown = deck.one(view)
            await deck.until(lambda: shown.scroll_offset.y > 0)  # noqa: B023 - awaited at once
            await deck.press("g")
            await deck.until(lambda: shown.scroll_offset.y == 0)  # noqa: B023 - ditto
            await deck.press("j", "j", "j")
            await deck.until(lambda: shown.scroll_offset.y > 0)  # noqa: B023 - awaited at once
            await deck.press("G")
            await deck.until(lambda: shown.is_vertical_scroll_end)  # noqa: B023 - ditto
            before = shown.scroll_offset.y
            await deck.press("k", "k", "k", "k")
            await deck.until(lambda: shown.scroll_offset.y < before)  # noqa: B023 - ditto
        await deck.app.push_screen(ViewerScreen(deck.commands, "long", "line\n" * 200))
        text = deck.app.screen.query_one(FoldedText)
        await deck.until(lambda: text.max_scroll_y > 0)
        end = text.max_scroll_y
        for key, row in (("j", 1), ("k", 0), ("G", end), ("g", 0)):
            await deck.press(key)
            await deck.until(lambda: text.scroll_offset.y == row)  # noqa: B023 - awaited at once


async def test_a_dialog_names_the_keys_that_its_actions_have_now() -> None:
    async with running(decks.full_store()) as deck:
        closes = dict.fromkeys(("dialog.close", "welcome.back"), "f12")
        others = {"dialog.choose": "ctrl+y", "viewer.copy": "Y", "arguments.send": "f11"}
        deck.app.set_keymap({**closes, **others, "chat.stop": "ctrl+b", "server.imports": "alt+o"})
        bridge = deck.app.bridge
        asked = ArgumentsScreen(bridge, ServerId("x"), "x", title="x", about=Content(), fields=())
        dialogs: dict[Screen[Any], str] = {
            DetailsScreen("x", bridge, lambda _: Content()): "F12 close",
            ViewerScreen(deck.commands, "x", "x"): "Y copy all F12 close",
            ThemeScreen(lambda _: None): "^Y choose F12 close",
            ModelsScreen(bridge): "^Y choose F12 close",
            ModelScreen(bridge): "↵ choose F12 close",
            asked: "F11 show F12 close",
            ServerScreen(bridge): "Alt+o other clients F12 close",
        }
        for screen, keys in dialogs.items():
            deck.app.push_screen(screen)
            await deck.until(lambda: keys in " ".join(deck.text.split()))  # noqa: B023 - at once
            if isinstance(screen, ServerScreen):
                row = next(n for n, row in enumerate(deck.text.split("\n")) if "F12 close" in row)
                await deck.pilot.click(offset=(deck.text.split("\n")[row].index("F12"), row))
            else:
                await deck.press("f12")
            await deck.until(lambda: deck.on_top(MainScreen))
        deck.app.push_screen(ServerScreen(bridge, EditServer(ServerId("x")), {"command": "x"}))
        await deck.press("tab", "end", "y", "f12")
        await deck.until(lambda: "Press F12 again to discard" in deck.text)
        await deck.press("f12")
        message = UserMessage(EntryId("u9"), "x")
        await deck.happen(TurnStarted(TurnId("t9"), message, monotonic()))
        await deck.until(lambda: "^B stop" in deck.text)


HOLD: dict[str, str] = {
    **{"deck.tools": "f12", "servers.restart": "z,ctrl+r", "transcript.copy": "Y"},
    **{"confirmation.once": "y", "confirmation.deny": "N,escape", "trust.trust": "y"},
}
REFUSED = {
    "confirmation.onc y": "no action has this id; did you mean",
    "confirmation.once t": "t belongs to confirmation.always-tool",
    "confirmation.once enter": "enter is reserved for answering questions",
    "confirmation.once down": "down is reserved for moving in questions",
    "confirmation.once f8": "f8 belongs to app.question",
    "deck.tool f12": "no action has this id; did you mean deck.tools?",
    "deck.tools Ctrl+Y": "unknown key Ctrl+Y",
    "deck.tools y": "y types text here",
    "app.quit question_mark": "question_mark types text here",
    "composer.send space": "space types text here",
    "deck.tools escape": "escape is reserved for answering questions",
    "servers.restart ctrl+m": "terminals send ctrl+m as enter",
    "servers.restart x": "x belongs to servers.enable",
    "tools.grants /": "/ belongs to list.filter",
    "deck.tools f2": "f2 belongs to deck.servers",
    "servers.restart f2": "f2 belongs to deck.servers",
    "deck.tools ctrl+r": "ctrl+r belongs to server.remove",
}


def test_keys_of_ones_own_hold_or_it_is_said_why_not() -> None:
    own = {name: keys.split(",") for name, keys in HOLD.items()}
    assert check_keys(own) == {}
    assert check_keys({"servers.restart": ["s"], "servers.start-stop": ["r"]}) == {}
    for words, why in REFUSED.items():
        name, key = words.split()
        [(refused, said)] = check_keys({name: [key]}).items()
        assert (refused, said[: len(why)]) == (name, why)
    wrong = check_keys({"servers.restart": ["s"], "servers.start-stop": ["f2"]})
    assert wrong["servers.restart"].startswith("s belongs to")
    assert wrong["servers.start-stop"].startswith("f2 belongs to")


def test_no_key_that_answers_can_be_taken_away() -> None:
    keys = {key for answer in answer_keys() for key in answer.keys.split(",")}
    assert {"escape", "d", "ctrl+d"} <= keys
    held = {key: check_keys({"deck.tools": [key]}) for key in (*keys, "enter", "ctrl+c")}
    assert {key for key, wrong in held.items() if not wrong} == set()


def kinds_of(kind: type[object]) -> list[type[object]]:
    return [kind, *(one for sub in kind.__subclasses__() for one in kinds_of(sub))]


def test_the_defaults_are_all_keys_that_one_could_set() -> None:
    own = {key.id: key.keys.split(",") for key in keymap.KEYS}
    assert check_keys(own) == {}


def test_no_dialog_means_two_things_by_one_key() -> None:
    for kind in kinds_of(Dialog):
        bound = [one for base in kind.__mro__ for one in vars(base).get("BINDINGS", ())]
        own = [one for one in bound if "step_aside" not in one.action]  # others yield to these
        meant = {(key, one.action) for one in own for key in one.key.split(",")}
        assert len({key for key, _ in meant}) == len(meant), kind


def test_binding_ids_are_unique() -> None:
    ids = [key.id for key in keymap.KEYS]
    assert len(ids) == len(set(ids))


async def test_the_palette_asks_the_engine() -> None:
    async with running(decks.full_store()) as deck:
        actions = {action.row.label.casefold(): action for action in palette_actions(deck.app.deck)}
        for name, call in [
            ("git: restart", ("servers.restart", (decks.GIT,))),
            ("git: stop", ("servers.stop", (decks.GIT,))),
            ("git: disable", ("servers.set_enabled", (decks.GIT, False))),
            ("legacy: enable", ("servers.set_enabled", (decks.LEGACY, True))),
            ("weather: start", ("servers.start", (decks.WEATHER,))),
            ("servers: restart all", ("servers.restart_all", ())),
            ("trust: review this folder", ("review_folder", ())),
            ("trust: forget this folder", ("forget_folder", ())),
        ]:
            actions[name].item()
            assert deck.commands.calls[-1] == call
        deck.commands.calls.clear()
        await run_from_palette(deck, "chat: new conv")
        assert deck.commands.acts == [
            ("sessions.list_sessions", ()),
            ("conversations.current.clear", ()),
        ]
        assert "chat: stop the answer" not in actions
        decks.start_turn(deck.store)
        decks.change_phase(deck.store, TurnPhase.STREAMING)
        await run_from_palette(deck, "stop the answer")
        assert ("conversations.current.cancel", ()) in deck.commands.calls


async def test_the_palette_has_one_line_an_entry_with_its_key_and_shows_what_it_names() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("ctrl+p")
        assert any(re.search(r"Model: choose, enter a key .* F9 ", line) for line in deck.lines)
        names = rows(deck)
        assert {f"Chat: {name}" for name in ("sessions", "stats", "copy", "model")} <= set(names)
        assert not {f"Chat: {name}" for name in ("import", "mcp", "quit")} & set(names)
        palette = await deck.come(DeckPalette)
        palette.listed.line.value = "quit"
        await deck.settle()
        assert any(re.search(r"Quit  .* \^Q ", line) for line in deck.lines)
        palette.listed.line.value = "help"
        await deck.settle()
        await deck.pilot.click(palette.listed.rows, offset=(3, 0))
        await deck.until(lambda: deck.on_top(HelpScreen))
        await deck.press("escape")
        for query, screen in (
            ("settings: sample", ViewerScreen),
            ("weather: details", ServerPage),
            ("/stats", DetailsScreen),
            ("grants: rules", GrantsScreen),
            ("run: branch_list", ToolFormScreen),
            ("/complex_prompt", ArgumentsScreen),
            ("static resource", ArgumentsScreen),  # a template is filled in first
            ("resource 2", ResourceScreen),
        ):
            await run_from_palette(deck, query)
            await deck.until(lambda: deck.on_top(screen))  # noqa: B023 - awaited at once
            await deck.press("escape")
        read = ("features.read_resource", (decks.EVERYTHING, "test://static/resource/2"))
        assert deck.commands.calls[-1] == read
        await run_from_palette(deck, "go to: resources")
        assert deck.one(SidePane).active is PaneName.RESOURCES
        await run_from_palette(deck, "theme: gemdeck-light")
        assert deck.app.theme == "gemdeck-light"
        await run_from_palette(deck, "quit")
        assert deck.app.return_value == 0


@pytest.mark.parametrize(
    ("typed", "section"),
    [
        ("bind", "Key bindings"),
        ("cost", "Token cost"),
    ],
)
async def test_the_palette_goes_on_into_the_manual(typed: str, section: str) -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("ctrl+p", *typed)
        await deck.until(lambda: f"In the manual: {section}" in rows(deck)[:1])
        await deck.press("enter")
        await deck.until(lambda: deck.on_top(HelpScreen))
        await deck.until(lambda: told(deck)[:1] and told(deck)[0].startswith(section))
        assert "Keys that work here" not in "".join(told(deck))


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("make a server lazy", "git: make lazy"),
        ("sleep", "git: make lazy"),
        ("store a secret for", "git: store a secret"),
        ("keyring", "git: store a secret"),
        ("compare results", "Runs: list, compare"),
        ("follow a resource", "Resources: watch"),
        ("check my setup", "Setup: check"),
        ("doctor", "Setup: check"),
        ("skills", "Chat: skill"),
        ("profile", "Servers pane: save profile"),
        ("sign in", "Servers pane: sign in"),
        ("hide the tool", "Tools pane: off/on"),
    ],
)
async def test_the_palette_leads_to_what_is_asked_for(typed: str, first: str) -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("ctrl+p", *typed)
        await deck.until(lambda: rows(deck)[:1] == [first])


async def test_actions_come_before_the_manual_in_the_palette() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("ctrl+p", *"restart")
        await deck.until(lambda: "Servers: restart all" in rows(deck)[:9])
        assert not [name for name in rows(deck) if name.startswith("In the manual")]
        await deck.press("escape", "ctrl+p", *"trust")
        await deck.until(lambda: "In the manual: Trusted folders" in rows(deck)[2:])
        assert all(name.startswith("Trust: ") for name in rows(deck)[:2])
        await deck.press("escape", "ctrl+p", *"rsrt")
        await deck.until(lambda: rows(deck)[-1:] == ["In the manual: Moving around"])
        assert "restart" in rows(deck)[0]


async def test_what_fits_the_place_stands_first_and_other_panes_last() -> None:
    async with running(decks.full_store(), (160, 36)) as deck:
        for key, first in (
            ("f6", "Chat: new conversation"),
            ("f3", "Run the tool yourself, from a form"),
            ("f7", "Show all levels, warnings or errors"),
            ("f2", "Restart the server"),
        ):
            await deck.press(key, "ctrl+p")
            names = rows(deck)
            assert names[0] == first
            assert names[-len(PaneName) :] == [f"Go to: {name}" for name in PaneName]
            await deck.press("escape")
        await deck.press("ctrl+p", "enter")
        assert deck.commands.calls[-1][0] == "servers.restart"


def rows(deck: Running) -> list[str]:
    """Give the names in the palette, in their order."""
    palette = deck.app.screen
    assert isinstance(palette, DeckPalette)
    return [entry.row.label for entry in palette.listed.shown]


async def test_themes_are_tried_at_once_and_kept_when_chosen() -> None:
    saved: list[str] = []
    preferences = UiPreferences(save=saved.append)
    async with running(decks.full_store(), preferences=preferences) as deck:
        await run_from_palette(deck, "theme: choose")
        names = [row.label for row in deck.app.screen.query_one(RowList).rows]
        assert names[:4] == ["gemdeck-dark", "gemdeck-light", "gemdeck-16", "auto"]
        assert "dark · current" in deck.text
        await deck.press("up")
        assert deck.app.theme == names[-1]
        await deck.press("down", "down")
        assert deck.app.theme == "gemdeck-light"
        await deck.press("down", "down")
        assert deck.app.theme == "gemdeck-dark", "as it was before"
        await deck.press("escape")
        assert (deck.app.theme, saved) == ("gemdeck-dark", [])
        await run_from_palette(deck, "theme: choose")
        await deck.press("down", "down", "enter")
        assert (deck.app.theme, saved) == ("gemdeck-16", ["gemdeck-16"])
        assert deck.on_top(MainScreen)
        deck.app.use_theme("auto")
        await run_from_palette(deck, "theme: choose")
        await deck.press("enter")
        assert saved[1:] == ["auto"], "it goes on to follow the terminal"


async def test_a_first_start_without_a_key_opens_nothing_and_says_how_to_enter_one() -> None:
    async with running(decks.new_store(needs_setup=True), NARROW) as deck:
        assert deck.on_top(MainScreen)
        assert "F9      enter a Gemini API key" in deck.text
        await deck.press(*"hello")
        await deck.happen(ModelSelected(ModelView("demo", BackendKind.DEMO, needs_setup=True)))
        assert deck.on_top(MainScreen)
        assert deck.one(Composer).text == "hello"


async def test_a_key_is_hidden_handed_over_and_can_be_corrected() -> None:
    async with running(decks.new_store(needs_setup=True), NARROW) as deck:
        await deck.press("f9", "enter", "enter")
        assert "The key is missing." in deck.text
        await deck.press("escape")
        assert deck.app.screen.query_one(OptionList).has_focus, "back at the choices"
        assert deck.commands.acts == [("models.list_models", ())], "a local one may answer"
        await deck.press("enter")
        assert "keyring" in deck.text
        assert isinstance(deck.focus, Input)
        deck.focus.value = "  AIzaTest"
        await deck.settle()
        assert "AIza" not in deck.text
        await deck.press("enter")
        deck.dispatch(NoticeRaised(Notice(Severity.ERROR, "No key.", "Paste it again.")))
        await deck.until(lambda: "No key. Paste it again." in deck.text)
        assert deck.on_top(ModelScreen)
        await deck.press("2", "space", "enter")
        assert deck.commands.calls[1:] == [
            ("choice.use_api_key", ("AIzaTest",)),
            ("choice.use_api_key", ("AIzaTest2",)),
        ]
        deck.dispatch(ModelSelected(ModelView("gemini-x", BackendKind.GEMINI)))
        await deck.until(lambda: deck.on_top(MainScreen))


async def test_the_dialog_of_the_model_stands_over_the_deck_and_follows_what_answers() -> None:
    async with running(decks.full_store()) as deck:
        deck.dispatch(ModelSelected(ModelView("demo", BackendKind.DEMO)))
        await run_from_palette(deck, "model: choose")
        await deck.until(lambda: "The offline demo model is active." in deck.text)
        deck.dispatch(ModelSelected(ModelView("gemini-9", BackendKind.GEMINI)))
        await deck.until(lambda: "gemini-9 · Gemini" in deck.text)
        assert "Enter a Gemini API key" in deck.text
        assert "Esc close" in deck.text
        screen = await deck.come(ModelScreen)
        for width, height in (WIDE, NARROW):
            await deck.resize(width, height)
            left, right = screen.frame.region.x, width - screen.frame.region.right
            assert abs(left - right) <= 1
            assert left > 0
            assert screen.query_one("#key", Input).region.height <= 1
        await deck.press("escape")
        assert deck.on_top(MainScreen)
        assert deck.commands.acts == [("sessions.list_sessions", ())]


async def test_another_address_and_vertex_ask_for_what_they_need() -> None:
    store = decks.new_store()
    at = ModelView("gemini-x", BackendKind.GEMINI, is_kept=True, address="https://gw.example")
    store.dispatch(ModelSelected(at))
    async with running(store, NARROW) as deck:
        await deck.press("f9", "down", "enter")
        await deck.until(lambda: "gemini-x · Gemini at https://gw.example" in deck.text)
        assert isinstance(deck.focus, Input)
        assert deck.focus.value == "https://gw.example"
        deck.focus.value = ""
        await deck.press("enter", *"k3y", "enter")
        await deck.until(lambda: "The address is missing." in deck.text)
        assert "k3y" not in deck.text
        await deck.press(*"https://x", "enter", "enter")
        await deck.press("escape", "escape", "f9", "down", "down", "enter", "enter")
        assert "The project is missing." in deck.text
        await deck.press(*"shop", "enter")
        assert deck.commands.acts == [
            ("choice.use_address", ("https://x", "k3y")),
            ("choice.use_vertex", ("shop", "global")),
        ]


async def test_a_stored_key_can_be_forgotten_and_no_other_one() -> None:
    store = decks.new_store()
    kept = ModelView("gemini-x", BackendKind.GEMINI, source="the system keyring", is_kept=True)
    store.dispatch(ModelSelected(kept))
    async with running(store) as deck:
        await deck.press("f9")
        await deck.until(lambda: " · key: the system" in deck.text)
        await deck.press("end", "enter")
        assert deck.commands.acts == [("choice.forget_key", ())]
        store.dispatch(ModelSelected(replace(kept, source="GEMINI_API_KEY", is_kept=False)))
        await deck.until(lambda: deck.on_top(MainScreen))
        await deck.press("f9")
        await deck.until(lambda: "GEMINI_API_KEY" in deck.text)
        assert "Forget" not in deck.text


async def test_the_palette_finds_saved_conversations_and_listed_models_by_name() -> None:
    store = decks.full_store()
    hostile = SessionView(SessionId("s2"), "/shop", title="\n".join(["[red]Quit"] * 200))
    mine = SessionView(SessionId("s1"), "/shop", first="list the open branches")
    async with running(store) as deck:
        await deck.press("ctrl+p")
        assert ("sessions.list_sessions", ()) in deck.commands.calls
        store.dispatch(SessionsListed((mine, hostile)))
        store.dispatch(ModelsListed((ModelOffer("gemini-9-pro", "Gemini 9"),)))
        await deck.until(lambda: "Model: gemini-9-pro" in rows(deck))
        assert rows(deck)[-1] == "Go to: protocol"
        await deck.press("escape")
        for query, call in [
            ("session: [red]quit", ("sessions.resume", ("s2",))),
            ("model: gemini-9", ("models.use_model", ("gemini-9-pro",))),
        ]:
            await run_from_palette(deck, query)
            assert deck.commands.calls[-1] == call
