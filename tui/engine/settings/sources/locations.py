"""The locations of settings files, lowest layer first."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tui.model.frozen import dataclass
from tui.model.servers import Origin
from tui.text import sanitize_line

FILE_NAME: Final = "settings.json"
FOLDER_NAME: Final = ".gemini"
ENABLEMENT: Final = "mcp-server-enablement.json"
"""The file in which gemini-cli turns servers off."""

SHARED_FILE_NAME: Final = ".mcp.json"
"""The file in which projects of several clients list their servers."""

_SYSTEM_FOLDERS: Final[Mapping[str, str]] = {
    "darwin": "/Library/Application Support/GeminiCli",
    "win32": r"C:\ProgramData\gemini-cli",
}
_SYSTEM_FOLDER: Final = "/etc/gemini-cli"
_PATH_VARIABLES: Final[Mapping[Origin, str]] = {
    Origin.SYSTEM_DEFAULTS: "GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
    Origin.SYSTEM: "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
}


@dataclass(frozen=True, slots=True)
class LayerFile:
    """A settings file that may exist, and the layer it makes."""

    origin: Origin
    path: Path


def layer_files(
    folder: Path, *, environ: Mapping[str, str], home: Path, platform: str = sys.platform
) -> tuple[LayerFile, ...]:
    """List the settings files that count for a folder, lowest layer first.

    A folder has two files, whose its own settings are the higher. The home folder has no
    project layer: its file is the user's own.
    """
    user = home / FOLDER_NAME / FILE_NAME
    project = folder / FOLDER_NAME / FILE_NAME
    layers = [
        LayerFile(Origin.SYSTEM_DEFAULTS, _system_file(Origin.SYSTEM_DEFAULTS, environ, platform)),
        LayerFile(Origin.USER, user),
        LayerFile(Origin.PROJECT, folder / SHARED_FILE_NAME),
        LayerFile(Origin.PROJECT, project),
        LayerFile(Origin.SYSTEM, _system_file(Origin.SYSTEM, environ, platform)),
    ]
    if _is_same(folder, home) or _is_same(project, user):
        layers = [layer for layer in layers if layer.origin is not Origin.PROJECT]
    return tuple(layers)


def system_folder(platform: str = sys.platform) -> Path:
    """Return the folder of the system's settings and policies."""
    return Path(_SYSTEM_FOLDERS.get(platform, _SYSTEM_FOLDER))


def shown_path(path: Path, home: Path) -> str:
    r"""Write a path as shown, with ``~`` for the home folder and line ends as ``\n``."""
    for place in (home, Path(os.path.realpath(home))):
        if path.is_relative_to(place):
            path = Path("~") / path.relative_to(place)
            break
    return sanitize_line("\\n".join(str(path).splitlines()))


def _system_file(origin: Origin, environ: Mapping[str, str], platform: str) -> Path:
    moved = environ.get(_PATH_VARIABLES[origin])
    if moved:
        return Path(moved)
    name = FILE_NAME if origin is Origin.SYSTEM else "system-defaults.json"
    return system_folder(platform) / name


def _is_same(one: Path, other: Path) -> bool:
    """Return whether two paths lead to the same place."""
    try:
        return one == other or one.samefile(other)
    except (OSError, ValueError):
        return False
