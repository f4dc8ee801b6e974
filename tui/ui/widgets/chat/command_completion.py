"""Completions of what stands after a command of the screen: its parts, servers, themes."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from tui.model.frozen import dataclass
from tui.model.input.own_commands import OWN_COMMANDS, OwnCommand, Takes
from tui.model.servers import ServerStatus, ServerView
from tui.ui.widgets.chat.completion import (
    MAX_COMMANDS,
    MAX_COMPLETIONS,
    Completion,
    CompletionList,
)
from tui.ui.widgets.text.plain import one_line

_FOLDER: Final = re.compile(r"/directory +add +([^\n]*)\Z")
_TYPED: Final = re.compile(r"/([\w.:-]+) +([^\n]*)\Z")


@dataclass(frozen=True, slots=True)
class FolderQuery:
    """What is asked when a folder's path is typed.

    Attributes:
        typed: The path so far.
        start: Where it starts in the text before the cursor.
    """

    typed: str
    start: int

    def completions(self, values: Sequence[str]) -> CompletionList | None:
        """Return the folders; Tab goes on into the chosen one."""
        found = [Completion(one, one) for one in values[:MAX_COMPLETIONS] if one != self.typed]
        return CompletionList(self.start, tuple(found)) if found else None


def folder_query(before_cursor: str) -> FolderQuery | None:
    """Return what to ask if the path of a folder stands before the cursor."""
    match = _FOLDER.match(before_cursor)
    return FolderQuery(match[1], match.start(1)) if match is not None else None


def complete_command(
    before_cursor: str, servers: Sequence[ServerView], themes: Iterable[str]
) -> CompletionList | None:
    """Find completions of what stands after a command of the screen.

    Args:
        before_cursor: The text from the start of the message to the cursor.
        servers: The servers that it can name.
        themes: The themes that it can name.
    """
    match = _TYPED.match(before_cursor)
    command = OWN_COMMANDS.get(match[1]) if match is not None else None
    if match is None or command is None:
        return None
    typed = match[2]
    if command.parts:
        word, blank, after = typed.partition(" ")
        part = next((part for part in command.parts if part.name == word), None)
        if not blank:
            offered = [Completion(f"{one.name} ", one.name, one.does) for one in command.parts]
            return _fitting(offered, word, before_cursor)
        if part is None:
            return None
        command, typed = part, after.lstrip()
    return _fitting(_values(command, servers, themes), typed, before_cursor)


def _values(
    command: OwnCommand, servers: Sequence[ServerView], themes: Iterable[str]
) -> Sequence[Completion]:
    match command.takes:
        case Takes.SERVER | Takes.SOME_SERVERS:
            return [
                Completion(view.id, one_line(view.id), view.status.value)
                for view in servers
                if (view.status is ServerStatus.DISABLED) is (command.name == "enable")
                or command.takes is Takes.SOME_SERVERS
            ]
        case Takes.THEME:
            return [Completion(theme, theme) for theme in themes]
        case _:
            return ()


def _fitting(
    offered: Iterable[Completion], typed: str, before_cursor: str
) -> CompletionList | None:
    """Return those that begin as was typed, then those that contain it."""
    wanted = typed.casefold()
    fit = [one for one in offered if wanted in one.text.casefold() and one.text.strip() != typed]
    fit.sort(key=lambda one: not one.text.casefold().startswith(wanted))
    start = len(before_cursor) - len(typed)
    return CompletionList(start, tuple(fit[:MAX_COMMANDS])) if fit else None
