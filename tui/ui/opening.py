"""All that opens above the deck: what has a name, and what a message asks for.

It is imported when the first of it opens, with every dialog.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from pathlib import Path
from typing import Any, Final

from textual.screen import Screen

from tui.model.requests import FieldKind, FormField
from tui.model.servers import OWN
from tui.store.selectors import server
from tui.ui import messages
from tui.ui.commands.palette import DeckPalette
from tui.ui.commands.runner import UsageError, run_command
from tui.ui.dialogs.choices import ImportScreen, ThemeScreen
from tui.ui.dialogs.grants import GrantsScreen
from tui.ui.dialogs.help import HelpIndex, HelpScreen, KeysScreen, lines_here, place_of
from tui.ui.dialogs.model_setup import ModelScreen
from tui.ui.dialogs.prompt_arguments import ArgumentsScreen, ProfileScreen
from tui.ui.dialogs.server_page import ServerPage
from tui.ui.dialogs.tool_run import RunScreen, ToolFormScreen, run_list
from tui.ui.dialogs.viewer import DoctorScreen, ViewerScreen
from tui.ui.editor import edit
from tui.ui.main import MainScreen
from tui.ui.widgets.text.describe import describe_prompt


def _help(deck: MainScreen) -> Screen[Any] | None:
    """Open the help; over itself, close it."""
    app, over = deck.app, deck.app.screen
    if isinstance(over, HelpScreen | HelpIndex):
        over.dismiss()
        return None
    here = lines_here(app, over.active_bindings, app.focused, deck.own_keys)
    return HelpScreen(here, place_of(app.focused or over), deck.commands)


def _palette(deck: MainScreen) -> Screen[Any] | None:
    return None if isinstance(deck.app.screen, DeckPalette) else DeckPalette(deck)


async def _settings(deck: MainScreen) -> None:
    """Open the user's settings in an editor, begun if there are none."""
    from tui.engine.settings.edits import begin_settings  # noqa: PLC0415 - loads pydantic

    try:
        await edit(deck.app, begin_settings(Path.home()), 1)
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        deck.app.notify(words, title="Settings", severity="error", markup=False)


async def _imports(deck: MainScreen) -> Screen[Any] | None:
    """Offer the servers of other clients."""
    from tui.engine.settings.edits import EditError  # noqa: PLC0415 - loads pydantic

    imports = deck.commands.engine.imports
    try:
        found = await asyncio.to_thread(imports.find)
    except EditError as error:
        deck.app.notify(str(error), title="Settings", severity="error", markup=False)
        return None
    if offers := [offer for _, there in found or () for offer in there]:
        return ImportScreen(offers, deck.commands.running.imports.take)
    deck.app.notify("No servers of other clients were found.", markup=False)
    return None


def _sample(deck: MainScreen) -> Screen[Any]:
    from tui.engine.settings.edits import SAMPLE, sample_settings  # noqa: PLC0415 - loads pydantic

    return ViewerScreen(deck.commands, SAMPLE, sample_settings())


def _add(deck: MainScreen) -> Screen[Any] | None:
    from tui.ui.dialogs.server_form import ServerScreen  # noqa: PLC0415 - loads pydantic

    if deck.bridge.state.configured:
        return ServerScreen(deck.bridge)
    deck.app.notify("The settings are still loading.", markup=False)
    return None


async def _edit_server(deck: MainScreen, asked: messages.EditServer) -> None:
    """Edit the entry of a server of the user's."""
    from tui.engine.settings.edits import EditError, servers_in  # noqa: PLC0415 - loads pydantic
    from tui.engine.settings.typed_entries import with_access  # noqa: PLC0415 - loads pydantic
    from tui.ui.dialogs.server_form import ServerScreen  # noqa: PLC0415 - loads pydantic

    if (view := server(deck.bridge.state, asked.server)) is None:
        return
    place, entry = view.source or "gemdeck itself", None
    words = f"{view.id} is defined in {place}: it cannot be changed here."
    if view.origin in OWN:
        try:
            file = deck.commands.running.imports.edits.file_of(view.origin.value)
            entry = (await asyncio.to_thread(servers_in, file)).get(view.id)
        except EditError as error:
            words = str(error)
    if isinstance(entry, dict):
        entry = with_access(entry, asked.allows) if asked.allows is not None else entry
        deck.app.push_screen(ServerScreen(deck.bridge, asked, entry, view.origin.value))
    else:
        deck.app.notify(words, markup=False)


def _runs(deck: MainScreen) -> Screen[Any] | None:
    if not (made := deck.bridge.state.runs):
        deck.app.notify(
            "You have not run a tool yourself yet. Press Enter on a tool to run it.", markup=False
        )
        return None
    return run_list(made.values(), lambda run: deck.post_message(messages.ShowRun(run)))


Made = Screen[Any] | None

DIALOGS: Final[Mapping[str, Callable[[MainScreen], Made | Awaitable[Made]]]] = {
    "add": _add,
    "doctor": lambda deck: DoctorScreen(deck.bridge, "gemdeck doctor"),
    "grants": lambda deck: GrantsScreen(deck.bridge),
    "help": _help,
    "imports": _imports,
    "keys": lambda deck: KeysScreen(deck.bridge),
    "model": lambda deck: ModelScreen(deck.bridge),
    "palette": _palette,
    "profile": lambda deck: ProfileScreen(deck.bridge),
    "runs": _runs,
    "sample": _sample,
    "settings": _settings,
    "themes": lambda deck: ThemeScreen(deck.choose_theme),
}
"""What the action `app.open` takes by its name; the user's editor comes in place of a dialog."""


async def open_named(deck: MainScreen, name: str) -> None:
    """Open what has a name."""
    made = DIALOGS[name](deck)
    screen = await made if isawaitable(made) else made
    if screen is not None:
        await deck.app.push_screen(screen)  # what is typed meanwhile is for what it shows


async def open_asked(deck: MainScreen, asked: messages.Opens) -> None:
    """Open what a message asks for."""
    bridge, push = deck.bridge, deck.app.push_screen
    match asked:
        case messages.ShowServer():
            push(ServerPage(bridge, asked.server))
            deck.commands.tell("mcp show", asked.server)
        case messages.EditServer():
            await _edit_server(deck, asked)
        case messages.RunTool():
            push(ToolFormScreen(bridge, deck.drafts, asked.server, asked.tool, asked.arguments))
        case messages.ShowRun():
            push(RunScreen(bridge, asked.run))
        case messages.FollowLink():
            deck.chat.follow(asked.url, asked.server)
        case messages.ShowResource():
            from tui.ui.dialogs.fetched import ResourceScreen  # noqa: PLC0415 - parses Markdown

            push(ResourceScreen(bridge, asked))
        case messages.FillPrompt():
            _fill_prompt(deck, asked)
        case messages.RunCommand():
            await _run_command(deck, asked)


def _fill_prompt(deck: MainScreen, asked: messages.FillPrompt) -> None:
    """Open the form for the arguments, if there are any, then show the prompt."""
    from tui.ui.dialogs.fetched import PromptScreen  # noqa: PLC0415 - parses Markdown

    name = asked.prompt.name

    def show(arguments: dict[str, str] | None) -> None:
        if arguments is not None:
            filled = messages.FillPrompt(asked.server, asked.prompt, arguments, asked.typed)
            deck.app.push_screen(PromptScreen(deck.bridge, filled))
        elif asked.typed:
            deck.chat.composer.replace_all(asked.typed)

    if not asked.prompt.arguments:
        show({})
        return
    screen = ArgumentsScreen(
        deck.bridge,
        asked.server,
        name,
        title=f"/{name}",
        about=describe_prompt(asked.server, asked.prompt, arguments=False),
        fields=[
            FormField(
                *(one.name, FieldKind.TEXT, one.name, one.description, one.required),
                default=asked.values.get(one.name),
            )
            for one in asked.prompt.arguments
        ],
    )
    deck.app.push_screen(screen, show)


async def _run_command(deck: MainScreen, asked: messages.RunCommand) -> None:
    try:
        await run_command(deck, asked.command)
    except UsageError as error:
        if not deck.chat.composer.text:
            deck.chat.composer.put_back(asked.text)
        deck.notify(f"{error} {error.advice}".rstrip(), severity="warning", markup=False)
