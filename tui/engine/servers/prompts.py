"""Rendered prompts in their two forms: parts for the model and text for the screen."""

from typing import Final

import mcp_types as types

from tui.engine.servers.content import convert_block, within_limits
from tui.engine.servers.features import RenderedPrompt, ServerCallError
from tui.engine.tools import MediaPart, TextPart
from tui.text import MAX_TEXT, sanitize, sanitize_line

MAX_MESSAGES: Final = 200
"""Messages of a rendered prompt that are taken."""

MAX_PROMPT_TEXT: Final = 200_000
"""Characters of a rendered prompt that go to the model; of more, heads and tails."""


def convert_prompt(result: types.GetPromptResult) -> RenderedPrompt:
    """Turn a rendered prompt into one message of the user.

    A turn begins with the user. Where the server also lets the model speak, each message is
    headed by a label that says whose it is.

    Raises:
        ServerCallError: If there is nothing in it.
    """
    messages = result.messages[:MAX_MESSAGES]
    is_dialogue = any(message.role != "user" for message in messages)
    parts: list[TextPart | MediaPart] = []
    shown: list[str] = []
    for message in messages:
        if is_dialogue:
            _add_text(parts, shown, f"[{message.role}]")
        if isinstance(message.content, types.EmbeddedResource):
            uri = sanitize_line(message.content.resource.uri)
            _add_text(parts, shown, f"[Resource {uri}]")
        for part, line in convert_block(message.content, "Prompt"):
            parts.append(part)
            shown.append(line)
    if not any(isinstance(part, MediaPart) or part.text.strip() for part in parts):
        raise ServerCallError("The server rendered the prompt to nothing.")
    text = sanitize("\n".join(line for line in shown if line), MAX_TEXT)
    return RenderedPrompt(text, within_limits(parts, MAX_PROMPT_TEXT))


def _add_text(parts: list[TextPart | MediaPart], shown: list[str], text: str) -> None:
    parts.append(TextPart(text))
    shown.append(text)
