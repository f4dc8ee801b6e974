"""A folder that is trusted or not, without an engine: what reading its settings comes to."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.security.opened import Place
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.reload import Reading, read_settings
from tui.engine.trust.opened_folder import OpenedFolder
from tui.engine.trust.trust_questions import TrustCase, request_of
from tui.engine.trust.verdict import Answered
from tui.model.requests import TrustRequest
from tui.model.trust import FolderTrust, TrustSubject


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
        self,
        folder: Path | None = None,
        word: OpenedFolder | None = None,
        answered: Answered | None = None,
    ) -> Reading:
        with patch.dict(os.environ, self.environ, clear=True):
            return read_settings(word or self.word(folder), None, answered)

    def trust(self, folder: Path | None = None, word: OpenedFolder | None = None) -> FolderTrust:
        """Tell how a folder stands."""
        return self.load(folder, word).verdict.trust

    def say_yes(
        self,
        folder: Path | None = None,
        word: OpenedFolder | None = None,
        *,
        children: bool = False,
    ) -> None:
        """Trust what a folder brings now."""
        word = word or self.word(folder)
        word.trust(self.load(folder, word, Answered(review=True)).seen, children=children)

    def server(self, name: str = "it", folder: Path | None = None) -> ServerDefinition:
        return next(one for one in self.load(folder).settings.servers if one.id == name)

    def question(self, folder: Path | None = None) -> TrustRequest:
        found = self.load(folder)
        assert found.verdict.asks
        case = TrustCase(TrustSubject.FOLDER, found.seen, found.record, found.verdict)
        return request_of(case, folder or self.place.folder, self.place.home)

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
