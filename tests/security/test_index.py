"""Each row of the threat list that applies has a test that carries its id in its name."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parent.parent

LAST_ROW: Final = {"A": 23, "B": 16, "C": 14, "D": 20, "J": 12}
"""The sections that are held here, and the number of their last row."""

NOT_YET: Final = {
    "A16": "there is neither an import of servers nor a link that adds one",
    "D20": "nothing is exported",
    "J09": "no session is kept",
    "J10": "no session is kept",
}
"""Rows about what gemdeck does not do."""

_NAME: Final = re.compile(r"def test_((?:[A-K][0-9]{2}_)+)")


def ids() -> Iterator[str]:
    """List the ids in the names of all tests."""
    for path in TESTS.rglob("test_*.py"):
        for match in _NAME.finditer(path.read_text(encoding="utf-8")):
            yield from match[1].rstrip("_").split("_")


def test_every_row_that_applies_has_a_test() -> None:
    rows = {f"{key}{n:02}" for key, last in LAST_ROW.items() for n in range(1, last + 1)}
    found = set(ids())
    assert rows - found == set(NOT_YET)
    assert {row for row in found if row[0] in LAST_ROW} <= rows
