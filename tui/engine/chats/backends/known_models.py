"""What a model's name says about its features."""

import re
from functools import partial
from typing import Final

from tui.engine.chats.backends.backend import ModelTraits

_GENERATION: Final = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_LATEST: Final = re.compile(r"gemini-(?:pro|flash|flash-lite)-latest\Z")

LEVELS: Final = ("minimal", "low", "medium", "high", "xhigh")
"""The thinking levels of Gemini 3 and later; not every model has all."""

MAX_BUDGET: Final = 32_768
"""The largest thinking budget of Gemini 2.5."""

_GEMINI_CONTEXT: Final = 1_048_576
_GEMMA_CONTEXT: Final = 131_072


def generation(model: str) -> tuple[int, int]:
    """Return the Gemini generation of a model, such as ``(2, 5)``; ``(0, 0)`` where unknown.

    The ``-latest`` aliases count as generation 3, the lowest they refer to.
    """
    name = model.rpartition("/")[2]
    if _LATEST.match(name):
        return 3, 0
    found = _GENERATION.match(name)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def signs_calls(model: str) -> bool:
    """Return whether the first call of each step must carry a thought signature (Gemini 3+)."""
    return generation(model) >= (3, 0)


def takes_media_in_responses(model: str) -> bool:
    """Return whether function responses may contain media (Gemini 3+)."""
    return generation(model) >= (3, 0)


def thinks(model: str) -> bool:
    """Return whether the model provides thought summaries (Gemini 2.5+)."""
    return generation(model) >= (2, 5)


def least_thinking_budget(model: str) -> int | None:
    """Return the smallest thinking budget of a Gemini 2.5 model; None for others."""
    if generation(model) != (2, 5):
        return None
    return 128 if "pro" in model else 0


def thinking_problem(model: str, chosen: str) -> str:
    """Return why a model cannot think like that, or an empty string.

    Args:
        model: The model's name.
        chosen: A level, or a budget in tokens for Gemini 2.5.
    """
    if generation(model) >= (3, 0):
        words = f"{model} thinks at one of the levels {', '.join(LEVELS)}."
        return "" if chosen in LEVELS else words
    if not thinks(model):
        return f"{model} has no thinking to set."
    is_budget = chosen.removeprefix("-").isdecimal() and -1 <= int(chosen) <= MAX_BUDGET
    return "" if is_budget else f"{model} takes a budget of -1 to {MAX_BUDGET:,} tokens."


def context_limit(model: str) -> int:
    """Return the size of a model's context in tokens; 0 if unknown."""
    if generation(model) >= (2, 0):
        return _GEMINI_CONTEXT
    return _GEMMA_CONTEXT if model.rpartition("/")[2].startswith("gemma-") else 0


def traits(model: str) -> ModelTraits:
    """Return what a Gemini model's name says about it."""
    return ModelTraits(
        context_limit(model),
        signs_calls(model),
        takes_media_in_responses(model),
        partial(thinking_problem, model),
    )
