"""The dialog of the confirmation: a call, all that would be sent, and the buttons."""

from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.getters import query_one
from textual.message import Message
from textual.widgets import Static

from tui.model.requests import ConfirmationRequest
from tui.ui.screens import confirmation_rows as rows
from tui.ui.screens.answers import AnswerRows
from tui.ui.screens.armed_screen import waiting_words
from tui.ui.screens.draft import Draft
from tui.ui.screens.question import (
    LABEL_WIDTH,
    CallFacts,
    claim_lines,
    coloured_arguments,
    heading,
    notes,
    notes_content,
    server_words,
)
from tui.ui.screens.reading import WORDY, Position, position_of
from tui.ui.widgets.folded_text import FoldedText

NOTE_MARGIN: Final = 8
"""Cells of a row that notes have not: frame, air and scrollbar."""

MAX_WIDTH: Final = 104
"""The widest the dialog gets, in cells; the style sheet says so, too."""

MARGIN: Final = 6
"""Cells of a row that facts have not: frame and air; the dialog takes 96 of 100 columns."""

_ARMED_HINTS: Final = (
    "↑↓ PageUp PageDown scroll the arguments · ← → Tab move · ↵ presses",
    "↑↓ scroll the arguments · ↵ presses",
)


class ArgumentsText(FoldedText):
    """The arguments, which tell when another part of them comes into sight."""

    class Resized(Message):
        """There is more or less room than before."""

    def on_resize(self, event: events.Resize) -> None:  # noqa: ARG002
        """Let somebody look what is in sight now."""
        self.post_message(self.Resized())


class ConfirmationView(Vertical):
    """Shows one call at a time, and knows whether the end of its arguments was in sight."""

    facts = query_one(CallFacts)
    notes = query_one("#confirmation-notes", FoldedText)
    description = query_one("#confirmation-description", FoldedText)
    arguments = query_one(ArgumentsText)
    buttons = query_one(AnswerRows)
    hint = query_one("#confirmation-hint", Static)

    def __init__(self) -> None:
        super().__init__(id="confirmation")
        self.end_seen = False
        """Whether all of the arguments was in sight, down to its end."""
        self.is_short = False
        """Whether there are few columns, so that words have to be few."""
        self._request: ConfirmationRequest | None = None
        self._draft = Draft()
        self._room = 1

    def compose(self) -> ComposeResult:
        """Lay out the parts, gemdeck's own notes apart from what the server says."""
        yield CallFacts()
        yield FoldedText(wrap=True, id="confirmation-notes")
        yield Static("what the server says of it", markup=False, classes="heading")
        yield FoldedText(wrap=True, id="confirmation-description")
        yield Static("", markup=False, id="confirmation-heading", classes="heading")
        yield ArgumentsText(id="confirmation-arguments")
        yield AnswerRows()
        yield Static("", markup=False, id="confirmation-hint")

    def show(self, request: ConfirmationRequest, screen: Size) -> None:
        """Show a call, but for its arguments, on a screen of this size."""
        self._request = request
        said = notes(request)
        self.notes.show(notes_content(said))
        self.notes.display = bool(said)
        self.description.show(server_words(request))
        self.fit(screen)

    def show_arguments(self, draft: Draft) -> None:
        """Show the arguments an answer would be about; their end has to be seen anew."""
        self._draft = draft
        self.end_seen = False
        self.arguments.show(coloured_arguments(draft.shown))
        self.arguments.scroll_to(0, 0, animate=False, immediate=True)
        whose = " · your edit" if draft.shows_edit else ""
        self.border_title = Content(f"A tool wants to run{whose}")
        self.show_answers(draft)

    def show_answers(self, draft: Draft) -> None:
        """Show what can be answered now."""
        self.buttons.show(draft, may_last=self._request is not None and self._request.may_last)

    def show_count(self, waiting: int) -> None:
        """Show how many questions wait, the one on the screen included."""
        self.border_subtitle = waiting_words(waiting)

    def fit(self, screen: Size) -> None:
        """Bound the texts, so that every choice is in sight whatever their length."""
        width, height = screen
        self.is_short = width < WORDY
        self.buttons.fit(short=self.is_short)
        request = self._request
        if request is None:
            return
        said = notes(request)
        wanted = len(notes_content(said).wrap(max(1, width - NOTE_MARGIN))) if said else 0
        noted = rows.note_rows(height, wanted)
        self.notes.styles.height = max(1, noted)
        claim_rows = rows.claim_rows(height)
        self.facts.show(request, claim_rows)
        self._room = rows.argument_rows(height, 2 + self._claimed(width, claim_rows), noted)
        self.arguments.styles.max_height = self._room

    def _claimed(self, width: int, most: int) -> int:
        """Give the rows of the claims in a dialog on a screen of this width."""
        if self._request is None:
            return 0
        inner = min(width * 96 // 100, MAX_WIDTH) - MARGIN if width >= rows.NARROW else width - 4
        return len(claim_lines(self._request, max(8, inner - LABEL_WIDTH), most))

    def look(self) -> None:
        """Take note of what of the arguments is in sight."""
        position = self._position
        self.end_seen = self.end_seen or position.shows_end
        words = heading(self._draft.shown, position, edited=self._draft.shows_edit)
        self.query_one("#confirmation-heading", Static).update(words)

    def say(self, words: str) -> None:
        """Put words into the last line."""
        self.hint.update(Content(words))

    @property
    def armed_hint(self) -> str:
        """What the last line says from then on: what comes before an answer, or the other keys."""
        if not self.end_seen:
            return self._position.end_hint(short=self.is_short)
        return _ARMED_HINTS[self.is_short]

    @property
    def _position(self) -> Position:
        return position_of(self.arguments, self._room)
