"""The tests of gemdeck; whatever imports them has data classes that are really frozen."""

from tests.support import frozen

__all__ = ["frozen"]
