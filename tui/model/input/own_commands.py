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
    SKILL = "SKILL [WORDS]"
    SOME_SERVERS = "[SERVER]"
    THEME = "[THEME]"
    FOLDER = "FOLDER"
    SOME_WORDS = "[WORDS]"
    SOME_MODEL = "[MODEL]"
    SOME_LEVEL = "[LEVEL]"
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
    _C("help", "all keys and commands", alias="?"),
    _C("clear", "a new conversation in this tab"),
    _C("new", "a new conversation in this tab"),
    _C("tab", "go to another open conversation, or open one", Takes.SOME_NUMBER),
    _C("close", "close this tab"),
    _C("sessions", "the saved conversations of this folder", Takes.SOME_WORDS),
    _C("resume", "go on with a saved conversation", Takes.SOME_SESSION),
    _C("export", "write this conversation to a file, .md or .json", Takes.SOME_FILE),
    _C("compress", "put a summary in place of the conversation for the model", alias="compact"),
    _C("model", "choose the model that answers", Takes.SOME_MODEL),
    _C(
        "options",
        "how the model answers in this conversation",
        parts=(
            _C("show", "list them"),
            _C("thinking", "its thinking: low, high, or a budget in tokens", Takes.SOME_LEVEL),
            _C("temperature", "its temperature, 0 to 2", Takes.SOME_NUMBER),
            _C("output", "most tokens of an answer", Takes.SOME_NUMBER),
        ),
    ),
    _C("profile", "choose which servers and tools count in this tab", Takes.SOME_PROFILE),
    _C("context", "what fills the model's context, and its files"),
    _C("edit", "change an earlier message of yours and send it again"),
    _C("retry", "send your last message again, also to another model", Takes.SOME_MODEL),
    _C("tools", "the tools of your servers", Takes.SOME_SERVERS),
    _C(
        "mcp",
        "your servers: list, restart, stop and more",
        parts=(
            _C("list", "how each server is set up and stands", Takes.SOME_SERVERS, alias="ls"),
            _C("desc", "the same with what its tools do", Takes.SOME_SERVERS),
            _C("schema", "the same with the schemas of its tools", Takes.SOME_SERVERS),
            _C("auth", "sign in to a server", Takes.SOME_SERVERS),
            _C("logout", "revoke and forget a server's sign-in", Takes.SERVER),
            _C("refresh", "restart all servers", alias="reload"),
            _C("restart", "restart a server", Takes.SERVER),
            _C("start", "start a server, or those of an extension", Takes.SERVER),
            _C("stop", "stop a server, or those of an extension", Takes.SERVER),
            _C("enable", "let a server run, also later on", Takes.SERVER),
            _C("disable", "keep a server from running, also later on", Takes.SERVER),
        ),
    ),
    _C(SKILL, "load a skill of a server, and send what follows with it", Takes.SKILL),
    _C("copy", "copy the last answer"),
    _C("paste", "attach the picture in the clipboard"),
    _C("stats", "tokens, turns and tool calls so far", alias="usage"),
    _C("theme", "choose the theme", Takes.THEME),
    _C(
        "directory",
        "the folders that servers are told of",
        alias="dir",
        parts=(_C("show", "list them"), _C("add", "add one", Takes.FOLDER)),
    ),
    _C("quit", "leave gemdeck", alias="exit"),
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
