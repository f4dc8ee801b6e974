"""Parse and expand URI templates (RFC 6570).

All operators, prefixes and lists are supported. Time is linear in the lengths, which are limited.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import zip_longest
from typing import Final
from urllib.parse import quote

from tui.model.frozen import Frozen

MAX_TEMPLATE: Final = 1_999
"""Longest template, in characters; a template that was cut for display is refused."""

MAX_VARIABLES: Final = 50
"""Most variables of a template."""

MAX_URI: Final = 16_384
"""Longest expanded URI, in characters."""

_RESERVED: Final = ":/?#[]@!$&'()*+,;="
_PERCENT_ENCODED: Final = re.compile("(%[0-9A-Fa-f]{2})")
_VARIABLE: Final = re.compile(
    r"(?P<name>(?>(?:\w|%[0-9A-Fa-f]{2})+(?:\.(?:\w|%[0-9A-Fa-f]{2})+)*))"
    r"(?::(?P<prefix>[1-9]\d{0,3})|(?P<explode>\*))?",
    re.ASCII,
)


class UriTemplateError(ValueError):
    """A template is invalid or cannot be expanded; the message is part of a sentence."""


class Variable(Frozen):
    """A variable of a template.

    Attributes:
        name: Its name.
        required: Whether it is part of the path.
        is_list: Whether it takes several values, separated by commas.
    """

    name: str
    required: bool
    is_list: bool


class _Operator(Frozen):
    """The expansion rules of an operator (RFC 6570, appendix A).

    Attributes:
        first: The text before the first value.
        separator: The text between two values.
        named: Whether values follow their name.
        if_empty: The text after the name of an empty value.
        allow_reserved: Whether reserved characters of a value are kept.
    """

    first: str = ""
    separator: str = ","
    named: bool = False
    if_empty: str = ""
    allow_reserved: bool = False


_SIMPLE: Final = _Operator()
_OPERATORS: Final[Mapping[str, _Operator]] = {
    "+": _Operator(allow_reserved=True),
    "#": _Operator("#", allow_reserved=True),
    ".": _Operator(".", "."),
    "/": _Operator("/", "/"),
    ";": _Operator(";", ";", named=True),
    "?": _Operator("?", "&", named=True, if_empty="="),
    "&": _Operator("&", "&", named=True, if_empty="="),
}


class _Spec(Frozen):
    """A variable in an expression; `prefix` 0 keeps its whole value."""

    name: str
    prefix: int
    explode: bool


class _Expression(Frozen):
    operator: _Operator
    specs: tuple[_Spec, ...]


class UriTemplate(Frozen):
    """A parsed template; see `parse_template`."""

    _parts: tuple[str | _Expression, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Its variables, each once, in order of appearance."""
        found: dict[str, Variable] = {}
        for part in self._parts:
            for spec in part.specs if isinstance(part, _Expression) else ():
                before = found.get(spec.name, Variable(spec.name, required=False, is_list=False))
                is_path = isinstance(part, _Expression) and not part.operator.first
                is_list = before.is_list or spec.explode
                found[spec.name] = Variable(spec.name, before.required or is_path, is_list)
        return tuple(found.values())

    def expand(self, values: Mapping[str, str]) -> str:
        """Expand the template; variables without a value are omitted.

        Args:
            values: The values by name. The value of a list variable is split at its commas.

        Raises:
            UriTemplateError: If the URI would be too long.
        """
        uri = "".join(one if isinstance(one, str) else _expand(one, values) for one in self._parts)
        if len(uri) > MAX_URI:
            raise UriTemplateError(f"the URI would be longer than {MAX_URI:,} characters")
        return uri

    def matches(self, uri: str) -> bool:
        """Return whether some values may give a URI; only some operators allow a slash in them."""
        uri = _encode(uri, allow_reserved=True)
        ends: Set[int] = {0}
        for part in self._parts:
            ends = _ends(part, uri, ends)
        return len(uri) in ends

    def open_variable(self, uri: str) -> "OpenVariable | None":
        """Return the variable in whose value an unfinished URI ends, if all are simple ones."""
        values: dict[str, str] = {}
        at = 0
        for part, after in zip_longest(self._parts, self._parts[1:], fillvalue=""):
            if isinstance(part, str):
                if not uri.startswith(part, at):
                    return None
                at += len(part)
                continue
            if part.operator is not _SIMPLE or len(part.specs) > 1 or not isinstance(after, str):
                return None
            name, end = part.specs[0].name, uri.find(after, at) if after else -1
            if end < 0:
                return OpenVariable(name, uri[at:], uri[:at], after, values)
            values[name] = uri[at:end]
            at = end
        return None


class OpenVariable(Frozen):
    """A variable of a template whose value is being typed.

    Attributes:
        name: Its name.
        value: What was typed of its value.
        before: What stands before it in the URI.
        after: What the template has after it.
        values: The variables before it.
    """

    name: str
    value: str
    before: str
    after: str
    values: Mapping[str, str]


def parse_template(template: str) -> UriTemplate:
    """Parse a template.

    Raises:
        UriTemplateError: If it is not valid by RFC 6570, or exceeds a limit.
    """
    if len(template) > MAX_TEMPLATE:
        raise UriTemplateError(f"the template is longer than {MAX_TEMPLATE:,} characters")
    parsed = UriTemplate(tuple(_parts(template)))
    if len(parsed.variables) > MAX_VARIABLES:
        raise UriTemplateError(f"the template has more than {MAX_VARIABLES} variables")
    return parsed


def _parts(template: str) -> Iterator[str | _Expression]:
    rest = template
    while rest:
        literal, brace, rest = rest.partition("{")
        if "}" in literal:
            raise UriTemplateError("the template has an unmatched }")
        if literal:
            yield _encode(literal, allow_reserved=True)
        if not brace:
            return
        expression, brace, rest = rest.partition("}")
        if not brace:
            raise UriTemplateError("the template has an unmatched {")
        yield _expression(expression)


def _expression(text: str) -> _Expression:
    operator = _OPERATORS.get(text[:1])
    listed = text if operator is None else text[1:]
    return _Expression(operator or _SIMPLE, tuple(map(_spec, listed.split(","))))


def _spec(text: str) -> _Spec:
    if (found := _VARIABLE.fullmatch(text)) is None:
        raise UriTemplateError("the template has an invalid expression")
    return _Spec(found["name"], int(found["prefix"] or 0), found["explode"] is not None)


def _expand(expression: _Expression, values: Mapping[str, str]) -> str:
    operator = expression.operator
    expanded = [
        item
        for spec in expression.specs
        if (value := values.get(spec.name)) is not None
        for item in _items(operator, spec, value)
    ]
    return operator.first + operator.separator.join(expanded) if expanded else ""


def _items(operator: _Operator, spec: _Spec, value: str) -> Iterator[str]:
    """Expand one variable; a list gives several items."""
    pieces: Sequence[str] = value.split(",") if spec.explode else (value,)
    for piece in pieces:
        kept = piece[: spec.prefix] if spec.prefix else piece
        encoded = _encode(kept, allow_reserved=operator.allow_reserved)
        if not operator.named:
            yield encoded
        elif encoded:
            yield f"{spec.name}={encoded}"
        else:
            yield f"{spec.name}{operator.if_empty}"


def _ends(part: str | _Expression, uri: str, starts: Set[int]) -> Set[int]:
    """Return where a part of a template may end in a URI, for each place where it may start."""
    if isinstance(part, str):
        return {start + len(part) for start in starts if uri.startswith(part, start)}
    operator, first = part.operator, part.operator.first
    may_have_slash = operator.allow_reserved or operator.named or first == "/"
    inside = {start + len(first) for start in starts if uri.startswith(first, start)}
    ends = {*starts, *inside}
    is_inside = False
    for position, character in enumerate(uri):
        is_inside = (is_inside or position in inside) and (may_have_slash or character != "/")
        if is_inside:
            ends.add(position + 1)
    return ends


def _encode(text: str, *, allow_reserved: bool) -> str:
    """Percent-encode a text; with `allow_reserved`, existing escapes are kept too."""
    text = text.encode(errors="replace").decode()
    if not allow_reserved:
        return quote(text, safe="~")
    return "".join(
        piece if number % 2 else quote(piece, safe=_RESERVED + "~")
        for number, piece in enumerate(_PERCENT_ENCODED.split(text))
    )
