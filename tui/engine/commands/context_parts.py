"""What a request consists of, so that a full context can be understood."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tui.engine.chats.backends.backend import WireContent
from tui.engine.mcp.catalog.offered_tool import OfferedTool
from tui.model.models import ContextPart
from tui.model.servers import ServerId

CHARACTERS_PER_TOKEN: Final = 4
"""Roughly, where the service has not counted yet."""

MEDIA_TOKENS: Final = 258
"""What the service counts for an image."""


def context_parts(
    tools: Sequence[OfferedTool], instructions: str, contents: Sequence[WireContent], counted: int
) -> tuple[ContextPart, ...]:
    """Split a request into its parts, the largest first. It may take long, so run it in a thread.

    Args:
        tools: The offered tools.
        instructions: The system instruction, those of servers and files included.
        contents: The history; further contents may be added to the original meanwhile.
        counted: The tokens of the last request as the service counted them; 0 if it has not.
    """
    sizes: Counter[tuple[str, ServerId | None]] = Counter()
    for tool in tools:
        sizes["tools", tool.server] += _length(tool.declaration)
    sizes["instructions", None] = len(instructions)
    for content in contents:
        for part in content["parts"]:
            kind = "results" if "functionResponse" in part else "messages"
            sizes[kind, None] += _size(part)
    total = sum(sizes.values())
    scale = counted / total if counted and total else 1 / CHARACTERS_PER_TOKEN
    return tuple(
        ContextPart(name, round(size * scale), server)
        for (name, server), size in sizes.most_common()
        if size
    )


def _size(part: Mapping[str, Any]) -> int:
    """Return the characters of a part, an image as what it counts for."""
    response = part.get("functionResponse", {})
    media = ("inlineData" in part) + len(response.get("parts", ()))
    texts = [value for key, value in part.items() if key not in {"inlineData", "functionResponse"}]
    texts += [value for key, value in response.items() if key != "parts"]
    return _length(texts) + media * MEDIA_TOKENS * CHARACTERS_PER_TOKEN


def _length(value: object) -> int:
    return len(json.dumps(value, default=str, ensure_ascii=False))
