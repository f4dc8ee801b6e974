"""The keys that do something here, in the foot of the screen, and why another does nothing."""

import re
from collections.abc import Iterable, Mapping, Sequence
from sys import maxsize
from typing import Any, Final, Protocol, runtime_checkable

from rich.cells import cell_len
from textual.actions import parse as parse_action
from textual.app import App
from textual.binding import ActiveBinding, Binding
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen
from textual.style import Style
from textual.widget import Widget

from tui.model.frozen import Frozen
from tui.ui import keymap
from tui.ui.widgets.text.plain import fit

GAPS: Final = (2, 1)
"""Cells between two hints: usually, and if space is short."""

FRAME: Final = 6
"""Cells of a border that corners, lines and spaces take from its words."""

MOST: Final = 7
"""Hints in the foot at most."""

LAST: Final = ("side.chat", "dialog.close", "app.palette", "app.help")
"""Binding ids at the end of the foot; but for the first two, the others are dropped before."""

OF_SERVER: Final = frozenset(
    f"servers.{name}"
    for name in ("restart", "start-stop", "sign-in", "log", "enable", "review", "demo", "allow")
) | {"marks.mark"}
"""Binding ids of what is done with one server: they stand below it."""

ELSEWHERE: Final = OF_SERVER | {key.id for key in keymap.KEYS if key.action.startswith("go(")}
"""Binding ids that do not stand in the foot; those of panes stand in the border of the chat."""

_GENERAL: Final = frozenset(key.id for key in keymap.KEYS if key.place in keymap.GENERAL)

_BETWEEN: Final = re.compile(r" · |  +")
"""What stands between the parts of a line of hints."""


class Hint(Frozen):
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


def key_hints(app: App[Any], *pairs: tuple[str, str]) -> Content:
    """Write keys and what they do as in the key bars; a binding's id stands for its key now."""
    keys = {key.id: key.keys for key in keymap.KEYS} | {**app._keymap, "↵": "enter"}
    hints = []
    for key, label in pairs:
        name = keys.get(key, "").partition(",")[0]
        shown = app.get_key_display(Binding(name, "")) if name else key
        hints.append(_hint(shown, label, name))
    return Content("  ").join(hints)


def _hint(key: str, label: str, name: str) -> Content:
    """Write a key and what it does; a click presses the key if Textual's name of it is given."""
    hint = Content.assemble((key, "$accent"), " ", (label, "$text-muted"))
    press = Style.from_meta({"@click": f"app.press({name!r})"})
    return hint.stylize(press) if name else hint


@runtime_checkable
class NamesActions(Protocol):
    """A node whose key labels depend on its state."""

    def action_label(self, action: str) -> str | None:
        """Return the label of an action now, empty to leave it out, or None for its usual one."""


class SaysWhy:
    """A node that can say why its keys have no effect now."""

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:  # noqa: ARG002
        """Return why an action has no effect now, as a sentence; empty if it has one."""
        return ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable only the keys that have an effect now."""
        return not self.why_not(action, parameters)


def why_not(app: App[Any], key: str, own_keys: Mapping[str, str]) -> str:
    """Say why a key that nothing took has no effect; empty if there is no need to say it.

    Args:
        app: The running app.
        key: Textual's name of the key.
        own_keys: The user's own keys by binding id.
    """
    screen = app.screen
    focused = screen.focused or screen
    for node in focused.ancestors_with_self:
        if not isinstance(node, SaysWhy):
            continue
        for binding in node.BINDINGS:
            assert isinstance(binding, Binding)  # noqa: S101 - all are made by the keymap
            if key in (own_keys.get(binding.id or "") or binding.key).split(","):
                action, parameters = parse_action(binding.action)[1:]
                if words := node.why_not(action, parameters):
                    return words
    if focused.check_consume_key("a", "a") and not key.startswith(("ctrl+", "alt+")):
        return ""  # it is typed into
    shown = app.get_key_display(Binding(key, ""))
    help_key = keymap.key_of(app, screen.active_bindings, "app.help")
    return f"{shown} does nothing here: {help_key} shows the keys"


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
            label = binding.description if label is None else label
            found[binding.action] = Hint(binding.id or "", name, key, label)
    return tuple(sorted((hint for hint in found.values() if hint.label), key=_place))


def keys_of(screen: Screen[Any], frame: Widget, enter: str) -> Content:
    """Write the keys of a dialog for its frame, without those that work everywhere.

    Args:
        screen: The dialog.
        frame: Its frame.
        enter: What Enter does where no binding says so.
    """
    nodes = (screen.focused or screen).ancestors_with_self
    found = hints(screen.app, screen.active_bindings, nodes)
    own = [hint for hint in found if hint.id not in _GENERAL]
    if enter and all(hint.name != "enter" for hint in own):
        key = keymap.key_of(screen.app, screen.active_bindings, "dialog.choose") or "↵"
        own.insert(0, Hint("", "enter", key, enter))
    return hint_line(own, max(0, frame.outer_size.width - FRAME))


def _place(hint: Hint) -> tuple[int, bool, int]:
    """Return the place of a hint: what is done here comes first."""
    last = LAST.index(hint.id) + 1 if hint.id in LAST else 0
    return last, hint.id in _GENERAL, keymap.order(hint.id)


def with_keys(text: str) -> Content:
    """Write a sentence in which the keys stand between backticks."""
    parts = text.split("`")
    return Content.assemble(*((part, "$accent" if i % 2 else "") for i, part in enumerate(parts)))


def hint_line(entries: Sequence[Hint], width: int, most: int = maxsize) -> Content:
    """Return one line of `width` cells with as many hints as fit, `most` of them at most.

    Unless their number is limited the gap shrinks first; then those at the end go, but those in
    `LAST` and the first two last.
    """
    kept, firm = list(entries), {*LAST, *(hint.id for hint in entries[:2])}
    others = (hint.id for hint in reversed(entries) if hint.id not in firm)
    order = [*others, "app.palette", *LAST]
    spare = sorted(kept, key=lambda hint: order.index(hint.id) if hint.id in order else len(order))
    while True:
        for gap in GAPS if most == maxsize else GAPS[:1]:
            if len(kept) <= most and _width(kept, gap) <= width:
                return Content(" " * gap).join(hint.content for hint in kept)
        kept.remove(spare.pop(0))


def _width(entries: Sequence[Hint], gap: int) -> int:
    return sum(hint.width + gap for hint in entries) - gap


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


class KeyBar(Widget):
    """Show the keys that do something where the focus is, or in the open dialog.

    A click presses the key. Why another one does nothing stands here until the next one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.auto_links = False
        self._hints: tuple[Hint, ...] = ()
        self._said = ""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self.follow)
        self.follow(self.screen)

    def follow(self, screen: Screen[Any]) -> None:
        """Update the keys; also called when the screen is covered and uncovered."""
        if not self.is_attached:
            return
        top, around = self.app.screen, screen.focused or screen
        bindings, nodes = screen.active_bindings, around.ancestors_with_self
        if top is not screen:
            bindings |= top.active_bindings
            nodes = [top, self.app]
        found = hints(self.app, bindings, nodes)
        if top is not screen:
            found = tuple(hint for hint in found if hint.id in _GENERAL)
        found = tuple(hint for hint in found if hint.id not in ELSEWHERE)
        if found != self._hints:
            self._hints, self._said = found, ""
            self.refresh()

    def say(self, words: str) -> None:
        """Say something in place of the keys; nothing brings them back."""
        if words != self._said:
            self._said = words
            self.refresh()

    def render(self) -> Content:
        if self._said:
            return Content.styled(fit(self._said, self.size.width), "$text-warning")
        return hint_line(self._hints, self.size.width, MOST)
