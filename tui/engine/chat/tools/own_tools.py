"""Which of gemdeck's own tools the model gets, and how they are made."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tui.engine.mcp.catalog.offered_tool import JsonObject, OwnTool, TextPart, ToolResult
from tui.model.catalog import ToolId, ToolView
from tui.model.servers import ServerId
from tui.text import for_model, sanitize

GEMDECK: Final = ServerId("gemdeck")
"""What stands for a server where a tool is gemdeck's own."""


def make_own_tool(
    name: str,
    description: str,
    properties: dict[str, Any],
    run: Callable[[JsonObject], Awaitable[ToolResult]],
    *required: str,
    is_free: bool,
) -> OwnTool:
    """Make a tool whose arguments are these properties; see `OwnTool`."""
    schema = {
        "type": "object",
        "properties": properties,
        **({"required": [*required]} if required else {}),
    }
    definition = json.dumps([name, description, schema], sort_keys=True)
    return OwnTool(
        id=ToolId(name),
        server=GEMDECK,
        name=name,
        view=ToolView(ToolId(name), name, description=description),
        declaration={"name": name, "description": description, "parametersJsonSchema": schema},
        schema=schema,
        definition_hash=hashlib.sha256(definition.encode()).hexdigest(),
        run=run,
        is_free=is_free,
    )


def text_result(text: str) -> ToolResult:
    """Return a text for the model, and the same for the screen."""
    return ToolResult((TextPart(for_model(text)[0]),), sanitize(text))
