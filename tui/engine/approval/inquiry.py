"""A call that needs a decision, and what its question shows: warnings, fields, a file's change."""

import json
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from tui.engine.approval.policy import Policy, Verdict, is_plain
from tui.engine.definitions.definition_diff import all_lines
from tui.engine.files.atomic import read_regular
from tui.engine.mcp.catalog.argument_rules import (
    canonical_value,
    leads_through_process,
    path_forms,
    real_path,
    real_ways,
)
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool
from tui.engine.settings.prohibitions import Permission
from tui.model.chat import MAIN, ConversationId, EntryId
from tui.model.consent import Caller
from tui.model.events import ToolCallDecided
from tui.model.frozen import Frozen
from tui.model.input.arguments import reveal
from tui.model.requests import FileChange, TextEdit
from tui.model.servers import Origin, ServerId
from tui.text import sanitize, sanitize_line

MAX_FILE: Final = 128 * 1024
"""Largest file that is compared, in bytes, and longest argument, in characters."""

MAX_PATH: Final = 1_000
"""Characters of an argument that may be a path."""

Look = tuple[FileChange | None, tuple[tuple[str, str, str], ...], tuple[str, ...]]
"""A file's change; names of arguments, their paths after links are resolved, and folders (see the
request); and a warning for each path that may lead to several files."""

_CONTENT: Final = frozenset(
    {"content", "contents", "filecontent", "filecontents", "filetext", "newcontent", "newcontents"}
)
_MAYBE_CONTENT: Final = frozenset({"body", "code", "data", "source", "text"})
"""Names of arguments that hold a file's content where they have several lines."""

_REPLACED: Final = ("", "text", "string", "str", "content", "code")
"""What follows ``old`` and ``new`` in the names of a text and of the one that replaces it."""

MAX_EDITS: Final = 200
"""Texts replaced in one call that are shown as such."""

MAX_SAME_CALLS: Final = 3
"""Times that the same call is made in a turn before the user is asked whatever the rules say."""

MAX_NAMED: Final = 5
"""Servers that one note names."""

_NO_ARGUMENTS: Final = "{}"

_PLACES: Final = {
    Origin.SYSTEM_DEFAULTS: "the system's settings",
    Origin.USER: "your settings",
    Origin.FOLDER: "your settings for this folder",
    Origin.PROJECT: "this folder",
    Origin.SYSTEM: "the system's settings",
    Origin.EXTENSION: "one of your extensions",
    Origin.DEMO: "gemdeck's demo",
}
"""Where servers come from, in words."""

_ODD_NAME: Final = "The name contains characters that are not allowed in tool names."
_FOREIGN: Final = "This folder's settings define the server."
_UNSAVED: Final = "Grants cannot be saved now; what you always allow lasts until you quit."


def content_of(arguments: JsonObject) -> str:
    """Return the name of the argument that holds a file's content; empty if none or several do."""
    names = [name for name, value in arguments.items() if _is_content(name, value)]
    return names[0] if len(names) == 1 else ""


def look_at_files(folder: Path | None, start: str, arguments: JsonObject) -> Look:
    """Compare arguments with a file of a folder, and find what may be paths in them. Blocks.

    Args:
        folder: The opened folder, or None.
        start: Where the tool's server starts; see `ArgumentRule`.
        arguments: The arguments.
    """
    base = start or str(folder or "/")
    texts = {name: value for name, value in arguments.items() if isinstance(value, str)}
    unclear = {name: files for name, value in texts.items() if (files := _misread(value, base))}
    return (
        file_change(folder, arguments, start) if folder is not None else None,
        tuple(
            (name, json.loads(canonical_value(value)), _folder_of(value, start))
            for name, value in texts.items()
            if name not in unclear
        ),
        tuple(
            sanitize_line(f"gemdeck cannot tell which file {name} means: {' or '.join(files)}.")
            for name, files in unclear.items()
        ),
    )


def _folder_of(value: str, start: str) -> str:
    """Return the folder that a path is or lies in, links followed; "" if it leads nowhere."""
    for way in sorted(real_ways(value, start))[:1]:
        path = Path(way)
        folder = path if path.is_dir() else path.parent
        if folder.is_dir() and ("/" in value or path.exists()):
            return str(folder)
    return ""


def _files_named(value: object, base: str) -> list[str]:
    """Return all files that a value may mean to whoever reads it as a path, links followed."""
    if not isinstance(value, str) or len(value) > MAX_PATH or "\n" in value:
        return []
    return sorted(set(map(real_path, path_forms(value, [base]))))


def _misread(value: str, base: str) -> list[str]:
    """Return the files that a path may mean, if it could be any of several or one of a process."""
    files = _files_named(value, base)
    is_path = "../" in f"{value}/" or os.path.lexists(Path(base, value))
    is_unclear = (len(files) > 1 and is_path) or leads_through_process(value, [base])
    return files if is_unclear and "://" not in value else []


def of_its_server(inquiry: "Inquiry") -> list[OfferedTool]:
    """Return the tools that the server of a call offered to the model."""
    own = inquiry.tool.server, inquiry.tool.fingerprint
    return [one for one in inquiry.offered if (one.server, one.fingerprint) == own]


def read_only_with(inquiry: "Inquiry") -> list[OfferedTool]:
    """Return those of which it claims that they only read; none unless it is one of them."""
    found = [one for one in of_its_server(inquiry) if one.view.claims_to_read]
    return found if inquiry.tool in found else []


def file_change(folder: Path, arguments: JsonObject, start: str = "") -> FileChange | None:
    """Compare an argument with the file of a folder that another one names. Blocks.

    Args:
        folder: The opened folder.
        arguments: The arguments.
        start: Where relative paths lead on from, if not from the folder.

    Returns:
        The difference, harmless to show; None if no argument, or more than one, names a file, if
        it lies elsewhere, may be another one, or is no text of at most `MAX_FILE` bytes. Texts that
        replace others are told all the same, then without the file.
    """
    edits = list(islice(_edits(arguments), MAX_EDITS))
    if sum(len(text) for *_, texts in edits for text in texts) > MAX_FILE:
        edits = []
    content = "" if edits else content_of(arguments)
    if not content and not edits:
        return None
    place = Path(os.path.realpath(folder))
    paths = [
        (name, path)
        for name, value in arguments.items()
        if name != content and (path := _file_in(place, value, start)) is not None
    ]
    name, before = "", None
    if len(paths) == 1:
        with suppress(OSError, ValueError):
            before = read_regular(paths[0][1], MAX_FILE).decode()
            name = paths[0][0]
    if edits:
        return _edited(name, before, edits)
    return _change(name, content, before, arguments[content]) if before is not None else None


def _edits(arguments: JsonObject) -> Iterator[tuple[str, tuple[str, str], list[str]]]:
    """Find the objects that replace a text: where each is, the names of both texts, and these."""
    objects: list[tuple[str, object]] = [("", arguments)]
    for key, value in arguments.items():
        if isinstance(value, list) and key.isidentifier() and key.isascii():
            objects += [(f"{key}[{index}]", one) for index, one in enumerate(value)]
    for place, found in objects:
        texts = found if isinstance(found, Mapping) else {}
        known = [name for name, text in texts.items() if isinstance(text, str)]
        plain = {name.lower().replace("_", ""): name for name in known}
        pairs = [(plain.get(f"old{end}", ""), plain.get(f"new{end}", "")) for end in _REPLACED]
        if len(whole := [pair for pair in pairs if all(pair)]) == 1:
            yield place, whole[0], [texts[name] for name in whole[0]]


def _is_content(name: str, value: object) -> bool:
    plain = name.lower().replace("_", "").replace("-", "")
    if not isinstance(value, str) or len(value) > MAX_FILE:
        return False
    return plain in _CONTENT or (plain in _MAYBE_CONTENT and "\n" in value)


def _file_in(place: Path, value: object, start: str) -> Path | None:
    """Return the one file that a value names if it lies in a folder, wherever links lead."""
    files = [*map(Path, _files_named(value, start or str(place)))]
    is_there = len(files) == 1 and place in files[0].parents and os.path.isfile(files[0])  # noqa: PTH113
    return files[0] if is_there and not leads_through_process(str(files[0]), ["/"]) else None


def _edited(
    path: str, before: str | None, edits: Sequence[tuple[str, tuple[str, str], list[str]]]
) -> FileChange:
    """Compare old texts with new ones, and find the old ones in a file, edit by edit."""
    found: list[TextEdit] = []
    file = (before or "").replace("\r\n", "\n")
    for name, names, (old, new) in edits:
        wanted = old.replace("\r\n", "\n")
        times = file.count(wanted) if wanted else 0
        first = file.count("\n", 0, file.index(wanted)) + 1 if times == 1 else 0
        place = f"line {first:,}" if first else f"{times:,} times in the file"
        place = place if times else "not found in the file as written here"
        file = file.replace(wanted, new, 1) if first else file
        compared = all_lines(old.split("\n"), new.split("\n"))
        lines = tuple((line.sign, line.text) for line in compared)
        found.append(TextEdit(name, names, place if path and wanted else "", first, lines))
    signs = Counter(sign for edit in found for sign, _ in edit.lines)
    return FileChange(path, "", f"edits · +{signs['+']:,} -{signs['-']:,}", (), tuple(found))


def _change(path: str, content: str, before: str, after: str) -> FileChange:
    new = after.removesuffix("\n").split("\n")
    old = before.removesuffix("\n").split("\n") if before else []
    lines = [(line.sign, line.text) for line in all_lines(old, new)]
    signs = Counter(sign for sign, _ in lines)
    changed = f"+{signs['+']:,} -{signs['-']:,}" if signs.keys() - {" "} else "unchanged"
    shown = ((sign, sanitize(reveal(text)) if sign == "-" else "") for sign, text in lines)
    return FileChange(path, content, f"overwrites · {changed}", tuple(shown))


class UnusableEditError(Exception):
    """Arguments as the user edited them cannot be sent; the text says why, in one line."""


class Edit(Frozen):
    """Arguments that the user edited: the object to send, and its text."""

    arguments: JsonObject
    shown: str


@dataclass(slots=True)
class TurnRecord:
    """Answers and reads that apply to the calls of one turn.

    Attributes:
        denies_rest: Whether the user denied all further calls.
        denied: The calls that the user denied.
        read: The servers whose data this turn has read, in the order of the first one.
        calls: How often each call was made, by server, tool and arguments.
        conversation: The conversation of the turn.
        caller: The other client that calls, or None.
    """

    denies_rest: bool = False
    denied: list["Inquiry"] = field(default_factory=list)
    read: dict[ServerId, None] = field(default_factory=dict)
    calls: Counter[tuple[ServerId, str, str]] = field(default_factory=Counter)
    conversation: ConversationId = MAIN
    caller: Caller | None = None

    @property
    def caller_words(self) -> str:
        return self.caller.words if self.caller is not None else ""

    def count(self, tool: OfferedTool, shown: str) -> int:
        """Count a call; return how often this very call was made in the turn."""
        key = tool.server, tool.name, shown
        self.calls[key] += 1
        return self.calls[key]

    def has_denied(self, tool: OfferedTool, shown: str) -> bool:
        denied = ((call.tool.server, call.tool.name, call.shown) for call in self.denied)
        return (tool.server, tool.name, shown) in denied


@dataclass(slots=True)
class Inquiry:
    """A call that needs a decision.

    Attributes:
        call: Its transcript entry.
        tool: The tool as it was offered to the model.
        arguments: The very object that would be sent; nobody changes it.
        shown: The same, complete, as canonical JSON.
        offered: All tools as they were offered to the model with this step; what "always this
            server" covers, and what a pattern's meaning is judged by.
        turn: The state shared by the calls of its turn.
        read_edit: Reads arguments as edited, from JSON; raises `UnusableEditError`.
        by_user: Whether the user composed this exact call, which is consent to it.
        number: How often this very call was made in the turn, this one included.
        verdict: What the rules said of it; None before they were asked.
        rules: The state of the rules that said so; see `Policy.state`.
    """

    call: EntryId
    tool: OfferedTool
    arguments: JsonObject
    shown: str
    offered: Sequence[OfferedTool]
    turn: TurnRecord
    read_edit: Callable[[str], Awaitable[Edit]]
    by_user: bool = False
    number: int = 1
    verdict: Verdict | None = None
    rules: int = -1

    @property
    def may_name_files(self) -> bool:
        """Whether a text in its arguments may be a path or a file's content."""
        return bool(content_of(self.arguments)) or "/" in self.shown or "." in self.shown

    @property
    def is_loop(self) -> bool:
        """Whether the model seems to go round in circles."""
        return not self.by_user and self.number % MAX_SAME_CALLS == 0


class Denial(Frozen):
    """A call may not run.

    Attributes:
        source: Why, such as ``you: deny``.
        note: A message about it to the model.
        is_reason: Whether that is the user's own reason.
    """

    source: str
    note: str = ""
    is_reason: bool = False

    @property
    def told(self) -> str:
        """What the model is told, with nothing that the user's reason may contradict."""
        note = self.note or "The user denied this call."
        ours = f"{note} Do not try to do the same in another way."
        return "Denied: " + (f"The user says: {note}" if self.is_reason else ours)

    @property
    def shown(self) -> str:
        """What the screen shows of it."""
        return sanitize(f"Denied. {self.note}".rstrip())


def decided(
    call: EntryId, tool: OfferedTool, arguments: str, decision: str, source: str, caller: str = ""
) -> ToolCallDecided:
    """Return the event for a decision on a call, with its arguments as canonical JSON."""
    named = tool.server, tool.fingerprint, sanitize_line(tool.name), tool.definition_hash
    return ToolCallDecided(call, *named, arguments, decision, source, caller)


def call_notes(inquiry: Inquiry, policy: Policy | None = None) -> Iterator[str]:
    """Give warnings about a call, most important first; sanitized.

    Args:
        inquiry: The call.
        policy: The rules; without one nothing is said of them.
    """
    tool, shown = inquiry.tool, inquiry.shown
    if tool.caution:
        yield tool.caution
    if inquiry.is_loop:
        yield f"The model has already made this call {inquiry.number - 1} times in this turn."
    # the model may retry what was denied under another name
    alike = (call.tool for call in inquiry.turn.denied if call.shown == shown != _NO_ARGUMENTS)
    if denied := next(alike, None):
        name = f"{denied.server} {sanitize_line(denied.view.name)}"
        yield f"Earlier in this turn you denied a call with the same arguments: {name}."
    if policy is not None and policy.origins.get(tool.server) is Origin.PROJECT:
        yield _FOREIGN
    if others := [server for server in inquiry.turn.read if server != tool.server]:
        yield f"This turn has read data from {_listed(others)}."
    for mark in tool.view.marks:
        yield f"The server's definition of this tool {mark.words}."
    if not is_plain(tool.name):
        yield _ODD_NAME
    if policy is not None and (words := policy.untrusted_words(tool)):
        yield sanitize_line(f"{words[0].upper()}{words[1:]}.")
    if policy is not None and (words := policy.asking_words(tool, Permission.SETTINGS)):
        yield f"Approval every time: {words}."
    if policy is not None and not policy.is_kept:
        yield _UNSAVED


def origin_words(server: ServerId, policy: Policy) -> str:
    """Return where a server comes from; empty if it is no longer defined."""
    origin = policy.origins.get(server)
    return _PLACES[origin] if origin is not None else ""


def _listed(names: list[ServerId]) -> str:
    """Join names to a phrase; of many, only the first."""
    *first, last = names[:MAX_NAMED]
    more = len(names) - MAX_NAMED
    if more > 0:
        return f"{', '.join([*first, last])} and {more} more"
    return f"{', '.join(first)} and {last}" if first else str(last)
