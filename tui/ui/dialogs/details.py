"""The details of a server, a tool or a rule, the help, and reports."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from textwrap import wrap
from time import monotonic
from typing import Any, ClassVar, Final, Generic, TypeVar

from textual.app import App, ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.dom import DOMNode

from tui.model.catalog import ToolView
from tui.model.consent import ToolStanding
from tui.model.frozen import dataclass
from tui.model.input.own_commands import OWN_COMMANDS
from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.store.selectors import server as find_server
from tui.store.state import AppState
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.list_dialog import Dialog
from tui.ui.widgets.key_bar import key_hints
from tui.ui.widgets.text.describe import describe_server, describe_tool
from tui.ui.widgets.text.plain import PlainText, fit, one_line

T = TypeVar("T")

KEY_WIDTH: Final = 16
"""Cells of the column of keys, if that is at most a third of the width."""

HERE: Final = "Here"
"""Heading of the keys that work where the focus is."""


class DetailsScreen(Dialog):
    """Show scrollable content.

    Args:
        title: The title of the frame.
        content: The content; `update` replaces it.
    """

    def __init__(self, title: str, content: Content | None = None) -> None:
        super().__init__()
        self._subject = title
        self._content = content or Content()

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog") as frame:
            frame.border_title = Content(one_line(self._subject))
            frame.border_subtitle = key_hints(("Esc", "close"))
            yield PlainText(self._content)

    def update(self, content: Content) -> None:
        self.query_one(PlainText).update(content)


class ReportScreen(DetailsScreen, Generic[T]):
    """Show a part of the state as text and keep it up to date.

    Args:
        title: The title of the frame.
        bridge: Provides the state.
        select: Selects the part.
        describe: Writes it.
    """

    def __init__(
        self,
        title: str,
        bridge: StoreBridge,
        select: Callable[[AppState], T],
        describe: Callable[[T], Content],
    ) -> None:
        super().__init__(title)
        self._bridge = bridge
        self._select = select
        self._describe = describe

    def on_mount(self) -> None:
        self._bridge.watch(self, self._select, lambda part: self.update(self._describe(part)))


class ServerDetailsScreen(ReportScreen[Content]):
    """Show the details of a server and keep them up to date."""

    def __init__(self, bridge: StoreBridge, server: ServerId) -> None:
        def describe(state: AppState) -> Content:
            view = find_server(state, server)
            if view is None:
                return Content("This server is no longer in the settings.")
            return describe_server(view, monotonic(), state.instructions.get(server, ""))

        super().__init__(server, bridge, describe, lambda words: words)


class ToolDetailsScreen(ReportScreen[tuple[ToolView | None, ToolStanding | None]]):
    """Show the details of a tool, with its schema and what happens on a call.

    Args:
        bridge: Provides the state.
        commands: Explains what happens on a call; asked again whenever a rule changes.
        server: The tool's server.
        tool: The tool's name on its server.
    """

    def __init__(
        self, bridge: StoreBridge, commands: Commands, server: ServerId, tool: str
    ) -> None:
        def find(state: AppState) -> tuple[ToolView | None, ToolStanding | None]:
            view = find_server(state, server)
            tools = view.catalog.tools if view is not None else ()
            return next((one for one in tools if one.name == tool), None), state.standing

        def describe(found: tuple[ToolView | None, ToolStanding | None]) -> Content:
            view, standing = found
            if view is None:
                return Content("The server no longer has this tool.")
            return describe_tool(server, view, schema=True, standing=standing, framed=True)

        super().__init__(f"{server} · {tool}", bridge, find, describe)
        self._explain = partial(commands.engine.explain_tool, server, tool)

    def on_mount(self) -> None:
        self._bridge.watch(self, lambda state: state.grants, lambda _: self._explain())


@dataclass(frozen=True, slots=True)
class HelpLine:
    """The keys of one action as shown, what it does, and the id of its binding."""

    keys: tuple[str, ...]
    description: str
    id: str | None = None


def lines_here(
    app: App[Any], bindings: Mapping[str, ActiveBinding], focused: DOMNode | None
) -> tuple[HelpLine, ...]:
    """List the keys of the focused widget and its ancestors, without those that work everywhere.

    First those that the key bars name, those of the focused widget before those around it. Keys
    that cannot be remapped, such as those of a text cursor, are left out.
    """
    general = {key.id for key in keymap.KEYS if key.place in keymap.GENERAL}
    nodes = list(focused.ancestors_with_self) if focused is not None else []
    found: dict[str, tuple[DOMNode, Binding, list[str]]] = {}
    for node, binding, enabled, _ in bindings.values():
        if enabled and binding.id is not None and binding.id not in general:
            key = app.get_key_display(binding)
            found.setdefault(binding.id, (node, binding, []))[2].append(key)

    def rank(entry: tuple[DOMNode, Binding, list[str]]) -> tuple[bool, int, int]:
        node, binding, _ = entry
        depth = nodes.index(node) if binding.show and node in nodes else len(nodes)
        return not binding.show, depth, keymap.order(binding.id)

    return tuple(
        HelpLine(tuple(dict.fromkeys(keys)), binding.tooltip or binding.description, binding.id)
        for _, binding, keys in sorted(found.values(), key=rank)
    )


def help_content(sections: Iterable[tuple[str, Iterable[HelpLine]]], width: int) -> Content:
    """Lay the sections out in `width` cells, keys on the left, wrapped descriptions beside them."""
    lines: list[Content] = []
    for heading, entries in sections:
        rows = [row for entry in entries for row in _rows(entry, width)]
        if rows:
            lines += [Content.styled(heading, "bold"), *rows, Content()]
    return Content("\n").join(lines[:-1])


def _rows(entry: HelpLine, width: int) -> Iterable[Content]:
    keys = "  ".join(entry.keys)
    room = max(KEY_WIDTH * 3 // 4, min(KEY_WIDTH, width // 3))
    lines = wrap(entry.description, max(10, width - room)) or [""]
    for index, line in enumerate(lines):
        yield Content.assemble((fit("" if index else keys, room), "$accent"), line)


class HelpScreen(DetailsScreen):
    """Show all keys.

    Args:
        here: The keys that work where the focus was when the help was opened.
        overrides: The user's own keys by binding id.
    """

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(only=("help.close",))

    def __init__(self, here: tuple[HelpLine, ...], overrides: Mapping[str, str]) -> None:
        super().__init__("Keys")
        self._here = here
        self._overrides = overrides

    def on_mount(self) -> None:
        self.call_after_refresh(self._lay_out)

    def on_resize(self) -> None:
        self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        if texts := self.query(PlainText):  # none where a key closed it before it was drawn
            self.update(help_content(self._sections(), texts.first().size.width))

    def _sections(self) -> Iterable[tuple[str, tuple[HelpLine, ...]]]:
        yield HERE, self._here
        yield from map(self._keys_of, keymap.GENERAL)
        commands = (HelpLine((f"/{one.name}",), one.does) for one in OWN_COMMANDS.values())
        yield "Commands", tuple(commands)
        yield from map(self._keys_of, keymap.LOCAL)

    def _keys_of(self, place: keymap.Place) -> tuple[str, tuple[HelpLine, ...]]:
        here = {line.id for line in self._here}
        lines = (
            HelpLine(keymap.displayed(self.app, key, self._overrides), key.description)
            for key in keymap.KEYS
            if key.place is place and key.description and key.id not in here
        )
        return place.value, tuple(lines)
