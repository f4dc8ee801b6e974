"""Watch settings files for changes, at almost no cost while nothing changes."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.engine.background import import_alone
from tui.engine.definitions.folder_code import extensions_folder
from tui.engine.settings.sources.extensions import (
    INSTALLATION,
    manifest_files,
)
from tui.engine.settings.sources.source import (
    ENABLEMENT,
    ENV_FILE,
    FOLDER_NAME,
    dotenv_files,
    layer_files,
    user_variables,
)
from tui.model.frozen import dataclass

if TYPE_CHECKING:
    from watchfiles import Change

DEBOUNCE: Final = 0.3
"""Seconds without further changes before a change is reported."""

MAX_DELAY: Final = 1.5
"""Longest delay of a change while others follow, in seconds."""

Paths = tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class WatchPlan:
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


def settings_files(folder: Path, *, environ: Mapping[str, str], home: Path) -> Paths:
    """List the files that settings come from, whether they exist or not."""
    layers = [layer.path for layer in layer_files(folder, environ=environ, home=home)]
    manifests = manifest_files(home)
    installed = extensions_folder(home)
    links = [installed / path.parent.name / INSTALLATION for path in manifests]
    own = (user_variables(home), home / FOLDER_NAME / ENABLEMENT)
    given = (path.parent / ENV_FILE for path in manifests)
    return (*layers, *own, *dotenv_files(folder), *manifests, *links, *given)


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
