"""The clients whose servers can be taken over: where their files are, and how they are built.

The formats are those of each client's documentation, of November 2026.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tui.engine.settings.sources.locations import FILE_NAME, FOLDER_NAME, SHARED_FILE_NAME
from tui.model.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """Where files are looked for.

    Attributes:
        home: The user's home.
        folder: The opened folder.
        environ: Variables that move files.
        platform: As `sys.platform`.
    """

    home: Path
    folder: Path
    environ: Mapping[str, str]
    platform: str = sys.platform

    def configuration(self) -> Path:
        """Return the folder in which programs keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return self._named("APPDATA", self.home / "AppData" / "Roaming")
        return self._named("XDG_CONFIG_HOME", self.home / ".config")

    def _named(self, variable: str, default: Path) -> Path:
        return Path(self.environ.get(variable) or default)

    def places(self, client: str) -> Iterator[Path]:
        """Return the files in which a client may list servers: the user's, then the folder's."""
        home, folder, settings = self.home, self.folder, self.configuration()
        match client:
            case "claude-desktop":
                yield settings / "Claude" / "claude_desktop_config.json"
            case "claude-code":
                yield self._named("CLAUDE_CONFIG_DIR", home) / ".claude.json"
                yield folder / SHARED_FILE_NAME
            case "vscode":
                yield settings / "Code" / "User" / "mcp.json"
                yield folder / ".vscode" / "mcp.json"
            case "cursor":
                yield home / ".cursor" / "mcp.json"
                yield folder / ".cursor" / "mcp.json"
            case "windsurf":
                yield home / ".codeium" / "windsurf" / "mcp_config.json"
            case "zed":
                on_unix = self._named("XDG_CONFIG_HOME", home / ".config") / "zed"
                yield (settings / "Zed" if self.platform == "win32" else on_unix) / FILE_NAME
                yield folder / ".zed" / FILE_NAME
            case "codex":
                yield self._named("CODEX_HOME", home / ".codex") / "config.toml"
                yield folder / ".codex" / "config.toml"
            case "gemini-cli":
                yield home / FOLDER_NAME / FILE_NAME
                yield folder / FOLDER_NAME / FILE_NAME


TITLES: Final[Mapping[str, str]] = {
    "claude-desktop": "Claude Desktop",
    "claude-code": "Claude Code",
    "vscode": "VS Code",
    "cursor": "Cursor",
    "windsurf": "Windsurf",
    "zed": "Zed",
    "codex": "Codex",
    "gemini-cli": "gemini-cli",
}
"""The clients, and what they are called."""

SERVER_KEYS: Final[Mapping[str, str]] = {
    "vscode": "servers",
    "zed": "context_servers",
    "codex": "mcp_servers",
}
"""The key under which a client lists its servers; the others use ``mcpServers``."""

LITERAL: Final = frozenset({"claude-desktop", "windsurf", "zed", "codex"})
"""Clients that do not fill in ``$NAME``."""
