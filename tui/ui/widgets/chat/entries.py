"""Entries of the transcript, one widget each: what was said, thought, called and noticed."""

from collections.abc import Sequence
from time import monotonic
from typing import Final

from textual import events
from textual.content import Content
from textual.message import Message
from textual.timer import Timer

from tui.model.chat import ChatNotice, Entry, ModelText, Severity, Thought, UserMessage
from tui.text import counted
from tui.ui.bridge import MIN_WAIT
from tui.ui.widgets.block_view import BlockView
from tui.ui.widgets.blocks import LINK, Block, IndentBlock, LineBlock, TextBlock, links_in, styled
from tui.ui.widgets.clipping import shown_part
from tui.ui.widgets.streaming import GrowingMarkdown

FLUSH_INTERVAL: Final = 0.05
"""Seconds between two renderings of a text that grows."""

MAX_DUTY: Final = 0.1
"""Share of the time that rendering one growing text may take; a costly one is drawn less often."""

INDENT: Final = "  "
"""What stands before text that belongs to the line above it."""


class EntryView(BlockView):
    """One entry of the transcript.

    `fields` of the entry are drawn by the subclass; it is drawn anew when it changes.
    """

    expandable = False
    """Whether there is more to see than is shown at first."""

    class LinkClicked(Message):
        """The user clicked a link in the text."""

        def __init__(self, href: str) -> None:
            super().__init__()
            self.href = href

    class Toggled(Message):
        """The user clicked on the line that opens and closes the entry."""

        def __init__(self, view: "EntryView") -> None:
            super().__init__()
            self.view = view

    def __init__(self, entry: Entry) -> None:
        super().__init__()
        self.entry = entry
        self.expanded = False

    def show(self, entry: Entry) -> None:
        """Draw another state of the same entry."""
        if entry is not self.entry:
            self.entry = entry
            self.changed()

    def toggle(self) -> None:
        """Show more, or less again."""
        if self.expandable:
            self.expanded = not self.expanded
            self.set_class(self.expanded, "-expanded")
            self.changed()

    def settle(self) -> None:
        """Draw at once what waits to be drawn."""

    def title(self) -> str:
        """Name the entry, for the head of the viewer."""
        return "message"

    def full_text(self) -> str:
        """Give the whole text of the entry, for the viewer and for copying."""
        return ""

    def links(self) -> list[str]:
        """List the addresses that the text links to."""
        return []

    def on_click(self, event: events.Click) -> None:
        """Follow a link, or open and close the entry by its first line."""
        href = event.style.meta.get(LINK)
        if isinstance(href, str):
            event.stop()
            self.post_message(self.LinkClicked(href))
        elif self.expandable and event.y == self.gutter.top:
            event.stop()
            self.post_message(self.Toggled(self))


def more_hint(left_out: int) -> list[Block]:
    """Say that a text goes on, where it does."""
    if not left_out:
        return []
    text = f"… {counted(left_out, 'more character')} · Shift+Tab, then v shows the whole"
    return [TextBlock(styled(text, ".entry-muted"), spaced=False)]


def clipped_text(text: str, style: str = "") -> list[Block]:
    """Show a text as it stands, cut to what the transcript holds."""
    shown, left_out = shown_part(text)
    return [TextBlock(styled(shown, style) if style else Content(shown)), *more_hint(left_out)]


class UserEntry(EntryView):
    """What the user sent."""

    entry: UserMessage

    def blocks(self) -> Sequence[Block]:
        """Draw the text beside its label."""
        label = styled("You  ", ".entry-label")
        return [IndentBlock(label, Content(" " * 5), clipped_text(self.entry.text))]

    def title(self) -> str:
        """Name the entry."""
        return "Your message"

    def full_text(self) -> str:
        """Give what was sent."""
        return self.entry.text


class ModelEntry(EntryView):
    """A stretch of the model's answer, as Markdown, growing while it streams."""

    entry: ModelText

    def __init__(self, entry: ModelText) -> None:
        super().__init__(entry)
        self._growing = GrowingMarkdown()
        self._growing.update(entry.text, complete=entry.complete)
        self._timer: Timer | None = None
        self._drawn_at = 0.0
        self._cost = 0.0

    def blocks(self) -> Sequence[Block]:
        """Draw what is known of the answer."""
        return [*self._growing.blocks, *more_hint(self._growing.left_out)]

    def show(self, entry: Entry) -> None:
        """Take in more text; a complete one is drawn at once, a growing one soon."""
        if entry is self.entry or not isinstance(entry, ModelText):
            return
        self.entry = entry
        wait = self._drawn_at + max(FLUSH_INTERVAL, self._cost / MAX_DUTY) - monotonic()
        if entry.complete or wait <= 0 or not self.is_mounted:
            self.settle()
        elif self._timer is None:
            self._timer = self.set_timer(max(wait, MIN_WAIT), self.settle)

    def settle(self) -> None:
        """Draw all that has arrived, and measure what that costs."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        began = monotonic()
        self._growing.update(self.entry.text, complete=self.entry.complete)
        self.changed()
        if self.size.width:
            self.lines(self.size.width)
        self._drawn_at = monotonic()
        self._cost = self._drawn_at - began

    def title(self) -> str:
        """Name the entry."""
        return "Answer"

    def full_text(self) -> str:
        """Give the Markdown as the model wrote it."""
        return self.entry.text

    def links(self) -> list[str]:
        """List the addresses the answer links to."""
        return links_in(self.lines(self.size.width))


class ThoughtEntry(EntryView):
    """A summary of the model's thinking: one line until it is opened."""

    entry: Thought
    expandable = True

    def blocks(self) -> Sequence[Block]:
        """Draw the one line, and the text below it where it is open."""
        word = "thought" if self.entry.complete else "thinking…"
        arrow = "▾" if self.expanded else "▸"
        head = LineBlock(lambda _: styled(f"{arrow} {word}", ".entry-muted"))
        if not self.expanded:
            return [head]
        indent = Content(INDENT)
        text = clipped_text(self.entry.text, ".entry-muted")
        return [head, IndentBlock(indent, indent, text, spaced=False)]

    def show(self, entry: Entry) -> None:
        """Take in more thought; closed, only the word of its one line can change."""
        if isinstance(entry, Thought) and not self.expanded:
            same = entry.complete == self.entry.complete
            self.entry = entry
            if not same:
                self.changed()
            return
        super().show(entry)

    def title(self) -> str:
        """Name the entry."""
        return "Thought"

    def full_text(self) -> str:
        """Give the whole summary."""
        return self.entry.text


_NOTICE_STYLES: Final = {
    Severity.INFO: ("·", ".entry-muted"),
    Severity.WARNING: ("!", ".entry-warning"),
    Severity.ERROR: ("✕", ".entry-error"),
}


class NoticeEntry(EntryView):
    """A word of gemdeck's own: its severity, what happened, and what to do."""

    entry: ChatNotice

    def blocks(self) -> Sequence[Block]:
        """Draw the severity as glyph and word, the text, and the advice below."""
        glyph, style = _NOTICE_STYLES[self.entry.severity]
        label = f"{glyph} {self.entry.severity.value}  "
        text = clipped_text(self.entry.text)
        if self.entry.advice:
            text.append(TextBlock(styled(self.entry.advice, ".entry-muted"), spaced=False))
        return [IndentBlock(styled(label, style), Content(" " * len(label)), text)]

    def title(self) -> str:
        """Name the entry."""
        return self.entry.severity.value.capitalize()

    def full_text(self) -> str:
        """Give text and advice."""
        return "\n".join(filter(None, (self.entry.text, self.entry.advice)))
