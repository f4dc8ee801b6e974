"""The deck's key bindings: of a place, in order, and as they are shown."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from textual import events
from textual.app import App
from textual.binding import ActiveBinding, Binding, BindingType
from textual.keys import Keys, format_key
from textual.widgets import TextArea

from tui.model.frozen import Frozen


class Place(StrEnum):
    """Where a key works; the value is the heading in the help."""

    EVERYWHERE = "Everywhere"
    DECK = "Panes"
    TABS = "Tabs"
    SERVERS = "Servers"
    MARKS = "Marks"
    LIST = "Lists"
    TOOLS = "Tools"
    CALL = "Tool form"
    RUN = "Tool result"
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
    SEARCH = "Conversation search"
    SIDE = "Side panes"
    DIALOG = "Dialogs"
    VIEWER = "Viewer"
    TREE = "JSON tree"
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

FAR: Final = 1_000_000
"""More pages than any list has."""

_TABS: Final = "\n".join(f"tabs | tabs.{n} | alt+{n} | tab({n}) | |" for n in range(2, 10))

_TABLE: Final = f"""
deck | app.help | f1 | app.open('help') | help | \
    Open help: the keys that work here, then the manual
everywhere! | app.palette | ctrl+p | app.open('palette') | all actions | Find any action by name
everywhere | help.open | question_mark | app.open('help') | | Open help, unless you are typing
deck | deck.servers | f2 | go('servers') | servers | Show or hide the servers
deck | deck.tools | f3 | go('tools') | tools | Show or hide the tools
deck | deck.prompts | f4 | go('prompts') | prompts | Show or hide the prompts
deck | deck.resources | f5 | go('resources') | resources | Show or hide the resources
deck | deck.chat | f6 | go('chat') | | Go to the chat; press again to show only the chat
deck | deck.activity | f7 | go('activity') | activity | Show or hide the activity
deck | deck.border-left | alt+left | move_border(-1) | | Move the pane's border left
deck | deck.border-right | alt+right | move_border(1) | | Move the pane's border right
everywhere! | app.question | f8 | app.open_question | | Open the waiting question
deck | deck.last-result | ctrl+o | last_result | last result | Show the last tool result
deck | deck.model | f9 | app.open('model') | | Choose the model; enter or forget its API key
deck | deck.context | f10 | run_command('/context') | | Show the tokens in the model's context
tabs | tabs.new | ctrl+t | new_tab | tab | Open a conversation in a new tab
tabs | tabs.next | ctrl+pagedown | turn_tab(1) | | Next tab
tabs | tabs.previous | ctrl+pageup | turn_tab(-1) | | Previous tab
tabs | tabs.close | ctrl+f4 | close_tab | | Close the tab
tabs | tabs.1 | alt+1 | tab(1) | | First tab; Alt+2 to Alt+9 for the others
{_TABS}
everywhere! | app.quit | ctrl+q | quit | | Quit at once
everywhere | app.copy-hint | ctrl+c | interrupt | | Copy, stop the turn, clear the message, or quit
marks | marks.save | ctrl+s | save_profile | save profile | \
    Save the marked servers and tools as a profile
servers | servers.allow | p | allow | allow access | \
    Add what its sandbox refused to its entry, in the form
servers | servers.restart | r | restart | restart | Restart the server
servers | servers.start-stop | s | start_stop | start/stop | Start or stop the server
servers | servers.sign-in | a | sign_in | sign in | Sign in to the server
servers | servers.sign-out | A | sign_out | | Sign out of the server
servers | servers.log | l | log | log | Show the server's log in the activity pane
servers | servers.enable | x | toggle_enabled | enable/disable | Enable or disable the server
servers | servers.details | enter | choose | details | \
    Show details, or open the tools, prompts or resources
servers | servers.grants | g | app.open('grants') | grants | Show the grants
servers | servers.review | t | review_folder | | Review what this folder would run
servers | servers.demo | d | demo_servers | demo | Start the demo server
servers | servers.add | plus | app.open('add') | add | Add a server
servers | servers.edit | e | edit | edit | Edit the server, or your settings if none is selected
servers | servers.remove | delete | remove | remove | Remove the server from your settings
servers | servers.up | up,k | move(-1) | | One row up
servers | servers.down | down,j | move(1) | | One row down
servers | servers.page-up | pageup | page(-1) | | One page up
servers | servers.page-down | pagedown | page(1) | | One page down
servers | servers.first | home | page(-{FAR}) | | First row
servers | servers.last | end,G | page({FAR}) | | Last row
servers | servers.toggle | space | toggle_fold | | Fold or unfold the server
servers | servers.fold | left | fold(True) | | Fold the server
servers | servers.unfold | right | fold(False) | | Unfold the server
servers | servers.restart-all | R | restart_all | restart all | Restart all servers
tools | tools.run | enter,r | choose | run | Run the tool yourself, from a form
tools | tools.switch | x | switch | off/on | Hide the tool from the model for now, or show it
tools | tools.exclude | X | exclude | | Exclude the tool in your settings, or include it again
tools | tools.review | v | review | review | Review the changed definition
tools | tools.schema | v | schema | schema | Show or hide the schema
marks | marks.mark | asterisk | mark | mark | Mark the server or tool for a profile, or unmark it
call! | call.run | ctrl+s | done | run | Run the tool with these arguments
call | rows.open | enter,space | open | open | Open or close the row
call | rows.add | plus | add | add | Add a row
call | rows.drop | delete,backspace | drop | remove | Remove the row
call! | call.switch | ctrl+t | switch | switch | Switch between form and JSON
call! | call.saved | ctrl+o | saved | saved calls | Load a saved call
call | call.next | tab,down | app.focus_next | next field | Next field
call | call.previous | shift+tab,up | app.focus_previous | | Previous field
run | run.leave | b | dismiss | leave it running | Close, and leave the call running
run | run.again | r | again | run again | Run the tool again
run | run.edit | e | edit | edit | Edit the arguments and run it again
run | run.compare | d | compare | compare | Compare with another run
run | run.send | m | send | send to chat | Send the call and its result to the chat
grants | grants.revoke | d,delete | revoke | revoke | Revoke the grant
grants | grants.save | s | save | save | Save a grant of this session for this folder
grants | grants.details | enter | choose | details | Show details
grants | grants.folder | f | review_folder | review | Review this folder
grants | grants.forget | F | forget_folder | forget folder | Forget this folder
sessions | sessions.choose | enter | choose | open | Open the session
sessions | sessions.tab | t | choose_beside | new tab | Open the session in a new tab
sessions | sessions.rename | n | rename | rename | Rename the session
sessions | sessions.export | e | export | export | Export the session as Markdown
sessions | sessions.delete | d,delete | delete | delete | Delete the session
prompts | prompts.open | enter | choose | open | Fill in the arguments and show the prompt
resources | resources.read | enter | choose | read | Read the resource; fill in a template first
dialog | prompt.send | enter | send | send | Send the prompt as shown
insert | insert.insert | i | insert | insert | Insert the prompt or resource into your message
resources | resources.send | m | send | send to chat | Send the resource to the chat
resources | resources.watch | w | watch | watch | Watch the resource for changes, or stop watching
dialog | fetched.reload | r | reload | reload | Read the prompt or resource again
dialog | fetched.save | s,f | save | save | Save the resource as a file in this folder
resources | resources.view | v | choose | | Read the resource
activity | activity.tasks | t | tasks | tasks | Go to the tasks, or back to the log
activity | activity.cancel | x | cancel_task | cancel | Cancel the task
activity | activity.severity | w | severity | all levels | Show all levels, warnings or errors
activity | activity.protocol | v | screen.show('protocol') | protocol | Show the protocol log
activity | activity.pause | p | pause | pause | Pause or resume the log
activity | activity.copy | c | copy | copy | Copy the last visible line
activity | activity.level | e | level | log level | Set the server's log level
activity | activity.next | right | turn(1) | next server | Show the next server
activity | activity.back | left | turn(-1) | previous | Show the previous server
activity | activity.search | slash | search | search | Search the log
activity | activity.clear | escape | clear_search | clear | Clear the search
protocol | protocol.details | enter | choose | details | Show the exchange in full
protocol | protocol.wide | f | screen.widen | full width | Use the full width, or share it again
protocol | protocol.log | v | screen.show('activity') | log | Show the log
protocol | protocol.errors | e | errors | errors | Show errors only, or everything
protocol | protocol.probes | P | probes | | Show or hide the requests that detect the revision
protocol | protocol.call | w | use('call') | call | Go to the call in its conversation
protocol | protocol.again | r | use('again') | send again | Send the request again
protocol | protocol.copy | c | use('copy') | copy | Copy the messages as JSON
protocol | protocol.command | y | use('command') | copy command | Copy the request as a command
protocol | protocol.mark | m | mark | clear list | Clear the list, or list earlier messages again
protocol | protocol.pause | p | pause | pause | Pause or resume the list
protocol | protocol.export | x | export | export | Export the listed messages to a JSON Lines file
list | list.clear | escape | clear_filter | clear | Clear the filter
tools | tools.runs | h | app.open('runs') | history | List the tools you ran yourself
tools | tools.grants | g | app.open('grants') | grants | Show the grants
list | list.filter | slash | filter | filter | Filter the list
list | list.toggle | space | toggle_fold | | Fold or unfold the group
list | list.fold | left | fold(True) | | Fold the group
list | list.unfold | right | fold(False) | | Unfold the group
list | list.up | up,k | move(-1) | | One row up
list | list.down | down,j | move(1) | | One row down
list | list.page-up | pageup | page(-1) | | One page up
list | list.page-down | pagedown | page(1) | | One page down
list | list.first | home | page(-{FAR}) | | First row
list | list.last | end,G | page({FAR}) | | Last row
log | log.up | up,k | scroll_up | | Scroll up
log | log.down | down,j | scroll_down | | Scroll down
log | log.page-up | pageup | page_up | | One page up
log | log.page-down | pagedown | page_down | | One page down
log | log.first | home,g | scroll_home | | Go to the start
log | log.last | end,G | scroll_end | | Go to the end and follow it
chat | chat.stop | escape | stop | stop | Stop the running turn
chat | chat.send-now | ctrl+s | send_now | | Send at once, without waiting for servers
chat | chat.give-up | ctrl+n | give_up | | Stop retrying a message that the service refused
chat | chat.go-on | ctrl+l | go_on | | Resume the last session, from an empty conversation
chat | chat.page-up | pageup | scroll(-1) | | Scroll up a page
chat | chat.page-down | pagedown | scroll(1) | | Scroll down a page
chat | chat.end | ctrl+end | to_end | | Go to the end
message | composer.send | enter | send | send | Send the message
message | composer.new-line | ctrl+j,shift+enter,alt+enter,ctrl+enter | new_line | | \
    Start a new line
message | composer.complete | tab | complete | complete | \
    Complete a command, resource or file; open a paste
chat | composer.conversation | shift+tab | conversation | browse | \
    Browse the conversation: ↑ ↓ select, v full text
chat | composer.take-back | alt+up | take_back | | Take back the last queued message
message | composer.search | ctrl+r | search | | Search your earlier messages
message | composer.editor | ctrl+g | editor | | Write the message in your editor
message | composer.undo | ctrl+z,ctrl+underscore | undo | | Undo
message | composer.end | ctrl+d | end | | Delete to the right; quit if the message is empty
message | composer.up | up | up | | Previous line or message
message | composer.down | down | down | | Next line or message
queue | queue.take-back | enter | take(True) | edit | Take the message back and edit it
queue | queue.drop | delete,d | take(False) | drop | Drop the message
queue | queue.close | escape | screen.go('chat') | message | Return to your message
conversation | transcript.up | up,k | move(-1) | | Previous entry
conversation | transcript.down | down,j | move(1) | | Next entry
conversation | transcript.page-up | pageup | page_up | | One page up
conversation | transcript.page-down | pagedown | page_down | | One page down
conversation | transcript.home | home,g | home | | Go to the start
conversation | transcript.end | end,G | end | | Go to the end
conversation | transcript.task-leave | b | task('leave') | continue | Continue without the task
conversation | transcript.task-cancel | x | task('cancel') | cancel | Cancel the task of the call
conversation | transcript.open | enter,space | activate | open | \
    Open or close the entry, or follow its link
conversation | transcript.follow | o | follow | link | Open a link in the entry
conversation | transcript.view | v | view | full text | Show the full text
conversation | transcript.copy | c | copy | copy | Copy the text of the entry
conversation | transcript.search | slash | search | search | Search the conversation
conversation | transcript.frames | w | frames | protocol | Show the protocol messages of a call
conversation | transcript.turn-back | p | turn(-1) | previous turn | Previous turn
conversation | transcript.turn-on | n | turn(1) | next turn | Next turn
conversation | transcript.code | y | copy_code | copy code | Copy the code block of the entry
search | search.earlier | up | step(-1) | earlier | Go to the previous match
search | search.later | down | step(1) | later | Go to the next match
search | search.close | escape | close | close | Close
side | side.chat | escape | screen.go('chat') | chat | Return to the chat
dialog | dialog.close | escape,q | close | close | Close
dialog | dialog.up | k | scroll('up') | | Scroll up
dialog | dialog.down | j | scroll('down') | | Scroll down
dialog | dialog.first | g | scroll('home') | | Go to the start
dialog | dialog.last | G | scroll('end') | | Go to the end
dialog | dialog.choose | enter | choose | | Choose the selected row
help | help.search | slash | search | pages, search | List and search all pages
help | help.links | enter | links | links | List the links on the page
help | help.back | backspace | back | back | Go back to the previous page
help | help.keys | e | app.open('keys') | change keys | Change the keys
dialog | keys.default | delete | default | default | Use the default keys again
dialog | own.save | ctrl+s | save | save | Save what you filled in
dialog | own.remove | ctrl+r | remove | remove | Remove the profile from your settings
dialog | server.run | enter | run | run a tool | Choose a tool and run it
dialog | server.website | o | website | website | Show the website's address, then open it
dialog | server.copy | c | copy | copy | Copy the page or one of its commands
dialog! | arguments.send | ctrl+s | send | show | Show the prompt or resource
dialog | server.imports | ctrl+o | app.open('imports') | other clients | Import servers
dialog | server.remove | ctrl+r | remove | remove | Remove the server from your settings
dialog | welcome.back | escape | close | back | Go back, or close
viewer | viewer.close | v,ctrl+o | close | | Close
viewer | viewer.switch | t | switch | switch | Switch between picture, tree and text, or show all
viewer | viewer.open | o | use('open') | open outside | Open a link, or the picture elsewhere
viewer | viewer.save | s | use('save') | save | Save it in this folder
run | run.name | n | name | save call | Save the call under a name
run | run.command | y | command | copy command | Copy the equivalent shell command
viewer | viewer.copy | c | copy | copy all | Copy the full text
tree | tree.fold | left | fold | | Fold the node, or go to its parent
tree | tree.unfold | right | unfold | | Unfold the node
"""
"""Place, id, keys, action, label and description of each key; ``!`` gives it priority."""


def _key(row: str) -> Key:
    place, name, keys, action, label, words = (cell.strip() for cell in row.split("|"))
    where, is_first = Place[place.rstrip("!").upper()], place.endswith("!")
    return Key(where, name, keys, action, label, words, is_first)


KEYS: Final = tuple(map(_key, _TABLE.strip().splitlines()))
"""All keys of the deck, in the order of the help."""

SEARCH: Final = "composer.search"

FINDS: Final = frozenset({"list.filter", "activity.search", "transcript.search", "help.search"})
"""What opens a line to type in."""

HELP: Final = ("app.help", "help.open")
"""What opens the help."""

KEY_NAMES: Final = frozenset(key.value for key in Keys)

_STAY: Final = ("app.help", "deck.border-left", "deck.border-right")
"""Keys of the deck for which a question does not step aside: its help lies over it."""


def bindings(*wanted: str) -> list[BindingType]:
    """Return the bindings of some places, or with some ids."""
    return [key.binding() for key in KEYS if key.id in wanted or key.place in wanted]


def of_text_area(*left_out: str) -> list[Binding]:
    """Return the keys of a text area, but for those that the deck uses otherwise."""
    own = (one for one in TextArea.BINDINGS if isinstance(one, Binding))
    return [one for one in own if one.key not in left_out]


async def run_own(area: TextArea, event: events.Key, ids: Collection[str] = ()) -> None:
    """Run what a key is bound to in a text area, at once and in the order of the keys.

    If the app ran it, it could overtake letters typed just before. For all other keys Textual
    calls the text area's own method next.

    Args:
        area: The text area, from whose `_on_key` this is called.
        event: The key.
        ids: The bindings with an id that are meant; Textual's own have none, and all are.
    """
    active = area.screen.active_bindings.get(event.key)
    if active is not None and active.node is area and (active.binding.id or "") in {"", *ids}:
        event.stop()
        event.prevent_default()
        await area.run_action(active.binding.action)


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
