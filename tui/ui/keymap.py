"""The deck's key bindings: of a place, in order, and as they are shown."""

from collections.abc import Mapping
from typing import Any

from textual.app import App
from textual.binding import ActiveBinding, BindingType

from tui.ui.keys.table import GENERAL, KEYS, LOCAL, Key, Place

__all__ = ["GENERAL", "KEYS", "LOCAL", "Key", "Place"]


def bindings(*places: Place, only: tuple[str, ...] = ()) -> list[BindingType]:
    """Return the bindings of some places, or those with the ids in `only`."""
    return [key.binding() for key in KEYS if (key.id in only if only else key.place in places)]


def order(binding_id: str | None) -> int:
    """Return the index of a binding in `KEYS`; other bindings come last."""
    return next((i for i, key in enumerate(KEYS) if key.id == binding_id), len(KEYS))


def key_of(app: App[Any], bindings: Mapping[str, ActiveBinding], binding_id: str) -> str:
    """Return the active key of an action as shown on the screen, or nothing."""
    found = (active.binding for active in bindings.values() if active.binding.id == binding_id)
    return next(map(app.get_key_display, found), "")


def displayed(app: App[Any], key: Key, overrides: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of an action as shown on the screen.

    Args:
        app: Formats the keys as in the key bars.
        key: The action.
        overrides: The user's own keys by binding id.
    """
    own = overrides.get(key.id)
    names = (own or key.keys).split(",")
    display = None if own else key.display
    return tuple(
        dict.fromkeys(
            app.get_key_display(key.binding().with_key(name.strip(), display)) for name in names
        )
    )
