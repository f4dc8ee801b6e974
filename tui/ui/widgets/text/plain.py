"""Helpers for text from outside: bounded, and never read as markup.

Widgets that show text of servers, models, settings or errors use these.
"""

from collections.abc import Callable, Iterator, Sequence
from time import localtime, strftime
from typing import Final

from rich.cells import cell_len, set_cell_size, split_graphemes
from rich.segment import Segment
from rich.text import Text
from textual.content import Content
from textual.selection import Selection
from textual.style import Style as TextStyle
from textual.visual import VisualType
from textual.widget import Widget
from textual.widgets import Static

from tui.text import clip, counted

MAX_BLOCK_LINES: Final = 400
"""Lines shown of one text; the rest is counted."""

MAX_BLANK_RUN: Final = 2
"""Consecutive blank lines shown."""


JOIN: Final = ".join"
"""What goes on the row above, after as many blanks as the number behind the style's name. It has
no look, as have the next two."""

SIGN: Final = ".sign"
"""A sign of the screen at the start of a row, such as the bar along a message."""

UNWRITTEN: Final = ".unwritten"
"""A row that is no text, such as the heading of code."""

CODE: Final = ".md-code-block"
"""A row of code; it begins with a blank."""

TAB: Final = 4
"""Cells of a tab."""

_JOINTS: Final = "/_-.:,?&=+\\"
"""A long name may be broken after one of these."""


class PlainText(Static):
    """A `Static` that never reads markup."""

    def __init__(self, content: str | Content = "", *, classes: str | None = None) -> None:
        super().__init__(content, markup=False, classes=classes)
        self.auto_links = False  # the keys in it can be clicked, but are no links

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Show something, unless it is there already: a layout draws the whole screen anew."""
        before, now = (Content(x) if isinstance(x, str) else x for x in (self.content, content))
        if not (isinstance(before, Content) and isinstance(now, Content) and before.is_same(now)):
            super().update(content, layout=layout)

    def say(self, content: str | Content) -> None:
        """Show something; where there is nothing to show, the line takes no place."""
        self.update(content)
        self.display = bool(content)


def one_line(text: str) -> str:
    """Put a text on one line: if it has line breaks or tabs, join its words with single blanks."""
    return " ".join(text.split()) if ("\n" in text or "\t" in text) else text


def cells(text: str) -> int:
    """Return the cells of one line; quick where there are many."""
    return len(text) if text.isascii() else cell_len(text)


def cuts(text: str, width: int, rest: int = 0) -> list[int]:
    """Return where the rows of a line after the first begin.

    A row ends between words. A word that is longer than a row is broken at a joint, as after a
    slash or before a capital, or where the row ends if there is none in its last two thirds.

    Args:
        text: The line.
        width: The cells of the first row.
        rest: Those of the others, as many if 0.
    """
    found = list[int]()
    start, room, rest = 0, max(1, width), max(1, rest or width)
    while (end := _reach(text, start, room)) < len(text):
        start = _row_end(text, start, end, rest)
        found.append(start)
        room = rest
    return found


def _reach(text: str, start: int, width: int) -> int:
    """Return the end of what fits into a row, which is one character at least."""
    snip = text[start : start + width]
    if cells(snip) <= width:
        return start + len(snip)
    room = width
    for first, _, size in split_graphemes(snip)[0]:
        room -= size
        if room < 0:
            return start + max(1, first)
    return start + len(snip)


def _row_end(text: str, start: int, end: int, width: int) -> int:
    """Return where to break what does not fit between `start` and `end`."""
    blank = text.rfind(" ", start, end + 1) + 1
    if blank > start and not text[start:blank].isspace():
        word = text[blank : blank + width + 1].partition(" ")[0]
        if blank > (start + end) // 2 or cells(word) <= width:
            return blank
    ends = range(end, (2 * start + end) // 3, -1)
    return next((at for at in ends if _is_joint(text[at - 1], text[at])), end)


def _is_joint(before: str, after: str) -> bool:
    if before in _JOINTS:
        return after not in _JOINTS
    return after.isupper() and before.islower()


def wrap(content: Content, width: int, *, marks: bool = True) -> list[Content]:
    """Wrap text at `cuts`; rows that go on the one above are marked, unless they share theirs."""
    rows = list[Content]()
    for line in content.split("\n", allow_blank=True):
        whole = line.expand_tabs(TAB)
        rows += joined(whole.divide(cuts(whole.plain, width)), marks=marks)
    return rows


def joined(rows: Sequence[Content], *, marks: bool = True) -> Iterator[Content]:
    """Yield the rows of a line without the blanks at which it was broken, marked as one line."""
    blanks = 0
    for at, row in enumerate(rows):
        kept = row.rstrip() if row is not rows[-1] else row
        yield kept.stylize(f"{JOIN}{blanks}") if at and marks else kept
        blanks = len(row) - len(kept)


def written(row_at: Callable[[int], Content], number: int, selection: Selection) -> str:
    """Return what is selected of drawn rows as it was written: lines are whole, without signs.

    Args:
        row_at: Gives a row by its number.
        number: How many there are.
        selection: Its offsets are those of the rows.
    """
    parts = list[str]()
    first = selection.start.y if selection.start else 0
    last = min(number, selection.end.y + 1 if selection.end else number)
    for y in range(first, last):
        row, begins = row_at(y), "\n"
        start, end = selection.get_span(y) or (0, -1)
        marks = {span.style: span for span in row.spans if isinstance(span.style, str)}
        for name, span in marks.items():
            if name.startswith(JOIN):
                begins, start = " " * int(name.removeprefix(JOIN)), max(start, span.start)
            elif name in {SIGN, CODE}:
                start = max(start, span.end if name == SIGN else span.start + 1)
        if UNWRITTEN not in marks:
            part = row.plain[start : len(row) if end < 0 else end].rstrip()
            parts.append(begins * bool(parts) + part)
    return "".join(parts)


def fit(text: str, width: int) -> str:
    """Cut or pad one line to exactly `width` cells; a cut one ends with an ellipsis."""
    if width <= 0:
        return ""
    length = cells(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…"
    return text + " " * (width - length)


def fit_end(text: str, width: int) -> str:
    """Cut one line on the left to at most `width` cells, including an ellipsis."""
    if cell_len(text) <= width:
        return text
    return "…" + set_cell_size(text[::-1], width - 1)[::-1]


def plain_label(text: str) -> Text:
    """Return a label for `Tree`, which parses bare strings as markup."""
    return Text(one_line(text), no_wrap=True, end="")


def block(text: str) -> str:
    """Limit the length, the lines and the consecutive blank lines of a text."""
    lines: list[str] = []
    blank = left_out = 0
    for line in clip(text.strip("\n"), limit=40_000).splitlines():
        blank = 0 if line.strip() else blank + 1
        if blank > MAX_BLANK_RUN:
            continue
        if len(lines) < MAX_BLOCK_LINES:
            lines.append(line)
        else:
            left_out += 1
    if left_out:
        lines.append(f"… {counted(left_out, 'more line')}")
    return "\n".join(lines)


def with_selection(view: Widget, line: Content, row: int) -> Content:
    """Return a line of a widget with its selected part marked, or the line itself."""
    selection = view.text_selection
    span = None if selection is None else selection.get_span(row)
    if span is None:
        return line
    selected = TextStyle.from_styles(view.screen.get_component_styles("screen--selection"))
    return line.stylize(selected, span[0], len(line) if span[1] == -1 else span[1])


def segments(
    line: Content, row: int, base: TextStyle, parse: Callable[[str | TextStyle], TextStyle]
) -> list[Segment]:
    """Convert a line to segments that carry their offset in the text, for selections."""

    def look(style: str | TextStyle) -> TextStyle:
        is_mark = isinstance(style, str) and style.startswith((JOIN, SIGN, UNWRITTEN))
        return TextStyle.null() if is_mark else parse(style)

    found: list[Segment] = []
    x = 0
    for text, style in line.render(base, end="", parse_style=look):
        found.append(Segment(text, (base + style).rich_style_with_offset(x, row)))
        x += len(text)
    return found


def count(number: int) -> str:
    """Format a count: ``950``, ``12.4k``, ``1M``."""
    for limit, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= limit:
            short = f"{number / limit:.1f}".removesuffix(".0")
            return f"{short}{unit}"
    return str(number)


def duration(seconds: float) -> str:
    """Format a duration: ``42 ms``, ``1.3 s``, ``2 m 05 s``, ``3 h 07 m``."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02} m"
    return f"{minutes} m {rest:02} s"


def moment(seconds: float | None, form: str, none: str) -> str:
    """Format a time in the user's time zone.

    Args:
        seconds: Since the epoch.
        form: As in `time.strftime`.
        none: What to return if there is no time, or the calendar cannot express it.
    """
    if seconds is None:
        return none
    try:
        return strftime(form, localtime(seconds))
    except (OverflowError, ValueError, OSError):
        return none
