"""Help, palette and the welcome."""

import re
from dataclasses import replace

import pytest
from textual.widgets import Input, OptionList

from tests.support.samples import confirmation
from tests.ui.harness import NARROW, Running, running
from tests.ui.shell import decks
from tui.model.chat import BackendKind, ModelView, Severity, TurnPhase
from tui.model.events import ModelSelected, Notice, NoticeRaised, RequestRaised
from tui.model.models import ModelOffer, ModelsListed
from tui.model.sessions import SessionId, SessionsListed, SessionView
from tui.ui import keymap
from tui.ui.dialogs.details import DetailsScreen, HelpScreen, ServerDetailsScreen, ToolDetailsScreen
from tui.ui.dialogs.grants import GrantsScreen
from tui.ui.dialogs.list_dialog import ViewerScreen
from tui.ui.dialogs.model_setup import ModelScreen
from tui.ui.dialogs.prompt_arguments import ArgumentsScreen
from tui.ui.dialogs.resource import ResourceScreen
from tui.ui.main import MainScreen
from tui.ui.palette import DeckPalette
from tui.ui.panes import PaneName
from tui.ui.panes.servers_tree import ServersTree
from tui.ui.panes.side import SidePane
from tui.ui.questions.confirmation import ConfirmationQuestion
from tui.ui.themes import UiPreferences
from tui.ui.widgets.chat.composer import Composer
from tui.ui.widgets.lists.row_list import RowList
from tui.ui.widgets.text.plain import PlainText


async def run_from_palette(deck: Running, query: str) -> None:
    """Open the palette, type, and take the first hit."""
    await deck.pilot.press("ctrl+p")
    palette = deck.app.screen
    assert isinstance(palette, DeckPalette)
    await deck.until(lambda: bool(palette.listed.shown))
    palette.listed.line.value = query
    await deck.until(lambda: query in palette.listed.shown[0].label)
    await deck.press("enter")
    await deck.until(lambda: deck.app.screen is not palette)
    await deck.settle()


async def test_help_begins_with_the_keys_of_the_place() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f2", "f1")
        assert deck.on_top(HelpScreen)
        here = deck.text[: deck.text.index("Everywhere")]
        assert "Restart the server" in here
        assert "Insert it into the message" not in here
        await deck.press("escape", "f6", "f1")
        here = deck.text[: deck.text.index("Everywhere")]
        assert "Send the message" in here
        await deck.press("f1")
        assert deck.on_top(MainScreen)


async def test_help_that_is_closed_before_it_was_drawn_lays_nothing_out() -> None:
    async with running(decks.full_store()) as deck:
        help_screen = HelpScreen((), {})
        await deck.app.push_screen(help_screen)
        await help_screen.query_one(PlainText).remove()
        help_screen.on_resize()
        await deck.settle()
        assert deck.on_top(HelpScreen)


async def test_help_in_a_dialog_leaves_it_open() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f2", "g")
        assert deck.on_top(GrantsScreen)
        await deck.press("f1")
        assert deck.on_top(HelpScreen)
        assert "forget" in deck.text.lower()
        await deck.press("f1")
        assert deck.on_top(GrantsScreen)


@pytest.mark.parametrize("size", [(120, 36), NARROW])
async def test_the_choice_of_a_model_is_a_dialog_over_the_deck(size: tuple[int, int]) -> None:
    async with running(decks.full_store(), size) as deck:
        await deck.press("f9")
        screen = deck.app.screen
        assert isinstance(screen, ModelScreen)
        region = screen.frame.region
        left, right = region.x, size[0] - region.right
        assert abs(left - right) <= 1
        assert left > 0
        assert screen.query_one("#key", Input).region.height <= 1


async def test_help_shows_every_action_when_scrolled() -> None:
    async with running(decks.full_store(), (120, 240)) as deck:
        await deck.press("f1")
        for key in keymap.KEYS:
            if key.place is not keymap.Place.DIALOG:
                assert key.description in deck.text, key.id


async def test_help_scrolls_where_it_does_not_fit() -> None:
    async with running(decks.full_store(), NARROW) as deck:
        await deck.press("f1")
        assert "Back to the chat" not in deck.text
        await deck.press("end")
        await deck.settle()
        assert "Back to the chat" in deck.text


async def test_help_says_first_how_to_get_to_whole_texts_from_the_composer() -> None:
    async with running(decks.full_store(), NARROW) as deck:
        await deck.press("f1")
        words = "Go to the newest entry: ↑ ↓ select, v shows all of"
        assert any("Shift+Tab" in line and words in line for line in deck.lines)


async def test_help_over_a_question_lists_its_answers_and_comes_back_to_it() -> None:
    store = decks.full_store()
    async with running(store) as deck:
        store.dispatch(RequestRaised(confirmation()))
        await deck.until(lambda: deck.on_top(ConfirmationQuestion))
        question = deck.app.screen
        assert isinstance(question, ConfirmationQuestion)
        await deck.until(lambda: question.armed)
        armed: list[bool] = []

        def heard(now: bool) -> None:
            armed.append(now)

        question.watch(question, "armed", heard, init=False)
        await deck.press("f1")
        here = deck.text[: deck.text.index("Everywhere")]
        for words in ("allow this call", "always this tool", "deny this call", "stop the turn"):
            assert words in here, words
        await deck.press("f1")
        await deck.until(lambda: armed == [False, True])
        assert deck.app.screen is question
        await deck.press("o")
        await deck.until(lambda: deck.commands.calls)
        assert [name for name, _ in deck.commands.calls] == ["desk.answer"]


def test_binding_ids_are_unique() -> None:
    ids = [key.id for key in keymap.KEYS]
    assert len(ids) == len(set(ids))


async def test_the_palette_asks_the_engine() -> None:
    async with running(decks.full_store()) as deck:
        for query, call in [
            ("git: restart", ("servers.restart", (decks.GIT,))),
            ("git: stop", ("servers.stop", (decks.GIT,))),
            ("git: disable", ("servers.set_enabled", (decks.GIT, False))),
            ("legacy: enable", ("servers.set_enabled", (decks.LEGACY, True))),
            ("weather: start", ("servers.start", (decks.WEATHER,))),
            ("servers: restart all", ("servers.restart_all", ())),
            ("chat: new conv", ("conversations.current.clear", ())),
        ]:
            deck.commands.calls.clear()
            await run_from_palette(deck, query)
            assert deck.commands.calls == [("sessions.list_sessions", ()), call]


async def test_the_palette_shows_panes_details_help_and_quits() -> None:
    async with running(decks.full_store()) as deck:
        await run_from_palette(deck, "go to: resources")
        assert deck.one(SidePane).active is PaneName.RESOURCES
        await run_from_palette(deck, "settings: sample")
        assert deck.on_top(ViewerScreen)
        await deck.press("escape")
        await run_from_palette(deck, "weather: details")
        assert deck.on_top(ServerDetailsScreen)
        await deck.press("escape")
        await run_from_palette(deck, "help: keys")
        assert deck.on_top(HelpScreen)
        await deck.press("escape")
        await run_from_palette(deck, "quit")
        assert deck.app.return_value == 0


def rows(deck: Running) -> list[str]:
    """Give the names in the palette, in their order."""
    palette = deck.app.screen
    assert isinstance(palette, DeckPalette)
    return [entry.item.name for entry in palette.listed.shown]


async def test_the_palette_has_one_line_an_entry_with_its_key_on_the_right() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("ctrl+p")
        assert any(re.search(r"Model: choose, enter a key .* F9 ", line) for line in deck.lines)
        assert any(re.search(r"Quit  .* \^Q ", line) for line in deck.lines)
        await deck.press("escape")
        assert deck.on_top(MainScreen)


async def test_what_fits_the_place_stands_first_and_other_panes_last() -> None:
    async with running(decks.full_store(), (160, 36)) as deck:
        for key, first in (
            ("f6", "Chat: new conversation"),
            ("f2", "Restart the server"),
            ("f3", "Filter the list"),
            ("f7", "Search the lines"),
        ):
            await deck.press(key, "ctrl+p")
            names = rows(deck)
            assert names[0] == first
            assert names[-6:] == [f"Go to: {name}" for name in PaneName]
            await deck.press("escape")
        await deck.press("f2", "ctrl+p", *"restart the", "enter")
        assert deck.commands.calls[-1][0] == "servers.restart"


async def test_tools_prompts_resources_and_themes_are_in_the_palette() -> None:
    async with running(decks.full_store()) as deck:
        await run_from_palette(deck, "branch_list")
        assert deck.on_top(ToolDetailsScreen)
        await deck.press("escape")
        await run_from_palette(deck, "/complex_prompt")
        assert deck.on_top(ArgumentsScreen)
        await deck.press("escape")
        await run_from_palette(deck, "resource 2")
        assert deck.on_top(ResourceScreen)
        assert deck.commands.calls[-1] == (
            "features.read_resource",
            (decks.EVERYTHING, "test://static/resource/2"),
        )
        await deck.press("escape")
        await run_from_palette(deck, "static resource")
        assert deck.on_top(ArgumentsScreen), "a template is filled in first"
        await deck.press("escape")
        await run_from_palette(deck, "theme: gemdeck-light")
        assert deck.app.theme == "gemdeck-light"


async def test_typed_commands_are_in_the_palette_but_those_that_need_words() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("ctrl+p")
        names = rows(deck)
        assert {f"Chat: {name}" for name in ("sessions", "stats", "copy", "model")} <= set(names)
        assert not {f"Chat: {name}" for name in ("import", "mcp", "quit")} & set(names)
        await deck.press("escape")
        await run_from_palette(deck, "/stats")
        await deck.until(lambda: deck.on_top(DetailsScreen))


async def test_a_click_runs_an_entry_of_the_palette() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("ctrl+p")
        palette = deck.app.screen
        assert isinstance(palette, DeckPalette)
        await deck.press(*"help: keys")
        await deck.settle()
        await deck.pilot.click(palette.listed.rows, offset=(3, 0))
        await deck.until(lambda: deck.on_top(HelpScreen))


async def test_themes_are_tried_at_once_and_kept_when_chosen() -> None:
    saved: list[str] = []
    preferences = UiPreferences(save=saved.append)
    async with running(decks.full_store(), preferences=preferences) as deck:
        await run_from_palette(deck, "theme: choose")
        names = [row.label for row in deck.app.screen.query_one(RowList).rows]
        assert names[:3] == ["gemdeck-dark", "gemdeck-light", "gemdeck-16"]
        assert "dark · current" in deck.text
        await deck.press("up")
        assert deck.app.theme == names[-1]
        await deck.press("down", "down")
        assert deck.app.theme == "gemdeck-light"
        await deck.press("escape")
        assert (deck.app.theme, saved) == ("gemdeck-dark", [])
        await run_from_palette(deck, "theme: choose")
        await deck.press("down", "down", "enter")
        assert (deck.app.theme, saved) == ("gemdeck-16", ["gemdeck-16"])
        assert deck.on_top(MainScreen)


async def test_stopping_is_in_the_palette_only_while_an_answer_runs() -> None:
    store = decks.full_store()
    async with running(store) as deck:
        decks.start_turn(store)
        decks.change_phase(store, TurnPhase.STREAMING)
        await run_from_palette(deck, "stop the answer")
        assert ("conversations.current.cancel", ()) in deck.commands.calls


async def test_a_first_start_without_a_key_opens_nothing_and_says_how_to_enter_one() -> None:
    store = decks.new_store(needs_setup=True)
    async with running(store, NARROW) as deck:
        assert deck.on_top(MainScreen)
        assert "F9 enters one" in deck.text
        await deck.press(*"hello")
        store.dispatch(ModelSelected(ModelView("demo", BackendKind.DEMO, needs_setup=True)))
        await deck.settle()
        assert deck.on_top(MainScreen)
        assert deck.one(Composer).text == "hello"


async def test_a_stored_key_can_be_forgotten_and_no_other_one() -> None:
    store = decks.new_store()
    kept = ModelView("gemini-x", BackendKind.GEMINI, source="the system keyring", is_kept=True)
    store.dispatch(ModelSelected(kept))
    async with running(store) as deck:
        await deck.press("f9")
        await deck.until(lambda: "credentials from the system" in deck.text)
        await deck.press("end", "enter")
        assert deck.commands.calls == [("service.forget_key", ())]
        store.dispatch(ModelSelected(replace(kept, source="GEMINI_API_KEY", is_kept=False)))
        await deck.until(lambda: deck.on_top(MainScreen))
        await deck.press("f9")
        await deck.until(lambda: "GEMINI_API_KEY" in deck.text)
        assert "Forget" not in deck.text


async def test_a_pasted_key_is_hidden_and_handed_over() -> None:
    async with running(decks.new_store(needs_setup=True), NARROW) as deck:
        await deck.press("f9", "enter")
        assert "keyring" in deck.text
        assert isinstance(deck.focus, Input)
        deck.focus.value = "  AIzaTest  "
        await deck.settle()
        assert "AIza" not in deck.text
        await deck.press("enter")
        assert deck.commands.calls == [("service.use_api_key", ("AIzaTest",))]
        deck.store.dispatch(ModelSelected(ModelView("gemini-x", BackendKind.GEMINI)))
        await deck.until(lambda: deck.on_top(MainScreen))


async def test_a_key_that_is_not_taken_can_be_corrected() -> None:
    async with running(decks.new_store(needs_setup=True)) as deck:
        await deck.press("f9", "enter", *"bad", "enter")
        deck.store.dispatch(NoticeRaised(Notice(Severity.ERROR, "No key.", "Paste it again.")))
        await deck.until(lambda: "No key. Paste it again." in deck.text)
        assert deck.on_top(ModelScreen)
        await deck.press("2", "enter")
        assert deck.commands.calls == [
            ("service.use_api_key", ("bad",)),
            ("service.use_api_key", ("bad2",)),
        ]


async def test_the_dialog_of_the_model_follows_what_answers() -> None:
    async with running(decks.full_store()) as deck:
        deck.dispatch(ModelSelected(ModelView("demo", BackendKind.DEMO)))
        await deck.press("f9")
        await deck.until(lambda: "The offline demo model answers now." in deck.text)
        deck.dispatch(ModelSelected(ModelView("gemini-9", BackendKind.GEMINI)))
        await deck.until(lambda: "gemini-9 (Gemini) answers now." in deck.text)


async def test_the_model_can_be_chosen_again_from_the_palette() -> None:
    async with running(decks.full_store()) as deck:
        await run_from_palette(deck, "model: choose")
        await deck.until(lambda: deck.on_top(ModelScreen))
        assert "Enter a Gemini API key" in deck.text
        assert "Esc close" in deck.text
        await deck.press("escape")
        assert deck.on_top(MainScreen)
        assert deck.commands.calls == [("sessions.list_sessions", ())]


async def test_an_empty_key_is_not_taken_and_escape_goes_back_to_the_choices() -> None:
    async with running(decks.new_store(needs_setup=True)) as deck:
        await deck.press("f9", "enter", "enter")
        assert "The key is empty." in deck.text
        assert deck.on_top(ModelScreen)
        await deck.press("escape")
        assert isinstance(deck.focus, OptionList)
        assert deck.commands.calls == []


async def test_another_address_asks_for_the_address_and_its_key() -> None:
    store = decks.new_store()
    at = ModelView("gemini-x", BackendKind.GEMINI, is_kept=True, address="https://gw.example")
    store.dispatch(ModelSelected(at))
    async with running(store, NARROW) as deck:
        await deck.press("f9", "down", "enter")
        await deck.until(lambda: "gemini-x (Gemini at https://gw.example) answers" in deck.text)
        assert isinstance(deck.focus, Input)
        assert deck.focus.value == "https://gw.example"
        deck.focus.value = ""
        await deck.press("enter", *"k3y", "enter")
        await deck.until(lambda: "The address is empty." in deck.text)
        assert "k3y" not in deck.text
        await deck.press(*"https://x", "enter", "enter")
        assert deck.commands.calls == [("service.use_address", ("https://x", "k3y"))]


async def test_vertex_asks_for_project_and_location() -> None:
    async with running(decks.new_store(needs_setup=True), NARROW) as deck:
        await deck.press("f9", "down", "down", "enter", "enter")
        assert "The project is empty." in deck.text
        await deck.press(*"shop", "enter")
        assert deck.commands.calls == [("service.use_vertex", ("shop", "global"))]


async def test_pane_keys_rest_while_a_dialog_is_open() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f2", "enter")
        await deck.press("f3", "r")
        assert deck.on_top(ServerDetailsScreen)
        await deck.press("escape")
        assert isinstance(deck.focus, ServersTree)
        assert deck.commands.calls == []


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
        assert rows(deck)[-1] == "Go to: activity"
        await deck.press("escape")
        for query, call in [
            ("session: list the open", ("sessions.resume", ("s1",))),
            ("session: [red]quit", ("sessions.resume", ("s2",))),
            ("model: gemini-9", ("model.use_model", ("gemini-9-pro",))),
        ]:
            await run_from_palette(deck, query)
            assert deck.commands.calls[-1] == call
