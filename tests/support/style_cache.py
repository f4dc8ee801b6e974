"""Parses each of Textual's style sheets once in a run.

Every app parses the styles of all its widgets anew, a fifth of what a test of the screen costs.
Parsed rules are never changed; Textual itself keeps and shares them within one app.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from textual.css.model import RuleSet
from textual.css.parse import parse
from textual.css.tokenize import tokenize_values
from textual.css.tokenizer import Token
from textual.css.types import CSSLocation

Variables = Mapping[str, list[Token]]

_tokens: dict[frozenset[tuple[str, str]], dict[str, list[Token]]] = {}


def tokenize_once(values: dict[str, str]) -> dict[str, list[Token]]:
    """Tokenize a theme's variables; the same variables give the same object."""
    key = frozenset(values.items())
    if key not in _tokens:
        _tokens[key] = tokenize_values(values)
    return _tokens[key]


class _SameVariables:
    """Variables as a key: `tokenize_once` gives equal ones as one object, and keeps it."""

    def __init__(self, variables: Any) -> None:  # noqa: ANN401 - what Textual passes on
        self.variables = variables

    def __hash__(self) -> int:
        return id(self.variables)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameVariables) and other.variables is self.variables


def parse_once(
    scope: str,
    css: str,
    read_from: CSSLocation,
    variable_tokens: dict[str, list[Token]] | None = None,
    is_default_rules: bool = False,
    tie_breaker: int = 0,
) -> list[RuleSet]:
    """Parse a style sheet, or give what it was parsed to before."""
    variables = _SameVariables(variable_tokens)
    return _parsed(scope, css, read_from, variables, is_default_rules, tie_breaker)


@cache
def _parsed(
    scope: str,
    css: str,
    read_from: CSSLocation,
    variables: _SameVariables,
    is_default_rules: bool,
    tie_breaker: int,
) -> list[RuleSet]:
    return list(
        parse(
            scope,
            css,
            read_from,
            variable_tokens=variables.variables,
            is_default_rules=is_default_rules,
            tie_breaker=tie_breaker,
        )
    )
