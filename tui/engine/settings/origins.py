"""Which settings there are, as a schema and a list; which value of one counts, and from where."""

import ast
import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core.core_schema import ModelSchema

from tui.engine.files.paths import shown_path
from tui.engine.settings.loader import MODEL_VARIABLE, LoadedSettings
from tui.engine.settings.sources.source import Report, Source, layer_files, read_layer
from tui.model.bounded_json import as_object
from tui.model.frozen import Frozen
from tui.model.servers import Origin
from tui.model.settings import (
    ContextSettings,
    GemdeckSettings,
    McpSettings,
    ModelSettings,
    Section,
    ServerSettings,
)

SECTIONS: Final[Mapping[str, tuple[type[BaseModel], str]]] = {
    "gemdeck": (GemdeckSettings, "gemdeck's own settings."),
    "model": (ModelSettings, "gemini-cli's model setting."),
    "context": (ContextSettings, "gemini-cli's context files and additional folders."),
    "mcp": (McpSettings, "Rules for all servers."),
    "mcpServers": (ServerSettings, "The servers by name."),
}
"""The sections that gemdeck reads, each with what it is."""

DEFAULT: Final = "default"
"""Where a value stands that no file sets."""

_ADD_UP: Final = frozenset(
    {"gemdeck.alwaysDeny", "gemdeck.environmentBlock", "mcp.excluded", "mcp.allowed"}
    | {"context.includeDirectories"}
)
"""Lists of which those of all files hold."""


def descriptions(section: type[BaseModel]) -> dict[str, str]:
    """Return what the source says below each key of a section. Blocks."""
    found: dict[str, str] = {}
    for one in section.__mro__[: section.__mro__.index(Section)]:
        [body] = ast.parse(inspect.getsource(one)).body
        for pair in pairwise(ast.iter_child_nodes(body)):
            match pair:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    key = section.model_fields[name].alias or name
                    found.setdefault(key, " ".join(words.split()))
    return found


class _Described(GenerateJsonSchema):
    """Describes keys; the sections do without, which are made at each start."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        for key, words in descriptions(schema["cls"]).items():
            made["properties"][key]["description"] = words
        return made


def settings_schema() -> dict[str, Any]:
    """Return the schema; keys that only gemini-cli reads are allowed beside ours."""
    sections = [section for section, _ in SECTIONS.values()]
    refs, whole = models_json_schema(
        [(section, "validation") for section in sections], schema_generator=_Described
    )
    properties: dict[str, Any] = {"$schema": {"type": "string"}}
    for name, (section, words) in SECTIONS.items():
        of_section = refs[section, "validation"]
        by_name = {"type": "object", "additionalProperties": of_section}
        shape = by_name if section is ServerSettings else of_section
        properties[name] = {"description": words, **shape}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gemdeck settings",
        "type": "object",
        "properties": properties,
        "$defs": whole["$defs"],
    }


class Setting(Frozen):
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


class SettingsFileState(Frozen):
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
        state: The state folder, with the user's settings for single folders.

    Attributes:
        files: All of them, lowest layer first.
    """

    def __init__(
        self, folder: Path, home: Path, environ: Mapping[str, str], state: Path | None
    ) -> None:
        self._environ = environ
        report = Report(home)
        self._sources: list[Source] = []
        self.files: list[SettingsFileState] = []
        real = Path(os.path.realpath(folder))
        for layer in layer_files(real, environ=environ, home=home, state=state):
            source = read_layer(layer, report)
            found = "read" if source else "not used" if os.path.lexists(layer.path) else "absent"
            shown = shown_path(layer.path, home)
            self.files.append(SettingsFileState(layer.origin, layer.path, shown, found))
            self._sources += [source] if source is not None else []
        self._own = [one for one in self._sources if one.origin is not Origin.PROJECT]

    def settings(self, loaded: LoadedSettings) -> Iterator[Setting]:
        """Give every setting but the servers, with its default where no file has it."""
        gemdeck = loaded.gemdeck.model_copy(update={"always_deny": loaded.denied})
        yield from self._section("gemdeck", gemdeck)
        keys = {field.alias or name: name for name, field in McpSettings.model_fields.items()}
        mcp = McpSettings()
        for source in self._own:
            known = as_object(source.content.get("mcp"))
            mcp = mcp.model_copy(update={keys[key]: known[key] for key in known if key in keys})
        yield from self._section("mcp", mcp)
        yield from self._section("context", loaded.context.said)

    def _section(self, name: str, section: BaseModel) -> Iterator[Setting]:
        values = section.model_dump(by_alias=True, mode="json", warnings=False)
        for key, value in values.items():
            dotted = f"{name}.{key}"
            places = list(_places((name, key), self._own))
            if dotted == "gemdeck.model":  # model.name and the environment name it as well
                places += _places(("model", "name"), self._own)
                if self._environ.get(MODEL_VARIABLE) == value:
                    places.insert(0, MODEL_VARIABLE)
            yield Setting(dotted, value, tuple(places) or (DEFAULT,), dotted in _ADD_UP)

    def server_places(self, name: str) -> tuple[str, ...]:
        """Return where an entry of a server stands, that which counts first."""
        ranked = sorted(self._sources, key=lambda one: one.origin is not Origin.PROJECT)
        return tuple(_places(("mcpServers", name), ranked))


def merged(settings: Sequence[Setting]) -> dict[str, Any]:
    """Return settings as a file would have them, without defaults."""
    found: dict[str, Any] = {}
    for setting in settings:
        section, _, key = setting.key.partition(".")
        if setting.places != (DEFAULT,):
            found.setdefault(section, {})[key] = setting.value
    return found


def _places(path: tuple[str, ...], sources: Sequence[Source]) -> Iterator[str]:
    """Name where a key stands, the highest layer first."""
    for source in reversed(sources):
        if source.at(path) is not None:
            yield f"{source.file}:{source.document.line_of(path)}"
