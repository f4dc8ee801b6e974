"""Every action by its name, in the command palette."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from tui.model.servers import ServerId, ServerStatus, ServerView
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.ui.messages import PaneName
from tui.ui.screens.dialog import DIALOG_STYLES
from tui.ui.screens.main import MainScreen
from tui.ui.widgets.plain import one_line
from tui.ui.widgets.status import STARTABLE, STOPPABLE

_S = ServerStatus

Run = Callable[[], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class PaletteAction:
    """One entry of the palette.

    Attributes:
        name: What it is called; may hold the name of a server, literally.
        help: A line of our own words.
        run: Does it.
    """

    name: str
    help: str
    run: Run


class DeckPalette(CommandPalette):
    """Textual's palette in gemdeck's frame."""

    CSS_PATH = DIALOG_STYLES


class DeckCommands(Provider):
    """Offers what can be done now, with one entry for each server it can be done to."""

    async def discover(self) -> Hits:
        """List everything, as an empty query does."""
        for action in self._actions():
            yield DiscoveryHit(Content(action.name), action.run, text=action.name, help=action.help)

    async def search(self, query: str) -> Hits:
        """List what matches a query, its letters marked."""
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
        yield from _consent_actions(deck, app.commands, app.state)
        yield from _server_actions(deck, app.commands, app.state)
        yield PaletteAction(
            "Model: choose who answers", "The demo, Gemini or Vertex", deck.choose_model
        )
        yield PaletteAction("Help: keys", "All keys, those of this place first", app.action_help)
        yield PaletteAction("Theme: choose", "Dark, light and more", app.action_change_theme)
        yield PaletteAction("Quit", "Leave gemdeck at once", app.action_quit)


def _pane_actions(deck: MainScreen) -> Iterator[PaletteAction]:
    for name in PaneName:
        yield PaletteAction(
            f"Go to: {name}", f"Show the {name} pane", partial(deck.show_pane, name)
        )


def _chat_actions(commands: Commands, state: AppState) -> Iterator[PaletteAction]:
    yield PaletteAction(
        "Chat: new conversation", "Begin with an empty history", commands.clear_conversation
    )
    if state.turn is not None:
        yield PaletteAction(
            "Chat: cancel the answer", "Stop the running turn", commands.cancel_turn
        )


def _consent_actions(
    deck: MainScreen, commands: Commands, state: AppState
) -> Iterator[PaletteAction]:
    yield PaletteAction(
        "Grants: what may run",
        "The rules on tools, and the way to take them back",
        deck.action_grants,
    )
    yield PaletteAction(
        "Review this folder", "See all that its settings would run", commands.review_folder
    )
    yield PaletteAction(
        "Forget this folder",
        "Take back what was said of it; its servers stop",
        commands.forget_folder,
    )
    for view in state.servers:
        if any(tool.changed for tool in view.catalog.tools):
            yield PaletteAction(
                f"Review changed tools: {one_line(view.id)}",
                "See what the server changed",
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
    name, server = one_line(view.id), view.id
    if view.status in STOPPABLE:
        yield _of(name, "restart", "Stop it and start it again", commands.restart_server, server)
        yield _of(name, "stop", "It stays stopped", commands.stop_server, server)
    elif view.status in STARTABLE:
        yield _of(name, "start", "Start it", commands.start_server, server)
    if view.status is _S.DISABLED:
        enable = partial(commands.set_server_enabled, server, enabled=True)
        yield PaletteAction(f"{name}: enable", "Let it run again", enable)
    elif view.status is not _S.INVALID:
        disable = partial(commands.set_server_enabled, server, enabled=False)
        yield PaletteAction(f"{name}: disable", "Stop it and leave it out", disable)
    yield _of(name, "details", "All there is to know about it", deck.show_server, server)
    if view.info is not None and view.info.log_levels:
        yield _of(name, "log level", "From which level on it logs", deck.choose_log_level, server)
    log = partial(deck.show_pane, PaneName.ACTIVITY, server)
    yield PaletteAction(f"{name}: log", "What it wrote", log)


def _of(
    name: str, verb: str, help_text: str, run: Callable[[ServerId], None], server: ServerId
) -> PaletteAction:
    return PaletteAction(f"{name}: {verb}", help_text, partial(run, server))
