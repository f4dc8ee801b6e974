"""Definitions of the bundled servers."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tui.engine.files.paths import state_dir
from tui.engine.settings.servers.definitions import ServerDefinition
from tui.engine.settings.servers.fingerprint import server_fingerprint
from tui.model.servers import Origin, ServerId, Transport

NOTES_DB_VARIABLE: Final = "GEMDECK_NOTES_DB"
CALL_TIMEOUT: Final = 600.0  # seconds


def notes_path() -> Path:
    """Return the notes file: `GEMDECK_NOTES_DB`, or a file in the state folder."""
    named = os.environ.get(NOTES_DB_VARIABLE)
    return Path(named) if named else state_dir() / "demo" / "notes.db"


def demo_definitions() -> tuple[ServerDefinition, ServerDefinition]:
    """Return the bundled servers: a notebook, and a slow one that reports progress.

    Both run in this Python, without the current folder on the import path.
    """
    notes = {NOTES_DB_VARIABLE: str(notes_path())}
    return (
        _definition("notes", "A small notebook on this computer.", notes),
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
    # nothing in them is secret, so their fingerprints need no salt
    return replace(definition, fingerprint=server_fingerprint(definition, b""))
