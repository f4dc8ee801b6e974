"""The deck's key bindings: of a place, in order, and as they are shown."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import Any, Final

from textual.app import App
from textual.binding import ActiveBinding, Binding, BindingType
from textual.keys import Keys, format_key

from tui.model.frozen import Frozen


class Place(StrEnum):
    """Where a key works; the value is the heading in the help."""

    EVERYWHERE = "Everywhere"
    DECK = "Panes"
    TABS = "Tabs"
    SERVERS = "Servers"
    LIST = "Lists"
    TOOLS = "Tools"
    CALL = "Calls by hand"
    RUN = "Results of calls by hand"
    GRANTS = "Grants"
    SESSIONS = "Sessions"
    INSERT = "Prompts and resources"
    PROMPTS = "Prompts"
    RESOURCES = "Resources"
    ACTIVITY = "Activity"
    PROTOCOL = "Protocol"
    LOG = "Log"
    CHAT = "Chat"
    MESSAGE = "Message"
    QUEUE = "Queued messages"
    CONVERSATION = "Conversation"
    SEARCH = "Search in the conversation"
    SIDE = "Side panes"
    DIALOG = "Dialogs"
    VIEWER = "Viewer"
    TREE = "Results as a tree"
    HELP = "Help"
    QUESTION = "Questions"


class Key(Frozen):
    """One action and its keys.

    Attributes:
        place: Where it works.
        id: The binding id.
        keys: Textual key names, separated by commas.
        action: The action of the node that binds it.
        label: A word or two for the key bars; if empty, they do not show it.
        description: One line for the help.
        priority: Whether it works whatever has focus, dialogs included. The keys of `Place.DECK`
            and `Place.TABS` always have priority over the focused widget.
    """

    place: Place
    id: str
    keys: str
    action: str
    label: str
    description: str
    priority: bool = False

    @property
    def is_always(self) -> bool:
        """Whether it comes before whatever has the focus."""
        return self.priority or self.place in (Place.DECK, Place.TABS)

    def binding(self) -> Binding:
        return Binding(
            self.keys,
            self.action,
            self.label,
            id=self.id,
            tooltip=self.description,
            show=bool(self.label),
            priority=self.is_always,
        )


GENERAL: Final = (Place.EVERYWHERE, Place.DECK, Place.TABS)
"""Places whose keys work in every pane."""

_deck = partial(Key, Place.DECK)
_everywhere = partial(Key, Place.EVERYWHERE)
_tabs = partial(Key, Place.TABS)
_servers = partial(Key, Place.SERVERS)
_list = partial(Key, Place.LIST)
_tools = partial(Key, Place.TOOLS)
_call = partial(Key, Place.CALL)
_run = partial(Key, Place.RUN)
_grants = partial(Key, Place.GRANTS)
_sessions = partial(Key, Place.SESSIONS)
_prompts = partial(Key, Place.PROMPTS)
_resources = partial(Key, Place.RESOURCES)
_activity = partial(Key, Place.ACTIVITY)
_protocol = partial(Key, Place.PROTOCOL)
_log = partial(Key, Place.LOG)
_chat = partial(Key, Place.CHAT)
_message = partial(Key, Place.MESSAGE)
_queue = partial(Key, Place.QUEUE)
_conversation = partial(Key, Place.CONVERSATION)
_search = partial(Key, Place.SEARCH)
_dialog = partial(Key, Place.DIALOG)
_viewer = partial(Key, Place.VIEWER)
_tree = partial(Key, Place.TREE)
_help = partial(Key, Place.HELP)

KEYS: Final = (
    _deck(
        "app.help",
        "f1",
        "app.open('help')",
        "help",
        "Open the help: the keys that work here, then the manual",
    ),
    _everywhere(
        "app.palette",
        "ctrl+p",
        "app.open('palette')",
        "all actions",
        "Find any action by name",
        priority=True,
    ),
    _everywhere(
        "help.open",
        "question_mark",
        "app.open('help')",
        "",
        "Open the help, where no text is typed",
    ),
    _deck("deck.servers", "f2", "go('servers')", "servers", "Show or hide the servers"),
    _deck("deck.tools", "f3", "go('tools')", "tools", "Show or hide the tools"),
    _deck("deck.prompts", "f4", "go('prompts')", "prompts", "Show or hide the prompts"),
    _deck("deck.resources", "f5", "go('resources')", "resources", "Show or hide the resources"),
    _deck("deck.chat", "f6", "go('chat')", "", "Go to the chat; again: the chat alone"),
    _deck("deck.activity", "f7", "go('activity')", "activity", "Show or hide the activity"),
    _deck("deck.border-left", "alt+left", "move_border(-1)", "", "Move the pane's border left"),
    _deck("deck.border-right", "alt+right", "move_border(1)", "", "Move the pane's border right"),
    _everywhere(
        "app.question", "f8", "app.open_question", "", "Open the waiting question", priority=True
    ),
    _deck("deck.last-result", "ctrl+o", "last_result", "last result", "Open the last result"),
    _deck("deck.model", "f9", "app.open('model')", "", "Choose the model, enter or forget a key"),
    _deck("deck.context", "f10", "context", "", "Show what fills the model's context"),
    _tabs("tabs.new", "ctrl+t", "new_tab", "tab", "Open a conversation in a new tab"),
    _tabs("tabs.next", "ctrl+pagedown", "turn_tab(1)", "", "The next tab"),
    _tabs("tabs.previous", "ctrl+pageup", "turn_tab(-1)", "", "The previous tab"),
    _tabs("tabs.close", "ctrl+f4", "close_tab", "", "Close the tab"),
    _tabs("tabs.1", "alt+1", "tab(1)", "", "The first tab; the others by their numbers"),
    *(_tabs(f"tabs.{n}", f"alt+{n}", f"tab({n})", "", "") for n in range(2, 10)),
    _everywhere("app.quit", "ctrl+q", "quit", "", "Quit at once", priority=True),
    _everywhere(
        "app.copy-hint",
        "ctrl+c",
        "interrupt",
        "",
        "Copy, stop the turn, clear the message, or quit",
    ),
    _servers("servers.restart", "r", "restart", "restart", "Restart the server"),
    _servers("servers.start-stop", "s", "start_stop", "start/stop", "Start or stop the server"),
    _servers("servers.sign-in", "a", "sign_in", "sign in", "Sign in to the server"),
    _servers("servers.sign-out", "A", "sign_out", "", "Sign out of the server"),
    _servers("servers.log", "l", "log", "log", "Show its log in the activity pane"),
    _servers(
        "servers.enable", "x", "toggle_enabled", "enable/disable", "Enable or disable the server"
    ),
    _servers(
        "servers.details",
        "enter",
        "choose",
        "details",
        "Show details, or open the tools, prompts or resources",
    ),
    _servers("servers.grants", "g", "app.open('grants')", "grants", "Show the rules for tools"),
    _servers("servers.review", "t", "review_folder", "", "Review what this folder would run"),
    _servers("servers.demo", "d", "demo_servers", "demo", "Start the demo's server"),
    _servers("servers.add", "plus", "app.open('add')", "add", "Add a server"),
    _servers("servers.edit", "e", "edit", "edit", "Edit the server, or without one your settings"),
    _servers("servers.remove", "delete", "remove", "", "Remove the server from your settings"),
    _servers("servers.up", "up,k", "move(-1)", "", "One row up"),
    _servers("servers.down", "down,j", "move(1)", "", "One row down"),
    _servers("servers.page-up", "pageup", "page(-1)", "", "One page up"),
    _servers("servers.page-down", "pagedown", "page(1)", "", "One page down"),
    _servers("servers.first", "home", "first", "", "First row"),
    _servers("servers.last", "end,G", "last", "", "Last row"),
    _servers("servers.toggle", "space", "toggle_fold", "", "Fold or unfold the server"),
    _servers("servers.fold", "left", "fold", "", "Fold the server"),
    _servers("servers.unfold", "right", "unfold", "", "Unfold the server"),
    _servers("servers.restart-all", "R", "restart_all", "restart all", "Restart all servers"),
    _tools("tools.run", "enter,r", "choose", "run", "Run the tool yourself: fill in its form"),
    _tools("tools.switch", "x", "switch", "off/on", "Switch it off for the model only, or on"),
    _tools("tools.exclude", "X", "exclude", "", "Leave it out in your settings, or no longer"),
    _tools("tools.review", "v", "review", "review", "Review what the server changed"),
    _tools("tools.schema", "v", "schema", "schema", "Show or hide the schema"),
    _tools("tools.grants", "g", "app.open('grants')", "grants", "Show the rules for tools"),
    _call("call.run", "ctrl+s", "done", "run", "Run the tool with these arguments", priority=True),
    _call("call.switch", "ctrl+t", "switch", "switch", "Go to JSON, or to the form", priority=True),
    _call("call.saved", "ctrl+o", "saved", "saved calls", "Fill in a saved call", priority=True),
    _run("run.leave", "b", "leave", "leave it running", "Close, and let the call go on"),
    _run("run.again", "r", "again", "run again", "Run it again"),
    _run("run.edit", "e", "edit", "edit", "Change the arguments, and run it again"),
    _run("run.compare", "d", "compare", "compare", "Compare it with the run before"),
    _run("run.send", "m", "send", "to the chat", "Send call and result into the conversation"),
    _grants("grants.revoke", "d,delete", "revoke", "revoke", "Revoke the rule"),
    _grants("grants.save", "s", "save", "save", "Save a rule of this session for this folder"),
    _grants("grants.details", "enter", "choose", "details", "Show details"),
    _grants("grants.folder", "f", "review_folder", "review", "Review this folder"),
    _grants("grants.forget", "F", "forget_folder", "forget folder", "Forget this folder"),
    _sessions("sessions.choose", "enter", "choose", "open", "Open it"),
    _sessions("sessions.tab", "t", "choose_beside", "in a tab", "Open it in a new tab"),
    _sessions("sessions.rename", "n", "rename", "rename", "Give it another title"),
    _sessions("sessions.export", "e", "export", "export", "Write it to a Markdown file"),
    _sessions("sessions.delete", "d,delete", "delete", "delete", "Delete it"),
    _prompts(
        "prompts.open", "enter", "choose", "open", "Fill in the arguments and show the prompt"
    ),
    _resources(
        "resources.read", "enter", "choose", "read", "Read the resource; fill in a template first"
    ),
    _dialog("prompt.send", "enter", "send", "send", "Send the prompt as it is shown"),
    Key(Place.INSERT, "insert.insert", "i", "insert", "insert", "Insert it into the message"),
    _resources("resources.send", "s", "send", "send", "Send it to the model now"),
    _resources("resources.watch", "w", "watch", "watch", "Watch for changes, or stop"),
    _dialog("fetched.reload", "r", "reload", "reload", "Ask the server for it again"),
    _dialog("fetched.save", "f", "save", "to a file", "Save it to a file in the opened folder"),
    _resources("resources.view", "v", "choose", "", "Read the resource"),
    _activity("activity.tasks", "t", "tasks", "tasks", "Go to the tasks, or back to the lines"),
    _activity("activity.cancel", "x", "cancel_task", "cancel", "Cancel the task"),
    _activity(
        "activity.severity", "w", "severity", "all levels", "Show all lines, warnings or errors"
    ),
    _activity("activity.protocol", "v", "screen.show('protocol')", "protocol", "Show the protocol"),
    _activity("activity.pause", "p", "pause", "pause", "Hold new lines back, or show them"),
    _activity("activity.copy", "c", "copy", "copy", "Copy the last line in view"),
    _activity("activity.level", "e", "level", "log level", "Set the server's log level"),
    _activity("activity.next", "right", "turn(1)", "next server", "Show the next server"),
    _activity("activity.back", "left", "turn(-1)", "previous", "Show the previous server"),
    _activity("activity.search", "slash", "search", "search", "Search the lines"),
    _activity("activity.clear", "escape", "clear_search", "clear", "Clear the search"),
    _protocol("protocol.details", "enter", "choose", "details", "Show the exchange in full"),
    _protocol(
        "protocol.wide", "f", "screen.widen", "full width", "Use the full width, or share it again"
    ),
    _protocol("protocol.log", "v", "screen.show('activity')", "log", "Show the log"),
    _protocol("protocol.errors", "e", "errors", "errors", "List only what went wrong, or all"),
    _protocol("protocol.call", "w", "use('call')", "call", "Go to the call in its conversation"),
    _protocol("protocol.again", "r", "use('again')", "send again", "Send the request again"),
    _protocol("protocol.copy", "c", "use('copy')", "copy", "Copy the messages as JSON"),
    _protocol("protocol.command", "y", "use('command')", "as command", "Copy it as a command"),
    _protocol("protocol.mark", "m", "mark", "only from here", "List what is said from now on"),
    _protocol("protocol.pause", "p", "pause", "pause", "Hold new frames back, or show them"),
    _protocol(
        "protocol.export", "x", "export", "export", "Write what is listed to a file of JSON lines"
    ),
    _list("list.clear", "escape", "clear_filter", "clear", "Clear the filter"),
    _list("list.filter", "slash", "filter", "filter", "Filter the list"),
    _list("list.toggle", "space", "toggle_fold", "", "Fold or unfold the group"),
    _list("list.fold", "left", "fold", "", "Fold the group"),
    _list("list.unfold", "right", "unfold", "", "Unfold the group"),
    _list("list.up", "up,k", "move(-1)", "", "One row up"),
    _list("list.down", "down,j", "move(1)", "", "One row down"),
    _list("list.page-up", "pageup", "page(-1)", "", "One page up"),
    _list("list.page-down", "pagedown", "page(1)", "", "One page down"),
    _list("list.first", "home", "first", "", "First row"),
    _list("list.last", "end,G", "last", "", "Last row"),
    _log("log.up", "up,k", "scroll_up", "", "Scroll up"),
    _log("log.down", "down,j", "scroll_down", "", "Scroll down"),
    _log("log.page-up", "pageup", "page_up", "", "One page up"),
    _log("log.page-down", "pagedown", "page_down", "", "One page down"),
    _log("log.first", "home,g", "scroll_home", "", "Go to the start"),
    _log("log.last", "end,G", "scroll_end", "", "Go to the end and follow it"),
    _chat("chat.stop", "escape", "stop", "stop", "Stop the running turn"),
    _chat("chat.send-now", "ctrl+s", "send_now", "", "Send at once, without waiting for servers"),
    _chat("chat.give-up", "ctrl+n", "give_up", "", "Give up a message that the service refused"),
    _chat("chat.go-on", "ctrl+l", "go_on", "", "Go on with the last conversation, in an empty one"),
    _chat("chat.page-up", "pageup", "scroll(-1)", "", "Earlier"),
    _chat("chat.page-down", "pagedown", "scroll(1)", "", "Later"),
    _chat("chat.end", "ctrl+end", "to_end", "", "Go to the end"),
    _message("composer.send", "enter", "send", "send", "Send the message"),
    _message("composer.new-line", "ctrl+j,shift+enter", "new_line", "", "Start a new line"),
    _message("composer.complete", "tab", "complete", "", "Complete a command, resource or file"),
    _chat(
        "composer.conversation",
        "shift+tab",
        "conversation",
        "entries",
        "Go to the newest entry: ↑ ↓ select, v shows all of it",
    ),
    _chat("composer.take-back", "alt+up", "take_back", "", "Take the last queued message back"),
    _message("composer.search", "ctrl+r", "search", "", "Search your earlier messages"),
    _message("composer.editor", "ctrl+g", "editor", "", "Write the message in your editor"),
    _message("composer.end", "ctrl+d", "end", "", "Delete to the right; quit if empty"),
    _message("composer.up", "up", "up", "", "Previous line or message"),
    _message("composer.down", "down", "down", "", "Next line or message"),
    _queue("queue.take-back", "enter", "take_back", "edit", "Take the message back"),
    _queue("queue.drop", "delete,d", "drop", "drop", "Drop the message"),
    _queue("queue.close", "escape", "close", "message", "Back to your message"),
    _conversation("transcript.up", "up,k", "move(-1)", "", "Previous entry"),
    _conversation("transcript.down", "down,j", "move(1)", "", "Next entry"),
    _conversation("transcript.page-up", "pageup", "page_up", "", "One page up"),
    _conversation("transcript.page-down", "pagedown", "page_down", "", "One page down"),
    _conversation("transcript.home", "home,g", "home", "", "Go to the start"),
    _conversation("transcript.end", "end,G", "end", "", "Go to the end"),
    _conversation("transcript.task-leave", "b", "task('leave')", "go on", "Go on without its task"),
    _conversation("transcript.task-cancel", "x", "task('cancel')", "cancel", "Cancel its task"),
    _conversation(
        "transcript.open",
        "enter,space",
        "activate",
        "open",
        "Open or close the entry, or follow its link",
    ),
    _conversation("transcript.follow", "o", "follow", "link", "Follow a link of the entry"),
    _conversation("transcript.view", "v", "view", "whole", "Show the whole text"),
    _conversation("transcript.copy", "c", "copy", "copy", "Copy the text of the entry"),
    _conversation("transcript.search", "slash", "search", "search", "Search"),
    _conversation("transcript.frames", "w", "frames", "protocol", "Show what was said for a call"),
    _conversation("transcript.turn-back", "p", "turn(-1)", "previous turn", "Previous turn"),
    _conversation("transcript.turn-on", "n", "turn(1)", "next turn", "Next turn"),
    _conversation("transcript.code", "y", "copy_code", "copy code", "Copy a block of code"),
    _search("search.earlier", "up", "step(-1)", "earlier", "The entry before that"),
    _search("search.later", "down", "step(1)", "later", "The entry after that"),
    _search("search.close", "escape", "close", "close", "Close"),
    Key(Place.SIDE, "side.chat", "escape", "screen.go('chat')", "chat", "Back to the chat"),
    _dialog("dialog.close", "escape,q", "close", "close", "Close"),
    _dialog("dialog.up", "k", "scroll('up')", "", "Scroll up"),
    _dialog("dialog.down", "j", "scroll('down')", "", "Scroll down"),
    _dialog("dialog.first", "g", "scroll('home')", "", "Go to the start"),
    _dialog("dialog.last", "G", "scroll('end')", "", "Go to the end"),
    _dialog("dialog.choose", "enter", "choose", "", "Choose it"),
    _help("help.search", "slash", "search", "pages, search", "List all pages, search in them"),
    _help("help.links", "enter", "links", "links", "List the links of the page"),
    _help("help.back", "backspace", "back", "back", "Go back to the page before"),
    _dialog("server.run", "enter", "run", "run a tool", "Choose one of its tools, and run it"),
    _dialog("server.website", "o", "website", "website", "Show the website's address, to open it"),
    _dialog("server.copy", "c", "copy", "copy", "Copy the page, or one of its commands"),
    _dialog("arguments.send", "ctrl+s", "send", "show", "Show what comes of it", priority=True),
    _dialog("server.imports", "ctrl+o", "app.open('imports')", "other clients", "Import servers"),
    _dialog("welcome.back", "escape", "close", "back", "Go back, or close"),
    _viewer("viewer.close", "v,ctrl+o", "close", "", "Close"),
    _viewer(
        "viewer.switch", "t", "switch", "switch", "Show the picture, the tree, the text or all"
    ),
    _viewer(
        "viewer.open", "o", "use('open')", "open outside", "Open the picture outside, or a link"
    ),
    _viewer("viewer.save", "s", "use('save')", "save", "Save it in the opened folder"),
    _run("run.name", "n", "name", "save call", "Save the call under a name"),
    _run("run.command", "y", "command", "copy command", "Copy the command that does the same"),
    _viewer("viewer.copy", "c", "copy", "copy all", "Copy the whole text"),
    _tree("tree.fold", "left", "fold", "", "Fold it, or go to what it is in"),
    _tree("tree.unfold", "right", "unfold", "", "Unfold it"),
)
"""All keys of the deck, in the order of the help."""

SEARCH: Final = "composer.search"

HELP: Final = ("app.help", "help.open")
"""What opens the help."""

KEY_NAMES: Final = frozenset(key.value for key in Keys)

_STAY: Final = ("app.help", "deck.border-left", "deck.border-right")
"""Keys of the deck for which a question does not step aside: its help lies over it."""


def bindings(*places: Place, only: tuple[str, ...] = ()) -> list[BindingType]:
    """Return the bindings of some places, or those with the ids in `only`."""
    return [key.binding() for key in KEYS if (key.id in only if only else key.place in places)]


def over_questions() -> list[BindingType]:
    """Return the keys of panes, tabs and the search, for which a question steps aside."""
    return [
        replace(
            key.binding(),
            action=f"app.step_aside({'focused.' * (key.id == SEARCH) + key.action!r})",
            priority=True,
        )
        for key in KEYS
        if key.id == SEARCH or (key.place in (Place.DECK, Place.TABS) and key.id not in _STAY)
    ]


def order(binding_id: str | None) -> int:
    """Return the index of a binding in `KEYS`; other bindings come last."""
    return next((i for i, key in enumerate(KEYS) if key.id == binding_id), len(KEYS))


def key_of(app: App[Any], bindings: Mapping[str, ActiveBinding], binding_id: str) -> str:
    """Return the active key of an action as shown on the screen, or nothing."""
    found = (active.binding for active in bindings.values() if active.binding.id == binding_id)
    return next(map(app.get_key_display, found), "")


def sent(keys: Iterable[str]) -> set[str]:
    """Give keys by their characters, by whichever name they are called."""
    return {*map(character, keys)}


def with_shared(own: Mapping[str, str]) -> dict[str, str]:
    """Add the actions that share a key with one of these: Textual would take it from them."""
    changed = [key for key in KEYS if key.id in own]
    shared = (
        other
        for key in changed
        for other in KEYS
        if other.place is key.place and sent(key.keys.split(",")) & sent(other.keys.split(","))
    )
    return {**{key.id: key.keys for key in shared}, **own}


def character(key: str) -> str:
    """Give the character of a key that types one, by whichever name it is called, else the key."""
    return key if key in KEY_NAMES or "+" in key else format_key(key)
