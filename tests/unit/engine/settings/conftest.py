"""A made-up machine with a home, an opened folder and system files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.settings.loader import LoadedSettings, read_files
from tui.model.servers import ServerStatus


@dataclass
class Machine:
    """Writes settings files of each layer and loads them."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home = self.root / "home"
        self.folder = self.home / "shop"
        self.files = {
            "defaults": self.root / "etc" / "system-defaults.json",
            "user": self.home / ".gemini" / "settings.json",
            "project": self.folder / ".gemini" / "settings.json",
            "system": self.root / "etc" / "settings.json",
        }
        for file in self.files.values():
            file.parent.mkdir(parents=True, exist_ok=True)
        self.environ |= {
            "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": str(self.files["defaults"]),
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(self.files["system"]),
        }

    def write(self, layer: str, content: str | bytes | Mapping[str, Any]) -> None:
        data = content if isinstance(content, str | bytes) else json.dumps(content)
        self.files[layer].write_bytes(data.encode() if isinstance(data, str) else data)

    def load(self, model: str | None = None) -> LoadedSettings:
        return self.load_folder(self.folder, model)

    def load_folder(self, folder: Path, model: str | None = None) -> LoadedSettings:
        return read_files(folder, environ=self.environ, home=self.home, model=model).settled()

    def servers(self) -> dict[str, ServerDefinition]:
        return {str(server.id): server for server in self.load().servers}

    def server(self, **entry: object) -> ServerDefinition:
        """Load one entry of the user's file."""
        self.write("user", {"mcpServers": {"it": entry}})
        return self.servers()["it"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def messages(loaded: LoadedSettings) -> list[str]:
    return [str(problem) for problem in loaded.problems]


GOOD = {"command": "x"}


# mcp


def withheld(machine: Machine) -> dict[str, ServerStatus | None]:
    return {name: server.withheld for name, server in machine.servers().items()}


OFF = ServerStatus.DISABLED
