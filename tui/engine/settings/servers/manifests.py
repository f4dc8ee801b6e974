"""What manifests of packages say: ``package.json`` and ``pyproject.toml``. Blocks."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tui.engine.files.atomic import UnfitFileError, read_regular
from tui.model.bounded_json import JsonError, read_object

MAX_MANIFEST: Final = 256 * 1024
"""Largest manifest that is read, in bytes."""

Manifest = Mapping[str, Any]


def read_package_json(path: Path) -> Manifest | None:
    """Read a ``package.json``; None if that is not possible within limits."""
    try:
        return read_object(read_regular(path, MAX_MANIFEST), last_key_counts=True)
    except (OSError, UnfitFileError, JsonError):
        return None


def read_pyproject(path: Path) -> Manifest | None:
    """Read a ``pyproject.toml``; None if that is not possible within limits."""
    try:
        return tomllib.loads(read_regular(path, MAX_MANIFEST).decode())
    except (OSError, UnfitFileError, ValueError, RecursionError):
        return None


def text_in(manifest: Manifest, *keys: str) -> str:
    """Return the text under a path of keys; empty where there is none."""
    value: object = manifest
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""
