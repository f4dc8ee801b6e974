"""One step of the model: streams it to the screen and gathers what goes back."""

from collections.abc import AsyncGenerator, Callable
from typing import Final

from tui.engine.chat.backend import ModelBackend, ModelChunk, ModelError, ModelRequest, WirePart
from tui.engine.chat.deltas import DeltaSanitizer
from tui.engine.chat.finish import Finish, judge_finish
from tui.engine.chat.history import StepParts
from tui.engine.events import Publish
from tui.model.chat import EntryId, Usage
from tui.model.events import EntryCompleted, TextStreamed, ThoughtStreamed, UsageReported
from tui.text import MAX_TEXT, sanitize_line

MAX_STEP_CHARACTERS: Final = MAX_TEXT
"""Longest text and thoughts of one step, in characters."""

_Streamed = type[TextStreamed] | type[ThoughtStreamed]


class ModelStep:
    """Runs one step and keeps what has arrived, however it ends.

    Attributes:
        gathered: The parts so far, in the form in which they go back to the service.
        any_chunk: Whether anything arrived.
        any_text: Whether text beside thoughts arrived.
        finish_message: The service's words on the end.

    Args:
        publish: Takes the streamed text.
        new_entry: Gives the id of the next transcript entry.
        on_first_chunk: Called once, when the answer begins.
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
        self._usage: Usage | None = None
        self._finish_reason = ""
        self._block_reason = ""
        self.gathered = StepParts()
        self.any_chunk = False
        self.any_text = False
        self.finish_message = ""

    async def run(self, backend: ModelBackend, request: ModelRequest) -> Finish:
        """Stream the step to its end.

        Raises:
            ModelError: If no whole answer came; what did arrive is in `gathered`.
        """
        stream = backend.stream(request)
        try:
            async for chunk in stream:
                self._take(chunk)
        finally:
            self._close_entry()
            if self._usage is not None:
                self._publish(UsageReported(self._usage))
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
        return judge_finish(
            finish_reason=self._finish_reason,
            finish_message=self.finish_message,
            block_reason=self._block_reason,
            any_chunk=self.any_chunk,
            any_content=self.any_text or bool(self.gathered.calls),
        )

    def _take(self, chunk: ModelChunk) -> None:
        if not self.any_chunk:
            self.any_chunk = True
            self._on_first_chunk()
        for part in chunk.parts:
            self.gathered.add(part)
            self._show(part)
        self._finish_reason = chunk.finish_reason or self._finish_reason
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
                f"The answer was cut: it is longer than {MAX_STEP_CHARACTERS} characters.",
                advice="Ask for less at once.",
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
            self._publish(EntryCompleted(self._entry))
            self._entry = None
