"""What servers offer: tools, prompts, resources and resource templates, as shown."""

from dataclasses import dataclass
from typing import NewType

ToolId = NewType("ToolId", str)
"""The name under which the model knows a tool; unique over all servers, ``[a-zA-Z0-9_.-]``."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool, read off its schema for display.

    Attributes:
        name: Its key in the arguments.
        type: A word or two, such as ``string``, ``integer[]`` or ``a | b``.
        required: Whether a call must give it.
        description: The server's words on it.
    """

    name: str
    type: str
    required: bool
    description: str = ""


@dataclass(frozen=True, slots=True)
class ToolView:
    """One tool.

    Attributes:
        id: Its name towards the model.
        name: Its name on its server.
        title: Its human name, or nothing.
        description: The server's words on it.
        parameters: What it takes.
        schema: Its whole input schema as indented JSON.
        claims: What the server claims of it, such as ``read-only``; never believed.
        problem: Why the model cannot be offered it, or nothing.
        changed: Whether it is withheld until the user accepted that it has changed.
        output_schema: The schema of its structured results as indented JSON, or nothing.
        has_icons: Whether its server names icons for it; they are never fetched.
    """

    id: ToolId
    name: str
    title: str = ""
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    schema: str = "{}"
    claims: tuple[str, ...] = ()
    problem: str = ""
    changed: bool = False
    output_schema: str = ""
    has_icons: bool = False


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """One argument of a prompt."""

    name: str
    required: bool
    description: str = ""


@dataclass(frozen=True, slots=True)
class PromptView:
    """One prompt template of a server."""

    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()
    has_icons: bool = False


@dataclass(frozen=True, slots=True)
class ResourceView:
    """One resource of a server; `size` in bytes where the server tells it."""

    uri: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""
    size: int | None = None
    has_icons: bool = False


@dataclass(frozen=True, slots=True)
class ResourceTemplateView:
    """A family of resources, named by an RFC 6570 URI template."""

    uri_template: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""
    has_icons: bool = False


@dataclass(frozen=True, slots=True)
class ResourceContent:
    """What a resource holds, as shown: its texts joined, and a line for each blob.

    `omitted` counts the characters that were cut off.
    """

    text: str = ""
    mime_type: str = ""
    blobs: tuple[str, ...] = ()
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class Catalog:
    """All that one server offers, in the server's order."""

    tools: tuple[ToolView, ...] = ()
    prompts: tuple[PromptView, ...] = ()
    resources: tuple[ResourceView, ...] = ()
    templates: tuple[ResourceTemplateView, ...] = ()
