"""The transcript's entries, one widget each: messages, answers, thoughts and notices."""

import re
from collections.abc import Sequence
from time import monotonic
from typing import ClassVar, Final

from textual import events
from textual.content import Content

from tui.model.chat import (
    ChatNotice,
    Entry,
    ModelText,
    Severity,
    Thought,
    ToolCall,
    TurnEnd,
    UserMessage,
)
from tui.model.servers import ServerId
from tui.text import counted, sanitize_line
from tui.ui.bridge import Delay
from tui.ui.messages import DataMessage
from tui.ui.widgets.text.blocks import Block, BlockView, IndentBlock, LineBlock, TextBlock, styled
from tui.ui.widgets.text.links import LINK, linked, links_in
from tui.ui.widgets.text.plain import SIGN, count, duration

MAX_SHOWN_LINES: Final = 200
"""Lines drawn of one text."""

MAX_SHOWN: Final = 16_000
"""Characters drawn of one text."""

MAX_MARKDOWN: Final = 20_000
"""Characters of a text that are parsed as Markdown; the rest is plain text."""

MAX_MARKDOWN_LINES: Final = 1_000
"""Lines of a text that are parsed as Markdown; they limit blocks, list items and table rows."""

FOLDED_LINES: Final = 6
"""Lines drawn of a long message until it is opened."""

FOLDED: Final = 600
"""Characters drawn of a long message until it is opened."""

FLUSH_INTERVAL: Final = 0.05
"""Seconds between two renderings of a growing text."""

MAX_DUTY: Final = 0.1
"""Share of time for rendering one growing text; a slow one is rendered less often."""

INDENT: Final = "  "
"""Indent of text that belongs to the line above."""

MAX_TITLED: Final = 2_000
"""Characters at the end of a thought in which its newest title is looked for."""

MAX_TITLE: Final = 80
"""Characters of a thought's title."""

_CODE_SIGNS: Final = ("```", "~~~", "\n    ", "\n\t")
"""One of these is in each text with a block of code, but for one that begins with it."""

_TITLE: Final = re.compile(r"^(?:\*\*|#{1,6} )(\S[^\n*#]*)(?=[\n*#])", re.MULTILINE)
"""A title that is complete: one that grows would be drawn anew with each letter."""


def shown_part(text: str) -> tuple[str, int]:
    """Cut a text to the transcript's limits.

    Returns:
        The part to show, and the number of characters left out.
    """
    part = text[:MAX_SHOWN]
    lines = part.split("\n", MAX_SHOWN_LINES)
    if len(lines) > MAX_SHOWN_LINES:
        part = "\n".join(lines[:MAX_SHOWN_LINES])
    return part, len(text) - len(part)


def markdown_part(text: str) -> str:
    """Return the part of a text to parse: whole lines, unless the first is too long."""
    if len(text) <= MAX_MARKDOWN and text.count("\n") < MAX_MARKDOWN_LINES:
        return text
    lines = text[:MAX_MARKDOWN].split("\n", MAX_MARKDOWN_LINES)
    word = text.rfind(" ", 0, MAX_MARKDOWN) + 1
    return "".join(f"{line}\n" for line in lines[:-1]) or text[: word or MAX_MARKDOWN]


class GrowingMarkdown:
    """The blocks of a growing text.

    Attributes:
        text: The text so far.
        left_out: Characters at its end that are not shown because it is too long.
    """

    def __init__(self) -> None:
        self.text = ""
        self.left_out = 0
        self._committed: list[Block] = []
        self._offset = 0
        self._tail: list[Block] = []

    @property
    def blocks(self) -> list[Block]:
        return [*self._committed, *self._tail]

    def update(self, text: str, *, complete: bool) -> None:
        """Parse a longer text, from the block on that may still grow.

        Args:
            text: The whole text so far; if it does not extend the last one, parsing restarts.
            complete: Whether it is complete.
        """
        from tui.ui.widgets.text.markdown import parse_markdown  # noqa: PLC0415 - takes 50 ms

        if complete or not text.startswith(self.text):
            self._committed, self._offset = [], 0
        self.text = text
        part = markdown_part(text)
        tail = part[self._offset :]
        parsed = parse_markdown(tail)
        if len(parsed.blocks) > 1:
            self._committed += parsed.blocks[:-1]
            before = tail.split("\n")[: parsed.first_lines[-1]]
            self._offset += sum(len(line) + 1 for line in before)
        shown, self.left_out = shown_part(text[len(part) :])
        rest = [TextBlock(Content(shown))] if shown else []
        self._tail = [*parsed.blocks[-1:], *rest]


class EntryView(BlockView):
    """One entry of the transcript; subclasses draw it."""

    selectable = True
    """Whether the cursor can stand on it."""

    class LinksRequested(DataMessage):
        """A link in the text was clicked, or all are requested.

        `server` is the one that named them, if one did.
        """

        links: list[str]
        server: ServerId | None

    def __init__(self, entry: Entry) -> None:
        super().__init__()
        self.entry = entry
        self.expanded = False

    @property
    def expandable(self) -> bool:
        """Whether it can be opened."""
        return False

    def show(self, entry: Entry) -> None:
        if entry is not self.entry:
            self.entry = entry
            self.changed()

    def toggle(self) -> None:
        if self.expandable:
            self.expanded = not self.expanded
            self.set_class(self.expanded, "-expanded")
            self.changed()

    def title(self) -> str:
        return ""

    def full_text(self) -> str:
        return ""

    def links(self) -> list[str]:
        return links_in(self.lines(self.size.width)) if self.size.width else []

    def follow(self, links: list[str]) -> None:
        """Ask for what these addresses lead to."""
        server = self.entry.server if isinstance(self.entry, ToolCall) else None
        self.post_message(self.LinksRequested(links, server))

    def on_unmount(self) -> None:
        self.refresh()  # lets go of the drawn lines, which outlive the widget in a cache of Textual

    def on_click(self, event: events.Click) -> None:
        """Follow a link."""
        href = event.style.meta.get(LINK)
        if isinstance(href, str):
            event.stop()
            self.follow([href])


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
    text = f"… {counted(left_out, 'more character')} · Shift+Tab, then v for the full text"
    return [TextBlock(styled(text, ".entry-muted"), spaced=False)]


def clipped_text(text: str) -> list[Block]:
    """Return a plain text, cut to the transcript's limits."""
    shown, left_out = shown_part(text)
    return [TextBlock(linked(Content(shown)), spaced=False), *more_hint(left_out)]


class UserEntry(TextEntry):
    """A message of the user, with a bar along it; of a long one the start until it is opened."""

    entry: UserMessage
    TITLE = "Your message"

    @property
    def expandable(self) -> bool:
        return self.entry.text.count("\n") >= 2 * FOLDED_LINES or len(self.entry.text) > 2 * FOLDED

    def blocks(self) -> Sequence[Block]:
        bar = styled("▌ ", ".entry-label").stylize(SIGN)
        text = clipped_text(self.entry.text)
        if self.expandable and not self.expanded:
            start = "\n".join(self.entry.text.split("\n", FOLDED_LINES)[:FOLDED_LINES])[:FOLDED]
            left = self.entry.text[len(start) :]
            lines = left.count("\n")
            words = counted(lines, "more line") if lines else counted(len(left), "more character")
            text = [TextBlock(linked(Content(start)), spaced=False)]
            text += [TextBlock(styled(f"▸ {words}", ".entry-muted"), spaced=False)]
        return [IndentBlock(bar, bar, text)]


class ModelEntry(TextEntry):
    """A part of the model's answer as Markdown, which grows while it streams."""

    entry: ModelText
    TITLE = "Answer"

    def __init__(self, entry: ModelText) -> None:
        super().__init__(entry)
        self._growing = GrowingMarkdown()
        self._growing.update(entry.text, complete=entry.complete)
        self._delay = Delay(self)
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
        elif not self._delay.is_begun:
            self._delay.begin(wait, self.settle)

    def settle(self) -> None:
        """Draw all that has arrived, and measure the time."""
        self._delay.stop()
        began = monotonic()
        self._growing.update(self.entry.text, complete=self.entry.complete)
        self.changed()
        if self.size.width:
            self.lines(self.size.width)
        self._drawn_at = monotonic()
        self._cost = self._drawn_at - began

    @property
    def may_hold_code(self) -> bool:
        """Whether it may hold blocks of code, as far as can be seen at once."""
        return any(sign in self.entry.text for sign in _CODE_SIGNS)

    def codes(self) -> list[str]:
        """Return its blocks of code."""
        from tui.ui.widgets.text.markdown import code_in  # noqa: PLC0415 - takes 50 ms

        text = self.entry.text
        return code_in(text, whole=markdown_part(text) is text) if self.may_hold_code else []

    def whole_code(self, shown: str) -> str:
        """Return the block of which this is what is drawn."""
        codes = self.codes()
        return shown if shown in codes else next((c for c in codes if c.startswith(shown)), shown)


class ThoughtEntry(TextEntry):
    """A summary of the model's thoughts: a line with title and time until it is opened."""

    entry: Thought
    TITLE = "Thought"
    expandable = True

    def __init__(self, entry: Thought) -> None:
        super().__init__(entry)
        self._growing = GrowingMarkdown()
        self._head = self._head_line()

    def blocks(self) -> Sequence[Block]:
        arrow = "▾" if self.expanded else "▸"
        head = LineBlock(lambda _: styled(f"{arrow} {self._head}", ".entry-muted"))
        if not self.expanded:
            return [head]
        self._growing.update(self.entry.text, complete=self.entry.complete)
        indent = Content(INDENT)
        text = [*self._growing.blocks, *more_hint(self._growing.left_out)]
        return [head, IndentBlock(indent, indent, text, spaced=False)]

    def show(self, entry: Entry) -> None:
        """Draw a longer thought; of a closed one only the head can change."""
        if isinstance(entry, Thought) and not self.expanded:
            self.entry = entry
            if self._head != (head := self._head_line()):
                self._head = head
                self.changed()
            return
        super().show(entry)
        self._head = self._head_line()

    def _head_line(self) -> str:
        """Return the state, the newest title and the time, as far as they are known."""
        state = "thought" if self.entry.complete else "thinking…"
        seconds = self.entry.seconds
        time = "" if seconds is None else duration(seconds)
        return "  ".join(filter(None, (state, self._newest_title(), time)))

    def _newest_title(self) -> str:
        """Return the last line in bold or heading, as Gemini titles the parts of its thoughts."""
        titles = _TITLE.findall(self.entry.text[-MAX_TITLED:])
        return sanitize_line(titles[-1], MAX_TITLE) if titles else ""


class TurnEndEntry(EntryView):
    """The quiet line at the end of a turn: tools, seconds, tokens."""

    entry: TurnEnd
    selectable = False

    def blocks(self) -> Sequence[Block]:
        return [LineBlock(self._line)]

    def _line(self, width: int) -> Content:
        end = self.entry
        parts = [
            counted(end.calls, "tool") if end.calls else "",
            duration(end.seconds),
            f"{count(end.tokens)} tokens" if end.tokens else "",
            end.cost,
        ]
        words = Content(f" {' · '.join(filter(None, parts))} ").stylize(".entry-muted")
        rule = styled("──", ".md-rule")
        return rule + words + rule if words.cell_length + 4 <= width else words.rstrip()


_NOTICE_STYLES: Final = {
    Severity.INFO: ("·", ".entry-muted"),
    Severity.WARNING: ("!", ".entry-warning"),
    Severity.ERROR: ("✕", ".entry-error"),
}


class NoticeEntry(EntryView):
    """A notice of gemdeck in the conversation: severity, text and advice.

    One with a brief text is a line until it is opened.
    """

    entry: ChatNotice

    @property
    def expandable(self) -> bool:
        return bool(self.entry.brief)

    def blocks(self) -> Sequence[Block]:
        glyph, style = _NOTICE_STYLES[self.entry.severity]
        label = f"{glyph} {self.entry.severity.value}  "
        advice = styled(self.entry.advice, ".entry-muted")
        line = Content(f"▸ {self.entry.brief} ") + advice
        text: list[Block] = [LineBlock(lambda _: line)]
        if self.expanded or not self.expandable:
            text = clipped_text(self.entry.text)
            text += [TextBlock(advice, spaced=False)] if self.entry.advice else []
        return [IndentBlock(styled(label, style), Content(" " * len(label)), text)]

    def title(self) -> str:
        return self.entry.severity.value.capitalize()

    def full_text(self) -> str:
        return "\n".join(filter(None, (self.entry.text, self.entry.advice)))
