"""Where a question about calls lies: over the lower part of the chat, below what led to it."""

from collections.abc import Callable
from typing import Final

from textual.geometry import Region
from textual.widget import Widget

from tui.model.chat import EntryId
from tui.ui.widgets.chat.transcript import Transcript
from tui.ui.widgets.frame import AIRY, WORDY

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

STILL_LOOKS: Final = 2
"""Looks that find nothing to move after which all is drawn where it stays."""

RESTING_LOOKS: Final = 6
"""Looks that find nothing to move after which it is looked no more until something changes."""

LEFT_LOOKS: Final = 40
"""Looks that are left when the question is shown in any case."""


def lay_over_chat(frame: Widget) -> None:
    """Give a question its place, its width and the most rows that it may have."""
    width, height = frame.app.size
    region = frame.app.screen_stack[0].query("ChatPane.-current").first().region
    if width < BESIDE or region.width < WORDY:
        region = Region(0, region.y, width, region.height)
    top = region.y + 1 + max(LEFT_ROWS, region.height // LEFT_PART)
    if height < FULL or not region.height:
        region, top = Region(0, 0, width, height), 0
    frame.styles.width = region.width
    frame.styles.padding = (0, 1 + (region.width >= AIRY))  # beside a pane the buttons need it
    frame.styles.max_height = region.bottom - top
    frame.styles.margin = (0, 0, height - region.bottom, region.x)


class RoomAbove:
    """Shows the words that led to a call above the question that lies over the conversation.

    Nothing tells when a screen below another one has been laid out, so for a moment after each
    change it is looked.

    Args:
        frame: The question's frame.
        call: Gives the call's entry.
        ready: Called once, when there is room: from then on nothing moves by itself.
    """

    def __init__(
        self, frame: Widget, call: Callable[[], EntryId], ready: Callable[[], None]
    ) -> None:
        self._frame = frame
        self._call = call
        self._when_ready = ready
        self._transcript = (
            frame.app.screen_stack[0].query("ChatPane.-current Transcript").first(Transcript)
        )
        self._timer = frame.set_interval(LAYOUT_SECONDS, self._look, pause=True)
        self.take()
        for widget in (frame, self._transcript):
            frame.screen.watch(widget, "virtual_size", self.make_later)

    def take(self) -> None:
        """Take the rows that the question needs, at first or once more."""
        self._ready: Callable[[], None] | None = self._when_ready
        self._looks = LAYOUT_LOOKS
        self._stood_at = self._transcript.scroll_y
        self._follows = self._transcript.follows_end
        self._left_alone: EntryId | None = None
        self._takes = True
        self.make_later()

    def let_go(self) -> None:
        """Leave it to the user what of the conversation is in sight, until the next call."""
        self._left_alone = self._call()

    def make_later(self) -> None:
        """Make room once what changed has been laid out."""
        if self._takes:
            if self._ready is None:  # until then whatever changes meanwhile delays nothing
                self._looks = LAYOUT_LOOKS
            self._still = 0
            self._bottom: int | None = None
            self._timer.resume()

    def give_back(self) -> None:
        """Give the conversation its rows again."""
        if not self._takes:
            return
        self._takes = False
        self._timer.pause()
        self._transcript.styles.margin = (0, 0, 0, 0)
        if self._follows:
            self._transcript.anchor()
        else:
            self._transcript.scroll_to(y=self._stood_at, animate=False)

    def _look(self) -> None:
        self._looks -= 1
        if self._looks <= 0 or self._still >= RESTING_LOOKS:
            self._timer.pause()
        lay_over_chat(self._frame)
        if self._frame.region:
            moves = bool(self._transcript.region) and self._make()
            self._still = 0 if moves else self._still + 1
        if self._ready and (self._still >= STILL_LOOKS or self._looks <= LEFT_LOOKS):
            self._ready()
            self._ready = None

    def _make(self) -> bool:
        """Let the conversation end where the question begins, with the row above the call.

        Returns:
            Whether anything moves for that.
        """
        transcript = self._transcript
        bottom, margin = transcript.region.bottom, transcript.styles.margin.bottom
        if self._bottom not in {None, bottom}:
            return True  # not laid out yet
        frame = self._frame
        top = frame.app.size.height - frame.styles.margin.bottom - frame.outer_size.height
        rows = margin + bottom - top
        if rows > 0 and rows != margin:
            transcript.styles.margin = (0, 0, rows, 0)
            self._bottom = top
            return True
        call = self._call()
        view = next((one for one in transcript.views if one.entry.id == call), None)
        if call == self._left_alone or view is None or not view.region:
            return False
        above = view.virtual_region.y - view.styles.margin.top - transcript.size.height
        place = min(max(0, above), transcript.max_scroll_y)
        if transcript.scroll_y == place:
            return False
        transcript.release_anchor()
        transcript.scroll_to(y=place, animate=False, immediate=True)
        # Textual draws no scrolling of a screen that another one lies over.
        transcript.call_after_refresh(self._frame.screen.refresh)
        return True
