"""Live reload: edits of settings files reach the servers while gemdeck runs."""

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from tui.engine.configuration import problem_notice
from tui.engine.events import Publish
from tui.engine.settings.extensions import extensions_folder
from tui.engine.settings.loader import LoadedSettings, load_settings
from tui.engine.settings.project import ProjectGate
from tui.engine.settings.watcher import Plan, make_plan, settings_files, watch
from tui.model.chat import Severity
from tui.model.events import Notice, NoticeRaised
from tui.model.settings import GemdeckSettings

_AS_BEFORE: Final = "The servers stay as they are until the file is corrected."
_log: Final = logging.getLogger(__name__)


class SettingsReloader:
    """Reads the settings again when their files change.

    A file that cannot be read any more, as one that is half written, changes nothing: what was
    read before holds until the file is whole. Of the new settings only the servers take effect.

    Args:
        folder: The opened folder.
        model: The model named on the command line, or None.
        loaded: What was read last.
        apply: Takes what was read now.
        publish: Takes notices of what is wrong, each once.
        gate: Gives what decides on the folder's part, for each reading.
        watches: Whether the files are watched; without, they are read when `reload` is called.
    """

    def __init__(
        self,
        folder: Path,
        model: str | None,
        loaded: LoadedSettings,
        apply: Callable[[LoadedSettings], None],
        publish: Publish,
        *,
        gate: Callable[[], ProjectGate] | None = None,
        watches: bool = True,
    ) -> None:
        self._folder = folder
        self._model = model
        self._loaded = loaded
        self._apply = apply
        self._publish = publish
        self._told = frozenset(loaded.problems)
        self._told_broken = _broken(loaded)
        self._gate = gate
        self._watches = watches
        self._forced = False
        self._changed = asyncio.Event()

    def reload(self) -> None:
        """Read and apply the settings again, soon, also where no file has changed."""
        self._forced = True
        self._changed.set()

    async def run(self) -> None:
        """Follow the files until cancelled; where the system cannot watch them, do nothing."""
        try:
            async with asyncio.TaskGroup() as tasks:
                if self._watches:
                    tasks.create_task(self._watch())
                while True:
                    await self._changed.wait()
                    self._changed.clear()
                    await self._reload()
        except* (OSError, RuntimeError) as errors:
            _log.warning("settings files are not read again: %s", errors.exceptions)

    async def _watch(self) -> None:
        """Follow the files; where the system cannot watch them, they are read when asked for."""
        try:
            await watch(self._find_plan, self._changed.set)
        except (OSError, RuntimeError) as error:
            _log.warning("settings files are not watched: %s", error)

    def _find_plan(self) -> Plan:
        home = Path.home()
        files = settings_files(self._folder, environ=os.environ, home=home)
        return make_plan(files, [extensions_folder(home)])

    async def _reload(self) -> None:
        """Read all files and apply what they say, unless one of them is newly broken."""
        forced, self._forced = self._forced, False
        gate = self._gate() if self._gate is not None else None
        load = partial(
            load_settings, self._folder, environ=os.environ, model=self._model, project=gate
        )
        loaded = await asyncio.to_thread(load)
        newly_broken = _broken(loaded) - _broken(self._loaded)
        self._tell(loaded, newly_broken)
        if newly_broken or (loaded == self._loaded and not forced):
            self._forced = forced and bool(newly_broken)
            return
        if _at_start_only(loaded) != _at_start_only(self._loaded):
            words = "What changed under gemdeck in the settings counts from the next start on."
            self._publish(NoticeRaised(Notice(Severity.INFO, words)))
        self._loaded = loaded
        self._apply(loaded)

    def _tell(self, loaded: LoadedSettings, newly_broken: set[str]) -> None:
        """Say what is wrong, if it was not said when the files were read last.

        Of a file that is broken it is said once, however its breaks change while it is edited.
        """
        for problem in loaded.problems:
            if problem in self._told or (problem.fatal and problem.file in self._told_broken):
                continue
            notice = problem_notice(problem)
            if problem.file in newly_broken:
                notice = replace(notice, advice=_AS_BEFORE)
            self._publish(NoticeRaised(notice))
        self._told = frozenset(loaded.problems)
        self._told_broken = _broken(loaded)


def _broken(loaded: LoadedSettings) -> set[str]:
    """Name the files that could not be used."""
    return {problem.file for problem in loaded.problems if problem.fatal}


def _at_start_only(loaded: LoadedSettings) -> GemdeckSettings:
    """Give the part of the settings that is not applied while gemdeck runs."""
    return loaded.gemdeck.model_copy(update={"protocols": {}, "always_deny": ()})
