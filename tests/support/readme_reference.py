"""The settings reference of the README: ``python3 -m tests.support.readme_reference`` renews it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, get_args, get_origin

from pydantic import BaseModel

from tui.engine.settings.origins import SECTIONS
from tui.model.settings import ServerSettings

README: Final = Path(__file__).parents[2] / "README.md"
_BLOCK: Final = re.compile(r"(<!-- settings: begin -->\n).*?(<!-- settings: end -->)", re.DOTALL)


def reference() -> str:
    """Return the table of all keys."""
    rows = [
        f"| `{key}` | {f'`{default}`' if default else ''} | {words} |".replace("|  |", "| |")
        for key, default, words in settings_reference()
    ]
    return "\n".join(["| key | default | what it does |", "|---|---|---|", *rows]) + "\n"


def settings_reference() -> Iterator[tuple[str, str, str]]:
    """Give each key with its default and what it does."""
    for name, (section, _) in SECTIONS.items():
        yield from _keys(f"{name}.*." if section is ServerSettings else f"{name}.", section)


def _keys(start: str, section: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    """Give the keys of a section, and those of the sections in it."""
    for name, field in section.model_fields.items():
        key = f"{start}{field.alias or name}"
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        below = f"{key}.*." if get_origin(field.annotation) is dict else f"{key}."
        yield key, _written(default), str(field.description)
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from _keys(below, part)


def _written(default: object) -> str:
    match default:
        case None | "" | () | {} | BaseModel():
            return ""
        case bool():
            return "true" if default else "false"
    return f"{default:g}" if isinstance(default, float) else str(default)


def renewed(text: str) -> str:
    """Return a README with the table as it should be."""
    return _BLOCK.sub(lambda found: f"{found[1]}{reference()}{found[2]}", text)


if __name__ == "__main__":
    README.write_text(renewed(README.read_text("utf-8")), "utf-8")
