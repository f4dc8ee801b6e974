"""Which panes stand beside the chat and how wide they are, for each class of terminal width.

Until a border is moved the chat has at least 60 % of the width.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, Final

from tui.model.frozen import Frozen

MIN_SIDE: Final = 16
"""Columns that a side keeps however its border is moved."""

MIN_CHAT: Final = 24
"""Columns that the chat keeps however the borders are moved."""

MAX_SAVED: Final = 1_000
"""Widest saved width of a side, in columns."""


class WidthClass(IntEnum):
    """A class of terminal widths; the value is the columns from which it begins.

    SINGLE: one pane at a time. ONE_SIDE: the chat and at most one side. SERVERS: the same, with
    the servers open at first. BOTH: the chat between both sides. ROOMY: the same, with room for
    descriptions beside the names in the lists.
    """

    SINGLE = 0
    ONE_SIDE = 80
    SERVERS = 110
    BOTH = 140
    ROOMY = 200


class Side(StrEnum):
    """A side of the chat; the value is its name in the preferences."""

    SERVERS = "servers"
    RIGHT = "right"

    @property
    def other(self) -> "Side":
        return Side.RIGHT if self is Side.SERVERS else Side.SERVERS


class Sides(Frozen):
    """What the user chose for one class of widths.

    Attributes:
        opened: The sides that are open; where there is room for one, the last is shown.
        widths: The columns of each side whose border was moved.
    """

    opened: tuple[Side, ...]
    widths: Mapping[Side, int] = field(default_factory=lambda: MappingProxyType({}))


_START: Final[Mapping[WidthClass, Sides]] = {
    WidthClass.SINGLE: Sides(()),
    WidthClass.ONE_SIDE: Sides(()),
    WidthClass.SERVERS: Sides((Side.SERVERS,)),
    WidthClass.BOTH: Sides(tuple(Side)),
    WidthClass.ROOMY: Sides(tuple(Side)),
}
"""What is open before the user chooses."""


class Layout(Frozen):
    """The user's choices for all classes of widths.

    Attributes:
        alone: Whether the chat stands alone.
        sides: The choices of those classes in which something was chosen.
    """

    alone: bool = False
    sides: Mapping[WidthClass, Sides] = field(default_factory=lambda: MappingProxyType({}))

    def at(self, width: int) -> Sides:
        kind = width_class(width)
        return self.sides.get(kind, _START[kind])

    def toggled(self, width: int) -> "Layout":
        """Let the chat stand alone or not, if there is anything beside it."""
        changed = replace(self, alone=not self.alone)
        return self if changed.columns(width) == self.columns(width) else changed

    def shown(self, width: int) -> tuple[Side, ...]:
        """Return the sides that stand beside the chat unless it is alone."""
        opened = self.at(width).opened
        return opened if width >= WidthClass.BOTH else opened[-1:]

    def with_side(self, width: int, side: Side, *, opened: bool) -> "Layout":
        """Open or close a side; closing one brings back another that it took the room of."""
        kept = tuple(other for other in self.at(width).opened if other is not side)
        if opened and side in self.shown(width):
            return replace(self, alone=False)
        if opened:
            kept = (*kept, side) if width >= WidthClass.SERVERS else (side,)
        changed = self._with(width, replace(self.at(width), opened=kept))
        return replace(changed, alone=self.alone and not opened)

    def with_width(self, width: int, side: Side, columns: int) -> "Layout":
        """Move the border of a side that is open."""
        now, sides = self.columns(width), self.at(width)
        most = width - MIN_CHAT - now[side.other]
        widths = {**sides.widths, side: max(MIN_SIDE, min(columns, most))}
        return self._with(width, replace(sides, widths=MappingProxyType(widths)))

    def _with(self, width: int, sides: Sides) -> "Layout":
        changed = {**self.sides, width_class(width): sides}
        return replace(self, sides=MappingProxyType(changed))

    def columns(self, width: int) -> Mapping[Side, int]:
        """Return the columns of both sides, 0 if hidden; the chat has the rest."""
        if self.alone or width < WidthClass.ONE_SIDE:
            return dict.fromkeys(Side, 0)
        sides, shown = self.at(width), self.shown(width)
        most = width - MIN_CHAT
        usual = _servers_width(width) if Side.SERVERS in shown else 0
        servers = right = 0
        if usual:
            servers = min(sides.widths.get(Side.SERVERS, usual), most - MIN_SIDE)
        if Side.RIGHT in shown:
            spare = width * 2 // 5  # the chat has 60 %, rounded up
            right = sides.widths.get(Side.RIGHT, spare - usual)
            right = min(right, most - servers)
        return {Side.SERVERS: servers, Side.RIGHT: right}

    def saved(self) -> dict[str, Any]:
        """Return the layout as it is written to the preferences."""
        classes = {
            str(int(kind)): {"open": list(sides.opened), **sides.widths}
            for kind, sides in self.sides.items()
        }
        return {"alone": self.alone, "widths": classes}


def width_class(width: int) -> WidthClass:
    """Return the class of a terminal's width."""
    return max(kind for kind in WidthClass if width >= kind)


def _servers_width(width: int) -> int:
    return 28 if width >= WidthClass.ROOMY else 26 if width >= WidthClass.BOTH else 30


def read_layout(saved: object) -> Layout:
    """Read a layout from the preferences; what cannot be used is ignored."""
    if not isinstance(saved, Mapping):
        return Layout()
    classes = saved.get("widths")
    found: dict[WidthClass, Sides] = {}
    for kind in WidthClass:
        entry = classes.get(str(int(kind))) if isinstance(classes, Mapping) else None
        if isinstance(entry, Mapping):
            found[kind] = _read_sides(entry)
    return Layout(saved.get("alone") is True, MappingProxyType(found))


def _read_sides(entry: Mapping[str, object]) -> Sides:
    names = entry.get("open")
    listed = [name for name in names if name in list(Side)] if isinstance(names, list) else []
    opened = tuple(dict.fromkeys(Side(name) for name in listed))
    widths = {
        side: value
        for side in Side
        if type(value := entry.get(side.value)) is int and MIN_SIDE <= value <= MAX_SAVED
    }
    return Sides(opened, MappingProxyType(widths))
