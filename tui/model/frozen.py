"""`Frozen`, the base of all frozen data, whose classes are made in a quarter of the time.

The standard library compiles six functions for each class: 0.4 ms, and two hundred classes are
made before the first servers start. Here only `__init__` is compiled; what compares, hashes and
shows is shared. That nobody sets a field is checked by mypy alone.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

__all__ = ["Frozen", "dataclass"]

T = TypeVar("T")


def _frozen(
    *, slots: bool, frozen: bool = False, kw_only: bool = False
) -> Callable[[type[T]], type[T]]:
    """Make a data class with slots; one that is not frozen as the standard library does."""
    assert slots  # noqa: S101 - mypy reads it at each class
    if not frozen:
        return dataclasses.dataclass(slots=True, kw_only=kw_only)

    def make(cls: type[T]) -> type[T]:
        made = dataclasses.dataclass(slots=True, kw_only=kw_only, repr=False, eq=False)(cls)
        names = [field.name for field in dataclasses.fields(made) if field.compare]  # type: ignore[arg-type]
        for name, value in (
            ("_compared", attrgetter(*names) if names else type),
            ("__eq__", _equal),
            ("__hash__", _hash),
            ("__repr__", _show),
        ):
            if name not in cls.__dict__:
                setattr(made, name, value)
        return made

    return make


def _equal(self: Any, other: Any) -> Any:  # noqa: ANN401 - any of the classes
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == self._compared(other)


def _hash(self: Any) -> int:  # noqa: ANN401 - ditto
    return hash(self._compared(self))


def _show(self: Any) -> str:  # noqa: ANN401 - ditto
    names = (field.name for field in dataclasses.fields(self) if field.repr)
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
    return f"{self.__class__.__qualname__}({shown})"


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _frozen


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
class _Maker(type):
    """Makes a frozen data class with slots of each class."""

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        content: dict[str, Any],
        *,
        kw_only: bool = False,
    ) -> type:
        made: type = super().__new__(cls, name, bases, content)
        if "__slots__" in content:  # it is made already
            return made
        return dataclass(frozen=True, slots=True, kw_only=kw_only)(made)


class Frozen(metaclass=_Maker):
    """Data that nobody changes: the fields of a class are what it annotates, as in a data class.

    Fields of a class with `kw_only` are given by their names alone.
    """

    __slots__ = tuple[str, ...]()


class Event(Frozen):
    """One fact, in the past tense: the engine publishes it, and the store reduces it."""

    __slots__ = tuple[str, ...]()


class StateEvent(Event):
    """An event that only says what parts of the state are now: its fields have their names."""

    __slots__ = tuple[str, ...]()

    def said(self) -> dict[str, Any]:
        """Return its fields by their names, but for the one that says of which conversation."""
        names: tuple[str, ...] = self.__match_args__
        return {name: getattr(self, name) for name in names}
