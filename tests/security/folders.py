"""A folder that is trusted or not, without an engine: what reading its settings comes to."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.security.opened import Place
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.settings.loader import LoadedSettings, load_settings
from tui.engine.trust.folder_gate import FolderGate, OpenedFolder
from tui.model.requests import TrustRequest
from tui.model.trust import FolderTrust


@dataclass
class Reader:
    """Reads the settings of folders, with one state folder for all of them."""

    place: Place
    state: Path
    environ: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/bin:/bin"})
    problems: list[str] = field(default_factory=list)

    def word(self, folder: Path | None = None, *named: Path, attended: bool = True) -> OpenedFolder:
        return OpenedFolder(
            folder or self.place.folder,
            self.place.home,
            self.state,
            named,
            self.problems.append,
            attended=attended,
        )

    def load(
        self, folder: Path | None = None, word: OpenedFolder | None = None, *, review: bool = False
    ) -> LoadedSettings:
        folder = folder or self.place.folder
        word = word or self.word(folder)
        gate = FolderGate(word, review=review)
        return load_settings(folder, environ=self.environ, home=self.place.home, project=gate)

    def trust(self, folder: Path | None = None) -> FolderTrust:
        """Tell how a folder stands."""
        return self.load(folder).project.trust

    def say_yes(self, folder: Path | None = None, *, children: bool = False) -> None:
        """Trust what a folder brings now."""
        word = self.word(folder)
        verdict = self.load(folder, word, review=True).project
        assert verdict.offer is not None
        word.trust(verdict.offer, verdict.folder, children=children)

    def server(self, name: str = "it", folder: Path | None = None) -> ServerDefinition:
        return next(one for one in self.load(folder).servers if one.id == name)

    def question(self, folder: Path | None = None) -> TrustRequest:
        question = self.load(folder).project.question
        assert question is not None
        return question

    def clone(self, path: Path, **servers: object) -> Path:
        """Make a folder that brings servers."""
        file = path / ".gemini" / "settings.json"
        file.parent.mkdir(parents=True)
        servers = servers or {"it": {"command": "true"}}
        file.write_text(json.dumps({"mcpServers": servers}))
        return path


@pytest.fixture
def reader(place: Place, tmp_path: Path) -> Reader:
    """Give a reader with a state folder of its own."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    return Reader(place, state)
