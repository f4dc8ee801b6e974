"""gemdeck's dark and light theme, and what the user chose of the look.

The accent color is for keys and for what has focus.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from textual.theme import Theme

from tui.ui.layout import Layout


def _variables(own: dict[str, str]) -> dict[str, str]:
    """Return Textual's variables: a theme's own, and those that repeat its other colors."""
    line, background = own["border-blurred"], own["footer-background"]
    return {
        **own,
        "block-cursor-text-style": "none",
        "block-cursor-blurred-foreground": own["input-cursor-background"],
        "scrollbar": line,
        "scrollbar-active": own["border"],
        "scrollbar-background": background,
        "scrollbar-background-hover": background,
        "scrollbar-background-active": background,
        "scrollbar-corner-color": background,
    }


DARK: Final = Theme(
    name="gemdeck-dark",
    primary="#7aa8e8",
    secondary="#8b93a5",
    accent="#7aa8e8",
    foreground="#d3d7de",
    background="#14161a",
    surface="#1a1d22",
    panel="#22262d",
    success="#86b97d",
    warning="#d6a860",
    error="#e0747d",
    dark=True,
    variables=_variables(
        {
            "border": "#7aa8e8",
            "border-blurred": "#2d323b",
            "block-cursor-foreground": "#eef1f6",
            "block-cursor-background": "#2b3d59",
            "block-cursor-blurred-background": "#20242b",
            "block-hover-background": "#1c2026",
            "input-cursor-background": "#d3d7de",
            "input-selection-background": "#7aa8e8 35%",
            "footer-background": "#14161a",
            "scrollbar-hover": "#3a414d",
        }
    ),
)

LIGHT: Final = Theme(
    name="gemdeck-light",
    primary="#2f61b5",
    secondary="#6a7180",
    accent="#2f61b5",
    foreground="#2a2d34",
    background="#fbfaf8",
    surface="#f4f2ee",
    panel="#eae7e1",
    success="#2f7a3b",
    warning="#8f5d00",
    error="#b5303e",
    dark=False,
    variables=_variables(
        {
            "border": "#2f61b5",
            "border-blurred": "#d2cec6",
            "block-cursor-foreground": "#1a1d23",
            "block-cursor-background": "#cfdcf3",
            "block-cursor-blurred-background": "#ebe8e2",
            "block-hover-background": "#f1eee9",
            "input-cursor-background": "#2a2d34",
            "input-selection-background": "#2f61b5 25%",
            "footer-background": "#fbfaf8",
            "scrollbar-hover": "#bdb8ae",
        }
    ),
)

DEFAULT: Final = DARK.name
"""The theme of a first start, and if the saved one does not exist."""


def _save_nothing(_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class UiPreferences:
    """The look to start with. Saving must not block.

    Attributes:
        theme: The name of a theme; an unknown one falls back to `DEFAULT`.
        save: Called with the theme's name when the user has chosen one.
        layout: Which panes stand beside the chat, and how wide.
        save_layout: Called with the layout when the user has changed it.
    """

    theme: str = DEFAULT
    save: Callable[[str], None] = _save_nothing
    layout: Layout = field(default_factory=Layout)
    save_layout: Callable[[Layout], None] = _save_nothing
