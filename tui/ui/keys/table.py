"""All keys of the deck as data.

A user's keymap refers to the ids (`App.set_keymap`), so they must not change. The questions bind
their own keys; help reads those from the widgets.
"""

from enum import StrEnum
from typing import Final

from textual.binding import Binding

from tui.model.frozen import dataclass


class Place(StrEnum):
    """Where a key works; the value is the heading in the help."""

    EVERYWHERE = "Everywhere"
    DECK = "Panes"
    TABS = "Tabs"
    SERVERS = "Servers"
    LIST = "Lists"
    TOOLS = "Tools"
    GRANTS = "Grants"
    SESSIONS = "Sessions"
    INSERT = "Prompts and resources"
    PROMPTS = "Prompts"
    RESOURCES = "Resources"
    ACTIVITY = "Activity"
    LOG = "Log"
    CHAT = "Chat"
    MESSAGE = "Message"
    QUEUE = "Queued messages"
    CONVERSATION = "Conversation"
    SEARCH = "Search in the conversation"
    SIDE = "Side panes"
    DIALOG = "Dialogs"
    VIEWER = "Viewer"


@dataclass(frozen=True, slots=True)
class Key:
    """One action and its keys.

    Attributes:
        id: The binding id.
        keys: Textual key names, separated by commas.
        action: The action of the node that binds it.
        label: A word or two for the key bars; if empty, they do not show it.
        description: One line for the help.
        place: Where it works.
        priority: Whether it works whatever has focus, dialogs included. The keys of `Place.DECK`
            and `Place.TABS` always have priority over the focused widget.
        display: How to write the key if Textual's name would be unclear.
    """

    id: str
    keys: str
    action: str
    label: str
    description: str
    place: Place
    priority: bool = False
    display: str | None = None

    def binding(self) -> Binding:
        return Binding(
            self.keys,
            self.action,
            self.label,
            id=self.id,
            tooltip=self.description,
            show=bool(self.label),
            priority=self.priority or self.place in (Place.DECK, Place.TABS),
            key_display=self.display,
        )


_P = Place

GENERAL: Final = (Place.EVERYWHERE, Place.DECK, Place.TABS)
"""Places whose keys work in every pane."""

LOCAL: Final = tuple(place for place in Place if place not in (*GENERAL, _P.DIALOG))
"""Places whose keys work in one kind of pane."""

KEYS: Final = (
    Key("app.help", "f1", "app.help", "help", "Show all keys, those that work here first", _P.DECK),
    Key(
        "app.palette",
        "ctrl+p",
        "command_palette",
        "palette",
        "Find any action by name",
        _P.EVERYWHERE,
        priority=True,
    ),
    Key("deck.servers", "f2", "go('servers')", "servers", "Show or hide the servers", _P.DECK),
    Key("deck.tools", "f3", "go('tools')", "tools", "Show or hide the tools", _P.DECK),
    Key("deck.prompts", "f4", "go('prompts')", "prompts", "Show or hide the prompts", _P.DECK),
    Key(
        "deck.resources",
        "f5",
        "go('resources')",
        "resources",
        "Show or hide the resources",
        _P.DECK,
    ),
    Key("deck.chat", "f6", "go('chat')", "chat", "Go to the chat; again: the chat alone", _P.DECK),
    Key("deck.activity", "f7", "go('activity')", "activity", "Show or hide the activity", _P.DECK),
    Key(
        "deck.border-left",
        "alt+left",
        "move_border(-1)",
        "",
        "Move the pane's border left",
        _P.DECK,
    ),
    Key(
        "deck.border-right",
        "alt+right",
        "move_border(1)",
        "",
        "Move the pane's border right",
        _P.DECK,
    ),
    Key(
        "app.question",
        "f8",
        "app.open_question",
        "",
        "Open the waiting question",
        _P.EVERYWHERE,
        priority=True,
    ),
    Key("deck.last-result", "ctrl+o", "last_result", "", "Open the last result", _P.DECK),
    Key("deck.model", "f9", "model", "model", "Choose the model, enter or forget a key", _P.DECK),
    Key("deck.context", "f10", "context", "", "Show what fills the model's context", _P.DECK),
    Key("tabs.new", "ctrl+t", "new_tab", "", "Open a conversation in a new tab", _P.TABS),
    Key("tabs.next", "ctrl+pagedown", "turn_tab(1)", "", "The next tab", _P.TABS),
    Key("tabs.previous", "ctrl+pageup", "turn_tab(-1)", "", "The previous tab", _P.TABS),
    Key("tabs.close", "ctrl+f4", "close_tab", "", "Close the tab", _P.TABS),
    Key("tabs.1", "alt+1", "tab(1)", "", "The first tab; the others by their numbers", _P.TABS),
    *(Key(f"tabs.{n}", f"alt+{n}", f"tab({n})", "", "", _P.TABS) for n in range(2, 10)),
    Key("app.quit", "ctrl+q", "quit", "quit", "Quit at once", _P.EVERYWHERE, priority=True),
    Key(
        "app.copy-hint",
        "ctrl+c",
        "interrupt",
        "",
        "Copy, stop the turn, clear the message, or quit",
        _P.EVERYWHERE,
    ),
    Key("servers.restart", "r", "restart", "restart", "Restart the server", _P.SERVERS),
    Key(
        "servers.start-stop",
        "s",
        "start_stop",
        "start/stop",
        "Start or stop the server",
        _P.SERVERS,
    ),
    Key("servers.sign-in", "a", "sign_in", "sign in", "Sign in to the server", _P.SERVERS),
    Key("servers.sign-out", "A", "sign_out", "", "Sign out of the server", _P.SERVERS),
    Key("servers.log", "l", "log", "log", "Show its log in the activity pane", _P.SERVERS),
    Key(
        "servers.enable",
        "x",
        "toggle_enabled",
        "enable/disable",
        "Enable or disable the server",
        _P.SERVERS,
    ),
    Key(
        "servers.details",
        "enter",
        "select_cursor",
        "details",
        "Show details, or open the tools, prompts or resources",
        _P.SERVERS,
        display="↵",
    ),
    Key(
        "servers.restart-all", "R", "restart_all", "restart all", "Restart all servers", _P.SERVERS
    ),
    Key("servers.grants", "g", "screen.grants", "grants", "Show the rules for tools", _P.SERVERS),
    Key(
        "servers.review", "t", "review_folder", "", "Review what this folder would run", _P.SERVERS
    ),
    Key("servers.demo", "d", "demo_servers", "demo", "Start the demo's server", _P.SERVERS),
    Key("servers.edit", "e", "app.edit_settings", "edit", "Edit your settings", _P.SERVERS),
    Key("servers.up", "up", "cursor_up", "", "One row up", _P.SERVERS),
    Key("servers.down", "down", "cursor_down", "", "One row down", _P.SERVERS),
    Key("servers.page-up", "pageup", "page_up", "", "One page up", _P.SERVERS),
    Key("servers.page-down", "pagedown", "page_down", "", "One page down", _P.SERVERS),
    Key("servers.first", "home", "scroll_home", "", "First row", _P.SERVERS),
    Key("servers.last", "end", "scroll_end", "", "Last row", _P.SERVERS),
    Key("servers.toggle", "space", "toggle_fold", "", "Fold or unfold the server", _P.SERVERS),
    Key("servers.fold", "left", "fold", "", "Fold the server", _P.SERVERS),
    Key("servers.unfold", "right", "unfold", "", "Unfold the server", _P.SERVERS),
    Key("list.filter", "slash", "filter", "filter", "Filter the list", _P.LIST),
    Key("list.clear", "escape", "clear_filter", "clear", "Clear the filter", _P.LIST),
    Key("list.toggle", "space", "toggle_fold", "", "Fold or unfold the group", _P.LIST),
    Key("list.fold", "left", "fold", "", "Fold the group", _P.LIST),
    Key("list.unfold", "right", "unfold", "", "Unfold the group", _P.LIST),
    Key("list.up", "up", "move(-1)", "", "One row up", _P.LIST),
    Key("list.down", "down", "move(1)", "", "One row down", _P.LIST),
    Key("list.page-up", "pageup", "page(-1)", "", "One page up", _P.LIST),
    Key("list.page-down", "pagedown", "page(1)", "", "One page down", _P.LIST),
    Key("list.first", "home", "first", "", "First row", _P.LIST),
    Key("list.last", "end", "last", "", "Last row", _P.LIST),
    Key("tools.details", "enter", "choose", "details", "Show details", _P.TOOLS, display="↵"),
    Key("tools.review", "v", "review", "review", "Review what the server changed", _P.TOOLS),
    Key("tools.schema", "v", "schema", "schema", "Show or hide the schema", _P.TOOLS),
    Key("tools.grants", "g", "screen.grants", "grants", "Show the rules for tools", _P.TOOLS),
    Key("grants.revoke", "d,delete", "revoke", "revoke", "Revoke the rule", _P.GRANTS),
    Key("grants.details", "enter", "choose", "details", "Show details", _P.GRANTS, display="↵"),
    Key("grants.folder", "f", "review_folder", "folder", "Review this folder", _P.GRANTS),
    Key("grants.forget", "F", "forget_folder", "forget", "Forget this folder", _P.GRANTS),
    Key("sessions.choose", "enter", "choose", "open", "Open it", _P.SESSIONS, display="↵"),
    Key("sessions.tab", "t", "choose_beside", "in a tab", "Open it in a new tab", _P.SESSIONS),
    Key("sessions.rename", "n", "rename", "rename", "Give it another title", _P.SESSIONS),
    Key("sessions.export", "e", "export", "export", "Write it to a Markdown file", _P.SESSIONS),
    Key("sessions.delete", "d,delete", "delete", "delete", "Delete it", _P.SESSIONS),
    Key(
        "prompts.open",
        "enter",
        "choose",
        "open",
        "Fill in the arguments and send the prompt",
        _P.PROMPTS,
        display="↵",
    ),
    Key(
        "resources.read",
        "enter",
        "choose",
        "read",
        "Read the resource; fill in a template first",
        _P.RESOURCES,
        display="↵",
    ),
    Key("insert.insert", "i", "insert", "insert", "Insert it into the message", _P.INSERT),
    Key("resources.send", "g", "send", "send", "Send it to the model now", _P.RESOURCES),
    Key("resources.watch", "w", "watch", "watch", "Watch for changes, or stop", _P.RESOURCES),
    Key("resources.view", "v", "choose", "", "Read the resource", _P.RESOURCES),
    Key("activity.search", "slash", "search", "search", "Search the lines", _P.ACTIVITY),
    Key("activity.clear", "escape", "clear_search", "clear", "Clear the search", _P.ACTIVITY),
    Key(
        "activity.severity",
        "w",
        "severity",
        "all levels",
        "Show all lines, warnings or errors",
        _P.ACTIVITY,
    ),
    Key("activity.pause", "p", "pause", "pause", "Hold new lines back, or show them", _P.ACTIVITY),
    Key("activity.level", "e", "level", "log level", "Set the server's log level", _P.ACTIVITY),
    Key("activity.next", "right", "turn(1)", "next server", "Show the next server", _P.ACTIVITY),
    Key("activity.back", "left", "turn(-1)", "previous", "Show the previous server", _P.ACTIVITY),
    Key("log.up", "up", "scroll_up", "", "Scroll up", _P.LOG),
    Key("log.down", "down", "scroll_down", "", "Scroll down", _P.LOG),
    Key("log.page-up", "pageup", "page_up", "", "One page up", _P.LOG),
    Key("log.page-down", "pagedown", "page_down", "", "One page down", _P.LOG),
    Key("log.first", "home", "scroll_home", "", "Go to the start", _P.LOG),
    Key("log.last", "end", "scroll_end", "", "Go to the end and follow it", _P.LOG),
    Key("chat.stop", "escape", "stop", "stop", "Stop the running turn", _P.CHAT, display="Esc"),
    Key(
        "chat.send-now",
        "ctrl+s",
        "send_now",
        "",
        "Send at once, without waiting for servers",
        _P.CHAT,
    ),
    Key("chat.give-up", "ctrl+n", "give_up", "", "Do not send it again after a refusal", _P.CHAT),
    Key("chat.page-up", "pageup", "scroll(-1)", "", "Earlier", _P.CHAT),
    Key("chat.page-down", "pagedown", "scroll(1)", "", "Later", _P.CHAT),
    Key("chat.end", "ctrl+end", "to_end", "", "Go to the end", _P.CHAT),
    Key("composer.send", "enter", "send", "send", "Send the message", _P.MESSAGE, display="↵"),
    Key(
        "composer.new-line",
        "ctrl+j,shift+enter",
        "new_line",
        "new line",
        "Start a new line",
        _P.MESSAGE,
    ),
    Key(
        "composer.complete",
        "tab",
        "complete",
        "",
        "Complete a command, resource or file",
        _P.MESSAGE,
    ),
    Key(
        "composer.conversation",
        "shift+tab",
        "conversation",
        "",
        "Go to the newest entry: ↑ ↓ select, v shows all of it",
        _P.CHAT,
    ),
    Key(
        "composer.take-back",
        "alt+up",
        "take_back",
        "",
        "Take the last queued message back",
        _P.CHAT,
    ),
    Key("composer.search", "ctrl+r", "search", "", "Search your earlier messages", _P.MESSAGE),
    Key("composer.editor", "ctrl+g", "editor", "", "Write the message in your editor", _P.MESSAGE),
    Key(
        "composer.end",
        "ctrl+d",
        "end",
        "",
        "Delete to the right; quit if empty",
        _P.MESSAGE,
    ),
    Key("composer.up", "up", "up", "", "Previous line or message", _P.MESSAGE),
    Key("composer.down", "down", "down", "", "Next line or message", _P.MESSAGE),
    Key(
        "queue.take-back",
        "enter",
        "take_back",
        "edit",
        "Take the message back",
        _P.QUEUE,
        display="↵",
    ),
    Key("queue.drop", "delete,d", "drop", "drop", "Drop the message", _P.QUEUE),
    Key(
        "queue.close", "escape", "close", "message", "Back to your message", _P.QUEUE, display="Esc"
    ),
    Key("transcript.up", "up", "move(-1)", "", "Previous entry", _P.CONVERSATION),
    Key("transcript.down", "down", "move(1)", "", "Next entry", _P.CONVERSATION),
    Key("transcript.page-up", "pageup", "page_up", "", "One page up", _P.CONVERSATION),
    Key("transcript.page-down", "pagedown", "page_down", "", "One page down", _P.CONVERSATION),
    Key("transcript.home", "home", "home", "", "Go to the start", _P.CONVERSATION),
    Key("transcript.end", "end", "end", "", "Go to the end", _P.CONVERSATION),
    Key(
        "transcript.open",
        "enter,space",
        "activate",
        "open",
        "Open or close the entry, or follow its link",
        _P.CONVERSATION,
        display="↵",
    ),
    Key("transcript.view", "v", "view", "whole", "Show the whole text", _P.CONVERSATION),
    Key("transcript.copy", "c", "copy", "copy", "Copy the text of the entry", _P.CONVERSATION),
    Key("transcript.code", "y", "copy_code", "copy code", "Copy a block of code", _P.CONVERSATION),
    Key("transcript.search", "slash", "search", "search", "Search", _P.CONVERSATION),
    Key("transcript.turn-back", "p", "turn(-1)", "previous turn", "Previous turn", _P.CONVERSATION),
    Key("transcript.turn-on", "n", "turn(1)", "next turn", "Next turn", _P.CONVERSATION),
    Key("search.earlier", "up", "step(-1)", "earlier", "The entry before that", _P.SEARCH),
    Key("search.later", "down", "step(1)", "later", "The entry after that", _P.SEARCH),
    Key("search.close", "escape", "close", "close", "Close", _P.SEARCH, display="Esc"),
    Key("side.chat", "escape", "screen.go('chat')", "chat", "Back to the chat", _P.SIDE),
    Key("dialog.close", "escape,q", "close", "close", "Close", _P.DIALOG, display="Esc"),
    Key("dialog.choose", "enter", "choose", "", "Choose it", _P.DIALOG, display="↵"),
    Key("help.close", "f1", "close", "", "Close the help", _P.DIALOG, priority=True),
    Key("arguments.send", "ctrl+s", "send", "send", "Send or read it", _P.DIALOG, priority=True),
    Key("arguments.close", "escape", "close", "cancel", "Cancel", _P.DIALOG),
    Key("welcome.back", "escape", "back", "back", "Go back, or close", _P.DIALOG),
    Key("viewer.close", "v,ctrl+o", "close", "", "Close", _P.VIEWER),
    Key("viewer.copy", "c", "copy", "copy all", "Copy the whole text", _P.VIEWER),
)
"""All keys of the deck, in the order of the help."""
