"""Asks whether a tool may run, and shows all that would be sent.

The frame, its title and its labels are gemdeck's own; what a server or the model wrote stands
indented behind a label. No answer has an action name: only a key pressed here, or a button
pressed here, can give one, and only once the question is armed.
"""

import re
from collections.abc import Callable, Mapping
from time import monotonic
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content, Span
from textual.getters import query_one
from textual.reactive import var
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Button, Static

from tui.model.consent import Choice, ConfirmationRequest, Decision, RequestId
from tui.store.commands import Commands
from tui.text import clip
from tui.ui.bridge import MIN_WAIT
from tui.ui.screens.arming import ArmingGate
from tui.ui.screens.dialog import DIALOG_STYLES
from tui.ui.widgets.folded_text import FoldedText

MAX_COLOURED: Final = 20_000
"""Characters of arguments that get colours; longer ones are shown plain, as complete."""

MAX_NAME: Final = 200
"""Characters of a server's or tool's name in the dialog."""

GATE_INTERVAL: Final = 0.1
"""Seconds after which the gate is looked at again; keys put its opening off."""

MAX_CLAIMS: Final = 8
"""Claims of a server that are shown."""

TALL: Final = 24
"""Rows from which the dialog has air and all its labels."""

OTHER_ROWS: Final = 17
"""Rows on a tall screen that are not arguments."""

SHORT_OTHER_ROWS: Final = 12
"""Rows on a short screen that are not arguments."""

NARROW: Final = 72
"""Columns below which the buttons stand in two rows."""

MIN_ARGUMENT_ROWS: Final = 2
"""Rows of arguments that are in sight on the smallest screen."""

_BLANK_RUN: Final = re.compile(r"(?<=\S) {4,}")

_CHOICES: Final[Mapping[str, Choice]] = {
    "confirmation.once": Choice.ONCE,
    "confirmation.always-tool": Choice.ALWAYS_TOOL,
    "confirmation.always-server": Choice.ALWAYS_SERVER,
    "confirmation.deny": Choice.DENY,
}
"""Binding ids and what they answer."""

_BUTTONS: Final[Mapping[str, Choice]] = {
    "once": Choice.ONCE,
    "always-tool": Choice.ALWAYS_TOOL,
    "always-server": Choice.ALWAYS_SERVER,
    "deny": Choice.DENY,
}

_UNARMED_HINT: Final = "One moment: keys count once you have stopped typing."
_ARMED_HINT: Final = "↑↓ PageUp PageDown scroll the arguments · ← → Tab move · ↵ presses"


class ConfirmationScreen(ModalScreen[None]):
    """One modal for all questions: it shows the first, and the next one in its place.

    Args:
        commands: Where the answer goes.
        clock: Gives seconds for the arming delay.
    """

    BINDING_GROUP_TITLE = "Confirmation"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW, "-wide")]  # noqa: RUF012 - as the base
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall")]  # noqa: RUF012 - as the base
    HELP = "A tool wants to run. Nothing runs until you allow it."
    # The answers name no action: `on_key` finds them by their ids.
    CSS_PATH = DIALOG_STYLES
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "none", "once", id="confirmation.once"),
        Binding("t", "none", "always this tool", id="confirmation.always-tool"),
        Binding("s", "none", "always this server", id="confirmation.always-server"),
        Binding("d,escape", "none", "deny", id="confirmation.deny"),
        Binding("up", "scroll(-1)", "Scroll up", show=False),
        Binding("down", "scroll(1)", "Scroll down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "edge(-1)", "To the start", show=False),
        Binding("end", "edge(1)", "To the end", show=False),
        Binding("left", "app.focus_previous", "Button before", show=False),
        Binding("right", "app.focus_next", "Button after", show=False),
    ]

    armed: var[bool] = var(False, toggle_class="-armed")
    """Whether answers count now; shown by the look of the buttons and the hint."""

    arguments = query_one("#confirmation-arguments", FoldedText)
    description = query_one("#confirmation-description", FoldedText)
    hint = query_one("#confirmation-hint", Static)
    deny = query_one("#deny", Button)

    def __init__(self, commands: Commands, *, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._commands = commands
        self._gate = ArmingGate(clock)
        self._request: ConfirmationRequest | None = None
        self._answered: RequestId | None = None
        self._waiting = 0
        self._timer: Timer | None = None
        self._obsolete = False

    @property
    def request(self) -> ConfirmationRequest | None:
        """The question on the screen; None once it is answered."""
        return self._request

    def compose(self) -> ComposeResult:
        """Lay out the frame."""
        with Vertical(id="confirmation") as dialog:
            dialog.border_title = Content("A tool wants to run")
            yield Static("", markup=False, id="confirmation-facts")
            yield Static("what the server says of it", markup=False, classes="heading")
            yield FoldedText(wrap=True, id="confirmation-description")
            yield Static("", markup=False, id="confirmation-heading", classes="heading")
            yield FoldedText(id="confirmation-arguments")
            with Container(id="confirmation-buttons"):
                yield Button(_button_label("o", "Once"), id="once", compact=True)
                yield Button(_button_label("t", "Always this tool"), id="always-tool", compact=True)
                yield Button(
                    _button_label("s", "Always this server"), id="always-server", compact=True
                )
                yield Button(_button_label("d", "Deny"), id="deny", compact=True)
            yield Static(_UNARMED_HINT, markup=False, id="confirmation-hint")

    def on_mount(self) -> None:
        """Show what was asked before the screen was there."""
        if self._request is not None:
            self._draw(self._request)

    def show(self, request: ConfirmationRequest, waiting: int) -> None:
        """Ask a question, or count anew how many wait behind the one on the screen.

        Args:
            request: The question.
            waiting: How many wait in all, this one included.
        """
        self._waiting = waiting
        is_shown = self._request is not None and request.id == self._request.id
        if not is_shown and request.id != self._answered:
            self._request = request
            if self.is_mounted:
                self._draw(request)
        elif self.is_mounted:
            self._show_count()

    def close(self) -> None:
        """Go away; from under another dialog, as soon as that is closed."""
        self._obsolete = True
        self._request = None
        if self.is_active:
            self.dismiss()

    def on_screen_resume(self) -> None:
        """Go away where that was asked while another dialog stood above."""
        if self._obsolete:
            self.dismiss()

    def on_resize(self) -> None:
        """Give the arguments the rows that nothing else needs."""
        self._fit()

    def on_key(self, event: events.Key) -> None:
        """Swallow keys until the question is armed; take an answer from then on."""
        if not self._gate.typed():
            event.stop()
            event.prevent_default()
            return
        active = self.active_bindings.get(event.key)
        choice = _CHOICES.get(active.binding.id or "") if active is not None else None
        if choice is not None:
            event.stop()
            event.prevent_default()
            self._answer(choice)

    def on_paste(self, event: events.Paste) -> None:
        """Drop pasted text; it counts as typing."""
        event.stop()
        self._gate.typed()

    @on(Button.Pressed)
    def _press(self, event: Button.Pressed) -> None:
        event.stop()
        if self._gate.armed:
            self._answer(_BUTTONS[event.button.id or "deny"])

    def action_scroll(self, rows: int) -> None:
        """Scroll the arguments."""
        self.arguments.scroll_relative(y=rows, animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll the arguments by pages."""
        self.arguments.scroll_relative(y=pages * self.arguments.size.height, animate=False)

    def action_edge(self, direction: int) -> None:
        """Scroll to the start or the end of the arguments."""
        if direction < 0:
            self.arguments.scroll_home(animate=False)
        else:
            self.arguments.scroll_end(animate=False)

    def watch_armed(self, armed: bool) -> None:
        """Say whether answers count."""
        if self.is_mounted:
            self.hint.update(_ARMED_HINT if armed else _UNARMED_HINT)

    def _answer(self, choice: Choice) -> None:
        """Give the one answer; the modal goes or changes when the state says it is settled."""
        if self._request is None:
            return
        self._answered, self._request = self._request.id, None
        self._disarm()
        self._commands.decide(self._answered, Decision(choice))

    def _draw(self, request: ConfirmationRequest) -> None:
        self._disarm()
        self._fit()
        self.query_one("#confirmation-facts", Static).update(_facts(request))
        self.description.show(request.description or "The server says nothing about this tool.")
        self.query_one("#confirmation-heading", Static).update(_heading(request.arguments))
        self.arguments.show(coloured_arguments(request.arguments))
        self._show_count()
        self.deny.focus()
        self.call_after_refresh(self._start_arming)

    def _fit(self) -> None:
        """Bound the arguments, so that every choice is in sight whatever their length."""
        width, height = self.app.size
        room = height - (OTHER_ROWS if height >= TALL else SHORT_OTHER_ROWS) - (width < NARROW)
        self.arguments.styles.max_height = max(MIN_ARGUMENT_ROWS, room)

    def _show_count(self) -> None:
        dialog = self.query_one("#confirmation", Vertical)
        dialog.border_subtitle = Content(f"1 of {self._waiting}" if self._waiting > 1 else "")

    def _start_arming(self) -> None:
        """Begin the delay now that the question has been drawn."""
        self._gate.shown()
        self._check_gate()

    def _check_gate(self) -> None:
        self._timer = None
        remaining = self._gate.remaining
        self.armed = remaining == 0
        if remaining:
            wait = min(max(remaining, MIN_WAIT), GATE_INTERVAL)
            self._timer = self.set_timer(wait, self._check_gate)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._gate.hidden()
        self.armed = False


def coloured_arguments(text: str) -> Content:
    """Give arguments with colours, and with runs of blanks made visible.

    Every character of the text is there; only blanks in a run are drawn as dots, so that text
    cannot be pushed out of sight.
    """
    from textual.highlight import highlight  # noqa: PLC0415 - loads Pygments, on first use

    content = highlight(text, language="json") if len(text) <= MAX_COLOURED else Content(text)
    runs = [(match.start(), match.end()) for match in _BLANK_RUN.finditer(content.plain)]
    if not runs:
        return content
    shown = _BLANK_RUN.sub(lambda match: "·" * len(match.group()), content.plain)
    dots = [Span(start, end, "$text-warning") for start, end in runs]
    return Content(shown, spans=[*content.spans, *dots])


def _facts(request: ConfirmationRequest) -> Content:
    """Name server and tool, and what the server claims, each behind gemdeck's own label."""
    lines = [
        Content.assemble((f"{label:<9}", "$foreground-muted"), (clip(name, MAX_NAME), "bold"))
        for label, name in (("server", request.server), ("tool", request.tool))
    ]
    if request.claims:
        words = clip(", ".join(request.claims[:MAX_CLAIMS]), MAX_NAME)
        unverified = ("  (claimed, not checked)", "$foreground-muted")
        lines.append(Content.assemble(("claims   ", "$foreground-muted"), words, unverified))
    return Content("\n").join(lines)


def _heading(arguments: str) -> Content:
    lines = arguments.count("\n") + 1
    size = f"{lines:,} lines, {len(arguments):,} characters"
    return Content(f"arguments, complete: {size}")


def _button_label(key: str, words: str) -> Content:
    return Content.assemble((key, "bold underline"), f" {words}")
