"""What a server offers: from the raw lists to what is shown and to what the model may call."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tui.engine.servers.schemas import GeminiSchema, UnusableSchemaError, to_gemini
from tui.engine.servers.spelling import Spelling, read_spelling
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.tools import JsonObject, OfferedTool
from tui.model.catalog import (
    Parameter,
    PromptArgument,
    PromptView,
    ResourceTemplateView,
    ResourceView,
    ToolId,
    ToolView,
)
from tui.text import sanitize, sanitize_line

MAX_TOOLS: Final = 1_000
"""Tools of one server that are shown."""

MAX_LISTED: Final = 10_000
"""Prompts, resources or templates of one server that are shown."""

MAX_ARGUMENTS: Final = 100
"""Arguments of a prompt and parameters of a tool that are shown."""

MAX_NAME: Final = 256
"""Characters of a name, a title or a URI that are shown; long ones end in an ellipsis."""

MAX_DESCRIPTION: Final = 8_000
"""Characters of a description that are shown."""

MAX_MODEL_DESCRIPTION: Final = 2_048
"""Characters of a description that go to the model."""

MAX_SCHEMA_TEXT: Final = 64_000
"""Characters of a schema that are shown."""

_HASHED: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_NO_ID: Final = ToolId("")


@dataclass(frozen=True, slots=True)
class RawOffer:
    """What a server lists, as it wrote it; an item may be anything but is at least JSON.

    Attributes:
        tools: Its tools.
        refused_tools: Names of tools that the protocol obliges us to leave out.
        prompts: Its prompts.
        resources: Its resources.
        templates: Its resource templates.
    """

    tools: list[object] = field(default_factory=list)
    refused_tools: frozenset[str] = frozenset()
    prompts: list[object] = field(default_factory=list)
    resources: list[object] = field(default_factory=list)
    templates: list[object] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a server, before it has a name towards the model.

    Attributes:
        name: Its name as the server spells it.
        view: What is shown of it; its id is still empty.
        description: The words on it for the model.
        parameters: Its input schema for the model, or None where it is not offered.
        schema: Its input schema as the server wrote it.
        definition_hash: SHA-256 (hex) of its definition.
        definition: Its definition as JSON text, which is what the hash is of.
    """

    name: str
    view: ToolView
    description: str
    parameters: GeminiSchema | None
    schema: JsonObject
    definition_hash: str
    definition: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether the model can be offered it."""
        return self.parameters is not None

    def show(self, tool_id: ToolId) -> ToolView:
        """Give what is shown of it under its name towards the model."""
        return replace(self.view, id=tool_id)

    def offer(self, tool_id: ToolId, definition: ServerDefinition) -> OfferedTool:
        """Give it as the model may call it."""
        return OfferedTool(
            id=tool_id,
            server=definition.id,
            name=self.name,
            view=self.show(tool_id),
            declaration={
                "name": tool_id,
                "description": self.description,
                "parametersJsonSchema": self.parameters,
            },
            schema=self.schema,
            definition_hash=self.definition_hash,
            trusted=definition.trust,
            fingerprint=definition.fingerprint,
        )


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """All that one server offers, in its order, and how it spells what is shown otherwise."""

    tools: tuple[Tool, ...] = ()
    prompts: tuple[PromptView, ...] = ()
    resources: tuple[ResourceView, ...] = ()
    templates: tuple[ResourceTemplateView, ...] = ()
    spelling: Spelling = field(default_factory=Spelling)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing of use in it."""
        usable = any(tool.is_usable for tool in self.tools)
        return not (usable or self.prompts or self.resources or self.templates)


def read_offer(raw: RawOffer, definition: ServerDefinition) -> ServerOffer:
    """Read the raw lists of a server. A malformed item costs only itself."""
    return ServerOffer(
        tools=_read_tools(raw, definition),
        prompts=_read_prompts(raw.prompts),
        resources=tuple(_resource(item) for item in _named(raw.resources, "uri")),
        templates=tuple(_template(item) for item in _named(raw.templates, "uriTemplate")),
        spelling=read_spelling(raw.prompts, raw.resources, raw.templates, MAX_NAME),
    )


def definition_text(raw: Mapping[str, Any]) -> str:
    """Write what a user decides on when allowing a tool, from its raw definition.

    It is JSON with sorted keys and without spaces, in ASCII.
    """
    relevant = {key: raw.get(key) for key in _HASHED}
    return json.dumps(relevant, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def definition_hash(raw: Mapping[str, Any]) -> str:
    """Hash what a user decides on when allowing a tool: SHA-256 (hex) of `definition_text`."""
    return _hash(definition_text(raw))


def is_included(name: str, definition: ServerDefinition) -> bool:
    """Tell whether the settings let a tool in; an exclusion wins.

    An entry is a tool's name, or begins with it and an opening parenthesis.
    """
    if any(_matches(entry, name) for entry in definition.exclude_tools):
        return False
    included = definition.include_tools
    return included is None or any(_matches(entry, name) for entry in included)


def _matches(entry: str, name: str) -> bool:
    return entry == name or entry.startswith(f"{name}(")


def _read_tools(raw: RawOffer, definition: ServerDefinition) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    seen: set[str] = set()
    for position, item in enumerate(raw.tools[:MAX_TOOLS], start=1):
        if not isinstance(item, dict) or not _text(item, "name"):
            tools.append(_unnamed(item, position))
            continue
        name = item["name"]
        problem = ""
        if name in seen:
            problem = "another tool of this server has the same name"
        elif name in raw.refused_tools:
            problem = "its x-mcp-header annotations are invalid"
        elif not is_included(name, definition):
            problem = "the settings leave it out"
        seen.add(name)
        tools.append(_tool(item, problem))
    if (left_out := len(raw.tools) - MAX_TOOLS) > 0:
        problem = f"of one server {MAX_TOOLS:,} tools are taken"
        tools.append(_placeholder(f"({left_out:,} more tools)", {}, problem))
    return tuple(tools)


def _unnamed(item: object, position: int) -> Tool:
    return _placeholder(f"(tool {position})", item, "it has no readable name")


def _placeholder(shown: str, item: object, problem: str) -> Tool:
    """Stand in for what has no name of its own."""
    view = ToolView(_NO_ID, shown, schema=_pretty(item), problem=problem)
    return Tool("", view, "", None, {}, definition_hash(item if isinstance(item, dict) else {}))


def _tool(item: dict[str, Any], problem: str) -> Tool:
    schema = item.get("inputSchema")
    parameters: GeminiSchema | None = None
    if not problem and not isinstance(item.get("description", ""), str | None):
        problem = "its description is not a text"
    if not problem and not isinstance(schema, dict):
        problem = "it has no input schema"
    if not problem and isinstance(schema, dict):
        try:
            parameters = to_gemini(schema)
        except UnusableSchemaError as error:
            problem = str(error)
    title = _text(item, "title") or _text(_object(item.get("annotations")), "title")
    description = _text(item, "description")
    definition = definition_text(item)
    view = ToolView(
        id=_NO_ID,
        name=sanitize_line(item["name"], MAX_NAME),
        title=sanitize_line(title, MAX_NAME),
        description=sanitize(description, MAX_DESCRIPTION),
        parameters=summarise_parameters(parameters or {}),
        schema=_pretty(schema),
        claims=_claims(_object(item.get("annotations"))),
        problem=problem,
        output_schema=_pretty(output) if (output := _object(item.get("outputSchema"))) else "",
        has_icons=_has_icons(item),
    )
    return Tool(
        name=item["name"],
        view=view,
        description=sanitize(description or title, MAX_MODEL_DESCRIPTION),
        parameters=parameters,
        schema=schema if isinstance(schema, dict) else {},
        definition_hash=_hash(definition),
        definition=definition,
    )


def summarise_parameters(schema: GeminiSchema) -> tuple[Parameter, ...]:
    """Read the parameters off a converted schema, the required ones first."""
    required = set(schema.get("required", ()))
    parameters = [
        Parameter(
            name=sanitize_line(name, MAX_NAME),
            type=_type_words(child),
            required=name in required,
            description=sanitize_line(child.get("description", "")),
        )
        for name, child in list(schema.get("properties", {}).items())[:MAX_ARGUMENTS]
    ]
    return tuple(sorted(parameters, key=lambda parameter: not parameter.required))


def _type_words(schema: GeminiSchema) -> str:
    """Name a type in a word or two."""
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


def _claims(annotations: Mapping[str, Any]) -> tuple[str, ...]:
    """Say in words what a server claims of a tool."""
    words = {
        ("readOnlyHint", True): "read-only",
        ("destructiveHint", True): "destructive",
        ("destructiveHint", False): "not destructive",
        ("idempotentHint", True): "repeatable without further effect",
        ("openWorldHint", True): "reaches out to the world",
        ("openWorldHint", False): "stays in its own world",
    }
    return tuple(word for (key, value), word in words.items() if annotations.get(key) is value)


def _read_prompts(items: Sequence[object]) -> tuple[PromptView, ...]:
    """Read the prompts. Of several that look alike only the first one can be asked for."""
    views: dict[str, PromptView] = {}
    for item in _named(items, "name"):
        view = _prompt(item)
        if view.name:
            views.setdefault(view.name, view)
    return tuple(views.values())


def _prompt(item: dict[str, Any]) -> PromptView:
    listed = item.get("arguments")
    arguments = {
        name: argument
        for argument in reversed(_named(listed if isinstance(listed, list) else [], "name"))
        if (name := sanitize_line(argument["name"], MAX_NAME))
    }
    return PromptView(
        name=sanitize_line(item["name"], MAX_NAME),
        title=sanitize_line(_text(item, "title"), MAX_NAME),
        description=sanitize(_text(item, "description"), MAX_DESCRIPTION),
        arguments=tuple(
            PromptArgument(
                name=name,
                required=argument.get("required") is True,
                description=sanitize_line(_text(argument, "description")),
            )
            for name, argument in list(reversed(arguments.items()))[:MAX_ARGUMENTS]
        ),
        has_icons=_has_icons(item),
    )


def _resource(item: dict[str, Any]) -> ResourceView:
    size = item.get("size")
    return ResourceView(
        uri=sanitize_line(item["uri"]),
        name=sanitize_line(_text(item, "name"), MAX_NAME),
        title=sanitize_line(_text(item, "title"), MAX_NAME),
        description=sanitize(_text(item, "description"), MAX_DESCRIPTION),
        mime_type=sanitize_line(_text(item, "mimeType"), MAX_NAME),
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
        has_icons=_has_icons(item),
    )


def _template(item: dict[str, Any]) -> ResourceTemplateView:
    return ResourceTemplateView(
        uri_template=sanitize_line(item["uriTemplate"]),
        name=sanitize_line(_text(item, "name"), MAX_NAME),
        title=sanitize_line(_text(item, "title"), MAX_NAME),
        description=sanitize(_text(item, "description"), MAX_DESCRIPTION),
        mime_type=sanitize_line(_text(item, "mimeType"), MAX_NAME),
        has_icons=_has_icons(item),
    )


def _named(items: Sequence[object], key: str) -> list[dict[str, Any]]:
    """Give the items that are objects with a text under `key`."""
    return [item for item in items if isinstance(item, dict) and _text(item, key)][:MAX_LISTED]


def _hash(definition: str) -> str:
    return hashlib.sha256(definition.encode()).hexdigest()


def _text(item: Mapping[str, Any], key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _has_icons(item: Mapping[str, Any]) -> bool:
    icons = item.get("icons")
    return isinstance(icons, list) and bool(icons)


def _pretty(value: object) -> str:
    return sanitize(json.dumps(value, indent=2, ensure_ascii=False), MAX_SCHEMA_TEXT)
