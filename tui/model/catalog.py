"""Tools, prompts, resources and resource templates of servers, as shown."""

from enum import StrEnum
from typing import NewType

from tui.model.frozen import Frozen

ToolId = NewType("ToolId", str)
"""The model's name for a tool; unique across all servers, ``[a-zA-Z0-9_.-]``."""


class Mark(Frozen):
    """What a server's text hides from people, or says to the model against the user.

    Attributes:
        kind: Its kind in JSON: ``invisible``, ``out-of-sight``, or one of ``hostile_words.toml``.
        words: What the text does, as a predicate that quotes it; safe to show.
    """

    kind: str
    words: str


class Parameter(Frozen):
    """One parameter of a tool, from its schema, for display.

    Attributes:
        name: Its key in the arguments.
        type: A short type, such as ``string``, ``integer[]`` or ``a | b``.
        required: Whether a call must include it.
        description: The server's description.
    """

    name: str
    type: str
    required: bool
    description: str = ""


class Off(StrEnum):
    """Who switched a tool off: then the model does not get it."""

    SESSION = "off for this session"
    SETTINGS = "off in settings"


class ToolView(Frozen):
    """One tool.

    Attributes:
        id: The model's name for it.
        name: Its name on its server.
        title: Its display name, or an empty string.
        description: The server's description.
        parameters: Its parameters.
        schema: Its complete input schema as indented JSON.
        claims: The server's claims about it, such as ``read-only``; never trusted.
        claims_to_read: Whether the server claims that it only reads, and nothing against that.
        problem: Why it cannot be offered to the model, or an empty string.
        off: Who switched it off, or None; by hand it can be run if that was the user.
        size: Bytes of what describes it to the model.
        left_out: The parts of its schema hidden from the model, and why.
        changed: Whether it is withheld until the user accepts its changed definition.
        output_schema: Its output schema as indented JSON, or an empty string.
        has_icons: Whether it has icons; they are never fetched.
        marks: What is marked in its definition.
    """

    id: ToolId
    name: str
    title: str = ""
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    schema: str = "{}"
    claims: tuple[str, ...] = ()
    problem: str = ""
    off: Off | None = None
    size: int = 0
    left_out: tuple[str, ...] = ()
    changed: bool = False
    output_schema: str = ""
    has_icons: bool = False
    claims_to_read: bool = False
    marks: tuple[Mark, ...] = ()


class PromptArgument(Frozen):
    """One argument of a prompt."""

    name: str
    required: bool
    description: str = ""


class PromptView(Frozen):
    """One prompt template of a server.

    `problem` says why it cannot be sent. `own_name` is what its server calls it, if that name was
    taken here.
    """

    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()
    problem: str = ""
    own_name: str = ""
    marks: tuple[Mark, ...] = ()


class ResourceView(Frozen):
    """One resource of a server; `size` is in bytes, `problem` says why it cannot be read."""

    uri: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""
    size: int | None = None
    problem: str = ""
    marks: tuple[Mark, ...] = ()


class ResourceTemplateView(Frozen):
    """A resource template (RFC 6570); `problem` says why it cannot be used."""

    uri_template: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""
    problem: str = ""
    marks: tuple[Mark, ...] = ()


class SkillView(Frozen):
    """A skill of a server: instructions for a task, in files that are read when they are needed.

    `name` is unique on its server, `problem` says why it cannot be loaded.
    """

    name: str
    description: str
    problem: str = ""
    marks: tuple[Mark, ...] = ()


class ResourceContent(Frozen):
    """The content of a resource as shown: its texts joined, and a line for each blob.

    `omitted` counts the characters that were cut off.
    """

    text: str = ""
    mime_type: str = ""
    blobs: tuple[str, ...] = ()
    omitted: int = 0


class Catalog(Frozen):
    """The features of one server, in the server's order.

    `excess` are the tools that the model does not hold but finds, because there are too many.
    """

    tools: tuple[ToolView, ...] = ()
    prompts: tuple[PromptView, ...] = ()
    resources: tuple[ResourceView, ...] = ()
    templates: tuple[ResourceTemplateView, ...] = ()
    excess: frozenset[ToolId] = frozenset()
    skills: tuple[SkillView, ...] = ()

    @property
    def off(self) -> int:
        """The number of tools that are switched off."""
        return sum(tool.off is not None for tool in self.tools)

    @property
    def off_words(self) -> str:
        """Says that behind the number of all tools; nothing if none is off."""
        return f", {self.off:,} off" if self.off else ""
