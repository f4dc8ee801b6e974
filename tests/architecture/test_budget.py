"""The size of the code is a budget: who makes a folder larger edits the table, and says why."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.architecture.sources import ROOT, SOURCES, parsed, text
from tests.support.measures import Measure

BUDGET: Final = {
    "ui": 11_940,
    "engine/mcp": 7_060,
    "engine/chats": 3_990,
    "cli": 2_530,
    "engine/settings": 2_290,
    "model": 2_280,
    "engine": 1_820,
    "engine/sign_in": 1_640,
    "engine/trust": 1_370,
    "engine/approval": 1_310,
    "engine/definitions": 1_070,
    "engine/commands": 900,
    "engine/files": 770,
    "store": 710,
    "engine/demo": 460,
    ".": 410,
    "engine/logs": 400,
    "engine/keys": 340,
}
"""Code lines of each folder below `tui`: neither blank, nor a comment, nor of a docstring."""

SLACK: Final = 30
"""Lines that a folder may be below its budget before the table has to follow."""

PLACE: Final = re.compile(r"`((?:\w+/)*\w+\.(?:py|tcss|md)|(?:\w+/)+)`")
"""A file or a folder in the map of the code."""


def code_lines(source: str) -> int:
    """Count the lines that are code."""
    docstrings = {
        line
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate((line.strip() for line in source.splitlines()), 1)
    return sum(bool(line) and line[0] != "#" and number not in docstrings for number, line in lines)


def folder_of(path: Path) -> str:
    parts = path.relative_to(ROOT / "tui").parts[:-1]
    return "/".join(parts[: 2 if parts[:1] == ("engine",) else 1]) or "."


def test_no_folder_is_larger_than_its_budget(measure: Measure) -> None:
    sizes: Counter[str] = Counter()
    for path in SOURCES:
        sizes[folder_of(path)] += code_lines(text(path))
    for folder, lines in sizes.most_common():
        measure(f"tui/{folder}: {lines:,} code lines of {BUDGET.get(folder, 0):,}")
    measure(f"tui: {sizes.total():,} code lines of {sum(BUDGET.values()):,}")
    assert sizes.keys() == BUDGET.keys()
    assert {name: lines for name, lines in sizes.items() if lines > BUDGET[name]} == {}
    assert {name: lines for name, lines in sizes.items() if lines < BUDGET[name] - SLACK} == {}


def test_what_is_no_code_is_not_counted() -> None:
    module = '"""Two\nlines."""\n\n# why\nx = """\ntext\n"""\n'
    function = '\ndef f():\n    """Says."""\n    return x\n'
    assert code_lines(module + function) == 5


def named_places(map_of_code: str) -> Iterator[str]:
    """Give the files and folders that the map of the code names, outside examples."""
    for line in re.sub(r"```.*?```", "", map_of_code, flags=re.DOTALL).splitlines():
        yield from PLACE.findall(line)


def is_there(place: str) -> bool:
    """Tell whether a name from the map leads somewhere; a short one may lie deeper."""
    folders = (ROOT / "tui", ROOT / "tests" / "unit")
    ours = (found for folder in folders for found in folder.rglob(place))
    return (ROOT / place).exists() or any(ours)


def test_whatever_the_map_of_the_code_names_is_there() -> None:
    map_of_code = text(ROOT / "tui" / "README.md")
    places = {place.rstrip("/") for place in named_places(map_of_code)}
    assert len(places) > 50
    assert {place for place in places if not is_there(place)} == set()
    assert not is_there("engine/gone.py")
