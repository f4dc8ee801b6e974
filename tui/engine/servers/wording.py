"""How the names and values in a tool's schema are written towards the model, and back.

The model reads no text of a server that the user could not see. A name or a value that holds
something else is written out visibly there. The model's calls use that writing, and the server
gets its own again. What shows as it is, in whatever language, stays as it is.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from tui.text import sanitize

MAX_KEY: Final = 256
"""Longest name of a parameter towards the model, in characters."""

MAX_VALUE: Final = 1_000
"""Longest listed value of a parameter towards the model, in characters."""

_NO_NAME: Final = "(no name)"


def shown_key(name: str) -> str:
    """Write the name of a parameter for the model; never empty."""
    return sanitize(name, MAX_KEY) or _NO_NAME


def shown_value(value: str) -> str:
    """Write one of a parameter's listed values for the model."""
    return sanitize(value, MAX_VALUE)


def own_keys(names: Iterable[str]) -> Mapping[str, str]:
    """Give, by what is shown, the server's spelling of the names that are shown otherwise."""
    return {shown: name for name in names if (shown := shown_key(name)) != name}


def own_value(values: Iterable[str], text: str) -> str:
    """Give the server's spelling of a listed value; any other text comes back unchanged.

    Of values that look alike the one that is shown as it is counts, else the first one.
    """
    listed = list(values)
    if text in listed:
        return text
    return next((value for value in listed if shown_value(value) == text), text)
