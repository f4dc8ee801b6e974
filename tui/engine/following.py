"""Reads the settings while the engine runs: again when they change, or when it is asked to."""

import asyncio
import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tui.engine.events import Publish

if TYPE_CHECKING:
    from tui.engine.consent.folders.gate import FolderGate
    from tui.engine.reload import SettingsReloader
    from tui.engine.settings.loader import LoadedSettings


class SettingsFollower:
    """Follows the settings of a folder; what reads them is imported in a thread.

    Args:
        folder: The opened folder.
        model: The model named on the command line, or None.
        apply: Takes settings that were read.
        publish: Takes notices of what is wrong in them.
        watches: Whether edits of the files take effect by themselves.
    """

    def __init__(
        self,
        folder: Path,
        model: str | None,
        apply: Callable[["LoadedSettings"], None],
        publish: Publish,
        *,
        watches: bool,
    ) -> None:
        self._folder = folder
        self._model = model
        self._apply = apply
        self._publish = publish
        self._watches = watches
        self._reloader: SettingsReloader | None = None
        self._is_wanted = False

    async def run(self, loaded: "LoadedSettings", gate: "Callable[[], FolderGate]") -> None:
        """Follow them until cancelled.

        Args:
            loaded: What was read at first.
            gate: Gives what decides on the folder's part, for each reading.
        """
        module = await asyncio.to_thread(importlib.import_module, "tui.engine.reload")
        self._reloader = reloader = module.SettingsReloader(
            self._folder,
            self._model,
            loaded,
            self._apply,
            self._publish,
            gate=gate,
            watches=self._watches,
        )
        if self._is_wanted:
            reloader.reload()
        await reloader.run()

    def reload(self) -> None:
        """Have the settings read and applied again, soon."""
        self._is_wanted = True
        if self._reloader is not None:
            self._reloader.reload()

    def load(self, gate: "FolderGate") -> "LoadedSettings":
        """Read the settings through a gate, without applying them. Blocks."""
        module = importlib.import_module("tui.engine.settings.loader")
        loaded: LoadedSettings = module.load_settings(
            self._folder, environ=os.environ, project=gate
        )
        return loaded
