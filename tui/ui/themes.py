"""gemdeck's own themes, and what the user chose of the look.

The accent color is for keys and for what has focus. Muted text is legible on every background,
that of a selected row included.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from textual import constants
from textual.theme import BUILTIN_THEMES, Theme

from tui.model.frozen import Frozen
from tui.ui.layout import Layout

STYLES: Final = Path(__file__).parent / "styles"
"""The folder of the style sheets."""

_COLORS: Final = {
    "primary": ("#7aa8e8", "#2f61b5"),
    "secondary": ("#8b93a5", "#6a7180"),
    "accent": ("#7aa8e8", "#2f61b5"),
    "foreground": ("#d3d7de", "#2a2d34"),
    "background": ("#14161a", "#fbfaf8"),
    "surface": ("#1a1d22", "#f4f2ee"),
    "panel": ("#22262d", "#eae7e1"),
    "success": ("#86b97d", "#2a7036"),
    "warning": ("#d6a860", "#825400"),
    "error": ("#ea858d", "#b5303e"),
}
"""The colors of the dark theme and of the light one."""

_VARIABLES: Final = {
    "border-blurred": ("#333943", "#cbc6bd"),
    "text-muted": ("#9aa1ad", "#5a606b"),
    "block-cursor-foreground": ("#eef1f6", "#1a1d23"),
    "block-cursor-background": ("#26354d", "#dbe5f6"),
    "block-cursor-blurred-background": ("#20242b", "#ebe8e2"),
    "block-cursor-text-style": ("none", "none"),
    "block-hover-background": ("#1c2026", "#f1eee9"),
    "input-selection-background": ("#7aa8e8 35%", "#2f61b5 25%"),
    "footer-background": ("#14161a", "#fbfaf8"),
    "scrollbar": ("#333943", "#cbc6bd"),
    "scrollbar-hover": ("#3a414d", "#bdb8ae"),
    "scrollbar-background": ("#14161a", "#fbfaf8"),
}
"""Textual's variables for them."""


def _theme(name: str, *, dark: bool) -> Theme:
    colors: dict[str, Any] = {key: pair[not dark] for key, pair in _COLORS.items()}
    variables = {key: pair[not dark] for key, pair in _VARIABLES.items()}
    return Theme(name, dark=dark, variables=variables, **colors)


DARK: Final = _theme("gemdeck-dark", dark=True)
LIGHT: Final = _theme("gemdeck-light", dark=False)

SIXTEEN: Final = Theme(
    name="gemdeck-16",
    ansi=True,
    primary="ansi_bright_blue",
    secondary="ansi_default",
    accent="ansi_bright_blue",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    success="ansi_green",
    warning="ansi_yellow",
    error="ansi_red",
    variables={
        **BUILTIN_THEMES["ansi-dark"].variables,
        "text-muted": "ansi_default",
        "border": "ansi_bright_blue",
        "border-blurred": "ansi_bright_black",
        "block-cursor-foreground": "ansi_default",
        "block-cursor-background": "ansi_default",
        "block-cursor-text-style": "reverse",
        "block-cursor-blurred-text-style": "bold",
        "input-selection-background": "ansi_bright_blue",
        "input-selection-foreground": "ansi_default",
        "scrollbar": "ansi_bright_black",
        "scrollbar-hover": "ansi_bright_blue",
        "scrollbar-background": "ansi_default",
        "scrollbar-background-hover": "ansi_default",
        "scrollbar-background-active": "ansi_default",
    },
)
"""The terminal's own colors: for terminals with 16 colors, and for those that want none."""

OWN: Final = (DARK, LIGHT, SIXTEEN)
"""gemdeck's themes, in the order in which they are offered."""

DEFAULT: Final = DARK.name
"""The theme of a first start, until the terminal tells its background."""

AUTO: Final = "auto"
"""What is chosen for the theme that follows the terminal."""


def in_order(themes: Iterable[str]) -> list[str]:
    """Sort the names of themes, gemdeck's own first."""
    own = [*(theme.name for theme in OWN), AUTO]
    return own + sorted(set(themes) - set(own))


def fitting(theme: object) -> str:
    """Return a saved theme, or `SIXTEEN` where the terminal cannot or should not show its colors.

    That it has 16 colors only is seen as Rich sees it, by the environment.
    """
    system: Any = constants.COLOR_SYSTEM
    colors = Console(color_system=system, force_terminal=True).color_system
    if colors == "standard" or "NO_COLOR" in os.environ:
        return SIXTEEN.name
    return theme if isinstance(theme, str) else ""


class UiPreferences(Frozen):
    """The look to start with. Saving must not block.

    Attributes:
        theme: The name of a theme; with `AUTO` or an unknown one it follows the terminal.
        save: Called with the theme's name when the user has chosen one.
        layout: Which panes stand beside the chat, and how wide.
        save_layout: Called with the layout when the user has changed it.
    """

    theme: str = DEFAULT
    save: Callable[[str], None] = lambda _: None
    layout: Layout = field(default_factory=Layout)
    save_layout: Callable[[Layout], None] = lambda _: None
