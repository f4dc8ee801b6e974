"""The files of context, read again for each turn."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from tui.engine.bus import Publish
from tui.engine.settings.sources.context_places import read_context
from tui.engine.tasks import TaskSet
from tui.model.context import ContextFile, ContextRead


class ContextFiles:
    """What the user, extensions and a trusted project tell the model.

    Args:
        publish: Takes `ContextRead` when they are not what they were.
        home: The user's home.
        tasks: Runs what is not waited for.
    """

    def __init__(self, publish: Publish, home: Path, tasks: TaskSet) -> None:
        self._tasks = tasks
        self._publish = publish
        self._home = home
        self._own: Sequence[Path] = ()
        self._project: Sequence[ContextFile] = ()
        self._told: tuple[ContextFile, ...] = ()

    def configure(self, own: Sequence[Path], project: Sequence[ContextFile]) -> None:
        """Set the places of the user's and extensions' files, and what the project says."""
        self._own, self._project = own, project
        self.refresh()

    def refresh(self) -> None:
        """Read them for the screen; each turn does so for itself."""
        self._tasks.start(self._refresh())

    async def _refresh(self) -> None:
        await self.read()

    async def read(self) -> Sequence[ContextFile]:
        """Read the user's and extensions' files, and add the project's as they were trusted."""
        own = await asyncio.to_thread(read_context, self._own, self._home)
        files = (*own, *self._project)
        if files != self._told:
            self._told = files
            self._publish(ContextRead(files))
        return files
