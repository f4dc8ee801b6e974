"""Read and write the entries of a state file. A separate module because it loads pydantic."""

import json
import os
from collections.abc import Mapping
from types import GenericAlias
from typing import Annotated, Any, Final, Generic, TypeVar
from urllib.parse import quote, unquote_to_bytes

from pydantic import ConfigDict, PlainSerializer, PlainValidator, TypeAdapter, ValidationError

T = TypeVar("T")

_URI: Final = "file:"


def read_path(text: object) -> str:
    """Return a path from its form in a file, which is a URI if it is not valid Unicode.

    Raises:
        ValueError: If it is not text.
    """
    if not isinstance(text, str):
        raise ValueError("not a path")
    if not text.startswith(_URI):
        return text
    return os.fsdecode(unquote_to_bytes(text.removeprefix(_URI).removeprefix("//")))


def write_path(path: object) -> str:
    """Return a path in its form for a file."""
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _URI + quote(os.fsencode(text))
    return text


PathText = Annotated[str, PlainValidator(read_path), PlainSerializer(write_path)]
"""A path, of any bytes."""


class EntryFormat(Generic[T]):
    """Reads and writes the entries of a state file as dataclasses.

    Reading is strict: a missing key, a value of another type or an unknown enum value is an
    error. Unknown keys are ignored.

    Args:
        kind: The dataclass; it may contain others.
        keys: The keys of fields that have another name in the file.
    """

    def __init__(self, kind: type[T], keys: Mapping[str, str]) -> None:
        # a dataclass takes its configuration from its container, hence the tuple
        container: Any = GenericAlias(tuple, (kind,))
        config = ConfigDict(
            strict=True, allow_inf_nan=False, alias_generator=lambda name: keys.get(name, name)
        )
        self._adapter = TypeAdapter[tuple[T]](container, config=config)

    def read(self, entry: object) -> T | None:
        """Return the entry as a dataclass; None if it is invalid."""
        try:
            return self._adapter.validate_json(json.dumps([entry]))[0]
        except ValidationError:
            return None

    def write(self, value: T) -> dict[str, Any]:
        """Return the JSON form of an entry."""
        [entry] = self._adapter.dump_python((value,), mode="json", by_alias=True)
        return dict(entry)
