"""The settings reference of the README: ``python3 -m tests.support.readme_reference`` renews it."""

import re
from pathlib import Path
from typing import Final

from tui.engine.settings.origins import settings_reference

README: Final = Path(__file__).parents[2] / "README.md"
_BLOCK: Final = re.compile(r"(<!-- settings: begin -->\n).*?(<!-- settings: end -->)", re.DOTALL)


def reference() -> str:
    """Return the table of all keys."""
    rows = [
        f"| `{key}` | {f'`{default}`' if default else ''} | {words} |".replace("|  |", "| |")
        for key, default, words in settings_reference()
    ]
    return "\n".join(["| key | default | what it does |", "|---|---|---|", *rows]) + "\n"


def renewed(text: str) -> str:
    """Return a README with the table as it should be."""
    return _BLOCK.sub(lambda found: f"{found[1]}{reference()}{found[2]}", text)


if __name__ == "__main__":
    README.write_text(renewed(README.read_text("utf-8")), "utf-8")
