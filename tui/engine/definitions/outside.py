"""Stub until the branch `outside` is merged."""

from pathlib import Path

from tui.engine.definitions.definition import ServerDefinition


def needs_folder(definition: ServerDefinition, folder: Path, home: Path) -> str:
    """Return why a server needs a folder, or ""."""
    del definition, folder, home
    return ""
