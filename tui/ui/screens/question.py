"""What the question shows of a call: whose it is, what is said of it, and its arguments."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.cells import cell_len, set_cell_size
from textual.content import Content, Span
from textual.widgets import Static

from tui.model.requests import ConfirmationRequest
from tui.text import clip, counted
from tui.ui.widgets.plain import one_line

CONFIRMATION_STYLES: Final = Path(__file__).parent.parent / "styles" / "confirmation.tcss"
"""Read when the first question is asked, so that the first frame does not wait for it."""

MAX_COLOURED: Final = 20_000
"""Characters of arguments that get colours; longer ones are shown plain, as complete."""

MAX_NAME: Final = 200
"""Characters of a server's or tool's name in the dialog."""

MAX_CLAIMS: Final = 8
"""Claims of a server that are shown."""

LABEL_WIDTH: Final = 9
"""Cells of the labels before names and claims."""

MAX_NOTES: Final = 8
"""Notes of gemdeck's own that are shown."""

_BLANK_RUN: Final = re.compile(r"(?<=\S) {4,}")


class CallFacts(Static):
    """Names server and tool, and what the server claims: a row each, however long they are."""

    def __init__(self) -> None:
        super().__init__("", markup=False, id="confirmation-facts")
        self._request: ConfirmationRequest | None = None

    def show(self, request: ConfirmationRequest) -> None:
        """Show another call."""
        self._request = request
        self._draw()

    def on_resize(self) -> None:
        """Fit the names into the width."""
        self._draw()

    def _draw(self) -> None:
        if self._request is not None:
            self.update(facts(self._request, self.size.width))


def facts(request: ConfirmationRequest, width: int) -> Content:
    """Write each fact behind gemdeck's own label, in one row of `width` cells."""
    room = max(8, width - LABEL_WIDTH)
    lines = [
        Content.assemble(
            (label.ljust(LABEL_WIDTH), "$foreground-muted"), (both_ends(name, room), "bold")
        )
        for label, name in (("server", request.server), ("tool", request.tool))
    ]
    if request.claims:
        note = "  (claimed, not checked)"
        words = both_ends(", ".join(request.claims[:MAX_CLAIMS]), max(8, room - len(note)))
        muted = "$foreground-muted"
        lines.append(Content.assemble(("claims".ljust(LABEL_WIDTH), muted), words, (note, muted)))
    return Content("\n").join(lines)


def call_line(request: ConfirmationRequest, width: int) -> Content:
    """Name server and tool in one row of `width` cells."""
    half = max(8, (width - 3) // 2)
    server, tool = (both_ends(name, half) for name in (request.server, request.tool))
    return Content.assemble((server, "bold"), (" · ", "$foreground-muted"), (tool, "bold"))


def notes(request: ConfirmationRequest) -> tuple[str, ...]:
    """Give what gemdeck itself has to say of a call, what went wrong before first."""
    problem = (f"Not sent yet: {request.problem}",) if request.problem else ()
    return (*problem, *request.notes)[:MAX_NOTES]


def notes_content(said: tuple[str, ...]) -> Content:
    """Write gemdeck's own notes, a line each, as nothing of a server's looks."""
    lines = (Content.assemble(("!", "bold"), f" {one_line(note)}") for note in said)
    return Content("\n").join(lines).stylize("$text-warning")


def server_words(request: ConfirmationRequest) -> Content:
    """Write what the server says of the tool: its title, then its description."""
    if not request.title and not request.description:
        return Content("The server says nothing about this tool.")
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


@dataclass(frozen=True, slots=True)
class Position:
    """What of a text is in sight: the first row there, and how many there are."""

    first: int
    rows: int
    fits: bool


def heading(arguments: str, position: Position, *, edited: bool = False) -> Content:
    """Say how much there is, whose it is, and where in it the view stands."""
    if position.fits:
        size = counted(arguments.count("\n") + 1, "line")
    else:
        size = f"line {position.first:,} of {position.rows:,}"
    words = f"complete: {size}, {counted(len(arguments), 'character')}"
    if edited:
        return Content.assemble("arguments ", ("edited by you", "bold $text-warning"), f", {words}")
    return Content(f"arguments, {words}")


def end_hint(position: Position, *, short: bool) -> str:
    """Ask for a look at the end of the arguments."""
    if short:
        return f"Scroll to the end first: End {position.first:,}/{position.rows:,}"
    return f"Scroll to the end first: End · line {position.first:,} of {position.rows:,}"


def coloured_arguments(text: str) -> Content:
    """Give arguments with colours, and with runs of blanks made visible.

    Every character of the text is there; only blanks in a run are drawn as dots, so that text
    cannot be pushed out of sight.
    """
    from textual.highlight import highlight  # noqa: PLC0415 - loads Pygments, on first use

    content = highlight(text, language="json") if len(text) <= MAX_COLOURED else Content(text)
    runs = [(match.start(), match.end()) for match in _BLANK_RUN.finditer(content.plain)]
    if not runs:
        return content
    shown = _BLANK_RUN.sub(lambda match: "·" * len(match.group()), content.plain)
    dots = [Span(start, end, "$text-warning") for start, end in runs]
    return Content(shown, spans=[*content.spans, *dots])
