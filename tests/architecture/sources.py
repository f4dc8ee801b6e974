"""The modules of the project, read and parsed."""

import ast
from functools import lru_cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = sorted((ROOT / "tui").rglob("*.py"))


def text(path: Path) -> str:
    return path.read_text("utf-8")


@lru_cache(maxsize=1)  # all trees at once would slow the collector down for the tests that follow
def parsed(source: str) -> ast.Module:
    return ast.parse(source)
