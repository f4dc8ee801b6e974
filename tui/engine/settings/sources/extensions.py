"""The servers of gemini-cli extensions, from ``~/.gemini/extensions/NAME/gemini-extension.json``.

The user installed them, so they start like the user's own servers and rank below them. Of a
manifest `mcpServers` and `settings` are read; what the user told gemini-cli to set is in the
``.env`` beside it. Which extensions are enabled for a folder comes from gemini-cli's own file: an
extension disabled there is off here, too.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tui.engine.definitions.folder_code import extensions_folder
from tui.engine.settings.sources.document import BadDocumentError, read_document
from tui.engine.settings.sources.source import (
    ENV_FILE,
    Report,
    Source,
    leads_out,
    read_source,
    read_variables,
)
from tui.model.servers import Origin
from tui.text import sanitize_line

MAX_EXTENSIONS: Final = 200
"""Extensions that are read, in the order of their folders' names."""

MAX_NAME: Final = 64
"""Longest name of an extension, in characters."""

MAX_RULES: Final = 1_000
"""Rules that are read of when one extension is enabled."""

MANIFEST: Final = "gemini-extension.json"
INSTALLATION: Final = ".gemini-extension-install.json"
ENABLEMENT: Final = "extension-enablement.json"


def manifest_files(home: Path) -> list[Path]:
    """List where the manifests of a user's extensions are or may be."""
    place = extensions_folder(home)
    try:
        names = sorted(entry.name for entry in os.scandir(place) if entry.is_dir())
    except OSError:
        return []
    return [_origin_of(place / name) / MANIFEST for name in names[:MAX_EXTENSIONS]]


def read_extensions(folder: Path, report: Report) -> Iterator[Source]:
    """Read the manifests of the extensions that are enabled for an opened folder."""
    rules = _enablement(report)
    if rules is None:
        return
    seen: set[str] = set()
    for path in manifest_files(report.home):
        source = read_source(Origin.EXTENSION, path, report)
        if source is None:
            continue
        given = source.content.get("name")
        name = sanitize_line(given if isinstance(given, str) else path.parent.name, MAX_NAME)
        if not name or name in seen:
            words = f"skipped: another extension has the same name, {name or 'empty'}"
            source.note(("name",), words)
        elif _is_enabled(rules.get(name), folder):
            env = _settings(source, path.parent)
            places = {"extensionPath": str(path.parent), "workspacePath": str(folder)}
            known = {**env, **places, "/": os.sep, "pathSeparator": os.sep}
            yield replace(source, extension=name, variables=known, env=env)
        seen.add(name)


def _origin_of(installed: Path) -> Path:
    """Return the folder of an extension; a linked one is elsewhere."""
    try:
        document = read_document(installed / INSTALLATION)
    except BadDocumentError:
        return installed
    match document.content if document is not None else {}:
        case {"type": "link", "source": str(place)} if Path(place).is_absolute():
            return Path(place)
    return installed


def _settings(source: Source, extension: Path) -> Mapping[str, str]:
    """Return the variables that an extension declares as its settings and the user has set."""
    declared = source.content.get("settings")
    entries = declared[:MAX_RULES] if isinstance(declared, list) else ()
    named = [entry.get("envVar") for entry in entries if isinstance(entry, dict)]
    names = [name for name in named if isinstance(name, str)]
    path = extension / ENV_FILE
    if not names or leads_out(path, extension, source.report):
        return {}
    found = read_variables(path, source.report) or {}
    return {name: found[name] for name in names if name in found}


def _enablement(report: Report) -> Mapping[str, Any] | None:
    """Read gemini-cli's rules: per extension ``{"overrides": [RULE, …]}``; None if unreadable."""
    path = extensions_folder(report.home) / ENABLEMENT
    try:
        document = read_document(path)
    except BadDocumentError as error:
        report.note(path, f"{error}; no extension is used until this is corrected", error.line)
        return None
    return document.content if document is not None else {}


def _is_enabled(entry: object, folder: Path) -> bool:
    """Return whether an extension is enabled for a folder: the last rule that matches decides.

    A rule is a folder with a slash at both ends, with ``*`` behind it for the folders in it too,
    and with ``!`` before it to disable.
    """
    rules = entry.get("overrides") if isinstance(entry, dict) else None
    place = f"/{folder.as_posix().strip('/')}/".replace("//", "/")
    enabled = True
    for rule in rules[:MAX_RULES] if isinstance(rules, list) else ():
        if not isinstance(rule, str):
            continue
        named = rule.removeprefix("!")
        if place.startswith(named[:-1]) if named.endswith("*") else place == named:
            enabled = not rule.startswith("!")
    return enabled
