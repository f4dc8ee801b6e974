"""The JSON Schema of a settings file, for editors, and the reference of all keys."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from tui.model.settings import (
    GemdeckSettings,
    McpSettings,
    OAuthSettings,
    ServerSettings,
)
from tui.model.settings_gemini_cli import ContextSettings, ModelSettings

_SECTIONS: Final[Mapping[str, tuple[type[BaseModel], str]]] = {
    "gemdeck": (GemdeckSettings, "gemdeck's own settings."),
    "model": (ModelSettings, "gemini-cli's model setting."),
    "context": (ContextSettings, "gemini-cli's files of context."),
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
    places: dict[str, type[BaseModel]] = {
        "gemdeck.": GemdeckSettings,
        "model.": ModelSettings,
        "context.": ContextSettings,
        "mcp.": McpSettings,
        "mcpServers.*.": ServerSettings,
        "mcpServers.*.oauth.": OAuthSettings,
    }
    for start, section in places.items():
        for name, field in section.model_fields.items():
            default = field.get_default(call_default_factory=True)
            yield f"{start}{field.alias or name}", _written(default), str(field.description)


def _written(default: object) -> str:
    match default:
        case None | "" | () | {}:
            return ""
        case bool():
            return "true" if default else "false"
    return f"{default:g}" if isinstance(default, float) else str(default)
