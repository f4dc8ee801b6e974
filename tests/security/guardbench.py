"""``python3 -m tests.security.guardbench``: which attacks get marks, and which real tools do.

With ``--record FILE``, the output of ``gemdeck mcp tools --json`` for servers of others, it writes
anew what those say of their tools, of which too few may be marked.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

HERE: Final = Path(__file__).parent
REAL: Final = HERE / "real_descriptions.json"
CASES: Final[dict[str, dict[str, Any]]] = json.loads(
    (HERE / "guardbench.json").read_text(encoding="utf-8")
)["cases"]


def descriptions(value: object) -> Iterator[str]:
    """Give all texts in a definition that describe something."""
    match value:
        case dict():
            for key, item in value.items():
                if key == "description" and isinstance(item, str):
                    yield item
                yield from descriptions(item)
        case list():
            for item in value:
                yield from descriptions(item)


def record(file: Path) -> None:
    """Write what real servers say of their tools, by server and tool."""
    found: dict[str, dict[str, list[str]]] = {}
    for tool in json.loads(file.read_text(encoding="utf-8"))["tools"]:
        found.setdefault(tool["server"], {})[tool["name"]] = list(descriptions(tool))
    REAL.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        record(Path(sys.argv[2]))
    else:
        sys.exit(pytest.main([str(HERE / "test_C_guardbench.py"), "-q", "-s", "-n", "0"]))
