"""Numbers that tests measure, carried to the summary at the end of the run."""

from collections.abc import Callable
from typing import Final

Measure = Callable[[str], None]
"""Takes one line that names a measured thing, its number with the unit, and the budget."""

PROPERTY: Final = "measured"
"""The key under which a measured line travels in a test report's `user_properties`."""

STALLS: Final = "stalled"
"""The same for a stall of the event loop."""
