"""Finds the program of each server and gives it its fingerprint, when the settings are read."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from tui.engine.consent.fingerprint import server_fingerprint
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.settings.programs import (
    FolderFiles,
    find_program,
    guarded_folders,
    search_path,
)
from tui.model.servers import Origin

_PATH: Final = "PATH"


class Gate(Protocol):
    """What fingerprints need to know of this installation and of the opened folder."""

    @property
    def salt(self) -> bytes:
        """The salt of fingerprints."""

    @property
    def identity(self) -> tuple[object, ...]:
        """What tells the opened folder from another one at its place."""


class Identifier:
    """Adds to a definition what it is known by. Blocks on the file system.

    Args:
        environ: The environment that servers inherit from.
        folder: The opened folder, in which no program is looked up by its name.
        home: The user's home.
        gate: Knows the salt, and the identity of the folder.
    """

    def __init__(self, environ: Mapping[str, str], folder: Path, home: Path, gate: Gate) -> None:
        self._environ = environ
        self._folder = folder
        self._avoid = guarded_folders((folder,), home)
        self._gate = gate
        self._files = FolderFiles(folder)
        self._paths: dict[str, str] = {}
        self._found: dict[tuple[str, str, Path], str] = {}

    def __call__(
        self, definition: ServerDefinition, effective: ServerDefinition
    ) -> ServerDefinition:
        """Give the definition with its program, the files of the folder, and its fingerprint.

        Args:
            definition: The server, expanded or not.
            effective: The same with all its references filled in: what would run.
        """
        program = self._program(effective)
        own = self._files.look(program) if program else None
        start = effective.cwd if effective.cwd is not None else self._folder
        named = self._files.named(effective.args, start) if effective.command else ()
        files = dict.fromkeys([*([own] if own is not None else []), *named])
        known = replace(definition, program=program)
        of_project = definition.origin is Origin.PROJECT
        if of_project:
            pinned = own.state if own is not None else None
            known = replace(known, pinned=pinned, files=tuple(files))
        identity = self._gate.identity if of_project else None
        return replace(known, fingerprint=server_fingerprint(known, self._gate.salt, identity))

    def _program(self, definition: ServerDefinition) -> str:
        """Find the program; one whose name holds a variable that is not set is not looked for."""
        path = definition.env.get(_PATH, self._environ.get(_PATH, os.defpath))
        if not definition.command or "$" in definition.command or "$" in path:
            return ""
        if path not in self._paths:
            self._paths[path] = search_path(path, self._avoid)
        folder = definition.cwd if definition.cwd is not None else self._folder
        sought = (definition.command, self._paths[path], folder)
        if sought not in self._found:
            self._found[sought] = find_program(sought[0], {_PATH: sought[1]}, folder) or ""
        return self._found[sought]
