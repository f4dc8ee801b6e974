"""A tool call in the transcript: two lines, with arguments and result below them when opened."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from textual.content import Content

from tui.model.chat import Entry, Progress, TaskProgress, ToolCall, ToolCallStatus
from tui.text import clip, counted, sanitize_line
from tui.ui.widgets.chat.entries import INDENT, EntryView, clipped_text
from tui.ui.widgets.text.blocks import Block, IndentBlock, LineBlock, TextBlock, styled
from tui.ui.widgets.text.picture import MAX_PICTURES, PictureBlock, draws_pictures, load_all
from tui.ui.widgets.text.plain import duration, one_line

MAX_SCANNED: Final = 20_000
"""Characters of the arguments that are read."""

MAX_VALUE: Final = 60
"""Characters of a value; longer ones are cut and stand last."""

MAX_KEY: Final = 40
"""Characters of an argument's name."""

MAX_SUMMARY: Final = 400
"""Characters of a result that are read for its line."""

_OPEN: Final = {"{": "{…}", "[": "[…]"}
_NAMED: Final = re.compile(r'  "(?P<key>(?:[^"\\]|\\.)*)": ?(?P<value>.*?),?')
_BARE: Final = re.compile(r"[^\s\"'=,]+")

BAR_WIDTH: Final = 20
"""Cells of a progress bar."""

TIME_WIDTH: Final = 8
"""Cells of the time column, with the gap before it; a longer time gets more."""

MIN_SERVER: Final = 4
"""Cells below which the server's name is left out."""

MIN_ARGUMENTS: Final = 8
"""Cells below which the arguments are left out."""

GAP: Final = 2
"""Cells between the tool's name, its arguments and its server."""

ERROR_LINES: Final = 3
"""Lines of an error that are shown of a closed call."""

MAX_LABEL: Final = 200
"""Characters of a tool's name or a progress message in a row."""

MAX_HIGHLIGHTED_ARGUMENTS: Final = 4_000
"""Characters of arguments that are highlighted."""

OPENS: Final = "↵"
"""Stands at the end of a call's second line, as Enter shows more."""

_S = ToolCallStatus

CALL_LOOKS: Final[Mapping[ToolCallStatus, tuple[str, str, str]]] = {
    _S.WAITING: ("○", "waiting", ".entry-muted"),
    _S.ASKING: ("◆", "waiting for you", ".entry-warning"),
    _S.RUNNING: ("◐", "running", ".entry-running"),
    _S.OK: ("✓", "ran", ".entry-ok"),
    _S.ERROR: ("✕", "failed", ".entry-error"),
    _S.DENIED: ("⊘", "denied", ".entry-warning"),
    _S.CANCELLED: ("■", "cancelled", ".entry-muted"),
    _S.RUNS_ON: ("◑", "in background", ".entry-running"),
}
"""Glyph, verb and style of each status."""


def arguments_line(arguments: str) -> str:
    """Return the arguments in one line: short values whole and first, then parts of long ones.

    Args:
        arguments: An object as indented JSON, with one of its values on each line of two blanks.
    """
    short, long = list[str](), list[str]()
    for line in arguments[:MAX_SCANNED].split("\n"):
        if (named := _NAMED.fullmatch(line)) is None:
            continue
        for value, is_short in _value(named["value"]):
            words = f"{sanitize_line(named['key'], MAX_KEY)}={value}"
            (short if is_short else long).append(words)
    return "  ".join((*short, *long))


def _value(written: str) -> Iterator[tuple[str, bool]]:
    """Give a value as it is shown, and whether it is short; nothing for null."""
    try:
        value = json.loads(written)
    except (ValueError, RecursionError):  # it goes on in the next lines, or is cut
        yield _OPEN.get(written, "…"), False
        return
    if not isinstance(value, str):
        if value is not None:
            yield clip(written, MAX_VALUE), len(written) <= MAX_VALUE
        return
    lines = value.strip("\n").count("\n") + 1
    if lines > 1:
        yield counted(lines, "line"), False
        return
    text = sanitize_line(value, MAX_VALUE + 1)
    kept = clip(text, MAX_VALUE)
    yield kept if _BARE.fullmatch(kept) else json.dumps(kept, ensure_ascii=False), text == kept


def result_line(result: str) -> str:
    """Return a result in one line: the number of its lines, and its first words."""
    text = result.strip()
    first = " ".join(text[:MAX_SUMMARY].split("\n", 1)[0].split())
    if len(first) < 3:  # a bracket of JSON
        first = " ".join(text[:MAX_SUMMARY].split())
    lines = text.count("\n") + 1
    return f"{counted(lines, 'line')} · {first}" if lines > 1 else first


class ToolCallEntry(EntryView):
    """One tool call. Its whole arguments and result are laid out only while it is open."""

    entry: ToolCall
    expandable = True

    def __init__(self, entry: ToolCall) -> None:
        super().__init__(entry)
        self._pictures: list[PictureBlock] = []

    def blocks(self) -> Sequence[Block]:
        """Draw the call, and below it the details if it is open, or else what there is to say."""
        row = LineBlock(self._row)
        indent = Content(INDENT)
        pictures = [IndentBlock(indent, indent, [one], spaced=False) for one in self._pictures]
        if self.expanded:
            bar = styled("│ ", ".md-rule")
            details = IndentBlock(bar, bar, self._details(), spaced=False)
            return [row, *self._progress(), details, *pictures]
        return [row, *(self._progress() or [self._outcome()]), *pictures]

    def on_mount(self) -> None:
        self._load_pictures()

    def show(self, entry: Entry) -> None:
        super().show(entry)
        self._load_pictures()

    def _load_pictures(self) -> None:
        """Take room for the pictures of the result, and decode them."""
        found = self.entry.pictures[:MAX_PICTURES]
        if len(found) != len(self._pictures) and self.is_attached and draws_pictures(self.app):
            self._pictures = [PictureBlock(one, rows=12) for one in found]
            self.changed()
            self.run_worker(load_all(self, self._pictures))

    def title(self) -> str:
        return call_name(self.entry)

    def full_text(self) -> str:
        """Return the complete arguments and result."""
        parts = ["arguments", self.entry.arguments]
        if self.entry.result:
            parts += ["", "result", self.entry.result]
        return "\n".join(parts)

    def _row(self, width: int) -> Content:
        """Draw state, tool and arguments, with server and time at the right."""
        glyph, verb, style = CALL_LOOKS[self.entry.status]
        seconds = "" if self.entry.seconds is None else duration(self.entry.seconds)
        time = styled(f"{'':{GAP}}{seconds}".rjust(TIME_WIDTH), ".entry-muted")
        tool = styled(one_line(self.entry.tool[:MAX_LABEL]), ".entry-strong")
        left = Content.assemble((f"{glyph} {verb} ", style), tool)
        room = width - time.cell_length
        left = left.truncate(max(1, room), ellipsis=True)
        arguments = styled(arguments_line(self.entry.arguments), ".entry-muted")
        # The server gives way to the tool's name; the arguments get what both leave.
        rest = room - left.cell_length - GAP
        most = rest - min(arguments.cell_length + GAP, rest // 2) if arguments else rest
        server = styled(one_line(self.entry.server[:MAX_LABEL]), ".entry-muted")
        if most < min(MIN_SERVER, server.cell_length):
            server = Content("")
        server = server.truncate(max(1, most), ellipsis=True)
        rest -= server.cell_length + GAP
        if arguments and rest >= min(MIN_ARGUMENTS, arguments.cell_length):
            left += Content(" " * GAP) + arguments.truncate(rest, ellipsis=True)
        return left.pad_right(max(0, room - left.cell_length - server.cell_length)) + server + time

    def _progress(self) -> list[Block]:
        if (progress := self.entry.progress) is None:
            return []
        return [LineBlock(lambda width: progress_line(progress, width))]

    def _outcome(self) -> Block:
        """Draw one line of the result, or a few of an error; a blank one before there is any."""
        result = self.entry.result
        if self.entry.status is _S.ERROR and result:
            words = Content(result.strip()[: MAX_LABEL * ERROR_LINES])
            text = TextBlock(words.stylize_before(".entry-error"), most=ERROR_LINES)
            return IndentBlock(Content(INDENT), Content(INDENT), [text], spaced=False)
        said = styled(INDENT + result_line(result), ".entry-muted") if result else Content("")

        def line(width: int) -> Content:
            if not said:
                return said
            room = max(1, width - len(OPENS) - 1)
            shown = said.truncate(room, ellipsis=True).pad_right(max(0, room - said.cell_length))
            return shown + styled(f" {OPENS}", ".entry-muted")

        return LineBlock(line)

    def _details(self) -> list[Block]:
        from tui.ui.widgets.text.markdown import code_block  # noqa: PLC0415 - on first use

        arguments = self.entry.arguments
        details: list[Block] = [TextBlock(styled("arguments", ".entry-muted"))]
        if len(arguments) <= MAX_HIGHLIGHTED_ARGUMENTS:
            code = code_block(arguments, "json")
            code.spaced = False
            details.append(code)
        else:
            details += clipped_text(arguments)
        if self.entry.result:
            heading = "result" if self.entry.status is not _S.ERROR else "error"
            details.append(TextBlock(styled(heading, ".entry-muted")))
            details += clipped_text(self.entry.result)
        return details


def call_name(call: ToolCall) -> str:
    """Return the name of a call, with its server if it has one."""
    return f"{call.server}.{call.tool}" if call.server else call.tool


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
    count = f"{progress.progress:g}  "
    if isinstance(progress, TaskProgress):
        left = f"expires in {duration(progress.left)}"
        count = f"task {progress.status.words} · {duration(progress.progress)} · {left}  "
    return Content.assemble(INDENT, (count, ".entry-muted"), message)
