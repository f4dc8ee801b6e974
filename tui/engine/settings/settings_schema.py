"""The JSON Schema of a settings file, for editors, and the reference of all keys."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from tui.model.settings import (
    ContextSettings,
    GemdeckSettings,
    McpSettings,
    ModelSettings,
    ServerSettings,
)

_SECTIONS: Final[Mapping[str, tuple[type[BaseModel], str]]] = {
    "gemdeck": (GemdeckSettings, "gemdeck's own settings."),
    "model": (ModelSettings, "gemini-cli's model setting."),
    "context": (ContextSettings, "gemini-cli's names of context files."),
    "mcp": (McpSettings, "Rules for all servers."),
    "mcpServers": (ServerSettings, "The servers by name."),
}


def settings_schema() -> dict[str, Any]:
    """Return the schema; keys that only gemini-cli reads are allowed beside ours."""
    sections = [section for section, _ in _SECTIONS.values()]
    refs, whole = models_json_schema([(section, "validation") for section in sections])
    properties: dict[str, Any] = {"$schema": {"type": "string"}}
    for name, (section, words) in _SECTIONS.items():
        of_section = refs[section, "validation"]
        by_name = {"type": "object", "additionalProperties": of_section}
        shape = by_name if section is ServerSettings else of_section
        properties[name] = {"description": words, **shape}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of gemdeck",
        "type": "object",
        "properties": properties,
        "$defs": whole["$defs"],
    }


def settings_reference() -> Iterator[tuple[str, str, str]]:
    """Give each key with its default and what it does."""
    for name, (section, _) in _SECTIONS.items():
        yield from _keys(f"{name}.*." if section is ServerSettings else f"{name}.", section)


def _keys(start: str, section: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    """Give the keys of a section, and those of the sections in it."""
    for name, field in section.model_fields.items():
        key = f"{start}{field.alias or name}"
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        below = f"{key}.*." if get_origin(field.annotation) is dict else f"{key}."
        yield key, _written(default), str(field.description)
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from _keys(below, part)


def _written(default: object) -> str:
    match default:
        case None | "" | () | {} | BaseModel():
            return ""
        case bool():
            return "true" if default else "false"
    return f"{default:g}" if isinstance(default, float) else str(default)
