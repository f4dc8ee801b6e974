"""The command palette: every action, server, tool, prompt, resource, theme, session and model."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from tui.model.catalog import ResourceTemplateView, ResourceView
from tui.model.input.own_commands import OWN_COMMANDS, Takes
from tui.model.servers import ServerStatus, ServerView
from tui.store.commands import Commands
from tui.text import clip
from tui.ui import keymap, themes
from tui.ui.dialogs.list_dialog import ListDialog
from tui.ui.main import MainScreen
from tui.ui.panes import FillPrompt, PaneName, ShowTool
from tui.ui.panes.tabs import shown_tabs
from tui.ui.widgets.lists.filter_list import DialogFilterList, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.status import STARTABLE, STOPPABLE
from tui.ui.widgets.text.describe import moment
from tui.ui.widgets.text.plain import one_line

if TYPE_CHECKING:
    from tui.ui.app import GemdeckApp


OFFERED: Final = frozenset(
    {"help", "clear", "new", "tab", "close", "tools", "mcp", "theme", "quit"}
)
"""Typed commands that the palette offers in other words."""

MAX_SESSIONS: Final = 50
"""Saved conversations in it, the newest ones; `/sessions` has all."""

MAX_MODELS: Final = 200
"""Models of the service in it."""

MAX_NAME: Final = 100
"""Characters of an entry's name."""

OPTIONAL: Final = frozenset(t for t in Takes if not t or t.startswith("["))
"""What may stand after a command, but need not."""


class PaletteAction(NamedTuple):
    """One entry of the palette: its name, a few words on it, what it does, and its key."""

    name: str
    help: str
    run: Callable[[], object]
    key: str = ""


Actions = Iterator[PaletteAction]


class DeckPalette(ListDialog[PaletteAction]):
    """Find an action by parts of its name; Enter or a click runs it.

    Saved conversations are listed once it is open, and join what can be found.

    Args:
        app: The app, whose actions these are.
    """

    KIND = "palette"
    HINTS = (("↵", "run"), ("↑↓", "select"), ("Esc", "close"))

    def __init__(self, app: "GemdeckApp") -> None:
        prompt = "Type what you are looking for"
        listed = DialogFilterList[PaletteAction]("entry", "", prompt, clicks=1)
        super().__init__("Palette", listed, lambda action: action.run())
        self._deck_app = app
        self._entries = [*map(_entry, palette_actions(app))]
        self._panes = [*map(_entry, _pane_actions(app))]

    def on_mount(self) -> None:
        bridge, commands = self._deck_app.bridge, self._deck_app.commands
        bridge.watch(self, lambda state: (state.sessions, state.models), lambda _: self._show())
        commands.engine.sessions.list_sessions()

    def _show(self) -> None:
        late = map(_entry, chain(_sessions(self._deck_app), _models(self._deck_app)))
        self.listed.set_entries([*self._entries, *late, *self._panes])


def _entry(action: PaletteAction) -> ListEntry[PaletteAction]:
    name = clip(one_line(action.name), MAX_NAME)
    return ListEntry(
        action,
        Row("", name, action.key, note=action.help),
        f"{name} {action.key}".lower(),
        action.help.lower(),
    )


def palette_actions(app: "GemdeckApp") -> Actions:
    """List what is possible now: what fits the place first, and those of other panes after them."""
    deck = app.deck
    if app.state.pending:
        yield PaletteAction(
            "Question: open the waiting one",
            "It opens by itself when you pause typing",
            app.action_open_question,
            _key(app, "app.question"),
        )
    groups = {
        PaneName.CHAT: _chat_actions(app),
        PaneName.SERVERS: _servers_actions(app),
        PaneName.PROMPTS: _prompts(app),
        PaneName.RESOURCES: _resources(app),
        PaneName.TOOLS: _tools(app),
    }
    place = deck.place
    yield from _actions_here(app)
    yield from groups.pop(place, iter(()))
    if place is not PaneName.CHAT:
        yield from groups.pop(PaneName.CHAT)
    yield from _app_actions(app)
    yield from _tab_actions(app)
    yield from chain.from_iterable(groups.values())
    yield from _themes(app)


def _key(app: "GemdeckApp", binding_id: str) -> str:
    return keymap.key_of(app, app.deck.active_bindings, binding_id)


def _actions_here(app: "GemdeckApp") -> Actions:
    """Yield what the keys of the focused side do, in the order of the keymap."""
    deck = app.deck
    if app.screen is not deck or deck.place is PaneName.CHAT:
        return
    own = [
        active
        for active in deck.active_bindings.values()
        if active.enabled and active.binding.show and active.node not in (deck, app)
    ]
    for active in sorted(own, key=lambda active: keymap.order(active.binding.id)):
        binding = active.binding
        run = partial(app.run_action, binding.action, active.node)
        yield PaletteAction(binding.tooltip, "", run, app.get_key_display(binding))


def _chat_actions(app: "GemdeckApp") -> Actions:
    commands = app.commands
    yield PaletteAction(
        "Chat: new conversation", "Start with an empty history", commands.clear_conversation, "/new"
    )
    for command in OWN_COMMANDS.values():
        if command.name not in OFFERED and command.takes in OPTIONAL:
            run = partial(app.deck.run_command, f"/{command.name}")
            words = f"{command.does[0].upper()}{command.does[1:]}"
            yield PaletteAction(f"Chat: {command.name}", words, run, f"/{command.name}")
    if app.state.conversation.turn is not None:
        yield PaletteAction("Chat: stop the answer", "Stop the running turn", commands.cancel_turn)
    if (transcript := app.deck.chat.transcript).views:
        key = _key(app, "deck.last-result")
        yield PaletteAction("Chat: search", "Find words in it", transcript.action_search)
        yield PaletteAction("Chat: last result", "Of a tool", app.deck.action_last_result, key)


def _tab_actions(app: "GemdeckApp") -> Actions:
    deck, tabs = app.deck, shown_tabs(app.state)
    new = _key(app, "tabs.new")
    yield PaletteAction(
        "Tabs: new", "Another conversation beside this one", deck.action_new_tab, new
    )
    if tabs:
        close = _key(app, "tabs.close")
        yield PaletteAction("Tabs: close", "This conversation", deck.action_close_tab, close)
    for tab in tabs:
        if not tab.is_current:
            go = partial(deck.show_conversation, tab.key)
            key = _key(app, f"tabs.{tab.number}")
            yield PaletteAction(f"Tab {tab.name}", tab.doing or "Go there", go, key)


def _app_actions(app: "GemdeckApp") -> Actions:
    deck, engine = app.deck, app.commands.engine
    model = _key(app, "deck.model")
    for name, words, run, key in (
        ("Model: choose, enter a key", "Gemini, Vertex AI or the demo", deck.action_model, model),
        ("Settings: edit", "Open your settings in your editor", app.action_edit_settings, ""),
        ("Servers: import", "Take over servers of other clients", app.action_import_servers, ""),
        ("Settings: sample", "Show a sample of every key", app.action_sample_settings, ""),
        ("Help: keys", "All keys, those that work here first", app.action_help, "F1"),
        ("Grants: rules for tools", "What may run without asking", deck.action_grants, ""),
        ("Review this folder", "Show what its settings would run", engine.review_folder, ""),
        ("Forget this folder", "Forget its trust and stop its servers", engine.forget_folder, ""),
        ("Theme: choose", "Dark, light and more", app.action_change_theme, ""),
        ("Quit", "Leave gemdeck at once", app.action_quit, _key(app, "app.quit")),
    ):
        yield PaletteAction(name, words, run, key)


def _servers_actions(app: "GemdeckApp") -> Actions:
    engine, servers = app.commands.engine, app.state.servers
    if servers:
        yield PaletteAction(
            "Servers: restart all", "Restart every server", engine.servers.restart_all
        )
    for view in servers:
        yield from _server_actions(app.deck, app.commands, view)
        if any(tool.changed for tool in view.catalog.tools):
            yield PaletteAction(
                f"Review changed tools: {view.id}",
                "Show what the server changed",
                partial(engine.access.review.review, view.id),
            )


def _server_actions(deck: MainScreen, commands: Commands, view: ServerView) -> Actions:
    server, status, servers = view.id, view.status, commands.engine.servers

    def entry(verb: str, help_text: str, run: Callable[..., None], **how: bool) -> PaletteAction:
        return PaletteAction(f"{server}: {verb}", help_text, partial(run, server, **how))

    if status in STOPPABLE:
        yield entry("restart", "Stop the server and start it again", servers.restart)
        yield entry("stop", "Stop the server", servers.stop)
    elif status in STARTABLE:
        yield entry("start", "Start the server", servers.start)
    enable = servers.set_enabled
    if status is ServerStatus.DISABLED:
        yield entry("enable", "Enable the server and start it", enable, enabled=True)
    elif status is not ServerStatus.INVALID:
        words = "Stop the server and keep it from starting"
        yield entry("disable", words, enable, enabled=False)
    yield entry("details", "Show the server's details", deck.show_server)
    if view.info is not None and view.info.log_levels:
        yield entry("log level", "Set the server's log level", deck.choose_log_level)
    log = partial(deck.show_pane, PaneName.ACTIVITY, server)
    yield PaletteAction(f"{server}: log", "Show the server's log in the activity pane", log)


def _tools(app: "GemdeckApp") -> Actions:
    for view in app.state.servers:
        for tool in view.catalog.tools:
            show = partial(app.deck.post_message, ShowTool(view.id, tool.name))
            yield PaletteAction(tool.name, f"tool of {view.id}", show)


def _prompts(app: "GemdeckApp") -> Actions:
    for view in app.state.servers:
        for prompt in view.catalog.prompts:
            if not prompt.problem:
                fill = partial(app.deck.post_message, FillPrompt(view.id, prompt))
                yield PaletteAction(f"/{prompt.name}", f"prompt of {view.id}", fill)


def _resources(app: "GemdeckApp") -> Actions:
    for view in app.state.servers:
        offered: tuple[ResourceView | ResourceTemplateView, ...] = (
            *view.catalog.resources,
            *view.catalog.templates,
        )
        for resource in offered:
            if not resource.problem:
                show = partial(app.deck.open_resource, view.id, resource)
                name = resource.title or resource.name
                yield PaletteAction(name, f"resource of {view.id}", show)


def _sessions(app: "GemdeckApp") -> Actions:
    for view in app.state.sessions[:MAX_SESSIONS]:
        go_on = partial(app.commands.engine.sessions.resume, view.id)
        changed = moment(view.changed, "%Y-%m-%d %H:%M", "")
        yield PaletteAction(f"Session: {view.name}", changed, go_on)


def _models(app: "GemdeckApp") -> Actions:
    """Yield the models of the service, if they have been listed."""
    listed = app.state.models
    for model in listed.models[:MAX_MODELS] if listed is not None else ():
        title = "current" if model.name == app.state.model.name else one_line(model.title)
        yield PaletteAction(
            f"Model: {model.name}", title, partial(app.commands.engine.model.use_model, model.name)
        )


def _themes(app: "GemdeckApp") -> Actions:
    for name in themes.in_order(app.available_themes):
        current = "current" if name == app.theme else ""
        yield PaletteAction(f"Theme: {name}", current, partial(app.choose_theme, name))


def _pane_actions(app: "GemdeckApp") -> Actions:
    deck = app.deck
    for what, key, run in (
        ("chat alone, or not", "deck.chat", deck.chat_alone),
        ("border left", "deck.border-left", partial(deck.action_move_border, -1)),
        ("border right", "deck.border-right", partial(deck.action_move_border, 1)),
    ):
        yield PaletteAction(f"Panes: {what}", "", run, _key(app, key))
    for name in PaneName:
        go = partial(deck.show_pane, name)
        yield PaletteAction(f"Go to: {name}", "", go, _key(app, f"deck.{name}"))
