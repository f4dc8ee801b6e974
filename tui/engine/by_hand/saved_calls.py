"""Calls that the user saved under a name, in a file of the state folder."""

import asyncio
import re
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Final

from tui.engine.background import TaskSet
from tui.engine.bus import Publish
from tui.engine.files.entry_format import EntryFormat
from tui.engine.files.state_file import Content, StateFile
from tui.model.bounded_json import as_list
from tui.model.input.arguments import MAX_ARGUMENTS
from tui.model.runs import SAVED_NAME, SavedCall, SavedCallsChanged
from tui.model.servers import ServerId
from tui.text import sanitize, sanitize_line

FILE_NAME: Final = "calls.json"

MAX_SAVED: Final = 200
"""Calls that are saved at most."""

MAX_SAVED_TEXT: Final = 4 * 1024 * 1024
"""Characters of the arguments of all saved calls."""

SAVE_PATIENCE: Final = 5.0
"""Seconds that the last changes get to be written."""

_CALLS: Final = EntryFormat(SavedCall, {})

Saved = dict[tuple[ServerId, str], SavedCall]
"""Saved calls by their servers and names."""


class SavedCalls:
    """The saved calls. What another gemdeck saved is read with the next change. Lives on one loop.

    Args:
        folder: The state folder; None keeps them for this run.
        publish: Takes `SavedCallsChanged`.
        on_problem: Told where the file cannot be used; see `StateFile`.
    """

    def __init__(
        self, folder: Path | None, publish: Publish, on_problem: Callable[[str], None]
    ) -> None:
        self._file = StateFile(folder and folder / FILE_NAME, on_problem=on_problem)
        self._publish = publish
        self._calls: Saved = {}
        self._tasks = TaskSet("a saved call could not be written")
        self._in_order = asyncio.Lock()

    async def load(self) -> None:
        """Read the file."""
        if content := await asyncio.to_thread(self._file.load):
            self._take(content)

    async def aclose(self) -> None:
        """Write what is still to be written."""
        await self._tasks.wait(SAVE_PATIENCE)
        await self._tasks.aclose()

    def find(self, server: ServerId, name: str) -> SavedCall | None:
        return self._calls.get((server, name))

    def save(self, call: SavedCall) -> None:
        """Save a call, in place of one with its name.

        Raises:
            ValueError: If it cannot be saved; the message says why.
        """
        if re.fullmatch(SAVED_NAME, call.name) is None:
            words = "Use up to 40 letters, digits, - and _, beginning with a letter or digit."
            raise ValueError(words)
        kept = [one for key, one in self._calls.items() if key != (call.server, call.name)]
        size = sum(len(one.arguments) for one in (*kept, call))
        if len(kept) >= MAX_SAVED or size > MAX_SAVED_TEXT or not _is_whole(call):
            raise ValueError("There is no room for another saved call: delete one first.")
        self._tasks.start(self._change(call.server, call.name, call))

    def forget(self, server: ServerId, name: str) -> None:
        self._tasks.start(self._change(server, name, None))

    async def _change(self, server: ServerId, name: str, call: SavedCall | None) -> None:
        def changed(content: Content) -> Content:
            calls = _read(content)
            calls.pop((server, name), None)
            kept = [*calls.values(), *([call] if call is not None else ())]
            return {**content, "calls": [_CALLS.write(one) for one in kept]}

        async with self._in_order:
            self._take(await asyncio.to_thread(self._file.update, changed))

    def _take(self, content: Content) -> None:
        self._calls = _read(content)
        in_order = sorted(self._calls.values(), key=attrgetter("server", "tool", "name"))
        self._publish(SavedCallsChanged(tuple(in_order)))


def _read(content: Content) -> Saved:
    """Read the file's content; of too many calls the last ones count, and odd ones are left out."""
    found = map(_CALLS.read, as_list(content.get("calls"))[-MAX_SAVED:])
    return {(one.server, one.name): one for one in found if one is not None and _is_whole(one)}


def _is_whole(call: SavedCall) -> bool:
    """Return whether a call can be shown as it is, and named behind an ``@``."""
    is_shown = all(sanitize_line(one) == one for one in (call.server, call.tool))
    is_text = len(call.arguments) <= MAX_ARGUMENTS and sanitize(call.arguments) == call.arguments
    return is_shown and is_text and re.fullmatch(SAVED_NAME, call.name) is not None
