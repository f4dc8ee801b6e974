"""Which value of a setting counts, and in which file it stands."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from tui.engine.definitions.definition import SettingsProblem
from tui.engine.settings.loader import LoadedSettings
from tui.engine.settings.sections import MODEL_VARIABLE
from tui.engine.settings.sources.context_places import context_names
from tui.engine.settings.sources.source import (
    LayerFile,
    Report,
    Source,
    layer_files,
    read_source,
    shown_path,
)
from tui.model.frozen import dataclass
from tui.model.servers import Origin
from tui.model.settings import ContextSettings, McpSettings

DEFAULT: Final = "default"
"""Where a value stands that no file sets."""

_ADD_UP: Final = frozenset(
    {"gemdeck.alwaysDeny", "gemdeck.environmentBlock", "mcp.excluded", "mcp.allowed"}
)
"""Lists of which those of all files hold."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes:
        key: Its dotted key.
        value: What counts, as JSON.
        places: Where it stands as ``file:line``, that which counts first; of lists that add up
            all count.
        adds_up: Whether all of them count.
    """

    key: str
    value: Any
    places: tuple[str, ...]
    adds_up: bool = False


@dataclass(frozen=True, slots=True)
class SettingsFileState:
    """A settings file that may exist.

    Attributes:
        origin: The layer it makes.
        path: The file.
        file: The same, as shown.
        state: ``read``, ``absent`` or ``not used``.
    """

    origin: Origin
    path: Path
    file: str
    state: str


class Layers:
    """The settings files of a folder. Blocks.

    Args:
        folder: The opened folder.
        home: The user's home.
        environ: Variables that move the system's files.

    Attributes:
        files: All of them, lowest layer first.
    """

    def __init__(self, folder: Path, home: Path, environ: Mapping[str, str]) -> None:
        self._environ = environ
        layers = layer_files(Path(os.path.realpath(folder)), environ=environ, home=home)
        report = Report(home)
        read = [(layer, read_source(layer.origin, layer.path, report)) for layer in layers]
        self._sources = [(layer, source) for layer, source in read if source is not None]
        self.files = [_file_state(layer, source, home) for layer, source in read]

    def settings(self, loaded: LoadedSettings) -> Iterator[Setting]:
        """Give every setting but the servers, with its default where no file has it."""
        own = [source for layer, source in self._sources if layer.origin is not Origin.PROJECT]
        yield from self._section("gemdeck", loaded.gemdeck, own)
        mcp = McpSettings()
        for source in own:
            given = source.content.get("mcp")
            if isinstance(given, dict):
                known = {key: given[key] for key in given if key in _keys(McpSettings)}
                mcp = mcp.model_copy(update={_keys(McpSettings)[k]: v for k, v in known.items()})
        yield from self._section("mcp", mcp, own)
        context = ContextSettings(file_name=tuple(context_names(own)))
        yield from self._section("context", context, own)

    def _section(
        self, name: str, section: BaseModel, sources: Sequence[Source]
    ) -> Iterator[Setting]:
        values = section.model_dump(by_alias=True, mode="json", warnings=False)
        for key, value in values.items():
            path = (name, key)
            places = tuple(_places(path, sources))
            setting = Setting(".".join(path), value, places or (DEFAULT,), _joined(path) in _ADD_UP)
            if path == ("gemdeck", "model"):
                setting = self._model(setting, sources)
            yield setting

    def _model(self, setting: Setting, sources: Sequence[Source]) -> Setting:
        """Give the places of the model, which ``model.name`` and the environment name as well."""
        places = [place for place in setting.places if place != DEFAULT]
        places += _places(("model", "name"), sources)
        if self._environ.get(MODEL_VARIABLE) == setting.value:
            places.insert(0, MODEL_VARIABLE)
        return replace(setting, places=tuple(places) or (DEFAULT,))

    def server_places(self, name: str) -> tuple[str, ...]:
        """Return where an entry of a server stands, the highest layer first."""
        return tuple(_places(("mcpServers", name), [source for _, source in self._sources]))


def merged(settings: Sequence[Setting]) -> dict[str, Any]:
    """Return settings as a file would have them, without defaults."""
    found: dict[str, Any] = {}
    for setting in settings:
        section, _, key = setting.key.partition(".")
        if setting.places != (DEFAULT,):
            found.setdefault(section, {})[key] = setting.value
    return found


def problem_object(problem: SettingsProblem) -> dict[str, Any]:
    """Write a problem as JSON."""
    return {
        "file": problem.file,
        "line": problem.line,
        "key": problem.key,
        "message": problem.message,
        "fatal": problem.fatal,
    }


def _joined(path: Sequence[str]) -> str:
    return ".".join(path)


def _keys(section: type[BaseModel]) -> dict[str, str]:
    """Return the names of fields by their keys in a file."""
    return {field.alias or name: name for name, field in section.model_fields.items()}


def _places(path: tuple[str, ...], sources: Sequence[Source]) -> Iterator[str]:
    """Name where a key stands, the highest layer first."""
    for source in reversed(sources):
        value: Any = source.content
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            yield f"{source.file}:{source.document.line_of(path)}"


def _file_state(layer: LayerFile, source: Source | None, home: Path) -> SettingsFileState:
    there = os.path.lexists(layer.path)
    state = "read" if source is not None else "not used" if there else "absent"
    return SettingsFileState(layer.origin, layer.path, shown_path(layer.path, home), state)
