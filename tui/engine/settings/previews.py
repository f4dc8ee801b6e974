"""What an entry of a settings file comes to, found out before anything of it takes effect."""

from collections.abc import Mapping
from typing import Any

from tui.engine.settings.definitions import Preview
from tui.engine.settings.expansion import Expansion


def preview_of(
    raw: Mapping[str, Any], variables: Mapping[str, str], own: Mapping[str, str]
) -> Preview:
    """Find out what an entry comes to.

    Args:
        raw: The entry.
        variables: All that its references stand for.
        own: Those of them that are the user's; their values stay off the screen.
    """
    whole, shown = Expansion(variables), Expansion(variables, own)
    entry_whole, entry_shown = whole.value(dict(raw)), shown.value(dict(raw))
    return Preview(
        entry_shown,
        entry_whole,
        {name: value for name, value in whole.filled.items() if name in own},
        {name: value for name, value in whole.filled.items() if name not in own},
        tuple(whole.defaults),
    )
