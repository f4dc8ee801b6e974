"""Carries out the commands of the screen: `COMMANDS` has one function for each."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import isawaitable
from time import monotonic
from typing import Final

from textual.content import Content

from tui.model.chat import ModelText, UserMessage
from tui.model.input.own_commands import OWN_COMMANDS, SKILL, Takes, TypedCommand
from tui.model.input.typed import nearest
from tui.model.servers import ServerId, ServerStatus, ServerView
from tui.model.sessions import SessionId
from tui.store.selectors import entries
from tui.store.state import AppState
from tui.text import AdvisedError
from tui.ui.commands.reports import (
    describe_folders,
    describe_model_context,
    describe_servers,
    describe_stats,
)
from tui.ui.dialogs.choices import ThemeScreen, pick
from tui.ui.dialogs.list_dialog import DetailsScreen
from tui.ui.dialogs.model_setup import ModelsScreen
from tui.ui.dialogs.prompt_arguments import OptionsScreen
from tui.ui.dialogs.sessions import SessionsScreen
from tui.ui.main import MainScreen
from tui.ui.messages import PaneName
from tui.ui.panes.tabs import tabs_of
from tui.ui.themes import in_order
from tui.ui.widgets.status import STARTABLE, STOPPABLE

Run = Callable[[MainScreen, str], object]
"""Carries out a command with what stands after it; what it returns may have to be awaited."""


class UsageError(AdvisedError):
    """A command cannot be carried out as it was typed; `advice` says what to type."""


async def run_command(deck: MainScreen, typed: TypedCommand) -> None:
    """Carry out a command.

    Raises:
        UsageError: If it cannot be, as it was typed.
    """
    if typed.rest and typed.takes is Takes.NOTHING:
        raise UsageError(f"{typed.usage} accepts no arguments.")
    if not typed.rest and typed.takes and not typed.takes.startswith("["):
        raise UsageError(f"Usage: {typed.usage}")
    if typed.rest:
        from tui.engine.settings.prohibitions import key_table  # noqa: PLC0415 - loads pydantic

        for word in typed.rest.split():
            said = " ".join((*typed.words, word))
            if (serving := key_table()["commands"].get(said)) is not None:
                raise UsageError(f"There is no command /{said}.", serving)
    deck.commands.has_dropped = False
    running = COMMANDS[typed.words](deck, typed.rest)
    if deck.commands.has_dropped:
        raise UsageError("gemdeck is still starting.", "Press Enter again in a moment.")
    if isawaitable(running):
        await running


def _show(deck: MainScreen, title: str, describe: Callable[[AppState], Content]) -> None:
    """Show a part of the state in a dialog."""
    deck.app.push_screen(DetailsScreen(title, deck.bridge, describe))


async def _show_tools(deck: MainScreen, server: str) -> None:
    """Show the tools, narrowed to a server."""
    await deck.show_pane(PaneName.TOOLS, _one_server(deck, server) if server else None)


def _copy(deck: MainScreen, _: str) -> None:
    """Copy the last answer."""
    answers = [one.text for one in entries(deck.bridge.state) if isinstance(one, ModelText)]
    if not answers:
        raise UsageError("No answer to copy yet.")
    deck.app.copy_to_clipboard(answers[-1])


async def _paste(deck: MainScreen, _: str) -> None:
    """Attach the picture in the clipboard to the next message."""
    if not await deck.chat.paste_picture():
        raise UsageError("There is no picture in the clipboard.", "A path of one attaches it, too.")


def _use_skill(deck: MainScreen, words: str) -> None:
    """Load a skill, or begin the command, so that all are offered; Up brings the draft back."""
    if words:
        deck.commands.send(f"/{SKILL} {words}")
    elif any(view.catalog.skills for view in deck.bridge.state.servers):
        deck.chat.composer.clear_draft()
        deck.chat.composer.replace_all(f"/{SKILL} ")
    else:
        raise UsageError("None of your servers offers skills.")


def _choose_theme(deck: MainScreen, name: str) -> None:
    """Choose a theme, or show all."""
    if not name:
        deck.app.push_screen(ThemeScreen(deck.choose_theme))
    elif name in in_order(deck.app.available_themes):
        deck.choose_theme(name)
    else:
        like = nearest(name, deck.app.available_themes)
        advice = f"Did you mean {like}?" if like else "/theme lists all themes."
        raise UsageError(f"There is no theme {name}.", advice)


# Conversations


def _go_to_tab(deck: MainScreen, number: str) -> None:
    """Go to a tab by its number, or choose one, or a new one."""
    state = deck.bridge.state
    keys = [*state.conversations]
    if not number:
        offered = [(tab.whole, partial(deck.show_conversation, tab.key)) for tab in tabs_of(state)]
        offered += [("a new tab", partial(deck.action_new_tab))]
        deck.app.push_screen(pick("Tabs", "tab", offered, lambda go: go()))
    elif number.isdecimal() and 1 <= int(number) <= len(keys):
        deck.show_conversation(keys[int(number) - 1])
    else:
        raise UsageError(f"There is no tab {number}.", "/tab lists all tabs.")


def _list_sessions(deck: MainScreen, query: str) -> None:
    """List the sessions, narrowed to what is typed."""

    def open_beside(session: SessionId) -> None:
        deck.switch(partial(deck.commands.engine.sessions.resume_beside, session))

    deck.app.push_screen(SessionsScreen(deck.bridge, query, open_beside=open_beside))


def _resume(deck: MainScreen, session: str) -> None:
    """Go on with a session, or choose one."""
    if session:
        deck.commands.resume(session)
    else:
        _list_sessions(deck, "")


def _edit(deck: MainScreen, _: str) -> None:
    """Choose an earlier message, and put it into the composer to send another in its place."""
    offered = [(message.typed, message) for message in _messages(deck)[::-1]]
    deck.app.push_screen(pick("Edit a message", "message", offered, deck.chat.begin_edit))


def _retry(deck: MainScreen, model: str) -> None:
    """Send the last message again in its own place, perhaps to another model."""
    last = _messages(deck)[-1]
    if deck.bridge.state.conversation.turn is not None:
        raise UsageError("A turn is running.", "Stop it first (Esc).")
    if model:
        deck.commands.engine.models.retry(last.id, last.typed, model)
    else:
        deck.commands.engine.sessions.edit_message(last.id, last.typed)


def _messages(deck: MainScreen) -> list[UserMessage]:
    """Return the user's messages; a `UsageError` says that there are none."""
    found = [one for one in entries(deck.bridge.state) if isinstance(one, UserMessage)]
    if not found:
        raise UsageError("No message sent yet.")
    return found


# The model


def _use_model(deck: MainScreen, name: str) -> None:
    """Use a model, or choose one of the service's list."""
    if name:
        deck.commands.engine.models.use_model(name)
    else:
        deck.app.push_screen(ModelsScreen(deck.bridge))


def _show_context(deck: MainScreen, _: str) -> None:
    """Show what fills the context, and its files, read anew."""
    deck.commands.engine.models.measure()
    deck.commands.engine.context_files.refresh()
    _show(deck, "Context", describe_model_context)


# Servers; the name of an extension stands for all its servers


def _report(
    deck: MainScreen, wanted: str, *, descriptions: bool = False, schemas: bool = False
) -> None:
    """Show the servers with a word in their names, or all."""

    def those(state: AppState) -> tuple[ServerView, ...]:
        word = wanted.casefold()
        return tuple(view for view in state.servers if word in view.id.casefold())

    if wanted and not those(deck.bridge.state):
        parts = [part.name for part in OWN_COMMANDS["mcp"].parts]
        word, *after = wanted.split(maxsplit=1)
        if like := nearest(word, parts):
            command = " ".join(("/mcp", like, *after))
            raise UsageError(f"/mcp has no {word}.", f"Did you mean {command}?")
        _named(deck, wanted)
    how = partial(describe_servers, descriptions=descriptions, schemas=schemas)
    _show(deck, "Servers", lambda state: how(those(state), monotonic()))


def _sign_in(deck: MainScreen, name: str) -> None:
    """Sign in to a server; without a name, to the one that needs it."""
    servers = deck.bridge.state.servers
    needy = [view.id for view in servers if view.status is ServerStatus.NEEDS_SIGN_IN]
    if name:
        needy = [_one_server(deck, name)]
    if len(needy) != 1:
        names = ", ".join(needy) or "No server"
        needs = "need" if needy else "needs"
        raise UsageError(f"{names} {needs} a sign-in.", "Use /mcp auth SERVER")
    deck.commands.engine.sign_ins.begin(needy[0])


def _restart_all(deck: MainScreen, _: str) -> None:
    deck.commands.engine.servers.restart_all()
    deck.notify("Restarting all servers.", markup=False)


def _each(
    done: str,
    allowed: frozenset[ServerStatus],
    change: str,
    deck: MainScreen,
    name: str,
    **how: bool,
) -> None:
    """Change the servers of a name that have an allowed status, and say what was done.

    `change` is the method of the engine's servers that does it.
    """
    named = _named(deck, name)
    if not (servers := [view.id for view in named if view.status in allowed]):
        view = named[0]
        raise UsageError(f"{view.id} is {view.status}.", _way_out(view.id, view.status))
    for server in servers:
        getattr(deck.commands.running.servers, change)(server, **how)
    deck.notify(f"{done} {', '.join(servers)}.", markup=False)


def _one_server(deck: MainScreen, name: str) -> ServerId:
    """Return the server with a name; a `UsageError` says that there is none."""
    return _named(deck, name)[0].id


def _named(deck: MainScreen, name: str) -> Sequence[ServerView]:
    """Return the server with a name, or those of an extension; a `UsageError` if there is none."""
    servers = deck.bridge.state.servers
    for found in (
        [view for view in servers if view.id == name],
        [view for view in servers if view.id.casefold() == name.casefold()],
        [view for view in servers if view.extension == name],
    ):
        if found:
            return found
    like = nearest(name, (view.id for view in servers))
    advice = f"Did you mean {like}?" if like else "/mcp lists your servers."
    raise UsageError(f"There is no server {name}.", advice)


def _way_out(server: ServerId, status: ServerStatus) -> str:
    match status:
        case ServerStatus.DISABLED:
            return f"Use /mcp enable {server}"
        case ServerStatus.UNTRUSTED | ServerStatus.INVALID:
            return f"/mcp list {server} shows why."
        case _:
            return ""


_OFF: Final = frozenset({ServerStatus.DISABLED})
_ON: Final = frozenset(ServerStatus) - {ServerStatus.DISABLED, ServerStatus.INVALID}

COMMANDS: Final[Mapping[tuple[str, ...], Run]] = {
    ("help",): lambda deck, _: deck.run_action("app.open('help')"),
    ("new",): lambda deck, _: deck.commands.clear_conversation(),
    ("clear",): lambda deck, _: deck.commands.clear_conversation(),
    ("tools",): _show_tools,
    ("copy",): _copy,
    ("paste",): _paste,
    (SKILL,): _use_skill,
    ("stats",): lambda deck, _: _show(deck, "Stats", describe_stats),
    ("theme",): _choose_theme,
    ("quit",): lambda deck, _: deck.run_action("app.quit"),
    ("directory", "show"): lambda deck, _: _show(deck, "Folders", describe_folders),
    ("directory", "add"): lambda deck, folder: deck.commands.engine.features.add_folder(folder),
    ("tab",): _go_to_tab,
    ("close",): lambda deck, _: deck.action_close_tab(),
    ("sessions",): _list_sessions,
    ("resume",): _resume,
    ("export",): lambda deck, path: deck.commands.engine.sessions.export("", path),
    ("edit",): _edit,
    ("retry",): _retry,
    ("model",): _use_model,
    ("profile",): lambda deck, name: deck.commands.engine.models.use_profile(name),
    ("context",): _show_context,
    ("compress",): lambda deck, _: deck.commands.engine.models.compress(),
    ("options",): lambda deck, _: deck.app.push_screen(OptionsScreen(deck.bridge)),
    ("mcp", "list"): _report,
    ("mcp", "desc"): partial(_report, descriptions=True),
    ("mcp", "schema"): partial(_report, descriptions=True, schemas=True),
    ("mcp", "auth"): _sign_in,
    ("mcp", "logout"): lambda deck, one: deck.commands.engine.sign_ins.end(_one_server(deck, one)),
    ("mcp", "refresh"): _restart_all,
    ("mcp", "restart"): partial(_each, "Restarting", STOPPABLE | STARTABLE, "restart"),
    ("mcp", "start"): partial(_each, "Starting", STARTABLE, "start"),
    ("mcp", "stop"): partial(_each, "Stopping", STOPPABLE, "stop"),
    ("mcp", "enable"): partial(_each, "Enabled", _OFF, "set_enabled", enabled=True),
    ("mcp", "disable"): partial(_each, "Disabled", _ON, "set_enabled", enabled=False),
}
"""The commands by their words, as in `OWN_COMMANDS`."""
