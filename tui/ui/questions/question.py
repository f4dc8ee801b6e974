"""The screen of every question: a frame with a hint in it, a text, and the answers.

Only keys and buttons pressed here give answers. Frame, title and labels are gemdeck's own.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.getters import query_one
from textual.reactive import var
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Button

from tui.model import requests
from tui.model.requests import PendingRequest, Reply
from tui.model.trust import TrustAnswer
from tui.store.commands import Commands
from tui.text import counted
from tui.ui import keymap
from tui.ui.questions.answers import Answer, AnswerRows, Rows
from tui.ui.questions.arming import SCROLL_KEYS, Arming, Keyboard
from tui.ui.themes import STYLES
from tui.ui.widgets.frame import WORDY, Frame, fit
from tui.ui.widgets.key_bar import FRAME, whole_parts
from tui.ui.widgets.overlay import Overlay
from tui.ui.widgets.text.folded_text import FoldedText, Position, position_in
from tui.ui.widgets.text.labelled_text import LabelledLine, LabelledText

R = TypeVar("R", bound=PendingRequest)

NAME: Final = re.compile(r"[\w./:-]+", re.ASCII)
"""A name that looks like nothing else in the frame."""

WHEEL_ROWS: Final = 2
"""Rows that the wheel scrolls where the pointer is on nothing that scrolls by itself."""


class Names(LabelledText, can_focus=False):
    """Who asks, and what for: whole at any width, and to be seen to its end."""

    def __init__(self) -> None:
        super().__init__(classes="names -read")


class ReadProgress:
    """Takes note of the ends that were in sight.

    One view of a question has the class `-fits`: the one that gives way to the answers, and whose
    lines are counted. It has to be seen to its end, as has each one of the class `-read`.

    Args:
        screen: The question.
    """

    def __init__(self, screen: Screen[Any]) -> None:
        self._screen = screen
        self._seen: set[Widget] = set()

    @property
    def main(self) -> Widget:
        return self._screen.query_one(".-fits")

    @property
    def views(self) -> Sequence[Widget]:
        return [view for view in self._screen.query(".-read, .-fits") if view.display]

    @property
    def position(self) -> Position:
        return position_in(self.main)

    @property
    def unread(self) -> Widget | None:
        """The first view whose end is not in sight and never was."""
        self.look()
        return next((view for view in self.views if view not in self._seen), None)

    def look(self) -> None:
        self._seen.update(view for view in self.views if position_in(view).shows_end)

    def words(self) -> str:
        """Say that there is more to read, where there is."""
        unread = self.unread
        return f"{counted(position_in(unread).left, 'more line')} · End to jump" if unread else ""

    def begin_anew(self) -> None:
        self._seen.clear()


def keep(screen: Screen[Any]) -> None:
    """Take the screen on top away, to come back as it is."""
    screen.app.install_screen(screen, f"kept-{id(screen)}")  # else it would be removed
    screen.app.pop_screen()


def bring(screen: Screen[Any], ended: Callable[[Any], None] | None = None) -> None:
    """Put a screen on top, whether it was kept or is new; `ended` takes what it gives."""
    screen.app.uninstall_screen(screen)
    screen.app.push_screen(screen, ended)


def drop_kept(screen: Screen[Any]) -> None:
    """Remove a screen if it was kept."""
    if screen not in screen.app.screen_stack and screen.app.uninstall_screen(screen):
        screen.remove()


class Question(Overlay[None], Generic[R]):
    """A modal that asks one question and takes one answer.

    A kind of question gives its title, its lines or other widgets, its answers as data, and what
    is sent. An answer that allows counts only once the end of each view was in sight.

    Args:
        request: What is asked.
        commands: Where the answer goes.
        keyboard: What was typed before.
    """

    TITLE: ClassVar[str]
    """What is asked, in gemdeck's own words."""

    PREFIX: ClassVar[str]
    """The beginning of the binding ids of the answers."""

    ROWS: ClassVar[Rows]
    """The answers."""

    SAFE: ClassVar[Answer]
    """The answer that changes nothing; its button has the focus first."""

    ARMED: ClassVar[str] = "↑↓ PgUp PgDn scroll · ←→ choose · ↵ confirm"
    """What the last line says while answers count; what has no room there is left out."""

    AUTO_FOCUS = ""
    CSS_PATH: ClassVar = [STYLES / "questions.tcss", STYLES / "forms.tcss"]
    """Read when the first question is asked, so that the first frame does not wait for it."""
    BINDINGS: ClassVar[list[BindingType]] = [
        *keymap.bindings(*keymap.HELP),
        *keymap.over_questions(),
        Binding("shift+pageup", "scroll_chat(0, -1)", show=False, priority=True),
        Binding("shift+pagedown", "scroll_chat(0, 1)", show=False, priority=True),
        *(Binding(key, f"scroll{by}", show=False) for key, by in SCROLL_KEYS.items()),
        Binding("left", "app.focus_previous", "Previous button", show=False),
        Binding("right", "app.focus_next", "Next button", show=False),
    ]

    conversation: str = ""
    """The tab of the conversation that asks, where there are several."""

    armed: var[bool] = var(False)  # answers count now

    frame = query_one(Frame)

    def __init_subclass__(cls) -> None:
        if "ROWS" in cls.__dict__:
            bindings = [one.binding(cls.PREFIX) for row in cls.ROWS for one in row]
            cls.BINDINGS = [*bindings, *cls.__dict__.get("BINDINGS", ())]
        super().__init_subclass__()

    def __init__(self, request: R, commands: Commands, *, keyboard: Keyboard | None = None) -> None:
        super().__init__()
        self.request = self._shown = request
        self._commands = commands
        self._keyboard = keyboard or Keyboard()
        self._arming = Arming(self, self._keyboard, self._look_at_arming, self._take)
        self._answers = {one.name: one for row in self.ROWS for one in row}
        self._is_answered = self._obsolete = self._covered = False
        self.reading = ReadProgress(self)
        self._waiting = ""
        self.rows = AnswerRows(self.ROWS)
        self._said = ""
        self._hint = Content()

    # What a kind of question gives.

    def title_words(self) -> str:
        return self.TITLE

    def full_title(self) -> Content:
        return Content(" · ".join(filter(None, (self.title_words(), self.conversation))))

    def lines(self) -> Sequence[LabelledLine]:
        return ()

    def compose_text(self) -> Iterable[Widget]:
        """Compose what is above the answers: the lines; see `ReadProgress` for classes."""
        yield LabelledText(classes="-fits")

    def offers(self, answer: Answer) -> bool:  # noqa: ARG002 - for those that do not
        return True

    def caption(self, answer: Answer) -> str:
        return answer.short if self.is_short and answer.short else answer.label

    def refusal(self, answer: Answer) -> str:
        """Say why an answer cannot be given yet, or nothing."""
        return self.unread_words() if answer.allows else ""

    def unread_words(self) -> str:
        return self.reading.words()

    def armed_words(self) -> str:
        return self.ARMED

    def again_words(self, answer: Answer, key: str) -> str:
        return f"Press {key} again: {answer.words}"

    def place(self, frame: Frame) -> None:
        """Give the frame another place than the middle."""

    def first_focus(self) -> Widget | None:
        return self.rows.button(self.SAFE)

    def choose(self, answer: Answer) -> None:
        """Take an answer that counts; by itself its value is sent."""
        assert isinstance(answer.value, TrustAnswer | Reply)  # noqa: S101
        self.send(answer.value)

    def changed(self) -> None:
        """Ask anew: what changed while it was on the screen is shown from its beginning."""
        self._arming.end()
        self._arming.forget()
        self.frame.border_title = self.full_title()
        self.show_text()
        self.show_answers()
        self.set_focus(None)
        self.ask_again()

    # What all kinds share.

    @property
    def asks(self) -> bool:
        return not (self._is_answered or self._obsolete)

    @property
    def is_short(self) -> bool:
        return self.app.size.width < WORDY

    def accepts(self, request: object) -> bool:
        return isinstance(request, type(self.request)) and request.id == self.request.id

    def show(self, pending: Sequence[PendingRequest], waiting: str) -> None:
        """Take note of what is asked now, this first, and of the words on how many wait."""
        self.request, self._waiting = cast("R", pending[0]), waiting
        if self.is_mounted:
            self._show_request()

    def compose(self) -> ComposeResult:
        """Lay out the text, the answers and the hint, complete before they are drawn."""
        self._shown = self.request
        fit(self)
        self.show_answers()
        with Frame(classes=f"question -{self.PREFIX}") as frame:
            yield from self.compose_text()
            yield self.rows
            self.place(frame)

    def on_mount(self) -> None:
        """Begin to arm once all of it has been drawn."""
        if not self.children:  # the app ended before
            return
        self.frame.border_title = self.full_title()
        self.show_text()
        for view in self.reading.views:
            self.watch(view, "scroll_y", self._look, init=False)
        self.screen_layout_refresh_signal.subscribe(self, lambda _: self._look())
        self._show_request()
        self.arm_after_drawing()

    def on_resize(self) -> None:
        self._said = ""  # what is in sight has changed
        fit(self)
        self.place(self.frame)
        self.show_answers()
        self.call_after_refresh(self.show_hint)

    def show_text(self) -> None:
        self.reading.begin_anew()
        for view in self.query(LabelledText):
            view.show_lines(self.lines())

    def show_answers(self) -> None:
        for one in self.rows.answers:
            words, offered = self.caption(one), self.offers(one)
            self.rows.show(one, self._key_of(one), words, offered=offered, short=self.is_short)

    def send(self, value: requests.Answer) -> None:
        """Give the one answer; the question goes when the state says that it is settled."""
        self._is_answered = True
        self._arming.end()
        self._commands.engine.desk.answer(self.request.id, value)

    def ask_again(self) -> None:
        self._is_answered = False
        if self.is_mounted:
            self.arm_after_drawing()

    def say(self, words: str) -> None:
        self._said = words
        self.show_hint()

    def close(self) -> None:
        """Go away; from under another dialog, as soon as that is closed."""
        self._obsolete = True
        self._arming.end()
        if self.is_active:
            self.dismiss()
        else:
            drop_kept(self)

    def step_aside(self) -> bool:
        """Leave the screen unanswered, to come back as it is; tell whether nothing lies over it."""
        if not self.is_active:
            return False
        self._covered = True
        self._arming.end()
        keep(self)
        return True

    def come(self) -> None:
        """Come on the screen, for the first time or again."""
        bring(self)

    def on_screen_suspend(self) -> None:
        if not self.is_active:  # else it left and came back before Textual told it
            self._covered = True
            self._arming.end()
            self._arming.forget()

    def on_screen_resume(self) -> None:
        """Go away where that was asked while another dialog stood above, else begin anew."""
        if not self.is_active:
            return
        was_covered, self._covered = self._covered, False
        if self._obsolete:
            self.dismiss()
        elif was_covered:
            self.arm_after_drawing()

    def arm_after_drawing(self) -> None:
        """Take no answer until the question has been drawn and the delay is over."""
        self._arming.end()
        if not self._covered:
            self.call_after_refresh(self.begin)

    def begin(self) -> None:
        if self.asks and self.is_active:
            self._arming.begin()
            self._look()

    def on_key(self, event: events.Key) -> None:
        """Swallow keys until answers count; take an answer from then on."""
        self._said = ""
        answer = self._answer_of(event)
        is_typed = event.is_printable or event.key == "enter"
        bound = self.active_bindings.get(event.key)
        is_help = self.armed and bound is not None and bound.binding.id in keymap.HELP
        is_text = is_typed and not is_help and isinstance(self.focused, Button | FoldedText | None)
        goes_on = False
        if self._arming.goes_into_draft(event):
            pass
        elif answer is not None:
            self._arming.press(event, answer, refused=bool(self.refusal(answer)))
        elif is_text:
            self._arming.text(event)
        else:
            goes_on = self.lets_through(event)
            self._arming.forget()
        if not goes_on:
            event.stop()
            event.prevent_default()
        self.show_hint()

    def lets_through(self, event: events.Key) -> bool:
        return self.armed or event.key in SCROLL_KEYS

    def on_paste(self, event: events.Paste) -> None:
        """Drop text that is pasted here; it counts as typing."""
        event.stop()
        if not self._arming.goes_into_draft(event):
            self._arming.text(event)

    @on(Button.Pressed)
    def _on_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self._said = ""
        answer = self._answers[event.button.id or ""]
        self._arming.click(answer, refused=bool(self.refusal(answer)))
        self.show_hint()

    def action_scroll(self, rows: int, pages: int) -> None:
        """Scroll the text with the focus, else the first that was not seen to its end."""
        view = self.reading.unread or self.reading.main
        if isinstance(self.focused, FoldedText) and (
            rows + pages < 0 or not position_in(self.focused).shows_end
        ):
            view = self.focused
        by = rows + pages * view.size.height
        self._said = ""
        view.scroll_relative(y=by, animate=False, immediate=True)

    def action_scroll_chat(self, rows: int, pages: int) -> None:
        """Scroll the conversation below, in which stands what led to the question."""
        for chat in self.app.screen_stack[0].query("ChatPane.-current Transcript"):
            chat.release_anchor()
            chat.scroll_relative(y=rows + pages * chat.size.height, animate=False, immediate=True)
            # Textual draws no scrolling of a screen that another one lies over.
            chat.call_after_refresh(self.refresh)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._turn_wheel(event, WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._turn_wheel(event, -WHEEL_ROWS)

    def _turn_wheel(self, event: events.MouseEvent, rows: int) -> None:
        is_here = self.frame.region.contains(*event.screen_offset)
        (self.action_scroll if is_here else self.action_scroll_chat)(rows, 0)

    def watch_armed(self) -> None:
        if not (self.is_mounted and self.display):  # its parts go before it as gemdeck ends
            return
        self.rows.set_class(self.armed, "-armed")  # a class of the whole would restyle all of it
        self._look()
        if self.armed and self.focused is None and (widget := self.first_focus()) is not None:
            widget.focus()

    def show_hint(self) -> None:
        """Say in the frame what can be done now, and how many questions wait."""
        if not (self.is_mounted and self.display):
            return
        words = Content(" · ".join(filter(None, (self.hint_words(), self._waiting))))
        room = (self.frame.outer_size.width or self.app.size.width) - FRAME
        if (shown := whole_parts(words, room)) != self._hint:
            self._hint = shown
            self.frame.border_subtitle = Content.assemble(shown)

    def hint_words(self) -> str:
        if key := self._arming.early:
            return f"Too early: press {self.app.get_key_display(Binding(key, ''))} again"
        if not self.armed:
            return " · ".join(filter(None, (self._unread_here(), self._arming.hint)))
        if self._said:
            return self._said
        if (held := self._arming.held) is not None:
            return f"{self._key_of(held)}: {held.words} · any other letter cancels it"
        if (awaited := self._arming.awaited) is not None:
            return self.again_words(awaited, self._key_of(awaited))
        return self._unread_here() or self.armed_words()

    def _unread_here(self) -> str:
        """Say what is left to read where that holds an answer back."""
        may_allow = any(one.allows and self.offers(one) for one in self._answers.values())
        return self.unread_words() if may_allow else ""

    def _take(self, answer: Answer) -> None:
        if not self.asks or not self.offers(answer):
            return
        if refusal := self.refusal(answer):
            is_unread = refusal == self.unread_words()
            self.say(f"Read to the end: {refusal}" if is_unread else refusal)
        else:
            self.choose(answer)

    def _answer_of(self, event: events.Key) -> Answer | None:
        """Give the answer of a key, if any; Enter is that of the button with the focus."""
        selected = getattr(self.focused, "selected_text", "") or self.get_selected_text()
        if event.key == "ctrl+c" and not selected:  # else it copies that
            return self.SAFE
        if event.key == "enter" and isinstance(self.focused, Button):
            return self._answers.get(self.focused.id or "")
        active = self.active_bindings.get(event.key)
        if active is None or active.node is not self:
            return None
        answer = self._answers.get((active.binding.id or "").removeprefix(f"{self.PREFIX}."))
        return answer if answer is not None and self.offers(answer) else None

    def _key_of(self, answer: Answer) -> str:
        """Write the key of an answer as it is mapped now."""
        own = keymap.key_of(self.app, self.active_bindings, f"{self.PREFIX}.{answer.name}")
        return own or self.app.get_key_display(Binding(answer.keys.partition(",")[0], ""))

    def _show_request(self) -> None:
        self.show_hint()
        if self.request != self._shown:
            self._shown = self.request
            self.changed()

    def _look(self) -> None:
        if self._obsolete or not self._arming.is_begun:
            return
        self.reading.look()
        self.show_hint()

    def _look_at_arming(self) -> None:
        self.armed = self._arming.armed
        self.show_hint()
