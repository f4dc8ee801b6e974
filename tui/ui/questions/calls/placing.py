"""Where a question about calls lies: over the lower part of the chat, below what led to it."""

from collections.abc import Callable
from functools import partial
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

LAYOUT_SECONDS: Final = 1 / 60
"""Seconds between two looks whether the conversation has been laid out anew."""

LAYOUT_LOOKS: Final = 60
"""How often it is looked."""


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
        call: Gives the call's entry.
    """

    def __init__(self, frame: Widget, call: Callable[[], EntryId]) -> None:
        self._frame = frame
        self._call = call
        self._transcript = frame.app.screen_stack[0].query(Transcript).first()
        self._stood_at = self._transcript.scroll_y
        self._follows = self._stood_at >= self._transcript.max_scroll_y
        self._is_waiting = False
        for widget in (frame, self._transcript):
            frame.screen.watch(widget, "virtual_size", self.make_later)

    def make_later(self) -> None:
        """Make room once what changed has been laid out; the chat is, after the question."""
        self._frame.set_timer(LAYOUT_SECONDS, self._make)

    def give_back(self) -> None:
        """Give the conversation its rows again."""
        self._is_waiting = False
        self._transcript.styles.margin = (0, 0, 0, 0)
        if self._follows:
            self._transcript.anchor()
        else:
            self._transcript.scroll_to(y=self._stood_at, animate=False)

    def _make(self) -> None:
        """Let the conversation end where the question begins, at the row of the call."""
        lay_over_chat(self._frame)
        transcript = self._transcript
        rows = transcript.styles.margin.bottom + transcript.region.bottom - self._frame.region.y
        is_drawn = bool(transcript.region and self._frame.region)
        if is_drawn and rows > 0 and not self._is_waiting:
            self._is_waiting = True
            transcript.styles.margin = (0, 0, rows, 0)
            self._show_words(LAYOUT_LOOKS)

    def _show_words(self, looks: int) -> None:
        """Scroll to the call once the conversation has been laid out above the question."""
        transcript = self._transcript
        if looks and transcript.region.bottom > self._frame.region.y:
            # Nothing tells when a screen below another one has been laid out.
            self._frame.set_timer(LAYOUT_SECONDS, partial(self._show_words, looks - 1))
            return
        view = next((one for one in transcript.views if one.entry.id == self._call()), None)
        if self._is_waiting and view is not None:
            top = view.virtual_region.y - view.styles.margin.top - transcript.size.height
            transcript.scroll_to(y=max(0, top), animate=False, immediate=True)
            # Textual draws no scrolling of a screen that another one lies over.
            transcript.call_after_refresh(self._frame.screen.refresh)
        self._is_waiting = False
