"""Each row of the threat list that applies has a test that carries its id in its name."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parent.parent

LAST_ROW: Final = {"A": 23, "B": 24, "C": 14, "D": 20, "J": 12}
"""The sections that are held here, and the number of their last row."""

ADDED: Final = {
    "B17": "a rule on a folder is left by .., links, also ones bent after the question, spellings",
    "B18": "a rule on a value is met by another type: numbers as texts, arrays, nested objects",
    "B19": "a call has arguments that the rule does not name, or lacks some that it names",
    "B20": "a rule on the beginning of a text is met by what only looks like it, or climbs out",
    "B21": "a denial is evaded by case, Unicode forms, another way to a path, an array",
    "B22": "a rule on arguments that cannot be read, of a project or of another version, allows",
    "B23": "names and values of arguments make the words of a rule say something else, or hide it",
    "B24": "a server says that a tool only reads, and then changes it, adds another or contradicts",
}
"""Rows that came with rules on arguments, and what each is about."""

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
    assert ADDED.keys() <= rows
