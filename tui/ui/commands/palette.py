"""The command palette: every action, server, tool, prompt, resource, theme, session and model."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

from textual.binding import Binding

from tui.manual import Part, has_words, sections_with
from tui.model.input.own_commands import OWN_COMMANDS, Takes
from tui.model.servers import ServerId, ServerStatus, ServerView
from tui.text import clip
from tui.ui import keymap, messages, themes
from tui.ui.dialogs.choices import log_levels
from tui.ui.dialogs.help import HelpScreen
from tui.ui.dialogs.list_dialog import ListDialog
from tui.ui.dialogs.prompt_arguments import ProfileScreen
from tui.ui.main import MainScreen
from tui.ui.messages import PaneName
from tui.ui.panes.browser import Resource, ResourcesPane
from tui.ui.panes.tabs import shown_tabs
from tui.ui.widgets.lists.filter_list import DialogFilterList, Group, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.status import STARTABLE, STOPPABLE
from tui.ui.widgets.text.plain import moment, one_line

OFFERED: Final = frozenset(
    {"help", "clear", "new", "tab", "close", "tools", "mcp", "theme", "profile", "quit"}
)
"""Typed commands that the palette offers in other words."""

MAX_SESSIONS: Final = 50
"""Saved conversations in it, the newest ones; `/sessions` has all."""

MAX_MODELS: Final = 200
"""Models of the service in it."""

OPTIONAL: Final = frozenset(t for t in Takes if not t or t.startswith("["))
"""What may stand after a command, but need not."""


Run = Callable[[], object]
"""What an entry of the palette does."""

Actions = Iterator[ListEntry[Run]]


class _Actions(DialogFilterList[Run]):
    """The actions, and sections of the manual; before them if no action has what is typed."""

    def __init__(self, deck: MainScreen) -> None:
        super().__init__("entry", "", "Type to search", clicks=1)
        self._deck = deck

    def _find(self, query: str) -> tuple[Sequence[ListEntry[Run] | Group], Sequence[str]]:
        found, words = super()._find(query)
        if words:
            named, others = (map(self._section, parts) for parts in sections_with(words))
            has_any = any(has_words(f"{one.label} {one.text}", words) for one in self.shown)
            first, last = ((), named) if has_any else (named, others)
            found = self.shown = [*first, *self.shown, *last]
        return found, words

    def _section(self, part: Part) -> ListEntry[Run]:
        read = partial(self._read, part.at)
        return _action(f"In the manual: {part.heading}", part.title, read)

    def _read(self, at: str) -> None:
        self._deck.app.push_screen(HelpScreen((), at, self._deck.commands))


class DeckPalette(ListDialog[Run]):
    """Find an action by parts of its name; Enter or a click runs it.

    Saved conversations are listed once it is open, and join what can be found.

    Args:
        deck: The main screen, whose actions these are.
    """

    KIND = "palette"
    enter = "run"

    def __init__(self, deck: MainScreen) -> None:
        super().__init__("Palette", _Actions(deck), lambda run: run())
        self._deck = deck
        self._entries = [*palette_actions(deck)]
        self._panes = [*_pane_actions(deck)]

    def on_mount(self) -> None:
        bridge, commands = self._deck.bridge, self._deck.commands
        bridge.watch(self, lambda state: (state.sessions, state.models), lambda _: self._show())
        commands.list_sessions()

    def _show(self) -> None:
        late = _sessions(self._deck), _models(self._deck)
        self.listed.set_entries([*self._entries, *chain(*late), *self._panes])


def _action(name: str, words: str, run: Run, key: str = "") -> ListEntry[Run]:
    """List what can be done, with a few words on it and its key."""
    name = clip(one_line(name), limit=100)
    return ListEntry(run, Row("", name, key, note=words), f"{name} {key}".lower(), words.lower())


def palette_actions(deck: MainScreen) -> Actions:
    """List what is possible now: what fits the place first, and those of other panes after them."""
    if deck.bridge.state.pending:
        run, key = partial(deck.run_action, "app.open_question"), _key(deck, "app.question")
        yield _action("Question: open the waiting one", "Go back to it and answer", run, key)
    groups = {
        PaneName.CHAT: _chat_actions(deck),
        PaneName.SERVERS: _servers_actions(deck),
        PaneName.PROMPTS: _prompts(deck),
        PaneName.RESOURCES: _resources(deck),
        PaneName.TOOLS: _tools(deck),
    }
    place = deck.place
    yield from _actions_here(deck)
    yield from groups.pop(place, iter(()))
    if place is not PaneName.CHAT:
        yield from groups.pop(PaneName.CHAT)
    yield from _app_actions(deck)
    yield from _tab_actions(deck)
    yield from chain.from_iterable(groups.values())
    yield from _actions_elsewhere(deck)
    yield from _profiles(deck)
    yield from _themes(deck)


def _key(deck: MainScreen, binding_id: str) -> str:
    return keymap.key_of(deck.app, deck.active_bindings, binding_id)


def _actions_here(deck: MainScreen) -> Actions:
    """Yield what the keys of the focused side do, in the order of the keymap."""
    if deck.app.screen is not deck or deck.place is PaneName.CHAT:
        return
    own = [
        active
        for active in deck.active_bindings.values()
        if active.enabled and active.binding.show and active.node not in (deck, deck.app)
    ]
    for active in sorted(own, key=lambda active: keymap.order(active.binding.id)):
        binding = active.binding
        run = partial(deck.app.run_action, binding.action, active.node)
        yield _action(binding.tooltip, "", run, deck.app.get_key_display(binding))


def _actions_elsewhere(deck: MainScreen) -> Actions:
    """Yield what keys do in panes without the focus; each entry leads to its pane."""
    panes = {keymap.Place(name.title()): name for name in PaneName if name != PaneName.CHAT}
    panes[keymap.Place.MARKS] = PaneName.SERVERS
    for key in keymap.KEYS:
        pane = panes.get(key.place)
        if pane is not None and pane is not deck.place and key.label:
            name = deck.own_keys.get(key.id, key.keys).partition(",")[0]
            shown = deck.app.get_key_display(Binding(name, ""))
            title, go = f"{pane.title()} pane: {key.label}", partial(deck.show_pane, pane)
            yield _action(title, key.description, go, shown)


def _chat_actions(deck: MainScreen) -> Actions:
    commands = deck.commands
    yield _action(
        "Chat: new conversation", "Start anew in this tab", commands.clear_conversation, "/new"
    )
    for command in OWN_COMMANDS.values():
        if command.name not in OFFERED and command.takes in OPTIONAL:
            run = partial(deck.action_run_command, f"/{command.name}")
            words = f"{command.does[0].upper()}{command.does[1:]}"
            yield _action(f"Chat: {command.name}", words, run, f"/{command.name}")
    if deck.bridge.state.conversation.turn or deck.bridge.state.conversation.queued:
        yield _action("Chat: stop the answer", "Stop the running turn", commands.cancel_turn)
    if (transcript := deck.chat.transcript).views:
        key = _key(deck, "deck.last-result")
        yield _action("Chat: search", "Search this conversation", transcript.action_search)
        yield _action("Chat: last result", "Show the result", deck.action_last_result, key)


def _tab_actions(deck: MainScreen) -> Actions:
    tabs = shown_tabs(deck.bridge.state)
    new, words = _key(deck, "tabs.new"), "Start a conversation in a new tab"
    yield _action("Tabs: new", words, deck.action_new_tab, new)
    if tabs:
        close = _key(deck, "tabs.close")
        yield _action("Tabs: close", "Close this tab", deck.action_close_tab, close)
    for tab in tabs:
        if not tab.is_current:
            go = partial(deck.show_conversation, tab.key)
            key = _key(deck, f"tabs.{tab.number}")
            yield _action(f"Tab {tab.name}", tab.doing or "Go to this tab", go, key)


def _app_actions(deck: MainScreen) -> Actions:
    engine, model = deck.commands.engine, _key(deck, "deck.model")
    watch = partial(deck.show_pane, PaneName.RESOURCES)
    add, helps, leave = (_key(deck, one) for one in ("servers.add", "app.help", "app.quit"))
    actions: Iterable[tuple[str, str, str | Run, str]] = (
        ("Model: choose, enter a key", "Gemini, Vertex AI or the demo", "model", model),
        ("Servers: add", "A command, an address or JSON", "add", add),
        ("Settings: edit the file", "Open your settings in your editor", "settings", ""),
        ("Setup: check", "Check my setup: run gemdeck doctor", "doctor", ""),
        ("Runs: list, compare", "Compare two results of tools you ran", "runs", ""),
        ("Resources: watch", "Follow a resource: be notified of changes", watch, ""),
        ("Servers: import", "Import servers from other clients", "imports", ""),
        ("Settings: sample", "Show a sample with every setting", "sample", ""),
        ("Help", "The keys that work here, and the manual", "help", helps),
        ("Grants: rules for tools", "What is always allowed or denied", "grants", ""),
        ("Trust: review this folder", "Show what it would run", engine.review_folder, ""),
        ("Trust: forget this folder", "Revoke it, stop its servers", engine.forget_folder, ""),
        ("Keys: change", "Choose an action, press its key", "keys", ""),
        ("Theme: choose", "Dark, light and more", "themes", ""),
        ("Quit", "Leave gemdeck at once", partial(deck.run_action, "app.quit"), leave),
    )
    for name, words, does, key in actions:
        run = does if callable(does) else partial(deck.run_action, f"app.open('{does}')")
        yield _action(name, words, run, key)


def _servers_actions(deck: MainScreen) -> Actions:
    engine, servers = deck.commands.engine, deck.bridge.state.servers
    if servers:
        restart = engine.servers.restart_all
        yield _action("Servers: restart all", "Restart every server", restart)
    for view in servers:
        yield from _server_actions(deck, view)
        if any(tool.changed for tool in view.catalog.tools):
            name, review = f"Review changed tools: {view.id}", engine.access.review.review
            yield _action(name, "Review the changed definitions", partial(review, view.id))


def _server_actions(deck: MainScreen, view: ServerView) -> Actions:
    server, status, servers = view.id, view.status, deck.commands.engine.servers
    post, push = deck.post_message, deck.app.push_screen

    def entry(verb: str, help_text: str, run: Callable[..., object], **how: bool) -> ListEntry[Run]:
        return _action(f"{server}: {verb}", help_text, partial(run, server, **how))

    if status in STOPPABLE:
        yield entry("restart", "Restart the server", servers.restart)
        yield entry("stop", "Stop the server", servers.stop)
    elif status in STARTABLE:
        yield entry("start", "Start the server", servers.start)
    if status is ServerStatus.DISABLED:
        words = "Enable the server and start it"
        yield entry("enable", words, servers.set_enabled, enabled=True)
    elif status is not ServerStatus.INVALID:
        words = "Stop the server and prevent it from starting"
        yield entry("disable", words, servers.set_enabled, enabled=False)
    for verb, words, field in (
        ("edit", "Edit its entry in your settings", ""),
        ("make lazy", "Make the server lazy: it sleeps until it is used", "start"),
        ("store a secret", "Store a secret for the server in the keyring", "env"),
    ):
        edit = partial(post, messages.EditServer(server, field=field))
        yield _action(f"{server}: {verb}", words, edit)
    yield entry("details", "Show the server's details", lambda s: post(messages.ShowServer(s)))
    if view.info is not None and view.info.log_levels:
        words = "Set the server's log level"
        yield entry("log level", words, lambda s: push(log_levels(deck.bridge, s)))
    log = partial(deck.show_pane, PaneName.ACTIVITY)
    yield entry("log", "Show the server's log in the activity pane", log)


def _tools(deck: MainScreen) -> Actions:
    for view in deck.bridge.state.servers:
        for tool in view.catalog.tools:
            run = partial(deck.post_message, messages.RunTool(view.id, tool.name))
            yield _action(f"Run: {tool.name}", f"tool of {view.id}", run)
    for one in deck.bridge.state.saved_calls:
        run = partial(deck.post_message, messages.RunTool(one.server, one.tool, one.arguments))
        words = f"{one.tool} of {one.server}"
        yield _action(f"Run: @{one.name}", words, run)
        forget = partial(deck.commands.engine.runs.saved.forget, one.server, one.name)
        yield _action(f"Forget: @{one.name}", words, forget)
    for made in reversed([*deck.bridge.state.runs.values()]):
        show = partial(deck.post_message, messages.ShowRun(made))
        words = f"{made.call.status} · {made.call.server}"
        yield _action(f"Result: {made.call.tool}", words, show)


def _prompts(deck: MainScreen) -> Actions:
    for view in deck.bridge.state.servers:
        for prompt in view.catalog.prompts:
            if not prompt.problem:
                fill = partial(deck.post_message, messages.FillPrompt(view.id, prompt))
                yield _action(f"/{prompt.name}", f"prompt of {view.id}", fill)


def _resources(deck: MainScreen) -> Actions:
    for view in deck.bridge.state.servers:
        offered: tuple[Resource, ...] = (*view.catalog.resources, *view.catalog.templates)
        for resource in offered:
            if not resource.problem:
                show = partial(_open_resource, deck, view.id, resource)
                name = resource.title or resource.name
                yield _action(name, f"resource of {view.id}", show)


async def _open_resource(deck: MainScreen, server: ServerId, resource: Resource) -> None:
    """Go to a resource in its pane, and read it; fill in a template first."""
    await deck.show_pane(PaneName.RESOURCES)
    deck.query_one(ResourcesPane).open((server, resource))


def _sessions(deck: MainScreen) -> Actions:
    for view in deck.bridge.state.sessions[:MAX_SESSIONS]:
        go_on = partial(deck.commands.engine.sessions.resume, view.id)
        changed = moment(view.changed, "%Y-%m-%d %H:%M", "")
        yield _action(f"Session: {view.name}", changed, go_on)


def _models(deck: MainScreen) -> Actions:
    """Yield the models of the service, if they have been listed."""
    listed = deck.bridge.state.models
    for model in listed.models[:MAX_MODELS] if listed is not None else ():
        title = "current" if model.name == deck.bridge.state.model.name else one_line(model.title)
        use = partial(deck.commands.engine.models.use_model, model.name)
        yield _action(f"Model: {model.name}", title, use)


def _profiles(deck: MainScreen) -> Actions:
    state, use = deck.bridge.state, deck.commands.engine.models.use_profile
    for name, profile in state.profiles.items() if len(state.profiles) > 1 else ():
        words = "current" if name == state.options.profile else one_line(profile.description)
        title = f"Use profile {name}" if name else "Use all servers"
        yield _action(title, words, partial(use, name))
        if name:
            edit = partial(lambda one: deck.app.push_screen(ProfileScreen(deck.bridge, one)), name)
            yield _action(f"Edit profile {name}", "Replace, describe or remove it", edit)


def _themes(deck: MainScreen) -> Actions:
    for name in themes.in_order(deck.app.available_themes):
        current = "current" if name == deck.app.theme else ""
        yield _action(f"Theme: {name}", current, partial(deck.choose_theme, name))


def _pane_actions(deck: MainScreen) -> Actions:
    for what, key, run in (
        ("chat only, or all", "deck.chat", deck.chat_alone),
        ("move border left", "deck.border-left", partial(deck.action_move_border, -1)),
        ("move border right", "deck.border-right", partial(deck.action_move_border, 1)),
    ):
        yield _action(f"Panes: {what}", "", run, _key(deck, key))
    for name in PaneName:
        go = partial(deck.show_pane, name)
        yield _action(f"Go to: {name}", "", go, _key(deck, f"deck.{name}"))
