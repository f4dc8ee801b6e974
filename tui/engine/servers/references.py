"""Finds what a ``$ref`` of a JSON schema points to, in the same document only."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote

MAX_REFERENCE_CHARS: Final = 1_000
"""Longest reference that is followed."""

_DEFINITIONS: Final = ("$defs", "definitions")


class RemoteReferenceError(Exception):
    """A reference leads out of its document; it is never fetched."""


class UnresolvedReferenceError(Exception):
    """A reference leads nowhere."""


def resolve_reference(document: Mapping[str, object], reference: str) -> object:
    """Give the schema that a reference of `document` points to.

    JSON pointers, ``$anchor`` and ``$id`` of the document's own definitions are understood.

    Raises:
        RemoteReferenceError: If it names another document.
        UnresolvedReferenceError: If there is nothing at that place.
    """
    if len(reference) > MAX_REFERENCE_CHARS:
        raise UnresolvedReferenceError(reference[:100])
    base, _, fragment = reference.partition("#")
    if base and base != str(document.get("$id", "")).partition("#")[0]:
        return _definition(document, "$id", reference, RemoteReferenceError)
    if fragment and not fragment.startswith("/"):
        return _definition(document, "$anchor", fragment, UnresolvedReferenceError)
    place: object = document
    for segment in fragment.split("/")[1:]:
        place = _step(place, unquote(segment).replace("~1", "/").replace("~0", "~"), reference)
    return place


def _step(place: object, segment: str, reference: str) -> object:
    if isinstance(place, Mapping) and segment in place:
        return place[segment]
    if isinstance(place, Sequence) and not isinstance(place, str) and segment.isdecimal():
        index = int(segment)
        if index < len(place):
            return place[index]
    raise UnresolvedReferenceError(reference)


def _definition(
    document: Mapping[str, object], key: str, value: str, missing: type[Exception]
) -> object:
    for name in _DEFINITIONS:
        definitions = document.get(name)
        if isinstance(definitions, Mapping):
            for definition in definitions.values():
                if isinstance(definition, Mapping) and definition.get(key) == value:
                    return definition
    raise missing(value)
