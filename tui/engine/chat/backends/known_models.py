"""What is known of models by their names alone."""

import re
from typing import Final

_GENERATION: Final = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_LATEST: Final = re.compile(r"gemini-(?:pro|flash|flash-lite)-latest\Z")

_GEMINI_CONTEXT: Final = 1_048_576
_GEMMA_CONTEXT: Final = 131_072


def generation(model: str) -> tuple[int, int]:
    """Give the Gemini generation of a model, such as ``(2, 5)``; ``(0, 0)`` where unknown.

    The ``-latest`` aliases count as the third generation, the least they can be.
    """
    name = model.rpartition("/")[2]
    if _LATEST.match(name):
        return 3, 0
    found = _GENERATION.match(name)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def signs_calls(model: str) -> bool:
    """Tell whether the first call of each step must carry a thought signature (Gemini 3+)."""
    return generation(model) >= (3, 0)


def takes_media_in_responses(model: str) -> bool:
    """Tell whether function responses may hold media themselves (Gemini 3+)."""
    return generation(model) >= (3, 0)


def thinks(model: str) -> bool:
    """Tell whether the model can be asked for summaries of its thoughts (Gemini 2.5+)."""
    return generation(model) >= (2, 5)


def least_thinking_budget(model: str) -> int | None:
    """Give the fewest tokens of thought a model of generation 2.5 takes; None for others."""
    if generation(model) != (2, 5):
        return None
    return 128 if "pro" in model else 0


def context_limit(model: str) -> int:
    """Give the tokens that fit into a model's context; 0 where unknown."""
    if generation(model) >= (2, 0):
        return _GEMINI_CONTEXT
    return _GEMMA_CONTEXT if model.rpartition("/")[2].startswith("gemma-") else 0
