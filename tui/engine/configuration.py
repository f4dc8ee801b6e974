"""What a run is configured with: the settings, and the access to a model.

Heavy imports live here and below, so the engine imports this module in a thread once the
screen stands. Everything in it blocks.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from tui.engine.auth.credentials import (
    CredentialError,
    KeyStore,
    ModelAccess,
    find_access,
    key_access,
    vertex_access,
)
from tui.engine.chat.backend import ModelBackend
from tui.engine.settings.definitions import SettingsProblem
from tui.engine.settings.loader import LoadedSettings, load_settings
from tui.engine.settings.project import ProjectGate
from tui.model.chat import Severity
from tui.model.events import Notice
from tui.model.settings import GemdeckSettings
from tui.text import sanitize_line


@dataclass(frozen=True, slots=True)
class Configuration:
    """What was found.

    Attributes:
        settings: The settings, with what is wrong in them.
        access: The access to a model, or None where the user has to choose one.
        notices: What the user should know of all this.
    """

    settings: LoadedSettings
    access: ModelAccess | None
    notices: tuple[Notice, ...]


def load_configuration(
    folder: Path,
    model: str | None,
    environ: Mapping[str, str],
    *,
    demo: bool,
    project: ProjectGate | None = None,
) -> Configuration:
    """Read the settings layers and, unless in the demo, look for a key.

    Bad content becomes notices; nothing makes this fail. What the folder brings counts as far
    as the gate `project` lets it.
    """
    settings = load_settings(folder, environ=environ, model=model, project=project)
    notices = [problem_notice(problem) for problem in settings.problems]
    access = None
    if not demo:
        try:
            access = find_access(environ, KeyStore())
        except CredentialError as error:
            notices.append(credential_notice(error))
    return Configuration(settings, access, tuple(notices))


def problem_notice(problem: SettingsProblem) -> Notice:
    """Say what is wrong in a settings file."""
    return Notice(Severity.ERROR if problem.fatal else Severity.WARNING, str(problem))


def credential_notice(error: CredentialError) -> Notice:
    """Say what is wrong with a key, a project or an address."""
    return Notice(Severity.ERROR, sanitize_line(str(error)), sanitize_line(error.advice))


def open_backend(access: ModelAccess, settings: GemdeckSettings) -> ModelBackend:
    """Open the service that `access` leads to.

    Raises:
        ModelError: If it cannot be used.
    """
    from tui.engine.chat.gemini import create_gemini_backend  # noqa: PLC0415 - loads google-genai

    return create_gemini_backend(
        access,
        settings.model,
        api_version=settings.api_version,
        idle_timeout=settings.idle_timeout,
        thoughts=settings.thoughts,
    )


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
