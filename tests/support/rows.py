"""Tables that are walked in one test."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def row(*values: object) -> Iterator[None]:
    """Name a row of a table in the report of whatever fails with it."""
    try:
        yield
    except BaseException as error:  # what did not raise fails with no Exception
        error.add_note(f"in the row {values!r:.300}")
        raise
