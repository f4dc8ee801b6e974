"""What every dialog and question is: a screen through which those below it show."""

from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen, Screen, ScreenResultType

SEEN_THROUGH: Final = 8
"""Screens that show through each other; each is drawn while the next one is drawn."""


class Overlay(ModalScreen[ScreenResultType]):
    """A screen above another one.

    Textual notes what is below when a screen is drawn, from a list that each screen shortens. Where
    only some are drawn anew that list is wrong, so that a screen may be drawn within itself.
    """

    def render(self) -> RenderableType:
        return _Below(self)

    def below(self) -> Screen[Any] | None:
        """Return the screen that shows through this one; None where none does."""
        stack = self.app.screen_stack
        place = stack.index(self) if self in stack else 0
        return stack[place - 1] if place % SEEN_THROUGH else None


@dataclass(frozen=True, slots=True)
class _Below:
    """Draws what is below a screen whenever it is drawn."""

    above: Overlay[Any]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if (below := self.above.below()) is not None:
            yield BackgroundScreen(below, self.above.styles.background)
