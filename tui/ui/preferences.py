"""What the user chose about the look, and how it is remembered."""

from collections.abc import Callable
from dataclasses import dataclass

from tui.ui.themes import DEFAULT


def _forget(_theme: str) -> None:
    """Remember nothing."""


@dataclass(frozen=True, slots=True)
class UiPreferences:
    """The look to start with.

    Attributes:
        theme: The name of a theme; one that does not exist falls back to the default.
        save: Called with the name of a theme when the user has chosen it. It must not block.
    """

    theme: str = DEFAULT
    save: Callable[[str], None] = _forget
