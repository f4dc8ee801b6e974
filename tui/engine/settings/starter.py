"""The user's settings file, begun where there is none, and the sample of all keys."""

from pathlib import Path
from typing import Final

import tui
from tui.engine.files.atomic import UnfitFileError, read_regular
from tui.engine.settings.sources.locations import FILE_NAME, FOLDER_NAME

SAMPLE: Final = "settings.sample.json"

STARTER: Final = """\
{
  // Your MCP servers by name. gemdeck reads this file again when you save it.
  "mcpServers": {
    // "files": {
    //   "command": "npx",
    //   "args": ["-y", "@modelcontextprotocol/server-filesystem", "${HOME}/notes"],
    // },
  },
}
"""

_MARK: Final = '"mcpServers"'
_MAX_READ: Final = 1_000_000
"""Bytes of the largest file in which the line is looked for."""


def begin_settings(home: Path) -> tuple[Path, int]:
    """Write the user's settings file if there is none.

    Returns:
        The file, and the line at which an entry belongs.

    Raises:
        OSError: If it cannot be written.
    """
    path = home / FOLDER_NAME / FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(STARTER)
    except FileExistsError:
        pass
    except OSError:  # on a full disk, half a file would stay in the way
        path.unlink(missing_ok=True)
        raise
    try:
        lines = read_regular(path, _MAX_READ).decode("utf-8", "replace").splitlines()
    except UnfitFileError:  # the editor will say what it is
        lines = []
    return path, next((n for n, line in enumerate(lines, 2) if _MARK in line), 1)


def sample_settings() -> str:
    """Return the sample of all keys, which is beside the package or in it."""
    package = Path(tui.__file__).parent
    inside = package / SAMPLE
    return (inside if inside.exists() else package.parent / SAMPLE).read_text("utf-8")
