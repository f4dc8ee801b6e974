"""Prompts and resources in use: filled in, completed, read, sent, followed."""

from textual.widgets import Input, OptionList, TextArea

from tests.ui.harness import NARROW, Running, running
from tests.ui.shell import decks
from tui.model.catalog import Catalog, ResourceContent, ResourceTemplateView
from tui.model.events import (
    ArgumentCompleted,
    CatalogChanged,
    LogLevelChanged,
    ResourceRead,
    ServerStatusChanged,
    SubscriptionChanged,
)
from tui.model.servers import ServerInfo, ServerStatus
from tui.ui.dialogs.list_dialog import ChoiceDialog
from tui.ui.dialogs.prompt_arguments import ArgumentsScreen
from tui.ui.dialogs.resource import ResourceScreen
from tui.ui.main import MainScreen
from tui.ui.panes import PaneName, ShowServer
from tui.ui.panes.browser import ResourcesPane
from tui.ui.panes.chat import ABOUT_RESOURCE, ChatPane
from tui.ui.widgets.chat.composer import Composer
from tui.ui.widgets.text.describe import era

ONE = "test://static/resource/1"
TWO = "test://static/resource/2"
FIRST, SECOND = decks.EVERYTHING_RESOURCES


async def open_complex_prompt(deck: Running) -> ArgumentsScreen:
    await deck.press("f4", "down", "enter")
    await deck.until(lambda: deck.on_top(ArgumentsScreen))
    screen = deck.app.screen
    assert isinstance(screen, ArgumentsScreen)
    return screen


async def test_a_prompt_is_sent_with_the_arguments_that_were_filled_in() -> None:
    async with running(decks.full_store(), NARROW) as deck:
        await open_complex_prompt(deck)
        assert "How warm." in deck.text
        await deck.press(*"hot", "escape")
        assert deck.on_top(MainScreen)
        await deck.press("enter", "ctrl+s")
        assert "This is required." in deck.text
        assert deck.asked("messages.send_prompt") == []
        await deck.press(*"hot", "enter", "enter", "enter")
        await deck.until(lambda: deck.on_top(MainScreen))
        await deck.until(lambda: isinstance(deck.focus, TextArea))
        await deck.press("f4", "up", "enter")
        assert "takes no arguments" in deck.text
        assert deck.asked("messages.send_prompt") == [
            (decks.EVERYTHING, "complex_prompt", {"temperature": "hot"})
        ]
        await deck.press("enter")
        await deck.until(lambda: len(deck.asked("messages.send_prompt")) == 2)
        assert deck.asked("messages.send_prompt")[1] == (decks.EVERYTHING, "simple_prompt", {})


async def test_a_typed_prompt_that_lacks_an_argument_opens_its_form_filled_in() -> None:
    async with running(decks.full_store()) as deck:
        await deck.typed("/complex_prompt help")
        await deck.until(lambda: deck.on_top(ArgumentsScreen))
        assert "A prompt with arguments." in deck.text
        assert "How warm." in deck.text
        assert {line.value for line in deck.app.screen.query(Input)} == {""}
        await deck.press("escape")
        await deck.until(lambda: deck.one(Composer).text == "/complex_prompt ")
        await deck.typed("/complex_prompt --style=calm")
        await deck.until(lambda: deck.on_top(ArgumentsScreen))
        assert "calm" in deck.text
        await deck.press("escape")
        await deck.until(lambda: deck.one(Composer).text == "/complex_prompt --style=calm")
        await deck.press("enter")
        await deck.until(lambda: deck.on_top(ArgumentsScreen))
        await deck.press(*"hot", "ctrl+s")
        await deck.until(lambda: bool(deck.asked("messages.send_prompt")))
        values = {"temperature": "hot", "style": "calm"}
        sent = (decks.EVERYTHING, "complex_prompt", values)
        assert deck.asked("messages.send_prompt") == [sent]
        assert deck.asked("messages.send") == []


async def test_the_server_completes_what_is_typed_after_a_pause() -> None:
    async with running(decks.full_store()) as deck:
        screen = await open_complex_prompt(deck)
        await deck.press("tab", *"fo", "shift+tab", *"ho")
        await deck.until(lambda: "ho" in (deck.asked("features.complete") or [()])[-1])
        token, *rest = deck.asked("features.complete")[-1]
        assert rest == [
            decks.EVERYTHING, "complex_prompt", "temperature", "ho", {"style": "fo"}
        ]  # fmt: skip
        await deck.happen(ArgumentCompleted("of-another", ("cold",)))
        assert "cold" not in deck.text
        deck.dispatch(ArgumentCompleted(str(token), ("hot", "hotter [/x]")))
        await deck.until(lambda: "hotter [/x]" in deck.text)
        await deck.press("down", "down", "enter")
        assert screen.query(Input).first().value == "hotter [/x]"
        assert not any(offered.display for offered in screen.query(OptionList))


async def test_a_server_that_completes_nothing_is_not_asked() -> None:
    store = decks.new_store()
    decks.configure(store, decks.server(decks.EVERYTHING))
    full = decks.full_store().state.servers[1]
    decks.make_ready(store, decks.EVERYTHING, full.catalog, completions=False)
    async with running(store) as deck:
        await open_complex_prompt(deck)
        await deck.press(*"ho")
        await deck.pilot.pause(0.3)
        assert deck.asked("features.complete") == []


async def read_resource(deck: Running, content: ResourceContent) -> None:
    """Open the first resource, and let its server answer."""
    await deck.press("enter")
    assert deck.asked("features.read_resource")[-1] == (decks.EVERYTHING, ONE)
    await deck.happen(ResourceRead(decks.EVERYTHING, ONE, content))


async def test_a_resource_opens_over_the_whole_height() -> None:
    async with running(decks.full_store(), (120, 50)) as deck:
        await deck.press("f5", "enter")
        await deck.until(lambda: "Reading…" in deck.text)
        deck.dispatch(ResourceRead(decks.EVERYTHING, ONE, failure="It is gone [/x]."))
        await deck.until(lambda: "It is gone [/x]." in deck.text)
        await deck.press("escape")
        content = ResourceContent("the [bold]text[/bold]", "text/plain", ("[image/png, 3 kB]",), 7)
        await read_resource(deck, content)
        assert deck.on_top(ResourceScreen)
        for words in ("the [bold]text[/bold]", "21 characters", "[image/png, 3 kB]", ONE):
            assert words in deck.text
        assert "7 more characters left out" in deck.text
        assert deck.app.screen.query_one("#viewer").region.height == 50
        await deck.press("c", "escape")
        assert deck.app.clipboard == "the [bold]text[/bold]"
        assert "the [bold]text[/bold]" not in deck.text
        await read_resource(deck, ResourceContent("text"))
        await deck.press("i")
        await deck.until(lambda: deck.on_top(MainScreen))
        composer = deck.one(ChatPane).query_one(TextArea)
        await deck.until(lambda: composer.text.strip() == f"@everything:{ONE}")
        assert deck.focus is composer


async def test_a_resource_is_drawn_as_what_it_is_and_a_long_one_plain() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f5")
        for text, media_type, shown, hidden in (
            ("# Title\n\n- **one**", "text/markdown", "• one", "**"),
            ('{"a":[1,2]}', "application/json", '"a": [', '{"a"'),
            ("x = 1", "text/x-python", "x = 1", "• one"),
            ("# not Markdown", "text/plain", "# not Markdown", "x = 1"),
        ):
            await read_resource(deck, ResourceContent(text, media_type))
            assert shown in deck.text, media_type
            assert hidden not in deck.text, media_type
            await deck.press("escape")
        long = "\n".join(f"# line {number}" for number in range(5_000))
        await read_resource(deck, ResourceContent(long, "text/markdown"))
        await deck.press("end")
        await deck.until(lambda: "# line 4999" in deck.text)


async def test_a_resource_is_sent_with_the_draft_or_a_question_and_followed() -> None:
    async with running(decks.full_store(), (120, 50)) as deck:
        composer = deck.one(ChatPane).query_one(TextArea)
        for draft, sent in (("look:", "look:"), ("", ABOUT_RESOURCE)):
            composer.text = draft
            await deck.press("f5", "g")
            assert deck.asked("messages.send_resource")[-1] == (decks.EVERYTHING, ONE, sent)
            assert composer.text == ""
            assert deck.focus is composer
        await deck.press("f5", "down", "w")
        assert deck.asked("features.subscribe") == [(decks.EVERYTHING, TWO, True)]
        deck.dispatch(SubscriptionChanged(decks.EVERYTHING, TWO, True))
        await deck.until(lambda: "watched:" in deck.text)
        assert deck.one(ResourcesPane).action_label("watch") == "unwatch"
        await deck.press("w")
        assert deck.asked("features.subscribe")[-1] == (decks.EVERYTHING, TWO, False)


async def test_a_template_asks_for_its_variables_and_reads_the_address() -> None:
    async with running(decks.full_store(), (120, 50)) as deck:
        await deck.press("f5", "end", "g", "w")
        assert deck.commands.calls == [], "nothing is known to send or follow yet"
        await deck.press("enter")
        assert "id" in deck.text
        await deck.press(*"7 /", "ctrl+s")
        await deck.until(lambda: bool(deck.asked("features.read_resource")))
        uri = "test://static/resource/7%20%2F"
        assert deck.asked("features.read_resource") == [(decks.EVERYTHING, uri)]
        await deck.press("g")
        await deck.until(lambda: bool(deck.asked("messages.send_resource")))
        assert deck.asked("messages.send_resource") == [(decks.EVERYTHING, uri, ABOUT_RESOURCE)]


async def test_every_kind_of_template_is_filled_in_and_one_that_cannot_be_read_refused() -> None:
    store = decks.full_store()
    async with running(store, (120, 50)) as deck:
        await deck.press("f5")
        for template, keys, uri in (
            ("file:///{+path}{?q,tags*}", ("a", "/", "b", "enter", "enter", *"x,y"),
             "file:///a/b?tags=x&tags=y"),
            ("memo://days{/day}", (), "memo://days"),
        ):  # fmt: skip
            offered = Catalog(templates=(ResourceTemplateView(template, "files"),))
            await deck.happen(CatalogChanged(decks.EVERYTHING, offered))
            deck.commands.calls.clear()
            await deck.press("end", "enter", *keys, "ctrl+s")
            await deck.until(lambda: bool(deck.asked("features.read_resource")))
            assert deck.asked("features.read_resource") == [(decks.EVERYTHING, uri)]
            await deck.press("escape")
        deck.commands.calls.clear()
        broken = Catalog(templates=(ResourceTemplateView("file:///{path", "files"),))
        await deck.happen(CatalogChanged(decks.EVERYTHING, broken))
        await deck.press("end", "enter")
        await deck.until(lambda: "cannot be filled in" in deck.text)
        assert deck.commands.calls == []


async def test_the_log_level_of_a_server_is_chosen_in_the_activity_pane() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f7", "e")
        assert deck.on_top(MainScreen), "all servers have no one level"
        await deck.app.deck.show_pane(PaneName.ACTIVITY, decks.GIT)
        await deck.press("e")
        assert deck.on_top(ChoiceDialog)
        await deck.press("down", "down", "enter")
        assert deck.asked("features.set_log_level") == [(decks.GIT, "warning")]
        deck.dispatch(LogLevelChanged(decks.GIT, "warning"))
        await deck.until(lambda: "log level warning" in deck.text)


def test_the_era_of_a_connection_is_told_by_its_revision() -> None:
    assert era(ServerInfo("a", "1", "2025-11-25")) == "handshake"
    assert era(ServerInfo("a", "1", "2026-07-28")) == "stateless"


async def test_the_details_tell_the_era_of_a_connection() -> None:
    async with running(decks.full_store(), (140, 36)) as deck:
        info = ServerInfo("git", "2", "2026-07-28")
        deck.dispatch(ServerStatusChanged(decks.GIT, ServerStatus.READY, info=info))
        deck.app.deck.post_message(ShowServer(decks.GIT))
        await deck.until(lambda: "2026-07-28 · stateless" in deck.text)
