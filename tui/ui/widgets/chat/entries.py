"""The transcript's entries, one widget each: messages, answers, thoughts and notices."""

from collections.abc import Sequence
from time import monotonic
from typing import ClassVar, Final

from textual import events
from textual.content import Content
from textual.message import Message
from textual.timer import Timer

from tui.model.chat import ChatNotice, Entry, ModelText, Severity, Thought, UserMessage
from tui.text import counted
from tui.ui.bridge import MIN_WAIT
from tui.ui.widgets.chat.streaming import GrowingMarkdown
from tui.ui.widgets.chat.window import shown_part
from tui.ui.widgets.text.block_view import BlockView
from tui.ui.widgets.text.blocks import (
    LINK,
    Block,
    IndentBlock,
    LineBlock,
    TextBlock,
    links_in,
    styled,
)

FLUSH_INTERVAL: Final = 0.05
"""Seconds between two renderings of a growing text."""

MAX_DUTY: Final = 0.1
"""Share of time for rendering one growing text; a slow one is rendered less often."""

INDENT: Final = "  "
"""Indent of text that belongs to the line above."""


class EntryView(BlockView):
    """One entry of the transcript; subclasses draw it."""

    expandable = False
    """Whether it can be opened."""

    class LinksRequested(Message):
        """A link in the text was clicked, or all are requested."""

        def __init__(self, links: list[str]) -> None:
            super().__init__()
            self.links = links

    class Toggled(Message):
        """The line that opens and closes the entry was clicked."""

        def __init__(self, view: "EntryView") -> None:
            super().__init__()
            self.view = view

    def __init__(self, entry: Entry) -> None:
        super().__init__()
        self.entry = entry
        self.expanded = False

    def show(self, entry: Entry) -> None:
        if entry is not self.entry:
            self.entry = entry
            self.changed()

    def toggle(self) -> None:
        if self.expandable:
            self.expanded = not self.expanded
            self.set_class(self.expanded, "-expanded")
            self.changed()

    def settle(self) -> None:
        """Draw pending changes at once."""

    def title(self) -> str:
        return ""

    def full_text(self) -> str:
        return ""

    def links(self) -> list[str]:
        return []

    def on_click(self, event: events.Click) -> None:
        href = event.style.meta.get(LINK)
        if isinstance(href, str):
            event.stop()
            self.post_message(self.LinksRequested([href]))
        elif self.expandable and event.y == self.gutter.top:
            event.stop()
            self.post_message(self.Toggled(self))


class TextEntry(EntryView):
    """An entry with nothing but a text."""

    TITLE: ClassVar[str]
    entry: UserMessage | ModelText | Thought

    def title(self) -> str:
        return self.TITLE

    def full_text(self) -> str:
        return self.entry.text


def more_hint(left_out: int) -> list[Block]:
    """Return a line that says how much of a text is left out, if any."""
    if not left_out:
        return []
    text = f"… {counted(left_out, 'more character')} · Shift+Tab, then v shows all of it"
    return [TextBlock(styled(text, ".entry-muted"), spaced=False)]


def clipped_text(text: str, style: str = "") -> list[Block]:
    """Return a plain text, cut to the transcript's limits."""
    shown, left_out = shown_part(text)
    return [TextBlock(styled(shown, style) if style else Content(shown)), *more_hint(left_out)]


class UserEntry(TextEntry):
    """A message of the user."""

    entry: UserMessage
    TITLE = "Your message"

    def blocks(self) -> Sequence[Block]:
        label = styled("You  ", ".entry-label")
        return [IndentBlock(label, Content(" " * 5), clipped_text(self.entry.text))]


class ModelEntry(TextEntry):
    """A part of the model's answer as Markdown, which grows while it streams."""

    entry: ModelText
    TITLE = "Answer"

    def __init__(self, entry: ModelText) -> None:
        super().__init__(entry)
        self._growing = GrowingMarkdown()
        self._growing.update(entry.text, complete=entry.complete)
        self._timer: Timer | None = None
        self._drawn_at = 0.0
        self._cost = 0.0

    def blocks(self) -> Sequence[Block]:
        return [*self._growing.blocks, *more_hint(self._growing.left_out)]

    def show(self, entry: Entry) -> None:
        """Update the text; draw it at once if it is complete, else soon."""
        if entry is self.entry or not isinstance(entry, ModelText):
            return
        self.entry = entry
        wait = self._drawn_at + max(FLUSH_INTERVAL, self._cost / MAX_DUTY) - monotonic()
        if entry.complete or wait <= 0 or not self.is_mounted:
            self.settle()
        elif self._timer is None:
            self._timer = self.set_timer(max(wait, MIN_WAIT), self.settle)

    def settle(self) -> None:
        """Draw all that has arrived, and measure the time."""
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

    def links(self) -> list[str]:
        return links_in(self.lines(self.size.width))


class ThoughtEntry(TextEntry):
    """A summary of the model's thoughts: one line until it is opened."""

    entry: Thought
    TITLE = "Thought"
    expandable = True

    def blocks(self) -> Sequence[Block]:
        word = "thought" if self.entry.complete else "thinking…"
        arrow = "▾" if self.expanded else "▸"
        head = LineBlock(lambda _: styled(f"{arrow} {word}", ".entry-muted"))
        if not self.expanded:
            return [head]
        indent = Content(INDENT)
        text = clipped_text(self.entry.text, ".entry-muted")
        return [head, IndentBlock(indent, indent, text, spaced=False)]

    def show(self, entry: Entry) -> None:
        # While it is closed only the word of its one line can change.
        if isinstance(entry, Thought) and not self.expanded:
            same = entry.complete == self.entry.complete
            self.entry = entry
            if not same:
                self.changed()
            return
        super().show(entry)


_NOTICE_STYLES: Final = {
    Severity.INFO: ("·", ".entry-muted"),
    Severity.WARNING: ("!", ".entry-warning"),
    Severity.ERROR: ("✕", ".entry-error"),
}


class NoticeEntry(EntryView):
    """A notice of gemdeck in the conversation: severity, text and advice."""

    entry: ChatNotice

    def blocks(self) -> Sequence[Block]:
        glyph, style = _NOTICE_STYLES[self.entry.severity]
        label = f"{glyph} {self.entry.severity.value}  "
        text = clipped_text(self.entry.text)
        if self.entry.advice:
            text.append(TextBlock(styled(self.entry.advice, ".entry-muted"), spaced=False))
        return [IndentBlock(styled(label, style), Content(" " * len(label)), text)]

    def title(self) -> str:
        return self.entry.severity.value.capitalize()

    def full_text(self) -> str:
        return "\n".join(filter(None, (self.entry.text, self.entry.advice)))
