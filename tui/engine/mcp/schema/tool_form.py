"""Forms of tools: the fields of an input schema, filled with arguments, and read into them again.

Nested objects become fields of their own; of several alternatives a field chooses one. What no
row can show is a field of JSON, and what no field shows stays as it is. The schema is hostile.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final

from tui.engine.mcp.schema.flatten import (
    RemoteReferenceError,
    UnresolvedReferenceError,
    resolve_reference,
)
from tui.engine.mcp.schema.form_schema import (
    MAX_FIELDS,
    MAX_OPTIONS,
    MAX_TITLE,
    UnusableFormError,
    read_control,
    unique,
)
from tui.model.frozen import Frozen
from tui.model.input.arguments import ArgumentsError, read_arguments, reveal_character
from tui.model.requests import FieldKind, FieldOption, FormField, FormValue
from tui.text import sanitize_line

MAX_LEVELS: Final = 4
"""Levels of nested objects that become fields; deeper ones are JSON."""

MAX_STEPS: Final = 5_000
"""Schemas, joined properties and options that are looked at; more would be felt on the screen."""

_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}
_SAYS_KIND: Final = frozenset({"type", "properties", "enum", "const", "items"})
_Json = Mapping[str, Any]
_Value = Any
"""Any value of JSON, or `_NOTHING`."""

_NOTHING: Final[_Value] = object()
"""Stands for a value that is not there."""


class _Place(Frozen):
    """A field, the keys that lead to its value, and how what was entered is read.

    `branches` are what it chooses from, if it has no value of its own.
    """

    field: FormField
    path: tuple[str, ...]
    read: Callable[[Any], Any] = lambda entered: entered
    branches: tuple[_Json, ...] = ()


def begin_arguments(schema: _Json) -> dict[str, Any]:
    """Return the arguments that a schema has by itself: its defaults, and what must be as it says.

    Raises:
        UnusableFormError: If the schema is too large or broken.
    """
    with _not_in_circles():
        begun: dict[str, Any] = _Reader(schema, {}).begun(schema, {}, takes_defaults=True)
    return begun


def read_tool_form(
    schema: _Json, arguments: _Json, choices: Mapping[str, str]
) -> tuple[FormField, ...]:
    """Return the fields of a form that shows these arguments, and gives them back unchanged.

    Args:
        schema: The tool's input schema.
        arguments: The arguments.
        choices: The alternatives that were chosen, by the keys of their fields.

    Raises:
        UnusableFormError: If there is no form; the text says why.
    """
    with _not_in_circles():
        return tuple(place.field for place in _Reader(schema, choices).places(arguments))


def merge_tool_form(
    schema: _Json, arguments: _Json, choices: Mapping[str, str], entered: Mapping[str, FormValue]
) -> dict[str, Any]:
    """Return the arguments after what was entered into the fields of `read_tool_form`.

    What was not changed or has no field stays; an emptied field removes its argument.

    Raises:
        ValueError: If a value is not JSON; the text names its field.
        UnusableFormError: If there is no form.
    """
    with _not_in_circles():
        reader = _Reader(schema, choices)
        changed = [
            (place, value)
            for place in reader.places(arguments)
            if (value := entered.get(place.field.key, place.field.default)) != place.field.default
        ]
        merged = deepcopy(dict(arguments))
        for place, value in changed:
            if not place.branches:
                _put(merged, place.path, _NOTHING if value is None else place.read(value))
        for place, value in reversed(changed):  # inner alternatives before those around them
            if place.branches:
                reader.switch(merged, place, value)
        if changed:  # what an object must have that it got, or what cannot be left out
            merged = reader.begun(schema, merged, takes_defaults=False)
    return merged


@contextmanager
def _not_in_circles() -> Iterator[None]:
    """Refuse a schema that refers to itself without end."""
    try:
        yield
    except RecursionError as error:
        raise UnusableFormError("its schema goes round in circles") from error


class _Reader:
    """Reads one schema, with a budget of steps and of fields."""

    def __init__(self, document: _Json, choices: Mapping[str, str]) -> None:
        self._document = document
        self._choices = choices
        self._steps = 0
        self._left = MAX_FIELDS
        self._keys = set[str]()

    def places(self, arguments: _Json) -> list[_Place]:
        return list(self._read(self._document, dict(arguments), (), needed=True))

    def _read(
        self, schema: object, value: _Value, path: tuple[str, ...], *, needed: bool
    ) -> Iterator[_Place]:
        """Give the places of a value and of what is in it.

        `needed` says whether there has to be a value, as what is around it stands.
        """
        own, nullable = self._own(schema)
        required = needed and not nullable
        if branches := self._branches(own):
            place = self._choice(own, branches, value, path, required=required)
            yield place
            if isinstance(chosen := place.field.default, str):
                yield from self._read(branches[int(chosen)], value, path, needed=required)
            elif value is not _NOTHING and path:
                yield self._json(own, value, path, self._key(path), required=required)
            return
        properties = own.get("properties")
        is_shown = isinstance(value, dict) or value is _NOTHING or (nullable and value is None)
        if isinstance(properties, Mapping) and is_shown and self._has_room(properties, path):
            held = value if isinstance(value, dict) else {}
            for name, definition in properties.items():
                is_needed = name in _list(own.get("required")) and (required or value is held)
                inner = held.get(name, _NOTHING)
                yield from self._read(definition, inner, (*path, name), needed=is_needed)
        elif path:
            yield self._field(own, value, path, required=required, nullable=nullable)

    def _has_room(self, properties: _Json, path: tuple[str, ...]) -> bool:
        """Take room for the fields of an object; only the whole form may not do without it."""
        if 0 < len(properties) <= self._left and len(path) <= MAX_LEVELS:
            self._left -= len(properties) - (1 if path else 0)
            return True
        if not path and properties:
            raise UnusableFormError(f"it has more than {MAX_FIELDS} fields")
        return False

    def _field(
        self, own: _Json, value: _Value, path: tuple[str, ...], *, required: bool, nullable: bool
    ) -> _Place:
        """Return the place of a value as a row shows it, or as JSON."""
        key, name = self._key(path), path[-1]
        definition, values = _in_texts(own, self.plain(own.get("items")), value)
        try:
            control = read_control(_shown(name), name, definition, required=required)
        except UnusableFormError:
            return self._json(own, value, path, key, required=required)

        def read(entered: _Value) -> _Value:
            if isinstance(entered, tuple):
                return [read(one) for one in entered]
            sent = control.values.get(entered, entered)
            return values.get(sent, sent)

        field = replace(control.field, key=key, title=_label(path, control.field.title))
        is_line = field.kind is not FieldKind.TEXT or str(field.default).isprintable()
        is_same = field.default is not None and _text(read(field.default)) == _text(value)
        if value is _NOTHING or (value is None and nullable) or (is_same and is_line):
            return _Place(field, path, read)
        return self._json(own, value, path, key, required=required)

    def _json(
        self, own: _Json, value: _Value, path: tuple[str, ...], key: str, *, required: bool
    ) -> _Place:
        name = path[-1]
        plain = {k: own[k] for k in ("title", "description") if k in own} | {"type": "string"}
        field = read_control(_shown(name), name, plain, required=required).field
        title = _label(path, field.title)

        def read(entered: str) -> _Value:
            try:
                [parsed] = read_arguments(f'{{"value": {entered}\n}}').values()
            except ArgumentsError as error:
                raise ValueError(f"{title} is not JSON: {error.reason}.") from None
            except ValueError:
                raise ValueError(f"{title} is not JSON: it has more than one value.") from None
            return parsed

        shown = None if value is _NOTHING else _text(value)
        field = replace(field, key=key, kind=FieldKind.JSON, title=title, default=shown)
        return _Place(field, path, read)

    def _choice(
        self,
        own: _Json,
        branches: tuple[_Json, ...],
        value: _Value,
        path: tuple[str, ...],
        *,
        required: bool,
    ) -> _Place:
        """Return the place of the choice between alternatives: what was chosen, or what fits."""
        key = self._key(path, "?")
        options = tuple(FieldOption(str(n), _words(one, own)) for n, one in enumerate(branches))
        chosen = self._choices.get(key)
        if chosen not in {option.value for option in options}:
            fitting = [n for n, one in enumerate(branches) if self.fits(one, value)]
            best = max(fitting, key=lambda n: _likeness(branches[n], value), default=None)
            chosen = None if best is None else str(best)
        title = _label(path, sanitize_line(str(own.get("title", "")), MAX_TITLE))
        field = FormField(key, FieldKind.CHOICE, title, "", required, chosen, options)
        return _Place(field, path, branches=branches)

    def switch(self, merged: dict[str, Any], place: _Place, chosen: FormValue) -> None:
        """Let a value be of another alternative; what is of the others alone goes."""
        before: _Value = merged
        for name in place.path:
            before = before.get(name, _NOTHING) if isinstance(before, dict) else _NOTHING
        after = _NOTHING
        if isinstance(chosen, str):
            branch = place.branches[int(chosen)]
            own = _properties(branch)
            others = {name for one in place.branches for name in _properties(one)} - own.keys()
            if own:
                held = before.items() if isinstance(before, dict) else ()
                fits = {k: v for k, v in held if k not in own or self.fits(own[k], v)}
                after = {k: v for k, v in fits.items() if k not in others}
            elif self.fits(branch, before):
                after = before
            after = self.begun(branch, after, takes_defaults=True)
        _put(merged, place.path, after)

    def begun(
        self, schema: object, value: _Value, *, takes_defaults: bool, level: int = 0
    ) -> _Value:
        """Return a value with what a schema has by itself; `_NOTHING` if it has nothing."""
        own, nullable = self._own(schema)
        if value is _NOTHING and takes_defaults and self._has_default(own):
            value = deepcopy(own["default"])
        if value is _NOTHING and ("const" in own or nullable):
            return own.get("const")
        properties = _properties(own)
        if (
            not properties
            or level > MAX_LEVELS
            or not (value is _NOTHING or isinstance(value, dict))
        ):
            return value
        made = {} if value is _NOTHING else dict(value)
        for name, definition in properties.items():
            inner = made.get(name, _NOTHING)
            is_wanted = inner is not _NOTHING or name in _list(own.get("required"))
            if is_wanted or (takes_defaults and self._has_default(self._own(definition)[0])):
                inner = self.begun(
                    definition, inner, takes_defaults=takes_defaults, level=level + 1
                )
            if inner is not _NOTHING:
                made[name] = inner
        return made

    def _has_default(self, own: _Json) -> bool:
        """Return whether there is a default that fits; null says only that there is none."""
        return own.get("default") is not None and self.fits(own, own["default"])

    def fits(self, schema: object, value: _Value) -> bool:
        """Return whether a value is of the kind that a schema describes."""
        own, nullable = self._own(schema)
        if value is None and nullable:
            return True
        if options := _options(own)[0]:
            return value is not _NOTHING and _text(value) in map(_text, options)
        if branches := self._branches(own):
            return any(self.fits(one, value) for one in branches)
        kind = _TYPES.get(str(own.get("type")), object)
        properties = _properties(own)
        if isinstance(value, dict) and properties:
            return all(self.fits(properties[key], value[key]) for key in properties if key in value)
        is_number = isinstance(value, bool) and kind not in {bool, object}
        return value is not _NOTHING and isinstance(value, kind) and not is_number

    def plain(self, schema: object) -> dict[str, Any]:
        """Return a schema with its references and conjunctions merged into it."""
        if not isinstance(schema, Mapping):
            return {}
        self._spend(1 + len(_list(schema.get("enum"))))
        parts = _list(schema.get("allOf"))
        if isinstance(reference := schema.get("$ref"), str):
            try:
                parts = [resolve_reference(self._document, reference), *parts]
            except (RemoteReferenceError, UnresolvedReferenceError) as error:
                raise UnusableFormError("its schema refers to what is not in it") from error
        own = {key: value for key, value in schema.items() if key not in {"$ref", "allOf"}}
        for part in reversed(parts):
            own = self._joined(self.plain(part), own)
        return own

    def _joined(self, first: _Json, second: _Json) -> dict[str, Any]:
        """Join two schemas that both apply; what the second says counts."""
        joined = {**first, **second}
        if properties := _properties(first):
            joined["properties"] = {**properties, **_properties(second)}
            self._spend(len(joined["properties"]))
        if required := [*_list(first.get("required")), *_list(second.get("required"))]:
            joined["required"] = required
            self._spend(len(required))
        return joined

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise UnusableFormError("its schema is too large")

    def _own(self, schema: object) -> tuple[dict[str, Any], bool]:
        """Return what a value is if it is not null, and whether it may be null."""
        own, nullable = self.plain(schema), False
        for key in ("anyOf", "oneOf"):
            branches = [self.plain(one) for one in _list(own.get(key))]
            kept = [one for one in branches if one.get("type") != "null"]
            nullable |= len(kept) < len(branches)
            if len(kept) == 1:
                own = self._joined(kept[0], {k: v for k, v in own.items() if k != key})
            elif kept:
                own = {**own, key: kept}
        if isinstance(kinds := own.get("type"), list):
            others = [kind for kind in kinds if kind != "null"]
            nullable |= len(others) < len(kinds)
            own["type"] = others[0] if len(others) == 1 else others
        return own, nullable

    def _branches(self, own: _Json) -> tuple[_Json, ...]:
        """Return the alternatives of which one applies, each with what applies to all."""
        if isinstance(kinds := own.get("type"), list):
            return tuple({**own, "type": kind} for kind in kinds)
        for key in ("oneOf", "anyOf"):
            branches = [
                b
                for one in _list(own.get(key))
                for b in self._branches(self._own(one)[0]) or (one,)
            ]
            says_kind = all(_SAYS_KIND & one.keys() and "const" not in one for one in branches)
            if 1 < len(branches) <= MAX_OPTIONS and says_kind:
                rest = {name: value for name, value in own.items() if name != key}
                return tuple(self._joined(one, rest) for one in branches)
        return ()

    def _key(self, path: tuple[str, ...], end: str = "") -> str:
        """Return the JSON pointer of a place, as it can be shown, and unlike all others."""
        steps = ("/" + name.replace("~", "~0").replace("/", "~1") for name in path)
        return unique(sanitize_line("".join(steps) + end), self._keys)


def _put(merged: dict[str, Any], path: tuple[str, ...], value: _Value) -> None:
    """Set a value, or remove it, and the objects around it that are empty then."""
    nodes = [merged]
    for name in path[:-1]:
        if not isinstance(nodes[-1].get(name), dict):
            nodes[-1][name] = {}
        nodes.append(nodes[-1][name])
    if not path:
        merged |= {} if value is _NOTHING else value
    elif value is not _NOTHING:
        nodes[-1][path[-1]] = value
    else:
        for node, name in zip(reversed(nodes), reversed(path), strict=True):
            node.pop(name, None)
            if node:
                break


def _options(own: _Json) -> tuple[list[Any], list[str]]:
    """Return the values of which one is to be chosen, and their labels; none if all are open."""
    values = [own["const"]] if "const" in own else _list(own.get("enum"))
    titled = _list(own.get("oneOf")) or _list(own.get("anyOf"))
    if not values and all(isinstance(one, Mapping) and "const" in one for one in titled):
        values = [one["const"] for one in titled]
        return values, [str(one.get("title", _text(one["const"]))) for one in titled]
    names = _list(own.get("enumNames"))
    return values, [str(one) for one in (names if len(names) == len(values) else values)]


def _in_texts(own: _Json, items: _Json, value: _Value) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a definition with texts for its options and a value for its default.

    Returns:
        The definition, and the option that each of the texts stands for.
    """
    is_list = own.get("type") == "array"
    options, labels = _options(items if is_list else own)
    if not 0 < len(options) <= MAX_OPTIONS:
        return {**own, "default": None if value is _NOTHING else value}, {}
    texts = {_text(one): one if isinstance(one, str) else _text(one) for one in options}
    if len({*texts.values()}) < len(texts):
        texts = {text: text for text in texts}
    plain = {k: own[k] for k in ("title", "description", "minItems", "maxItems") if k in own}
    choice = {"type": "string", "enum": [*texts.values()], "enumNames": labels}
    values = dict(zip(texts.values(), options, strict=False))
    held = [] if value is _NOTHING else _list(value) if is_list else [value]
    given = [texts.get(_text(one)) for one in held]
    if not is_list:
        return {**plain, **choice, "default": next(iter(given), None)}, values
    in_order = [one for one in texts.values() if one in given]  # as its row gives them back
    chosen = given if given and given == in_order else None
    return {**plain, "type": "array", "items": choice, "default": chosen}, values


def _text(value: object) -> str:
    """Write a value as one line of JSON in which nothing is hidden."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if text.isprintable() else "".join(map(reveal_character, text))


def _shown(name: str) -> str:
    return sanitize_line(name, MAX_TITLE) or "(no name)"


def _label(path: tuple[str, ...], title: str) -> str:
    return " · ".join([*map(_shown, path[:-1]), title or _shown(path[-1] if path else "which")])


def _words(branch: _Json, own: _Json) -> str:
    """Name an alternative: by its title, what it is alone with, what it has, or its kind."""
    title = branch.get("title") if branch.get("title") != own.get("title") else ""
    properties = _properties(branch)
    fixed = [
        one["const"] for one in properties.values() if isinstance(one, Mapping) and "const" in one
    ]
    names = [name for name in properties if name not in _properties(own)]
    kind = f"{branch.get('type', 'anything')}"
    return sanitize_line(str(title or ", ".join(map(str, fixed or names)) or kind), MAX_TITLE)


def _likeness(branch: _Json, value: _Value) -> tuple[bool, int]:
    """Return how well an object fits an alternative: whether it is whole, and the known keys."""
    if not isinstance(value, dict):
        return True, 0
    needed = map(str, _list(branch.get("required")))
    return all(name in value for name in needed), len(value.keys() & _properties(branch).keys())


def _properties(own: _Json) -> _Json:
    properties = own.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
