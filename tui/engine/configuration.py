"""What a run is configured with: the settings, and the access to a model. All of it blocks."""

import os
from dataclasses import dataclass

from pydantic import SecretStr

from tui.engine.auth.credentials import (
    CredentialError,
    KeyStore,
    ModelAccess,
    find_access,
    key_access,
    vertex_access,
)
from tui.engine.consent.folder_trust.folder_gate import OpenedFolder
from tui.engine.options import EngineOptions
from tui.engine.reload import Reading, problem_notice, read_settings
from tui.engine.settings.loader import LoadedSettings
from tui.model.chat import Severity
from tui.model.events import Notice
from tui.text import sanitize_line


@dataclass(frozen=True, slots=True)
class Configuration:
    """What was found.

    Attributes:
        reading: The settings, with what is wrong in them.
        access: The access to a model, or None where the user has to choose one.
        notices: What the user should know of all this.
    """

    reading: Reading
    access: ModelAccess | None
    notices: tuple[Notice, ...]

    @property
    def settings(self) -> LoadedSettings:
        return self.reading.settings


def load_configuration(opened: OpenedFolder, options: EngineOptions) -> Configuration:
    """Read the settings layers and, unless in the demo, look for a key.

    Bad content becomes notices; nothing makes this fail.
    """
    reading = read_settings(opened, options.model)
    notices = [problem_notice(problem) for problem in reading.settings.problems]
    access = None
    if not options.demo:
        try:
            access = find_access(os.environ, KeyStore())
        except CredentialError as error:
            notices.append(credential_notice(error))
    return Configuration(reading, access, tuple(notices))


def credential_notice(error: CredentialError) -> Notice:
    """Say what is wrong with a key, a project or an address."""
    return Notice(Severity.ERROR, sanitize_line(str(error)), sanitize_line(error.advice))


def remember_api_key(key: str) -> ModelAccess:
    """Keep a pasted Gemini key for this and later runs, and give the access with it.

    Raises:
        CredentialError: If it cannot be a key, or cannot be kept or used.
    """
    store = KeyStore()
    store.set(key)
    return key_access(os.environ, SecretStr(key.strip()), store.place)


def open_vertex(project: str, location: str) -> ModelAccess:
    """Give the access to a project on Vertex that the user named.

    Raises:
        CredentialError: If project or location cannot be used.
    """
    return vertex_access(os.environ, project, location)
