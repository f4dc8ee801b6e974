"""Storage of grants: in memory immediately, in the state file soon after, in a thread."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from tui.engine.approval.grants import (
    Grant,
    GrantNote,
    GrantSet,
    read_all,
    write_all,
)
from tui.engine.files.state_file import Stamp, StateFile
from tui.engine.threads import OrderedWorker
from tui.model.consent import GrantScope

FILE_NAME: Final = "grants.json"

USE_DELAY: Final = 30.0
"""Seconds after which the use of grants is written: one write for all uses meanwhile."""

SHOW_DELAY: Final = 1.0
"""Seconds after which the use of grants is shown, all uses meanwhile at once."""

CLOSE_PATIENCE: Final = 5.0
"""Seconds that the last changes get to be written."""

_KEY: Final = "grants"

Change = Callable[[dict[Grant, GrantNote]], dict[Grant, GrantNote]]
"""Makes the saved grants of those that the file holds; does nothing but compute."""


class GrantBook:
    """The grants of this run and the saved ones.

    Only changes are written, onto what the file holds at that moment: another gemdeck's grants
    stay, and what it revoked does not come back. What it revoked ends here, too, with the next
    `refresh`. Lives on one event loop.

    Args:
        file: The file of saved grants; without one all grants last for this run.
        clock: Gives seconds since the epoch.

    Attributes:
        grants: The grants that hold now.
        on_used: Called some time after grants were used.
    """

    def __init__(
        self, file: StateFile | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.grants = GrantSet()
        self.on_used: Callable[[], None] = lambda: None
        self._file = file
        self._clock = clock
        self._worker = OrderedWorker()
        self._submitted = self._written = 0
        self._stamp: Stamp = ()
        self._refreshing = asyncio.Lock()
        self._used: dict[Grant, float] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    @property
    def is_kept(self) -> bool:
        """Whether saved grants reach the disk; also where none are to be saved."""
        return self._file is None or self._file.is_kept

    async def refresh(self) -> bool:
        """Reload the file if another gemdeck has written it.

        While a change of our own waits to be written, nothing is read: it would be lost. Those
        who wait go on in the order in which they came.

        Returns:
            Whether other grants hold than before.
        """
        file = self._file
        if file is None:
            return False
        async with self._refreshing:
            changes = self._submitted
            if changes != self._written:
                return False
            found = await asyncio.to_thread(_read_if_new, file, self._stamp)
            if found is None or self._submitted != changes:
                return False
            self._stamp, saved = found
            return self._take(saved)

    async def aclose(self) -> None:
        """Write what is still to be written."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._write_uses()
        await asyncio.to_thread(self._worker.close, CLOSE_PATIENCE)

    def add(self, grants: Mapping[Grant, GrantNote]) -> None:
        """Add grants, as given now."""
        now = self._clock()
        added = {grant: replace(note, granted_at=now) for grant, note in grants.items()}
        for grant, note in added.items():
            self.grants.put(grant, note)
        saved = {g: note for g, note in added.items() if g.scope is not GrantScope.SESSION}
        if saved:
            self._change(lambda known: {**known, **saved})

    def remove(self, grant: Grant) -> None:
        """Forget a grant."""
        self.grants.remove(grant)
        self._used.pop(grant, None)
        if grant.scope is not GrantScope.SESSION:
            self._change(lambda known: {g: note for g, note in known.items() if g != grant})

    def use(self, grant: Grant) -> None:
        """Note that a call rests on a grant now."""
        if grant not in self.grants:
            return
        now = self._clock()
        self.grants.put(grant, replace(self.grants.note(grant), used_at=now))
        self._used[grant] = now
        self._later("show", SHOW_DELAY, self.on_used)
        if grant.scope is not GrantScope.SESSION:
            self._later("write", USE_DELAY, self._write_uses)

    def _take(self, saved: Mapping[Grant, GrantNote]) -> bool:
        """Replace the saved grants; return whether they changed."""
        known = {grant for grant in self.grants if grant.scope is not GrantScope.SESSION}
        for grant in known - saved.keys():
            self.grants.remove(grant)
            self._used.pop(grant, None)
        for grant, note in saved.items():
            self.grants.put(grant, _used(note, self._used.get(grant)))
        return known != saved.keys()

    def _later(self, name: str, delay: float, what: Callable[[], None]) -> None:
        """Call something once after a delay, however often this is requested meanwhile."""
        if name not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[name] = loop.call_later(delay, self._due, name, what)

    def _due(self, name: str, what: Callable[[], None]) -> None:
        del self._timers[name]
        what()

    def _write_uses(self) -> None:
        """Write when grants were used last; one that another gemdeck revoked stays away."""
        used = {g: when for g, when in self._used.items() if g.scope is not GrantScope.SESSION}
        self._used.clear()
        if used:
            self._change(lambda known: {g: _used(note, used.get(g)) for g, note in known.items()})

    def _change(self, change: Change) -> None:
        file = self._file
        if file is not None:
            self._submitted += 1
            self._worker.submit(lambda: self._write(file, change))

    def _write(self, file: StateFile, change: Change) -> None:
        """Write a change, in the worker's thread."""
        try:
            file.update(partial(_changed, change))
        finally:
            self._written += 1


def _used(note: GrantNote, when: float | None) -> GrantNote:
    """Note the later one of two uses."""
    if when is None:
        return note
    return replace(note, used_at=max(when, note.used_at or when))


def _read_if_new(file: StateFile, known: Stamp) -> tuple[Stamp, dict[Grant, GrantNote]] | None:
    """Read the file, unless it is the one that is known already. Blocks."""
    stamp = file.stamp()
    if stamp == known:
        return None
    return stamp, read_all((file.load() or {}).get(_KEY))


def _changed(change: Change, content: dict[str, Any]) -> dict[str, Any]:
    """Apply a change of grants to the content of the file."""
    return {**content, _KEY: write_all(change(read_all(content.get(_KEY))))}
