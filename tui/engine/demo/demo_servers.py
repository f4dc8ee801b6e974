"""The servers that come with gemdeck, as definitions like those of the settings."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tui.engine.consent.fingerprint import server_fingerprint
from tui.engine.paths import state_dir
from tui.engine.settings.definitions import ServerDefinition
from tui.model.servers import Origin, ServerId, Transport

NOTES_DB_VARIABLE: Final = "GEMDECK_NOTES_DB"
"""The environment variable that tells the notes server where its file is."""

CALL_TIMEOUT: Final = 600.0
"""Seconds a call of a bundled server may take."""


def notes_path() -> Path:
    """Give the place of the notes file: `GEMDECK_NOTES_DB`, else below gemdeck's own state."""
    named = os.environ.get(NOTES_DB_VARIABLE)
    return Path(named) if named else state_dir() / "demo" / "notes.db"


def demo_definitions() -> tuple[ServerDefinition, ServerDefinition]:
    """Give the bundled servers: notes kept in a file, and a slow one that reports progress.

    Both run in this Python, without the current folder on the import path.
    """
    notes_env = {NOTES_DB_VARIABLE: str(notes_path())}
    return (
        _definition("notes", "A small notebook on this computer.", notes_env),
        _definition("slow", "Slow work that reports its progress.", {}),
    )


def _definition(name: str, description: str, env: dict[str, str]) -> ServerDefinition:
    definition = ServerDefinition(
        id=ServerId(name),
        origin=Origin.DEMO,
        transport=Transport.STDIO,
        command=sys.executable,
        args=("-P", "-m", f"tui.engine.demo.{name}_server"),
        env=MappingProxyType(env),
        timeout=CALL_TIMEOUT,
        description=description,
        program=sys.executable,
        source="gemdeck",
    )
    # Nothing of them is secret, so their fingerprints need no salt.
    return replace(definition, fingerprint=server_fingerprint(definition, b""))
