"""The schemas that tests write, and what Gemini is known to refuse, as strict as reports say."""

import json
from typing import Any

from tui.engine.mcp.schema.to_gemini import to_gemini

Schema = dict[str, Any]

KINDS = ("string", "integer", "number", "boolean", "array", "object", "null")
TEXT, WHOLE, NUMBER, FLAG, LIST, OBJECT, NULL = (Schema(type=kind) for kind in KINDS)
_ALLOWED = """
    anyOf default description enum format items maxItems maxLength maximum minItems minLength
    minimum nullable pattern prefixItems properties required type uniqueItems
"""
ALLOWED = set(_ALLOWED.split())
TYPES = set(KINDS)


def refusals(schema: object) -> list[str]:
    """List why a schema would be refused; nothing if it is accepted."""
    faults: list[str] = []
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return ["the root is no object"]
    if "properties" not in schema:
        faults.append("the root has no properties")
    if len(json.dumps(schema, allow_nan=False)) > 64 * 1024:
        faults.append("too large")
    _check(schema, "", 0, faults)
    return faults


def _check(node: object, path: str, depth: int, faults: list[str]) -> None:
    if not isinstance(node, dict):
        faults.append(f"{path}: not an object")
        return
    if depth > 32:
        faults.append(f"{path}: too deep")
        return
    faults += [f"{path}: {key} is unknown" for key in set(node) - ALLOWED]
    if "type" in node and node["type"] not in TYPES:
        faults.append(f"{path}: type {node['type']!r}")
    if "anyOf" in node and set(node) - {"anyOf", "description"}:
        faults.append(f"{path}: {sorted(node)} beside anyOf")
    _check_values(node, path, faults)
    for name, child in node.get("properties", {}).items():
        _check(child, f"{path}.{name}", depth + 1, faults)
    for key in ("anyOf", "prefixItems"):
        for index, child in enumerate(node.get(key, ())):
            _check(child, f"{path}.{key}[{index}]", depth + 1, faults)
    if "items" in node:
        _check(node["items"], f"{path}[]", depth + 1, faults)


def _check_values(node: dict[str, Any], path: str, faults: list[str]) -> None:
    kinds: dict[str, tuple[type, ...]]
    kinds = {"string": (str,), "integer": (int,), "number": (int, float)}
    faults += [
        f"{path}: enum value {value!r} of type {node.get('type')}"
        for value in node.get("enum", ())
        if value == "" or not isinstance(value, kinds.get(node.get("type", ""), ()))
    ]
    if "enum" in node and not node["enum"]:
        faults.append(f"{path}: empty enum")
    faults += [
        f"{path}: {name!r} is required and undefined"
        for name in node.get("required", ())
        if name not in node.get("properties", {})
    ]
    if not isinstance(node.get("nullable", True), bool):
        faults.append(f"{path}: nullable {node['nullable']!r}")


def said(words: str) -> Schema:
    return {"description": words}


def of(name_schema: object, **more: object) -> Schema:
    """Make an input schema with one property ``x``."""
    return {"type": "object", "properties": {"x": name_schema}, **more}


def x(schema: Schema) -> Any:  # noqa: ANN401  # it may be missing
    """Convert an input schema and give its property ``x``."""
    converted = to_gemini(schema)
    assert refusals(converted) == []
    return converted["properties"].get("x")
