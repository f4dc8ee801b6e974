"""Marks what a text of a server hides from people, or says to the model against the user.

A mark is a hint for people, found by patterns that can be evaded: what it is about stays as it is.
"""

import json
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final

from tui.model.catalog import Mark
from tui.text import INVISIBLE, LATIN_ALIKE, counted, for_model, sanitize_line, without_sequences

MAX_SEARCHED: Final = 1_000_000
"""Characters that are searched, half of them at the end."""

MAX_QUOTED: Final = 80
"""Characters of a text that a mark quotes."""

BLANK_LINES: Final = 100
"""Blank lines after which a text is taken to be out of sight."""

BLANKS: Final = 300
"""Blanks in a line after which it is."""

FEW: Final = 9
"""Fewer blanks in a row than this, and fewer escapes in all, are no gap."""

_GAP: Final = re.compile(rf"\s{{{BLANK_LINES},}}+")
_PLAIN: Final = dict.fromkeys(map(ord, INVISIBLE)) | str.maketrans("\u2018\u2019", "''")
_EMPHASIS: Final = str.maketrans("*_`", "   ")


def marks_of(*values: object) -> tuple[Mark, ...]:
    """Mark texts, or all texts in JSON values, as they came: at most one mark of each kind."""
    texts: list[str] = []
    left: list[object] = [*values]
    while left:
        match left.pop():
            case str() as one:
                texts.append(one.rstrip())
            case dict() as one:
                left += reversed([*chain.from_iterable(one.items())])
            case list() | tuple() as one:
                left += reversed(one)
    text = "\n|\n".join(texts)  # two of them make no sentence
    if len(text) > MAX_SEARCHED:
        text = text[: MAX_SEARCHED // 2] + text[-MAX_SEARCHED // 2 :]
    return (*_unseen(text), *_hostile(text))


def marks_in(definition: str) -> tuple[Mark, ...]:
    """Mark all texts in JSON in ASCII; most have nothing of what is looked for."""
    words = definition.lower()
    is_plain = "\\u" not in words and " " * FEW not in words and words.count("\\") < FEW
    if is_plain and not any(one in words for one in _stems()):
        return ()
    return marks_of(json.loads(definition))


def mark_notes(marks: Iterable[Mark], what: str = "text") -> tuple[str, ...]:
    """Write marks for a text on the screen, each as a line of its own."""
    return tuple(f"[Marked: this {what} {mark.words}.]" for mark in marks)


def _unseen(text: str) -> Iterator[Mark]:
    if hidden := for_model(text)[1]:
        tags = (ord(one) - 0xE0000 for one in text if "\U000e0020" <= one < "\U000e007f")
        said = "".join(map(chr, tags))
        yield Mark("invisible", f"has {counted(hidden, 'invisible character')}{_quoted(said)}")
    for gap in _GAP.finditer(text):
        lines, blanks = gap[0].count("\n") - 1, len(gap[0]) - 1 - gap[0].rfind("\n")
        if lines >= BLANK_LINES or blanks >= BLANKS:
            place = f"{blanks:,} blanks" if blanks >= BLANKS else f"{lines:,} blank lines"
            yield Mark("out-of-sight", f"goes on after {place}{_quoted(text[gap.end() :])}")
            return


def _hostile(text: str) -> Iterator[Mark]:
    words = _folded(text)
    for kind, says, needs, pattern in _patterns():
        if any(one in words for one in needs) and (found := pattern.search(words)):
            yield Mark(kind, f"{says}{_quoted(found[0])}")


def _folded(text: str) -> str:
    """Return what a text says, however its letters are written."""
    text = without_sequences(text) if "\x1b" in text or not text.isascii() else text
    if not text.isascii():
        text = text.translate(_PLAIN).lower().translate(LATIN_ALIKE)
        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return " ".join(text.lower().translate(_EMPHASIS).split())


def _quoted(text: str) -> str:
    """Quote the beginning of a text behind a colon, if there is one; nothing in it ends a quote."""
    line = sanitize_line(text[:400].replace("“", '"').replace("”", '"'), MAX_QUOTED)
    return f": “{line}”" if line else ""


@cache
def _stems() -> list[str]:
    return [one for _, _, needs, _ in _patterns() for one in needs]


@cache
def _patterns() -> list[tuple[str, str, list[str], re.Pattern[str]]]:
    """Return the kinds of ``hostile_words.toml``, which says what they hold."""
    text = Path(__file__).with_name("hostile_words.toml").read_text("utf-8")
    rows: list[dict[str, Any]] = tomllib.loads(text)["mark"]
    whole = ((row, re.compile(f"(?:{row['words']})\\w{{0,12}}", re.X)) for row in rows)
    return [(row["kind"], row["says"], row["needs"], pattern) for row, pattern in whole]
