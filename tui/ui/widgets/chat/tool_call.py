"""A tool call in the transcript: one row, with arguments and result below it when opened."""

from collections.abc import Mapping, Sequence
from typing import Final

from textual.content import Content

from tui.model.chat import Progress, ToolCall, ToolCallStatus
from tui.ui.widgets.chat.entries import INDENT, EntryView, clipped_text
from tui.ui.widgets.text.blocks import Block, IndentBlock, LineBlock, TextBlock, styled

BAR_WIDTH: Final = 20
"""Cells of a progress bar."""

STATUS_WIDTH: Final = 13
"""Cells of the status column: a glyph, a blank, the longest status, a blank."""

TIME_WIDTH: Final = 8
"""Cells of the time column."""

MAX_LABEL: Final = 200
"""Characters of a tool's name or a progress message in a row."""

MAX_HIGHLIGHTED_ARGUMENTS: Final = 4_000
"""Characters of arguments that are highlighted."""

_S = ToolCallStatus

_LOOKS: Final[Mapping[ToolCallStatus, tuple[str, str]]] = {
    _S.WAITING: ("○", ".entry-muted"),
    _S.ASKING: ("◆", ".entry-warning"),
    _S.RUNNING: ("◐", ".entry-running"),
    _S.OK: ("✓", ".entry-ok"),
    _S.ERROR: ("✕", ".entry-error"),
    _S.DENIED: ("⊘", ".entry-warning"),
    _S.CANCELLED: ("■", ".entry-muted"),
}
"""Glyph and style of each status; the word is the status itself."""


class ToolCallEntry(EntryView):
    """One tool call. Arguments and result are laid out only while it is open."""

    entry: ToolCall
    expandable = True

    def blocks(self) -> Sequence[Block]:
        """Draw the row, the progress while it runs, and the details if it is open."""
        blocks: list[Block] = [LineBlock(self._row)]
        if self.entry.progress is not None:
            progress = self.entry.progress
            blocks.append(LineBlock(lambda width: progress_line(progress, width)))
        if self.expanded:
            bar = styled("│ ", ".md-rule")
            blocks.append(IndentBlock(bar, bar, self._details(), spaced=False))
        elif self.entry.status is _S.ERROR and self.entry.result:
            first = self.entry.result.strip().split("\n", 1)[0][: MAX_LABEL * 2]
            line = styled(f"{INDENT}{first}", ".entry-error")
            blocks.append(LineBlock(lambda _: line))
        return blocks

    def title(self) -> str:
        return call_name(self.entry)

    def full_text(self) -> str:
        """Return the complete arguments and result."""
        parts = ["arguments", self.entry.arguments]
        if self.entry.result:
            parts += ["", "result", self.entry.result]
        return "\n".join(parts)

    def _row(self, width: int) -> Content:
        glyph, style = _LOOKS[self.entry.status]
        arrow = "▾" if self.expanded else "▸"
        seconds = "" if self.entry.seconds is None else duration(self.entry.seconds)
        state = f"{glyph} {self.entry.status.value}".ljust(STATUS_WIDTH)
        right = Content.assemble((state, style), (seconds.rjust(TIME_WIDTH), ".entry-muted"))
        room = max(8, width - right.cell_length - 1)
        left = Content.assemble((f"{arrow} ", ".entry-muted"), self._named(room - 2))
        left = left.truncate(room, ellipsis=True)
        return left.pad_right(max(1, width - left.cell_length - right.cell_length)) + right

    def _named(self, room: int) -> Content:
        """Return server and tool; at least half of the room is for the tool's name."""
        tool = styled(self.entry.tool[:MAX_LABEL], ".entry-strong")
        if not self.entry.server:
            return tool
        server = styled(self.entry.server[:MAX_LABEL], ".entry-muted")
        most = max(room // 2, room - tool.cell_length) - 1
        return server.truncate(max(1, most), ellipsis=True) + styled(".", ".entry-muted") + tool

    def _details(self) -> list[Block]:
        from tui.ui.widgets.text.markdown import code_block  # noqa: PLC0415 - on first use

        arguments = self.entry.arguments
        details: list[Block] = [TextBlock(styled("arguments", ".entry-muted"))]
        if len(arguments) <= MAX_HIGHLIGHTED_ARGUMENTS:
            code = code_block(arguments, "json")
            code.spaced = False
            details.append(code)
        else:
            details += _unspaced(clipped_text(arguments))
        if self.entry.result:
            heading = "result" if self.entry.status is not _S.ERROR else "error"
            details.append(TextBlock(styled(heading, ".entry-muted")))
            details += _unspaced(clipped_text(self.entry.result))
        return details


def _unspaced(blocks: list[Block]) -> list[Block]:
    for block in blocks:
        block.spaced = False
    return blocks


def call_name(call: ToolCall) -> str:
    """Return the name of a call, with its server if it has one."""
    return f"{call.server}.{call.tool}" if call.server else call.tool


def duration(seconds: float) -> str:
    """Format a duration: ``42 ms``, ``1.3 s``, ``2 m 05 s``."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} m {rest:02} s"


def progress_line(progress: Progress, width: int) -> Content:
    """Draw the progress of a call: a bar and a percentage if the total is known, else the count."""
    message = " ".join(progress.message[:MAX_LABEL].split())
    if progress.total is not None and progress.total > 0:
        share = min(1.0, max(0.0, progress.progress / progress.total))
        cells = min(BAR_WIDTH, max(4, width // 4))
        done = round(share * cells)
        return Content.assemble(
            INDENT,
            ("━" * done, ".entry-running"),
            ("─" * (cells - done), ".md-rule"),
            (f" {share:4.0%}  ", ".entry-muted"),
            message,
        )
    return Content.assemble(INDENT, (f"{progress.progress:g}  ", ".entry-muted"), message)
