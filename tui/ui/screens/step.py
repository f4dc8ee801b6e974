"""What lies over the confirmation for a moment, and gives a text back or nothing."""

from collections.abc import Callable
from typing import Final

from textual.screen import ModalScreen

from tui.ui.screens.question import CONFIRMATION_STYLES

WITHDRAWN: Final = "The question went away while you were writing; nothing was sent."
"""Said where a step goes with its question."""


class StepScreen(ModalScreen[str | None]):
    """A step towards an answer; it goes with its question."""

    CSS_PATH = CONFIRMATION_STYLES

    def __init__(self) -> None:
        super().__init__()
        self._withdrawn = False

    def withdraw(self) -> None:
        """Go away, since the question went; from under another dialog, as soon as that closes."""
        self._withdrawn = True
        self._leave_if_withdrawn()

    def on_screen_resume(self) -> None:
        """Go away where that was asked while another dialog stood above."""
        self._leave_if_withdrawn()

    def _leave_if_withdrawn(self) -> None:
        if self._withdrawn and self.is_active:
            self.dismiss(None)


class StepHolder:
    """Keeps the one step that lies over a question.

    Args:
        owner: The question's screen.
    """

    def __init__(self, owner: ModalScreen[None]) -> None:
        self._owner = owner
        self._step: StepScreen | None = None

    def open(self, step: StepScreen, take: Callable[[str], None]) -> None:
        """Lay a step over the question; `take` gets what it gives, unless that is nothing."""

        def ended(text: str | None) -> None:
            is_current, self._step = self._step is step, None
            if is_current and text is not None:
                take(text)

        self._step = step
        self._owner.app.push_screen(step, ended)

    def withdraw(self) -> bool:
        """Take the step away; tell whether there was one."""
        step, self._step = self._step, None
        if step is not None:
            step.withdraw()
        return step is not None
