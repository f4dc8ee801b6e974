"""Draw a formula of LaTeX in Unicode, as far as a line of a terminal can show it."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

from markdown_it.common.entities import entities

FORMULA: Final = re.compile(
    r"""  \$\$ ([^$`]+) \$\$
        | (?<![\w$]) \$ ((?!\s)[^$`\n]+(?<!\s)) \$ (?![\w$])
        | \\\( ((?:[^\\`]|\\[^()])+) \\\)
        | \\\[ ((?:[^\\`]|\\[^][])+) \\\]""",
    re.VERBOSE,
)
"""A formula between its marks; prices and variables of a shell have a word's end elsewhere."""

MAX_DEPTH: Final = 8
"""Groups within groups that are drawn."""

UNKNOWN: Final = "\0"
"""Stands for a command that has no sign."""

_IS_FORMULA: Final = re.compile(r"[\\^_=<>+*]|\A[A-Za-z](?:\(\w+\))?\Z")
_GROUP: Final = r"\s*{([^{}]*)}"

_NAMES: Final = "to gets neq infty cdot circ partial exists ast land lor neg ldots dots implies"
_WORDS: Final = "log ln exp sin cos tan max min sup inf lim det gcd Pr mod"
_SIGNS: Final[Mapping[str, str]] = {
    **dict(zip(_NAMES.split(), "→←≠∞·∘∂∃∗∧∨¬……⇒", strict=True)),  # noqa: RUF001 - signs of mathematics
    **{name: name for name in [*_WORDS.split(), *"%$#&_{}|"]},
    **dict.fromkeys(("left", "right", "big", "Big", "limits", "displaystyle", "!"), ""),
    **dict.fromkeys((",", ":", ";", " ", "quad", "qquad"), " "),
    "\\": "\n",
}
"""What HTML's names of characters, most of which are LaTeX's, lack or mean otherwise."""

_RAISED: Final = str.maketrans("0123456789+-=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ")
_LOWERED: Final = str.maketrans("0123456789+-=()aeijknx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₖₙₓ")


def drawn_formula(formula: str) -> str:
    """Return a formula in Unicode; nothing if it is none, or has a command that has no sign."""
    if not _IS_FORMULA.search(formula):
        return ""
    text = re.sub(r"\^(\\circ\b|{\\circ})", "°", formula.strip())
    for _ in range(MAX_DEPTH):
        text = re.sub(rf"\\(?:text|operatorname|math(?:rm|bf|it)){_GROUP}", r"\1", text)
        text = re.sub(rf"\\mathbb{_GROUP}", lambda f: entities.get(f"{f[1]}opf", f[0]), text)
        text = re.sub(rf"\\[dt]?frac{_GROUP}{_GROUP}", lambda f: f"{_one(f[1])}/{_one(f[2])}", text)
        text = re.sub(rf"\\sqrt{_GROUP}", lambda f: f"√{_one(f[1])}", text)
        text = re.sub(rf"([_^])(?:{_GROUP}|([\w*]))", _moved, text)
    text = re.sub(r"(?<!\\)[{}]", "", text)
    drawn = re.sub(r"\\([A-Za-z]+|[^A-Za-z])", lambda f: _sign(f[1]), text)
    return "" if UNKNOWN in drawn else re.sub(" +", " ", drawn)


def _sign(name: str) -> str:
    """Return the sign of a command; some of HTML's are invisible."""
    sign = _SIGNS[name] if name in _SIGNS else entities.get(name, UNKNOWN)
    is_seen = name in _SIGNS or all(unicodedata.category(one)[0] in "LSP" for one in sign)
    return sign if is_seen else UNKNOWN


def _one(part: str) -> str:
    """Return a part as it stands beside a sign: in parentheses if it is more than a word."""
    return part if re.fullmatch(r"\\?\w*", part) else f"({part})"


def _moved(found: re.Match[str]) -> str:
    """Raise or lower what stands after ``^`` or ``_``, if there are signs for all of it."""
    mark, part = found[1], found[2] if found[2] is not None else found[3]
    moved = part.translate(_RAISED if mark == "^" else _LOWERED)
    if not set(moved) & set(part):
        return moved
    return f"{mark}({part})" if len(part) > 1 else f"{mark}{part}"
