"""What types a value can have, and one schema for all of them."""

from collections.abc import Sequence

from tui.engine.mcp.schema.flatten import Flat
from tui.engine.mcp.schema.values import GeminiSchema


def combine(variants: Sequence[GeminiSchema], flat: Flat) -> GeminiSchema:
    """Join the variants of a value into one schema."""
    nullable = any(variant == {"type": "null"} for variant in variants)
    unique: list[GeminiSchema] = []
    for variant in variants:
        if variant != {"type": "null"} and variant not in unique:
            unique.append(variant)
    unique = _joined_enums(unique)
    if not unique:
        return {"type": "null"} if nullable else cut(flat)
    if any(not set(variant) - {"description", "default"} for variant in unique):
        return {}
    if len(unique) == 1:
        return unique[0] | ({"nullable": True} if nullable and "anyOf" not in unique[0] else {})
    branches = [{k: v for k, v in variant.items() if k != "default"} for variant in unique]
    return {"anyOf": [*branches, *([{"type": "null"}] if nullable else [])]}


def _joined_enums(variants: list[GeminiSchema]) -> list[GeminiSchema]:
    """Join variants that only list values of one type, such as ``oneOf`` of constants."""
    kinds = {variant.get("type") for variant in variants}
    if len(variants) < 2 or len(kinds) > 1 or any("enum" not in variant for variant in variants):
        return variants
    values: list[object] = []
    for variant in variants:
        values += [value for value in variant["enum"] if value not in values]
    meanings = [
        f"{variant['enum'][0]}: {variant['description']}"
        for variant in variants
        if "description" in variant and len(variant["enum"]) == 1
    ]
    joined: GeminiSchema = {"type": variants[0]["type"], "enum": values}
    return [joined | ({"description": "; ".join(meanings)} if meanings else {})]


def cut(flat: Flat) -> GeminiSchema:
    """Return the schema of a value that is not converted further."""
    kind = single_type(flat)
    return {"type": kind} if kind else {"type": "object"} if flat.is_cut else {}


def single_type(flat: Flat) -> str:
    """Return the one type that a value has, or an empty string."""
    types = (flat.types or implied_types(flat)) - {"null"}
    return next(iter(types)) if len(types) == 1 else ""


def implied_types(flat: Flat) -> frozenset[str]:
    """Return the type that keywords belong to where none is named."""
    if flat.properties or flat.required:
        return frozenset({"object"})
    if flat.items is not None or flat.prefix_items:
        return frozenset({"array"})
    return frozenset()
