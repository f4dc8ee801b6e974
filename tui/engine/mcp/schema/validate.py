"""Checks arguments and results of calls against the server's own schema.

The schema is hostile. References are resolved within it only, regular expressions are bounded
(see `safe_regex`), and so is the number of evaluated keywords, as references can make a short
schema endless. What cannot be checked passes: the server checks arguments, too.

This module imports jsonschema, which takes a tenth of a second: import it when there is something
to check, off the event loop.
"""

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final, cast

import jsonschema
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, extend, validator_for
from referencing import Registry

from tui.engine.mcp.schema import safe_regex
from tui.engine.mcp.schema.to_gemini import unknown_dialect
from tui.model.bounded_json import canonical_text
from tui.text import sanitize_line

MAX_KEYWORDS: Final = 20_000
"""Keywords evaluated for one call."""

MAX_MESSAGES: Final = 10
"""Most errors that are reported."""

MAX_MESSAGE_CHARS: Final = 300
"""Longest message of an error."""

KEYWORD_TIME: Final = 10e-6
"""Seconds of regular expression search that count as one keyword."""

_Errors = Iterator[jsonschema.ValidationError]
_Keyword = Callable[[Any, Any, Any, Any], Any]

_keywords_left: ContextVar[list[int]] = ContextVar("keywords_left")


class _TooMuchWorkError(Exception):
    """The schema exceeds the budget of one call."""


def check_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    """Check the arguments of a call against the tool's input schema; see `check_value`."""
    return check_value(schema, dict(arguments), "arguments")


def check_value(schema: Mapping[str, Any], value: Any, name: str) -> list[str]:  # noqa: ANN401 - any JSON
    """Check a value.

    Args:
        schema: The schema as the server wrote it. Its ``$schema`` names the draft; without one it
            is 2020-12; by one in a dialect that is unknown nothing is checked.
        value: The value.
        name: What errors call it.

    Returns:
        At most ten errors of one line each; empty if the value is valid or the schema cannot be
        used.
    """
    if unknown_dialect(schema):
        return []
    token = _keywords_left.set([MAX_KEYWORDS])
    try:
        validator_class = _guarded(validator_for(dict(schema), default=Draft202012Validator))
        validator = validator_class(dict(schema), registry=Registry())
        errors = []
        for error in validator.iter_errors(value):
            errors.append(error)
            if len(errors) == MAX_MESSAGES:
                break
        return [_message(error, name) for error in errors]
    except Exception:  # noqa: BLE001  # a schema can fail in any way; then nothing is checked
        return []
    finally:
        _keywords_left.reset(token)


@functools.cache
def _guarded(base: type[Validator]) -> type[Validator]:
    """Return the validator of a draft with bounded work and regular expressions."""
    keywords = {name: _counted(function) for name, function in base.VALIDATORS.items()}
    keywords["pattern"] = _counted(_check_pattern)
    keywords["patternProperties"] = _counted(_check_pattern_properties)
    additional = _without_patterns(base.VALIDATORS["additionalProperties"])
    keywords["additionalProperties"] = _counted(additional)
    keywords["uniqueItems"] = _counted(_check_unique)
    keywords.pop("unevaluatedProperties", None)
    return cast("type[Validator]", extend(base, keywords))  # type: ignore[no-untyped-call]


def _counted(function: _Keyword) -> _Keyword:
    def evaluate(validator: Validator, value: object, instance: object, schema: object) -> _Errors:
        _spend(1)
        yield from function(validator, value, instance, schema) or ()

    return evaluate


def _spend(keywords: int) -> None:
    """Spend some of the budget of this call."""
    budget = _keywords_left.get()
    budget[0] -= keywords
    if budget[0] < 0:
        raise _TooMuchWorkError


def _find(pattern: str, text: str) -> bool | None:
    """Search a text and charge the time to the budget; see `safe_regex.find`."""
    began = time.thread_time()
    found = safe_regex.find(pattern, text)
    _spend(int((time.thread_time() - began) / KEYWORD_TIME))
    return found


def _check_unique(validator: Validator, value: object, instance: object, schema: object) -> _Errors:
    """Check ``uniqueItems`` in linear time by comparing the text of each item."""
    del validator, schema
    if value is not True or not isinstance(instance, list):
        return
    seen: set[str] = set()
    for item in instance:
        text = canonical_text(item)
        if text in seen:
            yield jsonschema.ValidationError(f"the item {text} occurs more than once")
            return
        seen.add(text)


def _check_pattern(validator: Validator, pattern: str, instance: object, schema: object) -> _Errors:
    del validator, schema
    if isinstance(instance, str) and _find(pattern, instance) is False:
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def _check_pattern_properties(
    validator: Any,  # noqa: ANN401  # jsonschema's protocol leaves `descend` out
    properties: Mapping[str, Any],
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


def _without_patterns(check: _Keyword) -> _Keyword:
    """Check additional properties, unless there are patterns, whose matches may be unknown."""
    return lambda validator, value, instance, schema: (
        () if schema.get("patternProperties") else check(validator, value, instance, schema)
    )


def _message(error: jsonschema.ValidationError, name: str) -> str:
    place = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in error.absolute_path)
    message = error.message
    if len(message) > MAX_MESSAGE_CHARS:
        message = f"does not meet {error.validator!r}"
    return sanitize_line(f"{name}{place}: {message}", MAX_MESSAGE_CHARS)
