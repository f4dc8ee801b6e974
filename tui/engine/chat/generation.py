"""Text asked of the model beside the conversation, as servers do by sampling."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from tui.engine.chat.backend import ModelBackend, ModelChunk, ModelError, ModelRequest, WireContent
from tui.engine.chat.finish import Finish, judge_finish, malformed_call
from tui.engine.chat.history import UNSIGNED, FunctionCall, StepParts
from tui.engine.chat.models import signs_calls
from tui.text import MAX_TEXT

GENERATION_TIMEOUT: Final = 300.0
"""Seconds that one generation may take."""

MAX_GENERATED: Final = MAX_TEXT
"""Longest generated text, in characters."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What the model generated.

    Attributes:
        text: Its text, raw.
        calls: The calls it asks for, in order.
        model: Its name.
        is_cut: Whether it ended because it had reached the most tokens allowed.
    """

    text: str
    calls: tuple[FunctionCall, ...]
    model: str
    is_cut: bool = False


class Generator(Protocol):
    """Generates text with the model that answers in the conversation."""

    @property
    def model(self) -> str:
        """The model's name; nothing while none has been chosen."""

    async def generate(self, request: ModelRequest) -> Generation:
        """Generate. Cancelling the awaiting task ends the request on the wire.

        Raises:
            ModelError: If no usable text came.
        """


class BackendGenerator:
    """Implements `Generator` over whatever backend is current when it is asked.

    Args:
        current: Gives the backend, or None while there is none.
    """

    def __init__(self, current: Callable[[], ModelBackend | None]) -> None:
        self._current = current

    @property
    def model(self) -> str:
        """The model's name; nothing while none has been chosen."""
        backend = self._current()
        return backend.model if backend is not None else ""

    async def generate(self, request: ModelRequest) -> Generation:
        """Generate; see `Generator.generate`."""
        backend = self._current()
        if backend is None:
            raise ModelError("No model has been chosen yet.")
        if signs_calls(backend.model):
            request = replace(request, contents=_signed(request.contents))
        try:
            async with asyncio.timeout(GENERATION_TIMEOUT):
                return await _generate(backend, request)
        except TimeoutError:
            raise ModelError(
                f"The model did not answer within {GENERATION_TIMEOUT:g} s.", retryable=True
            ) from None


async def _generate(backend: ModelBackend, request: ModelRequest) -> Generation:
    gathered = StepParts()
    last = ModelChunk()
    any_chunk = False
    size = 0
    stream = backend.stream(request)
    try:
        async for chunk in stream:
            any_chunk = True
            for part in chunk.parts:
                gathered.add(part)
                size += len(part.get("text", ""))
            if size > MAX_GENERATED:
                raise ModelError(f"The answer is longer than {MAX_GENERATED} characters.")
            last = ModelChunk(
                finish_reason=chunk.finish_reason or last.finish_reason,
                finish_message=chunk.finish_message or last.finish_message,
                block_reason=chunk.block_reason or last.block_reason,
            )
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
    text = "".join(part["text"] for part in gathered.parts if "text" in part)
    if last.finish_reason == "MAX_TOKENS" and request.max_output_tokens is not None:
        if not text:
            raise ModelError(
                f"The model used up all {request.max_output_tokens} tokens before it answered."
            )
        return Generation(text, (), backend.model, is_cut=True)
    finish = judge_finish(
        finish_reason=last.finish_reason,
        finish_message=last.finish_message,
        block_reason=last.block_reason,
        any_chunk=any_chunk,
        any_content=bool(text or gathered.calls),
    )
    if finish is Finish.MALFORMED_CALL:
        raise malformed_call(last.finish_message)
    return Generation(text, gathered.calls, backend.model)


def _signed(contents: Sequence[WireContent]) -> list[WireContent]:
    """Mark the first call of each content as one that never had a signature."""
    signed: list[WireContent] = []
    for content in contents:
        parts = [dict(part) for part in content["parts"]]
        for part in parts:
            if "functionCall" in part:
                part.setdefault("thoughtSignature", UNSIGNED)
                break
        signed.append({**content, "parts": parts})
    return signed
