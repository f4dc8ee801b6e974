"""Run one model step: stream it to the screen and collect the parts to send back.

Also text that is generated outside the conversation, for servers that use sampling.
"""

import asyncio
import re
import time
import unicodedata
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Final

from tui.engine.bus import Publish
from tui.engine.chats.backends.backend import (
    ModelBackend,
    ModelChunk,
    ModelError,
    ModelRequest,
    ModelTraits,
    WirePart,
)
from tui.engine.chats.costs import Costs, find_list_price
from tui.engine.chats.history import StepParts, sign_first_call, wire_contents
from tui.engine.mcp.context import Generation, GenerationError, Generator, Prompt
from tui.model.chat import EntryId, Usage
from tui.model.events import EntryCompleted, Event, TextStreamed, ThoughtStreamed, UsageReported
from tui.text import ESCAPE_SEQUENCE, MAX_COMBINING, MAX_TEXT, sanitize, sanitize_line

MAX_HELD: Final = 4_200
"""Most characters held back; slightly more than `tui.text` allows for one escape."""

_JOINERS: Final = "\u200d\ufe0f"

MAX_STEP_CHARACTERS: Final = MAX_TEXT
"""Longest text and thoughts of one step, in characters."""

_Streamed = type[TextStreamed] | type[ThoughtStreamed]

GENERATION_TIMEOUT: Final = 300.0
"""Timeout of one generation, in seconds."""


class MalformedCallError(ModelError):
    """The model sent a tool call that cannot be read, or is of no tool that it was offered."""

    def __init__(self, words: str, what: str = "sent a malformed tool call") -> None:
        text = f"The model {what}" + (f": {words}" if words else ".")
        advice = "Send the message again, or choose another model with /model or --model."
        super().__init__(text, advice=advice, retryable=True)


_REASONS: Final = {
    "SAFETY": "the service's safety filters stopped it",
    "RECITATION": "it is too similar to existing text",
    "LANGUAGE": "it is in a language the model does not support",
}

_REPHRASE: Final = "Rephrase the message, or choose another model with /model or --model."


def _unfinished(words: str) -> ModelError:
    return ModelError(words, advice="Send the message again.", retryable=True)


class DeltaSanitizer:
    """Sanitizes a text that arrives in pieces.

    A possible start of an escape sequence is held back until the rest has arrived, so that the
    sequence is dropped whole. Joiners and combining marks are checked with the character before
    them, even if it came in an earlier piece. Every piece passes `tui.text.sanitize`, so the
    output is safe wherever the text was split.
    """

    def __init__(self) -> None:
        self._held = self._context = ""

    def feed(self, piece: str) -> str:
        """Add the next piece; return the text that can be shown now."""
        text = self._held + piece
        cut = _safe_length(text)
        if len(text) - cut > MAX_HELD:
            cut = len(text)
        self._held = text[cut:]
        return self._release(text[:cut])

    def flush(self) -> str:
        """Return the text held back; the stream has ended."""
        text, self._held = self._held, ""
        released = self._release(text)
        self._context = ""
        return released

    def _release(self, text: str) -> str:
        if not text:
            return ""
        shown = sanitize(self._context + text)[len(self._context) :]
        self._context = _last_cluster(self._context + shown)
        return shown


def _safe_length(text: str) -> int:
    """Return the length of the prefix that further text cannot change."""
    end = len(text)
    for found in re.finditer(ESCAPE_SEQUENCE, text, re.VERBOSE):
        if found.end() == end:  # more of it may come
            return found.start()
    if text.endswith("\r"):
        return end - 1
    while end and text[end - 1] in _JOINERS:
        end -= 1
    return end


def _last_cluster(shown: str) -> str:
    """Return the last base character with its marks, the context for the next piece."""
    start = len(shown)
    while start and len(shown) - start <= MAX_COMBINING:
        start -= 1
        if not start or unicodedata.category(shown[start]) not in {"Mn", "Me"}:
            cluster = shown[start:]
            return cluster if sanitize(cluster) == cluster else ""
    return ""


class ModelStep:
    """Runs one step and keeps everything received, even if it fails.

    Attributes:
        gathered: The parts so far, in the form in which they are sent back.
        any_chunk: Whether anything arrived.
        any_text: Whether text other than thoughts arrived.
        finish_reason: Gemini's ``finishReason``, or an empty string.
        usage: The tokens as the service counted them so far, or None.

    Args:
        publish: Publishes the streamed text.
        new_entry: Returns the id of the next transcript entry.
        on_first_chunk: Called once, with the first chunk.
    """

    def __init__(
        self, publish: Publish, new_entry: Callable[[], EntryId], on_first_chunk: Callable[[], None]
    ) -> None:
        self._publish, self._new_entry, self._on_first_chunk = publish, new_entry, on_first_chunk
        self._entry: EntryId | None = None
        self._streamed: _Streamed = TextStreamed
        self._sanitizer = DeltaSanitizer()
        self._characters = 0
        self._since = time.monotonic()
        self.usage: Usage | None = None
        self.finish_reason = self._block_reason = self._finish_message = ""
        self.gathered = StepParts()
        self.any_chunk = self.any_text = False

    async def run(self, backend: ModelBackend, request: ModelRequest) -> None:
        """Stream the step to its end, and evaluate how it ended; see `judge`."""
        await self.stream(backend, request)
        self.judge()

    async def stream(self, backend: ModelBackend, request: ModelRequest) -> None:
        """Stream the step to its end without evaluating how it ended."""
        stream, finding = backend.stream(request), find_list_price(backend)
        try:
            async for chunk in stream:
                self._add(chunk)
            await finding
        finally:
            self._close_entry()
            if self.usage is not None:
                is_found = finding.done() and not finding.cancelled()
                listed = finding.result()(self.usage) if is_found else None
                self._publish(UsageReported(self.usage, backend.model, listed))
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    def judge(self) -> None:
        """Evaluate a step whose stream ended without a transport error.

        Raises:
            MalformedCallError: If the model sent one.
            ModelError: If there is no complete answer; what arrived is in `gathered`.
        """
        words = sanitize_line(self._finish_message, 300).rstrip(".")
        if self._block_reason:
            refused = f"The service refused the message ({sanitize_line(self._block_reason, 60)})"
            raise ModelError(f"{refused}{words and f': {words}'}.", advice=_REPHRASE)
        if not all(call.name for call in self.gathered.calls):
            raise MalformedCallError("it names no tool")  # sent back, each later request fails
        match self.finish_reason:
            case "STOP" if self.any_text or self.gathered.calls:
                return
            case "UNEXPECTED_TOOL_CALL" if self.gathered.calls:
                return
            case "" if self.any_chunk:
                raise _unfinished("The answer is incomplete: the stream ended early.")
            case "" | "STOP":
                raise _unfinished("The model sent an empty answer.")
            case "MALFORMED_FUNCTION_CALL":
                raise MalformedCallError(words)
            case "UNEXPECTED_TOOL_CALL":
                raise MalformedCallError(words, "called a tool that it was not offered")
            case "MAX_TOKENS":
                advice = "Change the output limit or thinking: /options."
                if self.any_text:
                    advice = "Ask the model to continue, or ask for a shorter answer."
                cut = "The answer was cut off: it reached the model's output limit."
                raise ModelError(cut, advice=advice)
            case reason if re.search("ERROR|ABORT|INSUFFICIENT", reason):
                named = sanitize_line(reason.lower().replace("_", " "), 60)
                raise _unfinished(f"The service aborted the answer: {words or named}.")
            case reason:
                why = words or _REASONS.get(reason) or "the service gave no reason"
                stopped = f"The answer was stopped ({sanitize_line(reason, 60)}): {why}."
                raise ModelError(stopped, advice=_REPHRASE)

    def _add(self, chunk: ModelChunk) -> None:
        if not self.any_chunk:
            self.any_chunk = True
            self._on_first_chunk()
        for part in chunk.parts:
            self.gathered.add(part)
            self._show(part)
        self.finish_reason = chunk.finish_reason or self.finish_reason
        self._finish_message = chunk.finish_message or self._finish_message
        self._block_reason = chunk.block_reason or self._block_reason
        self.usage = chunk.usage or self.usage

    def _show(self, part: WirePart) -> None:
        if media := part.get("inlineData"):
            mime_type = sanitize_line(str(media.get("mimeType", "")), 80)
            self._stream(TextStreamed, f"\n[The model sent {mime_type}, which is not shown.]\n")
        elif text := part.get("text"):
            self._stream(ThoughtStreamed if part.get("thought") else TextStreamed, text)

    def _stream(self, streamed: _Streamed, text: str) -> None:
        self._characters += len(text)
        if self._characters > MAX_STEP_CHARACTERS:
            words = f"The answer was cut off: it is longer than {MAX_STEP_CHARACTERS} characters."
            raise ModelError(words, advice="Ask for a shorter answer.")
        if streamed is not self._streamed:
            self._close_entry()
            self._streamed = streamed
        self.any_text = self.any_text or streamed is TextStreamed
        self._emit(self._sanitizer.feed(text))

    def _emit(self, delta: str) -> None:
        if not delta:
            return
        if self._entry is None:
            self._entry = self._new_entry()
        self._publish(self._streamed(self._entry, delta))

    def _close_entry(self) -> None:
        self._emit(self._sanitizer.flush())
        if self._entry is not None:
            before, self._since = self._since, time.monotonic()
            self._publish(EntryCompleted(self._entry, self._since - before))
            self._entry = None


def backend_generator(
    current: Callable[[], tuple[ModelBackend | None, Publish]], costs: Costs
) -> Generator:
    """Return a generator that uses the backend that is current at each request.

    Args:
        current: Returns the backend, or None if there is none, and what takes the token counts.
        costs: Refuse a request where the run has become too expensive.
    """

    def model() -> str:
        backend, _ = current()
        return backend.model if backend is not None else ""

    async def generate(prompt: Prompt) -> Generation:
        backend, publish = current()
        if backend is None:
            raise GenerationError("No model has been chosen yet.")
        try:
            costs.check()
            return await generated(backend, _request(prompt, backend.traits), publish)
        except ModelError as error:
            raise GenerationError(str(error), error.advice) from error

    return Generator(model, generate)


def _request(prompt: Prompt, traits: ModelTraits) -> ModelRequest:
    contents = wire_contents(prompt.messages)
    for content in contents if traits.signs_calls else ():
        sign_first_call(content["parts"])
    limits = prompt.max_tokens, prompt.must_call
    return ModelRequest(contents, prompt.declarations, prompt.system, *limits)


async def generated(backend: ModelBackend, request: ModelRequest, publish: Publish) -> Generation:
    """Let a model answer outside a conversation, the context of which stays as it is.

    Raises:
        ModelError: If it does not.
    """

    def count(event: Event) -> None:
        if isinstance(event, UsageReported):
            publish(replace(event, usage=replace(event.usage, context=0, context_limit=0)))

    step = ModelStep(count, lambda: EntryId(""), lambda: None)
    try:
        async with asyncio.timeout(GENERATION_TIMEOUT):
            await step.stream(backend, request)
    except TimeoutError:
        raise ModelError(f"The model did not answer within {GENERATION_TIMEOUT:g} s.") from None
    text = "".join(part["text"] for part in step.gathered.parts if "text" in part)
    if step.finish_reason == "MAX_TOKENS" and request.max_output_tokens is not None:
        if not text:
            words = f"The model used up all {request.max_output_tokens} tokens before it answered."
            raise ModelError(words)
        return Generation(text, (), backend.model, is_cut=True)
    try:
        step.judge()
    except ModelError as error:
        error.advice = "Try again, or choose another model with /model or --model."
        raise  # with advice that fits a request of gemdeck's own
    return Generation(text, step.gathered.calls, backend.model)
