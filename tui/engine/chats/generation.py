"""Generate text outside the conversation, for servers that use sampling."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tui.engine.bus import Publish
from tui.engine.chats.backends.backend import (
    ModelBackend,
    ModelError,
    ModelRequest,
    ModelTraits,
    WireContent,
)
from tui.engine.chats.history import UNSIGNED, wire_parts
from tui.engine.chats.step import Finish, ModelStep, malformed_call
from tui.engine.mcp.context import Generation, GenerationError, Generator, Prompt
from tui.model.chat import EntryId
from tui.model.events import Event, UsageReported

GENERATION_TIMEOUT: Final = 300.0
"""Timeout of one generation, in seconds."""


def backend_generator(current: Callable[[], tuple[ModelBackend | None, Publish]]) -> Generator:
    """Return a generator that uses the backend that is current at each request.

    Args:
        current: Returns the backend, or None if there is none, and what takes the token counts.
    """

    def model() -> str:
        backend, _ = current()
        return backend.model if backend is not None else ""

    async def generate(prompt: Prompt) -> Generation:
        backend, publish = current()
        if backend is None:
            raise GenerationError("No model has been chosen yet.")
        try:
            async with asyncio.timeout(GENERATION_TIMEOUT):
                return await _generate(backend, _request(prompt, backend.traits), counting(publish))
        except ModelError as error:
            raise GenerationError(str(error), error.advice) from error
        except TimeoutError:
            text = f"The model did not answer within {GENERATION_TIMEOUT:g} s."
            raise GenerationError(text) from None

    return Generator(model, generate)


def counting(publish: Publish) -> Publish:
    """Return what tells of tokens outside the conversation: its context stays as it is."""

    def count(event: Event) -> None:
        if isinstance(event, UsageReported):
            publish(replace(event, usage=replace(event.usage, context=0, context_limit=0)))

    return count


def wire_contents(prompt: Prompt) -> list[WireContent]:
    """Return the messages of a prompt in wire format."""
    return [
        {"role": message.role, "parts": wire_parts(message.parts)} for message in prompt.messages
    ]


def _request(prompt: Prompt, traits: ModelTraits) -> ModelRequest:
    contents = wire_contents(prompt)
    for content in contents if traits.signs_calls else ():
        for part in [part for part in content["parts"] if "functionCall" in part][:1]:
            part.setdefault("thoughtSignature", UNSIGNED)  # it never had a signature
    return ModelRequest(
        contents, prompt.declarations, prompt.system, prompt.max_tokens, prompt.must_call
    )


async def _generate(backend: ModelBackend, request: ModelRequest, publish: Publish) -> Generation:
    step = ModelStep(publish, lambda: EntryId(""), lambda: None)
    await step.stream(backend, request)
    text = "".join(part["text"] for part in step.gathered.parts if "text" in part)
    if step.finish_reason == "MAX_TOKENS" and request.max_output_tokens is not None:
        if not text:
            raise ModelError(
                f"The model used up all {request.max_output_tokens} tokens before it answered."
            )
        return Generation(text, (), backend.model, is_cut=True)
    if step.judge() is Finish.MALFORMED_CALL:
        raise malformed_call(step.finish_message)
    return Generation(text, step.gathered.calls, backend.model)
