"""How the arguments of a call are shown; the screen reads edited ones by the same rules."""

from tui.model.arguments import MAX_ARGUMENTS, canonical_json

__all__ = ["MAX_ARGUMENTS", "canonical_json"]
