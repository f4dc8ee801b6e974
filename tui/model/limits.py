"""Limits that the settings can change, for those who must not load the settings' schema."""

from typing import Final

DEFAULT_RESULT_SIZE: Final = 50_000
"""Characters of text of one tool result that the model gets where the settings do not say."""
