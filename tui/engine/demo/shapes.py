"""Says what the value of a parameter looks like in a text, by its name, format and type."""

from collections.abc import Mapping
from typing import Final

from tui.engine.demo.schemas import Kind, Parameter
from tui.engine.demo.tokens import Shape
from tui.engine.demo.words import split_name

_ANY: Final[frozenset[Shape]] = frozenset()
_SHAPES_BY_WORD: Final[Mapping[str, frozenset[Shape]]] = {
    **dict.fromkeys(("url", "uri", "link"), frozenset({Shape.URL})),
    **dict.fromkeys(("email", "mail"), frozenset({Shape.EMAIL})),
    **dict.fromkeys(
        ("date", "day", "since", "until", "deadline", "timestamp"),
        frozenset({Shape.DATE, Shape.TIME}),
    ),
    **dict.fromkeys(("time", "hour"), frozenset({Shape.TIME, Shape.DATE})),
    **dict.fromkeys(
        ("path", "file", "filename", "dir", "directory", "folder", "repo", "repository"),
        frozenset({Shape.PATH}),
    ),
    **dict.fromkeys(("timezone", "zone", "tz"), frozenset({Shape.PATH})),
    **dict.fromkeys(
        ("id", "key", "sha", "hash", "number", "uuid"), frozenset({Shape.NUMBER, Shape.WORD})
    ),
}
"""What a text parameter with such a word in its name looks like; no free text then."""

_SHAPES_BY_FORMAT: Final[Mapping[str, frozenset[Shape]]] = {
    "date": frozenset({Shape.DATE}),
    "date-time": frozenset({Shape.DATE}),
    "time": frozenset({Shape.TIME}),
    "uri": frozenset({Shape.URL}),
    "email": frozenset({Shape.EMAIL}),
}


def expected_shapes(parameter: Parameter) -> frozenset[Shape]:
    """Give what the value of a text parameter must look like; nothing for free text."""
    if parameter.kind is not Kind.TEXT or parameter.choices:
        return _ANY
    by_format = _SHAPES_BY_FORMAT.get(str(parameter.keywords.get("format")))
    if by_format is not None:
        return by_format
    known = [word for word in split_name(parameter.name) if word in _SHAPES_BY_WORD]
    return _SHAPES_BY_WORD[known[-1]] if known else _ANY


def is_numeric(parameter: Parameter) -> bool:
    """Tell whether a parameter takes any number, as opposed to one of a few."""
    return parameter.kind in {Kind.WHOLE_NUMBER, Kind.NUMBER} and not parameter.choices
