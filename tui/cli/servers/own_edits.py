"""Edits of settings files by a command: they are the user's own word, and nobody is asked again."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tui.cli.command import CommandError, shown
from tui.cli.output import say
from tui.engine.consent.folder_trust.folder_gate import OpenedFolder
from tui.engine.consent.folder_trust.new_servers import written_keys
from tui.engine.files.paths import usable_state_dir
from tui.engine.reload import read_settings
from tui.engine.settings.sources.dotenv import leads_out
from tui.engine.settings.sources.locations import FILE_NAME, FOLDER_NAME
from tui.model.servers import ServerId


def file_of(scope: str) -> Path:
    """Return the file of a scope.

    Raises:
        CommandError: If the folder's leads out of it, perhaps to the user's own.
    """
    folder = Path.home() if scope == "user" else Path.cwd()
    path = folder / FOLDER_NAME / FILE_NAME
    if scope == "project" and leads_out(path, folder, Path.home(), []):
        raise CommandError(f"{shown(path)} leads out of this folder, so it is not written.")
    return path


def edited(
    path: Path,
    scope: str,
    name: str,
    change: Callable[[], None],
    entry: Mapping[str, Any] | None = None,
) -> None:
    """Change a server in a file; a gemdeck that runs meanwhile takes it without a question.

    A trusted folder stays trusted with what the change makes of it, and the user's new server
    counts as accepted. Blocks.

    Args:
        path: The file.
        scope: ``user`` or ``project``.
        name: The server.
        change: Changes the file.
        entry: What is written, or None.
    """
    opened = OpenedFolder(Path.cwd(), Path.home(), usable_state_dir(), (), say, attended=False)
    if scope == "user" and entry is not None:
        opened.store.add(written_keys(entry, opened.salt)[1])
    before = read_settings(opened, None).settings.project
    change()
    opened.trust_edit(before, read_settings(opened, None).settings.project, ServerId(name))
    if path.exists():
        os.utime(path)  # who read the file before the folder was trusted again reads it once more
