"""Reads the settings, at first and again when their files change or an answer was kept."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.engine.background import import_alone
from tui.engine.bus import Publish
from tui.engine.definitions.bubblewrap import sandbox_problem
from tui.engine.definitions.definition import SettingsProblem
from tui.engine.definitions.fingerprint import Installation
from tui.engine.definitions.outside import NO_START_FOLDER, needs_folder, outside_places
from tui.engine.files.paths import GEMINI_FOLDER, extensions_folder, usable_state_dir
from tui.engine.settings.loader import KeyCheck, LoadedSettings, read_files
from tui.engine.settings.prohibitions import POLICIES, policy_places
from tui.engine.settings.sources.source import (
    EMPTY,
    ENABLEMENT,
    ENV_FILE,
    INSTALLATION,
    dotenv_files,
    layer_files,
    manifest_files,
    user_variables,
)
from tui.engine.trust.folder_identity import identify
from tui.engine.trust.judge import judge
from tui.engine.trust.opened_folder import OpenedFolder
from tui.engine.trust.trust_store import FILE_NAME, Standing
from tui.engine.trust.verdict import Answered, FolderVerdict, Seen
from tui.model.chat import Severity
from tui.model.events import Notice, NoticeRaised
from tui.model.frozen import Frozen
from tui.model.servers import ServerId
from tui.model.settings import GemdeckSettings

if TYPE_CHECKING:
    from watchfiles import Change

DEBOUNCE: Final = 0.3
"""Seconds without further changes before a change is reported."""

MAX_DELAY: Final = 1.5
"""Longest delay of a change while others follow, in seconds."""


_AS_BEFORE: Final = "The servers stay as they are until the file is fixed."
_NEXT_START: Final = "Other changes under “gemdeck” take effect at the next start."
_log: Final = logging.getLogger(__name__)


class WatchPlan(Frozen):
    """What is watched.

    Attributes:
        folders: Folders that exist; what is in them is watched, not what is below that.
        names: Full paths in those folders that count.
        listed: Folders whose everything counts.
    """

    folders: frozenset[str]
    names: frozenset[str]
    listed: frozenset[str]

    def concerns(self, change: "Change", path: str) -> bool:
        """Return whether a change counts."""
        if path in self.names or os.path.dirname(path) in self.listed:  # noqa: PTH120 - hot
            return True
        return self.ends(change, path)

    def ends(self, change: "Change", path: str) -> bool:
        return change.name == "deleted" and path in self.folders


def make_plan(files: Iterable[Path], listed: Iterable[Path]) -> WatchPlan:
    """Return what to watch to notice changes to files and to the contents of folders.

    Of a file in a folder that does not exist, the appearance of that folder is watched.
    """
    folders: set[str] = set()
    names: set[str] = set()
    for path in (*files, *(folder / "x" for folder in listed)):
        for place in {path, _real(path)}:
            parent, name = place.parent, place
            while not parent.is_dir() and parent != parent.parent:
                parent, name = parent.parent, parent
            folders.add(str(parent))
            names.add(str(name))
    kept = {str(place) for folder in listed for place in (folder, _real(folder))}
    return WatchPlan(frozenset(folders), frozenset(names), frozenset(kept & folders))


async def watch(find: Callable[[], WatchPlan], on_change: Callable[[], None]) -> None:
    """Call `on_change` whenever what is to be watched has changed, until canceled.

    It is also called when watching begins, for what may have changed just before.

    Args:
        find: Finds out what to watch; called in a thread, again after each change.
        on_change: Called soon after a change; others may follow at once.

    Raises:
        OSError: If the system cannot watch files, or not as many.
    """
    await asyncio.to_thread(import_alone, "watchfiles")
    plan = await asyncio.to_thread(find)
    while True:
        watching = asyncio.create_task(_wait(plan, on_change, find), name="watch settings files")
        try:
            await asyncio.sleep(0)  # from here on these folders are watched
            on_change()
            changed = await asyncio.to_thread(find)  # a folder that went before is not watched
            if changed == plan or watching.done():
                changed = await watching
            plan = changed
        finally:
            watching.cancel()


async def _wait(
    plan: WatchPlan, on_change: Callable[[], None], find: Callable[[], WatchPlan]
) -> WatchPlan:
    """Report changes until other paths, or the same anew, must be watched; return the plan."""
    from watchfiles import awatch  # noqa: PLC0415 - it takes longer to import than settings to read

    changes = awatch(
        *plan.folders,
        watch_filter=plan.concerns,
        debounce=int(MAX_DELAY * 1000),
        step=int(DEBOUNCE * 1000),
        rust_timeout=0,
        recursive=False,
        ignore_permission_denied=True,
    )
    async with aclosing(changes):
        async for batch in changes:
            changed = await asyncio.to_thread(find)
            if changed != plan or any(plan.ends(change, path) for change, path in batch):
                return changed
            on_change()
    return plan


def _real(path: Path) -> Path:
    """Resolve symbolic links."""
    return Path(os.path.realpath(path))


class Reading(Frozen):
    """What the settings files say, and what is known of the user's earlier answers.

    Attributes:
        settings: The settings, with as much of the opened folder's as counts by `verdict`.
        seen: The opened folder.
        record: What the user said of it in earlier runs, or for this run alone.
        verdict: What counted of it when it was read.
        refused: Servers of the user's settings that were refused, with the answer; see
            `own_servers.written_keys`.
        added: Servers that the user wrote there by a command; likewise.
        salt: The salt of this installation.
        no_sandbox: Why no sandbox can be had here, where servers of the folder may run; or "".
    """

    settings: LoadedSettings
    seen: Seen = Seen()
    record: Standing = Standing()
    verdict: FolderVerdict = FolderVerdict()
    refused: Mapping[str, str] = field(default_factory=dict)
    added: frozenset[str] = frozenset()
    salt: bytes = field(default=b"", repr=False)
    no_sandbox: str = ""


def read_settings(
    opened: OpenedFolder,
    model: str | None,
    answered: Answered | None = None,
    *,
    check_keys: KeyCheck = lambda _: {},
    tried: Mapping[str, object] | None = None,
) -> Reading:
    """Read all settings that count for the opened folder. Blocks.

    Args:
        opened: Knows what was said of the folder.
        model: The model named on the command line, or None.
        answered: What the user answered in this run.
        check_keys: Judges the user's keys.
        tried: Entries of servers to read as if they stood in the user's settings.
    """
    answered = answered or Answered()
    identity, folder, home = identify(opened.folder), opened.folder, opened.home
    record = opened.standing(identity)
    files = read_files(
        folder,
        environ=os.environ,
        home=home,
        model=model,
        known=Installation(opened.salt, identity.key if identity is not None else (), opened.state),
        reads_folder=identity is not None and (answered.review or not record.never),
        check_keys=check_keys,
        tried=tried,
    )
    no_place = "" if outside_places(opened.state, folder, home) else NO_START_FOLDER
    needs: dict[ServerId, str] = {}
    for _, one in files.own:
        is_program = one.launch.command != ""
        names_files = is_program or one.endpoint.tls is not None
        words = needs_folder(one, folder, home) if names_files else ""
        if words := words or (no_place if is_program and one.launch.cwd is None else ""):
            needs[one.id] = words
    seen = opened.see(identity, files.offer, needs)
    verdict = judge(seen, record, answered)
    opened.heed(seen, record, verdict)
    return Reading(
        files.settled(verdict.servers, verdict.rules),
        seen,
        record,
        verdict,
        opened.store.refused(),
        opened.store.added(),
        opened.salt,
        sandbox_problem()[0] if verdict.servers else "",  # before the user's yes nothing is run
    )


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
        """Watch the files of settings and of trust, whether they exist or not."""
        home = Path.home()
        real, state = Path(os.path.realpath(self._folder)), usable_state_dir()
        layers = layer_files(real, environ=os.environ, home=home, state=state)
        installed, manifests = extensions_folder(home), manifest_files(home)
        files = [
            *(layer.path for layer in layers),
            *(user_variables(home), home / GEMINI_FOLDER / ENABLEMENT, *dotenv_files(self._folder)),
            *manifests,
            *(installed / path.parent.name / INSTALLATION for path in manifests),
            *(path.parent / ENV_FILE for path in manifests),
            *self._last.settings.context.project,
            *([state / FILE_NAME] if state is not None else ()),
        ]
        beside = (path.parent / POLICIES for path in manifests)
        return make_plan(files, [installed, *beside, *policy_places(home, layers)])

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
            is_told = problem in self._told or (problem.fatal and problem.file in told_broken)
            if is_told or (problem.quiet and problem.file not in newly_broken):
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
    """Name the files that could not be used, or that were perhaps emptied by mistake."""
    return {one.file for one in problems if one.fatal or one.message == EMPTY}


def _at_start_only(loaded: LoadedSettings) -> GemdeckSettings:
    """Give the part of the settings that is not applied while gemdeck runs."""
    of_screen = ("bell", "title", "mouse", "keys", "prices")
    of_servers = ("protocols", "always_deny", "environment_block", "start", "sleep_after")
    at_once = (*of_screen, *of_servers, "profiles", "sandbox")
    return loaded.gemdeck.model_copy(update=dict.fromkeys(at_once))
