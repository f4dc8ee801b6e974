"""The demo's model: offline, deterministic, and honest about being no language model."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Final

from tui.engine.chat.backend import ModelChunk, ModelRequest, WireContent, WirePart
from tui.engine.demo.steps import Step, next_step
from tui.model.chat import BackendKind, Usage

DEMO_MODEL: Final = "demo"
"""The name of the model."""

WORD_PACE: Final = 0.02
"""Seconds between two words of a streamed answer."""

MAX_STREAM_SECONDS: Final = 2.5
"""Longest time that streaming one answer takes; long answers go faster."""

MAX_CHUNKS: Final = 250
"""Pieces that one answer is streamed in at most; long answers come in larger ones."""

CHARACTERS_PER_TOKEN: Final = 4
"""The rough measure that the usage is counted with."""

_WORDS: Final = re.compile(r"\s*\S+\s*")


class DemoBackend:
    """A `ModelBackend` that needs no key and no network.

    It picks tools by comparing words, fills their arguments from the message, streams its
    answers word by word, and goes through the same turn loop as any other model.

    Args:
        pace: Seconds between two words; 0 streams without waiting.
    """

    def __init__(self, *, pace: float = WORD_PACE) -> None:
        self._pace = pace

    @property
    def kind(self) -> BackendKind:
        """Which service this is."""
        return BackendKind.DEMO

    @property
    def model(self) -> str:
        """The model's name."""
        return DEMO_MODEL

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Stream one step: text in small pieces, then all calls at once, then the usage."""
        step = await asyncio.to_thread(next_step, request)
        text = step.text
        if request.max_output_tokens is not None:
            text = text[: request.max_output_tokens * CHARACTERS_PER_TOKEN]
        pieces = _pieces(text)
        pause = min(self._pace, MAX_STREAM_SECONDS / max(len(pieces), 1))
        for piece in pieces:
            yield ModelChunk(parts=({"text": piece},))
            await asyncio.sleep(pause)
        if step.calls:
            yield ModelChunk(parts=_call_parts(step, request.contents))
        reason = "STOP" if text == step.text else "MAX_TOKENS"
        yield ModelChunk(finish_reason=reason, usage=_usage(request, step))

    async def aclose(self) -> None:
        """Do nothing: there is no connection to let go of."""


def _pieces(text: str) -> list[str]:
    """Cut a text into words, several at a time where there are many; joined they are the text."""
    words = _WORDS.findall(text)
    size = -(-len(words) // MAX_CHUNKS) or 1
    return ["".join(words[start : start + size]) for start in range(0, len(words), size)]


def _call_parts(step: Step, contents: Sequence[WireContent]) -> tuple[WirePart, ...]:
    """Write the calls in wire form, with ids that are unique in the conversation."""
    made = sum("functionCall" in part for content in contents for part in content.get("parts", ()))
    return tuple(
        {
            "functionCall": {
                "id": f"demo-{number}",
                "name": call.name,
                "args": dict(call.arguments),
            }
        }
        for number, call in enumerate(step.calls, start=made + 1)
    )


def _usage(request: ModelRequest, step: Step) -> Usage:
    calls = [dict(call.arguments) for call in step.calls]
    prompt = [request.system_instruction, list(request.contents), list(request.declarations)]
    return Usage(prompt=_tokens(prompt), output=_tokens([step.text, calls]))


def _tokens(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=str)) // CHARACTERS_PER_TOKEN
