"""Parses each of Textual's style sheets once in a run.

Every app parses the styles of all its widgets anew, a fifth of what a test of the screen costs.
Parsed rules are never changed; Textual itself keeps and shares them within one app.
"""

from typing import Any

from textual.css.model import RuleSet
from textual.css.parse import parse
from textual.css.tokenize import tokenize_values
from textual.css.tokenizer import Token
from textual.css.types import CSSLocation

_tokens: dict[frozenset[tuple[str, str]], dict[str, list[Token]]] = {}
_rules: dict[object, tuple[object, list[RuleSet]]] = {}
"""What was parsed, with the variables it was parsed with, whose id stays theirs thereby."""


def tokenize_once(values: dict[str, str]) -> dict[str, list[Token]]:
    """Tokenize a theme's variables; the same variables give the same object."""
    key = frozenset(values.items())
    if key not in _tokens:
        _tokens[key] = tokenize_values(values)
    return _tokens[key]


def parse_once(
    scope: str,
    css: str,
    read_from: CSSLocation,
    variable_tokens: dict[str, list[Token]] | None = None,
    **options: Any,  # noqa: ANN401 - what Textual passes on
) -> list[RuleSet]:
    """Parse a style sheet, or give what it was parsed to before."""
    key = (scope, css, read_from, id(variable_tokens), *sorted(options.items()))
    if key not in _rules:
        rules = list(parse(scope, css, read_from, variable_tokens=variable_tokens, **options))
        _rules[key] = (variable_tokens, rules)
    return _rules[key][1]
