"""Streaming Markdown: finished blocks are kept, and only the rest is parsed again.

Textual's `MarkdownStream` rebuilds the last top-level block, with a widget for each item, for
every chunk. Here a chunk costs parsing the last block, or the last item of a list, and everything
is one widget. The complete text is parsed once more as a whole.
"""

from typing import TYPE_CHECKING

from textual.content import Content

from tui.ui.widgets.chat.window import MAX_BLOCKS, markdown_part, shown_part
from tui.ui.widgets.text.blocks import Block, ListBlock, TextBlock

if TYPE_CHECKING:
    from tui.ui.widgets.text.markdown import Parsed


class GrowingMarkdown:
    """The blocks of a growing text.

    Attributes:
        text: The text so far.
        left_out: Characters at its end that are not shown because it is too long.
    """

    def __init__(self) -> None:
        self.text = ""
        self.left_out = 0
        self._committed: list[Block] = []
        self._offset = 0
        self._count = 0
        self._tail: list[Block] = []
        self._next_number: int | None = None

    @property
    def blocks(self) -> list[Block]:
        return [*self._committed, *self._tail]

    def update(self, text: str, *, complete: bool) -> None:
        """Parse a longer text.

        Args:
            text: The whole text so far; if it does not extend the last one, parsing restarts.
            complete: Whether it is complete.
        """
        if complete or not text.startswith(self.text):
            self._restart()
        self.text = text
        self.left_out = 0
        parsed_part = markdown_part(text)
        if complete:
            self._parse_whole(parsed_part)
        elif len(parsed_part) == len(text) and self._count < MAX_BLOCKS:
            self._parse_tail(text[self._offset :])
        if len(parsed_part) < len(text) or self._count >= MAX_BLOCKS:
            shown, self.left_out = shown_part(text[self._offset :])
            self._tail = [TextBlock(Content(shown))] if shown else []

    def _restart(self) -> None:
        self._committed, self._tail = [], []
        self._offset = self._count = 0
        self._next_number = None

    def _parse_whole(self, text: str) -> None:
        parsed = _parse(text)
        self._commit(text, parsed, len(parsed.blocks))
        if self._count == len(parsed.blocks):
            self._offset = len(text)

    def _parse_tail(self, tail: str) -> None:
        parsed = _parse(tail)
        blocks = parsed.blocks
        if not blocks:
            self._tail = []
            return
        self._continue_list(blocks[0])
        if len(blocks) > 1:
            self._commit(tail, parsed, len(blocks) - 1)
            self._next_number = None
        last = blocks[-1]
        self._tail = [last]
        if isinstance(last, ListBlock) and parsed.last_item_line is not None:
            self._split_list(last)
            self._advance(tail, parsed.last_item_line, base=parsed.first_lines[-1])

    def _commit(self, text: str, parsed: "Parsed", number: int) -> None:
        """Keep the first parsed blocks, up to `MAX_BLOCKS` in all."""
        kept = min(number, MAX_BLOCKS - self._count)
        self._committed.extend(parsed.blocks[:kept])
        self._count += kept
        if kept < len(parsed.blocks):
            self._advance(text, parsed.first_lines[kept])

    def _continue_list(self, block: Block) -> None:
        """Number and space the tail as the continuation of the committed part of its list."""
        if not isinstance(block, ListBlock) or self._next_number is None:
            return
        block.spaced = False
        if block.first_number is not None:
            block.first_number = self._next_number

    def _split_list(self, block: ListBlock) -> None:
        """Commit all items but the last, which may still grow."""
        head = ListBlock(block.items[:-1], block.first_number)
        head.spaced = block.spaced
        number = block.first_number
        self._next_number = 0 if number is None else number + len(block.items) - 1
        rest = ListBlock(block.items[-1:], None if number is None else self._next_number)
        rest.spaced = False
        self._committed.append(head)
        self._tail = [rest]

    def _advance(self, tail: str, line: int, base: int = 0) -> None:
        self._offset += sum(len(text) + 1 for text in tail.split("\n")[base:line])


def _parse(text: str) -> "Parsed":
    # Importing the parser takes 50 ms.
    from tui.ui.widgets.text.markdown import parse_markdown  # noqa: PLC0415

    return parse_markdown(text)
