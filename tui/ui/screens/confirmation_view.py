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
from tui.ui.screens.draft import Draft
from tui.ui.screens.question import (
    CallFacts,
    Position,
    coloured_arguments,
    end_hint,
    heading,
    notes,
    notes_content,
    server_words,
)
from tui.ui.widgets.folded_text import FoldedText

NOTE_MARGIN: Final = 8
"""Cells of a row that notes have not: frame, air and scrollbar."""

_UNARMED_HINTS: Final = (
    "One moment: keys count once you have stopped typing.",
    "One moment: stop typing first.",
)
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
        self.facts.show(request)
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
        self.border_subtitle = Content(f"1 of {waiting}" if waiting > 1 else "")

    def fit(self, screen: Size) -> None:
        """Bound the texts, so that every choice is in sight whatever their length."""
        width, height = screen
        self.is_short = width < rows.WORDY
        self.buttons.fit(short=self.is_short)
        request = self._request
        if request is None:
            return
        said = notes(request)
        wanted = len(notes_content(said).wrap(max(1, width - NOTE_MARGIN))) if said else 0
        noted = rows.note_rows(height, wanted)
        self.notes.styles.height = max(1, noted)
        facts = 3 if request.claims else 2
        self._room = rows.argument_rows(height, facts, noted)
        self.arguments.styles.max_height = self._room

    def look(self) -> None:
        """Take note of what of the arguments is in sight."""
        position = self._position
        self.end_seen = self.end_seen or position.first - 1 + self._rows_in_sight >= position.rows
        words = heading(self._draft.shown, position, edited=self._draft.shows_edit)
        self.query_one("#confirmation-heading", Static).update(words)

    def say(self, words: str) -> None:
        """Put words into the last line."""
        self.hint.update(Content(words))

    @property
    def unarmed_hint(self) -> str:
        """What the last line says while no answer counts."""
        return _UNARMED_HINTS[self.is_short]

    @property
    def armed_hint(self) -> str:
        """What the last line says from then on: what comes before an answer, or the other keys."""
        if not self.end_seen:
            return end_hint(self._position, short=self.is_short)
        return _ARMED_HINTS[self.is_short]

    @property
    def _position(self) -> Position:
        view = self.arguments
        first, count = view.scroll_offset.y, view.row_count
        return Position(first + 1, count, fits=count <= self._rows_in_sight)

    @property
    def _rows_in_sight(self) -> int:
        """Rows of the arguments; no more than there will be once they are laid out anew."""
        return min(self.arguments.size.height, self._room)
