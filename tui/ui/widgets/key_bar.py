"""The key bar at the bottom, and the key hints in the border of the focused pane."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

from rich.cells import cell_len
from textual.app import App
from textual.binding import ActiveBinding
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen
from textual.style import Style
from textual.widget import Widget

from tui.model.frozen import dataclass
from tui.ui import keymap
from tui.ui.widgets.text.plain import PlainText

GAPS: Final = (2, 1)
"""Cells between two hints: usually, and if space is short."""

SPARE: Final = (
    "list.filter",
    "activity.search",
    "deck.model",
    "deck.resources",
    "deck.prompts",
    "deck.activity",
    "deck.tools",
)
"""Binding ids that are dropped first if not all fit, in this order; a filter names its key."""

_BETWEEN: Final = re.compile(r" · |  +")
"""What stands between the parts of a line of hints."""

_NAMES: Final = {"Esc": "escape", "↵": "enter"}
"""Textual's names of keys that are written otherwise."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A key and what it does.

    Attributes:
        id: The id of the binding, or nothing.
        name: Textual's name of the key.
        key: The key as written on the screen.
        label: What it does, in a word or two.
    """

    id: str
    name: str
    key: str
    label: str

    @property
    def width(self) -> int:
        return cell_len(self.key) + 1 + cell_len(self.label)

    @property
    def content(self) -> Content:
        return _hint(self.key, self.label, self.name)


def key_hints(*pairs: tuple[str, str]) -> Content:
    """Write keys and what they do as in the key bars."""
    return Content("  ").join(
        _hint(key, label, _NAMES.get(key, key if len(key) == 1 else "")) for key, label in pairs
    )


def _hint(key: str, label: str, name: str) -> Content:
    """Write a key and what it does; a click presses the key if Textual's name of it is given."""
    hint = Content.assemble((key, "$accent"), " ", (label, "$text-muted"))
    press = Style.from_meta({"@click": f"app.press({name!r})"})
    return hint.stylize(press) if name else hint


@runtime_checkable
class NamesActions(Protocol):
    """A node whose key labels depend on its state."""

    def action_label(self, action: str) -> str | None:
        """Return the label of an action now, or None for its usual one."""


def hints(
    app: App[Any], bindings: Mapping[str, ActiveBinding], nodes: Iterable[DOMNode]
) -> tuple[Hint, ...]:
    """List the active keys of some nodes, each action once, in the order of the keymap."""
    owners = set(nodes)
    found: dict[str, Hint] = {}
    for name, (node, binding, enabled, _) in bindings.items():
        if node in owners and binding.show and enabled and binding.action not in found:
            key = app.get_key_display(binding)
            label = node.action_label(binding.action) if isinstance(node, NamesActions) else None
            found[binding.action] = Hint(binding.id or "", name, key, label or binding.description)
    return tuple(sorted(found.values(), key=lambda hint: keymap.order(hint.id)))


def with_keys(text: str) -> Content:
    """Write a sentence in which the keys stand between backticks."""
    parts = text.split("`")
    return Content.assemble(*((part, "$accent" if i % 2 else "") for i, part in enumerate(parts)))


def fitting(entries: Sequence[Hint], width: int) -> tuple[tuple[Hint, ...], int]:
    """Return the hints that fit in `width` cells, and the gap between them.

    The gap shrinks first, then the hints in `SPARE` go, then those at the end.
    """
    kept = list(entries)
    spare = [hint for name in SPARE for hint in kept if hint.id == name]
    while True:
        for gap in GAPS:
            if _width(kept, gap) <= width:
                return tuple(kept), gap
        kept.remove(spare.pop(0) if spare else kept[-1])


def _width(entries: Sequence[Hint], gap: int) -> int:
    return sum(hint.width + gap for hint in entries) - gap


def hint_line(entries: Sequence[Hint], width: int) -> Content:
    """Return one line of `width` cells with as many hints as fit."""
    kept, gap = fitting(entries, width)
    return Content(" " * gap).join(hint.content for hint in kept)


def hint_lines(entries: Sequence[Hint], width: int) -> Content:
    """Return all hints, in as many columns as fit in `width` cells."""
    for columns in range(len(entries), 0, -1):
        widths = [max(hint.width for hint in entries[at::columns]) for at in range(columns)]
        if columns == 1 or sum(widths) + GAPS[0] * (columns - 1) <= width:
            break
    else:
        return Content()
    cells = [
        hint.content.pad_right(widths[at % columns] - hint.width) for at, hint in enumerate(entries)
    ]
    lines = (cells[start : start + columns] for start in range(0, len(cells), columns))
    return Content("\n").join(Content(" " * GAPS[0]).join(line) for line in lines)


def whole_parts(line: Content, width: int) -> Content:
    """Shorten a line of hints to `width` cells by the parts at its end, else by its last words."""
    if line.cell_length <= width:
        return line
    starts = [found.start() for found in _BETWEEN.finditer(line.plain)]
    for start in reversed(starts):
        if (kept := line[:start]).cell_length <= width:
            return kept
    blanks = (found.start() for found in re.finditer(" ", line.plain))
    ends = [end for end in blanks if line[:end].cell_length < width]
    return Content.assemble(line[: ends[-1]], "…") if ends else line.truncate(width, ellipsis=True)


class HintLine(PlainText):
    """One line of hints; of those that do not fit, none is shown in part."""

    def line(self) -> Content:
        """Return all hints."""
        line = self.content
        assert isinstance(line, str | Content)  # noqa: S101 - nothing else is put into one
        return Content(line) if isinstance(line, str) else line

    def render(self) -> Content:
        """Show what fits; before the first layout that is all."""
        line = self.line()
        return whole_parts(line, self.size.width or line.cell_length)


class KeyBar(Widget):
    """Show the keys that work in every pane, or in the open dialog; a click presses the key."""

    def __init__(self) -> None:
        super().__init__()
        self.auto_links = False
        self._hints: tuple[Hint, ...] = ()

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self.follow)
        self.follow(self.screen)

    def follow(self, screen: Screen[Any]) -> None:
        """Update the keys; also called when the screen is covered and uncovered."""
        if not self.is_attached:
            return
        found = hints(self.app, screen.active_bindings, (screen, self.app))
        if self.app.screen is not screen:
            active = self._active_over(screen)
            found = tuple(hint for hint in found if hint.id in active)
        if found != self._hints:
            self._hints = found
            self.refresh()

    def _active_over(self, screen: Screen[Any]) -> set[str | None]:
        """Return the ids of the bindings that work in the dialog over `screen`."""
        own = self.app.screen.active_bindings.values()
        global_keys = (
            active
            for active in screen.active_bindings.values()
            if active.node is self.app and active.binding.priority
        )
        return {active.binding.id for active in (*own, *global_keys) if active.enabled}

    def render(self) -> Content:
        return hint_line(self._hints, self.size.width)
