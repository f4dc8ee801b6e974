"""Tools whose definitions changed: kept from the model until the user has seen how.

The first definition of a tool that is seen of a server counts as the one the user chose with the
server. A later one that differs voids nothing but itself: once the tool is as it was, it is
offered again.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tui.engine.consent.changes.difference import UnreadableDefinitionError, difference
from tui.engine.consent.changes.pins import (
    MAX_DEFINITION,
    MAX_PINNED,
    Pin,
    PinKey,
    PinStore,
    pin_key,
)
from tui.engine.events import Publish
from tui.engine.servers.catalog import Tool
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.threads import OrderedWorker
from tui.model.chat import Severity
from tui.model.consent import RequestId
from tui.model.events import Notice, NoticeRaised, RequestRaised, RequestSettled
from tui.model.servers import Origin, ServerId
from tui.model.trust import ToolChange, ToolChangeRequest

MAX_CHANGES: Final = 50
"""Changed tools in one question; of more, the next are asked about after it."""

MAX_ANSWERED: Final = 10_000
"""Changed definitions of one server that are known not to be accepted; of more, those that are
offered now."""

CLOSE_PATIENCE: Final = 5.0
"""Seconds that the last definitions get to be written."""

CHANGED: Final = "it has changed; the model does not see it until you accept the change"
"""Why a tool is withheld about which the user can be asked."""

UNREADABLE: Final = "it has changed, and its definition is too long to be reviewed"
"""Why a tool is withheld about which nobody can be asked."""

OnAnswered = Callable[[ServerDefinition, Sequence[Tool], bool], None]
"""Takes an answer about changed tools."""

_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    """What is known of one server.

    Attributes:
        definition: The server.
        pins: The definitions the user knows, by the key of the tool's name.
        changed: The tools that are not as known, by their names.
        answered: The hashes of changed definitions that were not accepted in this run.
        request: The question that is open, or None.
        asked: The tools that it is about, as they are shown in it.
        asking: Makes the question.
    """

    definition: ServerDefinition
    pins: dict[PinKey, Pin] = field(default_factory=dict)
    changed: dict[str, Tool] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    request: RequestId | None = None
    asked: tuple[Tool, ...] = ()
    asking: asyncio.Task[None] | None = None


class ToolReview:
    """Finds changed tools, and asks the user about them. Lives on one event loop.

    Args:
        publish: Takes `RequestRaised` with a `ToolChangeRequest`, and `RequestSettled`.
        store: Keeps definitions across runs.
        has_user: Whether somebody sits before a screen; else a notice says what is withheld.

    Attributes:
        on_accepted: Called when tools are no longer to be withheld.
        on_answered: Called with the server and the tools of each answer, and whether they were
            accepted as they are now.
    """

    def __init__(self, publish: Publish, store: PinStore, *, has_user: bool = True) -> None:
        self._publish = publish
        self._store = store
        self._has_user = has_user
        self._servers: dict[ServerId, _Known] = {}
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._worker = OrderedWorker()
        self.on_accepted: Callable[[], None] = lambda: None
        self.on_answered: OnAnswered = lambda _server, _tools, _accepted: None

    async def aclose(self) -> None:
        """End what is being prepared, and write what is still to be written."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._worker.close, CLOSE_PATIENCE)

    async def prepare(self, definition: ServerDefinition) -> None:
        """Read what is known of a server; one that is another now is not known any longer."""
        known = self._servers.get(definition.id)
        if known is not None and _is_same(known.definition, definition):
            known.definition = definition
            return
        pins = await asyncio.to_thread(self._store.load, definition.fingerprint)
        self._drop(definition.id)
        self._servers[definition.id] = _Known(definition, pins)

    def keep_only(self, servers: Collection[ServerId]) -> None:
        """Forget servers that are no longer there, with their questions."""
        for server in self._servers.keys() - set(servers):
            self._drop(server)

    def examine(self, definition: ServerDefinition, tools: Sequence[Tool]) -> Mapping[str, str]:
        """Compare the tools of a server with what is known of them.

        New tools become known. The user is asked about changed ones, unless that was done. The
        servers that come with gemdeck change with it, and are left out.

        Returns:
            The names of the changed ones, as the server spells them, and why each is withheld.
        """
        known = self._servers.get(definition.id)
        if known is None:
            known = self._servers[definition.id] = _Known(definition)
        if definition.origin is Origin.DEMO:
            return {}
        new: dict[PinKey, Pin] = {}
        known.changed = {}
        for tool in tools:
            if not tool.is_usable:
                continue
            key = pin_key(tool.name)
            pin = known.pins.get(key)
            if pin is None:
                if len(known.pins) < MAX_PINNED:
                    new[key] = known.pins[key] = _pin(tool)
            elif pin.definition_hash != tool.definition_hash:
                known.changed[tool.name] = tool
        if new:
            self._save(definition.fingerprint, new, replacing=False)
        if len(known.answered) > MAX_ANSWERED:
            known.answered &= {tool.definition_hash for tool in known.changed.values()}
        self._ask_if_needed(known)
        return {
            name: CHANGED if _is_readable(tool) else UNREADABLE
            for name, tool in known.changed.items()
        }

    def answer(self, request: RequestId, *, accept: bool) -> None:
        """Take the user's answer. One to a question that is not open is ignored."""
        known = next((k for k in self._servers.values() if k.request == request), None)
        if known is None:
            return
        asked = known.asked
        self._withdraw(known)
        self.on_answered(known.definition, asked, accept)
        if accept:
            pins = {pin_key(tool.name): _pin(tool) for tool in asked}
            known.pins.update(pins)
            self._save(known.definition.fingerprint, pins, replacing=True)
            self.on_accepted()
        else:
            known.answered.update(tool.definition_hash for tool in asked)
            self._ask_if_needed(known)

    def review(self, server: ServerId) -> None:
        """Ask anew about the changed tools of a server."""
        known = self._servers.get(server)
        if known is not None:
            known.answered.clear()
            self._ask_if_needed(known)

    def _ask_if_needed(self, known: _Known) -> None:
        """Bring the open question in line with what is to be asked."""
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
            known.asking = self._spawn(self._ask(known, known.asked))

    async def _ask(self, known: _Known, tools: tuple[Tool, ...]) -> None:
        """Make the question in a thread, and put it."""
        before = [known.pins[pin_key(tool.name)].definition for tool in tools]
        changes, unreadable = await asyncio.to_thread(_changes, tools, before)
        if known.asked is not tools:
            return
        known.answered.update(unreadable)
        known.asked = tuple(tool for tool in tools if tool.definition_hash not in unreadable)
        server = known.definition.id
        if not self._has_user:
            names = ", ".join(change.tool for change in changes[:MAX_CHANGES])
            text = f"The server {server} changed tools, which are withheld: {names}"
            advice = "Open gemdeck in this folder to see how and to accept them."
            self._publish(NoticeRaised(Notice(Severity.WARNING, text, advice)))
        elif changes:
            known.request = RequestId(f"c{next(self._numbers)}")
            self._publish(RequestRaised(ToolChangeRequest(known.request, server, changes)))

    def _withdraw(self, known: _Known) -> None:
        known.asked = ()
        if known.asking is not None:
            known.asking.cancel()
            known.asking = None
        if known.request is not None:
            request, known.request = known.request, None
            self._publish(RequestSettled(request))

    def _drop(self, server: ServerId) -> None:
        known = self._servers.pop(server, None)
        if known is not None:
            self._withdraw(known)

    def _save(self, fingerprint: str, pins: Mapping[PinKey, Pin], *, replacing: bool) -> None:
        save = partial(self._store.save, fingerprint, dict(pins), replacing=replacing)
        self._worker.submit(save)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("changed tools could not be asked about", exc_info=error)


def _is_same(one: ServerDefinition, other: ServerDefinition) -> bool:
    """Tell whether two definitions are of the same server."""
    if one.fingerprint or other.fingerprint:
        return one.fingerprint == other.fingerprint
    return one == other


def _is_readable(tool: Tool) -> bool:
    return len(tool.definition) <= MAX_DEFINITION


def _pin(tool: Tool) -> Pin:
    return Pin(tool.definition_hash, tool.definition if _is_readable(tool) else "")


def _changes(
    tools: Sequence[Tool], before: Sequence[str]
) -> tuple[tuple[ToolChange, ...], frozenset[str]]:
    """Show how tools changed; give the hashes of those that cannot be shown beside."""
    changes: list[ToolChange] = []
    unreadable: set[str] = set()
    for tool, known in zip(tools, before, strict=True):
        try:
            changes.append(ToolChange(tool.view.name, difference(known, tool.definition)))
        except UnreadableDefinitionError:
            unreadable.add(tool.definition_hash)
    return tuple(changes), frozenset(unreadable)
