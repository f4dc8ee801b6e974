"""Prompts and resources in use: filled in, completed, read, sent, followed."""

import pytest
from textual.widgets import Input, OptionList, TextArea

from tests.ui.harness import NARROW, WIDE, Running, running
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


def asked(deck: Running, name: str) -> list[tuple[object, ...]]:
    return [arguments for called, arguments in deck.commands.calls if called == name]


async def open_complex_prompt(deck: Running) -> ArgumentsScreen:
    await deck.press("f4", "down", "enter")
    await deck.until(lambda: deck.on_top(ArgumentsScreen))
    screen = deck.app.screen
    assert isinstance(screen, ArgumentsScreen)
    return screen


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_a_prompt_is_sent_with_the_arguments_that_were_filled_in(
    size: tuple[int, int],
) -> None:
    async with running(decks.full_store(), size) as deck:
        await open_complex_prompt(deck)
        assert "How warm." in deck.text
        await deck.press("ctrl+s")
        assert "This is required." in deck.text
        assert asked(deck, "messages.send_prompt") == []
        await deck.press(*"hot", "enter", "enter", "enter")
        await deck.until(lambda: deck.on_top(MainScreen))
        await deck.settle()
        assert asked(deck, "messages.send_prompt") == [
            (decks.EVERYTHING, "complex_prompt", {"temperature": "hot"})
        ]
        await deck.until(lambda: isinstance(deck.focus, TextArea))


async def test_a_prompt_without_arguments_is_shown_before_it_is_sent() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f4", "enter")
        assert "takes no arguments" in deck.text
        assert asked(deck, "messages.send_prompt") == []
        await deck.press("enter")
        await deck.until(lambda: bool(asked(deck, "messages.send_prompt")))
        assert asked(deck, "messages.send_prompt") == [(decks.EVERYTHING, "simple_prompt", {})]


async def test_a_typed_prompt_that_lacks_an_argument_opens_its_form_filled_in() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press(*"/complex_prompt --style=calm", "enter")
        await deck.until(lambda: deck.on_top(ArgumentsScreen))
        assert "calm" in deck.text
        await deck.press("escape")
        await deck.until(lambda: deck.one(Composer).text == "/complex_prompt --style=calm")
        await deck.press("enter")
        await deck.until(lambda: deck.on_top(ArgumentsScreen))
        await deck.press(*"hot", "ctrl+s")
        await deck.until(lambda: bool(asked(deck, "messages.send_prompt")))
        values = {"temperature": "hot", "style": "calm"}
        assert asked(deck, "messages.send_prompt") == [(decks.EVERYTHING, "complex_prompt", values)]
        assert asked(deck, "messages.send") == []


async def test_help_after_a_prompt_shows_its_arguments() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press(*"/complex_prompt help", "enter")
        await deck.until(lambda: deck.on_top(ArgumentsScreen))
        assert "A prompt with arguments." in deck.text
        assert "How warm." in deck.text
        assert {line.value for line in deck.app.screen.query(Input)} == {""}
        await deck.press("escape")
        await deck.until(lambda: deck.one(Composer).text == "/complex_prompt ")
        assert asked(deck, "messages.send") == []


async def test_leaving_the_arguments_sends_nothing() -> None:
    async with running(decks.full_store()) as deck:
        await open_complex_prompt(deck)
        await deck.press(*"hot", "escape")
        assert deck.on_top(MainScreen)
        assert asked(deck, "messages.send_prompt") == []


async def test_the_server_completes_what_is_typed_after_a_pause() -> None:
    async with running(decks.full_store()) as deck:
        screen = await open_complex_prompt(deck)
        await deck.press("tab", *"fo", "shift+tab", *"ho")
        await deck.until(lambda: "ho" in (asked(deck, "features.complete") or [()])[-1])
        token, *rest = asked(deck, "features.complete")[-1]
        assert rest == [
            decks.EVERYTHING, "complex_prompt", "temperature", "ho", {"style": "fo"}
        ]  # fmt: skip
        deck.dispatch(ArgumentCompleted("of-another", ("cold",)))
        await deck.settle()
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
        assert asked(deck, "features.complete") == []


async def read_resource(deck: Running, content: ResourceContent) -> None:
    await deck.press("f5", "enter")
    assert asked(deck, "features.read_resource") == [(decks.EVERYTHING, ONE)]
    await deck.until(lambda: "Reading…" in deck.text)
    deck.dispatch(ResourceRead(decks.EVERYTHING, ONE, content))
    await deck.until(lambda: "Reading…" not in deck.text)


async def test_a_resource_opens_over_the_whole_height() -> None:
    async with running(decks.full_store(), (120, 50)) as deck:
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


@pytest.mark.parametrize(
    ("text", "media_type", "shown", "hidden"),
    [
        ("# Title\n\n- **one**", "text/markdown", "• one", "**"),
        ('{"a":[1,2]}', "application/json", '"a": [', '{"a"'),
        ("x = 1", "text/x-python", "x = 1", ""),
        ("# not Markdown", "text/plain", "# not Markdown", ""),
    ],
)
async def test_a_resource_is_drawn_as_what_it_is(
    text: str, media_type: str, shown: str, hidden: str
) -> None:
    async with running(decks.full_store(), (120, 50)) as deck:
        await read_resource(deck, ResourceContent(text, media_type))
        assert shown in deck.text
        assert not hidden or hidden not in deck.text


async def test_a_long_resource_is_shown_plain_and_scrolls() -> None:
    async with running(decks.full_store()) as deck:
        long = "\n".join(f"# line {number}" for number in range(5_000))
        await read_resource(deck, ResourceContent(long, "text/markdown"))
        await deck.press("end")
        await deck.until(lambda: "# line 4999" in deck.text)


async def test_i_puts_the_mention_of_an_open_resource_into_the_message() -> None:
    async with running(decks.full_store()) as deck:
        await read_resource(deck, ResourceContent("text"))
        await deck.press("i")
        await deck.until(lambda: deck.on_top(MainScreen))
        composer = deck.one(ChatPane).query_one(TextArea)
        await deck.until(lambda: composer.text.strip() == f"@everything:{ONE}")
        assert deck.focus is composer


async def test_a_resource_that_cannot_be_read_says_why() -> None:
    async with running(decks.full_store(), (120, 50)) as deck:
        await deck.press("f5", "enter")
        deck.dispatch(ResourceRead(decks.EVERYTHING, ONE, failure="It is gone [/x]."))
        await deck.until(lambda: "It is gone [/x]." in deck.text)


@pytest.mark.parametrize(("draft", "sent"), [("look:", "look:"), ("", ABOUT_RESOURCE)])
async def test_a_resource_is_sent_with_the_draft_or_a_question(draft: str, sent: str) -> None:
    async with running(decks.full_store()) as deck:
        composer = deck.one(ChatPane).query_one(TextArea)
        composer.text = draft
        await deck.press("f5", "g")
        await deck.settle()
        assert asked(deck, "messages.send_resource") == [(decks.EVERYTHING, ONE, sent)]
        assert composer.text == ""
        assert deck.focus is composer


async def test_a_resource_is_followed_and_no_longer() -> None:
    async with running(decks.full_store(), (120, 50)) as deck:
        await deck.press("f5", "down", "w")
        assert asked(deck, "features.subscribe") == [(decks.EVERYTHING, TWO, True)]
        deck.dispatch(SubscriptionChanged(decks.EVERYTHING, TWO, True))
        await deck.until(lambda: "watched:" in deck.text)
        assert deck.one(ResourcesPane).action_label("watch") == "unwatch"
        await deck.press("w")
        assert asked(deck, "features.subscribe")[-1] == (decks.EVERYTHING, TWO, False)


async def test_a_template_asks_for_its_variables_and_reads_the_address() -> None:
    async with running(decks.full_store(), (120, 50)) as deck:
        await deck.press("f5", "end", "g", "w")
        assert deck.commands.calls == [], "nothing is known to send or follow yet"
        await deck.press("enter")
        assert "id" in deck.text
        await deck.press(*"7 /", "ctrl+s")
        await deck.until(lambda: bool(asked(deck, "features.read_resource")))
        uri = "test://static/resource/7%20%2F"
        assert asked(deck, "features.read_resource") == [(decks.EVERYTHING, uri)]
        await deck.press("g")
        await deck.until(lambda: bool(asked(deck, "messages.send_resource")))
        assert asked(deck, "messages.send_resource") == [(decks.EVERYTHING, uri, ABOUT_RESOURCE)]


@pytest.mark.parametrize(
    ("template", "keys", "uri"),
    [
        ("file:///{+path}{?q,tags*}", ["a", "/", "b", "enter", "enter", *"x,y"],
         "file:///a/b?tags=x&tags=y"),
        ("memo://days{/day}", [], "memo://days"),
    ],
)  # fmt: skip
async def test_every_kind_of_template_is_filled_in(
    template: str, keys: list[str], uri: str
) -> None:
    store = decks.full_store()
    offered = Catalog(templates=(ResourceTemplateView(template, "files"),))
    store.dispatch(CatalogChanged(decks.EVERYTHING, offered))
    async with running(store, (120, 50)) as deck:
        await deck.press("f5", "end", "enter", *keys, "ctrl+s")
        await deck.until(lambda: bool(asked(deck, "features.read_resource")))
        assert asked(deck, "features.read_resource") == [(decks.EVERYTHING, uri)]


async def test_a_template_that_cannot_be_read_is_refused_with_the_reason() -> None:
    store = decks.full_store()
    offered = Catalog(templates=(ResourceTemplateView("file:///{path", "files"),))
    store.dispatch(CatalogChanged(decks.EVERYTHING, offered))
    async with running(store, (120, 50)) as deck:
        await deck.press("f5", "end", "enter")
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
        assert asked(deck, "features.set_log_level") == [(decks.GIT, "warning")]
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
