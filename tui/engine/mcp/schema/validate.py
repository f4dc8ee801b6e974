"""Checks the arguments of a call against the server's own schema before anyone is asked.

The schema is hostile. References are resolved within it only, regular expressions are tried
only where they are cheap (see `patterns`), and the number of keywords evaluated is limited, as
references can make a short schema an endless one. What cannot be checked is let through: the
server checks too.

This module imports jsonschema, which takes a tenth of a second: import it off the event loop.
"""

import functools
import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Final, cast

import jsonschema
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, extend, validator_for
from referencing import Registry

from tui.engine.servers import patterns
from tui.engine.servers.coercion import coerce
from tui.engine.tools import JsonObject
from tui.text import sanitize_line

MAX_KEYWORDS: Final = 20_000
"""Keywords evaluated for one call."""

MAX_MESSAGES: Final = 10
"""Faults that are named."""

MAX_MESSAGE_CHARS: Final = 300
"""Longest message on a fault."""

PATTERN_STEPS: Final = 250
"""Steps of a regular expression that count as one keyword; they take as long."""

__all__ = ["check_arguments", "coerce"]

_Errors = Iterator[jsonschema.ValidationError]
_Keyword = Callable[[Any, Any, Any, Any], Any]

_keywords_left: ContextVar[list[int]] = ContextVar("keywords_left")


class _TooMuchWorkError(Exception):
    """The schema asks for more evaluation than a call is worth."""


def check_arguments(schema: JsonObject, arguments: JsonObject) -> list[str]:
    """Check arguments.

    Args:
        schema: The tool's input schema as the server wrote it. Its ``$schema`` names the draft;
            without one it is 2020-12.
        arguments: The arguments of a call.

    Returns:
        What is wrong, one line each and at most ten; nothing if all is well or the schema cannot
        be used.
    """
    token = _keywords_left.set([MAX_KEYWORDS])
    try:
        validator = _validator_class(schema)(dict(schema), registry=Registry())
        errors = []
        for error in validator.iter_errors(dict(arguments)):
            errors.append(error)
            if len(errors) == MAX_MESSAGES:
                break
        return [_message(error) for error in errors]
    except Exception:  # noqa: BLE001  # a schema can fail in any way; without its check the call goes on
        return []
    finally:
        _keywords_left.reset(token)


def _validator_class(schema: JsonObject) -> type[Validator]:
    return _guarded(validator_for(dict(schema), default=Draft202012Validator))


@functools.cache
def _guarded(base: type[Validator]) -> type[Validator]:
    """Give a draft's validator with bounded work and bounded regular expressions."""
    keywords = {name: _counted(function) for name, function in base.VALIDATORS.items()}
    keywords["pattern"] = _counted(_check_pattern)
    keywords["patternProperties"] = _counted(_check_pattern_properties)
    keywords["additionalProperties"] = _counted(
        functools.partial(_check_additional, base.VALIDATORS["additionalProperties"])
    )
    keywords["uniqueItems"] = _counted(_check_unique)
    keywords.pop("unevaluatedProperties", None)
    return cast("type[Validator]", extend(base, keywords))  # type: ignore[no-untyped-call]


def _counted(function: _Keyword) -> _Keyword:
    def evaluate(validator: Validator, value: object, instance: object, schema: object) -> _Errors:
        _spend(1)
        yield from function(validator, value, instance, schema) or ()

    return evaluate


def _spend(keywords: int) -> None:
    """Take work off the budget of this call."""
    budget = _keywords_left.get()
    budget[0] -= keywords
    if budget[0] < 0:
        raise _TooMuchWorkError


def _find(pattern: str, text: str) -> bool | None:
    """Search a text at the expense of the budget; see `patterns.find`."""
    steps = patterns.estimate(pattern, len(text))
    if steps is not None and steps <= patterns.MAX_STEPS:
        _spend(steps // PATTERN_STEPS)
    return patterns.find(pattern, text)


def _check_unique(validator: Validator, value: object, instance: object, schema: object) -> _Errors:
    """Check ``uniqueItems`` in linear time, by the text of each item."""
    del validator, schema
    if value is not True or not isinstance(instance, list):
        return
    seen: set[str] = set()
    for item in instance:
        text = json.dumps(_as_json_compares(item), sort_keys=True)
        if text in seen:
            yield jsonschema.ValidationError(f"the item {text} occurs more than once")
            return
        seen.add(text)


def _as_json_compares(value: object) -> object:
    """Write numbers that JSON Schema counts as equal, such as 1 and 1.0, in one way."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_as_json_compares(item) for item in value]
        case dict():
            return {name: _as_json_compares(item) for name, item in value.items()}
        case _:
            return value


def _check_pattern(validator: Validator, pattern: str, instance: object, schema: object) -> _Errors:
    del validator, schema
    if isinstance(instance, str) and _find(pattern, instance) is False:
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def _check_pattern_properties(
    validator: Any,  # noqa: ANN401  # jsonschema's protocol leaves `descend` out
    properties: JsonObject,
    instance: object,
    schema: object,
) -> _Errors:
    del schema
    if not isinstance(instance, dict):
        return
    for pattern, child in properties.items():
        for name, value in instance.items():
            if _find(pattern, name):
                yield from validator.descend(value, child, path=name, schema_path=pattern)


def _check_additional(
    original: _Keyword, validator: Validator, value: object, instance: object, schema: JsonObject
) -> _Errors:
    """Check additional properties, but not beside patterns: which ones match may be unknown."""
    if not schema.get("patternProperties"):
        yield from original(validator, value, instance, schema)


def _message(error: jsonschema.ValidationError) -> str:
    place = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path
    )
    message = error.message
    if len(message) > MAX_MESSAGE_CHARS:
        message = f"does not meet {error.validator!r}"
    return sanitize_line(f"arguments{place}: {message}", MAX_MESSAGE_CHARS)
