"""The composer: where a message is written, with safe pasting and the messages sent before."""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import cycle
from time import monotonic
from typing import ClassVar, Final

from rich.text import Text
from textual import events, on
from textual.actions import SkipAction
from textual.binding import BindingType
from textual.reactive import Reactive
from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult, Location, Selection

from tui.model.frozen import Frozen
from tui.ui import keymap
from tui.ui.messages import DataMessage
from tui.ui.paste import clean_paste

MAX_HISTORY: Final = 500
"""Messages kept; the oldest are dropped."""

FIRST: Final = 0xFDD0
COUNT: Final = 32
"""The noncharacters U+FDD0 to U+FDEF."""

SHOWN: Final = "▤"
"""Begins what is drawn for a folded text: its lines and its size."""

FOLD_AT: Final = 4_000
"""Characters in the composer beyond which a paste is folded."""

FOLD_LINES: Final = 20
"""Lines from which a paste is folded: twice what the composer shows."""

MAX_OPEN: Final = 50_000
"""Characters of a folded text that can be opened in the composer."""

MIN_FOLD: Final = 100
"""Shortest paste that is folded."""

MAX_MESSAGE: Final = 4_000_000
"""Characters of a message; a longer paste is cut, and the user is told."""

PASTE_TAIL: Final = 0.05
"""Seconds after a paste in which Enter makes a line: no hand is that fast, a paste's rest is."""


class HistoryStorage(Frozen):
    """Storage of messages between runs. Neither call may block.

    Attributes:
        load: Returns the messages of earlier runs, oldest first.
        append: Saves one more.
    """

    load: Callable[[], Sequence[str]] = tuple
    append: Callable[[str], None] = lambda _: None


class MessageHistory:
    """Step through earlier messages and back to the draft."""

    def __init__(self, storage: HistoryStorage | None = None) -> None:
        self._storage = storage or HistoryStorage()
        # read when one is wanted: the first frame needs none
        self._messages = cache(lambda: list(self._storage.load())[-MAX_HISTORY:])
        self._steps = 0
        self._draft = ""

    def beside(self) -> "MessageHistory":
        """Return another one over the same messages, for another composer."""
        other = copy(self)
        other._steps, other._draft = 0, ""
        return other

    def add(self, text: str, *, lasting: bool = True) -> None:
        """Append a message unless it repeats the last one, and go back to the end.

        Args:
            text: The message.
            lasting: Whether it is kept for later runs.
        """
        if text and self._messages()[-1:] != [text]:
            self._messages().append(text)
            del self._messages()[:-MAX_HISTORY]
            if lasting:
                self._storage.append(text)
        self._steps = 0
        self._draft = ""

    def matching(self, text: str) -> Iterator[str]:
        """Yield the messages that contain a text in any case, each once, the newest first."""
        wanted = text.casefold()
        for message in dict.fromkeys(reversed(self._messages())):
            if wanted in message.casefold():
                yield message

    def back(self, current: str) -> str | None:
        """Return the previous message, or None at the oldest.

        Args:
            current: The composer's text, kept as the draft on the first step.
        """
        if self._steps >= len(self._messages()):
            return None
        if self._steps == 0:
            self._draft = current
        self._steps += 1
        return self._messages()[-self._steps]

    def forth(self) -> str | None:
        """Return the next message, or the draft after the newest; None at the end."""
        if self._steps == 0:
            return None
        self._steps -= 1
        return self._messages()[-self._steps] if self._steps else self._draft


_CHIP: Final = re.compile(f"([{chr(FIRST)}-{chr(FIRST + COUNT - 1)}])\\1*")
"""Each cell of what is drawn for a folded text is the character that stands for it."""


class Folds:
    """Long pastes, each of which one character stands for in the composer, once for each cell.

    Textual lays a text out again for each key, in time that grows with its length. The characters
    are Unicode's noncharacters, which are for a program's own use and occur in no text.
    """

    def __init__(self) -> None:
        self._texts: dict[str, tuple[str, str]] = {}
        self._characters: Iterator[str] = cycle(chr(FIRST + number) for number in range(COUNT))

    def fold(self, text: str, kept: str) -> str:
        """Return what stands for a text, or the text itself if no character is left.

        Args:
            text: The text.
            kept: The characters whose texts are still needed are in this one.
        """
        free = (next(self._characters) for _ in range(COUNT))
        character = next((one for one in free if one not in kept), None)
        if character is None:
            return text
        lines = text.count("\n") + (not text.endswith("\n"))
        size = -(-len(text.encode()) // 1000)
        drawn = f"[{SHOWN} {lines:,} line{'s' * (lines > 1)}, {size:,} kB]"
        self._texts[character] = text, drawn
        return character * len(drawn)

    def unfold(self, text: str) -> str:
        """Return a text with all that its characters stand for."""
        return _CHIP.sub(lambda chip: self._texts[chip[1]][0], text)

    def draw(self, text: str) -> str:
        """Return a text with the lines and the size of all that its characters stand for."""
        return _CHIP.sub(lambda chip: self._texts[chip[1]][1][: len(chip[0])], text)


_OWN_KEYS: Final = {key.id for key in keymap.KEYS if key.place is keymap.Place.MESSAGE} - {
    "composer.editor"
}
"""Binding ids whose keys the composer handles itself, in their order among the letters."""

TEXT_KEYS: Final = keymap.of_text_area("f6", "f7", "pageup", "pagedown")
"""The keys of a text area, but for those that belong to the deck."""


def _text_keys() -> list[BindingType]:
    """Return the keys of a text area but for those that the composer uses otherwise."""
    kept = (one for one in TEXT_KEYS if one.action not in {"cursor_up", "cursor_down"})
    return [replace(one, key=one.key.removesuffix(",ctrl+d")) for one in kept]


class DeckTextArea(TextArea, inherit_bindings=False):
    """A text area in which several lines can be undone."""

    BINDINGS = keymap.bindings("composer.undo")

    def _recompute_cursor_offset(self) -> None:
        """Bear a cursor beyond the text: Textual moves it last, after it has laid out the rest."""
        cursor = self.clamp_visitable(self.cursor_location)
        self._cursor_offset = self.wrapped_document.location_to_offset(cursor)


class Composer(DeckTextArea):
    """A text area that sends on Enter. It grows with its text, up to ten lines."""

    BINDINGS: ClassVar[list[BindingType]] = [*keymap.bindings(keymap.Place.MESSAGE), *_text_keys()]

    has_chip: Reactive[bool] = Reactive(False, repaint=False, bindings=True)
    """Whether the cursor is on or beside a chip."""

    class Sent(DataMessage):
        """The user sent a message; there may be nothing in it."""

        text: str

    def __init__(self, history: MessageHistory) -> None:
        super().__init__(
            placeholder="message   / commands   @ resources, files",
            highlight_cursor_line=False,
            show_line_numbers=False,
            soft_wrap=True,
            tab_behavior="focus",
        )
        self.completing = False
        """Whether the popup is open, so that Up, Down and Tab are its keys."""
        self.searching = False
        """Whether what is typed is looked for in earlier messages, so that Enter takes one."""
        self.suggest: Callable[[str], str] = lambda _: ""
        """Gives what Tab puts in the place of a message, or nothing."""
        self.paste_picture: Callable[[], Awaitable[bool]]
        """Mentions the picture in the desktop's clipboard; tells whether there is one."""
        self.use_popup: Callable[[str], object] = lambda _: None
        """Presses a key of the completion popup: ``tab``, ``up``, ``down`` or ``search``."""
        self._history = history
        self._folds = Folds()
        self._pasted_at = 0.0
        self._returned = ""
        self._interrupted = ""

    @property
    def message(self) -> str:
        """The text that is sent: with all that was folded."""
        return self._folds.unfold(self.text)

    @property
    def selected_text(self) -> str:
        return self._folds.unfold(super().selected_text)

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        line.plain = self._folds.draw(line.plain)
        return line

    def _chip_at(self, location: Location) -> tuple[Location, Location] | None:
        """Return the ends of the chip on or beside a location."""
        row, chips = location[0], _CHIP.finditer(self.document.get_line(location[0]))
        ends = [((row, chip.start()), (row, chip.end())) for chip in chips]
        return next((one for one in reversed(ends) if one[0] <= location <= one[1]), None)

    def _beside_chip(self, location: Location, *, after: bool) -> Location:
        """Return a location, or an edge of the chip that it is in."""
        start, stop = self._chip_at(location) or (location, location)
        return (stop if after else start) if start < location < stop else location

    def _validate_selection(self, selection: Selection) -> Selection:
        """Keep the cursor out of chips, and let it go on in its direction."""
        (start, end), at = super()._validate_selection(selection), self.selection.end
        ends = (self._beside_chip(one, after=one > at) for one in (start, end))
        return type(selection)(*ends)

    def edit(self, edit: Edit) -> EditResult:
        """Edit the text; a chip goes as a whole."""
        # the end of a line may be the beginning of one that is not there
        top, bottom = (min(one, self.document.end) for one in (edit.top, edit.bottom))
        edit.from_location = self._beside_chip(top, after=False)
        edit.to_location = self._beside_chip(bottom, after=True)
        return super().edit(edit)

    @on(TextArea.Changed)
    @on(TextArea.SelectionChanged)
    def _follow_chip(self) -> None:
        self.has_chip = self._chip_at(self.cursor_location) is not None

    def action_label(self, action: str) -> str | None:
        """Name what Tab does with a chip."""
        return "open paste" * self.has_chip if action == "complete" else None

    @property
    def before_cursor(self) -> str:
        return self.get_text_range((0, 0), self.cursor_location)

    def replace_all(self, text: str) -> None:
        """Put a text in place of the draft, with the cursor at its end."""
        text = clean_paste(text)
        self.text = self._folds.fold(text, "") if len(text) > FOLD_AT else text
        self.move_cursor(self.document.end)

    def put_back(self, text: str) -> None:
        """Put a text that comes back in place of the draft, selected: typing replaces it."""
        self.replace_all(text)
        self.select_all()
        self._returned = self.text

    @property
    def holds_returned(self) -> bool:
        """Whether a text that came back is here as it came."""
        return bool(self._returned) and self._returned == super().selected_text == self.text

    def clear_draft(self) -> bool:
        """Clear the message, which Up brings back; return whether there was one."""
        text, typed_since = self.message, self.text.removeprefix(self._interrupted)
        if not self._interrupted or typed_since == self.text:
            typed_since = ""
        if text.strip():
            self._history.add(text.removesuffix(typed_since), lasting=False)
        self.replace_all(typed_since)
        self._interrupted = ""
        return bool(text)

    def replace_before_cursor(self, start: int, text: str) -> None:
        """Replace what stands between column `start` of `before_cursor` and the cursor."""
        length = len(self.before_cursor) - start
        row, column = self.cursor_location
        self.replace(text, (row, column - length), (row, column))

    def insert_words(self, text: str) -> None:
        """Insert a text at the cursor, parted from the word before it."""
        text = clean_paste(text)
        before = self.before_cursor
        gap = " " if before and not before[-1].isspace() else ""
        self.insert(f"{gap}{text} ")

    def continue_draft(self, event: events.Key | events.Paste) -> None:
        """Take what was typed on as something opened above."""
        if isinstance(event, events.Paste):
            self.post_message(events.Paste(event.text))
        elif event.key == "backspace":
            self.call_later(self.action_delete_left)
        else:
            self.post_message(events.Key(event.key, event.character))

    def action_send(self) -> None:
        """Send the message, unless Enter is the rest of a paste."""
        if self.searching:
            self.action_complete()
            return
        if monotonic() - self._pasted_at < PASTE_TAIL:
            self.action_new_line()
            return
        if self.cursor_at_end_of_line and self.before_cursor.endswith("\\"):  # as in gemini-cli
            self.replace_before_cursor(len(self.before_cursor) - 1, "\n")
            return
        text = self.message.strip()
        self.post_message(self.Sent(text))
        if text:
            self._history.add(text)
            self.clear()

    def action_new_line(self) -> None:
        """Begin a new line."""
        self.replace("\n", *self.selection)
        self.scroll_cursor_visible()

    def action_complete(self) -> None:
        """Open a chip, take what is suggested or the completion; else look for some."""
        if not self.completing and (chip := self._chip_at(self.cursor_location)) is not None:
            text = self._folds.unfold(self.get_text_range(*chip))
            if len(text) > MAX_OPEN:
                key = keymap.key_of(self.app, self.screen.active_bindings, "composer.editor")
                self.notify(f"Too long to open here: {key} opens it in your editor.", markup=False)
            else:
                self.replace(text, *chip, maintain_selection_offset=False)
        elif not self.completing and (suggestion := self.suggest(self.message)):
            self.replace_all(suggestion)
        else:
            self.use_popup("tab")

    def action_search(self) -> None:
        """Search the earlier messages; again: go on to the next one found."""
        self.use_popup("search")

    def action_copy(self) -> None:
        """Copy the selection; without one, the key goes on to what else it does."""
        if self.holds_returned or not self.selected_text:
            raise SkipAction
        super().action_copy()

    async def action_end(self) -> None:
        """Delete to the right; in an empty message, ask to quit."""
        if self.text:
            self.action_delete_right()
        else:
            await self.run_action("app.quit_at_second('^D')")

    async def action_editor(self) -> None:
        """Write the message in the user's editor."""
        from tui.model.input.mentions import as_sent, unnamed  # noqa: PLC0415 - on first use
        from tui.ui.editor import edit_text  # noqa: PLC0415 - on first use

        draft = self.message
        try:
            text = await edit_text(self.app, draft)
        except (OSError, ValueError) as error:
            words = getattr(error, "strerror", None) or str(error)
            self.notify(words, title="Editor", severity="error", markup=False)
        else:
            self.clear()
            self._insert(unnamed(clean_paste(as_sent(text)), draft))

    def action_up(self) -> None:
        """Go a line up; from the first line, to the message before."""
        if self.completing:
            self.use_popup("up")
        elif self.navigator.is_first_wrapped_line(self.cursor_location):
            self._recall(self._history.back(self.message))
        else:
            self.action_cursor_up()

    def action_down(self) -> None:
        """Go a line down; from the last line, to the message after."""
        if self.completing:
            self.use_popup("down")
        elif self.navigator.is_last_wrapped_line(self.cursor_location):
            self._recall(self._history.forth())
        else:
            self.action_cursor_down()

    async def _on_key(self, event: events.Key) -> None:
        """Run the keys of the composer here and now, in the order in which keys were pressed.

        Left to the app, an action runs before or after letters that were typed in the same
        moment, so that a quick hand or a slow machine would send half a message. Where this is
        not one of them, Textual goes on to the text area's own method.
        """
        if event.is_printable:
            return
        if event.key == "ctrl+c":
            self._interrupted = self.text  # what is typed after it is not meant
            return  # to the app, which copies only what is selected
        await keymap.run_own(self, event, _OWN_KEYS)

    async def _on_paste(self, event: events.Paste) -> None:
        """Insert pasted text as data: a line end in it never sends."""
        event.stop()
        event.prevent_default()
        self._paste(clean_paste(event.text))
        self._pasted_at = monotonic()

    async def action_paste(self) -> None:  # type: ignore[override]  # Textual awaits it
        """Paste the picture in the desktop's clipboard; without one, the last copy."""
        if not await self.paste_picture():
            self._paste(self.app.clipboard)

    def action_cut(self) -> None:
        super().action_cut()
        if (whole := self._folds.unfold(self.app.clipboard)) != self.app.clipboard:
            self.app.copy_to_clipboard(whole)

    def _paste(self, text: str) -> None:
        """Insert a text of which nothing is a mention, unless it is dropped pictures.

        Else that is only what is typed or chosen.
        """
        from tui.model.input.mentions import dropped_pictures, pasted  # noqa: PLC0415 - on first use

        is_apart = self.selection.is_empty and not self.before_cursor[-1:].strip()
        if is_apart and (named := dropped_pictures(text)):
            self.insert_words(named)
            return
        start, end = sorted(self.selection)
        places = ((0, 0), start), (start, end), (end, self.document.end)
        around = (self._folds.unfold(self.get_text_range(*place)) for place in places)
        self._insert(pasted(text, *around))

    def _insert(self, text: str) -> None:
        """Insert a text, or if it is long, a character that stands for it."""
        room = MAX_MESSAGE - len(self.message)
        if len(text) > room:
            text = text[: max(0, room)]
            words = f"Paste truncated: a message has at most {MAX_MESSAGE:,} characters."
            self.notify(words, severity="warning", markup=False)
        is_long = len(self.text) + len(text) > FOLD_AT or text.count("\n") >= FOLD_LINES
        if len(text) >= MIN_FOLD and is_long:
            word = (self.get_text_range((0, 0), min(self.selection)) + SHOWN).split()[-1]
            text = " " * ("@" in word) + self._folds.fold(text, self.text)
        self.replace(text, *self.selection)
        self.scroll_cursor_visible()

    def _recall(self, text: str | None) -> None:
        if text is not None:
            self.replace_all(text)
