"""Where a question about calls lies: over the lower part of the chat, below what led to it."""

from typing import Final

from textual.geometry import Region
from textual.widget import Widget

from tui.model.chat import EntryId
from tui.ui.widgets.chat.transcript import Transcript
from tui.ui.widgets.frame import WORDY

BESIDE: Final = 110
"""Columns of the terminal from which the question is as wide as the chat; else it has them all."""

FULL: Final = 20
"""Rows of the terminal below which the question may have them all."""

LEFT_ROWS: Final = 4
"""The least rows of the chat that stay in sight above it."""

LEFT_PART: Final = 5
"""The part of its rows that stays in sight, as a divisor."""


def lay_over_chat(frame: Widget) -> None:
    """Give a question its place, its width and the most rows that it may have."""
    width, height = frame.app.size
    chat = frame.app.screen_stack[0].query("#chat").first()
    region = chat.region
    if width < BESIDE or region.width < WORDY:
        region = Region(0, region.y, width, region.height)
    if height < FULL or not region.height:
        region = Region(0, 0, width, height)
        top = 0
    else:
        top = region.y + 1 + max(LEFT_ROWS, region.height // LEFT_PART)
    frame.styles.width = region.width
    frame.styles.max_height = region.bottom - top
    frame.styles.margin = (0, 0, height - region.bottom, region.x)


class RoomAbove:
    """Shows the words that led to a call above the question that lies over the conversation.

    Args:
        frame: The question's frame.

    Attributes:
        transcript: The conversation.
    """

    def __init__(self, frame: Widget) -> None:
        self._frame = frame
        self.transcript = frame.app.screen_stack[0].query(Transcript).first()
        self._stood_at = self.transcript.scroll_y
        self._follows = self._stood_at >= self.transcript.max_scroll_y
        self._is_made = False

    def make(self, call: EntryId) -> None:
        """Let the conversation end where the question begins, at the row of a call."""
        transcript = self.transcript
        rows = transcript.styles.margin.bottom + transcript.region.bottom - self._frame.region.y
        is_drawn = bool(transcript.region and self._frame.region)
        if not self._is_made and is_drawn and rows > 0:
            self._is_made = True
            transcript.styles.margin = (0, 0, rows, 0)
            transcript.call_after_refresh(self._show_words, call)

    def give_back(self) -> None:
        """Give the conversation its rows again."""
        self._is_made = False
        self.transcript.styles.margin = (0, 0, 0, 0)
        if self._follows:
            self.transcript.anchor()
        else:
            self.transcript.scroll_to(y=self._stood_at, animate=False)

    def _show_words(self, call: EntryId) -> None:
        transcript = self.transcript
        view = next((one for one in transcript.views if one.entry.id == call), None)
        if self._is_made and view is not None:
            top = max(0, view.virtual_region.y - view.styles.margin.top - transcript.size.height)
            transcript.scroll_to(y=top, animate=False, immediate=True)
            # Textual draws no scrolling of a screen that another one lies over.
            transcript.call_after_refresh(self._frame.screen.refresh)
        self._is_made = False
