"""The parts of ``gemdeck`` in the settings that are about conversations."""

from typing import Final

from pydantic import Field

from tui.model.sections.settings_types import Flag, Number, Section

MAX_KEEP_DAYS: Final = 36_500
"""Largest value of `sessions.keepDays`."""


class SessionSettings(Section):
    """``gemdeck.sessions``: which conversations are kept."""

    save: Flag = Field(True, description="Save conversations, so that they can be resumed.")
    keep_days: Number = Field(
        30,
        ge=0,
        le=MAX_KEEP_DAYS,
        allow_inf_nan=False,
        description="Days after its last change at which a saved conversation is deleted; 0 keeps "
        "all.",
    )
