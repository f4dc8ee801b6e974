"""Reads the settings, at first and again when their files change or an answer was kept."""

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from tui.engine.bus import Publish
from tui.engine.definitions.definition import SettingsProblem
from tui.engine.definitions.folder_code import extensions_folder
from tui.engine.settings.loader import LoadedSettings, load_settings
from tui.engine.settings.prohibitions import policy_places
from tui.engine.settings.sources.source import layer_files
from tui.engine.settings.sources.watcher import WatchPlan, make_plan, settings_files, watch
from tui.engine.trust.folder_gate import FolderGate, OpenedFolder, Trust
from tui.engine.trust.starts import StartFinder
from tui.model.chat import Severity
from tui.model.events import Notice, NoticeRaised
from tui.model.frozen import dataclass
from tui.model.settings import GemdeckSettings

_AS_BEFORE: Final = "The servers stay as they are until the file is corrected."
_NEXT_START: Final = "Changes under “gemdeck” in the settings take effect at the next start."
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reading:
    """What the settings files say, and what the user's earlier answers say of it."""

    settings: LoadedSettings
    trust: Trust


def read_settings(opened: OpenedFolder, model: str | None, *, review: bool = False) -> Reading:
    """Read all settings that count for the opened folder. Blocks.

    Args:
        opened: Knows what was said of the folder.
        model: The model named on the command line, or None.
        review: Whether the user wants to see what the folder brings, whatever was said.
    """
    gate = FolderGate(opened, review=review)
    settings = load_settings(
        opened.folder, environ=os.environ, home=opened.home, model=model, project=gate
    )
    return Reading(settings, gate.trust(StartFinder(opened).find(settings.servers)))


class SettingsReader:
    """Gives the settings anew when something changed.

    If a file cannot be read any more, such as one that is half written, nothing is given: what
    was read before holds until the file is whole.

    Args:
        folder: The opened folder.
        read: Reads the settings; blocks.
        first: What was read at first.
        publish: Takes notices of what is wrong, each once.
    """

    def __init__(
        self, folder: Path, read: Callable[[], Reading], first: Reading, publish: Publish
    ) -> None:
        self._folder = folder
        self._read = read
        self._last = first
        self._publish = publish
        self._told = frozenset(first.settings.problems)
        self._forced = False
        self._changed = asyncio.Event()

    def read_again(self) -> None:
        """Let `changed` read the settings, and give them even if they are the same."""
        self._forced = True
        self._changed.set()

    @property
    def is_due(self) -> bool:
        return self._forced

    async def watch(self) -> None:
        """Follow the files until cancelled. Where the system cannot watch them, do nothing."""
        try:
            await watch(self._find_plan, self._changed.set)
        except (OSError, RuntimeError) as error:
            _log.warning("settings files are not watched: %s", error)

    async def changed(self) -> Reading:
        """Wait until there are new settings, and give them."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if (reading := await self._read_once()) is not None:
                return reading

    def _find_plan(self) -> WatchPlan:
        home = Path.home()
        files = settings_files(self._folder, environ=os.environ, home=home)
        layers = layer_files(self._folder, environ=os.environ, home=home)
        project = self._last.settings.context.project
        return make_plan(
            [*files, *project], [extensions_folder(home), *policy_places(home, layers)]
        )

    async def _read_once(self) -> Reading | None:
        """Read all files; give nothing if they say the same or one of them is newly broken."""
        forced, self._forced = self._forced, False
        reading = await asyncio.to_thread(self._read)
        before, now = self._last.settings, reading.settings
        newly_broken = _broken(now.problems) - _broken(before.problems)
        self._tell(now, newly_broken)
        if newly_broken or (reading == self._last and not forced):
            self._forced = self._forced or (forced and bool(newly_broken))
            return None
        if _at_start_only(now) != _at_start_only(before):
            self._publish(NoticeRaised(Notice(Severity.INFO, _NEXT_START)))
        self._last = reading
        return reading

    def _tell(self, loaded: LoadedSettings, newly_broken: set[str]) -> None:
        """Say what is wrong, if it was not said when the files were read last.

        Of a file that is broken it is said once, however its breaks change while it is edited.
        """
        told_broken = _broken(self._told)
        for problem in loaded.problems:
            if problem in self._told or (problem.fatal and problem.file in told_broken):
                continue
            notice = problem_notice(problem)
            if problem.file in newly_broken:
                notice = replace(notice, advice=_AS_BEFORE)
            self._publish(NoticeRaised(notice))
        self._told = frozenset(loaded.problems)


def problem_notice(problem: SettingsProblem) -> Notice:
    """Say what is wrong in a settings file."""
    return Notice(Severity.ERROR if problem.fatal else Severity.WARNING, str(problem))


def _broken(problems: "frozenset[SettingsProblem] | tuple[SettingsProblem, ...]") -> set[str]:
    """Name the files that could not be used."""
    return {problem.file for problem in problems if problem.fatal}


def _at_start_only(loaded: LoadedSettings) -> GemdeckSettings:
    """Give the part of the settings that is not applied while gemdeck runs."""
    at_once: dict[str, object] = {"protocols": {}, "always_deny": (), "environment_block": ()}
    return loaded.gemdeck.model_copy(update=at_once)
