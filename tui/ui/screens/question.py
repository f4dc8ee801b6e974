"""What the question shows: the possible answers, the call, and what its last line says."""

import re
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size
from textual.binding import Binding
from textual.content import Content, Span
from textual.widgets import Static

from tui.model.consent import Choice, ConfirmationRequest
from tui.text import clip, counted

MAX_COLOURED: Final = 20_000
"""Characters of arguments that get colours; longer ones are shown plain, as complete."""

MAX_NAME: Final = 200
"""Characters of a server's or tool's name in the dialog."""

MAX_CLAIMS: Final = 8
"""Claims of a server that are shown."""

LABEL_WIDTH: Final = 9
"""Cells of the labels before names and claims."""

_BLANK_RUN: Final = re.compile(r"(?<=\S) {4,}")


@dataclass(frozen=True, slots=True)
class Answer:
    """One of the answers there are.

    Attributes:
        name: The id of its button, and the end of the id of its binding.
        keys: Textual's names of its keys; the first one stands on the button.
        choice: What is decided.
        words: What it does, in help and hints.
        label: The words on the button.
        short: The same where columns are few.
        lasting: Whether it also holds for calls to come.
        stops: Whether the turn ends with it.
    """

    name: str
    keys: str
    choice: Choice
    words: str
    label: str
    short: str
    lasting: bool = False
    stops: bool = False

    @property
    def allows(self) -> bool:
        """Whether the tool may run."""
        return self.choice is not Choice.DENY

    @property
    def binding(self) -> Binding:
        """The binding of its keys; it names no action, so that only a key pressed here answers."""
        binding_id = f"confirmation.{self.name}"
        return Binding(self.keys, "none", self.words, id=binding_id, tooltip=self.words)

    def button_label(self, *, short: bool) -> Content:
        """Give the label of its button, the key first."""
        words = self.short if short else self.label
        return Content.assemble((self.keys[0], "bold underline"), f" {words}")


ANSWERS: Final = (
    Answer("once", "o", Choice.ONCE, "allow this call", "Once", "Once"),
    Answer(
        "always-tool",
        "t",
        Choice.ALWAYS_TOOL,
        "always this tool",
        "Always this tool",
        "Always tool",
        lasting=True,
    ),
    Answer(
        "always-server",
        "s",
        Choice.ALWAYS_SERVER,
        "always this server",
        "Always this server",
        "Always server",
        lasting=True,
    ),
    Answer("deny", "d,escape", Choice.DENY, "deny this call", "Deny", "Deny"),
    Answer(
        "stop",
        "x",
        Choice.DENY,
        "deny this and all further calls, and stop the turn",
        "Stop the turn",
        "Stop the turn",
        stops=True,
    ),
)
"""All answers, in the order of their buttons."""


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


def both_ends(name: str, width: int) -> str:
    """Fit a name into `width` cells by leaving out its middle: names may differ at either end."""
    name = clip(name, MAX_NAME)
    if cell_len(name) <= width:
        return name
    head = width // 2
    tail = set_cell_size(name[::-1], width - head - 1)[::-1]
    return f"{set_cell_size(name, head)}…{tail}"


@dataclass(frozen=True, slots=True)
class Position:
    """What of the arguments is in sight: the first row there, and how many there are."""

    first: int
    rows: int
    fits: bool


def heading(arguments: str, position: Position) -> Content:
    """Say how much there is, and where in it the view stands."""
    if position.fits:
        size = counted(arguments.count("\n") + 1, "line")
    else:
        size = f"line {position.first:,} of {position.rows:,}"
    return Content(f"arguments, complete: {size}, {counted(len(arguments), 'character')}")


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
