"""Reads a server's raw lists into what is shown and what the model may call."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import Any, Final

from pydantic_core import to_json

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.catalog.marks import marks_in, marks_of
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool, declaration, sanitize_name
from tui.engine.mcp.catalog.skill_entry import Skill, read_skills
from tui.engine.mcp.schema.to_gemini import GeminiSchema, UnusableSchemaError, convert_schema
from tui.model.bounded_json import as_list, as_object, text_in
from tui.model.catalog import (
    Parameter,
    PromptArgument,
    PromptView,
    ResourceTemplateView,
    ResourceView,
    ToolId,
    ToolView,
)
from tui.model.frozen import Frozen
from tui.text import counted, is_shown_whole, sanitize, sanitize_line

MAX_LISTED: Final = 10_000
"""Tools, prompts, resources or templates of one server that are shown."""

MAX_ARGUMENTS: Final = 100
"""Arguments of a prompt that are shown."""

MAX_NAME: Final = 256
"""Characters of a name, a title or a URI that are shown; long ones end in an ellipsis."""

MAX_DESCRIPTION: Final = 16_000
"""Characters of a description that are shown and go to the model."""

MAX_SCHEMA_TEXT: Final = 64_000
"""Characters of a schema that are shown."""

_SORTED: Final = json.JSONEncoder(check_circular=False, sort_keys=True, separators=(",", ":"))
_DELETE: Final = b"\x7f"
_HASHED: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_UNBOUNDED: Final = ('"pattern', 'ef"')  # patternProperties, $ref, $dynamicRef, $recursiveRef
_CLAIMS: Final[Mapping[tuple[str, bool], str]] = {
    ("readOnlyHint", True): "read-only",
    ("destructiveHint", True): "destructive",
    ("destructiveHint", False): "not destructive",
    ("idempotentHint", True): "safe to repeat",
    ("openWorldHint", True): "accesses outside systems",
    ("openWorldHint", False): "no outside access",
}
_NO_ID: Final = ToolId("")
_HIDDEN_NAME: Final = "its name cannot be shown as it is"
_HIDDEN_URI: Final = "its URI cannot be shown as it is"

MAX_PARAMETERS: Final = 100
"""Parameters of a tool that are shown."""

_REMEMBERED: Final = 2_048
"""Parameters that are remembered: the tools of one server share many."""


class RawOffer(Frozen):
    """The lists of a server as it wrote them; an item may be any JSON value.

    Attributes:
        tools: Its tools.
        refused_tools: Names of tools that the protocol requires us to refuse.
        prompts: Its prompts.
        resources: Its resources.
        templates: Its resource templates.
        skills: The entries of its skills.
    """

    tools: list[object] = field(default_factory=list)
    refused_tools: frozenset[str] = frozenset()
    prompts: list[object] = field(default_factory=list)
    resources: list[object] = field(default_factory=list)
    templates: list[object] = field(default_factory=list)
    skills: list[object] = field(default_factory=list)


class Tool(Frozen):
    """One tool of a server, before it gets a name for the model.

    Attributes:
        name: Its name as the server spells it.
        view: Its view for the user, with the id that it gets unless another tool has that.
        description: Its description for the model.
        parameters: Its input schema for the model, or None if it cannot be offered.
        schema: Its input schema as the server wrote it.
        definition_hash: SHA-256 (hex) of `definition`.
        definition: Its definition as JSON text.
        output_schema: Its output schema as the server wrote it, or None.
        output_weight: Characters of that schema; infinite if the work for a short result has no
            bound, because of regular expressions or references.
        needs_task: Whether it runs only as a task that the client asks for.
    """

    name: str
    view: ToolView
    description: str
    parameters: GeminiSchema | None
    schema: JsonObject
    definition_hash: str
    definition: str = ""
    output_schema: JsonObject | None = None
    output_weight: float = 0
    needs_task: bool = False

    @property
    def is_usable(self) -> bool:
        return self.parameters is not None

    @property
    def wordless_hash(self) -> str:
        """The hash of its definition without the description. Slow for a long one."""
        return _hash(_SORTED.encode({**json.loads(self.definition), "description": None}))

    def show(self, tool_id: ToolId) -> ToolView:
        return self.view if self.view.id == tool_id else replace(self.view, id=tool_id)

    def offer(self, tool_id: ToolId, definition: ServerDefinition) -> OfferedTool:
        return OfferedTool(
            id=tool_id,
            server=definition.id,
            name=self.name,
            view=self.show(tool_id),
            declaration=declaration(tool_id, self.description, self.parameters),
            schema=self.schema,
            definition_hash=self.definition_hash,
            trusted=definition.trust,
            fingerprint=definition.fingerprint,
            is_reviewed=definition.review_results,
        )


class ServerOffer(Frozen):
    """All that one server offers, in its order; `raw` has it as the server wrote it."""

    tools: tuple[Tool, ...] = ()
    prompts: tuple[PromptView, ...] = ()
    resources: tuple[ResourceView, ...] = ()
    templates: tuple[ResourceTemplateView, ...] = ()
    skills: tuple[Skill, ...] = ()
    raw: RawOffer = field(default_factory=RawOffer, repr=False, compare=False)

    @property
    def is_empty(self) -> bool:
        """Whether nothing in it can be used."""
        usable = any(tool.is_usable for tool in self.tools)
        return not (usable or self.prompts or self.resources or self.templates or self.skills)

    def only(self, may_stay: Callable[[Tool], bool]) -> "ServerOffer":
        """Return the offer with some of its tools only."""
        stays = list(map(may_stay, self.tools))
        listed = [item for item, keep in zip(self.raw.tools, stays, strict=False) if keep]
        tools = tuple(tool for tool, keep in zip(self.tools, stays, strict=True) if keep)
        return replace(self, tools=tools, raw=replace(self.raw, tools=listed))


def read_offer(raw: RawOffer) -> ServerOffer:
    """Read the raw lists of a server; a malformed item affects no other."""
    prompts: dict[str, PromptView] = {}
    for position, item in enumerate(_named(raw.prompts, "name"), start=1):
        prompt = _prompt(item, position)
        prompts.setdefault(prompt.name, prompt)  # of several with one name, the first
    return ServerOffer(
        tools=_read_tools(raw),
        prompts=tuple(prompts.values()),
        resources=tuple(_resource(item) for item in _named(raw.resources, "uri")),
        templates=tuple(_template(item) for item in _named(raw.templates, "uriTemplate")),
        skills=read_skills(raw.skills),
        raw=raw,
    )


def definition_text(raw: Mapping[str, Any]) -> str:
    """Return the part of a raw definition that consent to a tool covers.

    It is JSON with sorted keys and without spaces, in ASCII: pins that were kept depend on it.
    """
    return _SORTED.encode({key: raw.get(key) for key in _HASHED})


def definition_hash(raw: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) of `definition_text`, to which consent is bound."""
    return _hash(definition_text(raw))


def not_included(names: Iterable[str], definition: ServerDefinition) -> set[str]:
    """Return those of the names of tools that the settings leave out; an exclusion wins.

    An entry is a tool's name, or starts with the name and an opening parenthesis.
    """

    def named(entries: Iterable[str]) -> set[str]:
        return {e[:at] for e in entries for at, sign in enumerate(f"{e}(") if sign == "("}

    included, excluded = definition.include_tools, named(definition.exclude_tools)
    let_in = None if included is None else named(included)
    return {one for one in names if one in excluded or (let_in is not None and one not in let_in)}


def _read_tools(raw: RawOffer) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    seen: set[str] = set()
    for position, item in enumerate(raw.tools[:MAX_LISTED], start=1):
        if not isinstance(item, dict) or not text_in(item, "name"):
            tools.append(_placeholder(f"(tool {position})", item, "it has no readable name"))
            continue
        name, problem = item["name"], ""
        if name in seen:
            problem = "another tool of this server has the same name"
        elif name in raw.refused_tools:
            problem = "its x-mcp-header annotations are invalid"
        elif not is_shown_whole(name, MAX_NAME):
            problem = _HIDDEN_NAME
        seen.add(name)
        tools.append(_tool(item, problem))
    if (left_out := len(raw.tools) - MAX_LISTED) > 0:
        problem = f"only {MAX_LISTED:,} tools per server are used"
        tools.append(_placeholder(f"({left_out:,} more tools)", {}, problem))
    return tuple(tools)


def _placeholder(shown: str, item: object, problem: str) -> Tool:
    """Make an unusable tool that only shows a problem."""
    view = ToolView(_NO_ID, shown, schema=_pretty(item), problem=problem)
    return Tool("", view, "", None, {}, definition_hash(as_object(item)))


def _tool(item: dict[str, Any], problem: str) -> Tool:
    schema = item.get("inputSchema") or {}  # PHP writes an empty list, others leave it out
    parameters: GeminiSchema | None = None
    left_out: tuple[str, ...] = ()
    problem = problem or _unusable(item)
    if not problem and isinstance(schema, dict):
        try:
            parameters, left_out = convert_schema(schema)
        except UnusableSchemaError as error:
            problem = str(error)
    notes = as_object(item.get("annotations"))
    title = text_in(item, "title") or text_in(notes, "title")
    description = text_in(item, "description")
    if (cut := len(description) - MAX_DESCRIPTION) > 0:
        left_out = (f"{counted(cut, 'character')} of its description", *left_out)
    if not isinstance(item.get("description", ""), str | None):
        left_out = ("its description, which is not text", *left_out)
    shown = sanitize(description, MAX_DESCRIPTION)
    for_model = shown if description else sanitize(title, MAX_DESCRIPTION)
    definition = definition_text(item)
    output_schema = as_object(item.get("outputSchema"))
    text = json.dumps(output_schema) if output_schema else ""
    view = ToolView(
        id=ToolId(sanitize_name(item["name"])),
        name=sanitize_line(item["name"], MAX_NAME),
        title=sanitize_line(title, MAX_NAME),
        description=shown,
        parameters=summarise_parameters(parameters or {}),
        schema=_pretty(schema),
        claims=tuple(word for (key, value), word in _CLAIMS.items() if notes.get(key) is value),
        problem=problem,
        left_out=left_out,
        output_schema=_pretty(output_schema) if output_schema else "",
        has_icons=isinstance(item.get("icons"), list) and bool(item["icons"]),
        size=len(to_json((for_model, parameters))),
        claims_to_read=notes.get("readOnlyHint") is True
        and notes.get("destructiveHint") is not True,
        marks=marks_in(definition),
    )
    return Tool(
        name=item["name"],
        view=view,
        description=for_model,
        parameters=parameters,
        schema=as_object(schema),
        definition_hash=_hash(definition),
        definition=definition,
        output_schema=output_schema or None,
        output_weight=math.inf if any(word in text for word in _UNBOUNDED) else len(text),
        needs_task=as_object(item.get("execution")).get("taskSupport") == "required",
    )


def _unusable(item: dict[str, Any]) -> str:
    """Return why a tool could only fail, or an empty string."""
    if not isinstance(item.get("inputSchema") or {}, dict):
        return "its input schema is not an object"
    visibility = as_object(as_object(item.get("_meta")).get("ui")).get("visibility")
    if isinstance(visibility, list) and "model" not in visibility:
        return "its server offers it to apps, not to the model"
    return ""


def _prompt(item: dict[str, Any], position: int) -> PromptView:
    name, shown = item["name"], sanitize_line(item["name"], MAX_NAME)
    problem = "" if is_shown_whole(name, MAX_NAME) else _HIDDEN_NAME
    arguments: dict[str, PromptArgument] = {}
    for argument in _named(as_list(item.get("arguments")), "name"):
        if not is_shown_whole(argument["name"], MAX_NAME):
            words = f"its argument “{sanitize_line(argument['name'], 80)}” has a name"
            problem = problem or f"{words} that cannot be shown as it is"
            continue
        required = argument.get("required") is True
        description = sanitize_line(text_in(argument, "description"))
        read = PromptArgument(argument["name"], required, description)
        arguments.setdefault(read.name, read)
    return PromptView(
        name=f"(prompt {position})" if problem == _HIDDEN_NAME else name,
        title=sanitize_line(text_in(item, "title"), MAX_NAME) or (shown if shown != name else ""),
        description=sanitize(text_in(item, "description"), MAX_DESCRIPTION),
        arguments=tuple(arguments.values())[:MAX_ARGUMENTS],
        problem=problem,
        marks=marks_of(item),
    )


def _resource(item: dict[str, Any]) -> ResourceView:
    size = item.get("size")
    return ResourceView(
        uri=sanitize_line(item["uri"]),
        **_resource_words(item, "uri"),
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
    )


def _template(item: dict[str, Any]) -> ResourceTemplateView:
    uri_template = sanitize_line(item["uriTemplate"])
    return ResourceTemplateView(uri_template, **_resource_words(item, "uriTemplate"))


def _resource_words(item: dict[str, Any], uri: str) -> dict[str, Any]:
    """Read the fields that resources and their templates share."""
    return {
        "name": sanitize_line(text_in(item, "name"), MAX_NAME),
        "title": sanitize_line(text_in(item, "title"), MAX_NAME),
        "description": sanitize(text_in(item, "description"), MAX_DESCRIPTION),
        "mime_type": sanitize_line(text_in(item, "mimeType"), MAX_NAME),
        "problem": "" if is_shown_whole(item[uri]) else _HIDDEN_URI,
        "marks": marks_of(item),
    }


def _named(items: Sequence[object], key: str) -> list[dict[str, Any]]:
    """Return the items that are objects with a string under `key`."""
    return [item for item in items if isinstance(item, dict) and text_in(item, key)][:MAX_LISTED]


def _hash(definition: str) -> str:
    return hashlib.sha256(definition.encode()).hexdigest()


def _pretty(value: object) -> str:
    text = to_json(value, indent=2)
    if len(text) <= MAX_SCHEMA_TEXT and text.isascii() and _DELETE not in text:
        return text.decode()  # JSON escapes every other control character
    return sanitize(text.decode(), MAX_SCHEMA_TEXT)


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
    suffix = " | null" if schema.get("nullable") else ""
    match schema:
        case {"anyOf": list(branches)}:
            words = " | ".join(dict.fromkeys(_type_words(branch) for branch in branches))
        case {"enum": list(values)}:
            words = " | ".join(str(value) for value in values)
        case {"type": "array", "items": dict(items)} if items:
            inner = _type_words(items)
            words = f"({inner})[]" if " " in inner else f"{inner}[]"
        case _:
            words = str(schema.get("type", "any"))
    return sanitize_line(words + suffix, 80)
