"""Changed tools: withheld from the model until the user accepts the change.

The first definition of a tool that is seen of a server counts as the one the user chose with the
server. A later one that differs voids nothing but itself: once the tool is as it was, it is
offered again.
"""

import asyncio
import hashlib
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from tui.engine.approval.policy import Policy
from tui.engine.background import OrderedWorker, TaskSet
from tui.engine.bus import Publish
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.definition_diff import UnreadableDefinitionError, difference
from tui.engine.desk import Desk
from tui.engine.files.entry_format import EntryFormat
from tui.engine.files.state_file import ServerFiles
from tui.engine.mcp.catalog.offer import Tool
from tui.engine.mcp.catalog.registry import ToolVisibility, Withheld
from tui.model.bounded_json import as_object
from tui.model.chat import Severity
from tui.model.consent import ToolRuleChanged
from tui.model.events import Notice, NoticeRaised
from tui.model.frozen import Frozen
from tui.model.requests import ANY_WORDING, Reply, ReplyAction, ToolChangeRequest
from tui.model.servers import Origin, ServerId
from tui.model.trust import ToolChange

FOLDER_NAME: Final = "pins"

MAX_PINNED: Final = 2_000
"""Tools of one server that are remembered; further ones are not.

A server that shows many new tools must not make those forgotten that the user knows.
"""

MAX_DEFINITION: Final = 64_000
"""Longest definition that is kept, in characters of JSON; of a longer one only its hash is."""

MAX_KEPT: Final = 8_000_000
"""Characters of definitions that are kept for one server; of further tools only the hashes."""

_KEY: Final = "tools"

PinKey = str
"""SHA-256 (hex) of a tool's name as the server spells it, which may be no valid Unicode."""

MAX_CHANGES: Final = 50
"""Changed tools in one question; of more, the next are asked about after it."""

MAX_ANSWERED: Final = 10_000
"""Changed definitions of one server that are known not to be accepted; of more, those that are
offered now."""

CHANGED: Final = "it has changed and is hidden from the model until you accept the change"
MARKED: Final = "it is marked and is hidden from the model until you have reviewed it"
"""Why a tool is withheld about which the user can be asked."""

UNREADABLE: Final = "it has changed, and its definition is too long to review"
MARKED_UNREADABLE: Final = "it is marked, and its definition is too long to review"
"""Why a tool is withheld about which nobody can be asked."""


class Pin(Frozen):
    """A tool's definition as the user knew it.

    Attributes:
        definition_hash: Its hash.
        definition: It as JSON text; empty where that is too long to be kept.
        is_seen: Whether the user was shown it, and accepted it.
    """

    definition_hash: str
    definition: str = ""
    is_seen: bool = False


_PINS: Final = EntryFormat(Pin, {"definition_hash": "hash", "is_seen": "seen"})


def pin_key(name: str) -> PinKey:
    """Return the key under which a tool's pin is kept."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


class PinStore:
    """Keeps pins in a file for each server. Its methods block on that file.

    Args:
        folder: The folder of the files; it is made. None keeps nothing.
        on_problem: Takes a sentence for the user, in the thread that uses a file.
    """

    def __init__(self, folder: Path | None, on_problem: Callable[[str], None]) -> None:
        self._files = ServerFiles(folder, on_problem)

    def load(self, fingerprint: str) -> dict[PinKey, Pin]:
        """Return the pins of a server."""
        file = self._files.of(fingerprint)
        return _read(file.load() or {}) if file is not None else {}

    def save(self, fingerprint: str, pins: Mapping[PinKey, Pin], *, replacing: bool) -> None:
        """Add pins of a server.

        Args:
            fingerprint: The server.
            pins: The pins.
            replacing: Whether they take the place of others of the same tools. A first sight
                does not: another gemdeck may have seen an earlier definition.
        """

        def change(content: dict[str, Any]) -> dict[str, Any]:
            known = _read(content)
            merged = {**known, **pins} if replacing else {**pins, **known}
            order = [*known, *(key for key in pins if key not in known)]
            return {**content, _KEY: _write({key: merged[key] for key in order})}

        file = self._files.of(fingerprint)
        if file is not None:
            file.update(change)


def _write(pins: Mapping[PinKey, Pin]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    room = MAX_KEPT
    for key in list(pins)[:MAX_PINNED]:
        pin = pins[key]
        if len(pin.definition) > min(room, MAX_DEFINITION):
            pin = replace(pin, definition="")
        room -= len(pin.definition)
        entries[key] = _PINS.write(pin)
    return entries


def _read(content: Mapping[str, Any]) -> dict[PinKey, Pin]:
    """Read the pins of a file; an entry that is odd in any way is passed over."""
    found = as_object(content.get(_KEY)).items()
    return {key: pin for key, entry in found if (pin := _PINS.read(entry)) is not None}


@dataclass(slots=True)
class _Known:
    """What is known of one server.

    Attributes:
        definition: The server.
        pins: The definitions the user knows, by the key of the tool's name.
        tools: The usable tools that it offers.
        changed: Those of them that are not as known, by their names.
        answered: The hashes of changed definitions that were not accepted in this run.
        asked: The tools that the user is asked about, as they are shown.
        asking: Makes the question and takes the answer.
    """

    definition: ServerDefinition
    pins: dict[PinKey, Pin] = field(default_factory=dict)
    tools: Sequence[Tool] = ()
    changed: dict[str, Tool] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    asked: tuple[Tool, ...] = ()
    asking: asyncio.Task[None] | None = None


class ToolReview(ToolVisibility):
    """Finds changed tools and asks the user about them. Lives on one event loop.

    Args:
        desk: Asks the user; if nobody is there, a notice says what is withheld.
        publish: Takes `ToolRuleChanged` with each answer, and notices.
        store: Keeps definitions across runs.
        policy: The rules on tools.

    Attributes:
        on_accepted: Called when tools are no longer to be withheld.
        withholds_marked: Whether marked tools are withheld until the user has accepted them.
    """

    def __init__(self, desk: Desk, publish: Publish, store: PinStore, policy: Policy) -> None:
        self._desk, self._publish = desk, publish
        self._store, self._policy = store, policy
        self._servers: dict[ServerId, _Known] = {}
        self._tasks = TaskSet("changed tools could not be asked about")
        self._worker = OrderedWorker()
        self.on_accepted: Callable[[], None] = lambda: None
        self.withholds_marked = False

    async def aclose(self) -> None:
        """End what is being prepared, and write what is still to be written."""
        await self._tasks.aclose()
        await asyncio.to_thread(self._worker.close)

    async def prepare(self, definition: ServerDefinition) -> None:
        """Read the pins of a server; a changed server starts over."""
        known = self._servers.get(definition.id)
        if known is not None:
            one, other = known.definition, definition
            if one.fingerprint == other.fingerprint and (one.fingerprint or one == other):
                known.definition = definition
                return
        pins = await asyncio.to_thread(self._store.load, definition.fingerprint)
        self._drop(definition.id)
        self._servers[definition.id] = _Known(definition, pins)

    def is_known(self, definition: ServerDefinition, tool: Tool) -> bool:
        """Return whether a tool is just as the user knows it; what cannot be used may be any."""
        known = self._servers.get(definition.id)
        pin = known.pins.get(pin_key(tool.name)) if known is not None else None
        is_as_pinned = pin is not None and self._is_as_pinned(definition, tool, pin)
        return is_as_pinned or not tool.is_usable or definition.entry.origin is Origin.DEMO

    def keep_only(self, servers: Collection[ServerId]) -> None:
        """Forget servers that are gone, with their questions."""
        for server in self._servers.keys() - set(servers):
            self._drop(server)

    def withhold(
        self, definition: ServerDefinition, tools: Sequence[Tool]
    ) -> Mapping[str, Withheld]:
        """Return the tools to hide from the model: denied ones, and those that changed.

        New tools become known, unless they are marked and the user has to see them. The user is
        asked about changed ones, unless that was done. The
        servers that come with gemdeck change with it.
        """
        usable = [tool for tool in tools if tool.is_usable]
        named = [(tool.name, tool.definition_hash) for tool in usable]
        denied = self._policy.hidden(definition, named)
        known = self._servers.setdefault(definition.id, _Known(definition))
        new: dict[PinKey, Pin] = {}
        known.tools, known.changed = usable, {}
        for tool in usable if definition.entry.origin is not Origin.DEMO else ():
            if tool.name in denied:
                continue
            key = pin_key(tool.name)
            pin = known.pins.get(key)
            if self._is_unseen(tool, pin):
                known.changed[tool.name] = tool
            elif pin is None:
                if len(known.pins) < MAX_PINNED:
                    new[key] = known.pins[key] = _pin(tool)
            elif not self._is_as_pinned(definition, tool, pin):
                known.changed[tool.name] = tool
        if new:
            self._save(definition.fingerprint, new, replacing=False)
        if len(known.answered) > MAX_ANSWERED:
            known.answered &= {tool.definition_hash for tool in known.changed.values()}
        self._ask_if_needed(known)
        return {name: Withheld(reason) for name, reason in denied.items()} | {
            name: Withheld(_reason(known, tool), changed=True)
            for name, tool in known.changed.items()
        }

    def _is_unseen(self, tool: Tool, pin: Pin | None) -> bool:
        """Return whether a tool is withheld because it is marked."""
        is_seen = pin is not None and pin.is_seen and pin.definition_hash == tool.definition_hash
        return self.withholds_marked and bool(tool.view.marks) and not is_seen

    def _is_as_pinned(self, definition: ServerDefinition, tool: Tool, pin: Pin) -> bool:
        is_same = pin.definition_hash == tool.definition_hash
        return is_same or (_is_readable(tool) and self._policy.takes_any_wording(definition, tool))

    async def accept(
        self, server: ServerId, tool: str = "", *, any_wording: bool = False
    ) -> tuple[ToolChange, ...]:
        """Accept the changed tools of a server; return how each has changed.

        Args:
            server: The server.
            tool: The only one to accept, by its name as shown; empty for all.
            any_wording: Whether to accept whatever their descriptions say from now on.
        """
        if (known := self._servers.get(server)) is None:
            return ()
        named = [t for t in known.tools if tool in {"", t.view.name} and _is_readable(t)]
        due = [one for one in named if one.name in known.changed]
        changes, unreadable = await asyncio.to_thread(_changes, due, _before(known, due))
        chosen, answer = (named, ANY_WORDING) if any_wording else (due, Reply(ReplyAction.ACCEPT))
        self._take(known, [t for t in chosen if t.definition_hash not in unreadable], answer)
        return changes

    def review(self, server: ServerId) -> None:
        """Ask anew about the changed tools of a server."""
        known = self._servers.get(server)
        if known is not None:
            known.answered.clear()
            if known.asking is not None and known.asking.done():
                known.asked = ()  # it could not be asked
            self._ask_if_needed(known)

    def _ask_if_needed(self, known: _Known) -> None:
        """Update the open question to match the changed tools."""
        due = [
            tool
            for tool in known.changed.values()
            if tool.definition_hash not in known.answered and _is_readable(tool)
        ][:MAX_CHANGES]
        if [tool.definition_hash for tool in due] == [t.definition_hash for t in known.asked]:
            return
        self._withdraw(known)
        if due:
            known.asked = tuple(due)
            known.asking = self._tasks.start(self._ask(known, known.asked))

    async def _ask(self, known: _Known, tools: tuple[Tool, ...]) -> None:
        """Make the question in a thread, put it, and act on the answer."""
        changes, unreadable = await asyncio.to_thread(_changes, tools, _before(known, tools))
        known.answered.update(unreadable)
        known.asked = tuple(tool for tool in tools if tool.definition_hash not in unreadable)
        server = known.definition.id
        if not self._desk.attended:
            names = ", ".join(change.tool for change in changes[:MAX_CHANGES])
            did = "offers marked tools" if all(c.is_new for c in changes) else "changed these tools"
            text = f"The server {server} {did}; they are now withheld: {names}."
            advice = f"To review and accept the changes: gemdeck mcp accept {shlex.quote(server)}"
            self._publish(NoticeRaised(Notice(Severity.WARNING, text, advice)))
        elif changes:
            answer = await self._desk.ask(ToolChangeRequest(self._desk.new_id(), server, changes))
            asked, known.asked, known.asking = known.asked, (), None
            self._take(known, asked, answer)

    def _take(self, known: _Known, asked: Sequence[Tool], answer: Reply) -> None:
        one, verb = known.definition, "accept" if answer.allows else "refuse"
        decision = f"{verb} {answer.text or 'change'}"
        for tool in asked:
            if answer == ANY_WORDING:
                self._policy.take_any_wording(one, tool)
            named = tool.view.name, tool.definition_hash
            self._publish(ToolRuleChanged(one.id, one.fingerprint, *named, decision))
        if answer.allows:
            pins = {pin_key(t.name): replace(_pin(t), is_seen=True) for t in asked}
            known.pins.update(pins)
            self._save(known.definition.fingerprint, pins, replacing=True)
            self.on_accepted()
        else:
            known.answered.update(tool.definition_hash for tool in asked)
            self._ask_if_needed(known)

    def _withdraw(self, known: _Known) -> None:
        known.asked = ()
        if known.asking is not None:
            known.asking.cancel()
            known.asking = None

    def _drop(self, server: ServerId) -> None:
        known = self._servers.pop(server, None)
        if known is not None:
            self._withdraw(known)

    def _save(self, fingerprint: str, pins: Mapping[PinKey, Pin], *, replacing: bool) -> None:
        self._worker.submit(partial(self._store.save, fingerprint, dict(pins), replacing=replacing))


def _is_readable(tool: Tool) -> bool:
    return len(tool.definition) <= MAX_DEFINITION


def _pin(tool: Tool) -> Pin:
    return Pin(tool.definition_hash, tool.definition if _is_readable(tool) else "")


def _before(known: _Known, tools: Iterable[Tool]) -> list[str | None]:
    """Return the definitions as they were known; None for tools that have not changed."""
    pins = [(known.pins.get(pin_key(tool.name)), tool.definition_hash) for tool in tools]
    return [pin.definition if pin and pin.definition_hash != now else None for pin, now in pins]


def _reason(known: _Known, tool: Tool) -> str:
    """Say why a tool is withheld that changed or is marked."""
    if _before(known, [tool]) == [None]:
        return MARKED if _is_readable(tool) else MARKED_UNREADABLE
    return CHANGED if _is_readable(tool) else UNREADABLE


def _changes(
    tools: Sequence[Tool], before: Sequence[str | None]
) -> tuple[tuple[ToolChange, ...], frozenset[str]]:
    """Return how tools changed, and the hashes of those that cannot be shown."""
    changes: list[ToolChange] = []
    unreadable: set[str] = set()
    for tool, known in zip(tools, before, strict=True):
        try:
            lines, marks = difference(known, tool.definition), tool.view.marks
            changes.append(ToolChange(tool.view.name, lines, marks, known is None))
        except UnreadableDefinitionError:
            unreadable.add(tool.definition_hash)
    return tuple(changes), frozenset(unreadable)
