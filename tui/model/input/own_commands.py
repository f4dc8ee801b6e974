"""The commands of the screen: typed after ``/`` as prompts are, and carried out by no server."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from tui.model.frozen import Frozen


class Takes(StrEnum):
    """What stands after a command; the value is how its usage says so."""

    NOTHING = ""
    SERVER = "SERVER"
    SKILL = "[SKILL] [WORDS]"
    SOME_SERVERS = "[SERVER]"
    THEME = "[THEME]"
    FOLDER = "FOLDER"
    SOME_WORDS = "[WORDS]"
    SOME_MODEL = "[MODEL]"
    SOME_NUMBER = "[NUMBER]"
    SOME_SESSION = "[ID]"
    SOME_FILE = "[FILE]"
    SOME_PROFILE = "[NAME]"


class OwnCommand(Frozen):
    """A command of the screen, or a part of one, as `restart` is of `mcp`.

    The screen's function for it stands in `COMMANDS` under its name, or its name and part.

    Attributes:
        name: What is typed.
        does: What it does, in a few words.
        takes: What stands after it.
        parts: Its parts; the first one is meant where none is named.
        alias: What may be typed for its name, as in gemini-cli.
    """

    name: str
    does: str
    takes: Takes = Takes.NOTHING
    parts: tuple["OwnCommand", ...] = ()
    alias: str = ""

    @property
    def usage(self) -> str:
        """How it is typed: ``theme [THEME]``, or ``mcp …`` if it has parts."""
        return f"{self.name} {'…' if self.parts else self.takes.value}".rstrip()


def _table(*commands: OwnCommand) -> Mapping[str, OwnCommand]:
    return {command.name: command for command in commands}


SKILL: Final = "skill"
"""The command that loads a skill: a message, which goes along."""

_C = OwnCommand

OWN_COMMANDS: Final = _table(
    _C("help", "show all keys and commands", alias="?"),
    _C("clear", "start a new conversation in this tab"),
    _C("new", "start a new conversation in this tab"),
    _C("tab", "go to another tab, or open one", Takes.SOME_NUMBER),
    _C("close", "close this tab"),
    _C("sessions", "list this folder's sessions", Takes.SOME_WORDS),
    _C("resume", "resume a saved session", Takes.SOME_SESSION),
    _C("export", "export to a .md or .json file", Takes.SOME_FILE),
    _C("compress", "replace the conversation with a summary", alias="compact"),
    _C("model", "choose the model", Takes.SOME_MODEL),
    _C("options", "set thinking, temperature and length of answers"),
    _C("profile", "choose the servers and tools of this tab", Takes.SOME_PROFILE),
    _C("context", "show what fills the context"),
    _C("edit", "edit an earlier message and send it again"),
    _C("retry", "resend your last message, optionally to another model", Takes.SOME_MODEL),
    _C("tools", "list the tools of your servers", Takes.SOME_SERVERS),
    _C(
        "mcp",
        "manage your servers: list, restart, stop and more",
        parts=(
            _C("list", "show the setup and state of each server", Takes.SOME_SERVERS, alias="ls"),
            _C("desc", "the same, with descriptions of the tools", Takes.SOME_SERVERS),
            _C("schema", "the same, with schemas of the tools", Takes.SOME_SERVERS),
            _C("auth", "sign in to a server", Takes.SOME_SERVERS),
            _C("logout", "sign out of a server", Takes.SERVER),
            _C("refresh", "restart all servers", alias="reload"),
            _C("restart", "restart a server", Takes.SERVER),
            _C("start", "start a server, or those of an extension", Takes.SERVER),
            _C("stop", "stop a server, or those of an extension", Takes.SERVER),
            _C("enable", "enable a server and start it", Takes.SERVER),
            _C("disable", "disable a server until you enable it", Takes.SERVER),
        ),
    ),
    _C(SKILL, "list skills, or load one and send the text after it", Takes.SKILL),
    _C("copy", "copy the last answer"),
    _C("paste", "attach the picture in the clipboard"),
    _C("stats", "show tokens and tool calls so far", alias="usage"),
    _C("theme", "choose a theme", Takes.THEME),
    _C(
        "directory",
        "manage the folders shared with servers",
        alias="dir",
        parts=(_C("show", "list the folders"), _C("add", "add a folder", Takes.FOLDER)),
    ),
    _C("quit", "quit gemdeck", alias="exit"),
)
"""All of them, in the order in which they are listed. No prompt can take the name of one."""

ALIASES: Final = {one.alias: one.name for one in OWN_COMMANDS.values() if one.alias}
"""Their other names, which no prompt can take either."""

_COMMAND: Final = re.compile(r"/([\w.:-]+)(?:[^\S\n]+([^\n]*))?")


def command_words(text: str) -> tuple[str, str]:
    """Return the name and the rest of a typed command; both are empty if a text is none.

    A command is one line whose first word is ``/`` with letters, digits and ``_-.:``. So ``//``,
    ``/*`` and paths such as ``/etc/hosts`` are none.
    """
    match = _COMMAND.fullmatch(text.strip())
    return (match[1], (match[2] or "").strip()) if match is not None else ("", "")


class TypedCommand(Frozen):
    """A command of the screen as it was typed.

    Attributes:
        words: Its name, and that of its part.
        takes: What may stand after it.
        rest: What stands there.
    """

    words: tuple[str, ...]
    takes: Takes
    rest: str = ""

    @property
    def usage(self) -> str:
        return " ".join(("/" + self.words[0], *self.words[1:], *filter(None, [self.takes.value])))


def find_own_command(text: str) -> TypedCommand | None:
    """Return the command of the screen that a message is, or None."""
    name, rest = ("?", "") if text.strip() == "/?" else command_words(text)
    name = ALIASES.get(name, name)
    if (command := OWN_COMMANDS.get(name)) is None:
        return None
    if not command.parts:
        return TypedCommand((name,), command.takes, rest)
    word, _, after = rest.partition(" ")
    for part in command.parts:
        if word and word in {part.name, part.alias}:
            return TypedCommand((name, part.name), part.takes, after.strip())
    first = command.parts[0]
    return TypedCommand((name, first.name), first.takes, rest)
