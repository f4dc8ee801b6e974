"""Rules and defaults of settings, for modules that must not load the schema."""

import re
from typing import Final

DEFAULT_RESULT_SIZE: Final = 50_000
"""Default for the characters of one tool result that the model gets."""

MAX_WAIT: Final = 600
"""Largest value of `waitForServers`, in seconds."""

DEFAULT_MAX_TOOLS: Final = 128
"""Default for the number of tools that the model holds at once."""

DEFAULT_TOOL_SHARE: Final = 5.0
"""Default for what these may take of the model's context, in percent."""

ANY: Final = "*"
"""Stands for any characters, also none."""

_MODEL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}")


_SERVICE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")

_ROOTS: Final = frozenset({"models", "publishers", "projects", "tunedmodels"})
"""With these, names of Gemini's models begin."""


def check_service_name(name: str) -> str:
    """Return the name of a service if names of models can begin with it.

    Raises:
        ValueError: If they cannot.
    """
    if not _SERVICE_NAME.fullmatch(name) or name.lower() in _ROOTS:
        raise ValueError("must be a word, and none with which names of Gemini's models begin")
    return name


def check_model_name(name: str) -> str:
    """Return the name of a model if it is safe in a request path.

    Raises:
        ValueError: If it is not.
    """
    if not _MODEL_NAME.fullmatch(name) or ".." in name or "//" in name:
        raise ValueError("must be the name of a model, such as gemini-3.8-flash")
    return name


def matches(pattern: str, name: str) -> bool:
    """Match a whole name, in time that grows with pattern times name at most."""
    first, *others = pattern.split(ANY)
    if not others:
        return pattern == name
    *inner, last = others
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    start, end = len(first), len(name) - len(last)
    for piece in inner:
        found = name.find(piece, start, end)
        if found < 0:
            return False
        start = found + len(piece)
    return True
