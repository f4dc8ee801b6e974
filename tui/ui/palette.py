"""The command palette: every action by name."""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import NamedTuple

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from tui.model.servers import ServerStatus, ServerView
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.ui.panes import PaneName
from tui.ui.screens.dialog import DIALOG_STYLES
from tui.ui.screens.main import MainScreen
from tui.ui.widgets.status import STARTABLE, STOPPABLE
from tui.ui.widgets.text.plain import one_line


class PaletteAction(NamedTuple):
    """One entry of the palette: its name, one line below it, and what it does."""

    name: str
    help: str
    run: Callable[[], Awaitable[None] | None]


class DeckPalette(CommandPalette):
    """Textual's palette with gemdeck's dialog style."""

    CSS_PATH = DIALOG_STYLES


class DeckCommands(Provider):
    """Offer the actions that are possible now, server actions once for each server.

    Their names may contain a server's name, so they are never read as markup.
    """

    async def discover(self) -> Hits:
        for action in self._actions():
            yield DiscoveryHit(Content(action.name), action.run, text=action.name, help=action.help)

    async def search(self, query: str) -> Hits:
        """Yield the actions that match a query, with the matching letters marked."""
        matcher = self.matcher(query)
        for action in self._actions():
            score, offsets = matcher.fuzzy_search.match(query, action.name)
            if score <= 0:
                continue
            name = Content(action.name)
            for offset in offsets:
                name = name.stylize(matcher.match_style, offset, offset + 1)
            yield Hit(score, name, action.run, text=action.name, help=action.help)

    def _actions(self) -> Iterator[PaletteAction]:
        from tui.ui.app import GemdeckApp  # noqa: PLC0415 - the app names this module

        app = self.app
        if not isinstance(app, GemdeckApp):
            return
        deck = app.deck
        yield from _pane_actions(deck)
        yield from _chat_actions(app.commands, app.state)
        if app.state.pending:
            yield PaletteAction(
                "Question: open the waiting one",
                "It opens by itself when you pause typing",
                app.action_open_question,
            )
        yield from _consent_actions(deck, app.commands, app.state)
        yield from _server_actions(deck, app.commands, app.state)
        yield PaletteAction(
            "Model: choose, enter a key", "Gemini, Vertex AI or the demo", deck.action_model
        )
        yield PaletteAction(
            "Settings: edit", "Open your settings in your editor", app.action_edit_settings
        )
        yield PaletteAction(
            "Settings: sample", "Show a sample of every key", app.action_sample_settings
        )
        yield PaletteAction("Help: keys", "All keys, those that work here first", app.action_help)
        yield PaletteAction("Theme: choose", "Dark, light and more", app.action_change_theme)
        yield PaletteAction("Quit", "Leave gemdeck at once", app.action_quit)


def _pane_actions(deck: MainScreen) -> Iterator[PaletteAction]:
    for name in PaneName:
        yield PaletteAction(
            f"Go to: {name}", f"Show the {name} pane", partial(deck.show_pane, name)
        )
    for what, help_text, run in (
        ("chat alone, or not", "Show the chat alone, or beside the other panes", deck.chat_alone),
        ("border left", "Move the border of the pane left", partial(deck.action_move_border, -1)),
        ("border right", "Move the border of the pane right", partial(deck.action_move_border, 1)),
    ):
        yield PaletteAction(f"Panes: {what}", help_text, run)


def _chat_actions(commands: Commands, state: AppState) -> Iterator[PaletteAction]:
    yield PaletteAction(
        "Chat: new conversation", "Start with an empty history", commands.clear_conversation
    )
    if state.conversation.turn is not None:
        yield PaletteAction("Chat: stop the answer", "Stop the running turn", commands.cancel_turn)


def _consent_actions(
    deck: MainScreen, commands: Commands, state: AppState
) -> Iterator[PaletteAction]:
    yield PaletteAction(
        "Grants: rules for tools",
        "Show and revoke what may run without asking",
        deck.action_grants,
    )
    yield PaletteAction(
        "Review this folder", "Show everything its settings would run", commands.review_folder
    )
    yield PaletteAction(
        "Forget this folder",
        "Forget whether it is trusted and stop its servers",
        commands.forget_folder,
    )
    for view in state.servers:
        if any(tool.changed for tool in view.catalog.tools):
            yield PaletteAction(
                f"Review changed tools: {one_line(view.id)}",
                "Show what the server changed",
                partial(commands.review_tools, view.id),
            )


def _server_actions(
    deck: MainScreen, commands: Commands, state: AppState
) -> Iterator[PaletteAction]:
    if state.servers:
        yield PaletteAction(
            "Servers: restart all", "Restart every server", commands.restart_all_servers
        )
    for view in state.servers:
        yield from _one_server(deck, commands, view)


def _one_server(deck: MainScreen, commands: Commands, view: ServerView) -> Iterator[PaletteAction]:
    name, server, status = one_line(view.id), view.id, view.status

    def entry(verb: str, help_text: str, run: Callable[..., None], **how: bool) -> PaletteAction:
        return PaletteAction(f"{name}: {verb}", help_text, partial(run, server, **how))

    if status in STOPPABLE:
        yield entry("restart", "Stop the server and start it again", commands.restart_server)
        yield entry("stop", "Stop the server", commands.stop_server)
    elif status in STARTABLE:
        yield entry("start", "Start the server", commands.start_server)
    enable = commands.set_server_enabled
    if status is ServerStatus.DISABLED:
        yield entry("enable", "Enable the server and start it", enable, enabled=True)
    elif status is not ServerStatus.INVALID:
        words = "Stop the server and keep it from starting"
        yield entry("disable", words, enable, enabled=False)
    yield entry("details", "Show the server's details", deck.show_server)
    if view.info is not None and view.info.log_levels:
        yield entry("log level", "Set the server's log level", deck.choose_log_level)
    log = partial(deck.show_pane, PaneName.ACTIVITY, server)
    yield PaletteAction(f"{name}: log", "Show the server's log in the activity pane", log)
