"""Forms of tools: the fields of an input schema, filled with arguments, and read into them again.

Nested objects become fields of their own; of several alternatives a field chooses one, and of the
rows of a list of objects one is open. What no row can show is a field of JSON, and what no field
shows stays as it is. The schema is hostile.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any, Final

from tui.engine.mcp.schema.flatten import (
    TYPE_NAMES,
    RemoteReferenceError,
    UnresolvedReferenceError,
    resolve_reference,
)
from tui.engine.mcp.schema.form_schema import (
    MAX_ALL_OPTIONS,
    MAX_FIELDS,
    MAX_OPTIONS,
    MAX_TITLE,
    NOTHING,
    UnusableFormError,
    options_of,
    read_control,
    unique,
)
from tui.model.bounded_json import JsonError, as_list, as_object, as_texts, read_json
from tui.model.frozen import Frozen
from tui.model.input.arguments import MAX_DEPTH, json_line
from tui.model.requests import FieldKind, FieldOption, FormField, FormValue
from tui.text import sanitize_line

MAX_LEVELS: Final = 4
"""Levels of nested objects that become fields; deeper ones are JSON."""

MAX_STEPS: Final = 5_000
"""Schemas, and entries of their lists and objects, that are looked at; real tools need 100."""

_NO_LETTER: Final = re.compile(r"[\W_]+")

MAX_ROW: Final = 120
"""Characters that sum a row up."""

_SAYS_KIND: Final = frozenset({"type", "properties", "enum", "const", "items"})
_Json = Mapping[str, Any]
_Value = Any
"""Any value of JSON, or `NOTHING`."""

_Path = tuple[str | int, ...]
"""Keys of objects and indexes of rows."""


class _Spot(Frozen):
    """A value in the arguments: its schema without null, itself, and the steps that lead to it.

    `required` says whether there has to be one, as what is around it stands.
    """

    own: _Json
    value: _Value
    path: _Path
    required: bool
    nullable: bool


class _Place(Frozen):
    """A field, the steps that lead to its value, and how that follows from what was entered.

    `read` takes what was entered and the value before.
    """

    field: FormField
    path: _Path
    read: Callable[[Any, _Value], _Value]


@contextmanager
def _not_in_circles() -> Iterator[None]:
    """Refuse a schema that refers to itself without end."""
    try:
        yield
    except RecursionError as error:
        raise UnusableFormError("its schema is circular") from error


@_not_in_circles()
def begin_arguments(schema: _Json) -> dict[str, Any]:
    """Return the arguments that a schema has by itself: its defaults, and what must be as it says.

    Raises:
        UnusableFormError: If the schema is too large or broken.
    """
    begun: dict[str, Any] = _Reader(schema, {}).begun(schema, {}, defaults=True)
    return begun


@_not_in_circles()
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
    return tuple(place.field for place in _Reader(schema, choices).places(arguments))


@_not_in_circles()
def merge_tool_form(
    schema: _Json, arguments: _Json, choices: Mapping[str, str], entered: Mapping[str, FormValue]
) -> dict[str, Any]:
    """Return the arguments after what was entered into the fields of `read_tool_form`.

    What was not changed or has no field stays; an emptied field removes its argument.

    Raises:
        ValueError: If a value is not JSON; the text names its field.
        UnusableFormError: If there is no form.
    """
    reader, merged = _Reader(schema, choices), dict(arguments)
    places = [*reader.places(arguments)]
    for place in reversed(places):  # what is inside an alternative before the choice of it
        value = entered.get(place.field.key, place.field.default)
        if value != place.field.default:
            merged = _put(merged, place.path, place, value)
    if merged != arguments:  # what an object must have that it got, or what cannot be left out
        merged = reader.begun(schema, {} if merged is NOTHING else merged, defaults=False)
    return merged


class _Reader:
    """Reads one schema, with a budget of steps, of fields and of their options."""

    def __init__(self, document: _Json, choices: Mapping[str, str]) -> None:
        self._document, self._choices = document, choices
        self._steps = 0
        self._left = MAX_FIELDS
        self._room = MAX_ALL_OPTIONS
        self._keys = set[str]()

    def places(self, arguments: _Json) -> Iterator[_Place]:
        return self._read(self._document, arguments, (), needed=True)

    def _read(
        self, schema: object, value: _Value, path: _Path, *, needed: bool
    ) -> Iterator[_Place]:
        """Give the places of a value and of what is in it.

        `needed` says whether there has to be a value, as what is around it stands.
        """
        own, nullable = self._own(schema)
        spot = _Spot(own, value, path, needed and not nullable, nullable)
        if branches := self._branches(own):
            place = self._choice(spot, branches)
            yield place
            if isinstance(chosen := place.field.default, str):
                yield from self._read(branches[int(chosen)], value, path, needed=spot.required)
            elif value is not NOTHING and path:
                yield self._json(spot)
            return
        if (rows := self._rows(spot)) is not None:
            yield rows
            if opened := rows.field.opened:
                inner, at = own["items"], int(opened)
                yield from self._read(inner, value[at], (*path, at), needed=True)
            return
        properties, is_object = _properties(own), isinstance(value, Mapping)
        is_shown = is_object or value is NOTHING or (nullable and value is None)
        if is_shown and self._has_room(properties, path):
            held = value if is_object else {}
            needs = _required(own) if spot.required or is_object else ()
            for name, definition in properties.items():
                inner = held.get(name, NOTHING)
                yield from self._read(definition, inner, (*path, name), needed=name in needs)
        elif path:
            yield self._field(spot)

    def _has_room(self, properties: _Json, path: _Path) -> bool:
        """Take room for the fields of an object; only the whole form may not do without it."""
        if 0 < len(properties) <= self._left and len(path) <= MAX_LEVELS:
            self._left -= len(properties) - (1 if path else 0)
            return True
        if not path and properties:
            raise UnusableFormError(f"it has more than {MAX_FIELDS} fields")
        return False

    def _field(self, spot: _Spot) -> _Place:
        """Return the place of a value as a row shows it, or as JSON."""
        own, value, name = spot.own, spot.value, _name(spot.path[-1])
        definition = {**own, "default": value, "items": self.plain(own.get("items"))}
        if options_of(own):
            definition.pop("type", None)
        try:
            control = read_control("", name, definition, required=spot.required, room=self._room)
        except UnusableFormError:
            return self._json(spot)
        self._room -= len(control.field.options)
        field, default = control.field, control.field.default
        is_empty = value is NOTHING or (value is None and spot.nullable)
        is_line = field.kind is not FieldKind.TEXT or str(default).isprintable()
        is_same = default not in {None, ()} and json_line(control.sent(default)) == json_line(value)
        if not (is_empty or (is_same and is_line)):
            return self._json(spot)
        field = self._placed(field, spot.path)
        return _Place(field, spot.path, lambda entered, _: control.sent(entered))

    def _placed(self, field: FormField, path: _Path, end: str = "") -> FormField:
        """Return a field with its key, its label and what it is in."""
        around = [_shown(_name(step)) for step in path[:-1]]
        for at in range(len(around) - 1, 0, -1):
            if isinstance(path[at], int):  # the row of a list
                around[at - 1 : at + 1] = [" ".join(around[at - 1 : at + 1])]
        title = _label(_name(path[-1]) if path else "which", field.title)
        return replace(field, key=self._key(path, end), title=title, around=tuple(around))

    def _rows(self, spot: _Spot) -> _Place | None:
        """Return the place of a list of objects, if this is one."""
        own, items = spot.own, self.plain(spot.own.get("items"))
        is_empty = spot.value is NOTHING or (spot.value is None and spot.nullable)
        listed = [] if is_empty else spot.value
        is_list = own.get("type") == "array" and isinstance(listed, list)
        if not (is_list and spot.path and _properties(items)):
            return None
        if len(listed) > self._room or not all(isinstance(one, Mapping) for one in listed):
            return None
        self._room -= len(listed)
        options = tuple(FieldOption(str(n), _summed(one, items)) for n, one in enumerate(listed))
        names = tuple(option.value for option in options)
        place = self._json(spot)
        opened = self._choices.get(place.field.key, "")
        field = replace(
            place.field,
            kind=FieldKind.ROWS,
            options=options,
            default=None if is_empty else names,
            opened=opened if opened in names else "",
        )

        def read(entered: tuple[str, ...], before: _Value) -> _Value:
            held = before if isinstance(before, list) else []
            begun = self.begun(items, NOTHING, defaults=True)
            return [held[int(one)] if one else begun for one in entered]

        return _Place(field, spot.path, read)

    def _json(self, spot: _Spot) -> _Place:
        words = {key: spot.own.get(key) for key in ("title", "description")}
        name, plain = _name(spot.path[-1]), {**words, "type": "string"}
        field = read_control("", name, plain, required=spot.required).field
        shown = None if spot.value is NOTHING else json_line(spot.value)

        def read(entered: str, _: _Value) -> _Value:
            try:
                return read_json(entered, MAX_DEPTH)
            except JsonError as error:
                raise ValueError(f"{field.title} is not valid JSON: {error.reason}.") from None

        field = self._placed(field, spot.path)
        return _Place(replace(field, kind=FieldKind.JSON, default=shown), spot.path, read)

    def _choice(self, spot: _Spot, branches: tuple[_Json, ...]) -> _Place:
        """Return the place of the choice between alternatives: what was chosen, if it fits."""
        own, value = spot.own, spot.value
        title = sanitize_line(str(own.get("title", "")), MAX_TITLE)
        options = tuple(FieldOption(str(n), _words(one, own)) for n, one in enumerate(branches))
        field = FormField("", FieldKind.CHOICE, title, "", spot.required, None, options)
        field = self._placed(field, spot.path, "?")
        fitting = [n for n, one in enumerate(branches) if self.fits(one, value)]
        chosen = self._choices.get(field.key)
        if chosen not in ([str(n) for n in fitting] or [option.value for option in options]):
            best = max(fitting, key=lambda n: _likeness(branches[n], value), default=None)
            chosen = None if best is None else str(best)
        field = replace(field, default=chosen)
        return _Place(field, spot.path, partial(self._of, branches))

    def _of(self, branches: tuple[_Json, ...], chosen: str, before: _Value) -> _Value:
        """Return a value of one alternative; what is of the others alone goes."""
        branch = branches[int(chosen)]
        own = _properties(branch)
        others = {name for one in branches for name in _properties(one)} - own.keys()
        if isinstance(before, Mapping):
            before = {
                name: value
                for name, value in before.items()
                if (self.fits(own[name], value) if name in own else name not in others)
            }
        begun = self.begun(branch, before if self.fits(branch, before) else NOTHING, defaults=True)
        return NOTHING if begun == {} else begun

    def begun(
        self, schema: object, value: _Value, *, defaults: bool, needed: bool = True, level: int = 0
    ) -> _Value:
        """Return a value with what a schema has by itself; `NOTHING` if it has nothing."""
        own, nullable = self._own(schema)
        if value is NOTHING and defaults:
            default = own.get("default")  # null says only that there is none
            value = default if default is not None and self.fits(own, default) else value
        if value is NOTHING and ("const" in own or nullable or not needed):
            return own.get("const") if needed else NOTHING
        fitting = [one for one in self._branches(own) if self.fits(one, value)]
        if len(fitting) == 1:
            own = self.plain(fitting[0])
        properties, items = _properties(own), own.get("items")
        is_object = value is NOTHING or isinstance(value, Mapping)
        if isinstance(value, list) and level <= MAX_LEVELS:
            return [self.begun(items, one, defaults=defaults, level=level + 1) for one in value]
        if not (properties and is_object and level <= MAX_LEVELS):
            return value
        made, required = {} if value is NOTHING else dict(value), _required(own)
        for name, definition in properties.items():
            inner, needed = made.get(name, NOTHING), name in required
            inner = self.begun(definition, inner, defaults=defaults, needed=needed, level=level + 1)
            if inner is not NOTHING:
                made[name] = inner
        return {name: made[name] for name in properties if name in made} | made

    def fits(self, schema: object, value: _Value) -> bool:
        """Return whether a value is of the kind that a schema describes."""
        own, nullable = self._own(schema)
        if value is NOTHING or (value is None and nullable):
            return value is None
        if options := options_of(own):
            return any(_is_same(one, value) for one, _ in options)
        if branches := self._branches(own):
            return any(self.fits(one, value) for one in branches)
        properties = _properties(own)
        if isinstance(value, Mapping) and properties:
            return all(self.fits(properties[key], value[key]) for key in properties if key in value)
        kind = TYPE_NAMES[type(value)]
        return own.get("type", kind) in (kind, "number" if kind == "integer" else kind)

    def plain(self, schema: object) -> dict[str, Any]:
        """Return a schema with its references and conjunctions merged into it."""
        if not isinstance(schema, Mapping):
            return {}
        self._spend(1 + sum(len(one) for one in schema.values() if isinstance(one, list | Mapping)))
        parts = as_list(schema.get("allOf"))
        if isinstance(reference := schema.get("$ref"), str):
            try:
                parts = [resolve_reference(self._document, reference), *parts]
            except (RemoteReferenceError, UnresolvedReferenceError) as error:
                raise UnusableFormError("its schema refers to something outside it") from error
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
        if required := [*as_list(first.get("required")), *as_list(second.get("required"))]:
            joined["required"] = required
        return joined

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise UnusableFormError("its schema is too large")

    def _own(self, schema: object) -> tuple[dict[str, Any], bool]:
        """Return what a value is if it is not null, and whether it may be null."""
        own, nullable = self.plain(schema), False
        for key in ("anyOf", "oneOf"):
            branches = [self.plain(one) for one in as_list(own.get(key))]
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
            parts = (self._branches(self._own(one)[0]) or (one,) for one in as_list(own.get(key)))
            branches = [*chain.from_iterable(parts)]
            says_kind = all(_SAYS_KIND & one.keys() and "const" not in one for one in branches)
            if 1 < len(branches) <= MAX_OPTIONS and says_kind:
                rest = {name: value for name, value in own.items() if name != key}
                return tuple(self._joined(one, rest) for one in branches)
        return ()

    def _key(self, path: _Path, end: str = "") -> str:
        """Return the JSON pointer of a place, as it can be shown, and unlike all others."""
        steps = ("/" + f"{step}".replace("~", "~0").replace("/", "~1") for step in path)
        return unique(sanitize_line("".join(steps) + end), self._keys)


def _put(value: _Value, path: _Path, place: _Place, entered: FormValue) -> _Value:
    """Return a value with what was entered for a place in it; objects that become empty go."""
    if not path:
        return NOTHING if entered is None else place.read(entered, value)
    name, *further = path
    if isinstance(name, int):
        inner = _put(value[name], tuple(further), place, entered)
        return [*value[:name], {} if inner is NOTHING else inner, *value[name + 1 :]]
    held = dict(value) if isinstance(value, Mapping) else {}
    inner = _put(held.pop(name, NOTHING), tuple(further), place, entered)
    if inner is not NOTHING:
        held[name] = inner
    return held or NOTHING


def _shown(name: str) -> str:
    return sanitize_line(name, MAX_TITLE) or "(no name)"


def _name(step: str | int) -> str:
    """Return the name of a step; rows are numbered from 1."""
    return f"{step + 1}" if isinstance(step, int) else step


def _label(name: str, title: str) -> str:
    """Return the title if it says other than the name, which is the word in the JSON."""
    said, own = (_NO_LETTER.sub("", one).casefold() for one in (title, name))
    return title if title and said != own else _shown(name)


def _summed(row: _Json, schema: _Json) -> str:
    """Sum a row up: the names and values of what is in it, in the order of its schema."""
    ordered = {name: row[name] for name in _properties(schema) if name in row} | {**row}
    pairs = islice(ordered.items(), MAX_FIELDS)
    texts = ((name, one if isinstance(one, str) else json_line(one)) for name, one in pairs)
    return sanitize_line(" · ".join(f"{name} {one[:MAX_ROW]}" for name, one in texts), MAX_ROW)


def _words(branch: _Json, own: _Json) -> str:
    """Name an alternative: by its title, what it is alone with, what it has, or its kind."""
    title = branch.get("title") if branch.get("title") != own.get("title") else ""
    fields = _properties(branch)
    fixed = [one["const"] for one in fields.values() if isinstance(one, Mapping) and "const" in one]
    names = [name for name in fields if name not in _properties(own)]
    kind = f"{branch.get('type', 'anything')}"
    return sanitize_line(str(title or ", ".join(map(str, fixed or names)) or kind), MAX_TITLE)


def _likeness(branch: _Json, value: _Value) -> tuple[bool, int]:
    """Return how well an object fits an alternative: whether it is whole, and the known keys."""
    if not isinstance(value, dict):
        return True, 0
    return _required(branch) <= value.keys(), len(value.keys() & _properties(branch).keys())


def _is_same(one: object, other: object) -> bool:
    """Return whether two values are the same JSON; in Python ``1`` equals ``true``."""
    return one == other and isinstance(one, bool) is isinstance(other, bool)


def _required(own: _Json) -> frozenset[str]:
    return frozenset(as_texts(own.get("required")))


def _properties(own: _Json) -> _Json:
    return as_object(own.get("properties"))
