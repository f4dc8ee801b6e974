"""The parameters of a tool as they are shown."""

from typing import Final

from tui.engine.mcp.schema.values import GeminiSchema
from tui.model.catalog import Parameter
from tui.text import sanitize_line

MAX_PARAMETERS: Final = 100
"""Parameters of a tool that are shown."""

MAX_NAME: Final = 256
"""Characters of a name that are shown."""


def summarise_parameters(schema: GeminiSchema) -> tuple[Parameter, ...]:
    """Return the parameters of a converted schema, required ones first."""
    required = set(schema.get("required", ()))
    parameters = [
        Parameter(
            name=sanitize_line(name, MAX_NAME),
            type=_type_words(child),
            required=name in required,
            description=sanitize_line(child.get("description", "")),
        )
        for name, child in list(schema.get("properties", {}).items())[:MAX_PARAMETERS]
    ]
    return tuple(sorted(parameters, key=lambda parameter: not parameter.required))


def _type_words(schema: GeminiSchema) -> str:
    """Name a type in one or two words."""
    suffix = " | null" if schema.get("nullable") else ""
    match schema:
        case {"anyOf": list(branches)}:
            words = " | ".join(dict.fromkeys(_type_words(branch) for branch in branches))
        case {"enum": list(values)}:
            words = " | ".join(str(value) for value in values)
        case {"type": "array", "items": dict(items)}:
            inner = _type_words(items)
            words = f"({inner})[]" if " " in inner else f"{inner}[]"
        case {"type": str(kind)}:
            words = kind
        case _:
            words = "any"
    return sanitize_line(words + suffix, 80)
