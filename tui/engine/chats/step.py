"""Run one model step: stream it to the screen and collect the parts to send back."""

import time
from collections.abc import AsyncGenerator, Callable
from typing import Final

from tui.engine.bus import Publish
from tui.engine.chats.backends.backend import (
    ModelBackend,
    ModelChunk,
    ModelError,
    ModelRequest,
    WirePart,
)
from tui.engine.chats.finish import Finish, judge_finish
from tui.engine.chats.history import StepParts
from tui.engine.chats.safe_stream import DeltaSanitizer
from tui.model.chat import EntryId, Usage
from tui.model.events import EntryCompleted, TextStreamed, ThoughtStreamed, UsageReported
from tui.text import MAX_TEXT, sanitize_line

MAX_STEP_CHARACTERS: Final = MAX_TEXT
"""Longest text and thoughts of one step, in characters."""

_Streamed = type[TextStreamed] | type[ThoughtStreamed]


class ModelStep:
    """Runs one step and keeps everything received, even if it fails.

    Attributes:
        gathered: The parts so far, in the form in which they are sent back.
        any_chunk: Whether anything arrived.
        any_text: Whether text other than thoughts arrived.
        finish_reason: Gemini's ``finishReason``, or an empty string.
        finish_message: The service's explanation of the finish reason.

    Args:
        publish: Publishes the streamed text.
        new_entry: Returns the id of the next transcript entry.
        on_first_chunk: Called once, with the first chunk.
    """

    def __init__(
        self,
        publish: Publish,
        new_entry: Callable[[], EntryId],
        on_first_chunk: Callable[[], None],
    ) -> None:
        self._publish = publish
        self._new_entry = new_entry
        self._on_first_chunk = on_first_chunk
        self._entry: EntryId | None = None
        self._streamed: _Streamed = TextStreamed
        self._sanitizer = DeltaSanitizer()
        self._characters = 0
        self._since = time.monotonic()
        self._usage: Usage | None = None
        self.finish_reason = ""
        self._block_reason = ""
        self.gathered = StepParts()
        self.any_chunk = False
        self.any_text = False
        self.finish_message = ""

    async def run(self, backend: ModelBackend, request: ModelRequest) -> Finish:
        """Stream the step to its end, and evaluate how it ended.

        Raises:
            ModelError: If the answer is incomplete; what arrived is in `gathered`.
        """
        await self.stream(backend, request)
        return self.judge()

    async def stream(self, backend: ModelBackend, request: ModelRequest) -> None:
        """Stream the step to its end without evaluating how it ended."""
        stream = backend.stream(request)
        try:
            async for chunk in stream:
                self._add(chunk)
        finally:
            self._close_entry()
            if self._usage is not None:
                self._publish(UsageReported(self._usage, backend.model))
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    def judge(self) -> Finish:
        """Say how the step ended; raises `ModelError` like `run`."""
        return judge_finish(
            finish_reason=self.finish_reason,
            finish_message=self.finish_message,
            block_reason=self._block_reason,
            any_chunk=self.any_chunk,
            any_content=self.any_text or bool(self.gathered.calls),
        )

    def _add(self, chunk: ModelChunk) -> None:
        if not self.any_chunk:
            self.any_chunk = True
            self._on_first_chunk()
        for part in chunk.parts:
            self.gathered.add(part)
            self._show(part)
        self.finish_reason = chunk.finish_reason or self.finish_reason
        self.finish_message = chunk.finish_message or self.finish_message
        self._block_reason = chunk.block_reason or self._block_reason
        self._usage = chunk.usage or self._usage

    def _show(self, part: WirePart) -> None:
        if media := part.get("inlineData"):
            mime_type = sanitize_line(str(media.get("mimeType", "")), 80)
            self._stream(TextStreamed, f"\n[The model sent {mime_type}, which is not shown.]\n")
        elif text := part.get("text"):
            self._stream(ThoughtStreamed if part.get("thought") else TextStreamed, text)

    def _stream(self, streamed: _Streamed, text: str) -> None:
        self._characters += len(text)
        if self._characters > MAX_STEP_CHARACTERS:
            raise ModelError(
                f"The answer was cut off: it is longer than {MAX_STEP_CHARACTERS} characters.",
                advice="Ask for a shorter answer.",
            )
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
