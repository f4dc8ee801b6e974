"""The parameters of a tool as they are shown."""

from functools import lru_cache
from typing import Final

from tui.engine.mcp.schema.values import GeminiSchema
from tui.model.catalog import Parameter
from tui.text import sanitize_line

MAX_PARAMETERS: Final = 100
"""Parameters of a tool that are shown."""

MAX_NAME: Final = 256
"""Characters of a name that are shown."""

_REMEMBERED: Final = 2_048
"""Parameters that are remembered: the tools of one server share many."""

_COMPOUND: Final = frozenset({"anyOf", "enum", "items"})


def summarise_parameters(schema: GeminiSchema) -> tuple[Parameter, ...]:
    """Return the parameters of a converted schema, required ones first."""
    required = set(schema.get("required", ()))
    parameters = [
        _parameter(name, _type_words(child), name in required, child.get("description", ""))
        for name, child in list(schema.get("properties", {}).items())[:MAX_PARAMETERS]
    ]
    return tuple(sorted(parameters, key=lambda parameter: not parameter.required))


@lru_cache(_REMEMBERED)
def _parameter(name: str, kind: str, required: bool, description: str) -> Parameter:
    return Parameter(sanitize_line(name, MAX_NAME), kind, required, sanitize_line(description))


def _type_words(schema: GeminiSchema) -> str:
    """Name a type in one or two words."""
    if "type" in schema and schema.keys().isdisjoint(_COMPOUND):  # most are so simple
        return f"{schema['type']} | null" if "nullable" in schema else str(schema["type"])
    suffix = " | null" if schema.get("nullable") else ""
    match schema:
        case {"anyOf": list(branches)}:
            words = " | ".join(dict.fromkeys(_type_words(branch) for branch in branches))
        case {"enum": list(values)}:
            words = " | ".join(str(value) for value in values)
        case {"type": "array", "items": dict(items)}:
            inner = _type_words(items)
            words = f"({inner})[]" if " " in inner else f"{inner}[]"
        case _:
            words = str(schema.get("type", "any"))
    return sanitize_line(words + suffix, 80)
