"""Fuzzy search over names."""

import time

import pytest

from tui.model.input.fuzzy import best

PATHS = ["src/app/main.py", "src/app/", "docs/mapping.md", "README.md", "tests/test_main.py"]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("main", ["src/app/main.py", "tests/test_main.py", "docs/mapping.md"]),
        ("src", ["src/app/", "src/app/main.py"]),
        *(("app", ["src/app/", "docs/mapping.md", "src/app/main.py"]), ("rdm", ["README.md"])),
        *(("samp", ["src/app/main.py"]), ("zzz", [])),
    ],
)
def test_beginnings_come_first_then_parts_then_letters(typed: str, found: list[str]) -> None:
    assert best(typed, PATHS, 5) == found


def test_names_of_nothing_but_near_misses_cost_their_length() -> None:
    names = ["ab" * 2_000 for _ in range(1_000)]
    began = time.process_time()
    assert best("ab" * 20 + "c", names, 5) == []
    assert time.process_time() - began < 5
