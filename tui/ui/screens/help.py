"""The help: the keys that work here, then all others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, ClassVar, Final

from textual.app import App, ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content

from tui.ui import keymap
from tui.ui.screens.dialog import Dialog
from tui.ui.widgets.key_bar import key_hints
from tui.ui.widgets.text.plain import PlainText, fit

KEY_WIDTH: Final = 16
"""Cells of the column of keys."""

HERE: Final = "Here"
"""Heading of the keys that work where the focus is."""


@dataclass(frozen=True, slots=True)
class HelpLine:
    """The keys of one action as shown, and what it does."""

    keys: tuple[str, ...]
    description: str


def lines_here(app: App[Any], bindings: Mapping[str, ActiveBinding]) -> tuple[HelpLine, ...]:
    """List the keys of the focused widget and its ancestors, without those that work everywhere.

    Keys that cannot be remapped, such as those of a text cursor, are left out.
    """
    general = {key.id for key in keymap.KEYS if key.place in keymap.GENERAL}
    found: dict[str, tuple[Binding, list[str]]] = {}
    for _node, binding, enabled, _ in bindings.values():
        if enabled and binding.id is not None and binding.id not in general:
            found.setdefault(binding.id, (binding, []))[1].append(app.get_key_display(binding))
    return tuple(
        HelpLine(tuple(dict.fromkeys(keys)), binding.tooltip or binding.description)
        for binding, keys in sorted(found.values(), key=lambda pair: keymap.order(pair[0].id))
    )


def help_content(sections: Iterable[tuple[str, Iterable[HelpLine]]], width: int) -> Content:
    """Lay the sections out in `width` cells, keys on the left, wrapped descriptions beside them."""
    lines: list[Content] = []
    for heading, entries in sections:
        rows = [row for entry in entries for row in _rows(entry, width)]
        if rows:
            lines += [Content.styled(heading, "$text-muted"), *rows, Content()]
    return Content("\n").join(lines[:-1])


def _rows(entry: HelpLine, width: int) -> Iterable[Content]:
    keys = "  ".join(entry.keys)
    lines = wrap(entry.description, max(20, width - KEY_WIDTH)) or [""]
    for index, line in enumerate(lines):
        yield Content.assemble((fit("" if index else keys, KEY_WIDTH), "bold"), line)


class HelpScreen(Dialog):
    """Show all keys.

    Args:
        here: The keys that work where the focus was when the help was opened.
        overrides: The user's own keys by binding id.
    """

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(only=("help.close",))

    def __init__(self, here: tuple[HelpLine, ...], overrides: Mapping[str, str]) -> None:
        super().__init__()
        self._here = here
        self._overrides = overrides

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog") as frame:
            frame.border_title = "Keys"
            frame.border_subtitle = key_hints(("esc", "close"))
            yield PlainText()

    def on_mount(self) -> None:
        self.call_after_refresh(self._lay_out)

    def on_resize(self) -> None:
        self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        text = self.query_one(PlainText)
        text.update(help_content(self._sections(), text.size.width))

    def _sections(self) -> Iterable[tuple[str, tuple[HelpLine, ...]]]:
        yield HERE, self._here
        for place in (*keymap.GENERAL, *keymap.LOCAL):
            lines = (
                HelpLine(keymap.displayed(self.app, key, self._overrides), key.description)
                for key in keymap.KEYS
                if key.place is place and key.description
            )
            yield place.value, tuple(lines)
