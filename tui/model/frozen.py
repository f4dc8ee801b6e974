"""`Frozen`, the base of all frozen data, whose classes are made in a quarter of the time.

The standard library compiles six functions for each class: 0.4 ms, and two hundred classes are
made before the first servers start. Here only `__init__` is compiled; what compares, hashes and
shows is shared. That nobody sets a field is checked by mypy alone.
"""

import dataclasses
from operator import attrgetter
from typing import Any, ClassVar, dataclass_transform


def _fast(cls: Any, *, kw_only: bool) -> Any:  # noqa: ANN401 - one of the classes
    """Make a data class with slots."""
    made = dataclasses.dataclass(slots=True, kw_only=kw_only, repr=False, eq=False)(cls)
    names = [field.name for field in dataclasses.fields(made) if field.compare]
    made._compared = attrgetter(*names) if names else type
    return made


make = _fast
"""What makes the classes; tests put the standard library's way here."""


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
class _Maker(type):
    """Makes a frozen data class with slots of each class."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], content: dict[str, Any], *, kw_only: bool = False
    ) -> type:
        made: type = super().__new__(cls, name, bases, content)
        if "__slots__" not in content:  # else it is made already
            made = make(made, kw_only=kw_only)
        return made


class Frozen(metaclass=_Maker):
    """Data that nobody changes: the fields of a class are what it annotates, as in a data class.

    Fields of a class with `kw_only` are given by their names alone.
    """

    __slots__ = tuple[str, ...]()
    _compared: ClassVar[Any]

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        is_equal: bool = self._compared(self) == self._compared(other)
        return is_equal

    def __hash__(self) -> int:
        return hash(self._compared(self))

    def __repr__(self) -> str:
        names = (field.name for field in dataclasses.fields(self) if field.repr)
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"


class Event(Frozen):
    """One fact, in the past tense: the engine publishes it, and the store reduces it."""

    __slots__ = tuple[str, ...]()

    def said(self) -> dict[str, Any]:
        """Return its fields by their names, but for the one that says of which conversation."""
        names: tuple[str, ...] = self.__match_args__
        return {name: getattr(self, name) for name in names}


class StateEvent(Event):
    """An event that only says what parts of the state are now: its fields have their names.

    One that has a `part` is that part itself.
    """

    __slots__ = tuple[str, ...]()
    part: ClassVar[str] = ""

    def parts(self) -> dict[str, Any]:
        """Return what the parts of the state are now, by their names."""
        return {self.part: self} if self.part else self.said()
