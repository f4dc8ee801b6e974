"""The manual: pages of Markdown in ``help/``, for F1, ``gemdeck help`` and the web."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

TOPICS: Final = (
    "start",
    "servers",
    "sign-in",
    "permissions",
    "chat",
    "sessions",
    "keys",
    "commands",
    "settings",
    "sandbox",
    "security",
    "troubleshooting",
)
"""The pages, in the order of reading; each is the file of that name."""

_FOLDER: Final = Path(__file__).with_name("help")
_COMMENT: Final = re.compile(r"<!--.*?-->\n?", re.DOTALL)


class Part(NamedTuple):
    """A heading of a page, and the Markdown up to the next one, the heading included.

    Attributes:
        at: Where it is: ``topic#heading``.
        title: The first heading of the page.
    """

    at: str
    title: str
    heading: str
    text: str


def page(topic: str) -> str:
    """Read a page: Markdown, its heading included.

    Links lead to addresses or to ``topic.md#heading``.

    Raises:
        KeyError: There is none of this name.
    """
    if topic not in TOPICS:
        raise KeyError(topic)
    return (_FOLDER / f"{topic}.md").read_text("utf-8")


def parts_of(topic: str) -> Sequence[Part]:
    """Divide a page at its headings."""
    parts: list[tuple[str, list[str]]] = []
    is_code = False
    for line in _COMMENT.sub("", page(topic)).splitlines():
        is_code ^= line.startswith("```")
        if line.startswith("#") and not is_code:
            parts.append((line.lstrip("# "), []))
        parts[-1][1].append(line)
    return [
        Part(f"{topic}#{_anchor(heading)}", parts[0][0], heading, "\n".join(lines))
        for heading, lines in parts
    ]


def sections_with(words: Sequence[str]) -> tuple[Sequence[Part], Sequence[Part]]:
    """Return the sections whose headings have these words, and others, by how often they do.

    Args:
        words: Words, or parts of words, in lower case.
    """
    found = [part for topic in TOPICS for part in parts_of(topic) if has_words(part.text, words)]
    found.sort(key=lambda part: -sum(map(part.text.lower().count, words)))
    named = [part for part in found if has_words(part.heading, words)]
    return named, [part for part in found if part not in named]


def has_words(text: str, words: Iterable[str]) -> bool:
    """Tell whether a text has all of these, which are in lower case."""
    return all(word in text.lower() for word in words)


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
