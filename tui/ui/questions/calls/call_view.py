"""What the question shows of a call: whose it is, what is said of it, and its arguments."""

import re
from bisect import bisect_right
from itertools import accumulate
from typing import Final

from rich.cells import cell_len, set_cell_size
from textual.content import Content, Span
from textual.geometry import Size

from tui.model.requests import ConfirmationRequest
from tui.text import clip, counted
from tui.ui.widgets.text.folded_text import Position
from tui.ui.widgets.text.plain import PlainText, one_line

TALL: Final = 30
"""Rows from which what a server claims may have three rows."""

MIDDLING: Final = 20
"""Rows from which it may have two."""

MAX_COLOURED: Final = 20_000
"""Characters of arguments that get colours; longer ones are shown plain, as complete."""

MAX_NAME: Final = 200
"""Characters of a server's or tool's name in the dialog."""

MIN_NAME: Final = 8
"""Cells of a server's name that are worth more than where it comes from."""

MAX_CLAIMS: Final = 8
"""Claims of a server that are shown."""

MAX_CLAIMED: Final = 400
"""Characters of all claims up to which they are wrapped, not cut."""

LABEL_WIDTH: Final = 9
"""Cells of the labels before names and claims."""

MAX_NOTES: Final = 8
"""Notes of gemdeck's own that are shown."""

CLAIMS_NOTE: Final = "(claimed, not checked)"
"""Stands behind what a server claims."""

_BLANK_RUN: Final = re.compile(r"(?<=\S) {4,}")
_ESCAPED: Final = re.compile(r"·|[^\S \n\r\t]")
"""A dot as it is drawn for blanks in a run, and blanks such as U+00A0 and U+3000."""

_DECEIVING: Final = re.compile(rf"{_BLANK_RUN.pattern}|(?:{_ESCAPED.pattern})+")


class CallFacts(PlainText):
    """Names server and tool, and what the server claims: a row each, however long they are."""

    def __init__(self, request: ConfirmationRequest) -> None:
        super().__init__(classes="facts")
        self._request = request

    def show(self, request: ConfirmationRequest) -> None:
        """Show another call."""
        self._request = request
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return self._words(width).plain.count("\n") + 1

    def render(self) -> Content:
        return self._words(self.size.width)

    def _words(self, width: int) -> Content:
        height = self.app.size.height
        return facts(self._request, width, 3 if height >= TALL else 2 if height >= MIDDLING else 1)


def facts(request: ConfirmationRequest, width: int, claim_rows: int = 1) -> Content:
    """Write each fact behind gemdeck's own label, in rows of `width` cells.

    Names have a row each, with where the server comes from; claims have up to `claim_rows`.
    """
    room = max(8, width - LABEL_WIDTH)
    origin = f"  from {request.origin}" if request.origin else ""
    if room - len(origin) < min(MIN_NAME, cell_len(request.server)):
        origin = ""
    lines = [
        _fact("server", both_ends(request.server, room - len(origin)), origin, "bold"),
        _fact("tool", both_ends(request.tool, room), "", "bold"),
    ]
    for number, (words, note) in enumerate(claim_lines(request, room, claim_rows)):
        lines.append(_fact("" if number else "claims", words, note, ""))
    return Content("\n").join(lines)


def claim_lines(request: ConfirmationRequest, width: int, rows: int) -> list[tuple[str, str]]:
    """Write what the server claims in up to `rows` rows, the last with gemdeck's note behind it.

    What does not fit loses its middle, never the note that nobody checked it.
    """
    if not request.claims:
        return []
    words, note = one_line(", ".join(request.claims[:MAX_CLAIMS])), f"  {CLAIMS_NOTE}"
    if len(words) <= MAX_CLAIMED:
        lines = [line.plain.rstrip() for line in Content(words + note).wrap(width)]
        if len(lines) <= rows and lines[-1].endswith(CLAIMS_NOTE):
            last = lines[-1].removesuffix(CLAIMS_NOTE).rstrip()
            return [*((line, "") for line in lines[:-1]), (last, lines[-1][len(last) :])]
    return [(both_ends(words, max(8, width - len(note))), note)]


def _fact(label: str, words: str, note: str, style: str) -> Content:
    muted = "$foreground-muted"
    return Content.assemble((label.ljust(LABEL_WIDTH), muted), (words, style), (note, muted))


def call_line(request: ConfirmationRequest, width: int) -> Content:
    """Name server and tool in one row of `width` cells."""
    half = max(8, (width - 3) // 2)
    server, tool = (both_ends(name, half) for name in (request.server, request.tool))
    return Content.assemble((server, "bold"), (" · ", "$foreground-muted"), (tool, "bold"))


def notes_content(request: ConfirmationRequest) -> Content:
    """Write gemdeck's own notes, a line each, as nothing of a server's looks."""
    problem = (f"Not sent yet: {request.problem}",) if request.problem else ()
    lines = (
        Content.assemble(("!", "bold"), f" {one_line(note)}")
        for note in (*problem, *request.notes)[:MAX_NOTES]
    )
    return Content("\n").join(lines).stylize("$text-warning")


def server_words(request: ConfirmationRequest) -> Content:
    """Write the server's title and description of the tool."""
    if not request.title and not request.description:
        return Content("The server gives no description of this tool.")
    gap = "  " if request.title and request.description else ""
    return Content.assemble((one_line(request.title), "bold"), gap, request.description)


def both_ends(name: str, width: int) -> str:
    """Fit a name into `width` cells by leaving out its middle: names may differ at either end."""
    name = clip(one_line(name), MAX_NAME)
    if cell_len(name) <= width:
        return name
    head = width // 2
    tail = set_cell_size(name[::-1], width - head - 1)[::-1]
    return f"{set_cell_size(name, head)}…{tail}"


def heading(arguments: str, position: Position, *, edited: bool = False) -> Content:
    """Say how much there is, whose it is, and where in it the view stands."""
    if arguments == "{}":
        return Content("arguments")
    size = counted(arguments.count("\n") + 1, "line") if position.fits else position.words
    words = f"complete: {size}, {counted(len(arguments), 'character')}"
    if edited:
        return Content.assemble("arguments ", ("edited by you", "bold $text-warning"), f", {words}")
    return Content(f"arguments, {words}")


def coloured_arguments(text: str) -> Content:
    """Give arguments with colours, and with blanks that deceive made visible.

    Every character of the text is there. Blanks in a run are drawn as dots, so that text cannot
    be pushed out of sight; a dot of the text itself, and a blank that is not the common one, are
    written as JSON escapes, so that nothing looks like something else.
    """
    from textual.highlight import highlight  # noqa: PLC0415 - loads Pygments, on first use

    content = highlight(text, language="json") if len(text) <= MAX_COLOURED else Content(text)
    return without_deceit(content)


def without_deceit(content: Content) -> Content:
    """Draw what deceives in another way; styles stay where they were."""
    text = content.plain
    if len(text) > MAX_COLOURED:
        for character in set(_ESCAPED.findall(text)):
            text = text.replace(character, _drawn(character))
        return Content(_BLANK_RUN.sub(lambda match: _drawn(match[0]), text))
    found = [(*match.span(), _drawn(match[0])) for match in _DECEIVING.finditer(text)]
    if not found:
        return content
    shown = _DECEIVING.sub(lambda match: _drawn(match[0]), text)
    ends = [end for _, end, _ in found]
    grown = [0, *accumulate(start - end + len(drawn) for start, end, drawn in found)]

    def moved(index: int) -> int:
        return index + grown[bisect_right(ends, index)]

    spans = [Span(moved(span.start), moved(span.end), span.style) for span in content.spans]
    marks = [Span(moved(end) - len(drawn), moved(end), "$text-warning") for _, end, drawn in found]
    return Content(shown, spans=[*spans, *marks])


def _drawn(text: str) -> str:
    """Draw a run of blanks as dots, and other characters as their escapes."""
    if text.startswith(" "):
        return "·" * len(text)
    return "".join(f"\\u{ord(character):04x}" for character in text)
